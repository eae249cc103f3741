"""The tabular domain as the runner uses it."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.benchmarks.running.training import train
from contrastbench.domains.scoring.metrics import class_metrics
from contrastbench.domains.tabular.data import load_rows
from contrastbench.losses import get_loss
from contrastbench.losses.spec import LossSpec
from opened import opened

BESIDE = class_metrics(np.arange(2), np.arange(2), np.eye(2)).keys()


SMALL = {"batch_size": 32, "widths": (16, 16), "projection": (16, 8)}
domain = partial(opened, "tabular", dataset="wine", **SMALL)


def test_every_epoch_shuffles_the_rows_anew_into_full_batches() -> None:
    first, second = ([batch.rows.tolist() for batch in domain().batches(epoch)] for epoch in (0, 1))
    assert [len(rows) for rows in first] == [32, 32, 32]
    assert len({row for rows in first for row in rows}) == 96
    assert first != second


def test_query_key_meets_targets_of_the_other_view() -> None:
    d = domain()
    model, batch = d.model(), next(iter(d.batches(0)))
    first, second = d.contrasts(model, batch)
    unit = torch.nn.functional.normalize
    one, two = d.views(next(iter(d.batches(0))))
    assert torch.allclose(first.anchor, unit(model(one)), atol=1e-6)
    assert torch.allclose(first.keys, unit(model.target(two)), atol=1e-6)
    assert torch.allclose(second.keys, unit(model.target(one)), atol=1e-6)
    assert first.anchor.requires_grad
    assert not first.keys.requires_grad


def test_the_target_is_moved_before_it_is_asked() -> None:
    d = domain(ema=0.0)
    model, batch = d.model().eval(), next(iter(d.batches(0)))
    with torch.no_grad():
        model.encoder[0].weight.add_(1)
    (contrast, _) = d.contrasts(model, batch)
    expected = torch.nn.functional.normalize(model.online(d.views(next(iter(d.batches(0))))[1]))
    assert torch.allclose(contrast.keys, expected, atol=1e-5), (
        "at momentum 0 it is the online network of this step"
    )


def test_rows_of_one_class_are_positives_and_a_row_without_a_class_stands_alone() -> None:
    d = domain(pairing="supervised", pretraining="train+validation")
    batch = next(iter(d.batches(0)))
    (contrast,) = d.contrasts(d.model(), batch)
    same = contrast.anchor_id[:, None] == contrast.key_id
    classes = d.pretraining.y[batch.rows]
    y = classes.repeat(2)
    both = (y[:, None] == y) & (y >= 0)
    alone = torch.arange(len(classes)).repeat(2)
    assert torch.equal(same, both | (alone[:, None] == alone))
    assert (classes < 0).any()


def test_the_target_is_trained_by_nobody_but_its_average() -> None:
    d = domain(epochs=1, ema=1.0)
    before = [p.clone() for p in d.model().target.parameters()]
    model, _ = train(d, get_loss("infonce"))
    assert all(torch.equal(a, b) for a, b in zip(before, model.target.parameters(), strict=True))


def test_fixed_parts_are_those_of_all_seeds() -> None:
    one, two = (domain(seed=seed, parts="fixed") for seed in (1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one.rows, two.rows, strict=True))
    assert one.evaluate(one.model()).test_part == "fixed"
    assert not torch.equal(next(iter(one.batches(0))).rows, next(iter(two.batches(0))).rows)


def test_evaluation_says_what_it_measured() -> None:
    d = domain(probe="logistic")
    evaluation = d.evaluate(d.model())
    assert set(evaluation.metrics) == {"accuracy", "linear", "pseudo_inverse", "logistic"} | BESIDE
    assert evaluation.metrics["accuracy"] == evaluation.metrics["logistic"]
    assert 80 < evaluation.metrics["auroc"] <= 100
    assert evaluation.samples == {"train": 106, "validation": 36, "test": 36}
    assert evaluation.test_part == "redrawn"
    assert evaluation.validation == evaluation.details["validation_accuracy"]["logistic"]
    assert evaluation.details["largest_class"] == pytest.approx(100 * 14 / 36)
    assert evaluation.details["classifiers"]["linear"]["lr"] in (1.0, 3.0, 5.0)
    assert all(50 < score <= 100 for score in evaluation.details["validation_accuracy"].values())


def test_the_encoder_may_see_the_validation_rows_but_not_their_classes() -> None:
    """RényiCL pretrains on i-Mix's 15,120 rows of CovType, which our two parts are together."""
    alone, both = domain(), domain(pretraining="train+validation")
    assert torch.equal(alone.pretraining.x, alone.data["train"].x)
    assert [len(part.y) for part in both.data.values()] == [106, 36, 36]
    d = domain(pretraining="train+validation", views="none", batch_size=2)
    seen = {tuple(row) for batch in d.batches(0) for row in d.views(batch)[0].tolist()}
    rows = [tuple(row) for part in ("train", "validation") for row in both.data[part].x.tolist()]
    assert seen == set(rows)
    assert not seen & {tuple(row) for row in both.data["test"].x.tolist()}
    assert both.notes(trained=True)["pretraining_rows"] == both.steps() * 32 + 14 == 142
    classes = torch.cat(
        [both.pretraining.y[batch.rows] for epoch in range(9) for batch in both.batches(epoch)]
    )
    assert set(classes.tolist()) == {-1, 0, 1, 2}
    assert (classes >= 0).sum() / len(classes) == pytest.approx(106 / 142, abs=0.05)
    assert both.class_count == 3
    stats = torch.cat([both.data[part].x for part in ("train", "validation")])
    assert stats.mean(dim=0).abs().max() < 1e-5
    assert (stats.std(dim=0, correction=0) - 1).abs().max() < 1e-4


def test_raw_features_and_gradient_boosting_are_references() -> None:
    raw = domain(encoder="raw", batch_size=200)
    assert raw.evaluate(raw.model()).metrics["linear"] > 90
    boosted = domain(encoder="raw", probe="boosting")
    metrics = boosted.evaluate(boosted.model()).metrics
    assert set(metrics) == {"accuracy", "boosting"} | BESIDE
    assert metrics["accuracy"] > 85


def csv(path: Path, rows: int, test_rows: set[int] = frozenset()) -> str:
    """A table of a seeded class and three columns; the features of some rows are spoiled."""
    draw = np.random.default_rng(0)
    y = draw.integers(0, 2, rows)
    x = draw.normal(size=(rows, 3)) + y[:, None]
    x[sorted(test_rows)] = 99.0
    lines = [f"{a},{b},{c},k{k}" for (a, b, c), k in zip(x, y, strict=True)]
    path.write_text("\n".join(["a,b,c,kind", *lines, ""]))
    return f"csv:{path}"


def test_test_rows_change_no_number_but_the_score(tmp_path: Path) -> None:
    """The test rows are spoiled, and training and selection must not notice."""
    from contrastbench.domains.tabular.data import load_rows
    from contrastbench.domains.tabular.preprocessing import split_rows

    values = {
        "target": "kind",
        "epochs": 3,
        "batch_size": 32,
        "widths": (16, 16),
        "projection": (16, 8),
    }
    name = csv(tmp_path / "clean.csv", 200)
    spoiled = csv(
        tmp_path / "spoiled.csv", 200, set(split_rows(load_rows(name, "kind")[0], 7).test.tolist())
    )
    records = [
        run_cell(Experiment("tabular", n, LossSpec("infonce"), values), 7, Options(tmp_path))[0]
        for n in (name, spoiled)
    ]
    clean, changed = (record["details"] for record in records)
    assert records[0]["data_hash"] != records[1]["data_hash"]
    for key in ("loss_by_epoch", "validation_accuracy", "classifiers"):
        assert clean[key] == changed[key]
    assert records[0]["metrics"] != records[1]["metrics"]


def test_what_was_left_out_is_told_and_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    name = csv(path, 100)
    lines = path.read_text().splitlines()
    lines = [f"{line},{'same' if i else 'constant'}" for i, line in enumerate(lines)]
    path.write_text(
        "\n".join([*lines[:50], lines[50].replace(lines[50].split(",")[0], "", 1), *lines[51:], ""])
    )
    d = domain(dataset=name, target="kind")
    notes = {"missing numbers": 1, "constant columns": ["constant"]}
    assert d.notes(trained=False) == {"data": notes}
    assert d.notes(trained=True) == {"data": notes, "pretraining_rows": 60}
    recipe = {"target": "kind", "batch_size": 32}
    record, _ = run_cell(
        Experiment("tabular", name, LossSpec("none"), recipe), 0, Options(tmp_path)
    )
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith(f"{name}: 100 rows (60 train, 20 validation, 20 test); ")
    assert told[1:] == ["  missing numbers: 1", "  constant columns: constant"]
    assert record["details"]["data"] == notes
    assert record["details"]["report"]["parts"] == {"train": 60, "validation": 20, "test": 20}


def test_fewer_rows_than_a_batch_are_one_batch() -> None:
    few = domain(batch_size=128)
    assert [len(batch.rows) for batch in few.batches(0)] == [106]
    note = "samples of a batch, all there are in place of batch_size=128"
    assert few.report(trained=True).notes == {note: 106}
    assert not few.report(trained=False).notes


def test_rows_that_are_in_two_parts_are_counted(tmp_path: Path) -> None:
    rows = [f"{k % 3},{'b' if k % 7 == 0 else 'a'},{'no' if k % 2 else 'yes'}" for k in range(90)]
    (tmp_path / "t.csv").write_text("\n".join(["x,w,kind", *rows]))
    report = domain(dataset=f"csv:{tmp_path / 't.csv'}", target="kind").report(trained=False)
    assert report.twins
    assert (report.twins.share, report.twins.repeated, report.twins.conflicts) == (100, 90, 90)
    assert report.wrong


def test_its_numbers_are_the_same_on_every_machine() -> None:
    assert load_rows("hidden-clusters")[1].startswith("680b569228efc985")
