"""A table by name.

A published one, a user's own, or a sweep file, which becomes a table without a paper.
"""

from collections.abc import Iterator
from pathlib import Path

from contrastbench.benchmarks.tables import catalogue, strict_yaml, sweep_file
from contrastbench.benchmarks.tables.published import published
from contrastbench.benchmarks.tables.strict_yaml import Document
from contrastbench.benchmarks.tables.sweep_file import SMOKE, Given, SweepFile
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses.errors import UserError
from contrastbench.losses.spec import LossSpec

BUILT_IN = {"smoke": SMOKE}  # sweeps that need no file


def load(name: str, check_values: bool = False) -> Table:
    """A published table or a sweep, by name or by a user's own file, which is read once.

    Args:
        name: see `bench list tables`; or the path of a YAML file.
        check_values: whether losses are made with the values of a user's file, which brings torch.

    Raises:
        UserError: whatever is wrong, in one line with the file and the line in it.
    """
    if name in BUILT_IN:
        table = sweep_file.to_table(BUILT_IN[name], Document())
        return table.model_copy(update={"name": name})
    path = catalogue.find(name, also=BUILT_IN)
    document = strict_yaml.read(path)
    if is_sweep(document):
        check_name(path)
        file = document.as_model(SweepFile)
        table, given = sweep_file.to_table(file, document), sweep_file.given(file, document)
    else:
        table = published(document)
        given = given_by(table)
    if check_values and name.endswith(catalogue.ENDINGS):
        refuse_values(given, document)
    return table.model_copy(update={"name": path.stem})


def is_sweep(document: Document) -> bool:
    """Whether the file lists losses, which published tables have in their rows."""
    return "losses" in (document.value or {})


def check_name(path: Path) -> None:
    """Raise if a sweep file has the name of a sweep of ours."""
    if path.stem in BUILT_IN:
        raise UserError(
            f"{path}: there is a sweep named {path.stem} already: give the file another name"
        )


def given_by(table: Table) -> Iterator[Given]:
    """What a table gives to losses."""
    for i, row in enumerate(table.rows):
        for column in (column for column in table.columns if table.runnable(row, column)):
            own = ["params_by_column", column] if column in row.params_by_column else ["params"]
            yield table.experiment(row, column).loss, [], ["rows", i, *own]


def refuse_values(given: Iterator[Given], document: Document) -> None:
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
