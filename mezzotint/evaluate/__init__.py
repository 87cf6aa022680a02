"""How good a checkpoint is: held-out tasks answered by several arms and scored; no load is measured."""
