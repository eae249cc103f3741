"""Single losses of the library: what the loops of all losses do not ask of them."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck

from contrastbench.benchmarks.running.runner import learned_details
from contrastbench.losses import Loss, UserError, both_views, get_loss
from contrastbench.losses.base import Scores, block_scores
from contrastbench.losses.contrast import other_view, permuted, query_key, same_class, whole_row
from contrastbench.losses.laws.random_contrasts import random_views
from contrastbench.losses.library.supcon import SupCon
from contrastbench.losses.library.triplet import FEW, count_below
from contrastbench.losses.library.weince import tails
from contrastbench.losses.registry import SUPERVISED
from oracles import ORACLES, weibull_tail


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("columns", [1, FEW, FEW + 1])
@pytest.mark.parametrize("bounds", [1, FEW, FEW + 1])
def test_counts_are_those_of_a_loop_with_ties_and_infinities(
    columns: int, bounds: int, right: bool
) -> None:
    drawn = torch.randint(5, (3, columns + bounds), generator=torch.Generator().manual_seed(0))
    values = drawn.double().masked_fill(drawn == 4, torch.inf)
    x, bound = values.split([columns, bounds], dim=1)
    expected = [
        [sum(one < top or (right and one == top) for one in row) for top in tops]
        for row, tops in zip(x.tolist(), bound.tolist(), strict=True)
    ]
    assert count_below(x, bound, right).tolist() == expected


@pytest.mark.parametrize(
    ("phi", "k"), [("kl", 1.5), ("chi2", 1.5), ("cressie_read", 1.5), ("cressie_read", 1.1)]
)
def test_gradients_with_nothing_frozen(phi: str, k: float) -> None:
    loss = get_loss("phi_dro", phi=phi, k=k)
    for seed in range(5):
        views = random_views(seed, 3, dim=2, grad=True)[:2]
        assert gradcheck(lambda a, b: loss(both_views(a, b)), views, atol=1e-6, rtol=1e-4)


SETTINGS = {"margin": 0.0, "kappa_rho": 5.0, "kappa_aic": 0.05}


@pytest.mark.parametrize("variant", ["official_code", "paper"])
@pytest.mark.parametrize("samples", [12, 16, 17, 18, 201])
def test_tails_of_every_size(samples: int, variant: str) -> None:
    views = random_views(samples, samples, dim=4)
    loss = get_loss("weince", temperature=0.2, variant=variant, **SETTINGS)
    labels = torch.arange(samples) % 7 % 4  # anchors with more and with fewer negatives
    for contrast in (both_views(*views[:2]), same_class(views[0], None, labels)):
        expected = ORACLES["weince"](contrast, **loss.params)
        assert loss(contrast).item() == pytest.approx(expected.item(), rel=1e-10)
        assert abs(expected - get_loss("infonce", temperature=0.2)(contrast)) > 1e-4


def test_two_points_fit_any_line_so_they_say_nothing() -> None:
    """Rounding would decide between the two tails, and the slope would be any."""
    views = random_views(0, 4)
    three = block_scores(both_views(views[0][:2], views[1][:2]), slice(None))
    assert (tails(three)[:, 2] == -torch.inf).all()
    assert weibull_tail([0.1, 0.2, 0.3]) == (0.0, -torch.inf)
    assert tails(block_scores(both_views(*views[:2]), slice(None)))[:, 2].isfinite().all()


def slopes(name: str, **params: object) -> Tensor:
    """Gradient in three positives of one anchor, one of them much closer, over two negatives."""
    pos = torch.tensor([[0.9, 0.1, 0.0]], dtype=torch.float64, requires_grad=True)
    neg = torch.tensor([[0.0, -0.2]], dtype=torch.float64)
    loss = get_loss(name, temperature=0.1, **params)
    value = loss.terms(Scores(pos, neg, torch.full((1, 1), 2.0))).sum()
    (gradient,) = torch.autograd.grad(value, pos)
    return gradient[0]


def test_supcon_pushes_the_closest_positive_away_and_infonce_none() -> None:
    closest, *others = slopes("supcon", form="out").tolist()
    assert closest > 1
    assert all(slope < 0 for slope in others)
    assert (slopes("infonce") < 0).all()
    assert (slopes("supcon", form="in") < 0).all()


def test_the_form_out_declines_the_law_that_it_breaks() -> None:
    assert "closer positives" in SupCon(form="out").declined_laws
    assert "closer positives" not in SupCon(form="in").declined_laws


LABELS = torch.tensor([0, 1, 0, 2, 1, 0])


@pytest.fixture
def views() -> list[torch.Tensor]:
    return [view.float() for view in random_views(3, 6)]


@pytest.mark.parametrize("pairing", [other_view, whole_row, query_key])
def test_it_is_the_mean_of_both_directions(pairing, views: list[torch.Tensor]) -> None:
    one, two, _ = views
    loss, row = get_loss("clip", temperature=0.2), get_loss("infonce", temperature=0.2)
    there, back = pairing(one, two), pairing(two, one)
    expected = (row(there) + row(back)) / 2
    assert abs(row(there) - row(back)) > 1e-3
    assert loss(there).item() == pytest.approx(expected.item(), rel=1e-5)
    assert loss(back).item() == pytest.approx(expected.item(), rel=1e-5)


def test_where_both_directions_are_equal_it_begins_as_infonce(views: list[torch.Tensor]) -> None:
    loss, row = get_loss("clip", temperature=0.2), get_loss("infonce", temperature=0.2)
    for contrast in (both_views(*views[:2]), same_class(*views[:2], LABELS)):
        assert loss(contrast).item() == pytest.approx(row(contrast).item(), rel=1e-5)


def test_of_false_positives_no_direction_sees_the_true_ones(views: list[torch.Tensor]) -> None:
    """The positive of an anchor is another sample's key, in the columns too."""
    contrast = permuted(other_view(*views[:2]))
    value = get_loss("clip", temperature=0.2)(contrast)
    true = get_loss("clip", temperature=0.2)(other_view(*views[:2]))
    assert value > true + 1


@pytest.mark.parametrize("moved", [lambda c: c, permuted], ids=["mutual", "permuted"])
@pytest.mark.parametrize(
    "pairing", [both_views, lambda a, b: same_class(a, b, LABELS)], ids=["both", "class"]
)
def test_mutual_positives_save_a_direction_and_nothing_else(
    pairing, moved, views: list[torch.Tensor]
) -> None:
    contrast = moved(pairing(*views[:2]))
    unknown = replace(contrast, partners=None)
    assert (contrast.mutual, unknown.mutual) == (moved is not permuted, False)
    loss = get_loss("clip", temperature=0.2)
    assert loss(contrast).item() == pytest.approx(loss(unknown).item(), rel=1e-5)


def test_each_step_takes_the_scale_back_to_100(views: list[torch.Tensor]) -> None:
    loss, contrast = get_loss("clip"), whole_row(*views[:2])
    with torch.no_grad():
        loss.log_scale.fill_(6.0)
    loss.eval()(contrast)
    assert loss.log_scale.item() == 6.0
    loss.train()(contrast).backward()
    assert loss.log_scale.item() == pytest.approx(math.log(100))
    assert loss.log_scale.grad != 0


def test_a_record_has_no_scale_over_100() -> None:
    loss = get_loss("clip")
    loss.log_scale.data.fill_(6.0)  # where the last step has led
    (found,) = learned_details(loss)["learned"].values()
    assert found == pytest.approx(math.log(100))


CLASSES, DIM = 5, 6


def equation_5(weights: Tensor, z: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Wang et al. 2017, embedding by embedding."""
    terms = []
    for x, y in zip(z, labels, strict=True):
        s = torch.stack([x @ w / x.norm() / w.norm() / temperature for w in weights])
        terms.append(s.exp().sum().log() - s[y])
    return torch.stack(terms).mean()


def equation_4(proxies: Tensor, z: Tensor, labels: Tensor, alpha: float, margin: float) -> Tensor:
    """Kim et al. 2020, proxy by proxy."""
    near, far = [], []
    for c, proxy in enumerate(proxies):
        s = [x @ proxy / x.norm() / proxy.norm() for x in z]
        own = [-alpha * (v - margin) for v, label in zip(s, labels, strict=True) if label == c]
        others = [alpha * (v + margin) for v, label in zip(s, labels, strict=True) if label != c]
        if own:
            near.append(torch.stack(own).exp().sum().log1p())
        far.append(torch.stack(others).exp().sum().log1p())
    return torch.stack(near).mean() + torch.stack(far).mean()


def case(name: str, seed: int, **params: float) -> tuple[Loss, Tensor, Tensor, Tensor]:
    """A loss, a vector of each class that it learns, embeddings, and labels without the last."""
    torch.manual_seed(seed)
    loss = get_loss(name, **params)
    loss.prepare(CLASSES, DIM)
    z = torch.randn(9, DIM, dtype=torch.float64, requires_grad=True)
    (learned,) = loss.double().parameters()
    return loss, learned, z, torch.randint(0, CLASSES - 1, (9,)).sort().values


def gradients(value: Tensor, *leaves: Tensor) -> list[Tensor]:
    return [value.detach(), *torch.autograd.grad(value, leaves)]


def settings(name: str, seed: int) -> dict[str, float]:
    if name == "cross_entropy":
        return {"temperature": 0.05 + 0.1 * seed}
    return {"alpha": 1 + seed, "margin": 0.05 * seed - 0.3}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    ("name", "equation"), [("cross_entropy", equation_5), ("proxy_anchor", equation_4)]
)
def test_losses_of_classes_have_the_values_and_gradients_of_their_equations(
    name: str, equation: Callable[..., Tensor], seed: int
) -> None:
    params = settings(name, seed)
    loss, learned, z, labels = case(name, seed, **params)
    found = gradients(loss(same_class(z, None, labels)), z, learned)
    expected = gradients(equation(learned, z, labels, **params), z, learned)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["cross_entropy", "proxy_anchor"])
def test_losses_of_classes_are_those_of_pytorch_metric_learning(name: str, seed: int) -> None:
    losses = pytest.importorskip("pytorch_metric_learning.losses", reason='pip install "[perf]"')
    loss, learned, z, labels = case(name, seed)
    if name == "cross_entropy":
        theirs = losses.NormalizedSoftmaxLoss(CLASSES, DIM, temperature=0.1).double()
        theirs.W = weights = nn.Parameter(learned.detach().T.clone())
    else:
        theirs = losses.ProxyAnchorLoss(CLASSES, DIM, margin=0.1, alpha=32).double()
        theirs.proxies = weights = nn.Parameter(learned.detach().clone())
    found = gradients(loss(same_class(z, None, labels)), z, learned)
    value, of_z, of_weights = gradients(theirs(z, labels), z, weights)
    expected = value, of_z, of_weights.T if name == "cross_entropy" else of_weights
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6)


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


def test_absent_classes_have_no_anchor_and_large_scales_are_finite() -> None:
    loss, proxies, z, _ = case("proxy_anchor", 0, alpha=1e4)
    value, *slopes = gradients(loss(same_class(z, None, torch.zeros(9).long())), z, proxies)
    assert all(math.isfinite(x.sum()) for x in (value, *slopes))


def test_proxies_have_a_rate_of_their_own_in_sums_too() -> None:
    loss = get_loss("proxy_anchor + 0.1*dar", lr=0.05)
    assert loss.needs_classes
    loss.prepare(CLASSES, DIM)
    (group,) = loss.parameter_groups()
    assert group["lr"] == 0.05
    assert [p.shape for p in group["params"]] == [(CLASSES, DIM)]
    loss.prepare(8, 512)
    assert 0.45 < next(loss.parameters()).std() < 0.55, "Kaiming's square root of 2 / classes"
