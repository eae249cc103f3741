"""Networks for images: ResNets and BN-Inception, their heads and trained weights."""
