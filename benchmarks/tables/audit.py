"""Our protocol beside the paper's, key by key, in four lists that leave nothing out.

What is the same, what deviates, what the paper leaves open, and what nobody has compared yet: each
recipe key, each parameter of the loss and each setting of the evaluation stands in exactly one of
them for each place. What a paper says is what statements with a source say (see `protocol`), never
what our own recipes do.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from contrastbench.benchmarks.tables.protocol import OPEN, STATEMENT_KINDS, StatementKind
from contrastbench.benchmarks.tables.published_places import PublishedPlace

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
        value = f"{self.what}: {self.ours}"
        return {
            SAME: [value, self.source],
            DEVIATES: [self.what, f"{self.paper}, {self.source}", self.ours, self.why],
            LEFT_OPEN: [value, self.why],
            UNCOMPARED: [value],
        }[self.verdict]


PlacesByFinding = dict[Finding, list[tuple[str, str]]]  # and the rows and columns where it holds


def compared(every: Iterable[PublishedPlace]) -> PlacesByFinding:
    """Each finding, and where it holds."""
    places: PlacesByFinding = {}
    for place in every:
        for finding in findings(place):
            places.setdefault(finding, []).append(place.names)
    return places


def findings(place: PublishedPlace) -> Iterator[Finding]:
    """Yield a finding for each key of a place, and the deviations that no key shows."""
    for kind in STATEMENT_KINDS:
        for key, value in place.ours[kind].items():
            yield finding(place, kind, key, value)
    for statement in place.statements:
        for known in statement.differs:
            about = known.what, known.ours, known.paper, statement.source, known.why
            yield Finding(DEVIATES, *about)


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


def audit_lists(every: list[PublishedPlace]) -> dict[str, list[list[str]]]:
    """Return the lines of each verdict, its header first; keys that agree in all else share one."""
    places = compared(every)
    return {verdict: [HEADS[verdict], *shared_lines(verdict, places, every)] for verdict in HEADS}


def shared_lines(
    verdict: str, places: PlacesByFinding, every: list[PublishedPlace]
) -> Iterator[list[str]]:
    """Yield the lines of one verdict: where it holds, of which keys, and what is said of them."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for finding, where in sorted(places.items(), key=lambda item: -len(item[1])):
        if finding.verdict == verdict:
            first, *rest = finding.cells
            alone = [first] if verdict == DEVIATES else []
            lines.setdefault((located(where, every), *rest, *alone), []).append(first)
    for (here, *rest), firsts in lines.items():
        yield [here, "; ".join(firsts), *rest[: len(HEADS[verdict]) - 2]]


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


def value_words(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(str, value))})"
    return "none" if value is None else str(value)
