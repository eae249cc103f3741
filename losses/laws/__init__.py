"""The laws that every loss must satisfy, checked on any loss: a registered one or a user's own."""

from contrastbench.losses.laws.battery import LAWS, CheckResult, check_loss

__all__ = ["LAWS", "CheckResult", "check_loss"]
