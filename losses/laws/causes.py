"""Name the cause of a loss that raises, or that is not finite, with the line and a remedy."""

import difflib
import re

import torch
from torch import Tensor

from contrastbench.errors import UserError
from contrastbench.losses.base import Loss, Scores
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.laws.assertions import Wrong
from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS, random_views
from contrastbench.losses.laws.trace import SourceLine, Step, Trace, error_place, formula_place

HOLES = "scores.neg is -inf in holes: use scores.hole or a method of Scores"
LOGARITHM_REMEDY = (
    "stay in log space (scores.log_share, log_mean_neg), and exponentiate differences alone"
)
AS_SCORES = (
    "make tensors as the scores are: scores.pos.new_zeros(n), and register_buffer for constants"
)
KEEP_SCORES = "leave the scores as they are: write neg = scores.neg / t, which is a new tensor"
KEEP_VIEWS = "leave the views as they are: write z1 = z1 - z1.mean(0), which is a new tensor"
AS_VIEWS = "make tensors as the views are: z1.new_zeros(n), and register_buffer for constants"
NO_NUMBERS = "keep tensors: .item(), float(), .data, .detach() and torch.no_grad() cut the gradient"
OVER_ANCHORS = (
    "take dim=1, over the keys of an anchor: terms sees a block of anchors, never the whole batch"
)
SHAPE_REMEDY = (
    "scores.pos is (a, P), scores.neg is (a, K), scores.count is (a, 1): "
    "reduce with keepdim=True where the result meets them again"
)
ERROR_REMEDIES = {  # a pattern of the message -> what helps
    r"selected index k out of range": "a batch may be smaller: k = min(k, scores.neg.shape[1])",
    r"cannot assign to field|inplace operation|in-place operation": KEEP_SCORES,
    r"dtype|scalar type|same device|expected device": AS_SCORES,
    r"size of tensor|shape|broadcast|[Dd]imension": SHAPE_REMEDY,
    r"does not require grad|numpy\(\) on": NO_NUMBERS,
    r"positional argument": "write terms(self, scores): scores.pos and scores.neg are its cosines",
    r"out of (bounds|range)": "the pairing says how many anchors and keys there are: "
    "take scores.pos and scores.neg in the terms of a ScoreLoss",
    r"^NotImplementedError": "write terms(self, scores), or forward(self, contrast)",
}
MADE_BY = {  # a pattern of an operation's name -> what helps where its result is not finite
    r"exp": LOGARITHM_REMEDY,
    r"log|div": "keep its argument away from zero, or stay in log space (scores.log_share)",
    r"sqrt|norm|pow|acos|asin": "the derivative is infinite at the end of its range: clamp before",
}


def diagnosis(error: BaseException, loss: Loss) -> Wrong:
    """Return the error as a diagnosis: the line of the user's own, the message and a remedy."""
    text = (str(error).splitlines() or [""])[0]
    name = type(error).__name__
    message = text if isinstance(error, UserError) else f"{name}: {text}" if text else name
    return Wrong(message, remedy_for(error, message), error_place(error, loss))


def remedy_for(error: BaseException, message: str) -> str:
    """Return what helps against an exception; "" where its message says that itself."""
    if isinstance(error, UserError):
        return ""
    if isinstance(error, AttributeError) and isinstance(error.obj, Scores):
        names = [name for name in dir(error.obj) if not name.startswith("_")]
        near = difflib.get_close_matches(error.name or "", names, n=1)
        return f"did you mean scores.{near[0]}?" if near else f"scores has {', '.join(names)}"
    return next((fix for pattern, fix in ERROR_REMEDIES.items() if re.search(pattern, message)), "")


def over_anchors(loss: Loss) -> Wrong | None:
    """Return the diagnosis of a loss that normalises over anchors, which come in blocks."""
    with Trace(loss) as trace:
        loss(LAW_PAIRINGS["query_key"](random_views(0, 6)))
    for step in trace.steps:
        first = any(type(dim) is int and dim == 0 for dim in step.arguments[1:])
        if step.place and first and re.search("softmax|logsumexp", step.name):
            return Wrong(f"{step.name} is over the anchors", OVER_ANCHORS, step.place)
    return None


def not_finite(value: Tensor, trace: Trace, contrast: Contrast, loss: Loss) -> Wrong:
    """Return the diagnosis of a loss that is not finite."""
    hole = contrast.anchor_id.unsqueeze(1) == contrast.key_id
    step = origin(value, trace, hole)
    remedy = remedy_of(step, hole, loss) if step else LOGARITHM_REMEDY
    return Wrong(f"the loss is {value.item()}", remedy, line_of_call(step, loss))


def origin(value: Tensor, trace: Trace, hole: Tensor) -> Step | None:
    """Follow what is not finite back to the call that made it from finite numbers or holes."""
    step, tensor, seen = None, value, set()
    while (maker := trace.maker(tensor)) and id(maker) not in seen:
        step = maker
        seen.add(id(step))
        bad = [x for x in step.inputs if is_wrong(x) and not is_hole(x, hole)]
        if not bad:
            break
        tensor = bad[0]
    return step


def not_finite_gradient(trace: Trace, contrast: Contrast, loss: Loss) -> Wrong:
    """Return the diagnosis of a loss whose value is finite and whose gradient is not."""
    hole = contrast.anchor_id.unsqueeze(1) == contrast.key_id
    for step in reversed(trace.steps):
        after = [x.grad for x in (step.result,) if isinstance(x, Tensor) and x.retains_grad]
        before = [x.grad for x in step.inputs if x.retains_grad and x.grad is not None]
        if any(map(is_wrong, before)) and not any(g is None or is_wrong(g) for g in after):
            remedy = remedy_of(step, hole, loss)
            return Wrong("the gradient is not finite", remedy, line_of_call(step, loss))
    return Wrong("the gradient is not finite", LOGARITHM_REMEDY, formula_place(loss))


def remedy_of(step: Step, hole: Tensor, loss: Loss) -> str:
    """Return what helps where this call makes what is not finite."""
    zero = [key for key, value in loss.params.items() if is_zero(value)]
    if zero and "div" in step.name and any(map(is_zero, step.arguments)):
        return f"{zero[0]} is 0, and it is divided by: give it another default, such as 0.5"
    if any(is_hole(x, hole) for x in step.inputs):
        return HOLES
    found = (fix for pattern, fix in MADE_BY.items() if re.search(pattern, step.name))
    return next(found, "keep it finite for every cosine between -1 and 1")


def line_of_call(step: Step | None, loss: Loss) -> SourceLine | None:
    """Return the line of a call; without one the line at which the formula begins."""
    return (step.place if step else None) or formula_place(loss)


def is_zero(value: object) -> bool:
    """Return whether a value is the number 0."""
    return type(value) in (int, float) and value == 0


def is_wrong(x: Tensor) -> bool:
    """Return whether a tensor of numbers is not finite."""
    return x.is_floating_point() and not bool(x.isfinite().all())


def is_hole(x: Tensor, hole: Tensor) -> bool:
    """Return whether exactly the holes of a tensor are infinite."""
    return x.shape == hole.shape and bool(hole.any()) and torch.equal(x.isinf(), hole)
