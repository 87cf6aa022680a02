"""Two forwards of one weight set: `encode` (causal, writes KV) and `denoise` (bidirectional, reads KV)."""
