"""A loss by its declaration alone, so that its cells are planned and judged without its code.

A child process says what the loss declares. It becomes a class with the same arguments, ranges and
limits, and nothing else.
"""

from collections.abc import Mapping
from pathlib import Path

from contrastbench.benchmarks.submission.child import Declared
from contrastbench.errors import UserError
from contrastbench.losses.expression import file_and_class

HEAD = """\
from math import inf
from contrastbench.losses import ranges as of_ranges
from contrastbench.losses.base import Loss
from contrastbench.losses.limits import Limit, Towards
from contrastbench.losses.ranges import Given, Number

def Choice(choices):
    return of_ranges.Choice(*choices)
"""
CLASS = """
class {name}(Loss):
    ranges = {ranges!r}
    limits = {limits!r}
    def __init__(self{arguments}):
        super().__init__()
        vars(self).update({names})
"""


def write_stand_ins(terms: Mapping[str, Declared], folder: Path) -> None:
    """Write the files of stand-ins into a folder, each for a term FILE:CLASS.

    Raises:
        UserError: an argument has no name.
    """
    for term, declared in terms.items():
        own = file_and_class(term)
        assert own, "the bundle's terms were checked"
        path = folder / own[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(("" if file.tell() else HEAD) + class_text(own[1], declared))


def class_text(name: str, declared: Declared) -> str:
    """Return the text of a class that has the declared arguments, ranges and limits."""
    if wrong := [key for key in declared.params if not key.isidentifier()]:
        raise UserError(f"{name} has an argument {wrong[0]!r}, which is no name")
    return CLASS.format(
        name=name,
        ranges=declared.ranges,
        limits=declared.limits,
        arguments="".join(f", {key}={value!r}" for key, value in declared.params.items()),
        names=", ".join(f"{key}={key}" for key in declared.params),
    )
