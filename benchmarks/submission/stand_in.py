"""A loss by its declaration alone, so that its cells are planned and judged without its code.

A child process reads the declaration. What it says is checked to be literals, numbers' ranges and
limits, and becomes a class with the same arguments, ranges and limits, and nothing else.
"""

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import dedent

from contrastbench.benchmarks.submission.apart import Refused
from contrastbench.losses.expression import file_and_class

MAX_TEXT = 2**16  # letters of a declaration
CALLED = {"Number", "Choice", "Given", "Limit", "Towards"}
NODES = (ast.Expression, ast.Constant, ast.Dict, ast.List, ast.Tuple, ast.UnaryOp, ast.USub)
HEAD = """\
from math import inf
from contrastbench.losses import ranges as of_ranges
from contrastbench.losses.base import Loss
from contrastbench.losses.limits import Limit, Towards
from contrastbench.losses.ranges import Given, Number

def Choice(choices):
    return of_ranges.Choice(*choices)
"""


def write_stand_ins(classes: Mapping[str, Sequence[str]], folder: Path) -> None:
    """Write the files of stand-ins.

    Args:
        classes: by FILE:CLASS the texts of its defaults, ranges and limits.
        folder: of the files.

    Raises:
        Refused: a text is no declaration.
    """
    for name, texts in classes.items():
        own = file_and_class(name)
        assert own, "the bundle's terms were checked"
        path = folder / own[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write("" if file.tell() else HEAD)
            file.write(class_text(own[1], *map(declaration, texts)))


def class_text(name: str, defaults: ast.expr, ranges: ast.expr, limits: ast.expr) -> str:
    """Return the text of a class that has these arguments, ranges and limits."""
    if not isinstance(defaults, ast.Dict):
        raise Refused(f"{name} declares no arguments")
    names = [getattr(key, "value", None) for key in defaults.keys]
    if not all(isinstance(one, str) and one.isidentifier() for one in names):
        raise Refused(f"{name} has an argument without a name")
    pairs = zip(names, map(ast.unparse, defaults.values), strict=True)
    return dedent(f"""
        class {name}(Loss):
            ranges = {ast.unparse(ranges)}
            limits = {ast.unparse(limits)}
            def __init__(self{"".join(f", {key}={value}" for key, value in pairs)}):
                super().__init__()
                vars(self).update({", ".join(f"{key}={key}" for key in names)})
    """)


def declaration(text: str) -> ast.expr:
    """Return the parsed text, if it has literals and calls of ranges and limits alone."""
    try:
        tree = ast.parse(text[:MAX_TEXT], mode="eval")
        if all(map(is_harmless, ast.walk(tree))):
            return tree.body
    except (TypeError, ValueError, SyntaxError, RecursionError, MemoryError):
        pass
    raise Refused("what the loss declares are no literals, ranges and limits")


def is_harmless(node: ast.AST) -> bool:
    """Return whether a part of an expression only writes down a value."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in CALLED
    if isinstance(node, ast.Name):
        return node.id in {"inf", *CALLED}
    return isinstance(node, (*NODES, ast.keyword, ast.Load))
