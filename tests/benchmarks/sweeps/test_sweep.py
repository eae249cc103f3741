"""Sweeps: every missing cell once, whatever fails, whoever is killed."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import Timeout

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running import runner
from contrastbench.benchmarks.running.opening import Opened
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.sweeps import claims, worker
from contrastbench.benchmarks.sweeps import process as process_module
from contrastbench.benchmarks.sweeps import process as slots_module
from contrastbench.benchmarks.sweeps import sweep as sweep_module
from contrastbench.benchmarks.sweeps.plan import Task
from contrastbench.benchmarks.sweeps.sweep import (
    Failure,
    Sweep,
    failure_lines,
    in_order,
    own_code,
)
from contrastbench.domains.graph.domain import GraphDomain
from contrastbench.errors import UserError
from contrastbench.losses.spec import LossSpec
from damaged import full_disk
from warm import python

TINY = {"epochs": 2, "limit": 60, "folds": 3}


def tasks(*losses: str, dataset: str = "motifs", seeds: int = 2, **params: float) -> list[Task]:
    work = [Experiment("graph", dataset, LossSpec(loss, params), TINY) for loss in losses]
    return [Task(experiment, seed, "missing") for experiment in work for seed in range(seeds)]


def run(work: list[Task], results: Path, jobs: int = 1) -> list[Failure]:
    return Sweep(Options(results), jobs).run(work)


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a script in the worker's place that notes each message and does as it is told."""

    def install(body: str) -> Path:
        notes = tmp_path / "notes"
        script = f"""
            import json, os, signal, sys
            def say(**reply):
                print(json.dumps(reply), flush=True)
            say(status="ready")
            for line in sys.stdin:
                m = json.loads(line)
                r, loss = m["experiment"], m["experiment"]["loss"]["name"]
                with open({str(notes)!r}, "a") as file:
                    file.write(f"{{os.getpid()}} {{r['dataset']}} {{loss}} {{m['seed']}}\\n")
                ok = dict(status="ok", error=None, seconds=1.0)
        """
        code = textwrap.dedent(script) + textwrap.indent(textwrap.dedent(body), "    ")
        monkeypatch.setattr(process_module, "COMMAND", [sys.executable, "-c", code])
        return notes

    return install


def test_a_worker_imports_no_file_beside_it_and_says_that_data_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    Path("queue.py").write_text("1 / 0  # where the standard library's is meant")
    worker = process_module.Worker(Options(tmp_path, data_root=tmp_path), 1)
    assert worker.is_ready(), worker.last_words()
    (task,) = tasks("infonce", dataset="REDDIT-MULTI-5K", seeds=1)
    reply = worker.do(task, wait=True)
    worker.end()
    assert (reply["status"], reply["no_data"]) == ("refused", True), reply


@pytest.fixture
def warm_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start workers from a Python that has imported torch."""
    monkeypatch.setattr(process_module, "COMMAND", [python(), *process_module.COMMAND[1:]])


@pytest.mark.usefixtures("warm_workers")
def test_what_one_seed_draws_refuses_no_other_seed(bench) -> None:
    Path("r.yaml").write_text(
        "seeds: 0-2\nlosses: [none]\n"
        "domains: {graph: {datasets: [motifs], recipe: {limit: 60, epochs: 1}}}\n"
    )
    code, out, err = bench("sweep", "r.yaml")
    assert code == 1
    assert "none, seed 1: refused: motifs: class 2 has 9 members, fewer than the 10" in out + err
    assert "3 cells: 0 done before, 2 now, 1 without a result" in out
    run = "run --domain graph --dataset motifs --loss none --recipe limit=60 --results other"
    code, _, err = bench(*run.split(), "--seeds", "0-2")
    assert code == 2
    assert "seed 1: motifs: class 2 has 9 members" in err


def test_a_dataset_that_is_not_there_is_found_and_said_once(stub, tmp_path: Path, capsys) -> None:
    notes = stub("""
        if r["dataset"] == "DD":
            say(status="refused", no_data=True, error="no file DD.zip")
        elif loss == "dar":
            say(status="refused", no_data=False, error="dar is refused")
        else:
            say(**ok)
    """)
    failures = run(
        tasks("infonce", "adnce", dataset="DD", seeds=3) + tasks("dar", "hcl", seeds=3), tmp_path
    )
    said = capsys.readouterr().err
    assert [said.count(why) for why in ("no file DD.zip", "dar is refused")] == [1, 1]
    asked = [line.split()[1:] for line in notes.read_text().splitlines()]
    assert asked == [
        ["DD", "infonce", "0"],
        ["motifs", "dar", "0"],
        *(["motifs", "hcl", str(i)] for i in range(3)),
    ]
    assert list(failure_lines(failures)) == [
        "graph DD infonce, seeds 0, 1, 2: refused: no file DD.zip",
        "graph DD adnce, seeds 0, 1, 2: refused: no file DD.zip",
        "graph motifs dar, seeds 0, 1, 2: refused: dar is refused",
    ]


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def install(count: int) -> None:
        names = tuple(f"cuda:{i}" for i in range(count))
        monkeypatch.setattr(slots_module, "cuda_devices", lambda: names)

    return install


def test_workers_are_spread_over_the_visible_devices(cards) -> None:
    cards(4)
    assert slots_module.slots("auto", 8) == [f"cuda:{i}" for i in (0, 1, 2, 3, 0, 1, 2, 3)]
    assert slots_module.slots("cuda", 2, per_device=True) == slots_module.slots("auto", 8)
    assert slots_module.slots("cuda:1", 2) == ["cuda:1", "cuda:1"]
    assert slots_module.slots("cpu", 2) == ["cpu", "cpu"]
    cards(0)
    assert slots_module.slots("auto", 2) == ["auto", "auto"]
    assert slots_module.slots("cuda", 2, per_device=True) == ["cuda", "cuda"]


@pytest.mark.parametrize(
    ("sign", "said", "devices"),
    [
        ("nvidia0", "print('a warning'); print(2)", ("cuda:0", "cuda:1")),
        ("nvidia0", "print(0)", ()),
        ("nvidia0", "raise SystemExit('no torch')", ()),
        ("nvme0", "print(2)", ()),
    ],
)
def test_devices_are_counted_by_torch_elsewhere_where_there_is_a_driver(
    sign: str, said: str, devices: tuple, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / sign).touch()
    monkeypatch.setattr(slots_module, "DEVICES", tmp_path)
    monkeypatch.setattr(slots_module, "COUNT_COMMAND", [sys.executable, "-c", said])
    monkeypatch.setattr(sys, "platform", "linux")
    assert slots_module.cuda_devices.__wrapped__() == devices


@pytest.mark.parametrize("how", ["oom", "killed"])
@pytest.mark.parametrize("enough", [True, False])
def test_cells_out_of_memory_are_tried_once_more_at_the_end_alone_on_their_device(
    how: str, enough: bool, cards, stub, tmp_path: Path, capfd
) -> None:
    cards(1)
    notes = stub(
        f"""
        tried = open({str(tmp_path / "notes")!r}).read().count("dar 0")
        if loss != "dar" or (tried == 2 and {enough}):
            say(**ok)
        elif {how!r} == "oom":
            say(status="oom", error="no memory")
        else:
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    work = [*tasks("dar", seeds=1), *tasks("infonce", seeds=6)]
    failures = run(work, tmp_path, jobs=2)
    lines = notes.read_text().splitlines()
    assert len(lines) == 8, "each cell once, and one twice"
    assert lines[-1].endswith("dar 0")
    assert [failure.task.experiment.loss.name for failure in failures] == ["dar"] * (not enough)
    said = capfd.readouterr().err
    assert "cells out of memory: 1, once more, each alone on its device" in said


UNWRITTEN = """
    if m["seed"] == 1:
        error = "cannot write x.json: r has 0 MiB free"
        say(status="unwritten", error=error, record=dict(b=8, a=0))
    else:
        say(**ok)
"""


def test_a_sweep_stops_at_the_first_record_that_no_disk_takes(stub, tmp_path: Path, capsys) -> None:
    """Later cells would be trained for nothing; the record that was lost to the disk is printed."""
    notes = stub(UNWRITTEN)
    with pytest.raises(UserError, match=r"^stopped: cannot write x.json: r has 0 MiB free$"):
        run(tasks("infonce", seeds=4), tmp_path)
    assert [line.split()[3] for line in notes.read_text().splitlines()] == ["0", "1"]
    said = capsys.readouterr().err.splitlines()
    assert '{"a":0,"b":8}' in said
    assert not [line for line in said if "unwritten" in line], "the last line says it once"
    notes = stub("say(**ok)")
    assert run(tasks("infonce", seeds=4), tmp_path) == [], "repeated, it goes on"


def test_a_worker_hands_over_a_record_that_it_cannot_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner.store, "publish_record", full_disk)
    (task,) = tasks("none", seeds=1)
    message = worker_of(Options(tmp_path, device="cpu")).message(task, wait=False)
    sent = json.dumps(message | {"seed": 4}, default=str)
    reply = worker.answer_message(json.loads(sent))
    assert (reply["status"], reply["record"]["seed"]) == ("unwritten", 4)
    assert reply["record"]["metrics"]["accuracy"] > 0
    assert "No space left on device" in reply["error"]
    assert re.search(rf"{tmp_path} has [0-9]+ MiB free, make room and repeat", reply["error"])
    assert json.loads(json.dumps(reply)) == reply


OWN = """
from contrastbench.losses.library.infonce import InfoNCE

class Mine(InfoNCE):
    weight = 1

    def combine(self, terms):
        return terms.mean() * self.weight
"""


@pytest.mark.usefixtures("warm_workers")
def test_a_loss_that_was_edited_after_the_plan_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    work = tasks(f"{tmp_path}/mine.py:Mine", "infonce")
    assert len({task.key for task in work}) == 4  # planned with the file as it is
    (tmp_path / "mine.py").write_text(OWN.replace("= 1", "= 2"))
    (line,) = failure_lines(run(work, tmp_path))
    assert line.endswith(
        f"seeds 0, 1: refused: {tmp_path}/mine.py:Mine was edited after the sweep was planned: "
        "run the sweep again"
    )
    assert len(list(tmp_path.glob("runs/*/*/infonce/*.json"))) == 2
    assert not list(tmp_path.glob("runs/*/*/mine/*.json"))


def test_a_cell_that_another_sweep_has_comes_last_and_is_waited_for(stub, tmp_path: Path) -> None:
    notes = stub("""
        if loss == "infonce" and not m["wait"]:
            say(status="claimed")
        else:
            say(**ok)
    """)
    assert run(tasks("infonce", "adnce", seeds=1), tmp_path) == []
    order = [line.split()[2] for line in notes.read_text().splitlines()]
    assert order == ["infonce", "adnce", "infonce"]


def test_a_claimed_cell_is_waited_for_by_who_has_asked_for_it(stub, tmp_path: Path) -> None:
    """No thread leaves it behind, though the others find nothing more to do."""
    notes = stub('say(status="claimed") if not m["wait"] else say(**ok)')
    assert run(tasks("infonce", seeds=2), tmp_path, jobs=2) == []
    assert len(notes.read_text().splitlines()) == 4, "each was claimed once and then done"


def test_jobs_are_processes_and_share_the_cores(
    stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    stub(
        """
        threads = os.environ["LOKY_MAX_CPU_COUNT"] + os.environ["OMP_NUM_THREADS"]
        say(status="failed", error=threads + str(m["cores"]))
        """
    )
    assert {f.reason for f in run(tasks("infonce"), tmp_path, jobs=3)} == {"failed: 228"}


def test_threads_of_a_training_do_not_depend_on_the_number_of_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GraphDomain, "threads", 64)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    for cores, threads in ((None, 1), (2, 2)):
        experiment = Experiment("graph", "motifs", LossSpec("none"), TINY)
        options = Options(tmp_path / str(cores), device="cpu")
        assert (
            runner.run_cell(experiment, 0, options, cores)[0]["environment"]["threads"] == threads
        )


@pytest.mark.usefixtures("warm_workers")
def test_the_number_of_jobs_changes_no_number(tmp_path: Path) -> None:
    work, found = tasks("infonce", "adnce"), []
    for jobs in (1, 3):
        results = tmp_path / str(jobs)
        options = Options(results, device="cpu")
        assert Sweep(options, jobs).run(work) == []
        records = [task.experiment.ok_by_seed(results)[task.seed] for task in work]
        found.append([(r["metrics"], r["details"]["loss_by_epoch"]) for r in records])
    assert found[0] == found[1]
    assert len({str(numbers) for numbers in found[0]}) == len(work)


@pytest.mark.parametrize(("threads", "share", "turns"), [(1, 1, 0), (2, 1, 1), (2, 2, 0)])
def test_trainings_of_more_threads_than_their_share_of_cores_take_turns(
    threads: int, share: int, turns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GraphDomain, "threads", threads)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", str(share))
    (task,) = tasks("none", seeds=1)
    message = worker_of(Options(tmp_path, device="cpu")).message(task, wait=True)
    taken, attempt = [], runner.attempt

    def measured(opened: Opened) -> list[runner.Fields]:
        try:
            with claims.claim(tmp_path / "claims" / worker.turn_name(), wait=False):
                taken.append(0)
        except Timeout:
            taken.append(1)
        return attempt(opened)

    monkeypatch.setattr(runner, "attempt", measured)
    reply = worker.answer_message({**message, "cores": 2})
    assert (reply["status"], taken) == ("ok", [turns])


@pytest.mark.usefixtures("warm_workers")
def test_cells_on_a_file_that_was_edited_were_not_done_before(bench) -> None:
    rows = "".join(f"{k % 7},{k % 2}\n" for k in range(40))
    sets = "{tabular: {datasets: [{'csv:a.csv': {target: y}}], recipe: {encoder: raw}}}"
    Path("r.yaml").write_text(f"seeds: 0-1\nlosses: [none]\ndomains: {sets}\n")
    counts = ("0 done before, 2", "2 done before, 0", "0 done before, 2 now (2 on data that")
    for first, count in zip(("3,1\n", "3,1\n", "4,1\n"), counts, strict=True):
        Path("a.csv").write_text(f"a,y\n{first}{rows}")
        assert f"2 cells: {count}" in bench("sweep", "r.yaml")[1]


def test_cells_of_one_data_set_stand_together() -> None:
    work = [t for k in ("infonce", "adnce") for d in ("a", "b") for t in tasks(k, dataset=d)]
    found = [(task.experiment.dataset, task.seed) for task in in_order(work)]
    assert found == [(name, seed) for seed in (0, 1) for name in "aabb"]
    found = [
        (task.experiment.dataset, task.seed) for task in in_order(work, {work[0].experiment.key})
    ]
    assert found == [
        *[(name, 0) for name in "abb"],
        *[("a", 0), ("a", 1), ("a", 1)],
        *[("b", 1)] * 2,
    ]


def test_a_worker_keeps_to_the_data_that_it_has_read(tmp_path: Path) -> None:
    """Another begins with data that nobody reads, and helps where there are none."""
    sweep = Sweep(Options(tmp_path), 2)
    sweep.begin(t for d in "abc" for t in tasks("infonce", dataset=d))
    one = other = None
    found = ""
    while sweep.waiting:
        one, other = sweep.next(one), sweep.next(other)
        found += "".join(item.task.experiment.dataset for item in (one, other) if item)
    assert found == "ababcc"


def test_a_process_runs_registered_losses_or_one_of_ones_own(stub, tmp_path: Path) -> None:
    """It is started once for each, in each pass over the seeds."""
    notes = stub("say(**ok)")
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text("def mine(z1, z2):\n    return (z1 - z2).norm()\n")
    own = [f"{tmp_path / name}.py:mine" for name in ("a", "b")]
    run(in_order(tasks("infonce", own[0], "adnce", own[1])), tmp_path / "results")
    lines = [line.split() for line in notes.read_text().splitlines()]
    assert [line[2] for line in lines] == [*own, "infonce", "adnce"] * 2
    started = [(pid, {line[2] for line in some}) for pid, some in groupby(lines, lambda x: x[0])]
    one_pass = [{own[0]}, {own[1]}, {"infonce", "adnce"}]
    assert [losses for _, losses in started] == one_pass * 2
    assert len(dict(started)) == 6


def test_data_that_code_makes_are_code_from_outside_too() -> None:
    work = Experiment("graph", "mine.py:graphs", LossSpec("infonce"), {})
    assert own_code(Task(work, 0, "missing")) == ("mine.py:graphs",)


def test_ranks_of_torchrun_run_no_second_loss_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = Sweep(Options(tmp_path), 1)
    ranks = SimpleNamespace(alive=True, code=None, end=lambda: None)
    monkeypatch.setattr(sweep, "start", lambda _: ranks)
    assert sweep.hired(None, "cpu", ("a.py:A",)) is ranks
    assert sweep.hired(ranks, "cpu", ("a.py:A",)) is ranks
    with pytest.raises(UserError, match="the same command goes on"):
        sweep.hired(ranks, "cpu", ())


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_sweep_lets_its_workers_end(
    how: signal.Signals, code: int, tmp_path: Path
) -> None:
    """The worker says when it has begun, and leaves a note when it is asked to end."""
    worker = """if True:
        import json, signal, sys, time
        def end(*_):
            open("ended", "w").close()
            sys.exit(143)
        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, lambda *_: open("interrupted", "w").close())
        print(json.dumps({"status": "ready"}), flush=True)
        sys.stdin.readline()
        open("begun", "w").close()
        signal.pause()
    """
    script = (
        "import sys; from contrastbench.benchmarks.cli import main as cli; from "
        "contrastbench.benchmarks.sweeps import process;"
        "process.COMMAND = [sys.executable, '-c', sys.argv.pop()]; cli.main()"
    )
    os.mkfifo(tmp_path / "begun")
    words = [sys.executable, "-P", "-c", script, "sweep", "smoke", "--tiny", worker]
    given = {"cwd": tmp_path, "stderr": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen(words, text=True, **given) as process:
        (tmp_path / "begun").read_text()  # waits for the worker
        os.killpg(process.pid, how)  # as a terminal's Ctrl-C, to all of its group
        _, said = process.communicate()
    assert process.returncode == code
    assert (tmp_path / "ended").exists()
    assert not (tmp_path / "interrupted").exists(), "asked twice, it ends without a checkpoint"
    assert "Traceback" not in said
    assert "failed" not in said, "its cell goes on with the next sweep"


@pytest.mark.parametrize(
    ("what", "value", "said"),
    [
        ("COMMAND", [sys.executable, "-c", "raise SystemExit('no torch')"], ": no torch"),
        (
            "tempfile",
            SimpleNamespace(TemporaryFile=full_disk),
            r" \(No space left on device\): name a",
        ),
    ],
)
def test_a_worker_that_cannot_start_ends_the_sweep(
    what: str, value: object, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, what, value)
    with pytest.raises(ValueError, match=f"no worker process can be started{said}"):
        run(tasks("infonce"), tmp_path)


@pytest.mark.parametrize("kills", [2, 3])
def test_a_worker_that_is_killed_while_it_starts_is_started_again(
    kills: int, stub, tmp_path: Path
) -> None:
    stub("say(**ok)")
    code = process_module.COMMAND[-1]
    tries = tmp_path / "tries"
    die = f"""
        import os, signal
        with open({str(tries)!r}, "a+") as file:
            file.write("x")
            if file.tell() <= {kills}:
                file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
    """
    process_module.COMMAND[-1] = textwrap.dedent(die) + code
    if kills < sweep_module.MAX_STARTS:
        assert run(tasks("infonce"), tmp_path) == []
    else:
        with pytest.raises(ValueError, match="no worker process can be started: it said nothing"):
            run(tasks("infonce"), tmp_path)
    assert len(tries.read_text()) == 3


def test_a_dead_workers_words_are_of_its_own_cell_and_the_log_has_each_cell(
    stub, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stub("""
        if m["seed"] == 0:
            print("a warning of seed 0", file=sys.stderr, flush=True)
            say(**ok)
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    (failure,) = run(tasks("infonce"), tmp_path)
    assert failure.reason.endswith("was killed by SIGKILL (out of memory?): it said nothing")
    log = capfd.readouterr().err.splitlines()
    assert "graph motifs infonce, seed 0: ok in 1 s" in log
    assert any(line.startswith("graph motifs infonce, seed 1: failed: the proc") for line in log)


def worker_of(options: Options) -> process_module.Worker:
    worker = process_module.Worker.__new__(process_module.Worker)
    worker.options = options
    return worker
