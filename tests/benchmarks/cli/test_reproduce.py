"""`bench reproduce`: a record run again, and what is said of its numbers."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch

import stub_domain
from contrastbench.benchmarks.cli import reproduce as command
from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.running import devices
from contrastbench.benchmarks.submission import reproduction
from contrastbench.losses import source as losses_code
from made_records import add

MINE = "from contrastbench.losses.library.infonce import InfoNCE\nclass Mine(InfoNCE):\n    pass\n"


@pytest.fixture(autouse=True)
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells of milliseconds, and no records but those of the test."""
    stub_domain.install(monkeypatch)
    monkeypatch.setattr(command, "SHIPPED", tmp_path / "shipped")


def changed(record: Record, **values: Any) -> Path:
    """Publish a record with other values in its place; its key stays."""
    path = store.record_path(Path("results"), record)
    path.unlink(missing_ok=True)
    record = {name: value for name, value in record.items() if name != "sha256"}
    store.publish_record({**record, **values}, path)
    return path


def name_of(record: Record) -> str:
    return f"{record['key'][:16]}-seed{record['seed']}"


def elsewhere(record: Record) -> Record:
    """What a record of another machine says of it."""
    return {**record["environment"], "cpu": "another"}


def test_the_same_numbers_are_equal_to_the_bit(bench) -> None:
    record = stub_domain.cell(Path("results"))
    file = str(store.record_path(Path("results"), record))
    Path("sent.json").write_bytes(Path(file).read_bytes())
    for name in (file, "sent.json", name_of(record), f"{record['key']}-seed0"):
        assert bench("reproduce", name)[:2] == (
            0,
            "graph motifs infonce seed 0: equal to the bit\n",
        )
    files = sorted(path.name for path in Path("results").rglob("*.json"))
    assert files == [Path(file).name], "nothing is added"


def test_variables_that_decide_arithmetic_are_circumstances(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in os.environ if name.startswith(("MKL_", "OPENBLAS_"))]:
        monkeypatch.delenv(name)  # a machine may set them for all
    monkeypatch.setenv("MKL_NUM_THREADS", "2")
    assert "variables" not in devices.circumstances(torch.device("cpu"))
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    about = {**devices.circumstances(torch.device("cpu")), "deterministic": True}
    assert about["variables"] == {"MKL_CBWR": "COMPATIBLE"}
    record: Any = {"environment": about}
    other: Any = {"environment": {k: v for k, v in about.items() if k != "variables"}}
    (found,) = reproduction.Outcome(record, other, reproduction.Spread({}, 0)).circumstances
    assert found[:3] == ("variables.MKL_CBWR", "COMPATIBLE", None)
    whole, short, changed = ("0123456789abcdef", "012345678", "0123456789abcdef+changes")
    for one, another, differ in ((whole, short, 0), (whole, changed, 1), (whole, None, 1)):
        pair: Any = [{"environment": {"commit": commit}} for commit in (one, another)]
        assert len(reproduction.Outcome(*pair, reproduction.Spread({}, 0)).circumstances) == differ


def test_where_nothing_differs_any_difference_is_too_much(bench) -> None:
    record = stub_domain.cell(Path("results"))
    for seed in (1, 2):
        stub_domain.cell(Path("results"), seed=seed)
    score = record["metrics"]["accuracy"]
    changed(record, metrics={"accuracy": score + 1e-9})
    code, out, _ = bench("reproduce", name_of(record))
    assert (code, "NOT equal, though all is the same" in out) == (1, True)
    assert [str(score + 1e-9), str(score)] == out.splitlines()[2].split()[1:3]


TOLD = [{"main": "other"}, *({"details": {name: 1}} for name in reproduction.FACTS)]


@pytest.mark.parametrize("lie", TOLD)
@pytest.mark.parametrize("cpu", ["", "another"])
def test_what_a_number_is_of_must_be_equal_on_any_machine(lie: Any, cpu: str) -> None:
    about: Any = {"main": "accuracy", "details": {**dict.fromkeys(reproduction.FACTS, 2)}}
    again = {**about, "metrics": {}, "environment": {"cpu": cpu}}
    told = {**again, "environment": {}, **lie}
    outcome = reproduction.Outcome(told, again, reproduction.Spread({}, 0))
    assert (outcome.equal, outcome.within) == (False, False)


@pytest.mark.parametrize("name", ["rows", "images"])
def test_samples_by_the_name_of_an_early_release_are_compared(name: str) -> None:
    again: Any = {"details": {"samples": {"train": 2}}, "metrics": {}, "environment": {}}
    for count in (2, 3):
        told = {**again, "details": {name: {"train": count}}}
        outcome = reproduction.Outcome(told, again, reproduction.Spread({}, 0))
        assert outcome.equal == (count == 2)


@pytest.mark.parametrize(("share", "code"), [(0.99, 0), (1.01, 1)])
def test_machines_may_differ_as_seeds_do(bench, share: float, code: int) -> None:
    results = Path("results")
    records = [stub_domain.cell(results, seed=seed) for seed in range(5)]
    scores = torch.tensor([one["metrics"]["accuracy"] for one in records], dtype=torch.float64)
    for i, one in enumerate(records):  # all move, so the spread stays as it is
        changed(one, metrics={"accuracy": scores[i].item() - share * 2.8 * scores.std().item()})
    changed(
        records[0],
        metrics={"accuracy": scores[0].item() - share * 2.8 * scores.std().item()},
        environment=elsewhere(records[0]),
    )
    found, out, _ = bench("reproduce", name_of(records[0]))
    assert found == code, out
    said = "within what two machines may differ by"
    assert f"seed 0: {'NOT ' * code}{said}" in out
    assert "the median of 1 cell of motifs" in out
    assert "  cpu: another, now " in out


def test_the_limit_is_the_median_over_cells_that_were_trained(tmp_path: Path) -> None:
    for loss, step in (("infonce", 1.0), ("adnce", 2.0), ("hcl", 9.0)):
        for seed in range(3):
            path = add(tmp_path, seed, 50 + step * seed, loss)
    for seed in range(2):
        add(tmp_path, seed, 50 + 20.0 * seed, "rince")  # too few seeds
        add(tmp_path, seed, 50.0, "none", recipe={"epochs": 3})
    spread = reproduction.spread_of(store.read_record(path), [tmp_path, tmp_path])
    assert spread.limits == {"accuracy": pytest.approx(2.8 * 2.0)}
    assert spread.cells == 3


def test_an_own_loss_is_run_from_its_record_once_it_is_trusted(bench, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    file = tmp_path / "a" / "mine.py"
    file.write_text(MINE)
    record = stub_domain.cell(Path("results"), "0.5*a/mine.py:Mine + infonce")
    file.unlink()
    code, out, err = bench("reproduce", name_of(record))
    assert (code, out) == (2, "")
    assert "0.5*mine.py:Mine + infonce': read it, then give --trust" in err
    code, out, err = bench("reproduce", name_of(record), "--trust")
    assert (code, "equal to the bit" in out) == (0, True), err
    other = {"name": "mine.py:Mine", "files": {"../mine.py": MINE}}
    changed(record, own_loss=other)
    code, _, err = bench("reproduce", name_of(record), "--trust")
    assert (code, "a file outside its folder: ../mine.py" in err) == (2, True)
    edited = {**record["own_loss"], "files": {"mine.py": MINE + "# edited\n"}}
    changed(record, own_loss=edited)
    code, _, err = bench("reproduce", name_of(record), "--trust")
    assert (code, "this version makes another experiment of the record" in err) == (2, True)


def test_a_packaged_loss_needs_its_release(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    name, release = "packaged_losses:Vicreg", "1.0"
    monkeypatch.setattr(losses_code, "distributions", lambda: {"packaged_losses": ["theirs"]})
    monkeypatch.setattr(losses_code, "version", lambda _: release)
    monkeypatch.setattr(reproduction, "version", lambda _: release)
    record = stub_domain.cell(Path("results"), name)
    assert record["status"] == "ok"
    assert (record["loss"], record["params"]["weight"]) == (name, 25.0)
    assert record["own_loss"] == {"name": name, "files": {}, "packages": {"theirs": "1.0"}}
    code, out, err = bench("reproduce", name_of(record), "--trust")
    assert (code, "equal to the bit" in out) == (0, True), err
    release = "1.1"
    code, _, err = bench("reproduce", name_of(record), "--trust")
    assert code == 2
    assert "the record says that its loss is of theirs==1.0, and here is another release" in err
    assert "pip install" not in err, "it would be what the record made up"
    assert stub_domain.cell(Path("results"), name)["key"] != record["key"]


LEARNED = Path(__file__).parents[2] / "losses" / "learned.py"


def test_what_a_loss_has_learned_is_compared_where_it_is_recorded(bench) -> None:
    record = stub_domain.cell(Path("results"), f"{LEARNED}:Temperature")
    (value,) = record["details"]["learned"].values()
    changed(record, details={"learned": {"temperature": value + 1e-9}})
    code, out, _ = bench("reproduce", name_of(record), "--trust")
    assert (code, "NOT equal, though all is the same" in out) == (1, True)
    assert ["details.learned.temperature", str(value + 1e-9), str(value)] in map(
        str.split, out.splitlines()
    )
    changed(record, details={})  # as a record of an earlier release
    code, out, _ = bench("reproduce", name_of(record), "--trust")
    assert (code, "equal to the bit" in out) == (0, True)


MISTAKES = [
    (lambda record: "0" * 16, {}, "no record 0000000000000000 in results or "),
    (lambda record: f"{record['key']}-seed(", {}, "-seed( in results or "),
    (lambda record: "nowhere/x-seed0.json", {}, "no record nowhere/x-seed0 in results or "),
    (name_of, {"loss_code": "0" * 64}, "is somebody's own, and the record has no file"),
    (name_of, {"protocol": "graphcl/0"}, "the record is of protocol graphcl/0, this version has"),
    (name_of, {"data_hash": "1" * 64}, "motifs here is not the data of the record"),
    (name_of, {"environment": {"devices": ["a", "b"]}}, "on 2 devices at once: run its command"),
    (name_of, {"dataset": "my.py:load"}, "runs Python of its own, 'my.py:load': read it, then"),
    (name_of, {"recipe": {"nonsense": 1}}, "unknown recipe key of domain graph 'nonsense'"),
]


@pytest.mark.parametrize(("name", "values", "message"), MISTAKES)
def test_a_mistake_is_one_line(bench, name: Any, values: Record, message: str) -> None:
    results = Path("results")
    record = stub_domain.cell(results)
    stub_domain.cell(results, seed=1)
    record = {key: value for key, value in record.items() if key not in ("sha256", "command")}
    if values:
        record |= values
        record["key"] = store.key(record)
        store.record_path(results, record).unlink(missing_ok=True)
        store.publish_record(record, store.record_path(results, record))
    code, out, err = bench("reproduce", name(record))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_a_record_older_than_commands_and_a_setting_is_run_by_its_fields(bench) -> None:
    record = stub_domain.cell(Path("results"))
    del record["command"], record["recipe"]["permuted"]
    record["key"] = store.key(record)
    changed(record, environment={"device": "x86_64 CPU", "threads": 1})
    code, out, _ = bench("reproduce", name_of(record))
    assert (code, "equal to the bit" in out) == (0, True)
    assert "  not in the record: " in out


def test_a_cell_that_fails_now_is_not_reproduced(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    record = stub_domain.cell(Path("results"))

    def fail(*_: Any) -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(stub_domain.Stub, "evaluate", fail)
    code, out, _ = bench("reproduce", name_of(record))
    assert code == 1
    assert "now failed: RuntimeError('no more')" in out
    assert "Traceback" not in out


ORDINARY = {"deterministic": True, "tf32": False, "compile": False}


@pytest.mark.parametrize(
    ("recorded", "asked", "used"),
    [
        ({"device": "x86_64 CPU"}, None, {"device": "cpu"}),
        ({"device": None}, None, {"device": "cpu", **ORDINARY}),
        ({"device": "NVIDIA H100"}, None, {"device": "auto"}),
        ({"device": "NVIDIA H100"}, "cpu", {"device": "cpu"}),
        ({"deterministic": False, "tf32": False}, None, {"deterministic": False}),
        ({"deterministic": True, "tf32": True}, None, {"tf32": True}),
        ({"deterministic": True, "tf32": False, "compiled": ["encoder"]}, None, {"compile": True}),
    ],
)
def test_a_record_is_run_again_in_its_circumstances(
    recorded: dict[str, Any], asked: str | None, used: dict[str, Any], tmp_path: Path, monkeypatch
) -> None:
    from contrastbench.benchmarks.running import runner

    record = store.read_record(add(tmp_path, 0, 70.0, environment=recorded))
    seen = []
    monkeypatch.setattr(
        runner, "run_cell", lambda work, seed, options, **_: (seen.append(options),)
    )
    monkeypatch.setattr(reproduction, "experiment_of", lambda *_: None)
    reproduction.run_again(record, None, asked)
    assert [{name: getattr(options, name) for name in used} for options in seen] == [used]
