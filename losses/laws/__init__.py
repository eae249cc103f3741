"""What every loss must satisfy."""

from contrastbench.losses.laws.battery import CheckResult, check_loss

__all__ = ["CheckResult", "check_loss"]
