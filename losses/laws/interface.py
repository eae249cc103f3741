"""Check inputs and outputs: one finite number, plain parameters, errors for nonsense."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from contrastbench.losses.base import Loss, ScoreLoss, Scores, block_scores
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.laws import assertions, causes
from contrastbench.losses.laws.assertions import Build, Wrong, error_place, formula_place, law
from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS, random_views, some_pairing
from contrastbench.losses.views import ViewLoss

ALL_ROWS = slice(None)
Terms = Callable[[Scores], Tensor]
NONSENSE_NUMBERS = (math.nan, math.inf, -math.inf, "0.5", None, True)
NONSENSE_TEXTS = ("no such", 3, None)


@law("the loss does not run", causes.LOGARITHM_REMEDY)
def check_runs(build: Build, seed: int) -> None:
    """Value and gradient are finite for every pairing, and nothing is raised."""
    for pairing in LAW_PAIRINGS.values():
        loss = build().requires_grad_(False)  # holes are -inf then
        views = random_views(seed, 6, grad=True)
        contrast = pairing(views)
        with causes.Watch(loss, contrast) as watch:
            value = loss(contrast)
        if not value.isfinite():
            raise Wrong(f"the loss is {value.item()}", watch.remedy, watch.place)
        if value.requires_grad:
            value.backward()
            if not all(v.grad is None or v.grad.isfinite().all() for v in views):
                raise Wrong("the gradient is not finite", causes.ROOT_REMEDY, formula_place(loss))


@law("the loss changes its scores or views in place", causes.KEEP_GIVEN)
def check_in_place(build: Build, seed: int) -> None:
    """The loss leaves the scores and the contrast as they are."""
    contrast = LAW_PAIRINGS["query_key"](random_views(seed, 6))
    given: list[Tensor] = [contrast.anchor, contrast.keys, *(contrast.views or ())]
    before = [tensor._version for tensor in given]

    def noted(_: ScoreLoss, terms: Terms, scores: Scores) -> Tensor:
        given.extend((scores.pos, scores.neg, scores.count))
        before.extend(tensor._version for tensor in given[-3:])
        return terms(scores)

    with_terms(build(), noted)(contrast)
    assert before == [tensor._version for tensor in given], ""


@law("terms does not return one term for each anchor", causes.SHAPE_REMEDY)
def check_terms(build: Build, seed: int) -> None:
    """`terms` returns one row for each anchor."""

    def shaped(loss: ScoreLoss, terms: Terms, scores: Scores) -> Tensor:
        made, anchors = terms(scores), len(scores.pos)
        shape = tuple(made.shape)
        message = f"terms returns shape {shape} for {anchors} anchors"
        if shape[1:] == (anchors,):
            raise Wrong(f"{message}: (a,) met (a, 1)", causes.SHAPE_REMEDY, formula_place(loss))
        if len(shape) not in (1, 2) or shape[0] != anchors:
            fix = "return one term for each anchor: combine takes their mean"
            raise Wrong(message, fix, formula_place(loss))
        return made

    # 12 anchors with 6 keys
    with_terms(build(), shaped)(LAW_PAIRINGS["query_key"](random_views(seed, 6)))


def with_terms(loss: Loss, look: Callable[[ScoreLoss, Terms, Scores], Tensor]) -> Loss:
    """Return the loss with a look at its formulas, which are called as a training calls them."""
    for part in loss.modules():
        if isinstance(part, ScoreLoss):
            vars(part)["terms"] = partial(look, part, part.terms)
    return loss


@law("a tensor stays on the CPU", causes.NEW_ALIKE)
def check_device(build: Build, seed: int) -> None:
    """Every tensor is on the device of the scores: torch's device `meta` stands for a GPU."""
    loss, contrast = build().to("meta"), on_meta(LAW_PAIRINGS["query_key"](random_views(seed, 6)))
    for part in loss.modules():
        try:
            if isinstance(part, ViewLoss):
                part.of_views(*contrast.views or ())
            elif (
                isinstance(part, ScoreLoss)
                and type(part).terms is not ScoreLoss.terms
                and type(part).forward is ScoreLoss.forward
            ):
                part.combine(part.terms(block_scores(contrast, ALL_ROWS, part.hole)))
        except Exception as error:
            if "expected device" in str(error):  # whatever else fails needs numbers, not a device
                message = "a tensor stays on the CPU while its scores or views are elsewhere"
                raise Wrong(message, causes.NEW_ALIKE, error_place(error, loss)) from None


def on_meta(contrast: Contrast) -> Contrast:
    tensors = ((k, v) for k, v in vars(contrast).items() if isinstance(v, Tensor))
    moved: dict[str, Any] = {k: tensor.to("meta") for k, tensor in tensors}
    moved["views"] = contrast.views and tuple(view.to("meta") for view in contrast.views)
    return replace(contrast, **moved)


@law(
    "two calls on the same batch differ",
    "draw or change only where self.training is true: a training then draws by seed, "
    "epoch and step, and the other checks, which compare values, are run",
)
def check_randomness(build: Build, seed: int) -> None:
    """Two calls on the same batch agree."""
    contrast, loss = LAW_PAIRINGS["both_views"](random_views(seed, 6)), build()
    for two, why in (
        ((build(), build()), "draws random numbers"),
        ((loss, loss), "changes while it is evaluated"),
    ):
        value, again = (each(contrast) for each in two)
        assert torch.equal(value, again), f"it {why}"


@law(
    "the loss is in another number format than its scores",
    "keep their dtype: no .float() or .half(), and scores.pos.new_zeros(n) for torch.zeros(n)",
)
def check_scalar(build: Build, seed: int) -> None:
    """One number in the format of the scores, for every pairing."""
    for pairing in LAW_PAIRINGS.values():
        value = build()(pairing(random_views(seed, 6)))
        assert value.dtype == torch.float64, f"float64 scores give a {value.dtype} loss"


@law(
    "the loss is not finite at some batch size",
    f"statistics of a batch may be 0/0 where it is small; {causes.BLOCK_REMEDY}",
)
def check_batch_size(build: Build, seed: int) -> None:
    """Finite value and gradient for batches of 2 to 64 samples."""
    for size in sorted({2, 3, 7, 2 + seed % 63, 64}):
        assertions.assert_finite(build(), some_pairing(seed), random_views(seed, size))


@law("a batch without negatives is accepted", "let the UserError of an empty row through")
def check_no_negatives(build: Build, seed: int) -> None:
    """A batch of one sample, which has no negatives, raises ValueError."""
    for name in ("both_views", "other_view"):
        contrast = LAW_PAIRINGS[name](random_views(seed, 1))
        assertions.raises_value_error(partial(build(), contrast), "a batch of one sample")


@law(
    "a parameter accepts nonsense, or is not kept",
    'keep each argument as an attribute of its name: self.x = self.checked("x", x)',
)
def check_parameters(build: Build, seed: int) -> None:
    """The parameters are plain data and make the same loss again; they reject nonsense."""
    loss, contrast = build(), LAW_PAIRINGS["both_views"](random_views(seed, 4))
    params = json.loads(json.dumps(loss.params))
    assertions.check_close(build(**params)(contrast), loss(contrast), 0)
    for key, value in params.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        for bad in NONSENSE_NUMBERS if number else NONSENSE_TEXTS:
            assertions.raises_value_error(partial(build, **{key: bad}), f"{key}={bad!r}")
