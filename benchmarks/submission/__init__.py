"""Submissions: a stranger's loss with its records as one file, and what a check of it says."""
