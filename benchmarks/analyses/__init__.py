"""What papers show beside tables.

Scores in training, false negatives, t-SNE panels, heatmaps as CSV and plot.
"""
