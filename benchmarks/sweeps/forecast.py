"""Forecast a whole sweep before it begins: time in all and by domain. Brings no torch.

The seconds of a cell are those of like cells in records, see `costs`. Where that is long, the
forecast names the parts that fit.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from contrastbench.benchmarks.sweeps.cell_states import Task
from contrastbench.benchmarks.sweeps.costs import Costs, duration
from contrastbench.benchmarks.sweeps.plan import Plan, cells_ahead

LONG_WAIT = 3 * 3600.0  # seconds of waiting, from which on parts are named


@dataclass(frozen=True)
class Share:
    """The cost of one domain.

    Args:
        domain: its name.
        cells: how many are to be run, trials included.
        seconds: of those that like cells tell of.
        unknown: how many cells have no like cell.
    """

    domain: str
    cells: int
    seconds: float
    unknown: int


def forecast_lines(plan: Plan, costs: Costs, jobs: int) -> Iterator[str]:
    """Yield the forecast of a plan, and what fits where that takes long.

    Where all is done there is none. Where no like cell is known, a loss that joins is told so.
    """
    shares, joins = list(by_domain(cells_ahead(plan), costs)), bool(plan.table.asked)
    seconds = sum(one.seconds for one in shares)
    if not shares or not (seconds or joins):
        return
    yield forecast_text(shares)
    if seconds / jobs > LONG_WAIT and joins:
        yield fitting(shares, jobs, bool(plan.table.quick) and not plan.table.is_quick)


def by_domain(work: Iterable[Task], costs: Costs) -> Iterator[Share]:
    """Yield the cost of each domain."""
    domains: dict[str, list[float | None]] = {}
    for task in work:
        domains.setdefault(task.experiment.domain, []).append(costs.of(task.experiment))
    for domain, seconds in domains.items():
        known = [one for one in seconds if one is not None]
        yield Share(domain, len(seconds), sum(known), len(seconds) - len(known))


def forecast_text(shares: list[Share]) -> str:
    """Return the forecast in words.

    >>> forecast_text([Share("graph", 60, 5400, 0), Share("image", 15, 0, 15)])
    '75 cells, 1 h 30 min for one idle job (graph 1 h 30 min); no forecast for 15 cells of image'
    """
    known = [one for one in shares if one.seconds]
    parts = [cells_text(sum(one.cells for one in shares))]
    if known:
        domains = ", ".join(f"{one.domain} {duration(one.seconds)}" for one in known)
        total = duration(sum(one.seconds for one in known))
        parts = [f"{parts[0]}, {total} for one idle job ({domains})"]
    unknown = (one for one in shares if one.unknown)
    parts += [f"no forecast for {cells_text(one.unknown)} of {one.domain}" for one in unknown]
    return "; ".join(parts)


def cells_text(count: int) -> str:
    """Return a number of cells in words."""
    return f"{count} cell{'s' * (count != 1)}"


def fitting(shares: list[Share], jobs: int, quick: bool) -> str:
    """Return which parts of a long sweep fit into three hours.

    >>> fitting([Share("graph", 9, 7200, 0), Share("image", 9, 36000, 0)], 2, True)
    'that is 6 h 00 min with 2 jobs; within 3 h: --only domain=graph (1 h 00 min), or --quick'
    """
    waits = {one.domain: one.seconds / jobs for one in shares if not one.unknown}
    fits = [
        f"--only domain={name} ({duration(wait)})"
        for name, wait in waits.items()
        if wait <= LONG_WAIT
    ]
    fits += ["--quick"] * quick
    total = duration(sum(one.seconds for one in shares) / jobs)
    found = f"within 3 h: {', or '.join(fits)}" if fits else "no domain alone fits into 3 h"
    return f"that is {total} with {jobs} job{'s' * (jobs > 1)}; {found}"
