"""A published table's file: read strictly, names in it checked."""

from collections.abc import Iterator

from contrastbench.benchmarks.tables import protocol_statements
from contrastbench.benchmarks.tables.build import Asked, check_distinct, fields
from contrastbench.benchmarks.tables.places import plain_place
from contrastbench.benchmarks.tables.schema import PublishedRow, PublishedTable, Row
from contrastbench.benchmarks.tables.table import Table
from contrastbench.domains.registry import check_domain_name, check_listed_dataset
from contrastbench.domains.strict_yaml import Document
from contrastbench.errors import UserError, unknown


def published_table(document: Document, name: str, asked: Asked) -> Table:
    """The table of a file that is not a sweep file.

    Raises:
        UserError: whatever is wrong, with the file and the line in it.
    """
    if asked.quick:
        raise UserError(f"{name} declares no quick part: leave --quick out")
    if asked.losses:
        raise UserError(
            f"{name} is no sweep, so no loss can join: leave --loss out, or name a sweep file"
        )
    file = document.as_model(PublishedTable)
    check_names(file, document)
    rows = [
        Row(**fields(row), printed=printed_values(row, i, document))
        for i, row in enumerate(file.rows)
    ]
    protocol = protocol_statements.gathered_protocol(file, document)
    own = {"name": name, "rows": rows, "protocol": protocol, "tiny": asked.tiny}
    table = Table(**{**fields(file), **own})
    for i in range(len(rows)):
        check_row_params(table, i, document)
    return table


def printed_values(row: PublishedRow, i: int, document: Document) -> dict[str, list[str]]:
    """A row's published values as they stand in the file: 71.60 is not 71.6."""
    return {
        column: [document.text(["rows", i, "paper", column, k]) for k in range(len(values))]
        for column, values in row.paper.items()
    }


def check_names(file: PublishedTable, document: Document) -> None:
    """Raise for names in a table's file that name nothing, or two things."""
    for where, domain in domain_places(file):
        try:
            check_domain_name(domain)
        except UserError as error:
            raise document.wrong_at(where, error) from None
    for name, column in file.columns.items():
        if column.dataset is not None:
            with document.at("columns", name, "dataset"):
                check_listed_dataset(file.domain_of(name), column.dataset)
    for i, row in enumerate(file.rows):
        with document.at("rows", i, "name"):
            check_distinct([one.name for one in file.rows[: i + 1]], "row")
        for key, known in (
            ("paper", [*file.columns, file.average]),
            ("params_by_column", [*file.columns]),
            ("grid_by_column", [*file.columns]),
        ):
            for column in getattr(row, key):
                if column not in known:
                    raise document.wrong_at(
                        ["rows", i, key, column],
                        unknown("column", column, filter(None, known)),
                    )


def check_row_params(table: Table, i: int, document: Document) -> None:
    """Raise unless a row's loss takes its parameters, and its recipes fit their domains."""
    row = table.rows[i]
    for column in table.columns:
        setup = table.setup_of(column)
        if setup and row.runs_in(column):
            work = plain_place(row, setup).work
            with document.at("rows", i):
                _ = work.loss.complete, work.full_recipe


def domain_places(table: PublishedTable) -> Iterator[tuple[list[int | str], str]]:
    """Yield each place where a table names a domain, with the name."""
    yield ["domain"], table.domain
    for name, column in table.columns.items():
        if column.domain is not None:
            yield ["columns", name, "domain"], column.domain
