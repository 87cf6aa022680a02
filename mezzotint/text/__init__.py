"""Between strings and token ids: tokenizer, chat templates, detokeniser; no tensors live here."""
