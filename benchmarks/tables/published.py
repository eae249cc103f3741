"""Read a published table: check its names, and join what is said of its protocol.

Statements on the protocol come from shared files, from marks beside values, and from the table. One
of its own that speaks of the recipe and names neither columns nor a domain is of the table's.
"""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records.read_cache import remembered
from contrastbench.benchmarks.tables import catalogue, schema
from contrastbench.benchmarks.tables.build import Asked, check_distinct
from contrastbench.benchmarks.tables.places import plain_place
from contrastbench.benchmarks.tables.table import NO_QUICK_PART, Table
from contrastbench.domains import strict_yaml
from contrastbench.domains.registry import check_domain_name, check_listed_dataset, declaration
from contrastbench.domains.strict_yaml import Document
from contrastbench.errors import UserError, unknown

SHARED_FOLDER = "protocols"  # beside the tables
# a part of a file, what it names for people, the names, and those that there are
Named = tuple[tuple[int | str, ...], str, Iterable[str], Collection[str]]


def published_table(document: Document, name: str, asked: Asked) -> Table:
    if asked.quick:
        raise UserError(f"{name} {NO_QUICK_PART}")
    if asked.losses:
        raise UserError(
            f"{name} is no sweep, so no loss can join: leave --loss out, or name a sweep file"
        )
    file = document.as_model(schema.PublishedTable)
    check_domains(file, document)
    check_named(document, names_in(file))
    rows = []
    for i, row in enumerate(file.rows):
        with document.at("rows", i, "name"):
            check_distinct([row.name for row in file.rows[: i + 1]], "row")
        printed = {  # letter by letter, as 71.60 is not 71.6
            column: [document.text(["rows", i, "paper", column, k]) for k in range(len(values))]
            for column, values in row.paper.items()
        }
        rows.append(schema.Row(**dict(row), printed=printed))
    protocol = schema.Protocol(use=file.protocol.use, facts=statements(file, document))
    own = {"name": name, "rows": rows, "protocol": protocol, "tiny": asked.tiny}
    table = Table(**{**dict(file), **own})
    check_settings(table, document)
    return table


def check_domains(file: schema.PublishedTable, document: Document) -> None:
    with document.at("domain"):
        check_domain_name(file.domain)
    for name, column in file.columns.items():
        with document.at("columns", name, "domain"):
            check_domain_name(file.domain_of(name))
        if column.dataset is not None:
            with document.at("columns", name, "dataset"):
                check_listed_dataset(file.domain_of(name), column.dataset)


def check_named(document: Document, named: Iterable[Named]) -> None:
    for where, what, names, known in named:
        for k, name in enumerate(names):
            if name not in known:
                part = k if isinstance(names, list) else name
                raise document.wrong_at([*where, part], unknown(what, name, known))


def names_in(file: schema.PublishedTable) -> Iterator[Named]:
    """Yield what a table's file names, by the part of it that does."""
    for name, column in file.columns.items():
        yield from marks(("columns", name, "recipe_from"), column.recipe_from, column.recipe)
    averaged = [*file.columns, *([file.average] if file.average else [])]
    for i, row in enumerate(file.rows):
        yield ("rows", i, "paper"), "column", row.paper, averaged
        yield ("rows", i, "params_by_column"), "column", row.params_by_column, file.columns
        yield ("rows", i, "grid_by_column"), "column", row.grid_by_column, file.columns
        yield from marks(("rows", i, "recipe_from"), row.recipe_from, row.recipe)
        params = {*row.params, *(key for own in row.params_by_column.values() for key in own)}
        yield from marks(("rows", i, "params_from"), row.params_from, params)
    rows = [row.name for row in file.rows]
    for i, said in enumerate(file.protocol.facts):
        where = ("protocol", "facts", i)
        yield (*where, "rows"), "row", said.rows, rows
        yield (*where, "columns"), "column", said.columns, file.columns
        if {*said.columns} <= {*file.columns}:
            domains = [file.domain_of(name) for name in said.columns or file.columns]
            yield recipe_keys(where, said, [*domains, *([said.domain] if said.domain else [])])


def marks(
    where: tuple[int | str, ...], sources: dict[str, list[str]], known: Collection[str]
) -> Iterator[Named]:
    """Yield the keys that are marked as a source's own values."""
    for source, keys in sources.items():
        yield (*where, source), "key to mark", keys, known


def recipe_keys(
    where: tuple[int | str, ...], said: schema.Statement, domains: Iterable[str]
) -> Named:
    """Return the recipe keys of a statement, beside those that its domains have."""
    known = {key for name in domains for key in declaration(name).recipe.model_fields}
    return (*where, "recipe"), "recipe key of its places", said.recipe, known


def check_settings(table: Table, document: Document) -> None:
    """Raise unless a row's loss takes its parameters, and its recipes fit their domains."""
    for i, row in enumerate(table.rows):
        for column in table.columns:
            setup = table.setup_of(column)
            if setup and row.runs_in(column):
                work = plain_place(row, setup).work
                with document.at("rows", i):
                    _ = work.loss.complete, work.full_recipe


def statements(table: schema.PublishedTable, document: Document) -> list[schema.Statement]:
    """Return all statements on a table's protocol, a later one over an earlier one."""
    shared = [
        statement
        for i, name in enumerate(table.protocol.use)
        for statement in read_shared(name, document, i)
    ]
    own = [
        statement.but(domain=table.domain)
        if statement.recipe and not statement.columns and not statement.domain
        else statement
        for statement in table.protocol.facts
    ]
    wide = [note for note in own if not (note.rows or note.columns)]
    narrow = [note for note in own if note.rows or note.columns]
    return [*shared, *wide, *marked_statements(table), *narrow]


def read_shared(name: str, document: Document, i: int) -> list[schema.Statement]:
    """The statements of a shared file: from beside the table that uses it, or from ours."""
    parents = [catalogue.FOLDER, *([document.path.parent] if document.path else [])]
    folders = (parent / SHARED_FOLDER for parent in parents)
    paths = {path.stem: path for folder in folders for path in sorted(folder.glob("*.yaml"))}
    if name not in paths:
        raise document.wrong_at(["protocol", "use", i], unknown("protocol", name, paths))
    return remembered(paths[name], lambda: shared_statements(paths[name]))


def shared_statements(path: Path) -> list[schema.Statement]:
    document = strict_yaml.read_yaml(path)
    shared = document.as_model(schema.SharedProtocol)
    with document.at("domain"):
        check_domain_name(shared.domain)
    facts, domain = shared.facts, shared.domain
    check_named(document, (recipe_keys(("facts", i), x, [domain]) for i, x in enumerate(facts)))
    return [one.but(domain=domain, datasets=one.datasets or shared.datasets) for one in facts]


def marked_statements(table: schema.PublishedTable) -> Iterator[schema.Statement]:
    for name, column in table.columns.items():
        yield from marked(column.recipe_from, column.recipe, "recipe", columns=[name])
    for row in table.rows:
        yield from marked(row.recipe_from, row.recipe, "recipe", rows=[row.name])
        for source, keys in row.params_from.items():
            source_keys = {source: keys}
            yield from marked(source_keys, row.params, "params", rows=[row.name])
            for name, params in row.params_by_column.items():
                yield from marked(source_keys, params, "params", rows=[row.name], columns=[name])


def marked(
    sources: dict[str, list[str]], values: dict[str, Any], kind: str, **where: list[str]
) -> Iterator[schema.Statement]:
    for source, keys in sources.items():
        said = {key: value for key, value in values.items() if key in keys}
        yield schema.Statement.model_validate({"from": source, kind: said, **where})
