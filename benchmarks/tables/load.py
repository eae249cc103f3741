"""A table by name.

A published one, a user's own, or a sweep file, which becomes a table without a paper.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from contrastbench.benchmarks.tables import catalogue, sweep_file
from contrastbench.benchmarks.tables.published import published_table
from contrastbench.benchmarks.tables.rows import Row, baseline
from contrastbench.benchmarks.tables.schema import PublishedTable
from contrastbench.benchmarks.tables.sweep_file import SMOKE, LossEntry, SweepFile
from contrastbench.benchmarks.tables.table import QUICK, Table
from contrastbench.domains import strict_yaml
from contrastbench.domains.strict_yaml import Document
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec

Inside = frozenset[Path]
BUILT_IN = {"smoke": SMOKE}  # sweeps that need no file
SWEEP_KEYS = {*SweepFile.model_fields} - {*PublishedTable.model_fields}
NEWEST = {"standard": "standard-2"}  # of the versions of a sweep that ships


def load_table(
    name: str,
    check_values: bool = False,
    losses: Sequence[LossSpec] = (),
    inside: Inside = frozenset(),
    quick: bool = False,
    tiny: bool = False,
) -> Table:
    """A published table or a sweep, by name or by a user's own file, which is read once.

    Args:
        name: see `bench list tables`; or the path of a YAML file.
        check_values: whether the values that a user's file gives to losses are checked.
        losses: they join a sweep that does not have them, as if its file listed them.
        inside: the files that extend this one.
        quick: whether only the quick part is asked for, which the sweep declares.
        tiny: whether each domain has its tiny recipe, for a smoke test.

    Raises:
        UserError: whatever is wrong, in one line with the file and the line in it.
    """
    if tiny:
        return load_table(name, check_values, losses, quick=quick).but(tiny=True)
    if losses or quick:
        for loss in losses:
            loss.check()
        table = load_table(name, check_values)
        table = quick_table(table) if quick else table
        return with_losses(table, losses) if losses else table
    if name in BUILT_IN:
        return sweep_file.to_table(BUILT_IN[name], Document(), name)
    path = catalogue.find_table(NEWEST.get(name, name), also=[*BUILT_IN, *NEWEST])
    document = strict_yaml.read_yaml(path)
    if is_sweep(document):
        check_sweep_name(path)
        file = document.as_model(SweepFile)
        base = extended_sweep(file, document, inside | {path.resolve()})
        ships = path in catalogue.table_files().values()
        table = sweep_file.to_table(file, document, path.stem, base, ships)
        given = sweep_file.loss_entries(file, document)
    else:
        table = published_table(document, path.stem)
        given = given_by(table)
    if check_values and name.endswith(catalogue.ENDINGS):
        refuse_values(given, document)
    return table


def is_table(name: str) -> bool:
    """Return whether it is the name of a table or a sweep, or of a user's own YAML file."""
    return name.endswith(catalogue.ENDINGS) or name in {
        *catalogue.table_files(),
        *BUILT_IN,
        *NEWEST,
    }


def quick_table(table: Table) -> Table:
    """Return the quick part of a suite: a table of its own, with a name and a title of its own.

    Raises:
        UserError: the table declares none.
    """
    if not table.quick:
        raise UserError(f"{table.name} declares no quick part: leave --quick out")
    columns = {name: table.columns[name] for name in table.quick.datasets}
    sets = f"{len(columns)} of {len(table.columns)} data sets"
    seeds = f"{len(table.quick.seeds)} of {len(table.seeds)} seeds"
    return table.but(
        name=f"{table.name}{QUICK}",
        title=f"Quick part of {table.name}, {sets} with {seeds}",
        columns=columns,
        seeds=table.quick.seeds,
        is_quick=True,
    )


def suite_baseline(table: Table, losses: Sequence[LossSpec]) -> Table:
    """Return a quick part with the baseline, the controls and the losses that join, no others."""
    base = baseline(table.rows)
    rows = [
        row
        for row in table.rows
        if row.control or row == base or any(is_row_of(table, row, loss) for loss in losses)
    ]
    return table.but(rows=rows)


def with_losses(table: Table, losses: Sequence[LossSpec]) -> Table:
    """The sweep with further losses, which come first in comparisons.

    Raises:
        UserError: it is no sweep.
    """
    if not table.sweep:
        raise UserError(
            f"{table.name} is no sweep, so no loss can join: leave --loss out, or name a sweep file"
        )
    table = suite_baseline(table, losses) if table.is_quick else table
    new = [loss for loss in losses if not any(is_row_of(table, row, loss) for row in table.rows)]
    file = SweepFile(extends=table.name, losses=[{loss.name: loss.params} for loss in new])
    wider = sweep_file.to_table(file, Document(), table.name, table) if new else table
    asked = [row.name for row in wider.rows if any(is_row_of(wider, row, loss) for loss in losses)]
    there = {row.name for row in table.rows}
    joined = [name for name in asked if table.is_quick or name not in there]
    rows = [row.but(beside=table.is_quick and row.name not in there) for row in wider.rows]
    title = table.title if table.is_quick else wider.title
    return wider.but(rows=rows, asked=asked, joined=joined, title=title)


def is_row_of(table: Table, row: Row, loss: LossSpec) -> bool:
    """Return whether the row has that loss, at any setting of the sweep's grid."""
    params = {
        key: value
        for key, value in row.params.items()
        if key in loss.params or key not in table.grid
    }
    return row.loss == loss.name and params == loss.params and not row.control


def extended_sweep(file: SweepFile, document: Document, inside: Inside) -> Table | None:
    """The sweep that a file extends: one of ours, or a file beside it.

    Args:
        file: the sweep.
        document: where it says it.
        inside: the files that extend this one, and it.

    Raises:
        UserError: there is none, it is no sweep, or one that extends this one.
    """
    if file.extends is None:
        return None
    with document.at("extends"):
        beside = document.path.parent / file.extends if document.path else Path(file.extends)
        if beside.is_file() and beside.resolve() in inside:
            raise UserError("this sweep extends itself: extend another one")
        base = load_table(str(beside) if beside.is_file() else file.extends, inside=inside)
        if not base.sweep:
            raise UserError(f"{base.name} is no sweep: extend a sweep file")
        return base


def is_sweep(document: Document) -> bool:
    """Return whether the file lists losses, extends such a one or has a key of sweeps alone.

    Published tables have rows, and columns. Both have seeds.
    """
    keys = set(document.value) if isinstance(document.value, dict) else set()
    own = keys & SWEEP_KEYS or ("columns" not in keys and "seeds" in keys)
    return bool(keys & {"losses", "extends"} or ("rows" not in keys and own))


def check_sweep_name(path: Path) -> None:
    """Raise if a sweep file has the name of a sweep of ours."""
    if path.stem in BUILT_IN:
        raise UserError(
            f"{path}: there is a sweep named {path.stem} already: give the file another name"
        )


def given_by(table: Table) -> Iterator[LossEntry]:
    """Yield the values that a table gives to losses."""
    for i, row in enumerate(table.rows):
        for column in table.columns:
            if place := table.places.get((row.name, column)):
                own = ["params_by_column", column] if column in row.params_by_column else ["params"]
                yield place.work.loss, [], ["rows", i, *own]


def refuse_values(given: Iterator[LossEntry], document: Document) -> None:
    """Raise for values that their loss refuses.

    Raises:
        UserError: one is out of its range, with the line of the file.
    """
    for loss, grid, where in given:
        error = refusal(loss)
        if error is not None:
            for key in grid:
                rest = {name: value for name, value in loss.params.items() if name != key}
                if refusal(LossSpec(loss.name, rest)) is None:
                    where = ["grid", key]
            raise document.wrong_at(where, error)


def refusal(loss: LossSpec) -> UserError | None:
    """Why a loss cannot be had with these parameters; defaults are within their ranges."""
    if not loss.params:
        return None
    try:
        loss.check()
    except UserError as error:
        return error
    return None
