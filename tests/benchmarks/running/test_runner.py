"""One cell from request to record."""

import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from contrastbench.benchmarks.records.experiment import Experiment, make_experiment
from contrastbench.benchmarks.records.store import read_record
from contrastbench.benchmarks.running import opening, runner
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.benchmarks.sweeps import worker
from contrastbench.domains.base import Evaluation
from contrastbench.domains.graph.domain import GraphDomain
from contrastbench.domains.registry import DOMAINS, declaration
from contrastbench.losses import UserError
from contrastbench.losses.spec import LossSpec
from damaged import full_disk

TINY = {"epochs": 2, "limit": 60, "folds": 3}


def cell(
    results: Path, loss: str = "adnce", recipe: dict | None = None, seed: int = 0, **params: float
):
    """The record of a small training on graphs, and where it stands."""
    experiment = Experiment("graph", "motifs", LossSpec(loss, params), {**TINY, **(recipe or {})})
    return run_cell(experiment, seed, Options(results, device="cpu"))


def test_blas_has_the_threads_that_the_record_names(tmp_path: Path) -> None:
    loaded = {one["filepath"] for one in threadpool_info() if one["user_api"] == "blas"}
    for threads in (2, 1):  # one more changes the last digits of a probe, and its accuracy
        options = Options(tmp_path / str(threads), device="cpu", threads=threads)
        work = Experiment("graph", "motifs", LossSpec("none"), TINY)
        assert run_cell(work, 0, options)[0]["environment"]["threads"] == threads
        given = {one["filepath"]: one["num_threads"] for one in threadpool_info()}
        assert {given[path] for path in loaded} == {threads}


def test_only_the_set_that_trains_is_reported_as_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[tuple[str, bool]] = []
    report = GraphDomain.report
    monkeypatch.setattr(
        GraphDomain,
        "report",
        lambda own, trained: said.append((own.dataset, trained)) or report(own, trained),
    )
    monkeypatch.setattr(opening, "shapes", lambda _: {})
    sets, options = ["motifs", "label-pairs"], Options(tmp_path, device="cpu")
    for loss, recipe in (("none", TINY), ("infonce", {**TINY, "score_on": sets})):
        work = Experiment("graph", "motifs", LossSpec(loss), recipe)
        opening.with_loss(opening.open_cells(work, 0, options))
    assert said == [("motifs", False), ("motifs", True), ("label-pairs", False)]


def test_a_record_says_all_that_design_promises(tmp_path: Path) -> None:
    record, path = cell(tmp_path, mu=0.6, seed=2)
    assert record == read_record(path)
    assert path.parent == tmp_path / "runs" / "graph" / "motifs" / "adnce"
    assert record["status"] == "ok"
    named = {"domain": "graph", "dataset": "motifs", "loss": "adnce", "seed": 2}
    assert record.items() >= named.items()
    expected = {
        "temperature": 0.5,
        "mu": 0.6,
        "sigma": 1.0,
        "weight": "gaussian",
        "variant": "official_code",
    }
    assert record["params"] == expected
    assert record["recipe"]["epochs"] == 2
    assert record["recipe"]["augmentation"] == "random2"
    assert 0 < record["metrics"][record["main"]] <= 100
    assert len(record["details"]["folds"]) == 3
    assert len(record["details"]["loss_by_epoch"]) == 2
    assert record["environment"]["threads"] == 1
    assert record["environment"]["versions"]["torch"] == torch.__version__.split("+")[0]
    assert len(record["data_hash"]) == 64
    assert record["seconds"] > 0
    assert record["peak_memory_mib"] > 50


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_domain_has_a_validation_score_to_choose_by(domain: str, tmp_path: Path) -> None:
    experiment = make_experiment(domain, None, LossSpec("infonce"), {}, tiny=True)
    record, _ = run_cell(experiment, 0, Options(tmp_path, device="cpu"))
    assert record["status"] == "ok"
    assert 0 < record["details"]["validation"] <= 100


def test_a_finished_cell_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, path = cell(tmp_path)

    def refuse(*_: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(runner, "train", refuse)
    assert cell(tmp_path) == (record, path)
    assert cell(tmp_path, mu=0.9)[0]["status"] == "failed", "another parameter is another cell"


def write_classes(path: Path, seed: int, columns: int = 3) -> str:
    x = np.random.default_rng(seed).normal(size=(60, columns)).round(3)
    rows = [",".join(map(str, [*row, "yes" if row[0] > 0 else "no"])) for row in x.tolist()]
    header = ",".join([*(f"x{k}" for k in range(columns)), "target"])
    path.write_text("\n".join([header, *rows]) + "\n")
    return f"csv:{path}"


def test_one_training_is_scored_on_several_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = [write_classes(tmp_path / f"{seed}.csv", seed) for seed in range(2)]
    own = {"batch_size": 16, "target": "target", "probe": "boosting"}
    recipe = {**declaration("tabular").tiny, **own}
    both = Experiment("tabular", sets[1], LossSpec("infonce"), {**recipe, "score_on": sets})
    alone = replace(both, dataset=sets[0], recipe=recipe)
    options = Options(tmp_path, device="cpu")
    second, _ = run_cell(both, 0, options)
    monkeypatch.setattr(runner, "train", lambda *_: pytest.fail("it is trained again"))
    first, _ = run_cell(both.scored[0], 0, options)
    monkeypatch.undo()
    plain, _ = run_cell(alone, 0, options)
    assert (first["metrics"], first["data_hash"]) == (plain["metrics"], plain["data_hash"])
    assert [first["dataset"], second["dataset"]] == sets
    assert second["details"]["trained_as"] == first["key"] != plain["key"]
    assert "trained_as" not in first["details"]
    assert second["details"]["health"] == first["details"]["health"]
    assert second["details"]["seconds_training"] == 0 < first["details"]["seconds_training"]
    with pytest.raises(UserError, match="does not score iris: add iris, or give --dataset csv"):
        replace(both, dataset="iris").check()
    wide = write_classes(tmp_path / "wide.csv", 0, columns=4)
    unlike = replace(both, dataset=wide, recipe={**recipe, "score_on": [sets[0], wide]})
    with pytest.raises(UserError, match=r"does not fit csv:.*wide\.csv, whose inputs are others"):
        run_cell(unlike, 0, options)


def test_a_failure_is_recorded_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(runner, "train", lambda *_: 1 / 0)
        record, path = cell(tmp_path)
    assert record["status"] == "failed"
    assert "ZeroDivisionError" in record["details"]["error"]
    assert ".failed-" in path.name
    assert cell(tmp_path)[0]["status"] == "ok"


@pytest.mark.parametrize("value", [math.nan, np.float32(1.0)])
def test_a_score_that_no_record_can_hold_is_a_failure(
    value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation = Evaluation({"accuracy": value}, "accuracy")
    monkeypatch.setattr(GraphDomain, "evaluate", lambda *_: evaluation)
    record, path = cell(tmp_path)
    assert record["status"] == "failed"
    assert "JSON" in record["details"]["error"]
    assert path.is_file()


@pytest.mark.parametrize("what", [SystemExit(143), KeyboardInterrupt()], ids=repr)
def test_sigterm_and_interrupt_within_a_loss_are_no_failure(
    what: BaseException, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(OWN.replace("return ", f"raise {what!r}  # "))
    with pytest.raises(type(what)):
        cell(tmp_path, f"{tmp_path}/mine.py:Mine")


TOO_MUCH: dict[str, Callable[[], object]] = {
    "python": lambda: bytearray(2**62),
    "numpy": lambda: np.empty(2**55),
    "torch": lambda: torch.empty(2**55),
    "a card": lambda: raise_(torch.OutOfMemoryError("no more")),
}


def raise_(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("whose", TOO_MUCH)
def test_out_of_memory_is_its_own_status(
    whose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "train", lambda *_: TOO_MUCH[whose]())
    record, _ = cell(tmp_path)
    assert record["status"] == "oom"
    assert record["details"]["error"]


@pytest.mark.parametrize("whose", TOO_MUCH)
def test_data_that_do_not_fit_into_memory_are_one_line(
    whose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Large:
        def __init__(self, *_: object) -> None:
            TOO_MUCH[whose]()

    monkeypatch.setattr(opening, "domain_class", lambda _: Large)
    with pytest.raises(opening.NoMemory, match=r"motifs does not fit into memory .*: use fewer"):
        cell(tmp_path)
    assert not list(tmp_path.rglob("*.json"))
    message = {
        "experiment": asdict(Experiment("graph", "motifs", LossSpec("none"), TINY)),
        "options": {"results": str(tmp_path), "data_root": None},
        **{"claim": "cell", "wait": False, "seed": 0, "cores": 1, "loss_code": ""},
    }
    assert worker.answer_message(message)["status"] == "oom", "a sweep tries it once more, alone"


def test_a_loss_that_is_no_number_is_diverged_and_final(tmp_path: Path) -> None:
    record, path = cell(tmp_path, recipe={"lr": 1e30})
    assert record["status"] == "diverged"
    assert "metrics" not in record
    about = record["details"]
    assert about["error"].endswith(
        f"in epoch {len(about['loss_by_epoch']) + 1}, step {about['step']}"
    )
    assert all(map(math.isfinite, about["losses_before"]))
    assert cell(tmp_path, recipe={"lr": 1e30}) == (record, path)


@pytest.mark.parametrize("why", ["Not a directory", "Operation not permitted"])
def test_a_folder_that_takes_no_record_is_named_before_the_training(
    why: str, tmp_path: Path, monkeypatch
) -> None:
    """It is a file, or its file system has no hard links."""
    if why == "Not a directory":
        (tmp_path / "results").touch()
    monkeypatch.setattr(os, "link", lambda *_: raise_(PermissionError(1, why)))
    monkeypatch.setattr(runner, "train", lambda *_: pytest.fail("trained"))
    with pytest.raises(UserError, match=rf"cannot write to .* \({why}\): name another folder"):
        cell(tmp_path / "results")


def test_a_disk_that_fills_up_loses_no_number(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(runner.store, "publish_record", full_disk)
    with pytest.raises(UserError, match=r"No space left on device.*: the record is printed above"):
        cell(tmp_path)
    assert json.loads(capsys.readouterr().err.splitlines()[-1])["metrics"]["accuracy"] > 0


OWN = """
from contrastbench.losses import ScoreLoss

class Mine(ScoreLoss):
    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale

    def terms(self, scores):
        terms = scores.log_denominator(scores.pos, scores.neg) - scores.pos
        return terms.mean(dim=1) * self.scale
"""
