"""One self-contained HTML page: tables, comparisons, plots and every record behind a number."""

from collections.abc import Sequence
from pathlib import Path

from contrastbench.benchmarks.records import files
from contrastbench.losses.errors import UserError


def write(names: Sequence[str], results: Path, output: Path) -> str:
    """Write the page for these tables, or for all that have records; what was written, in one line.

    Raises:
        UserError: a library is missing, there are no records, one was edited, or the file cannot be
            written.
    """
    try:
        from contrastbench.benchmarks.report.page import render
    except ModuleNotFoundError as error:
        fix = 'pip install "contrastbench[report]"'
        raise UserError(f"the report needs {error.name}, which is not installed: {fix}") from None
    page, summary = render(names, results)
    try:
        files.replace(output, page)
    except OSError as error:
        raise UserError(
            f"cannot write {output} ({error.strerror}): name another file with --output"
        ) from None
    return f"{output}: {summary}, {output.stat().st_size / 1e6:.1f} MB"
