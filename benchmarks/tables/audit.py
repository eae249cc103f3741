"""Where and how a table's protocol deviates from the paper's, by declarations and records."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.tables import selections
from contrastbench.benchmarks.tables.formats import as_table
from contrastbench.benchmarks.tables.table import Row, Table
from contrastbench.domains.registry import make_recipe
from contrastbench.losses.errors import unknown


@dataclass(frozen=True)
class Deviation:
    """One way in which a place deviates."""

    method: str
    column: str
    what: str
    paper: str
    ours: str


@dataclass(frozen=True)
class Audited:
    """A place that the paper gives a value for and that can be run here, with its ok records."""

    row: Row
    column: str
    work: Experiment
    stated: dict[str, Any]  # what the paper says, in the recipe's terms
    found: list[Record]

    @property
    def recipe(self) -> dict[str, Any]:
        """What we do."""
        return dict(self.work.full_recipe.model_dump(mode="json"))


def report(table: Table, results: Path) -> str:
    """The audit as Markdown."""
    every = list(places(table, results))
    listed = [deviation for place in every for deviation in deviations(table, place, results)]
    head = ["Method", "Column", "What", "Paper", "Ours"]
    return "\n".join(
        [
            f"### {table.name}: where ours is another protocol than the paper's",
            "",
            *(f"- {line}" for line in [*summary(table, every), *table.protocol.differs]),
            *(["", *as_table([head, *lines(listed, every)])] if listed else []),
            "",
            *unstated(every),
            f"Source: {table.source}.",
            "",
        ]
    )


def lines(listed: list[Deviation], every: list[Audited]) -> Iterator[list[str]]:
    """One for the columns of a method that deviate alike."""
    columns: dict[Deviation, list[str]] = {}
    for deviation in listed:
        columns.setdefault(replace(deviation, column=""), []).append(deviation.column)
    for alike, names in columns.items():
        all_ = len(names) > 2 and names == [
            place.column for place in every if place.row.name == alike.method
        ]
        where = f"all {len(names)}" if all_ else ", ".join(names)
        yield [alike.method, where, alike.what, alike.paper, alike.ours]


def places(table: Table, results: Path) -> Iterator[Audited]:
    """All of a table."""
    for row in table.rows:
        for column in row.paper:
            if column in table.columns and table.runnable(row, column):
                work = table.experiment(row, column)
                records = list(table.records(row, column, results).values())
                yield Audited(row, column, work, stated(table, row, column, work), records)


def stated(table: Table, row: Row, column: str, work: Experiment) -> dict[str, Any]:
    """What the paper says of a place's recipe.

    In general (of the table's own domain), of the column, of the method.

    Raises:
        UserError: a key that the recipe does not have.
    """
    general = table.protocol.recipe if work.domain == table.domain else {}
    says = {**general, **table.columns[column].recipe, **row.recipe}
    says.pop("preset", None)
    known = type(work.full_recipe).model_fields
    for key in says:
        if key not in known:
            raise unknown(
                f"recipe key of domain {work.domain} in the protocol of {table.name}", key, known
            )
    return says


def deviations(table: Table, place: Audited, results: Path) -> Iterator[Deviation]:
    """Those of a place."""

    def deviation(what: str, paper: Any, ours: Any) -> Deviation:
        return Deviation(place.row.name, place.column, what, shown(paper), shown(ours))

    for key, value in place.stated.items():
        if place.recipe[key] != value:
            yield deviation(key, value, place.recipe[key])
    for text in [*table.columns[place.column].differs, *place.row.differs]:
        yield deviation("otherwise", "", text)
    for parts in [*seeds(table, place), *circumstances(place.found), *others(place, results)]:
        yield deviation(*parts)


def seeds(table: Table, place: Audited) -> Iterator[tuple[str, Any, Any]]:
    """Too few of them, or none."""
    wanted, n = table.protocol.seeds, len(place.found)
    if n == 0:
        yield "seeds", wanted or "not said", "missing"
    elif wanted and n < wanted:
        yield "seeds", wanted, n


def others(place: Audited, results: Path) -> Iterator[tuple[str, Any, Any]]:
    """Records with the same loss and parameters but another recipe, which no table counts."""
    groups: dict[tuple[str, str], int] = {}
    params, defaults = (
        place.work.loss.complete.params,
        make_recipe(place.work.domain, {}).model_dump(mode="json"),
    )
    for record in store.read_all(
        results, place.work.domain, place.work.dataset, place.work.loss.complete.name
    ):
        recipe = {**defaults, **record["recipe"]}
        changed = [key for key, value in place.recipe.items() if recipe[key] != value]
        if changed and not place.work.matches(record) and {**params, **record["params"]} == params:
            wanted, recorded = (
                pairs({key: values[key] for key in changed}) for values in (place.recipe, recipe)
            )
            groups[wanted, recorded] = groups.get((wanted, recorded), 0) + 1
    for (wanted, recorded), n in groups.items():
        yield f"records not counted ({n})", wanted, recorded


def circumstances(records: list[Record]) -> Iterator[tuple[str, Any, Any]]:
    """What records tell of data, code and machines."""
    notes = {pairs(record["details"].get("data") or {}) for record in records} - {""}
    if notes:
        yield "data", "", "; ".join(sorted(notes))
    changed = [
        record["seed"]
        for record in records
        if str(record["environment"]["commit"]).endswith("+changes")
    ]
    if changed:
        yield "code", "", f"uncommitted changes with seeds {', '.join(map(str, changed))}"
    machines = {
        f"{r['environment']['device']}, torch {r['environment']['versions']['torch']}"
        for r in records
    }
    if len(machines) > 1:
        yield "machines", "", "; ".join(sorted(machines))


def summary(table: Table, every: list[Audited]) -> Iterator[str]:
    """How the published numbers came about, and how many of ours there are."""
    wanted, values = (
        table.protocol.seeds,
        sum(column in table.columns for row in table.rows for column in row.paper),
    )
    if not every:
        yield f"{values} published values, none of which can be run here: nothing to audit."
        return
    yield f"Published: {f'mean over {wanted} runs' if wanted else 'number of runs not said'}; " + (
        f"{table.protocol.selection}."
        if table.protocol.selection
        else "choice of parameters and epochs not said."
    )
    parameters = (
        "as printed in the paper, for all seeds"
        if selections.default(table) == "paper"
        else table.selection
    )
    yield f"Ours: parameters {parameters}; " + "; ".join(sorted({chosen(p) for p in every})) + "."
    missing = sum(not place.found for place in every)
    few = sum(0 < len(place.found) < (wanted or 1) for place in every)
    yield (
        f"{values} published values: {values - len(every)} quoted only, {len(every)} can be run "
        "here, of which "
        f"{missing} are missing and {few} have too few seeds."
    )


def chosen(place: Audited) -> str:
    """Which of a training's models is scored."""
    steps = place.work.full_recipe.validate_every
    when = (
        f"the best on validation data, every {steps} steps"
        if steps
        else "the model after the last epoch"
    )
    return f"{place.work.domain}: {when}"


def unstated(every: list[Audited]) -> Iterator[str]:
    """The values of ours that the paper does not say, by domain."""
    domains = dict.fromkeys(place.work.domain for place in every)
    for domain in domains:
        here = [place for place in every if place.work.domain == domain]
        free = [
            key
            for key, value in here[0].recipe.items()
            if value is not None and not any(key in place.stated for place in here)
        ]
        values = {
            key: " or ".join(dict.fromkeys(shown(place.recipe[key]) for place in here))
            for key in free
        }
        yield f"Not said by the paper, ours in domain {domain}: {pairs(values)}."


def pairs(values: dict[str, Any]) -> str:
    """Values by key."""
    return ", ".join(f"{key} {shown(value)}" for key, value in values.items())


def shown(value: Any) -> str:
    """A value for people."""
    if isinstance(value, (list, tuple)):
        return "-".join(map(str, value))
    return "none" if value is None else str(value)
