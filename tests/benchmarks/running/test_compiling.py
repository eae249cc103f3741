"""Compiled trainings have the numbers of ordinary ones; captured steps on the shadow device."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from compiled import CASES, experiment, ordinary, refuse, trained
from contrastbench.benchmarks.running import compiling, training
from contrastbench.benchmarks.running.opening import open_domain
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.losses import LOSSES, LossSpec, get_loss, indexed, same_class
from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS, random_views
from shadow import capture, shadow

SHADOW = shadow()  # before any backward pass of the process


@pytest.fixture(autouse=True)
def graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "capture", capture)
    monkeypatch.setattr(compiling, "beside", lambda work: work())
    monkeypatch.setattr(compiling, "GRAPHS_ON", ("shadow",))


@pytest.mark.parametrize(("case", "fails"), [*((case, False) for case in CASES), ("tables", True)])
def test_captured_steps_have_the_numbers_of_ordinary_ones(
    case: str, fails: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self: None)
    work = experiment(*CASES[case])
    plain, course = ordinary(work, SHADOW)
    capsys.readouterr()
    if fails:
        monkeypatch.setattr(compiling, "capture", refuse)
    captured, quick = trained(work, SHADOW, compiling.compiled_parts)
    assert course.step > compiling.WARM_UP + 2
    assert course == quick
    assert plain.keys() == captured.keys()
    assert all(torch.equal(x, captured[name]) for name, x in plain.items())
    said = capsys.readouterr().err
    assert said.count("no CUDA graphs here (operation not permitted): they go on one by") == fails


def test_a_batch_of_another_form_is_an_ordinary_step() -> None:
    @dataclass
    class Batch:
        rows: Tensor
        kind: str = "one"

    def gradients(batch: Batch) -> Tensor:
        taken.append(batch.kind)
        return batch.rows.sum()

    taken = list[str]()
    steps = compiling.CapturedSteps(gradients, [])
    two, three = torch.ones(2, device=SHADOW), torch.ones(3, device=SHADOW)
    forms = [Batch(three), *[Batch(two)] * 3, Batch(two), Batch(three), Batch(two, "2"), Batch(two)]
    assert [float(steps(batch)) for batch in forms] == [len(batch.rows) for batch in forms]
    assert taken == [*["one"] * 6, "2"]  # the fifth is captured, and the last replayed


@pytest.mark.parametrize("case", ["tables", "sentences"])
def test_captured_steps_resume_with_the_numbers_of_ordinary_ones(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, kept = experiment(*CASES[case]), training.seed_generators
    plain = ordinary(work, SHADOW)

    def seed(device: torch.device, *key: int) -> None:
        kept(device, *key)
        if key[2] == compiling.WARM_UP + 2:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(torch.nn.Module, "compile", lambda self: None)
    monkeypatch.setattr(training, "seed_generators", seed)
    with pytest.raises(SystemExit):
        trained(work, SHADOW, compiling.compiled_parts, tmp_path / "checkpoint")
    monkeypatch.setattr(training, "seed_generators", kept)
    state, course = trained(work, SHADOW, compiling.compiled_parts, tmp_path / "checkpoint")
    assert course == plain[1]
    assert all(torch.equal(x, state[name]) for name, x in plain[0].items())


def contrasts_of(loss: Any, views: list[Tensor]) -> Any:
    """A contrast of two views that the loss takes, made of them alone."""
    index = torch.arange(len(views[0]), device=views[0].device)
    if loss.needs_classes:
        return same_class(*views, index % 3)
    pairing = "own_view" if loss.own_view and "own_view" in LAW_PAIRINGS else "both_views"
    return indexed(LAW_PAIRINGS[pairing](views), index)


@pytest.mark.parametrize("name", LOSSES)
def test_each_loss_can_be_captured(name: str) -> None:
    """Nothing that it computes on the host moves from step to step."""
    views = [[x.float().to(SHADOW) for x in random_views(seed, 8)[:2]] for seed in range(4)]

    def values(quick: bool) -> list[Tensor]:
        torch.manual_seed(0)
        loss = get_loss(name)
        loss.prepare(3, 8)
        loss.prepare_samples(8)
        loss.to(SHADOW).train()
        batch = [x.clone().requires_grad_() for x in views[0]]

        def gradients() -> Tensor:
            for x in batch:
                x.grad = None
            value = loss(contrasts_of(loss, batch))
            value.backward()
            return torch.stack([value.detach(), *(x.grad.norm() for x in batch)])

        replay, found = capture(gradients, []) if quick else (None, None)
        values = []
        for new in views:
            torch.manual_seed(1)
            with torch.no_grad():
                for x, y in zip(batch, new, strict=True):
                    x.copy_(y)
            if replay and found is not None:
                replay()
            else:
                found = gradients()
            values.append(found.cpu())
        return values

    assert all(torch.equal(*pair) for pair in zip(values(False), values(True), strict=True))


DRAWING = f"{Path(__file__).parents[2]}/losses/drawing.py:Noise"
BOTH = ["encoder", "step"]


@pytest.mark.parametrize(
    ("domain", "loss", "values", "device", "parts", "reason"),
    [
        ("tabular", LossSpec("infonce"), {"pairing": "both_views"}, "shadow", BOTH, ""),
        ("tabular", LossSpec("infonce"), {}, "cpu", ["encoder"], "the device is cpu"),
        ("tabular", LossSpec("infonce"), {}, "shadow", ["encoder"], "the momentum of the target"),
        ("tabular", LossSpec(DRAWING), {}, "shadow", ["encoder"], "is no loss of ours"),
        ("graph", LossSpec("infonce"), {}, "shadow", [], "nothing is compiled, steps are no CUDA"),
        ("sentence", LossSpec("infonce"), {}, "cpu", [], "nothing is compiled, steps are no CUDA"),
        ("sentence", LossSpec("infonce"), {}, "shadow", ["step"], "are padded to max_length"),
    ],
)
def test_what_is_not_compiled_is_said(
    domain: str,
    loss: LossSpec,
    values: dict[str, Any],
    device: str,
    parts: list[str],
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    on = SHADOW if device == "shadow" else torch.device(device)
    opened = open_domain(experiment(domain, "infonce", values), 0, None, on)
    assert compiling.compiled_parts(opened, loss.make()) == parts
    said = capsys.readouterr().err
    assert said.startswith("--compile") and reason in said if reason else not said


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[torch.nn.Module]]:
    """torch.compile traces these modules, and calls no compiler of C++."""
    compile_, seen = torch.nn.Module.compile, list[torch.nn.Module]()

    def traced(module: torch.nn.Module) -> None:
        seen.append(module)
        compile_(module, backend="eager")

    monkeypatch.setattr(torch.nn.Module, "compile", traced)
    yield seen
    torch._dynamo.reset()


def test_a_compiled_encoder_has_the_key_and_here_the_numbers_of_another(
    eager: list[torch.nn.Module], tmp_path: Path
) -> None:
    work = experiment("tabular", "infonce", {})
    plain, quick = (
        run_cell(work, 0, Options(tmp_path / str(on), device="cpu", compile=on))[0]
        for on in (False, True)
    )
    assert quick["status"] == "ok", quick["details"]
    assert plain["key"] == quick["key"]
    assert plain["metrics"] == quick["metrics"]
    assert quick["environment"]["compiled"] == ["encoder"]
    assert len(eager) == 1
    assert "compiled" not in plain["environment"]
    assert quick["command"].endswith("--compile")
