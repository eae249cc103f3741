"""The staged search, by simulation: scores are made up, nothing is trained."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.report.tables import choice_lines, render_table
from contrastbench.benchmarks.sweeps import plan
from contrastbench.benchmarks.sweeps.costs import Costs
from contrastbench.benchmarks.tables import staged
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.benchmarks.tables.schema import Row, Setting, Tune
from contrastbench.benchmarks.tables.scores import tiny_recipe
from contrastbench.benchmarks.tables.searches import Staged
from contrastbench.benchmarks.tables.staged import Space, of_folds
from contrastbench.losses import LOSSES
from contrastbench.losses.pairing import BOTH_VIEWS, OTHER_VIEW, SAME_CLASS, WHOLE_ROW
from contrastbench.losses.ranges import TEMPERATURE, Number
from contrastbench.losses.reduction import simplest
from contrastbench.losses.spec import LossSpec
from made_records import made, small_table

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


@pytest.mark.parametrize("trials", [6, 12])
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


def test_temperatures_between_reach_from_end_to_end_of_the_range() -> None:
    where = space("infonce")
    tried, found = staged.first_stage(where), staged.temperatures_between(where)
    assert len(tried) + len(found) == 12
    temperatures = [one.params["temperature"] for one in found]
    assert (min(temperatures), max(temperatures)) == pytest.approx(TEMPERATURE.tune)


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


@pytest.mark.parametrize(("tune", "sign"), [((0.5, 5), 1), ((0.05, 0.5), -1)])
def test_temperatures_near_an_end_of_the_range_are_all_on_its_inner_side(
    tune: tuple[float, float], sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default, 0.5, is the end and the best."""
    range_ = Number(low=0, tune=tune, log=True)
    monkeypatch.setattr(staged, "temperature_range", lambda _: range_)
    tried = whole(space("infonce"), lambda one: -abs(staged.value_of(one) - 0.5))
    near = [sign * staged.value_of(one) for one in tried[6:10]]
    others = [sign * staged.value_of(one) for one in tried[1:6]]
    assert all(sign * 0.5 < value < min(others) for value in near)
    assert len(set(near)) == 4


def test_a_stage_follows_a_whole_one() -> None:
    where, tried = space("hcl"), whole(space("hcl"), lambda one: 0.0)
    for known in range(13):

        def scores(asked: Sequence[Setting], known: int = known) -> list[float | None]:
            return [0.0 if i < known else None for i in range(len(asked))]

        found = Staged(Setting({}), where).ask(SimpleNamespace(of=scores))
        size = next(size for size in (6, 10, 12) if known < size or size == 12)
        assert found.tried == tried[:size]
        assert found.more == 12 - size


TABLE = small_table(
    name="my",
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


def test_a_smoke_test_has_the_tiny_values_of_the_domain() -> None:
    place = plan.runnable_places(TABLE)[0]
    small = {**place.work.recipe, **tiny_recipe("tabular")}
    assert place.smoke_test.recipe == small != place.work.recipe


def test_a_row_with_records_of_two_data_is_named(tmp_path: Path) -> None:
    table = TABLE.but(tune=None)
    for place, hashes in zip(plan.runnable_places(table), ("12", "1"), strict=False):
        for digit in hashes:
            made(tmp_path, place.work, 0, data_hash=digit * 64)
    assert resolve(table, None, tmp_path).other_data == {"A": ["infonce"]}


def asked(results: Path, *rows: Row) -> plan.Plan:
    """What a sweep asks for."""
    places = [place for place in plan.runnable_places(TABLE) if not rows or place.row in rows]
    return plan.Plan(TABLE, places, TABLE.seeds, "validation", results)


def sweep(results: Path, truth: Callable[[Experiment], float]) -> int:
    """Make the records of all rounds of a sweep, as good as an experiment is; how many were."""
    count = 0
    while tasks := [task for task in asked(results).tasks() if task.state == "missing"]:
        for task in tasks:
            score = truth(task.experiment)
            about = {"metrics": {"accuracy": score}, "details": {"validation": score}}
            made(results, task.experiment, task.seed, **about)
        count += len(tasks)
    return count


def worse(work: Experiment) -> float:
    """InfoNCE at temperature 0.33 is best, whatever is debiased is worse."""
    value = work.loss.complete.params.get("temperature", 9.0)
    return 80 - abs(value - 0.33) - 5 * (work.loss.name != "infonce")


def test_a_sweep_has_stages_and_shares_the_cells_of_the_limit(tmp_path: Path) -> None:
    first = asked(tmp_path)
    assert len(first.tasks()) == 3 + 6 * 2, "the untrained encoder, and one stage for both"
    assert len(first.later_tasks()) == 2 * 6 * 2 + 2 * 3
    text = "\n".join(plan.plan_lines(first, Costs(tmp_path)))
    assert "and then up to 30 cells that these decide on" in text
    trials = 6 + (4 + 2) * 2  # those of the first stage are shared
    assert sweep(tmp_path, worse) == 3 + trials * 2 + 3 * 2
    assert not asked(tmp_path).later_tasks()


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
    assert "which no shown number is of; staged search with as many trials for each method" in text


def tried_later(work: Experiment) -> bool:
    """Whether a setting is of no first stage."""
    first = {str(one.params) for one in staged.first_stage(space("infonce"))}
    return str(work.loss.params) not in first


def test_where_folds_turn_each_chooses_among_the_same_trials(tmp_path: Path) -> None:
    table = TABLE.model_copy(
        update={"domain": "graph", "columns": {"A": TABLE.columns["A"].model_copy()}}
    )
    table.columns["A"].__dict__["dataset"] = "MUTAG"
    places = [place for place in plan.runnable_places(table) if place.row in (BASE, FAMILY)]
    wanted = plan.Plan(table, places, [0], "validation", tmp_path)
    assert len(wanted.tasks()) == 12 + 6, "six are the baseline's own"
    assert not any(cell.choice.more for cell in wanted.cells())
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
