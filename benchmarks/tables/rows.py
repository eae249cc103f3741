"""Rows of a table, and the settings that a row's loss can have."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from contrastbench.benchmarks.tables.schema import PublishedRow
from contrastbench.losses.spec import NONE


@dataclass(frozen=True)
class Setting:
    """One trial of a row.

    Args:
        params: of its loss, or of another loss that its loss becomes.
        loss: that other loss; None: the row's own.
        recipe: values over the row's recipe.
    """

    params: dict[str, Any]
    loss: str | None = None
    recipe: dict[str, Any] = field(default_factory=dict)


class Row(PublishedRow):
    """One method of a table: a published row, or one that a sweep file gives."""

    printed: dict[str, list[str]] = Field({}, description="published values letter by letter")
    recipe_by_column: dict[str, dict[str, Any]] = Field(
        {}, description="a control's values over the recipe, by column"
    )
    control: str = Field("", description="name of the control that the row is, see `controls`")
    beside: bool = Field(
        False, description="whether it takes the baseline's chosen setting instead of a search"
    )

    def runs_in(self, column: str) -> bool:
        """Return whether the row has something to run in a column that has data."""
        there = not self.recipe_by_column or column in self.recipe_by_column
        return self.loss is not None and there

    def setting_in(self, column: str) -> Setting:
        """Return the setting in a column as the file gives it."""
        params = {**self.params, **self.params_by_column.get(column, {})}
        return Setting(params, recipe=self.recipe_by_column.get(column, {}))


def baseline(rows: Iterable[Row]) -> Row | None:
    """Return the first row of InfoNCE, or else the first that is trained; None: there is none."""
    trained = [row for row in rows if row.loss not in (None, NONE) and not row.control]
    return next((row for row in trained if row.loss == "infonce"), next(iter(trained), None))
