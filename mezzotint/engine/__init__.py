"""Many requests on one model: whose turn it is, which memory a row holds, what one batch runs; ids only, never text."""
