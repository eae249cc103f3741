"""The page from its contents: Jinja escapes what users named, and nothing is fetched."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from contrastbench.benchmarks.comparison.markdown import VERDICTS, ranks_text, seeds_text
from contrastbench.benchmarks.comparison.numbers import p_text, signed
from contrastbench.benchmarks.comparison.statistics import ALPHA
from contrastbench.benchmarks.report import contents, plots
from contrastbench.benchmarks.report.differences import differences_plot
from contrastbench.benchmarks.report.groups import data, failures, read_groups
from contrastbench.benchmarks.running.provenance import provenance
from contrastbench.losses.spec import LossSpec

HERE = Path(__file__).parent


def render(
    names: Sequence[str],
    results: Path,
    folder: Path | None = None,
    losses: Sequence[LossSpec] = (),
    quick: bool = False,
) -> tuple[str, str]:
    """Return the page and a summary of it, and write its plots into the folder."""
    groups = read_groups(results)
    shown = contents.choose(names, results, groups, losses, quick)
    numbers = contents.related(shown, groups) if names else {group.number for group in groups}
    chosen = [group for group in groups if group.number in numbers]
    statuses = Counter(record["status"] for group in chosen for record in group.records)
    page = (
        environment(folder)
        .get_template("page.html")
        .render(
            shown=shown,
            statuses=statuses,
            data=data(chosen),
            experiments=len(chosen),
            failures=failures(chosen),
            sensitivities=list(plots.sensitivities(chosen)),
            alpha=ALPHA,
            version=provenance().version or "",
        )
    )
    return page, f"tables: {len(shown)}, experiments: {len(chosen)}, records: {statuses.total()}"


def environment(folder: Path | None) -> Environment:
    """Autoescape is on for all that is not marked as ours."""
    saved = Counter[str]()  # two data of one set have plots of one name

    def shown(name: str, drawing: plots.Drawing | None) -> Markup:
        if drawing is None:
            return Markup("")
        if folder:
            drawing.save(folder, f"{name}-{saved[name]}" if saved[name] else name)
            saved[name] += 1
        return Markup(drawing.svg())

    made = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "ours": lambda name: Markup((HERE / name).read_text(encoding="utf-8")),
        "sensitivity_plot": lambda what: shown(what.title, plots.sensitivity_plot(what)),
        "critical_difference": lambda one: shown(
            f"{one.name} ranks", plots.critical_difference(one.ranks.rows, one.ranks.ranking)
        ),
        "cost_plot": lambda one: shown(
            f"{one.name} costs", plots.cost_plot(one.costs, one.table.metric or "score")
        ),
        "ranks_text": ranks_text,
        "VERDICTS": VERDICTS,
        "differences_plot": lambda one: shown(
            f"{one.name} differences",
            differences_plot(one.baseline, one.compared, one.table.decimals),
        ),
        "colors": plots.COLORS,
    }
    made.filters |= {
        "signed": with_minus,
        "p": p_text,
        "seeds_needed": seeds_text,
        "commit": short_commit,
    }
    return made


def with_minus(value: float, decimals: int) -> str:
    """Format a number with its sign, with a real minus.

    >>> with_minus(-0.71, 1)
    '−0.7'
    """
    return signed(value, decimals).replace("-", "−")


def short_commit(commit: str | None) -> str:
    """Twelve digits, and whether files differed from it.

    >>> short_commit("0123456789abcdef+changes")
    '0123456789ab+changes'
    """
    if commit is None:
        return "none: an installed package"
    return commit[:12] + ("+changes" if commit.endswith("+changes") else "")
