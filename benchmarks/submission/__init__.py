"""Records and losses of others: run again, bundled, and verified."""
