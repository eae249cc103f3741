"""Plan the cells of a table or a sweep: what records say of each, and what the rest will cost.

Brings no torch.
"""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from contrastbench.benchmarks.records import reading, store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.records.packs import SHIPPED
from contrastbench.benchmarks.records.read_cache import one_moment
from contrastbench.benchmarks.records.seeds import parse_seeds
from contrastbench.benchmarks.sweeps.costs import Costs, Parts, duration
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import ResolvedCell, decide, lacking
from contrastbench.benchmarks.tables.scores import Place
from contrastbench.benchmarks.tables.table import Selection, Table
from contrastbench.domains.reading import refuse
from contrastbench.errors import UserError, check_known, plural
from contrastbench.losses.spec import LossSpec

State = Literal["done", "diverged", "failed", "missing"]


class Task(NamedTuple):
    """An experiment with a seed, and what the records say of it."""

    experiment: Experiment
    seed: int
    state: State
    apart: str = ""  # what tells the experiment from others of its label

    @property
    def label(self) -> str:
        return f"{self.experiment.label}{self.apart}"

    @property
    def name(self) -> str:
        """Return a name for files about the cell, and about all that its training makes."""
        return f"{self.experiment.scored[0].key[:16]}-seed{self.seed}"

    @property
    def key(self) -> tuple[str, int]:
        return self.experiment.key, self.seed


def survey(work: Iterable[tuple[Experiment, Sequence[int]]], results: Path) -> Iterator[Task]:
    """Yield the tasks of experiments with their seeds, each once."""
    work, seen = list(work), set[tuple[str, int]]()
    apart = told_apart(experiment for experiment, _ in work)
    for experiment, seeds in work:
        statuses = defaultdict[int, set[str]](set)
        for record in experiment.records(results):
            statuses[record["seed"]].add(record["status"])
        for seed in seeds:
            if (experiment.key, seed) not in seen:
                seen.add((experiment.key, seed))
                yield Task(experiment, seed, task_state(statuses[seed]), apart[experiment.key])


def told_apart(work: Iterable[Experiment]) -> dict[str, str]:
    """Return what the recipes of experiments with one label differ in, by the experiment's key.

    >>> from contrastbench.losses.spec import LossSpec
    >>> recipes = {"encoder": "raw"}, {"encoder": "gin"}
    >>> two = [Experiment("graph", "DD", LossSpec("none"), recipe) for recipe in recipes]
    >>> list(told_apart(two).values()), list(told_apart(two[:1]).values())
    ([' (encoder=raw)', ' (encoder=gin)'], [''])
    """
    by_label: dict[str, dict[str, Experiment]] = {}
    for experiment in work:
        by_label.setdefault(experiment.label, {})[experiment.key] = experiment
    return {key: text for same in by_label.values() for key, text in differing_recipe(same).items()}


def differing_recipe(same: dict[str, Experiment]) -> dict[str, str]:
    """Return, by key, the recipe values that are not the same in all."""
    if len(same) == 1:
        return dict.fromkeys(same, "")
    recipes = {key: work.full_recipe.model_dump(mode="json") for key, work in same.items()}
    names = [
        name
        for name in next(iter(recipes.values()))
        if len({store.canonical(recipe.get(name)) for recipe in recipes.values()}) > 1
    ]
    return {
        key: f" ({', '.join(f'{name}={recipe.get(name)}' for name in names)})"
        for key, recipe in recipes.items()
    }


def task_state(statuses: set[str]) -> State:
    """Return the state of a task whose records have these statuses.

    >>> task_state({"failed", "ok"})
    'done'
    """
    if "ok" in statuses:
        return "done"
    return "diverged" if "diverged" in statuses else "failed" if statuses else "missing"


@dataclass(frozen=True)
class Shard:
    """One of several shards, counted from zero, for machines that share nothing.

    A cell is in the same shard on every machine and in every order of a file, by the hash of its
    key. What trials decide is known to a shard only when it has the records of all of them: until
    then such cells are in no shard.
    """

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def has(self, task: Task) -> bool:
        return self.count == 1 or int(store.json_digest(task.key), 16) % self.count == self.index


WHOLE_SWEEP = Shard(0, 1)


def parse_shard(text: str | None) -> Shard:
    """Read the text of `--shard` as a shard; None: the whole sweep.

    >>> parse_shard("0/3")
    Shard(index=0, count=3)
    """
    if text is None:
        return WHOLE_SWEEP
    match = re.fullmatch("([0-9]{1,9})/([0-9]{1,9})", text)
    if not match or int(match[1]) >= int(match[2]):
        raise UserError(
            f"--shard {text}: give a number from 0 and the number of shards, such as 0/3, 1/3 "
            "and 2/3"
        )
    return Shard(int(match[1]), int(match[2]))


Work = list[tuple[Experiment, Sequence[int]]]
KEYS = ("row", "column", "domain", "dataset", "loss")
COUNTED = "a forecast from counted operations, not from records: see docs/scale.md"


def runnable_places(table: Table, only: Sequence[str] = ()) -> list[Place]:
    """The table's places that can be run here.

    Those that every KEY=VALUE wants, where there are any.
    """
    chosen = everything = list(table.places.values())
    if not everything:
        raise UserError(
            f"{table.name} has only quoted values and cannot be run: choose another table "
            "(bench list tables)"
        )
    for key, values in wanted_values(only).items():
        known = {label(place, key) for place in everything}
        for value in values:
            check_known(f"{key} in {table.name}", value, known)
        chosen = [place for place in chosen if label(place, key) in values]
    if not chosen:
        raise UserError(
            f"{table.name}: --only {' --only '.join(only)} together select nothing: leave one of "
            "them out"
        )
    return chosen


def label(place: Place, key: str) -> str:
    """Return the value of a place that `--only KEY=VALUE` compares."""
    own = {"row": place.row.name, "column": place.setup.column, "loss": place.row.loss or ""}
    return own[key] if key in own else str(getattr(place.work, key))


def wanted_values(only: Sequence[str]) -> dict[str, list[str]]:
    """Values by key; of several values of one key any will do.

    >>> wanted_values(["dataset=MUTAG", "dataset=DD", "loss=adnce"])
    {'dataset': ['MUTAG', 'DD'], 'loss': ['adnce']}
    """
    pairs = [[part.strip() for part in pair.split("=", 1)] for pair in only]
    for given, pair in zip(only, pairs, strict=True):
        if len(pair) < 2 or not all(pair):
            raise UserError(f"--only {given!r}: give KEY=VALUE, such as dataset=MUTAG")
        check_known("--only", pair[0], KEYS)
    return grouped((key, value) for key, value in pairs)


@dataclass(frozen=True)
class Plan:
    """The cells that a table or a sweep has.

    What that means depends on the records, where parameters are chosen by them.
    """

    table: Table
    places: Sequence[Place]
    seeds: Sequence[int]
    selection: Selection
    results: Path
    shard: Shard = WHOLE_SWEEP

    @property
    def part(self) -> str:
        """Return in words which part of the cells the plan has; empty: it has all."""
        return f"shard {self.shard}" * (self.shard != WHOLE_SWEEP)

    def tasks(self) -> list[Task]:
        """Return the cells of this part that can be run now, and what records say of them."""
        return [task for task in self.all_tasks() if self.shard.has(task)]

    @one_moment()
    def all_tasks(self) -> list[Task]:
        """Return the cells of all parts that can be run now, each once."""
        work = [item for cell in self.cells() for item in self.work(cell)]
        return list(survey(work, self.results))

    def cells(self) -> list[ResolvedCell]:
        """Return the places with their settings, as far as records decide them now.

        In a part, a control waits until folds of all seeds have chosen: other parts have these.
        """
        return [
            decide(place, self.selection, self.results, self.seeds_of(place) if self.part else ())
            for place in self.places
        ]

    def seeds_of(self, place: Place) -> list[int]:
        """Return the seeds that are asked for, without those that the place's column leaves out."""
        left_out = {*self.table.seeds} - {*self.table.seeds_of(place.setup.column)}
        return [seed for seed in self.seeds if seed not in left_out]

    def work(self, cell: ResolvedCell) -> Work:
        """Return the experiments of a place with their seeds.

        Those of the table, or trials and then the best of them. Trials that folds choose among have
        the shown seeds alone.
        """
        seeds = [seed + cell.place.shift for seed in self.seeds_of(cell.place)]
        if cell.choice.nested:
            return [(trial, seeds) for trial in cell.trials]
        shown = [] if cell.choice.why else [(cell.work, seeds)]
        return [*zip(cell.trials, cell.trial_seeds, strict=True), *shown]

    @one_moment()
    def later_tasks(self) -> list[Task]:
        """Return tasks in place of the cells that follow at most: of later stages, and of choices.

        Each is like one of them.
        """
        tasks = list[Task]()
        for cell in self.cells():
            count = cell.choice.more + len(self.seeds_of(cell.place)) * cell.choice.is_open
            tasks += [Task(cell.work, 0, "missing")] * count
        return tasks

    def reasons(self) -> list[str]:
        return lacking(self.cells()) if self.seeds else ["it asks for no seeds: give --seeds"]


def make_plan(
    what: str,
    only: Sequence[str] = (),
    seeds: str | None = None,
    tiny: bool = False,
    selection: str | None = None,
    results: Path = Path("results"),
    check_values: bool = False,
    losses: Sequence[LossSpec] = (),
    quick: bool = False,
    shard: str | None = None,
) -> Plan:
    """The plan that the words of a command line ask for; of some losses alone if they are named."""
    table = load_table(what, check_values, losses, quick=quick, tiny=tiny)
    numbers = table.seeds if seeds is None else parse_seeds(seeds)
    others = sorted({*numbers} - {*table.seeds}) if table.is_suite else ()
    refuse("seed", (others, f" {{}} is not in {table.name}: give some of {table.seeds}"))
    chosen = table.checked_selection(selection, numbers)
    places = runnable_places(table, only)
    if losses:
        places = [place for place in places if place.row.name in table.asked]
    return Plan(table, places, numbers, chosen, results, parse_shard(shard))


def plan_lines(plan: Plan, costs: Costs) -> Iterator[str]:
    work = plan.tasks()
    if not work:
        yield f"0 cells: {'; '.join(plan.reasons())}"
        return
    by_experiment = grouped((task.experiment.key, task) for task in work)
    width = max(len(some[0].label) for some in by_experiment.values())
    for some in by_experiment.values():
        yield f"{some[0].label:{width}}  {state_counts(some)}{forecast(some, costs)}"
    yield f"{'all':{width}}  {state_counts(work)}{forecast(work, costs)}"
    if follow := plan.later_tasks():
        text = f"and then up to {len(follow)} cells that these decide on{forecast(follow, costs)}"
        yield f"{'':{width}}  {text}"
    if "no forecast" in forecast(work, costs) and (counted := counted_hours(plan)):
        yield f"at least {counted:,.2f} h on one card, {COUNTED}"


def counted_hours(plan: Plan) -> float:
    """Return the hours of a paper's table by docs/scale.md, for the share of its cells ahead."""
    lines = Path(__file__).with_name("operations.csv").read_text("utf-8").splitlines()
    known = {name: float(hours) / int(cells) for name, cells, hours in [*csv.reader(lines)][1:]}
    ahead = unfinished_tasks(plan.tasks())
    return 0.0 if plan.table.tiny else known.get(plan.table.name, 0.0) * len(ahead)


def cost_line(plan: Plan, costs: Costs) -> str:
    """Return what all cells take by data set, the dearest first, and how much of it is training."""
    works = [task.experiment for task in (*plan.tasks(), *plan.later_tasks())]
    known = ((work.dataset, costs.parts_of(work)) for work in works)
    parts = grouped((dataset, cost) for dataset, cost in known if cost)
    sums = {name: Parts(*map(sum, zip(*some, strict=True))) for name, some in parts.items()}
    shown = [
        f"{name} {duration(all_.whole)} ({100 * all_.training / max(all_.whole, 1e-9):.0f} %)"
        for name, all_ in sorted(sums.items(), key=lambda item: -item[1].whole)
    ]
    return f"all cells by set (% training): {', '.join(shown) or 'no forecast'}"


@one_moment()
def shipped_line(plan: Plan) -> str:
    """Return how many missing cells come with contrastbench, or nothing."""

    def files(task: Task, results: Path) -> set[str]:
        return {file.name for file in reading.stored_in(task.experiment.folder(results))}

    missing = [task for task in plan.tasks() if task.state == "missing"]
    new = [task for task in missing if files(task, SHIPPED) - files(task, plan.results)]
    count = sum(task.seed in {r["seed"] for r in task.experiment.records(SHIPPED)} for task in new)
    hint = f"{count} of these come with contrastbench: bench merge --shipped adds them"
    return hint * bool(count)


def forecast_line(plan: Plan, costs: Costs) -> str:
    """Return how many cells are ahead and what they take, where that is known or a loss joins."""
    ahead = [*unfinished_tasks(plan.tasks()), *plan.later_tasks()]
    known = any(costs.of(task.experiment) for task in ahead)
    if not ahead or not (known or plan.table.asked):
        return ""
    return f"{len(ahead)} cell{plural(len(ahead))}{forecast(ahead, costs)}"


def state_counts(work: Sequence[Task]) -> str:
    counts = Counter(task.state for task in work)
    shown = (state for state in get_args(State) if counts[state] or state in ("done", "missing"))
    return ", ".join(f"{counts[state]} {state}" for state in shown)


def forecast(work: Sequence[Task], costs: Costs) -> str:
    """Return the time of one process for the unfinished cells."""
    seconds = [costs.of(task.experiment) for task in unfinished_tasks(work)]
    known = [value for value in seconds if value is not None]
    without = len(seconds) - len(known)
    parts = [f"about {duration(sum(known))}"] if known else []
    parts += ["no forecast" + f" for {without}" * bool(known)] if without else []
    return "".join(f", {part}" for part in parts)


def unfinished_tasks(work: Sequence[Task]) -> list[Task]:
    """Return the tasks that a sweep would run: missing cells, then failed ones once more."""
    return [task for state in ("missing", "failed") for task in work if task.state == state]
