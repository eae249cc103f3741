"""What is trained and scored: one folder for each kind of data."""
