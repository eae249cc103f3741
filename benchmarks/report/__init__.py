"""Write the report: a folder of pages, or one file, from the records alone.

Every file is whole at any moment, and nobody else's file is touched.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from pathlib import Path

from contrastbench.benchmarks.records import files
from contrastbench.domains.reading import needing
from contrastbench.errors import UserError, tell
from contrastbench.losses.spec import LossSpec

# of the folder, a line each: what a report wrote, and the next one may remove
FILE_LIST = "files.txt"


def write_report(
    names: Sequence[str],
    results: Path,
    target: Path,
    single: bool = False,
    joining: Sequence[LossSpec] = (),
    quick: bool = False,
) -> str:
    """Write the report on these tables, or on all; return what was written, in one line."""
    if (joining or quick) and not names:
        options = [f"--loss {loss.label} joins a sweep" for loss in joining]
        options += ["--quick takes a part of a suite"] * quick
        raise UserError(f"{options[0]}: name it, such as bench report standard")
    with needing("report", "the report"):
        from contrastbench.benchmarks.report.site import read_report, render_site
    option = "--single" if single else "--output"
    try:
        report = read_report(names, results, joining, quick)
        named = report.shown if names else ()
        for line in chain.from_iterable(view.resolved.smoke_tests for view in named):
            tell(line)
        made = render_site(report, single, (target.absolute().parent / "index.html").is_file())
        if single:
            files.replace(target, made[""])
        else:
            write_pages(target, made)
    except OSError as error:
        raise UserError(
            f"cannot write {error.filename or target} ({error.strerror}): name another place with "
            f"{option}"
        ) from None
    size = sum(len(text.encode()) for text in made.values()) / 1e6
    first = target if single else target / "index.html"
    return f"{first}: {report.summary}, {size:.1f} MB"


def write_pages(folder: Path, made: Mapping[str, str]) -> None:
    """Write the files by their paths in the folder, and remove those of an earlier report."""
    path, root = folder / FILE_LIST, folder.resolve()
    names = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    earlier = {name for name in names if (folder / name).resolve().is_relative_to(root)}
    for name in made:
        if name not in earlier and (folder / name).exists():
            fault = "was not written by bench report: name another folder with --output"
            raise UserError(f"{folder / name} {fault}")
    folder.mkdir(parents=True, exist_ok=True)
    files.replace(path, sorted_lines({*earlier, *made}))
    for name in earlier - set(made):  # first: it may be the file of a new name in other case
        remove_page(folder, folder / name)
    for place in {(folder / name).parent for name in made}:
        place.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(files.AT_ONCE) as pool:
        list(pool.map(lambda name: files.replace(folder / name, made[name]), made))
    files.replace(path, sorted_lines(made))


def remove_page(folder: Path, path: Path) -> None:
    """Remove a file of an earlier report, and its folders where they are empty then."""
    path.unlink(missing_ok=True)
    with suppress(OSError):  # others have files there
        for parent in path.relative_to(folder).parents:
            if parent != Path():
                (folder / parent).rmdir()


def sorted_lines(names: Iterable[str]) -> str:
    return "".join(f"{name}\n" for name in sorted(names))
