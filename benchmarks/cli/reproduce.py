"""`bench reproduce`: a record run again, its numbers beside the recorded ones."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import typer

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.output import say
from contrastbench.benchmarks.records.packs import SHIPPED
from contrastbench.benchmarks.running.options import check_data_root
from contrastbench.benchmarks.submission import reproduction
from contrastbench.benchmarks.submission.reproduction import Outcome, ValueDifference
from contrastbench.domains.registry import check_needs
from contrastbench.errors import plural


def reproduce(
    record: str,
    results: Path = Path("results"),
    data_root: opt.DataRoot = None,
    device: str | None = None,
    trust: opt.Trust = False,
) -> None:
    """Run a record again, and say whether its numbers are equal.

    The cell runs in a temporary folder. A key is searched in --results, then among the records
    that come with contrastbench.
    Exit code 0: equal to the bit, or no further apart than two machines may be. 1: neither.

    Args:
        record: Path of the record, or its name KEY-seedN.
        device: Device: cpu, cuda, ... or auto; default: cpu for a CPU record.

    Example: bench reproduce results/runs/graph/MUTAG/adnce/KEY-seed0.json
    """
    check_data_root(data_root)
    places = list(dict.fromkeys([results, SHIPPED]))
    recorded = reproduction.named_record(record, places)
    reproduction.check_trust(recorded, trust)
    check_needs(recorded["domain"])
    again = reproduction.run_again(recorded, data_root, device)
    outcome = Outcome(recorded, again, reproduction.spread_of(recorded, places))
    for line in reproduction_lines(outcome):
        say(line)
    if not (outcome.equal or outcome.within):
        raise typer.Exit(1)


def reproduction_lines(outcome: Outcome) -> Iterator[str]:
    record = outcome.record
    title = f"{record['domain']} {record['dataset']} {record['loss']} seed {record['seed']}"
    yield f"{title}: {reproduction_verdict(outcome)}"
    if outcome.again["status"] not in ("ok", record["status"]):
        yield f"  now {outcome.again['status']}: {outcome.again['details'].get('error')}"
    if outcome.values:
        yield f"  {'value':32} {'recorded':>22} {'again':>22} {'limit':>8}"
        yield from difference_lines(outcome.values)
        yield from limit_lines(outcome)
    if outcome.circumstances:
        yield "made with:"
        yield from circumstance_lines(outcome.circumstances)


def reproduction_verdict(outcome: Outcome) -> str:
    if outcome.equal:
        return "equal to the bit"
    if outcome.within:
        return "within what two machines may differ by"
    if outcome.promised:
        return "NOT equal, though all is the same that equal numbers need"
    return "NOT within what two machines may differ by"


def difference_lines(values: Sequence[ValueDifference]) -> Iterator[str]:
    """Yield a line for each value that differs; of a list the first and how many more."""
    for _, group in groupby(values, key=lambda value: re.sub(r"\.\d+$", "", value.name)):
        first, *more = group
        limit = "" if first.limit is None else f"{first.limit:.4g}"
        numbers = f"{in_full(first.recorded):>22} {in_full(first.again):>22} {limit:>8}"
        yield f"  {first.name:32} {numbers}" + f"  and {len(more)} more" * bool(more)


def circumstance_lines(circumstances: Sequence[ValueDifference]) -> Iterator[str]:
    lacking = [item.name for item in circumstances if item.recorded is None]
    for item in circumstances:
        if item.recorded is not None:
            yield f"  {item.name}: {in_full(item.recorded)}, now {in_full(item.again)}"
    if lacking:
        yield f"  not in the record: {', '.join(lacking)}"


def limit_lines(outcome: Outcome) -> Iterator[str]:
    spread, dataset = outcome.spread, outcome.record["dataset"]
    if outcome.promised:
        return
    if spread.limits:
        yield f"limit: {reproduction.FACTOR} standard deviations over seeds, as two seeds differ in"
        cells = f"{spread.cells} cell{plural(spread.cells)}"
        yield f"95 % of cases; the median of {cells} of {dataset}"
    else:
        yield f"no limit is known: no cell of {dataset} has {reproduction.MIN_SEEDS} seeds"


def in_full(value: Any) -> str:
    return "-" if value is None else str(value)
