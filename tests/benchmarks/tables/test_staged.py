"""The staged search, by simulation: scores are made up, nothing is trained."""

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, stdev
from types import SimpleNamespace

import pytest

from chosen import chosen, trials
from contrastbench.benchmarks.comparison.verdicts import compare
from contrastbench.benchmarks.records.experiment import Experiment, records_of
from contrastbench.benchmarks.records.merge import merge_records
from contrastbench.benchmarks.report.words import said
from contrastbench.benchmarks.sweeps import plan
from contrastbench.benchmarks.sweeps.costs import Costs
from contrastbench.benchmarks.tables import hypercube, scores, staged
from contrastbench.benchmarks.tables.choices import choice_lines
from contrastbench.benchmarks.tables.formats import render_table
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.benchmarks.tables.rows import Row, Setting
from contrastbench.benchmarks.tables.schema import Tune
from contrastbench.benchmarks.tables.searches import EVERY_TRIAL, Staged
from contrastbench.benchmarks.tables.staged import Space, of_folds
from contrastbench.benchmarks.tables.table import Table
from contrastbench.losses import LOSSES
from contrastbench.losses.pairing import BOTH_VIEWS, OTHER_VIEW, SAME_CLASS, WHOLE_ROW
from contrastbench.losses.reduction import simplest
from contrastbench.losses.spec import LossSpec
from counts import dice, times
from made_records import made

PAIRINGS = (BOTH_VIEWS, OTHER_VIEW, SAME_CLASS, WHOLE_ROW)
Truth = Callable[[Setting], float]


def space(name: str, pairing=BOTH_VIEWS, trials: int = 12, **params: object) -> Space:
    loss = LossSpec(name, params)
    return Space(loss, simplest(loss, pairing), 0.1, trials)


def whole(where: Space, truth: Truth) -> list[Setting]:
    """All trials of a search whose scores are known at once."""
    known = SimpleNamespace(of=lambda tried: [truth(one) for one in tried])
    return [*Staged(Setting({}), where).ask(known).tried]


def best(tried: Sequence[Setting], truth: Truth) -> Setting:
    return max(tried, key=truth)


@pytest.mark.parametrize("trials", [1, 2, 3, 5, 6, 9, 12, 20])
@pytest.mark.parametrize("pairing", PAIRINGS)
def test_every_loss_has_the_same_budget(pairing, trials: int) -> None:
    """Without a number to choose there are few settings in all, and three rates beside them."""
    settings = {"dar": 4, "free": 1}
    for name in LOSSES:
        where = space(name, pairing, trials)
        tried = whole(where, lambda one: 0.0)
        most = settings[name] + where.rates if name in settings else trials
        assert len(tried) == min(trials, most), name
        assert len({str(one) for one in tried}) == len(tried), "no trial is there twice"
        if name not in settings:
            assert len(of_folds(where)) == trials, name


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_a_loss_can_be_had_at_each_setting(pairing) -> None:
    for name in LOSSES:
        for one in [*whole(space(name, pairing), lambda one: 0.0), *of_folds(space(name, pairing))]:
            LossSpec(one.loss, one.params).check()


def test_the_first_trials_of_a_family_are_the_baselines_own() -> None:
    base = staged.first_stage(space("infonce"))
    for name in ("debiased", "hcl", "rince", "adnce", "attentionnce", "npair"):
        assert staged.first_stage(space(name)) == base, name
        assert of_folds(space(name))[: len(base)] == base, name
    assert staged.first_stage(space("decoupled", OTHER_VIEW)) == base
    assert {one.loss for one in staged.first_stage(space("cpc"))} == {"decoupled"}
    assert {one.loss for one in staged.first_stage(space("nwj"))} == {"nwj"}
    assert base[0] == Setting({}, "infonce"), "the defaults come first"


def test_stages() -> None:
    """Temperature 0.15 and a learning rate of 0.2 are best, and the family's own are worse."""

    def truth(one: Setting) -> float:
        apart = abs(math.log(staged.value_of(one) / 0.15))
        return -apart - (one.loss != "infonce") - abs(one.recipe.get("lr", 0.1) - 0.2)

    tried = whole(space("debiased"), truth)
    first, second, third = tried[:6], tried[6:10], tried[10:]
    (temperature,) = {staged.value_of(one) for one in second}
    assert temperature == staged.value_of(best(first, truth))
    assert second[0].params == {"temperature": temperature}, "its defaults come first"
    assert sorted(one.params["tau_plus"] for one in second[1:]) == [0.05, 0.15, 0.25]
    assert [one.recipe for one in third] == [{"lr": 0.05}, {"lr": 0.2}]
    assert best(tried, truth) == Setting({"temperature": temperature}, "infonce", {"lr": 0.2})
    near = [staged.value_of(one) for one in whole(space("infonce"), truth)[6:10]]
    below, above = sorted(near)[:2], sorted(near)[2:]
    assert max(below) < temperature < min(above), "temperatures around the best"


def test_given_parameters_stay() -> None:
    tried = whole(space("hcl", tau_plus=0.1), lambda one: 0.0)
    assert all(one.params["tau_plus"] == 0.1 for one in tried)
    assert {one.loss for one in tried} == {"debiased", "hcl"}
    tried = whole(space("debiased", temperature=0.2), lambda one: 0.0)
    assert {staged.value_of(one) for one in tried} == {0.2}
    tried = whole(space("infonce + 0.5*dar"), lambda one: 0.0)
    assert {one.loss for one in tried} == {"infonce + 0.5*dar"}
    assert len(tried) == 12


def test_of_equal_trials_the_simpler_loss_is_chosen() -> None:
    scores = [50.0] * 12
    tried = whole(space("adnce"), lambda one: 50.0)
    assert tried[scores.index(max(scores))] == Setting({}, "infonce")


def test_diverged_trials_lose_and_end_nothing() -> None:
    """The limit diverges at every temperature but one, the loss itself never does."""

    def truth(one: Setting) -> float:
        return 50.0 if staged.value_of(one) > 0.6 else -math.inf

    tried = whole(space("rince"), truth)
    assert len(tried) == 12
    assert staged.value_of(best(tried, truth)) > 0.6
    assert len(whole(space("rince"), lambda one: -math.inf)) == 12


def test_a_stage_follows_a_whole_one() -> None:
    where, tried = space("hcl"), whole(space("hcl"), lambda one: 0.0)
    for known in range(13):

        def scores(asked: Sequence[Setting], known: int = known) -> list[float | None]:
            return [0.0 if i < known else None for i in range(len(asked))]

        found = Staged(Setting({}), where).ask(SimpleNamespace(of=scores))
        size = next(size for size in (6, 10, 12) if known < size or size == 12)
        assert found.tried == tried[:size]
        assert found.more == 12 - size


def made_up(seed: int, spread: float) -> Truth:
    """A true score for each setting: smooth in the temperature, any in a loss's own parameters.

    The sharpest peak falls by two points where the temperature is twice the best one.
    """
    r = random.Random(seed)
    peak, sharp = math.exp(r.uniform(math.log(0.05), 0)), r.uniform(0, 4)

    def truth(one: Setting) -> float:
        own = {k: v for k, v in one.params.items() if k != "temperature"}
        value = -sharp * math.log(staged.value_of(one) / peak) ** 2
        rate = abs(math.log(one.recipe.get("lr", 0.1) / 0.1)) * random.Random(seed).uniform(-1, 0.3)
        if one.loss != "infonce":
            value -= spread * random.Random(f"{seed} {sorted(own.items())}").random()
        return value + rate

    return truth


@pytest.mark.parametrize("name", ["debiased", "hcl", "adnce", "rince"])
def test_a_family_never_loses_much_to_the_baseline_that_it_contains(name: str) -> None:
    """Its own parameters cost up to 43 points; noise has a deviation of 1, over two seeds.

    A hypercube of twelve points loses points on average, because it never sees the limit.
    """
    lost, lost_before, r = [], [], dice(name)
    for seed in range(times(1000, least=100)):
        truth, noise = made_up(seed, 43), dict[str, float]()

        def score(one: Setting, truth: Truth = truth, noise: dict[str, float] = noise) -> float:
            return truth(one) + noise.setdefault(str(one), r.gauss(0, 1 / math.sqrt(2)))

        base = truth(best(whole(space("infonce"), score), score))
        lost.append(base - truth(best(whole(space(name), score), score)))
        points = hypercube.hypercube_settings(LossSpec(name), 12)
        before = best([Setting(point, name) for point in points], score)
        lost_before.append(base - truth(before))
    error = stdev(lost) / math.sqrt(len(lost))
    assert fmean(lost) < 0.5 + 3 * error, "no more than noise chooses wrongly"
    assert sum(loss > 4 for loss in lost) <= 0.01 * len(lost), "four deviations of the noise"
    assert fmean(lost_before) > 2, "the simulation can see what a hypercube loses"


TABLE = Table(
    name="my",
    title="t",
    source="s",
    decimals=1,
    domain="tabular",
    columns={"A": {"dataset": "digits-table"}},
    rows=[
        {"name": "infonce", "loss": "infonce"},
        {"name": "debiased", "loss": "debiased"},
        {"name": "none", "loss": "none"},
    ],
    tune=Tune(seeds=[100, 101], search="staged"),
    seeds=[0, 1, 2],
    sweep=True,
)
BASE, FAMILY, NONE = TABLE.rows


def asked(results: Path, *rows: Row) -> plan.Plan:
    """What a sweep asks for."""
    places = [place for place in plan.runnable_places(TABLE) if not rows or place.row in rows]
    return plan.Plan(TABLE, places, TABLE.seeds, "validation", results)


def publish(
    results: Path, work: Experiment, seed: int, truth: Callable[[Experiment], float], noise: float
) -> None:
    """A record whose scores depend on the experiment and the seed alone, as a training's do."""
    r = random.Random(f"{noise} {work.key} {seed}")
    validation, accuracy = (truth(work) + r.gauss(0, 1) * min(noise, 1) for _ in range(2))
    made(results, work, seed, metrics={"accuracy": accuracy}, details={"validation": validation})


def sweep(
    results: Path, truth: Callable[[Experiment], float], noise: float = 0.0, most: int = 10**6
) -> int:
    """Make the records of all rounds of a sweep, until so many are made; how many were."""
    count = 0
    while tasks := [task for task in asked(results).tasks() if task.state == "missing"]:
        for task in tasks[: most - count]:
            publish(results, task.experiment, task.seed, truth, noise)
            count += 1
        if count == most:
            break
    return count


def worse(work: Experiment) -> float:
    """InfoNCE at temperature 0.33 is best, whatever is debiased is worse."""
    value = work.loss.complete.params.get("temperature", 9.0)
    return 80 - abs(value - 0.33) - 5 * (work.loss.name != "infonce")


def test_a_sweep_has_stages_and_shares_the_cells_of_the_limit(tmp_path: Path) -> None:
    first = asked(tmp_path)
    assert len(first.tasks()) == 3 + 6 * 2, "the untrained encoder, and one stage for both"
    cells = sum(count for _, count in first.later_trials())
    assert cells == 2 * 6 * 2
    text = "\n".join(plan.plan_lines(first, Costs(tmp_path)))
    assert "and then up to 24 cells of later stages" in text
    assert "and then 6 cells with what these choose" in text
    assert "in all 45 cells" in text
    trials = 6 + (4 + 2) * 2  # those of the first stage are shared
    assert sweep(tmp_path, worse) == 3 + trials * 2 + 3 * 2
    assert not asked(tmp_path).undecided()
    assert asked(tmp_path).later_trials() == []


def test_what_chose_its_limit_says_so_and_has_the_baselines_cells(tmp_path: Path) -> None:
    """Where the best temperature is one of the first stage, both rows have the same cells."""
    sweep(tmp_path, lambda work: worse(work) - 5 * tried_later(work))
    resolved = resolve(TABLE, None, tmp_path)
    limit = "chose its limit: infonce(temperature=0.41), the best of 12"
    assert f"debiased on A: {limit}" in list(choice_lines(resolved))
    assert "infonce on A: temperature=0.41, the best of 12" in list(choice_lines(resolved))
    work = [line.cells["A"].work for line in resolved.lines]
    assert work[0].key == work[1].key
    text = render_table(resolved, "md")
    assert "| infonce | 79." in text
    assert "which no shown number is of (the temperature first, of the simplest loss" in text


def test_an_answer_names_losses_whose_effect_is_that_of_the_search(tmp_path: Path) -> None:
    """The baseline finds a better temperature in a later stage, the other loss does not."""
    sweep(tmp_path, worse)
    note = "On each set debiased chose infonce's own loss, if not its settings: "
    assert said(compare(resolve(TABLE, None, tmp_path)), "tuning") == [
        f"{note}such effects are those of the search."
    ]


def tried_later(work: Experiment) -> bool:
    """Whether a setting is of no first stage."""
    first = {str(one.params) for one in staged.first_stage(space("infonce"))}
    return str(work.loss.params) not in first


def test_a_search_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    """However many records there were, the same trials follow."""
    sweep(tmp_path / "whole", worse, noise=0.5)
    wanted = [[one.key for one in all_trials(tmp_path / "whole", row)] for row in (BASE, FAMILY)]
    for most in (1, 14, 30):
        results = tmp_path / str(most)
        sweep(results, worse, noise=0.5, most=most)
        for row, keys in zip((BASE, FAMILY), wanted, strict=True):
            known = [one.key for one in all_trials(results, row)]
            assert known == keys[: len(known)]
        sweep(results, worse, noise=0.5)
        assert [[one.key for one in all_trials(results, row)] for row in (BASE, FAMILY)] == wanted


def all_trials(results: Path, row: Row) -> list[Experiment]:
    return trials(TABLE, row, "A", results)


def test_two_machines_records_make_one_search(tmp_path: Path) -> None:
    """Neither has a whole first stage; merged they have, and the second stage is known."""
    machines = [tmp_path / "one", tmp_path / "other"]
    for i, task in enumerate(asked(tmp_path, FAMILY).tasks()):
        publish(machines[i % 2], task.experiment, task.seed, worse, 0.0)
    for machine in machines:
        assert len(all_trials(machine, FAMILY)) == 6
        assert chosen(TABLE, FAMILY, "A", machine) == "0 of 12 trials are done"
    merge_records(machines, tmp_path / "merged")
    assert len(all_trials(tmp_path / "merged", FAMILY)) == 10
    assert chosen(TABLE, FAMILY, "A", tmp_path / "merged") == "6 of 12 trials are done"


def test_records_of_two_losses_are_never_mixed(tmp_path: Path) -> None:
    """A record without `tau_plus` is of another loss, not of an older release."""
    base = Experiment("tabular", "digits-table", LossSpec("infonce"), {})
    family = Experiment("tabular", "digits-table", LossSpec("debiased"), {})
    made(tmp_path, base, 0)
    made(tmp_path, family, 1)
    found = records_of([base, family], tmp_path)
    assert [[r["seed"] for r in found if one.matches(r)] for one in (base, family)] == [[0], [1]]


def test_every_trial_diverged(tmp_path: Path) -> None:
    for _ in range(3):
        for task in asked(tmp_path, FAMILY).tasks():
            if task.state == "missing":
                made(tmp_path, task.experiment, task.seed, status="diverged")
    assert len(all_trials(tmp_path, FAMILY)) == 12
    assert chosen(TABLE, FAMILY, "A", tmp_path) == EVERY_TRIAL
    assert not asked(tmp_path, FAMILY).undecided()


def test_confirmed_values_have_no_optimism_where_all_is_noise(tmp_path: Path) -> None:
    """Every setting is worth 50; the best trial looks better, what is confirmed does not."""
    shown, looked = [], []
    for i in range(times(60, least=6)):
        results = tmp_path / str(i)
        sweep(results, lambda work: 50.0, noise=1 + i)
        resolved = resolve(TABLE, None, results)
        for line in resolved.lines[:2]:
            records = line.cells["A"].records.values()
            shown += [one["metrics"]["accuracy"] for one in records]
        tried = all_trials(results, FAMILY)
        looked.append(max(scores.scores_of(tried, TABLE.tune.seeds, results)))
    assert abs(fmean(shown) - 50) < 4 / math.sqrt(len(shown) / 2), "rows may share their cells"
    assert fmean(looked) > 50.5, "the simulation has optimism to find"


def test_where_folds_turn_each_chooses_among_the_same_trials(tmp_path: Path) -> None:
    table = TABLE.model_copy(
        update={"domain": "graph", "columns": {"A": TABLE.columns["A"].model_copy()}}
    )
    table.columns["A"].__dict__["dataset"] = "MUTAG"
    places = [place for place in plan.runnable_places(table) if place.row in (BASE, FAMILY)]
    wanted = plan.Plan(table, places, [0], "validation", tmp_path)
    assert len(wanted.tasks()) == 12 + 6, "six are the baseline's own"
    assert wanted.later_trials() == []
    for task in wanted.tasks():
        loss = task.experiment.loss
        inner = [90.0 * (loss == LossSpec("infonce")), 60.0 + (loss.name != "infonce")]
        details = {"folds": [70.0, 80.0], "inner": inner}
        made(tmp_path, task.experiment, 0, metrics={"accuracy": 75.0}, details=details)
    resolved = resolve(table, None, tmp_path)
    assert "debiased on A: of 2 folds 1 chose infonce, 1 chose debiased" in list(
        choice_lines(resolved)
    )
    assert "infonce on A: of 2 folds 2 chose the defaults" in list(choice_lines(resolved))
    assert "(the same temperatures of the simplest loss" in resolved.rule


def test_a_row_that_is_given_whole_has_no_trials() -> None:
    fixed = Row(name="f", loss="infonce", params={"temperature": 0.2})
    assert trials(TABLE.model_copy(update={"rows": [fixed]}), fixed, "A") == []
