"""Verdicts over data sets: sets are drawn, and each domain counts alike.

With k domains, n_d sets of a domain and the variance s_d^2 of their effects, the mean over domains
of their means has

    SE^2 = s^2 * sum of 1 / (k^2 n_d),    s^2 = sum of f_d s_d^2 / sum of f_d,    f_d = n_d - 1,

and as many degrees of freedom as the pooled variance has, (sum of f_d s_d^2)^2 / sum of
f_d s_d^4 (Satterthwaite 1946). Each effect has the noise of its search and seeds, so the interval
holds these and how effects differ between sets. A domain's mean has the spread of its own sets.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, pi, sqrt
from statistics import fmean, median
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from contrastbench.benchmarks.comparison import Verdict
from contrastbench.benchmarks.comparison.effects import Counted, Effect, Rows, by_domain
from contrastbench.benchmarks.comparison.pairs import SetName
from contrastbench.benchmarks.comparison.statistics import (
    ALPHA,
    DIGITS,
    critical,
    holm,
    noncentrality,
    special,
)
from contrastbench.benchmarks.records.grouping import grouped

FEWEST = 3.0  # degrees of freedom: below, the true spread may be six times that seen
Centre = Callable[[Sequence[float]], float]


class Part(NamedTuple):
    """A mean over sets, with what is shown of it."""

    mean: float  # over the sets, or over domains of the means over their sets
    error: float = 0.0  # its standard error
    freedom: float = 0.0  # degrees of freedom of the error; 0: nothing tells its spread
    holm: float | None = None  # p of no effect, after Holm's correction; None: untested
    holm_equal: float | None = None  # p of an effect beyond the margin, after it
    verdict: Verdict = Verdict.UNTESTED

    @property
    def half(self) -> float:
        """Return half of the uncorrected 95 % interval; infinite where no spread is known."""
        return critical(self.freedom, ALPHA) * self.error if self.freedom >= 1 else inf

    @property
    def p(self) -> float | None:
        """Return the two-sided p of no effect; None where sets are too few for a test."""
        return None if self.freedom < FEWEST else min(1.0, 2 * chance_above(abs(self.mean), self))

    def p_equal(self, margin: float) -> float | None:
        """Return the larger p of two one-sided tests of an effect beyond the margin."""
        return None if self.freedom < FEWEST else chance_above(margin - abs(self.mean), self)


@dataclass(frozen=True)
class Judged:
    """One row with its verdicts."""

    effect: Effect
    over: Part  # all sets
    by_domain: Mapping[str, Part] = field(default_factory=dict)  # by a second family of tests
    # the choices of ours without which the verdict is another one, with that one
    hangs_on: Mapping[str, Verdict] = field(default_factory=dict)
    tried: int = 0  # such choices
    sees: float = inf  # the effect that would have been found four times in five
    # the effect of the best of so many points against the baseline's best of all
    curve: Mapping[int, float] = field(default_factory=dict)
    must: str = ""  # of a control: how it has to come out
    came_out: bool = True  # and whether it did


def mean_over(groups: Iterable[Sequence[float]], centre: Centre = fmean) -> Part:
    """Return the mean over domains of the centres of their sets, with its standard error.

    >>> part = mean_over([[1.0, 2.0, 3.0]])
    >>> part.mean, round(part.error, 3), part.freedom
    (2.0, 0.577, 2.0)
    """
    some = [np.asarray(values) for values in groups]
    freedoms = np.array([len(values) - 1 for values in some])
    variances = np.array([values.var(ddof=1) if len(values) > 1 else 0.0 for values in some])
    mean = fmean(centre(values.tolist()) for values in some)
    if not freedoms.any():
        return Part(mean)
    pooled = float(freedoms @ variances / freedoms.sum())
    scale = sum(1 / len(values) for values in some) / len(some) ** 2
    # which says nothing where sets that are alone in their domains differ
    if not round(sqrt(pooled), DIGITS):
        alike = len({value for values in some for value in values.tolist()}) == 1
        return Part(mean, 0.0, float(freedoms.sum()) * alike)
    freedom = float(freedoms @ variances) ** 2 / float(freedoms @ variances**2)
    return Part(mean, sqrt(pooled * scale), round(freedom, DIGITS))


def chance_above(mean: float, part: Part) -> float:
    """Return the chance that a mean of no effect is at least this."""
    if not part.error:  # nothing differs between sets, which shows any mean but zero
        return 0.0 if round(mean, DIGITS) > 0 else 1.0
    return float(special.stdtr(part.freedom, -mean / part.error))


def family(parts: Sequence[Part], margin: float, to_come: int = 0) -> list[Part]:
    """Return the parts of a family of tests with their verdicts, by Holm's correction.

    Fewer sets than give three degrees of freedom are not tested.
    """
    different = holm([part.p for part in parts], to_come)
    equal = holm([part.p_equal(margin) for part in parts], to_come)
    return [with_verdict(*one) for one in zip(parts, different, equal, strict=True)]


def with_verdict(part: Part, p: float | None, p_equal: float | None) -> Part:
    if p is None or p_equal is None:
        return part
    word = Verdict.EQUAL if p_equal <= ALPHA else Verdict.UNDECIDED
    if p <= ALPHA:
        word = Verdict.BETTER if part.mean > 0 else Verdict.WORSE
    return part._replace(holm=p, holm_equal=p_equal, verdict=word)


def judge(
    effects: Sequence[Effect], counted: Counted, further: Mapping[str, Rows] = MappingProxyType({})
) -> list[Judged]:
    """Return losses with their verdicts, those that joined first, and the best first.

    A row that is the baseline's own runs wherever it has run is not tested. `further` are effects
    by other choices by name, such as in points, in the unit of the first.
    """
    found: list[Judged] = []
    for joined in (True, False):
        rows = [one for one in effects if one.joined == joined and not one.same]
        found += judged_family(rows, counted, further, 0 if joined else counted.to_come)
    same = [one for one in effects if one.same]
    return [*found, *(Judged(one, mean_over(by_domain(one.by_set).values())) for one in same)]


def judged_family(
    rows: Sequence[Effect], counted: Counted, further: Mapping[str, Rows], to_come: int
) -> list[Judged]:
    margin, values = counted.scale.margin, {row.row: row.by_set for row in rows}
    over, each = verdicts(values, margin, to_come), by_domains(values, margin, to_come)
    others = dict(alternatives(values, margin, further, to_come))
    level = ALPHA / max(1, len(rows) + to_come)
    judged = (
        Judged(row, part := barred(row, over[row.row]), each[row.row], sees=seen(part, level))
        for row in rows
    )
    return sorted((with_doubts(one, others) for one in judged), key=lambda one: -one.over.mean)


def by_domains(values: Rows, margin: float, more: int) -> dict[str, dict[str, Part]]:
    """Return the verdict of each row in each domain: one family of tests, apart from the first."""
    places = [
        (row, domain, mean_over([some]))
        for row, effects in values.items()
        for domain, some in by_domain(effects).items()
    ]
    domains = len({domain for _, domain, _ in places})
    parts = family([part for *_, part in places], margin, more * domains)
    found = ((row, (domain, p)) for (row, domain, _), p in zip(places, parts, strict=True))
    return {row: dict(some) for row, some in grouped(found).items()}


def seen(part: Part, level: float) -> float:
    """Return the effect that is found four times in five with this spread; infinite without one."""
    return noncentrality(int(part.freedom), level) * part.error if part.freedom >= FEWEST else inf


def verdicts(values: Rows, margin: float, to_come: int, centre: Centre = fmean) -> dict[str, Part]:
    parts = [mean_over(by_domain(some).values(), centre) for some in values.values()]
    if centre is median:  # of normal effects its standard error is larger by this
        parts = [part._replace(error=part.error * sqrt(pi / 2)) for part in parts]
    return dict(zip(values, family(parts, margin, to_come), strict=True))


def barred(row: Effect, part: Part) -> Part:
    """Return the verdict, or undecided where failures forbid it.

    A row that failed on a set without a number there is neither better nor equal. One beside which
    the baseline has diverged is neither worse nor equal.
    """
    without = bool(row.failed - row.by_set.keys())
    forbidden = {Verdict.BETTER, Verdict.EQUAL} if without else set()
    forbidden |= {Verdict.WORSE, Verdict.EQUAL} if row.base_failed else set()
    return part._replace(verdict=Verdict.UNDECIDED) if part.verdict in forbidden else part


def alternatives(
    values: Rows, margin: float, further: Mapping[str, Rows], to_come: int
) -> Iterator[tuple[str, dict[str, Part]]]:
    """Yield the verdicts under each other choice: what is left out, or how a number is taken."""
    sets = dict.fromkeys(name for some in values.values() for name in some)
    domains = dict.fromkeys(domain for domain, _ in sets)
    for gone in sets:
        yield gone[1], verdicts(without(values, gone), margin, to_come)
    for domain in domains if len(domains) > 1 else ():
        gone_sets = [name for name in sets if name[0] == domain]
        yield domain, verdicts(without(values, *gone_sets), margin, to_come)
    yield "the mean", verdicts(values, margin, to_come, median)
    for name, other in further.items():
        asked = {row: some for row, some in other.items() if row in values}
        yield name, verdicts(asked, margin, to_come)


def without(values: Rows, *gone: SetName) -> Rows:
    return {
        row: {name: value for name, value in some.items() if name not in gone}
        for row, some in values.items()
        if some.keys() - {*gone}
    }


def with_doubts(one: Judged, others: Mapping[str, Mapping[str, Part]]) -> Judged:
    """Return a row with the choices that its verdict hangs on; none where nothing is tested.

    Undecided does not hang on a choice that leaves too few sets for a test.
    """
    mine, row = one.over.verdict, one.effect
    if mine == Verdict.UNTESTED:
        return one
    words = {k: barred(row, some[row.row]).verdict for k, some in others.items() if row.row in some}
    if mine == Verdict.UNDECIDED:
        words = {name: word for name, word in words.items() if word != Verdict.UNTESTED}
    turned = {name: word for name, word in words.items() if word != mine}
    return replace(one, hangs_on=turned, tried=len(words))


def judge_control(effect: Effect, asked: Effect, must: str, counted: Counted) -> Judged:
    """Return a control with its verdict, without a correction.

    What must be worse or better is asked in points over all sets, also those on which training
    gains nothing: only these can show that a comparison sees nothing. `below` asks for the sign
    alone, and so do too few sets, each for itself.
    """
    over, judged = (
        family([mean_over(by_domain(one.by_set).values())], counted.scale.margin)[0]
        for one in (effect if effect.by_set else asked, asked)
    )
    each = {name: mean_over([some]) for name, some in by_domain(effect.by_set).items()}
    sign = {"worse": -1, "below": -1, "better": 1}.get(must, 0)
    if must == "below":
        came_out = judged.mean < 0
    elif judged.verdict == Verdict.UNTESTED:
        came_out = all(value * sign >= 0 for value in asked.by_set.values())
    else:
        came_out = judged.verdict == must
    return Judged(effect, over, each, must=must, came_out=came_out)
