"""Write the report's folder: every file whole at any moment, and nobody else's file touched."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from contrastbench.benchmarks.records import files
from contrastbench.errors import UserError

# of the folder, a line each: what a report wrote, and the next one may remove
FILE_LIST = "files.txt"


def write_pages(folder: Path, made: Mapping[str, str]) -> None:
    """Write the files by their paths in the folder, and remove those of an earlier report.

    Raises:
        UserError: a file of that name stands there that no report wrote.
        OSError: a file cannot be written.
    """
    earlier = earlier_files(folder)
    check_overwrite(folder, made, earlier)
    folder.mkdir(parents=True, exist_ok=True)
    files.replace(folder / FILE_LIST, sorted_lines({*earlier, *made}))
    for path in {(folder / name).parent for name in made}:
        path.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(files.AT_ONCE) as pool:
        list(pool.map(lambda name: files.replace(folder / name, made[name]), made))
    for name in earlier - set(made):
        remove_page(folder, folder / name)
    files.replace(folder / FILE_LIST, sorted_lines(made))


def earlier_files(folder: Path) -> set[str]:
    """Return the files that an earlier report wrote there."""
    path = folder / FILE_LIST
    names = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {name for name in names if (folder / name).resolve().is_relative_to(folder.resolve())}


def check_overwrite(folder: Path, made: Iterable[str], earlier: set[str]) -> None:
    """Raise if a file would be replaced that no report wrote."""
    foreign = [name for name in made if name not in earlier and (folder / name).exists()]
    if foreign:
        raise UserError(
            f"{folder / foreign[0]} was not written by bench report: name another folder with "
            "--output"
        )


def remove_page(folder: Path, path: Path) -> None:
    """Remove a file of an earlier report, and its folders where they are empty then."""
    path.unlink(missing_ok=True)
    with suppress(OSError):  # others have files there
        for parent in path.relative_to(folder).parents:
            if parent != Path():
                (folder / parent).rmdir()


def sorted_lines(names: Iterable[str]) -> str:
    """Return names as lines in order."""
    return "".join(f"{name}\n" for name in sorted(names))
