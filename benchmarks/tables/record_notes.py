"""Read notes from the records behind a place."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

from contrastbench.benchmarks.records import reading
from contrastbench.benchmarks.records.read_cache import remembered
from contrastbench.benchmarks.records.scored import copy_of
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.benchmarks.tables.published_places import PublishedPlace
from contrastbench.domains.registry import make_recipe

Note = tuple[str, Any, Any]  # what, as the paper or the table wants it, as it is recorded


def notes(place: PublishedPlace) -> Iterator[Note]:
    """Too few seeds, conversions of data, machines, and records that do not count."""
    found = list(place.cell.records.values())
    yield from seeds(place.resolved.table.protocol.seeds, len(found), place.cell.failure)
    yield from circumstance_notes(found)
    yield from other_recipes(place)


def seeds(wanted: int | None, n: int, failure: str) -> Iterator[Note]:
    """Too few of them or none, and those that failed."""
    if n == 0:
        yield "seeds", wanted or "", failure or "missing"
    elif failure or (wanted and n < wanted):
        yield "seeds", wanted or "", f"{n}, {failure}" if failure else n


def circumstance_notes(records: list[Record]) -> Iterator[Note]:
    """Yield notes on data, code and machines of records."""
    data = {values_text(data_notes(record)) for record in records} - {""}
    if data:
        yield "data", "", "; ".join(sorted(data))
    changed = [
        record["seed"]
        for record in records
        if str(record["environment"].get("commit")).endswith("+changes")
    ]
    if changed:
        yield "code", "", f"uncommitted changes with seeds {', '.join(map(str, changed))}"
    resumed = [record["seed"] for record in records if "stretches" in record["details"]]
    if resumed:
        where = "resumed with another commit, versions, device or threads, seeds"
        yield "training", "", f"{where} {', '.join(map(str, resumed))}"
    machines = {machine(record["environment"]) for record in records}
    if len(machines) > 1:
        yield "machines", "", "; ".join(sorted(machines))


def machine(environment: Fields) -> str:
    """The device and the version of torch; early records say neither."""
    torch = environment.get("versions", {}).get("torch")
    return f"{environment.get('device') or 'an unknown device'}, torch {torch or 'unknown'}"


def data_notes(record: Record) -> dict[str, Any]:
    """Return the notes on a record's data; early records do not name copies."""
    copy = copy_of(record)
    return {**(record["details"].get("data") or {}), **({"copy": copy} if copy else {})}


def other_recipes(place: PublishedPlace) -> Iterator[Note]:
    """Records with the same loss and parameters but another recipe, which no table counts."""
    groups = Counter[tuple[str, str]]()
    work, loss = place.work, place.work.loss.complete
    ours, defaults = (
        recipe.model_dump(mode="json")
        for recipe in (work.full_recipe, make_recipe(work.domain, {}))
    )
    folder = work.folder(place.resolved.results)
    for record, n in remembered(("cells", folder), partial(reading.finished_cells, folder)):
        recipe = {**defaults, **record["recipe"]}
        changed = [key for key, value in ours.items() if recipe[key] != value]
        same = {**loss.params, **record["params"]} == loss.params
        if changed and same and not work.matches(record):
            wanted, found = (
                values_text({key: values[key] for key in changed}) for values in (ours, recipe)
            )
            groups[wanted, found] += n
    for (wanted, found), n in sorted(groups.items()):
        yield f"records not counted ({n})", wanted, found


def values_text(values: dict[str, Any]) -> str:
    """Format values with their keys."""
    return ", ".join(f"{key} {value_words(value)}" for key, value in values.items())


def value_words(value: Any) -> str:
    """A value for people."""
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(str, value))})"
    return "none" if value is None else str(value)
