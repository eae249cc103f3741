"""The training loop and its optimizers: what is scored, kept, said and set aside."""

import math
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import stub_domain
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running import checkpoints, opening, runner, signals, training
from contrastbench.benchmarks.running.history import History
from contrastbench.benchmarks.running.optimizers import (
    load_moments,
    make_optimizer,
    make_schedule,
    moments_of,
)
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.benchmarks.running.training import AnyDomain, train
from contrastbench.domains.graph import GraphRecipe
from contrastbench.domains.image import ImageRecipe
from contrastbench.domains.recipe import laid_over
from contrastbench.domains.registry import declaration, make_recipe
from contrastbench.losses import Contrast, get_loss
from contrastbench.losses.contrast import permuted
from contrastbench.losses.spec import LossSpec
from opened import opened
from resumed import few_sentences, stopping

CPU = torch.device("cpu")
SHORT = {"epochs": 2, "score_at": [1]}
CASES = {
    "graph": ("motifs", {**SHORT, "limit": 60, "folds": 3, "batch_size": 20}),
    "sentence": ("graded", dict(SHORT, limit=48, batch_size=16, eval_every=2, pooler="cls")),
}


@pytest.mark.parametrize(
    "reader", [(checkpoints, "read_checkpoint"), (opening, "domain_class"), (runner, "train")]
)
def test_a_signal_that_c_makes_an_error_of_stops_the_training_and_fails_nothing(
    reader: tuple[object, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch makes a ValueError of what a handler throws while it asks a storage for its length."""
    read = getattr(*reader)

    def signalled(*words: object) -> object:
        try:
            signal.raise_signal(signal.SIGTERM)
        except SystemExit:
            raise ValueError("could not determine the shape") from None
        return read(*words)

    monkeypatch.setattr(*reader, signalled)
    monkeypatch.setattr(signals, "asked_to_end", threading.Event())
    before = signal.getsignal(signal.SIGTERM)
    signals.end_on_sigterm()
    try:
        with pytest.raises(SystemExit, match="143"):
            run_cell(
                Experiment("graph", "motifs", LossSpec("adnce"), CASES["graph"][1]),
                0,
                Options(tmp_path, device="cpu"),
            )
    finally:
        signal.signal(signal.SIGTERM, before)
    assert not list(tmp_path.glob("runs/*/*/*/*.json")), "no failure is recorded"


@pytest.mark.parametrize("name", ["graph", "image"])
@few_sentences()
def test_scores_on_the_way_change_no_number_of_the_training(name: str) -> None:
    about = declaration(name)
    values = {**about.tiny, "epochs": 3, "limit": 60, "batch_size": 20, "schedule": "constant"}
    if "eval_every" in about.tiny:
        values["eval_every"] = 100  # nothing is chosen

    def trained(**others: object) -> tuple[torch.nn.Module, History, AnyDomain]:
        domain = opened(name, **{**values, **others})
        torch.manual_seed(0)
        return *train(domain, get_loss("adnce")), domain

    plain, history, domain = trained()
    scored, later, _ = trained(score_at=[1, 2])
    assert later.loss_by_epoch == history.loss_by_epoch
    for key, tensor in plain.state_dict().items():
        assert torch.equal(tensor, scored.state_dict()[key]), key
    wanted = {}
    for epochs in (1, 2):
        model, _, shorter = trained(epochs=epochs)
        for metric, value in shorter.evaluate(model).metrics.items():
            wanted[f"{metric}@{epochs}"] = value
    assert later.metrics == wanted
    assert history.metrics == {}
    assert f"{domain.evaluate(plain).main}@2" in wanted


@pytest.mark.parametrize("own", [("graph", {}), ("image", {"warmup": 1, "schedule": "cosine"})])
def test_a_length_in_steps_is_that_of_as_many_epochs_or_ends_within_one(own: Any) -> None:
    name, values = own
    about = declaration(name)
    values = {**about.tiny, "limit": 60, "batch_size": 20, **values}

    def trained(**length: int) -> tuple[dict[str, torch.Tensor], History, int]:
        domain = opened(name, **laid_over(values, length))
        torch.manual_seed(0)
        model, history = train(domain, get_loss("adnce"))
        return model.state_dict(), history, domain.steps()

    weights, history, epoch = trained(epochs=2)
    same, again, _ = trained(steps=2 * epoch)
    assert again.loss_by_epoch == history.loss_by_epoch
    assert all(torch.equal(tensor, same[key]) for key, tensor in weights.items())
    _, shorter, _ = trained(steps=epoch + 1)
    assert (shorter.step, len(shorter.loss_by_epoch)) == (epoch + 1, 2)


def test_the_first_of_the_best_steps_is_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    weights: list[torch.Tensor] = []

    class Validated(stub_domain.Stub):
        def validate(self, model: torch.nn.Linear) -> float:
            weights.append(model.weight.detach().clone())
            return [1.0, 3.0, 3.0][len(weights) - 1]

    recipe = make_recipe("graph", {"epochs": 5})
    monkeypatch.setattr(type(recipe), "validate_every", 4)
    model, history = train(Validated("motifs", recipe, 0, None, CPU), get_loss("infonce"))
    assert history.dev_curve == [(4, 1.0), (8, 3.0), (10, 3.0)]
    assert torch.equal(model.weight, weights[1])


def test_a_loss_hears_how_far_its_training_is() -> None:
    loss, heard = get_loss("infonce"), list[float]()
    loss.advance = heard.append
    recipe = make_recipe("graph", {"epochs": 2})
    train(stub_domain.Stub("motifs", recipe, 0, None, CPU), loss)
    assert heard == [0.0, 1 / 3, 2 / 3, 1.0]


def test_a_model_and_a_loss_in_eval_mode_are_set_to_train() -> None:
    class Evaluating(stub_domain.Stub):
        def model(self) -> torch.nn.Linear:
            return super().model().eval()

        def contrasts(self, model: torch.nn.Linear, batch: torch.Tensor) -> list[Contrast]:
            assert (model.training, loss.training) == (True, True)
            return super().contrasts(model, batch)

    loss = get_loss("infonce").eval()
    train(Evaluating("motifs", make_recipe("graph", {"epochs": 1}), 0, None, CPU), loss)


def test_permuted_positives_are_what_the_loss_sees() -> None:
    seen: list[Contrast] = []

    def look(contrasts: Sequence[Contrast], _: object) -> Sequence[Contrast]:
        seen.extend(contrasts)
        return contrasts

    for control in (False, True):
        made = opened("tabular", "wine", epochs=1, batch_size=32, permuted=control)
        train(made, get_loss("infonce"), look=look)
    plain, moved = seen[0], seen[len(seen) // 2]
    assert torch.equal(plain.keys, moved.keys)
    assert torch.equal(permuted(plain).positives(), moved.positives())


def graphs() -> AnyDomain:
    return opened("graph", CASES["graph"][0], **CASES["graph"][1])


def test_a_training_that_went_on_knows_the_time_of_earlier_processes(tmp_path: Path) -> None:
    path, before = tmp_path / "it.safetensors", 0.0
    for step in (2, 4):
        with stopping(step):
            train(graphs(), get_loss("adnce"), path)
        _, state = checkpoints.read_checkpoint(path)
        assert state["seconds"] > before
        before = state["seconds"]
    _, history = train(graphs(), get_loss("adnce"), path)
    assert history.seconds == before


def foreign(path: Path, name: str) -> None:
    """A whole checkpoint of something else in the place of ours."""
    tensors, state = checkpoints.read_checkpoint(path)
    if name == "another cell":
        checkpoints.write_checkpoint(path.with_name("that.safetensors"), tensors, state)
        path.with_name("that.safetensors").rename(path)
    elif name == "another model":
        renamed = {f"model.{key}": value for key, value in tensors.items()}
        checkpoints.write_checkpoint(path, renamed, state)
    elif name == "another width":
        wide = {k: torch.cat([x, x]) if x.ndim else x for k, x in tensors.items()}
        checkpoints.write_checkpoint(path, wide, state)
    else:
        checkpoints.write_checkpoint(path, tensors, {**state, "of_a_later_release": 1})


@pytest.mark.parametrize("name", ["another cell", "another model", "another width", "another code"])
def test_a_foreign_checkpoint_is_said_and_not_used(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "this.safetensors"
    with stopping(3):
        train(graphs(), get_loss("adnce"), path)
    foreign(path, name)
    _, history = train(graphs(), get_loss("adnce"), path)
    assert f"{path} is damaged, or of another training or" in capsys.readouterr().err
    assert history == train(graphs(), get_loss("adnce"))[1]


@pytest.mark.parametrize("other", [torch.zeros(2, 2), torch.zeros(4, dtype=torch.int32)])
def test_a_checkpoints_checksum_covers_shapes_and_types(other: torch.Tensor) -> None:
    assert other.numpy().tobytes() == torch.zeros(4).numpy().tobytes()
    assert checkpoints.tensor_digest({"a": other}, "") != checkpoints.tensor_digest(
        {"a": torch.zeros(4)}, ""
    )


def test_a_disk_that_takes_no_checkpoint_costs_no_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(path: Path, *_: object) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(training, "SECONDS_BETWEEN_CHECKPOINTS", -1)
    monkeypatch.setattr(checkpoints, "write_checkpoint", full)
    _, history = train(graphs(), get_loss("adnce"), tmp_path / "it.safetensors")
    assert len(history.loss_by_epoch) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "No space" in line]
    assert len(lines) == history.step
    assert all(line.endswith("the training has no newer checkpoint, make room") for line in lines)


def test_the_recipe_names_the_optimizer() -> None:
    trained, frozen = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2), requires_grad=False)
    adam = make_optimizer(GraphRecipe(weight_decay=1e-6), [trained, frozen])
    assert isinstance(adam, torch.optim.Adam)
    assert adam.param_groups[0]["params"] == [trained]
    assert (adam.param_groups[0]["lr"], adam.param_groups[0]["weight_decay"]) == (0.01, 1e-6)
    sgd = make_optimizer(GraphRecipe(optimizer="sgd", lr=0.3, momentum=0.8), [trained])
    assert isinstance(sgd, torch.optim.SGD)
    assert (sgd.param_groups[0]["lr"], sgd.param_groups[0]["momentum"]) == (0.3, 0.8)


FALL = [1 + math.cos(math.pi * step / 4) for step in range(5)]
RATES = [  # a schedule of so many steps, how many are done, and the rates from there on
    ({"schedule": "constant"}, 3, 0, [2, 2, 2, 2]),
    ({"schedule": "cosine"}, 3, 0, [2, 1.5, 0.5, 0]),
    *(({"epochs": 4, "warmup": 2}, 8, done, [0, 0.5, 1, 1.5, *FALL][done:]) for done in (0, 1, 3)),
]


@pytest.mark.parametrize(("values", "steps", "done", "expected"), RATES)
def test_the_learning_rate_follows_the_schedule(
    values: dict[str, Any], steps: int, done: int, expected: list[float]
) -> None:
    recipe = make_recipe("image", {"schedule": "cosine", "lr": 2.0, **values})
    optimizer = make_optimizer(recipe, [nn.Parameter(torch.ones(1))])
    rates = make_schedule(recipe, optimizer, steps, 2, done)
    seen = []
    for _ in expected:
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        rates.step()
    assert seen == pytest.approx(expected)


def test_lars_is_the_loop_of_its_paper() -> None:
    """You et al. 2017 with MoCo v3's exceptions, a weight and a step at a time, in Python."""
    lr, momentum, decay, trust = 0.7, 0.9, 0.1, 1e-3
    draw = torch.Generator().manual_seed(0)
    weights = [
        nn.Parameter(torch.randn(shape, generator=draw, dtype=torch.float64))
        for shape in ((3, 2), (3,))
    ]
    weights.append(
        nn.Parameter(torch.zeros(2, 2, dtype=torch.float64))
    )  # of length zero: not scaled
    recipe = ImageRecipe(optimizer="lars", lr=lr, momentum=momentum, weight_decay=decay)
    optimizer = make_optimizer(recipe, weights)
    values = [w.detach().flatten().tolist() for w in weights]
    velocity = [[0.0] * len(v) for v in values]
    for _ in range(3):
        gradients = [torch.randn(w.shape, generator=draw, dtype=w.dtype) / 99 for w in weights]
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient.clone()
        optimizer.step()
        for k, gradient in enumerate(g.flatten().tolist() for g in gradients):
            matrix = weights[k].ndim > 1
            g = (
                [a + decay * w for a, w in zip(gradient, values[k], strict=True)]
                if matrix
                else gradient
            )
            lengths = math.hypot(*values[k]), math.hypot(*g)
            rate = trust * lengths[0] / lengths[1] if matrix and all(lengths) else 1.0
            velocity[k] = [momentum * v + rate * a for v, a in zip(velocity[k], g, strict=True)]
            values[k] = [w - lr * v for w, v in zip(values[k], velocity[k], strict=True)]
        for weight, expected in zip(weights, values, strict=True):
            assert weight.flatten().tolist() == pytest.approx(expected, rel=1e-12)


def test_lars_leaves_a_weight_without_an_update() -> None:
    weight = nn.Parameter(torch.ones(2, 2))
    weight.grad = torch.zeros(2, 2)
    make_optimizer(ImageRecipe(optimizer="lars", lr=1.0, weight_decay=0.0), [weight]).step()
    assert weight.tolist() == [[1.0, 1.0]] * 2


def test_moments_are_laid_out_as_their_parameters() -> None:
    weight = nn.Parameter(torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last))
    recipe = ImageRecipe(optimizer="adam")
    trained, resumed = (make_optimizer(recipe, [weight]) for _ in range(2))
    weight.grad = torch.ones_like(weight)
    trained.step()
    before = moments_of(trained)
    load_moments(resumed, {name: moment.clone().contiguous() for name, moment in before.items()})
    for name, moment in moments_of(resumed).items():
        assert torch.equal(moment, before[name])
        assert (moment.shape, moment.stride()) == (before[name].shape, before[name].stride())
