"""Views of images: draw their parameters, and apply them to whole batches."""
