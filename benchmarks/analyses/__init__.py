"""What papers show beside tables: scores in training, false negatives, t-SNE panels, heatmaps as CSV and plot."""
