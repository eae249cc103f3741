"""Records: the identity of a cell, and the immutable file that holds its result."""
