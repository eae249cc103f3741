"""Build a sweep's table from its file, from the sweep that it extends, and from what is asked for.

A table is built once and never changed: losses that join it, its quick part and the tiny recipes of
a smoke test are arguments here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from contrastbench.benchmarks.tables.controls import asked_controls, supervised, with_controls
from contrastbench.benchmarks.tables.schema import Column, Row, baseline
from contrastbench.benchmarks.tables.sweep_file import (
    SMOKE,
    Listed,
    SweepFile,
    check_distinct,
    check_parts,
    check_seeds,
    check_tune,
    dataset_columns,
    listed_losses,
)
from contrastbench.benchmarks.tables.table import QUICK, Quick, Table
from contrastbench.domains.strict_yaml import Document
from contrastbench.errors import UserError, unknown
from contrastbench.losses.spec import NONE, LossSpec


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
    asked: Asked = Asked(),
) -> Table:
    """A row for each loss, a column for each dataset.

    Args:
        file: the keys of the file.
        document: the file, for errors.
        name: the table's.
        base: what it extends.
        asked: what a command asks for.

    Raises:
        UserError: whatever is wrong, with the file and the line in it.
    """
    check_parts(file, document)
    with document.at("seeds"):
        seeds = check_seeds(file.seeds)
    with document.at("tune"):
        check_tune(file, seeds)
    listed = all_rows(file, document, base)
    columns = all_columns(file, document, base)
    controls = all_controls(file, document, base)
    joined = joining_rows(listed, asked)
    rows = with_controls([*listed, *joined], columns, controls) if controls else [*listed, *joined]
    rows += supervised(columns) if file is SMOKE else ()
    named = [row.name for row in rows if any(has_loss(row, loss) for loss in asked.losses)]
    facts = extended_facts(file, base) if base else file_facts(file, document, columns, seeds)
    facts |= {"name": name, "columns": columns, "rows": rows, "controls": controls}
    facts |= {"asked": named, "joined": [row.name for row in joined]}
    facts |= quick_facts(facts, listed) if asked.quick else {}
    check_rows(facts["rows"])
    facts["title"] += ", extended" * bool(joined and not asked.quick)
    return Table(**facts, sweep=True, apart=file is SMOKE, tiny=asked.tiny)


def extended_facts(file: SweepFile, base: Table) -> dict[str, Any]:
    """Return what a table takes from the one that it extends."""
    own = ("sweep", "apart", "tiny")
    facts = {name: value for name, value in fields(base).items() if name not in own}
    return facts | {"title": file.title or f"{base.title}, extended"}


def file_facts(
    file: SweepFile, document: Document, columns: Mapping[str, Column], seeds: list[int]
) -> dict[str, Any]:
    """Return what the table of a file that extends no other has from it."""
    tune = file.tune
    return {
        "title": file.title or "our own runs",
        "source": file.source,
        "notes": file.notes,
        "decimals": file.decimals,
        "domain": next(iter(file.domains)),
        "seeds": seeds,
        "tune": tune.but(search=tune.search or "staged") if tune else None,
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


def all_rows(file: SweepFile, document: Document, base: Table | None) -> list[Row]:
    """Return the rows of losses, those of the table that is extended first."""
    rows = [row_of(one) for one in listed_losses(file, document)]
    rows = [*(base.rows if base else []), *rows]
    with document.at("losses"):
        check_rows(rows)
    return rows


def row_of(one: Listed, beside: bool = False) -> Row:
    """Return the row of a loss."""
    return Row(name=one.label, loss=one.loss.name, params=one.loss.params, beside=beside)


def joining_rows(listed: Sequence[Row], asked: Asked) -> list[Row]:
    """Return rows of the losses that are asked for and not listed.

    In a quick part they are trained beside the baseline, at its setting.
    """
    new = [loss for loss in asked.losses if not any(has_loss(row, loss) for row in listed)]
    return [row_of(Listed(loss.name, loss), beside=asked.quick) for loss in new]


def has_loss(row: Row, loss: LossSpec) -> bool:
    """Return whether the row has that loss."""
    return row.loss == loss.name and row.params == loss.params and not row.control


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
    seen: list[tuple[tuple[LossSpec, str], Row]] = []
    for row in (row for row in rows if not row.control):
        loss = LossSpec(row.loss or NONE, row.params)
        cells = loss.complete, loss.code
        for other_cells, other in seen:
            if cells == other_cells:
                raise UserError(f"losses {other.name} and {row.name} are the same: remove one")
        seen.append((cells, row))
