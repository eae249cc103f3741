"""What frozen embeddings are scored by, shared by domains."""
