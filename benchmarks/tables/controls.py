"""Controls: rows that every reader can place, beside the losses that a sweep compares.

A comparison that cannot tell the controls from its baseline cannot tell losses from each other. A
sweep file that says `controls: true` gets a row for each of the usual `CONTROLS`, or it lists
controls by name. These rows have the baseline's loss at the baseline's own setting, but for one
thing that is known to matter. Brings no torch.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from contrastbench.benchmarks.tables.schema import Column, Row, baseline
from contrastbench.domains.recipe import Recipe, laid_over
from contrastbench.domains.registry import make_recipe
from contrastbench.errors import UserError, check_known
from contrastbench.losses.registry import SUPERVISED
from contrastbench.losses.spec import NONE, LossSpec

Values = dict[str, Any]
ColumnsByName = Mapping[str, Column]
Must = Literal["worse", "below", "better", "equal"]


@dataclass(frozen=True)
class Control:
    """One control of a comparison."""

    must: Must  # against the baseline where a comparison can be read; `below` asks for the sign
    recipe: Callable[[Recipe], Values | None]  # values over the baseline's; None: not possible
    loss: str | None = None  # None: the baseline's
    params: Mapping[str, Any] = field(default_factory=dict)  # over those of its loss
    usual: bool = True  # `controls: true` has it; others are listed by name


def half_length(recipe: Recipe) -> Values | None:
    """Return half of the epochs or steps; None where there are fewer than two."""
    length = {"steps": recipe.steps} if recipe.steps else {"epochs": recipe.epochs}
    return {unit: count // 2 for unit, count in length.items() if count > 1} or None


BY_CLASS = "pairs by class"
AGAIN = "infonce again"  # a search of the baseline by other points and seeds
CONTROLS = {  # by the name of its row
    "raw input": Control("worse", lambda recipe: recipe.raw, NONE),
    "untrained": Control("worse", lambda recipe: {}, NONE),
    "permuted positives": Control("worse", lambda recipe: {"permuted": True}),
    "temperature 5": Control("worse", lambda recipe: {}, params={"temperature": 5.0}, usual=False),
    "half the epochs": Control("below", half_length),
    AGAIN: Control("equal", lambda recipe: {}, usual=False),
    BY_CLASS: Control("better", lambda recipe: recipe.by_class),
    "cross entropy": Control("better", lambda recipe: recipe.by_class, "cross_entropy"),
}


def asked_controls(asked: bool | Iterable[str]) -> list[str]:
    """Return the controls that a sweep file asks for, in the order of `CONTROLS`."""
    if isinstance(asked, bool):
        return [name for name, control in CONTROLS.items() if asked and control.usual]
    asked = list(asked)
    for name in asked:
        check_known("control", name, CONTROLS)
    return [name for name in CONTROLS if name in asked]


def with_controls(rows: Iterable[Row], columns: ColumnsByName, names: Iterable[str]) -> list[Row]:
    """Return a sweep's rows and then its controls; a row of `none` stays where it is listed."""
    kept = (row for row in rows if row.name not in CONTROLS)
    listed = [row.but(control="untrained") if row.loss == NONE else row for row in kept]
    there = {row.control for row in listed}
    base = baseline(listed)
    new = (row for name in names if name not in there for row in control_rows(columns, base, name))
    return [*listed, *new]


def supervised(columns: ColumnsByName) -> Iterator[Row]:
    """Yield a row for each loss that needs classes, where pairs can be by class."""
    for loss in SUPERVISED:
        by_column = by_columns(columns, Control("better", lambda recipe: recipe.by_class, loss))
        yield Row(name=loss, control=BY_CLASS, loss=loss, recipe_by_column=by_column)


def control_rows(columns: ColumnsByName, base: Row | None, name: str) -> Iterator[Row]:
    """Yield the row of a control, unless no column can have it."""
    control = CONTROLS[name]
    loss = control.loss or (base.loss if base else None)
    params = {**(base.params if base and not control.loss else {}), **control.params}
    if not loss or not params.keys() <= LossSpec(loss).complete.params.keys():
        return
    by_column = by_columns(columns, control)
    if by_column:
        yield Row(name=name, control=name, loss=loss, params=params, recipe_by_column=by_column)


def by_columns(columns: ColumnsByName, control: Control) -> dict[str, Values]:
    """Return a control's values over the recipe of each column that can have it."""
    found: dict[str, Values] = {}
    for name, column in columns.items():
        assert column.domain is not None, "columns of a sweep have a domain"
        values = control.recipe(make_recipe(column.domain, column.recipe))
        if values is not None:
            with suppress(UserError):  # it cannot be run there
                make_recipe(column.domain, laid_over(column.recipe, values))
                found[name] = values
    return found
