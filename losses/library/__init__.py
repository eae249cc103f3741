"""The losses: one file each, whose name is the loss's."""
