"""A user's file is edited at every moment, beside stale bytecode, and trained in threads.

The number that a record holds must be that of the code whose hash it holds.
"""

import hashlib
import os
import py_compile
import random
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import stub_domain
from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import make_experiment
from contrastbench.benchmarks.running.opening import open_cells, with_loss
from contrastbench.benchmarks.running.options import Options
from contrastbench.losses import LossSpec, UserError
from counts import dice, times
from warm import bench, python

TINY = ("run", "--domain", "graph", "--tiny", "--loss")

LOSS = """
import os
from contrastbench.losses import ScoreLoss

VALUE = {value:06d}
LATER = __file__ + ".later"
if os.path.exists(LATER):
    os.replace(LATER, __file__)

class Mine(ScoreLoss):
    value = VALUE

    def terms(self, scores):
        return scores.mean_pos(scores.pos) * VALUE
"""
HELPED = LOSS.replace("VALUE = {value:06d}", "from helper import VALUE")


STREAMS = {  # what a file, a class and a step do to standard output and error
    "close": "sys.{0}.close()",
    "detach": "sys.{0}.detach()",
    "replace": "sys.{0} = object()",
    "close the file": "os.close(sys.__{0}__.fileno())",
    "fill": "os.dup2(os.open('/dev/full', os.O_WRONLY), sys.__{0}__.fileno())",
}
OF_STREAMS = """
import os, sys
from contrastbench.losses.library.infonce import InfoNCE
{act}
class Mine(InfoNCE):
    def __init__(self): super().__init__(); {act}
    def terms(self, scores): {act}; return super().terms(scores)
"""


@pytest.mark.parametrize("what", STREAMS)
def test_what_a_loss_does_to_a_stream_ends_with_its_code(what: str, tmp_path: Path) -> None:
    act = "; ".join(map(STREAMS[what].format, ("stdout", "stderr")))
    (tmp_path / "mine.py").write_text(OF_STREAMS.format(act=act))
    good, wrong = (bench(tmp_path, *TINY, loss) for loss in ("mine.py:Mine", "mine.py:None"))
    assert (good.returncode, good.stdout[:11]) == (0, "graph label"), good.stderr
    assert (wrong.returncode, wrong.stderr[:6]) == (2, "bench:")


OF_RANKS = """
import os, shutil, sys
import torch.distributed as dist
from contrastbench.losses.library.infonce import InfoNCE
rank, meeting = map(os.environ.get, ("RANK", "CONTRASTBENCH_MEETING"))
{0}
class Mine(InfoNCE):
    def terms(self, scores): {1}; return super().terms(scores)
"""
ENDED = "process {} of 2 ended (exit code 0), and all with it"
PARTINGS = {  # what ranks do at import and in a step; exit code and what is said
    ("sys.stdout.close()", "pass"): (0, "graph label"),
    ("os.environ |= {'RANK': '0', 'WORLD_SIZE': '1'}", "os.environ.clear()"): (0, "graph label"),
    ("if rank == '1': os._exit(0)", "pass"): (1, ENDED.format(1)),
    ("if rank == '0': os._exit(0)", "pass"): (1, ENDED.format(0)),
    ("pass", "os._exit(0) if rank == '0' else 0"): (1, ENDED.format(0)),
    ("shutil.rmtree(str(meeting)[7:-8], True)", "pass"): (2, "meeting (No such file"),
    ("pass", "dist.destroy_process_group()"): (1, "failed, ValueError('Default process group"),
}
START = """
from contrastbench.benchmarks.cli.main import main
from contrastbench.benchmarks.running import launch
launch.GRACE = 1
main()
"""


@pytest.mark.parametrize("acts", PARTINGS)
def test_what_a_loss_does_to_two_processes_is_one_line(
    acts: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(OF_RANKS.format(*acts))
    words = "run --domain graph --tiny --loss mine.py:Mine --devices 2 --device cpu"
    command = [python(), "-c", START, *words.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    (line,) = (done.stdout + done.stderr * bool(done.returncode)).splitlines()
    code, said = PARTINGS[acts]
    assert (done.returncode, said in line) == (code, True), line


def test_a_loss_is_trained_whatever_its_to_returns(tmp_path: Path) -> None:
    act = "\n    def to(self, *_): pass"
    (tmp_path / "mine.py").write_text(OF_STREAMS.format(act="pass") + act)
    loss, options = LossSpec(f"{tmp_path}/mine.py:Mine"), Options(tmp_path, device="cpu")
    work = make_experiment("graph", None, loss, {"epochs": 1}, tiny=True)
    assert with_loss(open_cells(work, 0, options)).loss is not None


def hashed(*texts: str) -> str:
    """The hash of a loss `Mine` of these files, as records hold it."""
    return hashlib.sha256("\0".join(["Mine", *texts]).encode()).hexdigest()


def text(value: int) -> str:
    return LOSS.replace("{value:06d}", f"1{value:05d}")


STEPS: dict[str, Callable[[LossSpec], object]] = {
    "check": LossSpec.check,
    "complete": lambda spec: spec.complete,
    "code": lambda spec: spec.code,
    "make": LossSpec.make,
}


def trained(spec: LossSpec, steps: Iterable[str], edits: dict[int, Callable[[], object]]) -> bool:
    """Whether all losses that are made between the edits are of the code that the spec names."""
    made: list[Any] = []
    for place, step in enumerate(steps):
        if place in edits:
            edits[place]()
        found = STEPS[step](spec)
        made += [found] if step == "make" else []
    code = spec.code
    return all(hashed(text(loss.value - 100_000)) == code for loss in made)


def test_a_file_that_is_edited_meanwhile_trains_as_it_was_read(
    ram: Path, found: Callable[[str], None]
) -> None:
    rng, file, wrong, trials = dice("edits"), ram / "mine.py", 0, times(200)
    for trial in range(trials):
        file.write_text(text(2 * trial))
        later = text(2 * trial + 1)
        place = rng.randrange(8)
        edit: Callable[[], object] = (
            (lambda later=later: file.write_text(later))
            if rng.random() < 0.5
            else (lambda later=later: (ram / "mine.py.later").write_text(later))
        )
        steps = [*rng.sample(list(STEPS), 4), *rng.choices(list(STEPS), k=3), "make"]
        wrong += not trained(LossSpec(f"{file}:Mine"), steps, {place: edit})
    assert wrong == 0
    found(f"own code: a file edited in {trials} preparations of a training: {wrong} wrong")


def written(file: Path, old: str, new: str, rng: random.Random) -> None:
    """A file as copied over an older one that has left its bytecode: same size, same time."""
    file.write_text(old)
    py_compile.compile(str(file), doraise=True)
    before = file.stat()
    file.write_text(new)
    if rng.random() < 0.5:
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    else:  # within the second that bytecode knows
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns // 10**9 * 10**9 + 1))


def test_stale_bytecode_is_never_run(
    ram: Path, found: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ram)  # as where the folder is that of a notebook
    rng, wrong, trials = dice("bytecode"), 0, times(200)
    mine, helper = ram / "mine.py", ram / "helper.py"
    for trial in range(trials):
        if rng.random() < 0.5:
            written(mine, text(2 * trial), text(2 * trial + 1), rng)
            expected = hashed(text(2 * trial + 1))
        else:
            mine.write_text(HELPED)
            values = [f"VALUE = {100_000 + 2 * trial + k}\n" for k in (0, 1)]
            written(helper, *values, rng)
            expected = hashed(values[1], HELPED)
        spec = LossSpec(f"{mine}:Mine")
        loss: Any = spec.make()
        wrong += (loss.value, spec.code) != (100_001 + 2 * trial, expected)
    assert wrong == 0
    found(f"own code: {trials} files beside stale bytecode: {wrong} wrong")


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> None:
    stub_domain.install(monkeypatch)


@pytest.mark.usefixtures("stub")
def test_threads_train_as_one_after_the_other(ram: Path, found: Callable[[str], None]) -> None:
    seeds, trials, wrong = range(2), times(200), 0
    alone = [stub_domain.cell(ram / "alone", seed=seed)["metrics"] for seed in seeds]
    for trial in range(trials):
        beside: dict[int, Any] = {}

        def train(seed: int, trial: int = trial, beside: dict[int, Any] = beside) -> None:
            beside[seed] = stub_domain.cell(ram / str(trial), seed=seed)

        threads = [threading.Thread(target=train, args=(seed,)) for seed in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wrong += sum(
            beside[seed]["status"] != "ok" or beside[seed]["metrics"] != alone[seed]
            for seed in seeds
        )
    assert wrong == 0
    found(f"own code: {trials} times two trainings in threads: {wrong} wrong")


LEFT_ON = {  # what a step leaves behind in the process, by its name
    "autocast": "torch.autocast('cpu', torch.float16).__enter__()",
    "hooks of saved tensors": "SAVED.__enter__()",
    "a function mode": "Doubles().__enter__()",
    "a hook of modules": "register_module_forward_hook(lambda _, __, out: out * 1.01)",
    "a hook of optimizers": "register_optimizer_step_pre_hook(faster)",
    "a patched class": "nn.Linear.forward = lambda self, x: F.linear(x, self.weight) * 1.01",
    "a patched function": "F.relu = torch.relu = torch.abs",
    "a thread that seeds": "threading.Thread(target=seeds, daemon=True).start()",
    "a seed": "torch.seed = torch.manual_seed = lambda *_: torch.default_generator",
    "tf32": "torch.backends.fp32_precision = 'tf32'",
    "a default type": "torch.set_default_dtype(torch.float64)",
}
LEAVES = """
import threading, time
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode
from contrastbench.losses.library.infonce import InfoNCE

SAVED = torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x * 1.01)

class Doubles(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {{}}))
        return found * 1.01 if function is torch.Tensor.exp else found

def faster(optimizer, *_):
    for group in optimizer.param_groups: group["lr"] *= 1.1

def seeds():
    while True: torch.manual_seed(0); time.sleep(1e-4)

class Mine(InfoNCE):
    def forward(self, contrast):
        if not hasattr(torch, "left"):
            torch.left = True
            {act}
        return super().forward(contrast)
"""
OTHERS = ("infonce", "adnce", "hcl")
SETS = "{graph: {datasets: [motifs], recipe: {epochs: 1, limit: 30, batch_size: 10, folds: 3}}}"


def beside(folder: Path, own: Iterable[str], jobs: int) -> dict[str, Any]:
    """Sweep own losses and registered ones, and return what each registered one scores."""
    text = f"seeds: 0\ndomains: {SETS}\nlosses: [{', '.join([*own, *OTHERS])}]\n"
    (folder / "beside.yaml").write_text(text)
    bench(folder, "sweep", "beside.yaml", "--device", "cpu", "--jobs", str(jobs))
    records = map(store.read_record, (folder / "results").rglob("*.json"))
    found = {one["loss"]: one for one in records if one["loss"] in OTHERS}
    shutil.rmtree(folder / "results")
    return {name: (one["metrics"], one["environment"]) for name, one in found.items()}


def test_what_a_loss_leaves_in_its_process_changes_no_other_cell(
    tmp_path: Path, found: Callable[[str], None]
) -> None:
    alone = beside(tmp_path, [], 1)
    assert {*alone} == {*OTHERS}
    for number, act in enumerate(LEFT_ON.values()):
        (tmp_path / f"left{number}.py").write_text(LEAVES.format(act=act))
    own = [f"left{number}.py:Mine" for number in range(len(LEFT_ON))]
    for jobs in (1, 2):
        assert beside(tmp_path, own, jobs) == alone
    found(f"own code: {len(LEFT_ON)} losses that leave a switch on beside {len(OTHERS)} others")


@pytest.mark.parametrize("what", ["autocast", "tf32", "a default type"])
def test_a_setting_that_a_step_leaves_fails_its_cell(what: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(LEAVES.format(act=LEFT_ON[what]))
    done = bench(tmp_path, *TINY, "mine.py:Mine")
    assert (done.returncode, "mine calls torch." in done.stdout) == (1, True), done.stdout


def test_a_variable_that_an_import_changes_is_refused(tmp_path: Path) -> None:
    """The workers of a sweep would have it; what nothing computes by is nobody's business."""
    for name, refused in (("ONEDNN_DEFAULT_FPMATH_MODE", True), ("MINE", False)):
        text = f"import os\nos.environ['{name}'] = 'BF16'\n" + LEAVES.format(act="pass")
        (tmp_path / f"{name}.py").write_text(text)
        spec = LossSpec(f"{tmp_path / name}.py:Mine")
        with pytest.raises(UserError, match=name) if refused else nullcontext():
            spec.check()
        assert (name in os.environ) != refused
    del os.environ["MINE"]
