"""Check a domain or a device of somebody, and try a loss for a few steps, before it is run."""
