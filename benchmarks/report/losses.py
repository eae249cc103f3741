"""Collect what the page of a loss says: formula, parameters, limits, rows of tables."""

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from latex2mathml.converter import convert
from markupsafe import Markup

from contrastbench.benchmarks.report.contents import Group, TableView
from contrastbench.benchmarks.tables.catalogue import by_number
from contrastbench.losses.expression import names
from contrastbench.losses.ranges import Number
from contrastbench.losses.registry import OURS, describe, load
from contrastbench.losses.spec import LossSpec

MATH = ".. math::"
DESCRIPTION_END = re.compile(r"\n\s*(?:Args:|Raises:|>>>)")  # begins what is no description


class Block(NamedTuple):
    """A paragraph of a docstring, or a formula as MathML."""

    text: str = ""
    formula: Markup = Markup()


def page_losses(shown: Sequence[TableView], groups: Sequence[Group], all_: bool) -> list[str]:
    """Return the losses that have a page: those of records and tables, or all of ours as well."""
    listed = {line.row.loss for view in shown for line in view.resolved.lines if line.row.loss}
    # records of FILE.py:CLASS say the class alone
    named = {group.first["loss"] for group in groups}
    named = (named - {LossSpec(name).complete.name for name in listed}) | listed
    named |= {term for name in named for term in names(name)}
    ours = [name for name in OURS if all_ or name in named]
    return [*ours, *sorted(named - set(OURS), key=by_number)]


def family(name: str) -> str:
    return OURS.get(name, "")


def description(name: str) -> Iterator[Block]:
    if name not in OURS:
        return
    for text in DESCRIPTION_END.split(inspect.getdoc(load(name)) or "")[0].split("\n\n"):
        if text.lstrip().startswith(MATH):
            tex = text.replace(MATH, "").strip()
            yield Block(formula=Markup(convert(" ".join(tex.split()), display="block")))
        elif text.strip():
            yield Block(" ".join(text.split()))


def parameter_table(name: str) -> Iterator[tuple[str, str, str, str]]:
    about = describe(name)
    for key, values in about.ranges.items():
        searched = ""
        if isinstance(values, Number) and values.tune:
            scale = " (logarithmic)" if values.log else ""
            searched = "{:g} to {:g}".format(*values.tune) + scale
        yield key, str(about.params[key]), str(values) or "any number", searched


def limit_laws(name: str) -> Iterator[tuple[bool, str, str]]:
    """Yield each loss that a loss becomes (True) or that becomes it, with the law in words."""
    for limit in describe(name).limits:
        yield True, limit.to, f"{name} is {limit}"
    for other in OURS:
        for limit in describe(other).limits:
            if limit.to == name != other:
                yield False, other, f"{other} is {limit}"


def in_tables(name: str, tables: Sequence[TableView]) -> Iterator[TableView]:
    """Yield the tables that have ours of a loss, alone or as a term of a sum."""
    for view in tables:
        ours = (entry.line.row.loss for line in view.entries for entry in line if entry.ours)
        if any(loss and name in names(loss) for loss in ours):
            yield view
