"""Compute the analyses that papers show beside tables, as CSV and plot.

Scores, terms and accuracies in training, false negatives, weights by the gradient, mutual
information.
"""
