"""Compare a loss with another on the same random batches: `bench check-loss --against`."""
