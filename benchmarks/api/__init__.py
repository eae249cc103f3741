"""Trainings and records for Python: the names that `import contrastbench as cb` offers."""
