"""Records: what a cell is, and the immutable file that its result becomes."""
