"""Cross-entropy over class weights against a loop from its equation."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from contrastbench.losses import UserError, both_views, get_loss, same_class
from contrastbench.losses.registry import SUPERVISED

CLASSES, DIM = 5, 6


def equation_5(weights: Tensor, z: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Wang et al. 2017, embedding by embedding."""
    terms = []
    for x, y in zip(z, labels, strict=True):
        s = torch.stack([x @ w / x.norm() / w.norm() / temperature for w in weights])
        terms.append(s.exp().sum().log() - s[y])
    return torch.stack(terms).mean()


@pytest.mark.parametrize("seed", range(20))
def test_value_and_gradients_are_those_of_the_equation(seed: int) -> None:
    torch.manual_seed(seed)
    loss = get_loss("cross_entropy", temperature=0.05 + 0.1 * seed)
    loss.prepare(CLASSES, DIM)
    loss = loss.double()
    z = torch.randn(9, DIM, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(0, CLASSES, (9,))
    found = loss(same_class(z, None, labels))
    expected = equation_5(loss.weights, z, labels, loss.temperature)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    ours, theirs = (torch.autograd.grad(x, [z, loss.weights]) for x in (found, expected))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_it_is_pytorch_metric_learnings_normalised_softmax() -> None:
    losses = pytest.importorskip("pytorch_metric_learning.losses", reason='pip install "[perf]"')
    torch.manual_seed(0)
    loss = get_loss("cross_entropy", temperature=0.05)
    loss.prepare(CLASSES, DIM)
    theirs = losses.NormalizedSoftmaxLoss(CLASSES, DIM, temperature=0.05)
    theirs.W = nn.Parameter(loss.weights.detach().T.clone())
    z, labels = torch.randn(9, DIM), torch.randint(0, CLASSES, (9,))
    torch.testing.assert_close(loss(same_class(z, None, labels)), theirs(z, labels))


@pytest.mark.parametrize("name", SUPERVISED)
def test_ids_that_are_no_classes_are_one_line(name: str) -> None:
    loss, z = get_loss(name), torch.randn(6, DIM)
    by_class = same_class(z, None, torch.arange(6) // 2)
    with pytest.raises(UserError, match=r"a (weight|proxy) for each class.*after prepare"):
        loss(by_class)
    loss.prepare(CLASSES, DIM)
    shifted = [replace(by_class, anchor_id=by_class.anchor_id + k) for k in (-1, CLASSES - 2)]
    for contrast in (both_views(z, z), *shifted):
        with pytest.raises(UserError, match=r"are no classes from 0: pair by same_class"):
            loss(contrast)


@pytest.mark.parametrize(("label", "fits"), [(-1, False), (0, True), (4, True), (5, False)])
def test_each_label_is_a_class(label: int, fits: bool) -> None:
    loss = get_loss("cross_entropy")
    loss.prepare(CLASSES, DIM)
    batch = same_class(torch.randn(4, DIM), None, torch.tensor([1, 1, 2, 2]))
    batch = replace(batch, anchor_id=torch.tensor([1, 1, 2, label]))
    with nullcontext() if fits else pytest.raises(UserError):
        assert loss(batch).isfinite()
