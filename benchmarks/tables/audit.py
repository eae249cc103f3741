"""Our protocol beside the paper's, key by key, in four lists that leave nothing out.

What is the same, what deviates, what the paper leaves open, and what nobody has compared yet: each
recipe key, each parameter of the loss and each setting of the evaluation stands in exactly one of
them for each place. What a paper says is what statements with a source say (see `protocol`), never
what our own recipes do.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from contrastbench.benchmarks.tables.formats import escaped_cell, markdown_table
from contrastbench.benchmarks.tables.protocol import OPEN, STATEMENT_KINDS, StatementKind
from contrastbench.benchmarks.tables.published_places import (
    PublishedPlace,
    coverage,
    published_places,
)
from contrastbench.benchmarks.tables.resolved import Resolved

SAME, DEVIATES = "Same as the paper", "Deviates"
LEFT_OPEN, UNCOMPARED = "Open in the paper", "Not yet compared"
HEADS = {
    SAME: ["Where", "What", "Said in"],
    DEVIATES: ["Where", "What", "Paper", "Ours", "Why"],
    LEFT_OPEN: ["Where", "Ours", "Why"],
    UNCOMPARED: ["Where", "Ours"],
}


@dataclass(frozen=True)
class Finding:
    """The result of comparing one key."""

    verdict: str  # one of the four
    what: str
    ours: str
    paper: str = ""
    source: str = ""
    why: str = ""

    @property
    def cells(self) -> list[str]:
        """Return the cells of the finding's line."""
        value = f"{self.what}: {self.ours}"
        return {
            SAME: [value, self.source],
            DEVIATES: [self.what, f"{self.paper}, {self.source}", self.ours, self.why],
            LEFT_OPEN: [value, self.why],
            UNCOMPARED: [value],
        }[self.verdict]


PlacesByFinding = dict[Finding, list[tuple[str, str]]]  # and the rows and columns where it holds


def audit_markdown(resolved: Resolved) -> str:
    """The audit as Markdown."""
    table, every = resolved.table, list(published_places(resolved))
    found = compared(every)
    parts = [f"### {escaped_cell(table.name)}: our protocol beside the paper's", ""]
    parts += [f"- {line}" for line in audit_summary(resolved, every)]
    if every:
        for verdict in HEADS:
            parts += ["", f"#### {verdict}", "", *as_list(verdict, found, every)]
    return "\n".join([*parts, "", f"Source: {table.source}.", ""])


def compared(every: Iterable[PublishedPlace]) -> PlacesByFinding:
    """Each finding, and where it holds."""
    found: PlacesByFinding = {}
    for place in every:
        for finding in findings(place):
            found.setdefault(finding, []).append(place.names)
    return found


def findings(place: PublishedPlace) -> Iterator[Finding]:
    """Yield a finding for each key of a place, and the deviations that no key shows."""
    for kind in STATEMENT_KINDS:
        for key, value in place.ours[kind].items():
            yield finding(place, kind, key, value)
    for statement in place.statements:
        for known in statement.differs:
            yield Finding(
                DEVIATES, known.what, known.ours, known.paper, statement.source, known.why
            )


def finding(place: PublishedPlace, kind: StatementKind, key: str, ours: Any) -> Finding:
    """Compare one key of a place with the paper's protocol."""
    statement = place.statement(kind, key)
    if statement is None:
        return Finding(UNCOMPARED, key, value_words(ours))
    says, source = getattr(statement, kind)[key], statement.source
    if source == OPEN:
        return Finding(LEFT_OPEN, key, value_words(ours), why=says)
    if says == ours:
        return Finding(SAME, key, value_words(ours), source=source)
    why = statement.why.get(key, "")
    return Finding(DEVIATES, key, value_words(ours), value_words(says), source, why)


def as_list(verdict: str, found: PlacesByFinding, every: list[PublishedPlace]) -> Iterator[str]:
    """Yield the lines of one list; keys that agree in all else share a line."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for finding, where in sorted(found.items(), key=lambda item: -len(item[1])):
        if finding.verdict == verdict:
            first, *rest = finding.cells
            alone = [first] if verdict == DEVIATES else []
            lines.setdefault((located(where, every), *rest, *alone), []).append(first)
    if not lines:
        yield "Nothing."
        return
    width = len(HEADS[verdict])
    body = [[key[0], "; ".join(firsts), *key[1 : width - 1]] for key, firsts in lines.items()]
    yield from markdown_table([HEADS[verdict], *body])


def located(where: Iterable[tuple[str, str]], every: list[PublishedPlace]) -> str:
    """Rows and columns in words."""
    here, all_ = dict.fromkeys(where), [place.names for place in every]
    rows, columns = (list(dict.fromkeys(names)) for names in zip(*here, strict=True))
    if len(here) == len(all_):
        return "everywhere"
    if len(here) == sum(column in columns for _, column in all_):
        return ", ".join(columns)
    if len(here) == sum(row in rows for row, _ in all_):
        return ", ".join(rows)
    by_columns: dict[str, list[str]] = {}
    for row in rows:
        by_columns.setdefault(", ".join(c for r, c in here if r == row), []).append(row)
    return "; ".join(f"{', '.join(names)} on {text}" for text, names in by_columns.items())


def audit_summary(resolved: Resolved, every: list[PublishedPlace]) -> Iterator[str]:
    """Say how many published values can be compared with ours."""
    table = resolved.table
    wanted = table.protocol.seeds
    values = coverage(resolved).values
    runs = f"mean over {wanted} runs" if wanted else "number of runs not said"
    if not every:
        yield (
            f"{values} published values, {runs}; none of them can be run here: nothing to audit."
        )
        return
    yield f"Published: {runs}. Ours: parameters as printed in the paper, for all seeds."
    counts = [len(place.cell.records) for place in every]
    few = sum(0 < n < (wanted or 1) for n in counts)
    yield (
        f"{values} published values: {values - len(every)} quoted only, {len(every)} can be run "
        f"here, of which {counts.count(0)} are missing and {few} have too few seeds."
    )


def value_words(value: Any) -> str:
    """A value for people."""
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(str, value))})"
    return "none" if value is None else str(value)
