"""Write the report: a folder of pages, or one file, from the records alone."""

from collections.abc import Sequence
from pathlib import Path

from contrastbench.benchmarks.records import files
from contrastbench.domains.reading import needing
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec


def write_report(
    names: Sequence[str],
    results: Path,
    target: Path,
    single: bool = False,
    joining: Sequence[LossSpec] = (),
    quick: bool = False,
) -> str:
    """Write the report on these tables, or on all; return what was written, in one line.

    Args:
        names: tables and sweep files.
        results: the folder that holds runs/.
        target: the folder of the pages, or the file where it is a single one.
        single: whether all pages stand in one file.
        joining: losses that join the named sweeps.
        quick: whether the quick parts of the named suites are shown.

    Raises:
        UserError: losses or a quick part are asked for without a name, a library is missing, there
            are no records, one was edited, or a file cannot be written.
    """
    if (joining or quick) and not names:
        options = [f"--loss {one.label} joins a sweep" for one in joining]
        options += ["--quick takes a part of a suite"] * quick
        raise UserError(f"{options[0]}: name it, such as bench report standard")
    with needing("report", "the report"):
        from contrastbench.benchmarks.report.folder import write_pages
        from contrastbench.benchmarks.report.site import read_report, render_site
    option = "--single" if single else "--output"
    try:
        report = read_report(names, results, joining, quick)
        made = render_site(report, single)
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
