"""How a checkpoint is taught: tokenizer, data, losses, loops; no inference service and no measurement."""
