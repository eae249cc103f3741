"""Read the evaluation of a record as typed values.

Records of every release are understood here alone.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.domains.declaration import TestPart
from contrastbench.domains.registry import declaration


class ScoredParts(NamedTuple):
    """The parts of an evaluation that others read, see `contrastbench.domains.base.Evaluation`."""

    folds: Sequence[float]
    inner: Sequence[float]  # none in early records
    samples: dict[str, int]
    test_part: TestPart
    validation: float | None


def scored_parts(record: Record) -> ScoredParts:
    details = record["details"]
    folds = details.get("folds", [])
    # until 0.1 tables counted their rows and images their images, and neither said how it is split
    samples = details.get("samples") or details.get("rows") or details.get("images") or {}
    test_part = details.get("test_part") or ("folds" if folds else early_test_part(record))
    inner = details.get("inner", [])
    return ScoredParts(folds, inner, samples, test_part, validation_of(record))


def validation_of(record: Record) -> float | None:
    """Return the validation score, which a search asks of thousands of records."""
    return record["details"].get("validation")


def folds_of(record: Record, metric: str) -> list[float]:
    """Return the metric of each fold, if the metric is a mean over folds."""
    details: Fields = record["details"]
    tasks = [fold["accuracy"] for fold in details.get("tasks", {}).get(metric, [])]
    others: list[float] = details.get("folds_of", {}).get(metric, [])
    folds = tasks or others or list(scored_parts(record).folds)
    is_mean = len(folds) > 1 and abs(fmean(folds) - record["metrics"][metric]) <= 1e-6
    return folds if is_mean else []


def packed_bits(right: Sequence[bool]) -> str:
    """Return which samples are right as hexadecimal digits, after a 1 that keeps leading noughts.

    >>> packed_bits([False, True, True, False])
    '16'
    """
    return f"{int('1' + ''.join('01'[bit] for bit in right), 2):x}" if len(right) else ""


def sample_interval(record: Record) -> tuple[float, float] | None:
    """Return the 95 % interval of one run's main metric over its test samples, in percent.

    Percentiles of the bootstrap (Efron 1979). Of samples drawn with replacement the number of right
    ones is binomial, so that nothing is drawn. Whatever a seed changes is not in it. None: the
    record does not say which samples are right, or all are alike and so no draw differs.
    """
    from scipy.stats import binom

    bits: str = record["details"].get("right") or "1"
    right = [*map(int, f"{int(bits, 16):b}"[1:])]
    if len({*right}) < 2:
        return None
    low, high = binom.interval(0.95, len(right), fmean(right))
    return 100 * float(low) / len(right), 100 * float(high) / len(right)


def scored_data(record: Record) -> str:
    """Return the hash of the data that scored the model; early records may lack it."""
    own = record["data_hash"]
    known = declaration(record["domain"]).datasets.get(record["dataset"])
    return record["details"].get("scored_data") or (known.scored_as.get(own, own) if known else own)


def early_test_part(record: Record) -> TestPart:
    """Guess the test part of a record before 0.2, when only downloaded tables had a fixed one."""
    known = declaration(record["domain"]).datasets.get(record["dataset"])
    return "redrawn" if "rows" in record["details"] and not (known and known.url) else "fixed"


def copy_of(record: Record) -> str | None:
    """Name the known copy of a dataset that the record used, if it used one."""
    known = declaration(record["domain"]).datasets.get(record["dataset"])
    return known.copies.get(record["data_hash"]) if known else None
