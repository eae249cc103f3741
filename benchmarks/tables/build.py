"""Build a sweep's table from its file, from the sweep that it extends, and from what is asked for.

A table is built once and never changed: losses that join it, its quick part and the tiny recipes of
a smoke test are arguments here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from contrastbench.benchmarks.tables.controls import asked_controls, supervised, with_controls
from contrastbench.benchmarks.tables.rows import Row, baseline
from contrastbench.benchmarks.tables.schema import Column, Tune
from contrastbench.benchmarks.tables.sweep_file import (
    SMOKE,
    Listed,
    SweepFile,
    check_distinct,
    check_parts,
    check_seeds,
    check_settings,
    dataset_columns,
    given_settings,
    listed_losses,
    temperatures,
    trial_seeds,
    tuning_of_file,
)
from contrastbench.benchmarks.tables.table import QUICK, Quick, Table
from contrastbench.domains.strict_yaml import Document
from contrastbench.errors import UserError, unknown
from contrastbench.losses.spec import NONE, LossSpec

Grid = Mapping[str, list[Any]]


@dataclass(frozen=True)
class Asked:
    """What a command asks of a table besides what its file says.

    Args:
        losses: they join a sweep that does not have them, as if its file listed them.
        quick: whether only the quick part is asked for.
        tiny: whether each domain has its tiny recipe, for a smoke test.
    """

    losses: Sequence[LossSpec] = ()
    quick: bool = False
    tiny: bool = False


def build_sweep(
    file: SweepFile,
    document: Document,
    name: str,
    base: Table | None = None,
    released: bool = False,
    asked: Asked = Asked(),
) -> Table:
    """A row for each loss and setting of the grid, a column for each dataset.

    Args:
        file: the keys of the file.
        document: the file, for errors.
        name: the table's.
        base: what it extends.
        released: whether it ships with a package, so that it keeps the search of its release.
        asked: what a command asks for.

    Raises:
        UserError: whatever is wrong, with the file and the line in it.
    """
    check_parts(file, document)
    tune = base.tune if base else tuning_of_file(file, released)
    grid = base.grid if base else file.grid
    listed = all_rows(file, document, base, grid, tune)
    columns = all_columns(file, document, base)
    controls = all_controls(file, document, base)
    facts = extended_facts(file, base, columns) if base else file_facts(file, document, columns)
    joined = joining_rows(listed, asked, grid, tune)
    rows = with_controls([*listed, *joined], columns, controls) if controls else [*listed, *joined]
    rows += supervised(columns) if file is SMOKE else ()
    named = [row.name for row in rows if is_asked(row, asked, grid)]
    facts |= {"name": name, "columns": columns, "rows": rows, "controls": controls}
    facts |= {"grid": grid, "tune": tune, "asked": named, "joined": [row.name for row in joined]}
    facts |= quick_facts(facts, listed) if asked.quick else {}
    check_rows(facts["rows"])
    facts["title"] += ", extended" * bool(joined and not asked.quick)
    return Table(**facts, sweep=True, apart=file is SMOKE, tiny=asked.tiny)


def extended_facts(file: SweepFile, base: Table, columns: Mapping[str, Column]) -> dict[str, Any]:
    """Return what a table takes from the one that it extends, with what its file adds."""
    added = {key: one for key, one in columns.items() if key not in base.columns}
    own = ("sweep", "apart", "tiny")
    return {name: value for name, value in fields(base).items() if name not in own} | {
        "title": file.title or f"{base.title}, extended",
        "trial_seeds": base.trial_seeds | trial_seeds(file, added),
        "temperature": base.temperature | temperatures(file, added),
    }


def file_facts(
    file: SweepFile, document: Document, columns: Mapping[str, Column]
) -> dict[str, Any]:
    """Return what the table of a file that extends no other has from it."""
    with document.at("seeds"):
        seeds = check_seeds(file.seeds)
    return {
        "title": file.title or "our own runs",
        "source": file.source,
        "notes": file.notes,
        "decimals": file.decimals,
        "domain": next(iter(file.domains)),
        "seeds": seeds,
        "trial_seeds": trial_seeds(file, columns),
        "temperature": temperatures(file, columns),
        "draft": file.draft,
        "test": file.test,
        "quick": declared_quick(file, document, columns, seeds),
    }


def fields(model: BaseModel) -> dict[str, Any]:
    """Return the values of a model by field, as they are."""
    return {name: getattr(model, name) for name in type(model).model_fields}


def declared_quick(
    file: SweepFile, document: Document, known: Mapping[str, Column], seeds: Sequence[int]
) -> Quick | None:
    """Return the quick part that a file declares, of its own data sets and seeds."""
    if not file.quick:
        return None
    with document.at("quick", "datasets"):
        for name in file.quick.datasets:
            if name not in known:
                raise unknown("data set of the sweep", name, known)
        check_distinct(file.quick.datasets, "dataset")
    with document.at("quick", "seeds"):
        own = check_seeds(file.quick.seeds)
        if others := sorted(set(own) - set(seeds)):
            raise UserError(f"seeds {others} are none of the sweep's: give some of its seeds")
    return Quick(file.quick.datasets, own)


def quick_facts(whole: Mapping[str, Any], listed: Sequence[Row]) -> dict[str, Any]:
    """Return what makes a suite its quick part: a table with a name and a title of its own.

    Where losses join it, it has the baseline, the controls and these losses, no others.

    Raises:
        UserError: the suite declares none.
    """
    name, part, columns = whole["name"], whole["quick"], whole["columns"]
    if not part:
        raise UserError(f"{name} declares no quick part: leave --quick out")
    base = baseline(listed)
    kept = {base.name if base else "", *whole["asked"]}
    rows = [row for row in whole["rows"] if row.control or row.name in kept]
    sets = f"{len(part.datasets)} of {len(columns)} data sets"
    seeds = f"{len(part.seeds)} of {len(whole['seeds'])} seeds"
    return {
        "name": f"{name}{QUICK}",
        "title": f"Quick part of {name}, {sets} with {seeds}",
        "columns": {one: columns[one] for one in part.datasets},
        "rows": rows if whole["asked"] else whole["rows"],
        "joined": whole["asked"],
        "seeds": part.seeds,
        "is_quick": True,
    }


def all_rows(
    file: SweepFile, document: Document, base: Table | None, grid: Grid, tune: Tune | None
) -> list[Row]:
    """Return the rows of losses, those of the table that is extended first."""
    found = listed_losses(file, document)
    rows = [row for method in found for row in loss_rows(method, grid, tune)]
    rows = [*(base.rows if base else []), *rows]
    check_settings(file, document, found)
    with document.at("losses"):
        check_rows(rows)
    return rows


def loss_rows(method: Listed, grid: Grid, tune: Tune | None, beside: bool = False) -> Iterator[Row]:
    """Yield the rows of a loss: one that chooses, or one for each setting of the grid."""
    loss, params = method.loss.name, method.loss.params
    if tune:
        mine = {key: values for key, values in grid.items() if key in method.free}
        yield Row(name=method.label, loss=loss, params=params, grid=mine, beside=beside)
        return
    for chosen in given_settings(method, grid):
        own = {**params, **chosen}
        yield Row(name=method.label_at(chosen), loss=loss, params=own, beside=beside)


def joining_rows(listed: Sequence[Row], asked: Asked, grid: Grid, tune: Tune | None) -> list[Row]:
    """Return rows of the losses that are asked for and not listed.

    In a quick part they are trained beside the baseline, at its setting.
    """
    new = [loss for loss in asked.losses if not any(has_loss(row, loss, grid) for row in listed)]
    methods = [Listed(loss.name, loss) for loss in new]
    return [row for one in methods for row in loss_rows(one, grid, tune, beside=asked.quick)]


def is_asked(row: Row, asked: Asked, grid: Grid) -> bool:
    """Return whether the row has a loss that is asked for."""
    return any(has_loss(row, loss, grid) for loss in asked.losses)


def has_loss(row: Row, loss: LossSpec, grid: Grid) -> bool:
    """Return whether the row has that loss, at any setting of the sweep's grid."""
    params = {
        key: value for key, value in row.params.items() if key in loss.params or key not in grid
    }
    return row.loss == loss.name and params == loss.params and not row.control


def all_columns(file: SweepFile, document: Document, base: Table | None) -> dict[str, Column]:
    """Return the data sets, those of the table that is extended first."""
    taken = base.columns if base else {}
    columns = {**taken, **dict(dataset_columns(file, document, taken))}
    if not columns:
        raise document.wrong_at(["domains"], "the sweep has no data sets: name at least one")
    return columns


def all_controls(file: SweepFile, document: Document, base: Table | None) -> list[str]:
    """Return the controls, those of the table that is extended first."""
    with document.at("controls"):
        return asked_controls([*(base.controls if base else []), *asked_controls(file.controls)])


def check_rows(rows: Sequence[Row]) -> None:
    """Raise if two rows have one name, or are the same cells under two names.

    An alias, or a default that is spelt out.
    """
    check_distinct([row.name for row in rows], "loss")
    seen: list[tuple[tuple[LossSpec, str, Any], Row]] = []
    for row in (row for row in rows if not row.control):
        loss = LossSpec(row.loss or NONE, row.params)
        cells = (loss.complete, loss.code, row.grid)
        for other_cells, other in seen:
            if cells == other_cells:
                raise UserError(f"losses {other.name} and {row.name} are the same: remove one")
        seen.append((cells, row))
