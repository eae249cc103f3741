"""Find tables: ours, those of installed packages, and a user's own files.

Reads no more than it must.
"""

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from contrastbench.benchmarks.records.read_cache import remembered
from contrastbench.errors import UserError, unknown, users_code

# each entry point names a package with YAML files in its folder, such as mine.tables
ENTRY_POINTS = "contrastbench.tables"

ENDINGS = (".yaml", ".yml")  # of a user's own files; a name without is a published table's


def table_names() -> list[str]:
    """The tables there are, Table 5 before Table 10."""
    return sorted(table_files(), key=by_number)


def by_number(name: str) -> tuple[str, int]:
    """Return the sort key of a table's name."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or 0)


def find_table(name: str, also: Iterable[str] = ()) -> Path:
    """The file of a table: by name, or by the path of a user's own.

    Raises:
        UserError: no such table, or two of that name.
    """
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
        raise name_conflict(path.stem, path, known[path.stem])
    return path


def table_files() -> dict[str, Path]:
    """Every table's file by name."""
    found: dict[str, Path] = {}
    for folder in table_folders():
        for path in folder.glob("*.yaml"):
            if path.stem in found:
                raise name_conflict(path.stem, path, found[path.stem])
            found[path.stem] = path
    return found


def table_folders() -> list[Path]:
    """Return the folders of tables, ours and those of packages."""
    return remembered(ENTRY_POINTS, lambda: [Path(__file__).parent, *package_folders()])


def package_folders() -> Iterator[Path]:
    """The folders of installed packages; none of their code is run but a parent's."""
    for entry in entry_points(group=ENTRY_POINTS):
        with users_code(f"load the entry point {entry.name} of {ENTRY_POINTS}"):
            spec = find_spec(entry.value)
        if spec is None or not spec.submodule_search_locations:
            raise UserError(
                f"the entry point {entry.name} of {ENTRY_POINTS} names no package: {entry.value}"
            )
        yield from map(Path, spec.submodule_search_locations)


def name_conflict(name: str, one: Path, other: Path) -> UserError:
    """Two files would write the same results."""
    return UserError(f"two tables are named {name}: {other} and {one}: rename one of the files")


def own_sweep_files(results: Path) -> list[str]:
    """A user's own files in the results and in the working folder: sweeps, or tables.

    Other YAML files, and those with the name of a table of ours, are left out.
    """
    known = table_files()
    found = {path.resolve(): path for folder in (Path(), results) for path in yaml_files(folder)}
    return [str(path) for path in found.values() if path.stem not in known and has_our_key(path)]


def yaml_files(folder: Path) -> list[Path]:
    """Return the YAML files of a folder by name, without hidden files."""
    found = (path for path in folder.glob("*.y*ml") if path.suffix in ENDINGS)
    return sorted(path for path in found if not path.name.startswith("."))


def has_our_key(path: Path) -> bool:
    """Return whether a YAML file has a key that our files have."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return re.search(r"^(losses|extends|columns):", text, re.MULTILINE) is not None
