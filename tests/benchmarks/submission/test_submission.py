"""A stranger's loss from `bench submit` to a verdict, and bundles that somebody has forged."""

import io
import json
import math
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest

import stub_domain
from contrastbench.benchmarks.cli import submit as command
from contrastbench.benchmarks.cli.options import parse_losses
from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.packing import merge_records
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.report.words import rendered
from contrastbench.benchmarks.running import runner
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.submission import apart, bundle, verify
from contrastbench.benchmarks.submission.apart import run_apart
from contrastbench.benchmarks.sweeps.plan import make_plan
from contrastbench.domains.base import Evaluation
from contrastbench.errors import UserError
from contrastbench.losses import laws
from contrastbench.losses.registry import describe
from contrastbench.losses.spec import LossSpec
from contrastbench.losses.stand_ins import make_stand_ins

MINE = """from contrastbench.losses.library.infonce import InfoNCE
class Mine(InfoNCE):
    pass
"""
SUITE = """seeds: 0-2
domains: {tabular: {datasets: [wine], recipe: {epochs: 1}}}
losses: [infonce, adnce]
tune: {seeds: [1000], trials: 2}
quick: {datasets: [wine], seeds: 0-1}
"""
YAML = "licence: MIT\npaper: https://example.org/mine\n"
Files = dict[str, bytes]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a suite, a loss, all its records, and trusted records of two others."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        install(patch)
        Path("suite.yaml").write_text(SUITE)
        Path("mine.py").write_text(MINE)
        Path("mine.yaml").write_text(YAML)
        fill("mine.py:Mine", Path("results"))
        for loss in ("infonce", "adnce"):
            fill(loss, Path("trusted"))
        bundle.bundle_loss("suite.yaml", LossSpec("mine.py:Mine"), Path("results"))
    return folder


@pytest.fixture(scope="module")
def honest(prepared: Path) -> str:
    """Where the loss stands; its cells are kept in that folder, and not made twice."""
    given = bundle.read_bundle(prepared / "mine-suite.zip")
    places = str(prepared / "suite.yaml"), [prepared / "trusted"]
    case = verify.Verification(given, *places, prepared, keep=prepared / "kept")
    with pytest.MonkeyPatch.context() as patch:
        patch_verification(patch)
        verify.run_checks(case)
    assert case.verified
    return standing(rendered("verification.md.j2", given=given, case=case))


@pytest.fixture
def mine(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench) -> Any:
    """`bench` in a copy of that folder."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    patch_verification(monkeypatch)
    monkeypatch.setattr(command, "SHIPPED", tmp_path / "trusted")
    return bench


def patch_verification(patch: pytest.MonkeyPatch) -> None:
    """Let cells take milliseconds, in this process, and no law be checked."""
    install(patch)
    patch.setattr(laws, "check_loss", lambda *_, **__: [])
    patch.setattr(apart, "run_apart", answered)


def answered(_: Sequence[str], folder: Path, *__: object) -> str:
    """Answer a request in this process; `test_bundle_programs.py` starts real ones."""
    apart.answer_request(folder)
    return "ended"


def install(patch: pytest.MonkeyPatch) -> None:
    """Let cells take milliseconds, and score them such that trials can be chosen."""
    stub_domain.install(patch)
    patch.setattr(stub_domain.Stub, "data_hash", lambda _, trained: ("0" if trained else "1") * 64)
    score = stub_domain.Stub.evaluate
    patch.setattr(stub_domain.Stub, "evaluate", lambda *of: validated(score(*of)))


def validated(found: Evaluation) -> Evaluation:
    about = {
        "samples": {"train": 4, "test": 2},
        "test_part": "redrawn",
        "right": [True, False],
    }
    return replace(found, validation=found.metrics["accuracy"], **about)


def fill(loss: str, results: Path, stages: int = 1) -> None:
    """Run the cells that the suite asks of a loss: trials, and what they choose."""
    (spec,) = parse_losses([loss])
    plan = make_plan("suite.yaml", results=results, losses=[spec])
    for _ in range(stages + 1):
        for task in plan.tasks():
            if task.state == "missing":
                runner.run_cell(task.experiment, task.seed, Options(results, device="cpu"))


def submitted(bench: Callable[..., Any]) -> Path:
    Path("mine-suite.zip").unlink()
    code, out, err = bench("submit", "suite.yaml", "--loss", "mine.py:Mine")
    assert (code, out) == (0, "mine-suite.zip\n"), err
    return Path("mine-suite.zip")


def verified(bench: Callable[..., Any], *words: str) -> tuple[int, str]:
    asked = ["verify", "mine-suite.zip", "suite.yaml", "--trust", "--results", "nothing", *words]
    code, out, err = bench(*asked)
    assert code in (0, 1), err
    return code, out


def forged(change: Callable[[dict[str, Any], Files], None]) -> None:
    given = bundle.read_bundle(Path("mine-suite.zip"))
    about = given.about.model_dump()
    files = {f"loss/{name}": text.encode() for name, text in given.sources.items()}
    files |= given.claims
    change(about, files)
    Path("mine-suite.zip").write_bytes(bundle.bundle_bytes(about, files))


def records(files: Files) -> dict[str, Record]:
    found = {name: json.loads(data) for name, data in files.items() if name.startswith("runs/")}
    return {name: {k: v for k, v in one.items() if k != "sha256"} for name, one in found.items()}


def put(files: Files, record: Record) -> None:
    """Add a record under its own key, with its own checksum."""
    record = {**record, "key": store.key(record)}
    files[store.record_path(Path(), record).as_posix()] = store.serialise_record(record)


def lifted(points: float, **change: Any) -> Callable[[dict[str, Any], Files], None]:
    """Return a forger who lifts every score, on a machine of his own."""

    def change_all(_: dict[str, Any], files: Files) -> None:
        for record in records(files).values():
            score = min(100.0, record["metrics"]["accuracy"] + points)
            about = {**record["environment"], "cpu": "another"}
            put(files, {**record, "metrics": {"accuracy": score}, "environment": about, **change})

    return change_all


def standing(out: str) -> str:
    """Return where the loss stands, as a verification says it; empty where it does not."""
    return out.partition("### Standing, by the records made here")[2]


def test_a_loss_goes_from_its_records_to_a_verdict(mine) -> None:
    submitted(mine)
    code, out = verified(mine)
    assert code == 0, out
    assert out.startswith("## mine.py:Mine on suite: verified\n")
    assert "Licence MIT. Paper: https://example.org/mine." in out
    assert "| cells | passed | 5 cells, all that suite asks of the loss |" in out
    assert "| claim | passed | 5 of 5 equal to the bit |" in out
    assert "mine.py:Mine: untested" in standing(out)
    assert len(out) < 65_000, "a comment on GitHub has at most 65,536 letters"
    assert not Path("nothing").exists()
    code, out = verified(mine, "--quick")
    assert (code, "verified" in out.partition("\n")[0]) == (0, False), "of a part: it agrees"
    assert "| claim | passed | 2 of 2 equal to the bit |" in out
    assert "Quick part of suite" in standing(out)


@pytest.mark.parametrize("name", ["lifts", "no records"])
def test_a_quick_look_that_disagrees_ends_with_1(mine, name: str) -> None:
    forged(FORGED[name])
    code, out = verified(mine, "--quick")
    assert (code, "| claim | **failed** |" in out) == (1, True), out


@pytest.mark.parametrize("given", [[], ["--data-root", "data"]])
def test_the_folder_of_the_data_is_said_once(mine, given: list[str]) -> None:
    Path("data").mkdir()
    asked = ["verify", "mine-suite.zip", "suite.yaml", "--trust", "--keep", "kept", *given]
    code, _, err = mine(*asked)
    root = Path(*given[1:]).absolute()
    assert (code, err.count(str(root)), " wine" in err) == (0, 1, True), "and what is made"


def test_the_records_made_here_are_kept_and_go_on(mine, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the author's to the bit, and no cell is made twice."""
    shutil.rmtree("kept", ignore_errors=True)
    verified(mine, "--keep", "kept")
    for path in sorted(Path("kept").rglob("*.json"))[:3]:
        path.unlink()
    asked, run = list[int](), apart.run
    monkeypatch.setattr(
        apart, "run", lambda at, what, loss: asked.extend(what["seeds"]) or run(at, what, loss)
    )
    code, out = verified(mine, "--keep", "kept")
    assert (code, len(asked)) == (0, 3), out
    done = merge_records([Path("kept")], Path("results"))
    assert (done.added, done.equal) == (0, 5)


def test_what_one_training_scores_is_made_once(mine, monkeypatch: pytest.MonkeyPatch) -> None:
    two = "datasets: [wine, breast_cancer], recipe: {epochs: 1, score_on: [wine, breast_cancer]}"
    Path("suite.yaml").write_text(SUITE.replace("datasets: [wine], recipe: {epochs: 1}", two))
    for folder, loss in (("results", "mine.py:Mine"), ("trusted", "infonce")):
        fill(loss, Path(folder))
    submitted(mine)
    asked, run = list[int](), apart.run
    monkeypatch.setattr(
        apart, "run", lambda at, what, loss: asked.extend(what["seeds"]) or run(at, what, loss)
    )
    code, out = verified(mine)
    assert (code, len(asked)) == (0, 5), out
    assert "| claim | passed | 10 of 10 equal to the bit |" in out


def test_several_children_at_a_time_come_to_the_same(
    honest: str, mine, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Barrier(2, timeout=60)

    def together(command: Sequence[str], folder: Path, *more: object) -> str:
        if json.loads((folder / "request.json").read_bytes()).get("seeds") == [1000]:
            both.wait()
        return answered(command, folder, *more)

    monkeypatch.setattr(apart, "run_apart", together)
    code, out = verified(mine, "--jobs", "2")
    assert (code, standing(out)) == (0, honest), out


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_all_children(jobs: int, mine, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = Event(), list[str]()

    def waits(command: Sequence[str], folder: Path, seconds: float, stop: Event, *_: Path) -> str:
        if "seeds" not in json.loads((folder / "request.json").read_bytes()):
            return answered(command, folder)
        begun.set()
        ended.append(run_apart(["sleep", "60"], folder, 60, stop))
        return ended[-1]

    def interrupted(_: object) -> Any:
        begun.wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr(apart, "run_apart", waits)
    monkeypatch.setattr(verify, "as_completed", interrupted)
    given = bundle.read_bundle(Path("mine-suite.zip"))
    case = verify.Verification(given, "suite.yaml", [Path("trusted")], Path(), jobs=jobs)
    with pytest.raises(KeyboardInterrupt):
        verify.run_checks(case)
    assert ({*ended}, len(ended) > jobs) == ({"was stopped"}, False), "and no other begins"


def test_a_bundle_is_the_same_for_the_same_records_which_can_be_merged(mine) -> None:
    first = submitted(mine).read_bytes()
    assert submitted(mine).read_bytes() == first
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        names = archive.namelist()
        archive.extractall("unpacked")
    assert names[:2] == ["bundle.json", "loss/mine.py"]
    code, out, _ = mine("merge", "unpacked", "--results", "other")
    assert (code, out) == (0, "5 added, 0 equal, 0 unequal\n")


def scored(_: dict[str, Any], files: Files) -> None:
    name, data = next((name, data) for name, data in files.items() if name.startswith("runs/"))
    score = json.loads(data)["metrics"]["accuracy"]
    files[name] = data.replace(str(score).encode(), b"99.5")


def swapped(_: dict[str, Any], files: Files) -> None:
    files["loss/mine.py"] = MINE.replace("pass", "ordered = False").encode()


def swapped_with_its_hash(_: dict[str, Any], files: Files) -> None:
    text = MINE.replace("pass", "def terms(self, scores): return 9 * super().terms(scores)")
    Path("other").mkdir()
    Path("other/mine.py").write_text(text)
    code = LossSpec("other/mine.py:Mine").code
    files["loss/mine.py"] = text.encode()
    for name, record in records(files).items():
        del files[name]
        own = {**record["own_loss"], "files": {"mine.py": text}}
        put(files, {**record, "loss_code": code, "own_loss": own})


def of_a_file_elsewhere(about: dict[str, Any], files: Files) -> None:
    about["loss"] = f"{Path('mine.py').absolute()}:Mine"
    for record in records(files).values():
        put(files, {**record, "own_loss": {**record["own_loss"], "name": about["loss"]}})


def with_a_seed(_: dict[str, Any], files: Files) -> None:
    record = next(one for one in records(files).values() if one["seed"] == 2)
    put(files, {**record, "seed": 3})


def for_each(**change: Any) -> Callable[[dict[str, Any], Files], None]:
    """Return a forger who changes fields of every record; those of `details` within them."""

    def change_all(_: dict[str, Any], files: Files) -> None:
        for name, record in records(files).items():
            del files[name]
            inner = {**record["details"], **change.get("details", {})}
            put(files, {**record, **change, "details": inner})

    return change_all


def another_metric(_: dict[str, Any], files: Files) -> None:
    for record in records(files).values():
        put(files, {**record, "metrics": {**record["metrics"], "other": 99.0}, "main": "other"})


FORGED = {
    "a score without its checksum": scored,
    "another file": swapped,
    "another file with its keys": swapped_with_its_hash,
    "a file elsewhere": of_a_file_elsewhere,
    "a seed less": lambda _, files: files.pop(next(n for n in files if "seed2" in n)),
    "a seed more": with_a_seed,
    "other data": for_each(data_hash="1" * 64),
    "lifts": lifted(30.0),
    "lifts like seeds": lifted(0.01),
    "folds": for_each(details={"folds": [99.0, 98.0], "inner": [1.0, 2.0]}),
    "trials by test score": for_each(details={"validation": 1.0}),
    "another main metric": another_metric,
    "samples": for_each(details={"samples": {"test": 1}}),
    "test part": for_each(details={"test_part": "fixed"}),
    "scored data": for_each(details={"scored_data": "other"}),
    "no records": lambda _, files: [files.pop(name) for name in records(files)],
    "all diverged": for_each(status="diverged"),
}


@pytest.mark.parametrize("name", FORGED)
def test_whatever_a_bundle_claims_the_verdict_is_that_of_its_loss(
    honest: str, mine, name: str
) -> None:
    """The standing is what the files of the bundle make it, to the letter, or there is none."""
    forged(FORGED[name])
    code, out = verified(mine, "--keep", "kept")
    if name != "another file with its keys":  # whose standing is that of the other file
        assert standing(out) in ("", honest)
    assert (code == 0) == (name == "lifts like seeds"), out


@pytest.mark.parametrize("change", [{"seconds": 1.0}, {"environment": {"commit": "f" * 40}}])
def test_what_a_claim_says_of_its_machine_is_never_used(
    honest: str, mine, change: dict[str, Any]
) -> None:
    forged(for_each(**change))
    code, out = verified(mine, "--keep", "kept")
    assert (code, standing(out)) == (0, honest)
    made = [json.loads(path.read_bytes()) for path in Path("kept").rglob("*.json")]
    assert not any(one[key] == value for one in made for key, value in change.items())


def test_a_loss_that_breaks_a_law_is_not_verified(mine, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = laws.CheckResult("sign", False, "it is upside down")
    monkeypatch.setattr(laws, "check_loss", lambda *_, **__: [broken])
    code, out = verified(mine)
    assert (code, standing(out)) == (1, "")
    assert "| loss | **failed** | the loss's process says: sign: it is upside down |" in out


DECLARED = [
    {"params": {"a=print('ran')": 1}},
    {"params": {"a": 0}, "ranges": {"a": {"low": "__import__('os')"}}},
    {"params": {"a": 0}, "ranges": {"a": {"other": "b", "ranges": {}}}},
    {"params": {"a": 10**4000}},
    {"limits": [{"to": "infonce", "at": "print"}]},
    {"params": {"params": 0}},
    {"params": {"__class__": 0}},
    {"params": {"a": 0}, "ranges": {"a": {"tune": [0, inf]}}},
    {"laws": {"## verified": "declined"}},
    {"code": ""},
]


@pytest.mark.parametrize("declared", DECLARED)
def test_what_is_no_declaration_is_no_stand_in(
    mine, monkeypatch: pytest.MonkeyPatch, declared: Any
) -> None:
    def answers(_: Sequence[str], folder: Path, *__: object) -> str:
        term = {"summary": "", "params": {}, **declared}
        told = {key: term.pop(key) for key in ("laws", "code") if key in term}
        (folder / "answer.json").write_text(json.dumps({"terms": [term], **told}))
        return "ended"

    monkeypatch.setattr(apart, "run_apart", answers)
    code, out = verified(mine)
    assert (code, standing(out)) == (1, "")
    assert "| loss | **failed** |" in out


LIMITED = """from contrastbench.losses.library.infonce import InfoNCE
from contrastbench.losses.limits import Limit, reduces
from contrastbench.losses.ranges import TEMPERATURE, Number, declare
class Mine(InfoNCE):
    ranges = declare(temperature=TEMPERATURE, margin=Number(low=0, closed="low", tune=(0, 0.5)))
    limits = reduces(Limit("infonce", {"margin": 0}))
    def __init__(self, temperature: float = 0.5, margin: float = 0.1) -> None:
        super().__init__(temperature)
        self.margin = self.checked("margin", margin)
"""


@pytest.mark.usefixtures("mine")
def test_a_stand_in_declares_what_the_loss_does() -> None:
    Path("mine.py").write_text(LIMITED)
    answer = apart.declare(LossSpec("mine.py:Mine")).model_dump_json()
    (term,) = apart.Answer.model_validate_json(answer).terms
    (name,) = make_stand_ins({"mine.py:Mine": term}).values()
    ours, theirs = describe("mine.py:Mine"), describe(name)
    assert (theirs.params, theirs.ranges, theirs.limits) == (ours.params, ours.ranges, ours.limits)
    complete = LossSpec(name).complete
    assert (complete.name, complete.params) == ("mine", {"temperature": 0.5, "margin": 0.1})


ABOUT = {
    "suite": "s",
    "loss": "mine.py:Mine",
    "params": {},
    "licence": "MIT",
    "paper": "https://e.org",
}
BROKEN = [
    ({"bundle.json": json.dumps(ABOUT), "runs/x": b""}, "x.zip has no file of a loss: give one"),
    *(
        ({"bundle.json": json.dumps(ABOUT | {key: text}), "loss/x": b""}, f"bundle.json: {key}")
        for key, text in (("licence", "<b>MIT</b>"), ("paper", "javascript:alert(1)"))
    ),
    (b"no zip", "x.zip is no bundle (File is not a zip file): give one that bench submit wrote"),
    ({"loss/x": b"", "bundle.json": b"{}"}, "bundle.json: it has no licence: give one"),
    ({"loss/x": b"", "bundle.json": b"{"}, "x.zip is no bundle (EOF while parsing an object"),
    ({"loss/x": b"\xff", "bundle.json": b"{}"}, "x.zip is no bundle ('utf-8' codec can't decode"),
    (
        {"loss/x": b"", "bundle.json": json.dumps(ABOUT | {"params": {"t": math.nan}})},
        "x.zip is no bundle (",
    ),
    ({"loss/x": b""}, "x.zip is no bundle (EOF while parsing a value"),
]
UNSEEN = [  # one of each kind: `tests/attack/test_loss_files.py` has all letters and encodings
    *("../../x.py", f"{'x' * 300}.py", "mine.py/x.py", "x/../mine.py", "MINE.py", ".", ""),
    *("\uff4dine.py", "\u202ea.py"),
    *("# a\rprint()", "# \ufe0f", "# coding: utf-7", "# coding: nothing", "\ufeff#"),
    *(f"x = 1  #{' ' * 500}", "f'{\U0001d41e\u1d5bal(1)}'"),
]


@pytest.mark.parametrize(("contents", "message"), BROKEN)
def test_what_is_no_bundle_is_not_verified(bench, contents: Any, message: str) -> None:
    if isinstance(contents, bytes):
        Path("x.zip").write_bytes(contents)
    else:
        with zipfile.ZipFile("x.zip", "w") as archive:
            for name, data in contents.items():
                archive.writestr(name, data)
    code, out, err = bench("verify", "x.zip")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert message in err


@pytest.mark.parametrize("what", UNSEEN)
def test_no_file_of_a_loss_is_another_than_a_reader_sees(mine, what: str) -> None:
    name, text = ("a.py", what) if {*what} & {*"#'"} else (what, MINE)
    forged(lambda _, files: files.update({f"loss/{name}": text.encode()}))
    before = sorted(Path().rglob("*"))
    code, out, err = mine("verify", "mine-suite.zip", "suite.yaml", "--trust")
    assert (code, out, err.count("\n")) == (2, "", 1), err
    why = ("outside its folder: ", "take two files", "hides code", "UTF-8", "more than", "lies in")
    assert sum(one in err for one in why) == 1, err
    assert sorted(Path().rglob("*")) == before


def test_a_bundle_has_bounds_and_each_name_once(mine, monkeypatch: pytest.MonkeyPatch) -> None:
    path = submitted(mine)
    size = path.stat().st_size
    for most, fault in ((size, "unpacks to more than 0 MiB"), (size - 1, "larger than")):
        monkeypatch.setattr(bundle, "MAX_BUNDLE_BYTES", most)
        with pytest.raises(UserError, match=fault):
            bundle.read_bundle(path)
    monkeypatch.setattr(bundle, "MAX_BUNDLE_BYTES", 2**28)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bundle.json", "a")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("bundle.json", "b")
    with pytest.raises(UserError, match="two members are named"):
        bundle.read_bundle(path)


def test_a_sum_with_an_own_term_is_a_loss_too(mine) -> None:
    name = "0.5*mine.py:Mine + infonce"
    Path("mine-suite.zip").unlink()
    fill(name, Path("results"))
    code, out, err = mine("submit", "suite.yaml", "--loss", name)
    assert (code, out) == (0, "mine-suite.zip\n"), err
    code, out = verified(mine)
    assert code == 0, out
    assert out.startswith(f"## {name} on suite: verified\n")


def test_the_sweep_file_is_never_the_bundles(mine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a bundle names might ask for less; a suite of another name is refused too."""
    code, out, err = mine("verify", "mine-suite.zip", "--trust")
    assert (code, out) == (2, "")
    assert "the bundle is for 'suite', which does not ship: add its sweep file" in err
    shutil.rmtree("trusted")
    monkeypatch.setattr(verify.apart, "ask", None)  # the loss is not run without records beside it
    code, out, err = mine("verify", "mine-suite.zip", "suite.yaml", "--trust")
    assert (code, out) == (2, "")
    assert "no records of infonce in results and" in err
    Path("other.yaml").write_text(SUITE)
    code, out, _ = mine("verify", "mine-suite.zip", "other.yaml", "--trust")
    assert code == 1
    assert "| loss | **failed** | it is for suite, not for other |" in out


def test_nothing_of_the_bundle_runs_before_it_is_trusted(mine) -> None:
    Path("mine.py").write_text(MINE + "open('ran', 'w').close()\n")
    fill("mine.py:Mine", Path("results"))
    submitted(mine)
    Path("ran").unlink()
    code, out, err = mine("verify", "mine-suite.zip", "suite.yaml")
    assert code == 2
    assert "Read mine.py." in out
    assert "mine-suite.zip runs Python of its own: read it, then give --trust" in err
    assert not Path("ran").exists()


def test_the_judging_process_never_imports_the_loss(mine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a child answers elsewhere, nothing of the loss's file has run here, for no limit."""
    limits = "    limits = reduces(Limit(__file__ + ':Mine'))\n"
    head = "from contrastbench.losses.limits import Limit, reduces\n"
    Path("mine.py").write_text(
        head + MINE.replace("    pass\n", limits) + "open('ran', 'a').close()\n"
    )
    fill("mine.py:Mine", Path("results"))
    submitted(mine)
    Path("ran").unlink()

    def elsewhere(*given: Any) -> str:
        said = answered(*given)
        Path("ran").unlink(missing_ok=True)
        return said

    monkeypatch.setattr(apart, "run_apart", elsewhere)
    code, out = verified(mine)
    assert (code, Path("ran").exists()) == (0, False), out


EVIL = "from pathlib import Path\nPath(%r).touch()\n"


def test_nothing_that_a_child_writes_is_code_or_gets_longer(
    honest: str, mine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fills every folder that it can guess, beside its own and above, and the folder --keep."""
    monkeypatch.setattr(tempfile, "tempdir", str(Path("temporary").absolute()))
    ran, target = Path("ran").absolute(), Path("target").absolute()
    Path("temporary").mkdir()
    target.write_text("it")

    def hostile(command: Sequence[str], folder: Path, *more: object) -> str:
        said = answered(command, folder, *more)
        for place in (folder, *folder.parents[: folder.parts[::-1].index("temporary")]):
            for name in ("stand-in", "loss", "results", "declared", "cells"):
                (place / name).mkdir(exist_ok=True)
                (place / name / "mine.py").unlink(missing_ok=True)
                (place / name / "mine.py").write_text(EVIL % str(ran))
                (place / name / "other.py").unlink(missing_ok=True)
                (place / name / "other.py").symlink_to(target)
        for path in Path("kept").rglob("*.json"):
            path.write_text("forged")
        return said

    monkeypatch.setattr(apart, "run_apart", hostile)
    shutil.rmtree("kept")
    code, out = verified(mine, "--keep", "kept")
    assert (code, standing(out), ran.exists()) == (0, honest, False), out
    assert target.read_text() == "it"


def test_what_a_child_has_put_into_the_folder_of_results_is_not_kept_as_made_here(
    mine, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree("kept")

    def hostile(command: Sequence[str], folder: Path, *more: object) -> str:
        said = answered(command, folder, *more)
        if (folder / "results").exists():
            shutil.copytree(folder / "results", "kept", dirs_exist_ok=True)
        return said

    monkeypatch.setattr(apart, "run_apart", hostile)
    code, out = verified(mine, "--keep", "kept")
    assert (code, "was written by another process" in out) == (1, True), out


def test_a_loss_that_says_it_is_another_gets_none_of_its_kept_records(
    mine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process alone knows the hash of its code: records made earlier are compared by files."""
    code, declare = LossSpec("mine.py:Mine").code, apart.declare
    worse = MINE.replace("pass", "def terms(self, scores): return -super().terms(scores)")
    forged(lambda _, files: files.update({"loss/mine.py": worse.encode()}))
    monkeypatch.setattr(
        apart, "declare", lambda loss: declare(loss).model_copy(update={"code": code})
    )
    said, out = verified(mine, "--keep", "kept")
    assert (said, "was made of other files" in out) == (1, True), out


SAYS = {  # what a process says of a record beyond its numbers
    "command": "bench run --loss other",
    "environment": {"commit": "f" * 40, "device": "a card", "versions": {}},
    "own_loss": {"name": "mine.py:Mine", "files": {"mine.py": "print()"}},
    "peak": "of Everest",
    "details": {"data": {"note": "verified by all"}, "note": "verified", "report": {"parts": {}}},
}


@pytest.mark.parametrize("what", SAYS)
def test_a_kept_record_has_no_word_of_the_process_that_made_it(
    mine, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """They are those of the records that an honest one makes."""
    shutil.rmtree("kept", ignore_errors=True)
    verified(mine, "--keep", "honest")

    def lies(command: Sequence[str], folder: Path, *more: object) -> str:
        said = answered(command, folder, *more)
        for path in (folder / "results").rglob("*.json"):
            record = json.loads(path.read_bytes())
            del record["sha256"]
            inner = {**record["details"], **SAYS["details"]} if what == "details" else SAYS[what]
            path.write_bytes(store.serialise_record({**record, what: inner}))
        return said

    monkeypatch.setattr(apart, "run_apart", lies)
    verified(mine, "--keep", "kept")
    kept, honest = (
        {path.name: timeless(path) for path in Path(folder).rglob("*.json")}
        for folder in ("kept", "honest")
    )
    assert len(kept) == 5
    assert kept == honest


def timeless(path: Path) -> dict[str, Any]:
    record = json.loads(path.read_bytes())
    details = {k: v for k, v in record["details"].items() if not k.startswith("seconds")}
    taken = ("seconds", "sha256", "peak_memory_mib")
    return {**{k: v for k, v in record.items() if k not in taken}, "details": details}


MISTAKES = {
    "5 of 5 cells have no result yet with": lambda: Path("mine.py").write_text(MINE + "# better"),
    "1 of 5 cells have no result yet": lambda: next(Path("results").rglob("*-seed1.json")).unlink(),
    "mine.yaml is missing: write two lines": lambda: Path("mine.yaml").unlink(),
    "mine.yaml:1: the key 'paper'": lambda: Path("mine.yaml").write_text("licence: MIT\n"),
    "adnce has no file of its own: give --loss FILE.py:CLASS": lambda: None,
}


@pytest.mark.parametrize("message", MISTAKES)
def test_what_is_not_ready_is_refused(mine, message: str) -> None:
    Path("mine-suite.zip").unlink()
    MISTAKES[message]()
    loss = "adnce" if message.startswith("adnce") else "mine.py:Mine"
    code, out, err = mine("submit", "suite.yaml", "--loss", loss)
    assert (code, out) == (2, "")
    assert message in err
    assert not list(Path().glob("*.zip"))


def test_another_file_stays(mine) -> None:
    path = submitted(mine)
    path.write_text("notes")
    code, _, err = mine("submit", "suite.yaml", "--loss", "mine.py:Mine")
    assert (code, "mine-suite.zip is another file: move it away" in err) == (2, True), err
    assert path.read_text() == "notes"
