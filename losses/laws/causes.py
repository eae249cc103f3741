"""Name the cause of a loss that raises, or that is not finite, with the line and a remedy."""

import difflib
import re
from collections.abc import Sequence
from traceback import walk_stack
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from contrastbench.errors import UserError
from contrastbench.losses.base import Loss, Scores
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.laws import assertions
from contrastbench.losses.laws.assertions import SourceLine, Wrong

HOLES = "scores.neg is -inf in holes: use scores.hole or a method of Scores"
LOGARITHM_REMEDY = (
    "stay in log space (scores.log_share, log_mean_neg), and exponentiate differences alone"
)
NEW_ALIKE = (
    "make tensors as the scores or views are: scores.pos.new_zeros(n) or z1.new_zeros(n), and "
    "register_buffer for constants"
)
KEEP_GIVEN = "leave scores and views as they are: write neg = scores.neg / t, which is a new tensor"
NO_NUMBERS = "keep tensors: .item(), float(), .data, .detach() and torch.no_grad() cut the gradient"
SHAPE_REMEDY = (
    "scores.pos is (a, P), scores.neg is (a, K), scores.count is (a, 1): "
    "reduce with keepdim=True where the result meets them again"
)
BLOCK_REMEDY = (
    "terms sees a block of anchors with all keys, never the whole batch: what is over anchors "
    "belongs into combine"
)
ROOT_REMEDY = "the derivative of a root or a norm is infinite at zero: clamp before"
ERROR_REMEDIES = {  # a pattern of the message -> what helps
    r"selected index k out of range": "a batch may be smaller: k = min(k, scores.neg.shape[1])",
    r"cannot assign to field|inplace operation|in-place operation": KEEP_GIVEN,
    r"dtype|scalar type|same device|expected device": NEW_ALIKE,
    r"size of tensor|shape|broadcast|[Dd]imension": SHAPE_REMEDY,
    r"does not require grad|numpy\(\) on": NO_NUMBERS,
    r"positional argument": "write terms(self, scores): scores.pos and scores.neg are its cosines",
    r"out of (bounds|range)": "the pairing says how many anchors and keys there are: "
    "take scores.pos and scores.neg in the terms of a ScoreLoss",
    r"^NotImplementedError": "write terms(self, scores), or forward(self, contrast)",
}
MADE_BY = {  # a pattern of an operation's name -> what helps where its result is not finite
    r"exp": LOGARITHM_REMEDY,
    r"div": "keep the divisor away from zero; a parameter of 0 needs another default, such as 0.5",
    r"log": "keep its argument away from zero, or stay in log space (scores.log_share)",
    r"sqrt|norm|pow|acos|asin": "it has no value there: clamp before",
    r"": "keep it finite for every cosine between -1 and 1",
}


def diagnosis(error: BaseException, loss: Loss) -> Wrong:
    """Return the error as a diagnosis: the line of the user's own, the message and a remedy."""
    text = (str(error).splitlines() or [""])[0]
    name = type(error).__name__
    message = text if isinstance(error, UserError) else f"{name}: {text}" if text else name
    return Wrong(message, remedy_for(error, message), assertions.error_place(error, loss))


def remedy_for(error: BaseException, message: str) -> str:
    if isinstance(error, UserError):
        return ""
    if isinstance(error, AttributeError) and isinstance(error.obj, Scores):
        names = [name for name in dir(error.obj) if not name.startswith("_")]
        near = difflib.get_close_matches(error.name or "", names, n=1)
        return f"did you mean scores.{near[0]}?" if near else f"scores has {', '.join(names)}"
    return first_match(ERROR_REMEDIES, message)


def first_match(table: dict[str, str], text: str) -> str:
    return next((value for pattern, value in table.items() if re.search(pattern, text)), "")


class Watch(TorchFunctionMode):
    """Note the last call of torch that made what is not finite of finite numbers, or of holes."""

    def __init__(self, loss: Loss, contrast: Contrast) -> None:
        super().__init__()
        self.folders = assertions.code_folders(loss)
        self.hole = contrast.anchor_id.unsqueeze(1) == contrast.key_id
        self.remedy = LOGARITHM_REMEDY
        self.place: SourceLine | None = assertions.formula_place(loss)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        with torch.no_grad():  # a block that is computed again has to save as many tensors
            inputs = [x for x in (*args, *(kwargs or {}).values()) if isinstance(x, Tensor)]
            if isinstance(result, Tensor) and self.is_wrong(result):
                self.note(getattr(func, "__name__", ""), args, inputs)
        return result

    def note(self, name: str, args: Sequence[Any], inputs: Sequence[Tensor]) -> None:
        """Note a call whose result is not finite, if it was not given such."""
        if not any(map(self.is_wrong, inputs)):
            by_zero = any(type(x) in (int, float) and x == 0 for x in args)
            holes = any(map(self.is_hole, inputs)) and not by_zero
            self.remedy = HOLES if holes else first_match(MADE_BY, name)
            self.place = next(assertions.lines_within(walk_stack(None), self.folders), self.place)

    def is_wrong(self, x: Tensor) -> bool:
        return x.is_floating_point() and not (bool(x.isfinite().all()) or self.is_hole(x))

    def is_hole(self, x: Tensor) -> bool:
        same = x.shape == self.hole.shape and bool(self.hole.any())
        return same and torch.equal(x.isinf(), self.hole)
