"""A table by name.

A published one, a user's own, or a sweep file, which becomes a table without a paper.
"""

from collections.abc import Sequence
from pathlib import Path

from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.build import SMOKE, Asked, build_sweep
from contrastbench.benchmarks.tables.published import published_table
from contrastbench.benchmarks.tables.schema import PublishedTable, SweepFile
from contrastbench.benchmarks.tables.table import QUICK, Table
from contrastbench.domains.strict_yaml import Document
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec

Inside = frozenset[Path]
BUILT_IN = {"smoke": SMOKE}  # sweeps that need no file
SWEEP_KEYS = {*SweepFile.model_fields} - {*PublishedTable.model_fields}
NEWEST = {"standard": "standard-4"}  # of the versions of a sweep that ships


def load_table(
    name: str,
    check_values: bool = False,
    losses: Sequence[LossSpec] = (),
    quick: bool = False,
    tiny: bool = False,
) -> Table:
    """A published table or a sweep, by name or by a user's own file, which is read once.

    Args:
        name: see `bench list tables`; or the path of a YAML file.
        check_values: whether the values that a user's file gives to losses are checked.
        losses: they join a sweep that does not have them, as if its file listed them.
        quick: whether only the quick part is asked for, which the sweep declares.
        tiny: whether each domain has its tiny recipe, for a smoke test.
    """
    for loss in losses:
        loss.check()
    return read_table(name, Asked(losses, quick, tiny), check_values)


def read_table(
    name: str, asked: Asked, check_values: bool = False, inside: Inside = frozenset()
) -> Table:
    """Read a file and build its table; `inside` are the files that extend this one."""
    if name in BUILT_IN:
        return build_sweep(BUILT_IN[name], Document(), name, asked=asked)
    whole = name.removesuffix(QUICK)
    if whole != name and is_table(whole):
        raise UserError(f"unknown table {name!r}: the quick part of {whole} is {whole} --quick")
    path = catalogue.find_table(NEWEST.get(name, name), also=[*BUILT_IN, *NEWEST])
    document = catalogue.read(path)
    if is_sweep(document):
        if path.stem in BUILT_IN:
            fix = "give the file another name"
            raise UserError(f"{path}: there is a sweep named {path.stem} already: {fix}")
        file = document.as_model(SweepFile)
        base = extended_sweep(file, document, inside | {path.resolve()})
        table = build_sweep(file, document, path.stem, base, asked)
    else:
        table = published_table(document, path.stem, asked)
    if check_values and name.endswith(catalogue.ENDINGS):
        refuse_values(table, path)
    return table.but(called=name)


def is_table(name: str) -> bool:
    """Return whether it is the name of a table or a sweep, or of a user's own YAML file."""
    ours = {*catalogue.table_files(), *BUILT_IN, *NEWEST}
    return name.endswith(catalogue.ENDINGS) or name in ours


def extended_sweep(file: SweepFile, document: Document, inside: Inside) -> Table | None:
    """Return the sweep that a file extends; `inside` are the files that extend this one, and it."""
    if file.extends is None:
        return None
    with document.at("extends"):
        beside = document.path.parent / file.extends if document.path else Path(file.extends)
        if beside.is_file() and beside.resolve() in inside:
            raise UserError("this sweep extends itself: extend another one")
        base = read_table(str(beside) if beside.is_file() else file.extends, Asked(), inside=inside)
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


def refuse_values(table: Table, path: Path) -> None:
    """Raise for values that a loss refuses, with the row of the file."""
    for place in table.places.values():
        try:
            place.work.loss.check()
        except UserError as error:
            raise UserError(f"{path}: {place.row.name}: {error}") from None
