"""The test over seeds, which takes the sets as given: its numbers, its level and its power."""

import re
from dataclasses import replace
from itertools import product
from math import inf, sqrt
from pathlib import Path
from random import Random
from typing import get_args

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import helmert
from statsmodels.stats.weightstats import ttost_paired

from contrastbench.benchmarks.comparison.compare import compare
from contrastbench.benchmarks.comparison.effects import effects_by_set
from contrastbench.benchmarks.comparison.over_sets import over_sets, tell_of_sets
from contrastbench.benchmarks.comparison.places import Comparison
from contrastbench.benchmarks.comparison.set_tests import SET_TESTS, Effects, Measured
from contrastbench.benchmarks.comparison.statistics import holm
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.benchmarks.tables.schema import SetTestName
from counts import times
from made_records import made, small_table
from told import controls_text, few_text, of_row, over_sets_text

SEEDS = SET_TESTS["seeds"]
PAGE = Path(__file__).parents[3] / "docs" / "verdicts.md"
TEN = [(domain, f"{domain} {k}") for domain in ("graph", "tabular") for k in range(3)]
TEN += [(domain, f"{domain} {k}") for domain in ("image", "sentence") for k in range(2)]
LOSSES = 33
ADMITTED = 2 * sqrt(8)  # standard errors over eight seeds: two deviations, as admission asks for

Draws = dict[tuple[str, str], list[float]]  # the difference from the baseline with each seed


def line(
    row: str, where: tuple[str, str], draws: list[float], joined: bool = False, **more: str
) -> Comparison:
    """The comparison of a row on a set, from the difference with each seed."""
    found = Comparison(row, where[1], *where, tuple(range(len(draws))), joined=joined, **more)
    if not draws:
        return found
    std = float(np.std(draws, ddof=1)) if len(draws) > 1 else None
    return replace(found, difference=float(np.mean(draws)), differences=tuple(draws), std=std)


def effects_of(draws: Draws, gains: dict[str, float] | None = None) -> Effects:
    """The effects of one row from the differences with each seed."""
    return effects_by_set([line("new", *one) for one in draws.items()], gains or {})[0]


def drawn(seed: int) -> tuple[Draws, dict[str, float]]:
    """Draw differences on sets of one to four domains with two to nine seeds, and gains."""
    r = Random(seed)
    names = ("graph", "tabular", "image", "sentence")[: 1 + seed % 4]
    sets = [(name, f"{name} {k}") for name in names for k in range(r.randint(1, 4))]
    draws = {
        one: [r.gauss(0.5, r.choice([0.1, 1, 3])) for _ in range(r.randint(2, 9))] for one in sets
    }
    return draws, {name: r.uniform(2, 40) for _, name in sets}


def looped(draws: Draws, gains: dict[str, float]) -> tuple[float, float, float]:
    """Return estimate, standard error and freedom, domain by domain and seed by seed."""
    estimate = variance = shares = 0.0
    domains = {domain for domain, _ in draws}
    for name in domains:
        sets = [
            [100 * value / gains[one[1]] for value in values]
            for one, values in draws.items()
            if one[0] == name
        ]
        estimate += sum(sum(values) / len(values) for values in sets) / len(sets) / len(domains)
        seeds = min(map(len, sets))  # with which each set has run
        means = [sum(values[seed] for values in sets) / len(sets) for seed in range(seeds)]
        mean = sum(means) / seeds
        own = sum((value - mean) ** 2 for value in means) / (seeds - 1) / seeds / len(domains) ** 2
        variance += own
        shares += own**2 / (seeds - 1)
    return estimate, sqrt(variance), variance**2 / shares


def test_every_number_is_that_of_a_loop_over_sets_and_seeds() -> None:
    for seed in range(times(300)):
        draws, gains = drawn(seed)
        effects = effects_of(draws, gains)
        estimate, error, freedom = looped(draws, gains)
        t = stats.t(freedom)
        assert SEEDS.estimate(effects) == pytest.approx(estimate, rel=1e-9)
        assert SEEDS.p_value(effects) == pytest.approx(2 * t.sf(abs(estimate / error)), abs=1e-9)
        interval = stats.t.interval(0.9, freedom, estimate, error)
        assert SEEDS.interval(effects, 0.1) == pytest.approx(interval, rel=1e-7)
        one_sided = max(t.sf((estimate + 20) / error), t.cdf((estimate - 20) / error))
        assert SEEDS.p_equal(effects, 20.0) == pytest.approx(one_sided, abs=1e-9)
        found, whole = SEEDS.detectable(effects, 0.01) or inf, int(freedom + 1e-9)
        power = stats.nct.sf(stats.t.isf(0.005, whole), whole, found / error)
        assert power == pytest.approx(0.8, abs=1e-3)


def test_on_one_set_it_is_the_paired_t_test() -> None:
    for seed in range(times(300)):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 12))
        base = rng.normal(70, 3, n)
        row = base + rng.normal(0.5, 1, n)
        effects = effects_of({("graph", "A"): (row - base).tolist()})
        assert SEEDS.p_value(effects) == pytest.approx(stats.ttest_rel(row, base).pvalue, abs=1e-9)
        expected = ttost_paired(row, base, -0.8, 0.8)[0]
        assert SEEDS.p_equal(effects, 0.8) == pytest.approx(expected, abs=1e-9)


def families(
    rng: np.random.Generator, count: int, seeds: int, deviations: float, unequal: bool
) -> np.ndarray:
    """Return (count, LOSSES, 10, seeds) effects of losses that are all like the baseline.

    The true gain is so many deviations, its standard errors; where these are infinite it is one.
    """
    spread = np.exp(rng.normal(0, 1, (count, 1, 10, 1)) * unequal)
    base, untrained = (rng.normal(size=(count, 1, 10, seeds)) * spread for _ in range(2))
    differences = rng.normal(size=(count, LOSSES, 10, seeds)) * spread - base
    gains = np.ones((count, 1, 10, 1))
    if deviations < inf:
        gains = deviations * sqrt(2 / seeds) * spread
        gains = gains + (base - untrained).mean(axis=-1, keepdims=True)
    return differences / gains


def as_effects(values: np.ndarray, sets: list[tuple[str, str]] = TEN) -> Effects:
    """The effects of one row on these sets, (sets, seeds)."""
    return {
        where: Measured(sum(one) / len(one), dict(enumerate(one)))
        for where, one in zip(sets, values.tolist(), strict=True)
    }


def exactly(spread: np.ndarray, seeds: int) -> np.ndarray:
    """(10, seeds) values without a mean and with this deviation, uncorrelated within domains."""
    rows = helmert(seeds)[[int(name[-1]) for _, name in TEN]]
    return rows * sqrt(seeds - 1) * spread[:, None]


@pytest.mark.parametrize(
    ("seeds", "deviations", "unequal", "least"),
    [
        (8, inf, False, 0.015),
        (8, inf, True, 0.015),
        (8, ADMITTED, True, 0.015),  # the gain is estimated from the same runs
        (3, inf, False, 0.0),  # few seeds: the test errs on the safe side
    ],
    ids=["equal", "unequal", "estimated gain", "few seeds"],
)
def test_one_family_of_33_losses_in_twenty_has_a_verdict_without_an_effect(
    seeds: int, deviations: float, unequal: bool, least: float
) -> None:
    """Losses share the baseline's runs, so that Holm's correction leaves less than 5 %."""
    rng, count = np.random.default_rng(seeds), times(1000)
    wrong = [
        min(holm([SEEDS.p_value(as_effects(one)) for one in family])) <= 0.05
        for family in families(rng, count, seeds, deviations, unequal)
    ]
    low, high = (level + side * (level / count) ** 0.5 for level, side in ((least, -3), (0.05, 3)))
    assert low <= np.mean(wrong) <= high


def in_the_domains_of_standard_3(
    rng: np.random.Generator, count: int, losses: int, true: float
) -> list[list[list[Effects]]]:
    """Families with this effect, by loss and domain, with each domain's own seeds.

    The baseline's runs are shared, and the training gain is estimated from them. Sentence sets
    share half their noise.
    """
    found: list[list[list[Effects]]] = [[[] for _ in range(losses)] for _ in range(count)]
    for domain, seeds in {"image": 6, "tabular": 8, "graph": 12, "sentence": 4}.items():
        noise = 5 * rng.normal(size=(count, losses + 2, 2, seeds))
        if domain == "sentence":
            noise[:, :, 1] = (noise[:, :, 0] + noise[:, :, 1]) / sqrt(2)
        rows, base, untrained = np.split(noise, [losses, losses + 1], axis=1)
        gains = 100 + (base - untrained).mean(axis=-1, keepdims=True)
        sets = [(domain, f"{domain} {k}") for k in range(2)]
        for family, effects in zip(found, 100 * (rows + true - base) / gains, strict=True):
            for loss, row in zip(family, effects, strict=True):
                loss.append(as_effects(row, sets))
    return found


def test_in_the_domains_of_standard_3_one_family_in_twenty_has_a_wrong_verdict() -> None:
    rng, count, losses = np.random.default_rng(3), times(400, least=100), 10
    noise = 3 * (0.05 / count) ** 0.5
    alike = in_the_domains_of_standard_3(rng, count, losses, 0.0)
    tests = [[SEEDS.p_value(one) for loss in family for one in loss] for family in alike]
    assert 0.01 - noise / 2 <= np.mean([min(holm(ps)) <= 0.05 for ps in tests]) <= 0.05 + noise
    at_the_margin = in_the_domains_of_standard_3(rng, count, losses, -10.0)
    equal = [
        min(holm([max(SEEDS.p_equal(one, 10.0) for one in loss) for loss in family])) <= 0.05
        for family in at_the_margin
    ]
    assert np.mean(equal) <= 0.05 + noise, "equal needs each domain"


@pytest.mark.parametrize("unequal", [False, True])
def test_the_stated_effect_is_found_four_times_in_five(unequal: bool) -> None:
    rng, count, seeds = np.random.default_rng(0), times(10_000), 8
    spread = np.exp(rng.normal(0, 1, 10)) if unequal else np.ones(10)
    noise = rng.normal(size=(count, 10, seeds)) * spread[:, None]
    level = 0.05 / LOSSES
    true = SEEDS.detectable(as_effects(exactly(spread, seeds)), level) or inf
    found = [SEEDS.p_value(as_effects(one + true)) <= level for one in noise]
    assert np.mean(found) == pytest.approx(0.8, abs=0.03 + 3 * 0.4 / count**0.5)


def test_without_seeds_or_a_spread_it_says_what_is_sure() -> None:
    one_seed = effects_of({TEN[0]: [1.0, 1.2, 0.9], TEN[1]: [1.0]})
    assert (SEEDS.p_value(one_seed), SEEDS.p_equal(one_seed, 9.0)) == (1.0, 1.0)
    assert (SEEDS.smallest_p(one_seed), SEEDS.detectable(one_seed, 0.05)) == (1.0, None)
    assert SEEDS.interval(one_seed, 0.05) == (-inf, inf)
    alike = effects_of({TEN[0]: [0.1 + 0.2, 0.3], TEN[1]: [0.3, 0.3]})
    assert (SEEDS.p_value(alike), SEEDS.smallest_p(alike)) == (1.0, 1.0), "by chance, perhaps"
    zero = effects_of({TEN[0]: [0.0, 0.0], TEN[1]: [0.0, 0.0]})
    assert (SEEDS.p_value(zero), SEEDS.p_equal(zero, 1.0)) == (1.0, 0.0)
    lost = effects_by_set([diverged(one) for one in TEN], gains())[0]
    assert (SEEDS.p_value(lost), SEEDS.p_equal(lost, 10.0)) == (0.0, 1.0)
    assert (SEEDS.interval(lost, 0.05), SEEDS.detectable(lost, 0.05)) == ((-100.0, -100.0), 0.0)


def test_a_failure_loses_the_gain_without_an_error() -> None:
    lines = [diverged(TEN[0]), line("new", TEN[1], [1.0, 2.0, 3.0])]
    effects, failed = effects_by_set(lines, gains())
    assert (failed, SEEDS.estimate(effects)) == ({TEN[0]}, pytest.approx((-100 + 20) / 2))
    half = stats.t.isf(0.025, 2) * (10 / sqrt(3)) / 2
    assert SEEDS.interval(effects, 0.05) == pytest.approx((-40 - half, -40 + half))


def test_folds_count_by_the_mean_of_their_seed(tmp_path: Path) -> None:
    table = small_table(
        name="folds",
        title="t",
        source="s",
        decimals=1,
        domain="graph",
        metric="accuracy",
        columns={"A": {"dataset": "MUTAG"}},
        rows=[{"name": "new", "loss": "adnce"}, {"name": "base", "loss": "infonce"}],
    )
    folds = {"base": ([80.0, 90.0], [82.0, 91.0]), "new": ([81.0, 93.0], [86.0, 99.0])}
    for row, by_seed in folds.items():
        for seed, values in enumerate(by_seed):
            work = table.places[row, "A"].work
            mean = {"accuracy": sum(values) / 2}
            made(tmp_path, work, seed, metrics=mean, details={"folds": values})
    found, _ = effects_by_set(compare(resolve(table, None, tmp_path)).places, {})
    assert found == {("graph", "MUTAG"): Measured(4.0, {0: 2.0, 1: 6.0})}


def gains() -> dict[str, float]:
    return dict.fromkeys([name for _, name in TEN], 10.0)


def diverged(where: tuple[str, str]) -> Comparison:
    """A place where each seed has diverged."""
    return replace(line("new", where, [], verdict="failed"), lost=(0, 1, 2))


def lines(row: str, mean: float, seeds: int = 4, joined: bool = False) -> list[Comparison]:
    """A row on ten sets where its difference varies over seeds by about 0.2 points."""
    rng = np.random.default_rng(len(row))
    return [
        line(row, where, (mean + 0.2 * rng.normal(size=seeds)).tolist(), joined) for where in TEN
    ]


NONE = {"none": "worse"}


@pytest.mark.parametrize(
    ("means", "spread", "verdict"),
    [
        ((0.9, -0.9), 0.1, "equal"),
        ((1.1, -1.1), 0.1, "undecided"),  # a tenth of the gain is 1.0
        ((1.1, -1.1), 1.3, "equal"),  # neither set is shown to be beyond the margin
        ((2.0, 0.9), 0.1, "better"),
        ((2.0, -0.9), 0.1, "better"),
        ((2.0, -1.1), 0.1, "undecided"),
        ((-2.0, 1.1), 0.1, "undecided"),
    ],
)
def test_in_a_domain_sets_that_are_shown_to_oppose_do_not_cancel(
    means: tuple[float, float], spread: float, verdict: str
) -> None:
    noise = helmert(6)[:2] * sqrt(5) * spread  # exactly this deviation, and no mean
    mine = [
        line("mine", where, (mean + one).tolist())
        for where, mean, one in zip(TEN, means, noise, strict=False)
    ]
    found = over_sets([*lines("none", -10.0), *mine], ["none"], NONE, test=SEEDS)
    assert found.contestants[0].verdict == verdict


def test_a_loss_that_joins_alone_sees_what_it_sees_without_the_others() -> None:
    rows = [*lines("none", -10.0), *lines("good", 1.0)]
    alone, among = (
        over_sets(rows, ["none"], NONE, test=SEEDS, expected=["good", *others])
        for others in ((), ("a", "b", "c"))
    )
    assert among.least_seen > alone.least_seen == among.seen_by(1) > 0
    assert among.seen_by(4) == among.least_seen


def test_losses_to_come_count_in_each_correction() -> None:
    rows = [*lines("none", -10.0), *[one for one in lines("good", 0.3) if one.domain == "graph"]]
    both = [
        over_sets(rows, ["none"], NONE, test=SEEDS, expected=["good", *others])
        for others in ((), ("a", "b"))
    ]
    assert [found.level for found in both] == [0.05, 0.05 / 3]
    alone, among = (found.contestants[0] for found in both)
    assert 0 < alone.holm_equal < 1 / 3
    assert among.holm_equal == pytest.approx(3 * alone.holm_equal)
    for one, level in ((alone, 0.05), (among, 0.05 / 3)):
        assert one.detectable == SEEDS.detectable(one.by_set, level) > 0


@pytest.mark.parametrize(
    ("means", "told"),
    [([1, 2, 4], True), ([1, 2], False), ([0, 0, 1, 2], False), ([0, 1, 2, 4], True)],
)
def test_three_sets_that_differ_have_an_interval_over_sets(means: list[float], told: bool) -> None:
    effects = {("graph", str(k)): Measured(mean) for k, mean in enumerate(means)}
    assert tell_of_sets(effects) == told


def test_one_degree_of_freedom_has_no_interval_over_sets() -> None:
    effects = {(name[0], name): Measured(len(name)) for name in ("a", "ab", "bcd")}
    assert not tell_of_sets(effects)


def test_the_answer_names_losses_that_have_run_on_fewer_sets() -> None:
    rows = [*lines("none", -10.0), *lines("good", 1.0), *lines("half", 0.0)[:5]]
    text = over_sets_text(over_sets(rows, ["none"], NONE, test=SEEDS))
    assert "half has run on 5 of 10 sets: its verdict is on these alone." in text
    rows += lines("two", 0.0)[:2]
    text = over_sets_text(over_sets(rows, ["none"], NONE, test=SEEDS))
    assert "run on 2 to 5 of 10 sets: their verdicts are on these alone." in text


def test_the_answer_speaks_of_these_sets_alone() -> None:
    rows = [*lines("none", -10.0), *lines("good", 1.0), *lines("bad", -1.0), *lines("same", 0.0)]
    found = over_sets(rows, ["none"], NONE, test=SEEDS)
    assert controls_text(found, rows) == "Controls: 1 worse than infonce, as must be."
    text = over_sets_text(found)
    assert re.fullmatch(
        r"On these 10 data sets \(t-test over seeds, Holm\) better than infonce: good "
        r"\(graph \+\d+, .* %\); worse: bad \(graph -\d+, .* -\d+ %\); equal "
        r"within 10 % of the training gain in each domain: same \([+-]?\d %\)\. An effect of "
        r"\d+ % of the training gain would have been seen on these sets in each domain four times "
        r"in five for the median loss of 3\. Other samples of these sets, or another set, may "
        r"differ\.",
        text,
    ), text
    assert few_text(found) == ""
    mine = [*lines("none", -10.0), *lines("mine", 1.0, joined=True)]
    said = of_row("mine", mine, over_sets(mine, ["none"], NONE, test=SEEDS))
    assert said.startswith("mine against infonce is better on graph (+")
    assert ", on these 10 data sets: mean effect +" in said


def test_too_few_seeds_are_said() -> None:
    rows = [*lines("none", -10.0, 1), *lines("good", 1.0, 1), *lines("mine", 1.0, 1, joined=True)]
    found = over_sets(rows, ["none"], NONE, test=SEEDS)
    assert not found.decides
    assert few_text(found) == (
        "Too few seeds for a verdict on these 10 data sets: give each set two at least."
    )
    assert next(one for one in found.effects if one.must).verdict == "too few seeds"
    assert few_text(over_sets(rows, ["none"], NONE)) == ""
    rows += lines("more", 1.0)
    text = of_row("mine", rows, over_sets(rows, ["none"], NONE, test=SEEDS))
    assert text.startswith(
        "mine has no verdict against infonce on these 10 data sets, too few seeds for any: "
    )


SUITE = """\
seeds: 0-2
controls: [untrained]
quick: {datasets: [MUTAG, DD], seeds: 0-1}
test: seeds
domains: {graph: {datasets: [MUTAG, DD, AIDS]}}
losses: [infonce, adnce]
"""


def filled(folder: Path, seeds: int = 3) -> str:
    """Write a suite, and records in which adnce is seven points above infonce."""
    name = str(folder / "mine.yaml")
    Path(name).write_text(SUITE)
    table, rng = load_table(name), np.random.default_rng(0)
    for row in table.rows:
        mean = 60.0 + 7 * (row.name == "adnce") - 20 * bool(row.control)
        for column, seed in product(table.columns, range(seeds)):
            score = mean + 0.2 * rng.normal()
            made(folder, table.places[row.name, column].work, seed, metrics={"accuracy": score})
    return name


HERE = "On these 3 data sets (t-test over seeds, Holm) better than infonce: adnce (+"


def test_a_file_names_its_test_over_sets_and_single_sets_keep_theirs(bench, tmp_path: Path) -> None:
    words = ["compare", filled(tmp_path), "--results", str(tmp_path)]
    code, out, _ = bench(*words, "--all")
    assert (code, HERE in out, "or another set, may differ." in out) == (0, True, True)
    assert HERE.replace("3", "2", 1) in bench(*words, "--quick")[1]


def test_an_unknown_test_is_one_line(bench, tmp_path: Path) -> None:
    name = filled(tmp_path, seeds=1)
    code, _, err = bench("compare", name, "--test", "seed", "--results", str(tmp_path))
    assert (code, "unknown test 'seed': did you mean 'seeds'" in err) == (2, True)
    Path(name).write_text(SUITE.replace("test: seeds", "test: seed"))
    code, _, err = bench("compare", name, "--results", str(tmp_path))
    assert code == 2
    assert re.search(r"mine\.yaml:4: test='seed': .*'wilcoxon', 't' or 'seeds'", err), err


def test_files_can_name_every_test() -> None:
    assert [*SET_TESTS] == [*get_args(SetTestName)]


def test_the_pages_table_says_how_many_seeds_see_a_tenth_of_the_gain() -> None:
    table = re.search(r"\| deviation of a difference.*?\n\n", PAGE.read_text(), re.DOTALL)
    assert table
    header, _, *rows = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table[0].strip().splitlines()
    )
    counts = [int(cell.split()[0]) for cell in header[1:]]
    for deviation, *cells in rows:
        spread = float(deviation.split()[0])
        for sets, seeds in zip(counts, map(int, cells), strict=True):
            assert seen(spread, sets, seeds) <= 10 < seen(spread, sets, seeds - 1), (spread, sets)


def seen(spread: float, sets: int, seeds: int) -> float:
    """Return the effect that is found in 36 tests over sets of four domains.

    The mean over the sets of a domain stands for them.
    """
    means = helmert(max(2, seeds))[0] * sqrt(seeds - 1) * spread / sqrt(sets / 4)
    one = Measured(0.0, dict(enumerate(means.tolist()[:seeds])))
    names = ("graph", "tabular", "image", "sentence")
    found = SEEDS.detectable({(name, name): one for name in names}, 0.05 / 36)
    return inf if found is None else found
