"""Measure times and memory side by side with common libraries."""
