"""A table's statements on its protocol: from shared files, from marks, and its own.

One of its own that speaks of the recipe and names neither columns nor a domain is of the table's.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records.read_cache import remembered
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.protocol import Protocol, SharedProtocol, Statement
from contrastbench.benchmarks.tables.schema import PublishedTable
from contrastbench.domains import strict_yaml
from contrastbench.domains.registry import check_domain_name, declaration
from contrastbench.domains.strict_yaml import Document
from contrastbench.errors import unknown

SHARED_FOLDER = "protocols"  # beside the tables


def gathered_protocol(table: PublishedTable, document: Document) -> Protocol:
    """Return the table's protocol with all statements: shared ones, marked ones, its own.

    Raises:
        UserError: a name that names nothing, with its file and line.
    """
    for i, statement in enumerate(table.protocol.facts):
        check_statement_places(table, statement, document, i)
        check_keys(
            list(statement_domains(table, statement)), statement, document, ["protocol", "facts", i]
        )
    check_marks(table, document)
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
    wide = [one for one in own if not (one.rows or one.columns)]
    narrow = [one for one in own if one.rows or one.columns]
    facts = [*shared, *wide, *marked_statements(table), *narrow]
    return Protocol(use=table.protocol.use, facts=facts)


def read_shared(name: str, document: Document, i: int) -> list[Statement]:
    """The statements of a shared file: from beside the table that uses it, or from ours.

    Raises:
        UserError: no such file, or whatever is wrong in it.
    """
    parents = [*([document.path.parent] if document.path else []), catalogue.FOLDER]
    paths = {path.stem: path for parent in reversed(parents) for path in shared_files(parent)}
    if name not in paths:
        raise document.wrong_at(["protocol", "use", i], unknown("protocol", name, paths))
    return remembered(paths[name], lambda: statements(paths[name]))


def statements(path: Path) -> list[Statement]:
    """Return the statements in a file shared by tables."""
    shared = strict_yaml.read_yaml(path)
    protocol = shared.as_model(SharedProtocol)
    with shared.at("domain"):
        check_domain_name(protocol.domain)
    for j, statement in enumerate(protocol.facts):
        check_keys([protocol.domain], statement, shared, ["facts", j])
    return list(protocol.statements())


def shared_files(folder: Path) -> list[Path]:
    """The shared files of a folder with tables."""
    return sorted((folder / SHARED_FOLDER).glob("*.yaml"))


def marked_statements(table: PublishedTable) -> Iterator[Statement]:
    """Yield the statements that columns and rows mark as their own values from a source."""
    for name, column in table.columns.items():
        for source, keys in column.recipe_from.items():
            yield mark(source, columns=[name], recipe=picked_values(keys, column.recipe))
    for row in table.rows:
        for source, keys in row.recipe_from.items():
            yield mark(source, rows=[row.name], recipe=picked_values(keys, row.recipe))
        for source, keys in row.params_from.items():
            yield mark(source, rows=[row.name], params=picked_values(keys, row.params))
            for name, params in row.params_by_column.items():
                yield mark(
                    source, rows=[row.name], columns=[name], params=picked_values(keys, params)
                )


def mark(source: str, **said: Any) -> Statement:
    """A statement that repeats values of the table."""
    return Statement.model_validate({"from": source, **said})


def picked_values(keys: Sequence[str], values: dict[str, Any]) -> dict[str, Any]:
    """The values of these keys."""
    return {key: value for key, value in values.items() if key in keys}


def check_statement_places(
    table: PublishedTable, statement: Statement, document: Document, i: int
) -> None:
    """Raise for a row or column that the table has not."""
    known = {"rows": [row.name for row in table.rows], "columns": list(table.columns)}
    for key, names in known.items():
        for j, name in enumerate(getattr(statement, key)):
            check_known(
                key.removesuffix("s"), name, names, document, ["protocol", "facts", i, key, j]
            )


def check_known(
    what: str, name: str, known: Iterable[str], document: Document, where: list[int | str]
) -> None:
    """Raise for a name that is none of the known ones."""
    if name not in (known := list(known)):
        raise document.wrong_at(where, unknown(what, name, known))


def check_marks(table: PublishedTable, document: Document) -> None:
    """Raise for a mark on a key that is not beside it."""
    marked: list[tuple[list[int | str], dict[str, list[str]], Iterable[str]]] = []
    for name, column in table.columns.items():
        marked.append((["columns", name, "recipe_from"], column.recipe_from, column.recipe))
    for i, row in enumerate(table.rows):
        marked.append((["rows", i, "recipe_from"], row.recipe_from, row.recipe))
        params = {*row.params, *(key for own in row.params_by_column.values() for key in own)}
        marked.append((["rows", i, "params_from"], row.params_from, params))
    for where, sources, known in marked:
        for source, key in ((source, key) for source, keys in sources.items() for key in keys):
            check_known("key to mark", key, known, document, [*where, source])


def statement_domains(table: PublishedTable, statement: Statement) -> Iterator[str]:
    """Yield the domains that a table's own statement is about."""
    for name in statement.columns or table.columns:
        yield table.domain_of(name)
    if statement.domain:
        yield statement.domain


def check_keys(
    of: Sequence[str], statement: Statement, document: Document, where: list[int | str]
) -> None:
    """Raise for a recipe key that no domain of the statement has."""
    known = {key for name in of for key in declaration(name).recipe.model_fields}
    for key in statement.recipe:
        check_known("recipe key of its places", key, known, document, [*where, "recipe", key])
