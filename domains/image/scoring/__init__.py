"""Scores of frozen encoders: linear probes on views, fine-tuning, `bench score`."""
