"""Find tables: ours, and a user's own files."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from contrastbench.benchmarks.records.read_cache import remembered
from contrastbench.domains.strict_yaml import Document, read_yaml
from contrastbench.errors import UserError, unknown

FOLDER = Path(__file__).parent  # of our tables
ENDINGS = (".yaml", ".yml")  # of a user's own files; a name without is a published table's


def read(path: Path) -> Document:
    """Return a table's file, which a list reads before the table is built of it."""
    return remembered(("table", path), lambda: read_yaml(path))


def table_names() -> list[str]:
    """The tables there are, Table 5 before Table 10."""
    return sorted(table_files(), key=by_number)


def by_number(name: str) -> tuple[str, int]:
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or 0)


def find_table(name: str, also: Iterable[str] = ()) -> Path:
    """The file of a table: by name, or by the path of a user's own."""
    known = table_files()
    if not name.endswith(ENDINGS):
        if name not in known:
            raise unknown("table", name, [*known, *also], hint=" (your own: path/to/mine.yaml)")
        return known[name]
    path = Path(name)
    if not path.is_file():
        raise UserError(
            f"no file {path}: give a table's name (bench list tables) or the path of its YAML file"
        )
    if path.stem in known and not path.samefile(known[path.stem]):
        other = known[path.stem]
        raise UserError(f"two tables are named {path.stem}: {other} and {path}: rename your file")
    return path


@cache
def table_files() -> dict[str, Path]:
    return {path.stem: path for path in FOLDER.glob("*.yaml")}
