"""What every loss must satisfy."""
