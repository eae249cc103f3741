"""Refuse an option that is given twice, of which the last value would count, and empty words."""

from itertools import pairwise
from typing import Any

from typer.core import TyperCommand

from contrastbench.errors import UserError


class OnceCommand(TyperCommand):
    """Each option that takes one value is given at most once, and no word is empty."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words after a look at which options are among them."""
        if not ctx.resilient_parsing:
            check_filled(args)
            _, _, given = self.make_parser(ctx).parse_args(args=args[:])
            check_once(given)
        rest: list[str] = super().parse_args(ctx, args)
        return rest


def check_filled(args: list[str]) -> None:
    """Raise for an empty word: an empty path would be the current folder."""
    for before, word in pairwise(["", *args]):
        if not word:
            what = f"the value of {before}" if before.startswith("-") else "an argument"
            raise UserError(f"{what} is empty: give one, or leave it out")


def check_once(given: list[Any]) -> None:
    """Raise for an option of one value that is among the given ones twice."""
    for i, param in enumerate(given):
        single = not (param.multiple or getattr(param, "is_flag", False) or param.nargs < 0)
        if single and param.param_type_name == "option" and param in given[:i]:
            raise UserError(f"{param.opts[0]} takes one value and is given twice: give it once")
