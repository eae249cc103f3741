"""What `import contrastbench as cb` offers: trainings, and records as frames of pandas."""
