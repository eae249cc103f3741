"""Scorers of frozen embeddings, shared by domains."""
