"""Write one self-contained HTML page: tables, comparisons, plots and the records behind them."""

from collections.abc import Sequence
from pathlib import Path

from contrastbench.benchmarks.records import files
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec


def write(
    names: Sequence[str],
    results: Path,
    output: Path,
    plots: Path | None = None,
    losses: Sequence[LossSpec] = (),
    quick: bool = False,
) -> str:
    """Write the page for these tables, or for all that have records; what was written, in one line.

    Args:
        names: tables and sweep files.
        results: the folder that holds runs/.
        output: the page.
        plots: a folder for its plots as SVG and PDF; None: they are on the page alone.
        losses: they join the named sweeps.
        quick: whether the quick parts of the named suites are shown.

    Raises:
        UserError: losses or a quick part are asked for without a name, a library is missing, there
            are no records, one was edited, or the file cannot be written.
    """
    if (losses or quick) and not names:
        raise UserError(
            "--loss and --quick are for a suite: name it, such as bench report standard"
        )
    try:
        from contrastbench.benchmarks.report.page import render
    except ModuleNotFoundError as error:
        fix = 'pip install "contrastbench[report]"'
        raise UserError(f"the report needs {error.name}, which is not installed: {fix}") from None
    try:
        if plots:
            plots.mkdir(parents=True, exist_ok=True)
        page, summary = render(names, results, plots, losses, quick)
        files.replace(output, page)
    except OSError as error:
        raise UserError(
            f"cannot write {error.filename or output} ({error.strerror}): name another file with "
            "--output"
        ) from None
    return f"{output}: {summary}, {output.stat().st_size / 1e6:.1f} MB"
