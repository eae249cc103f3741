"""Images: SimCLR, MoCo v3 and multi-crop with any registered loss, linear and kNN evaluation."""
