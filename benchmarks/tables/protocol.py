"""Statements on the protocols of papers and released codes, each with its source."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from contrastbench.domains.strict import Strict

OPEN = "open"
PRINTED = r"(paper|code|reported by others) \(.+\)"
Printed = Annotated[str, Field(pattern=f"^{PRINTED}$")]
StatementSource = Annotated[str, Field(pattern=f"^({PRINTED}|{OPEN})$")]
StatementKind = Literal["recipe", "params", "evaluation"]
STATEMENT_KINDS: tuple[StatementKind, ...] = ("recipe", "params", "evaluation")


class StatedDeviation(Strict):
    """A deviation that no value shows."""

    what: str
    paper: str
    ours: str
    why: str


class Statement(Strict):
    """One source's statement on some places of a table, or on all.

    Under `from: open` the source says nothing, and the values are why ours are what they are.
    """

    source: StatementSource = Field(alias="from")
    """paper (B.3), code (main.py), open"""
    rows: list[str] = Field([])
    columns: list[str] = Field([])
    datasets: list[str] = Field([])
    domain: str | None = None
    recipe: dict[str, Any] = Field({})
    """by key of our recipe"""
    params: dict[str, Any] = Field({})
    """by parameter of the loss"""
    evaluation: dict[str, Any] = Field({})
    """by setting of our scoring"""
    why: dict[str, str] = Field({})
    """by key: why ours is another value"""
    differs: list[StatedDeviation] = Field([])

    @property
    def partial(self) -> bool:
        return bool(self.rows or self.columns or self.datasets)

    def holds(self, row: str, column: str, domain: str, dataset: str) -> bool:
        return all(
            not named or here in named
            for named, here in (
                (self.rows, row),
                (self.columns, column),
                (self.datasets, dataset),
                ([self.domain] if self.domain else [], domain),
            )
        )


class Protocol(Strict):
    """The protocol of published numbers: the last statement on a key holds."""

    use: list[str] = Field([])
    """files of protocols/, whose statements come first"""
    facts: list[Statement] = Field([])

    @property
    def seeds(self) -> int | None:
        """Return the runs behind each value, if a statement on the whole table says so."""
        for said in reversed(self.facts):
            if "seeds" in said.evaluation and not said.partial:
                return None if said.source == OPEN else said.evaluation["seeds"]
        return None


class SharedProtocol(Strict):
    """A file of protocols/: what several tables say of one domain, or of some of its datasets."""

    domain: str
    datasets: list[str] = Field([])
    facts: list[Statement]

    def statements(self) -> Iterator[Statement]:
        """Yield the statements of a shared protocol as a table's."""
        for statement in self.facts:
            datasets = statement.datasets or self.datasets
            yield statement.but(domain=self.domain, datasets=datasets)
