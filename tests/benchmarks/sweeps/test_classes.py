"""Classes of cells: each gets the resources that it needs, and more where they are too few."""

import threading
from pathlib import Path

import pytest

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.sweeps import sweep as sweep_module
from contrastbench.benchmarks.sweeps.cell_states import Task
from contrastbench.benchmarks.sweeps.classes import ByResources
from contrastbench.benchmarks.sweeps.costs import Costs
from contrastbench.benchmarks.sweeps.sweep import Slot, Sweep
from contrastbench.benchmarks.tables.resources import Resources, read_resources
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec
from made_records import made

SWEEP = (
    "seeds: 0-1\nlosses: [infonce]\n"
    "domains: {graph: {datasets: [motifs]}, tabular: {datasets: [digits-table]}}\n"
)
FILE = """
resources:
  light: {domain: graph, hours: 0.5, memory: 2G, slurm: {partition: short}}
  card: {hours: 2, memory: 32G, devices: 1, jobs: 4}
  large: {hours: 48.5, memory: 64G, devices: 2}
"""
WORDS = ["my.yaml", "--resources", "classes.yaml"]


@pytest.fixture
def files(bench) -> None:
    Path("my.yaml").write_text(SWEEP)
    Path("classes.yaml").write_text(FILE)


def task(domain: str = "graph", seed: int = 0, **recipe: object) -> Task:
    dataset = {"graph": "motifs", "tabular": "digits-table"}[domain]
    return Task(Experiment(domain, dataset, LossSpec("infonce"), recipe), seed, "missing")


def classes(results: Path = Path("results")) -> ByResources:
    return ByResources(read_resources(Path("classes.yaml")), results)


@pytest.mark.usefixtures("files")
def test_a_cell_is_in_the_first_class_that_fits() -> None:
    assert [classes().of(task(domain)) for domain in ("graph", "tabular")] == ["light", "card"]
    by_recipe = ByResources(
        {"few": Resources(recipe={"epochs": [1, 2]}), "many": Resources()}, Path("results")
    )
    assert [by_recipe.of(task(epochs=count)) for count in (1, 2, 3)] == ["few", "few", "many"]


@pytest.mark.parametrize(
    ("seconds", "name"), [(1800, "light"), (1801, "card"), (7201, "large"), (999_999, "large")]
)
@pytest.mark.usefixtures("files")
def test_a_forecast_fits_in_the_hours_of_a_class(seconds: float, name: str) -> None:
    made(Path("results"), task().experiment, 5, seconds=seconds)
    assert classes().of(task()) == name


def test_a_cell_that_no_class_has_is_one_line() -> None:
    by_domain = ByResources({"tables": Resources(domain="tabular")}, Path("results"))
    with pytest.raises(UserError, match="no class of resources has graph motifs infonce: add one"):
        by_domain.of(task())


@pytest.mark.usefixtures("files")
def test_a_cell_that_outgrew_a_class_is_in_the_next_one() -> None:
    one, other = task(seed=0), task(seed=1)
    told = [classes().outgrow(one, "memory") for _ in range(3)]
    assert told == [
        "class light has too little memory, so it is in class card now",
        "class card has too little memory, so it is in class large now",
        "class large has too little memory: add a larger class behind it",
    ]
    assert classes().of(one) == "large"
    assert classes().of(other) == "light"
    assert classes().outgrown(one) == {"light": "memory", "card": "memory", "large": "memory"}


@pytest.mark.usefixtures("files")
def test_only_most_of_the_hours_in_work_are_too_few_of_them() -> None:
    found = classes()
    assert not found.outgrows_time(task(), 1100)
    assert found.outgrows_time(task(), 1300)
    for _ in range(2):
        found.outgrow(task(), "time")
    assert not found.outgrows_time(task(), 1e9), "it goes on from checkpoints in the last class"
    without = ByResources({"a": Resources(), "b": Resources()}, Path("results"))
    assert not without.outgrows_time(task(), 1e9)


def job(replies: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> Sweep:
    """Return the sweep of a job of the first class, whose worker replies the same each time."""
    monkeypatch.setattr(Slot, "do", lambda *_: replies)
    options = Options(Path("results"), device="cpu")
    return Sweep([task()], options, 1, Costs(options.results), classes=classes())


@pytest.mark.parametrize(
    "reply",
    [
        {"status": "oom", "error": "no memory"},
        {"status": "failed", "error": "the process was killed by SIGKILL", "code": -9},
    ],
)
@pytest.mark.usefixtures("files")
def test_a_job_notes_cells_that_run_out_of_memory(reply, monkeypatch) -> None:
    (failure,) = job(reply, monkeypatch).run()
    assert failure.reason.endswith("class light has too little memory, so it is in class card now")
    assert classes().of(task()) == "card"


@pytest.mark.usefixtures("files")
def test_a_job_does_not_note_other_failures(monkeypatch) -> None:
    (failure,) = job({"status": "failed", "error": "a bug"}, monkeypatch).run()
    assert failure.reason == "failed: a bug"
    assert not Path("results", "outgrown").exists()


@pytest.mark.parametrize(("seconds", "name"), [(60, "light"), (1700, "card")])
@pytest.mark.usefixtures("files")
def test_a_job_at_its_time_limit_notes_what_it_was_too_short_for(
    seconds: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock goes on while the cell is in work, and then SIGTERM comes."""
    begun, asked, clock = threading.Event(), threading.Event(), [0.0]

    def do(*_: object) -> dict[str, object]:
        begun.set()
        asked.wait()
        return {"status": "failed", "error": "ended"}

    def terminated(self: Sweep, serving: int) -> None:
        begun.wait()
        clock[0] += seconds
        raise SystemExit(143)

    sweep = job({}, monkeypatch)
    monkeypatch.setattr(Slot, "do", do)
    monkeypatch.setattr(Sweep, "watch", terminated)
    monkeypatch.setattr(Sweep, "stop", lambda *_: asked.set())
    monkeypatch.setattr(sweep_module.time, "monotonic", lambda: clock[0])
    with pytest.raises(SystemExit):
        sweep.run()
    assert classes().of(task()) == name


@pytest.mark.usefixtures("files")
def test_a_plan_lists_the_submissions_by_class(bench) -> None:
    code, said, _ = bench("plan", *WORDS)
    assert code == 0
    assert said.splitlines()[-3:] == [
        "class light: 2 cells to run, no forecast: time=30 mem=2G partition=short",
        "class card: 2 cells to run, no forecast: jobs=4 time=120 mem=32G gpus-per-node=1",
        "bench sweep my.yaml --resources classes.yaml --slurm print=true prints the scripts of "
        "their jobs, and print=false submits them",
    ]
    for seed in (0, 1):
        made(Path("results"), task().experiment, seed)
    for _ in range(2):
        classes().outgrow(task("tabular"), "memory")
    said = bench("plan", *WORDS)[1].splitlines()
    assert [line for line in said if line.startswith(("class", "  1"))] == [
        "class card: 1 cells to run, no forecast: jobs=4 time=120 mem=32G gpus-per-node=1",
        "class large: 1 cells to run, no forecast: time=2910 mem=64G gpus-per-node=2",
        "  1 of them outgrew every class: add a larger one behind it",
    ]


@pytest.mark.usefixtures("files")
def test_each_class_has_a_script_of_its_own(bench) -> None:
    settings = ["--slurm", "print=true", "--slurm", "mem=1G", "--slurm", "account=mine"]
    code, said, _ = bench("sweep", *WORDS, *settings)
    assert code == 0
    scripts = said.split("#!/bin/bash\n")[1:]
    assert len(scripts) == 2
    for text, name, lines in (
        (scripts[0], "light", ["array=0-0", "time=30", "mem=2G", "partition=short"]),
        (scripts[1], "card", ["array=0-3", "time=120", "mem=32G", "gpus-per-node=1"]),
    ):
        for line in [*lines, "account=mine"]:
            assert f"#SBATCH --{line}\n" in text
        assert f"sweep {' '.join(WORDS)} --only class={name}\n" in text
    only = ["--only", "class=card"]
    assert bench("sweep", *WORDS, *only, *settings)[1].count("--only class=card\n") == 1


@pytest.mark.usefixtures("files")
def test_a_class_gives_its_devices_to_each_training(bench, monkeypatch) -> None:
    Path("classes.yaml").write_text("resources: {large: {devices: 4}}\n")
    said = bench("sweep", *WORDS, "--jobs=2", "--slurm", "print=true")[1]
    assert f"sweep {' '.join(WORDS)} --jobs=2 --only class=large --devices 4\n" in said
    assert "#SBATCH --cpus-per-task=8\n" in said
    said = bench("sweep", *WORDS, "--devices=2", "--slurm", "print=true")[1]
    assert "--devices=2 --only class=large\n" in said, "the command line is over the class"
    found = []
    monkeypatch.setattr(Sweep, "run", lambda self: found.append(self.options.devices) or [])
    only = ["--only", "class=large", "--device", "cpu"]
    for more in ([], ["--devices", "3"]):
        bench("sweep", *WORDS, "--check=never", *only, *more)
    assert found == [4, 3]


@pytest.mark.usefixtures("files")
def test_a_job_runs_the_cells_of_its_class(bench, monkeypatch) -> None:
    ran = []

    def run(self: Sweep) -> list:
        assert self.classes
        for one, _ in self.waiting:
            ran.append(one.experiment.domain)
            made(self.options.results, one.experiment, one.seed)
            self.take(one, {"status": "ok", "seconds": 1.0, "made": True, "error": None})
        return []

    monkeypatch.setattr(Sweep, "run", run)
    code, said, _ = bench("sweep", *WORDS, "--only", "class=card", "--check", "never")
    assert (code, ran) == (0, ["tabular", "tabular"])
    assert said.splitlines() == [
        "2 cells: 0 done before, 2 now",
        "class card: 2 of 4 cells",
    ]
    said = bench("sweep", *WORDS, "--slurm", "print=true")[1]
    assert said.count("#!/bin/bash") == 1, "a class whose cells are done submits nothing"


@pytest.mark.usefixtures("files")
def test_classes_may_stand_in_the_sweep_file(bench) -> None:
    Path("my.yaml").write_text(SWEEP + FILE)
    Path("wider.yaml").write_text("extends: my.yaml\nlosses: [hcl]\n")
    for name, count in (("my.yaml", 2), ("wider.yaml", 4)):
        said = bench("plan", name)[1]
        assert f"class light: {count} cells to run" in said
    assert "class all: 4 cells" not in said
    Path("classes.yaml").write_text("resources: {all: {hours: 1}}\n")
    assert "class all: 4 cells" in bench("plan", *WORDS)[1], "the option is over the file"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("light: {}", "1: unknown key 'light': known: resources"),
        ("resources: {}", "1: resources: dictionary should have at least 1 item"),
        ("resources:\n  a: {hour: 1}", "2: unknown key 'hour': did you mean 'hours'?"),
        ("resources:\n  a: {hours: 0}", "2: resources.a.hours=0: input should be greater than 0"),
        ("resources:\n  a: {memory: lots}", "2: resources.a.memory='lots': string should match"),
        ("resources:\n  a: {domain: graphs}", "2: unknown domain 'graphs': did you mean 'graph'?"),
        ("resources:\n  a: {recipe: {epoch: 1}}", "2: unknown key of a recipe 'epoch': did you"),
        ("resources:\n  A.b: {}", "2: class 'A.b': give a name of small letters and digits"),
    ],
)
@pytest.mark.usefixtures("files")
def test_a_wrong_file_is_one_line(bench, text: str, complaint: str) -> None:
    Path("classes.yaml").write_text(text)
    code, said, found = bench("plan", *WORDS)
    assert (code, said, found.count("\n")) == (2, "", 1)
    assert found.startswith(f"bench: classes.yaml:{complaint}")


@pytest.mark.usefixtures("files")
def test_a_class_that_is_not_there_is_one_line(bench) -> None:
    found = bench("plan", "my.yaml", "--only", "class=card")[2]
    assert found == "bench: --only class=card: there are no classes: give --resources FILE\n"
    found = bench("plan", *WORDS, "--only", "class=cart")[2]
    assert found == "bench: unknown class 'cart': did you mean 'card'?\n"
