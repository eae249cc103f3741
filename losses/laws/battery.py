"""What every loss must satisfy, checked on any loss: a registered one or a user's own.

Each check takes `build`, which makes the loss with some parameters changed, and a seed; it raises
AssertionError.

>>> [result.name for result in check_loss("infonce") if not result.passed]
[]
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.overrides import TorchFunctionMode

from contrastbench.losses import get_loss
from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.errors import is_termination
from contrastbench.losses.laws.random_contrasts import PAIRINGS, Pairing, random_views, some_pairing

Build = Callable[..., Loss]
Check = Callable[[Build, int], None]


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check."""

    name: str
    passed: bool
    detail: str


def check_loss(name: str, seeds: Iterable[int] = range(3), **params: Any) -> list[CheckResult]:
    """Run every check on a loss.

    Args:
        name: whatever `get_loss` takes: a registered name, a sum, or `my_loss.py:MyLoss`.
        seeds: each check runs once for each.
        params: the loss's parameters.

    Raises:
        ValueError: unknown name or parameter.
    """

    def build(**changed: Any) -> Loss:
        return get_loss(name, **{**params, **changed})

    build()
    return [run(check, build, seeds) for check in CHECKS]


def run(check: Check, build: Build, seeds: Iterable[int]) -> CheckResult:
    """The outcome of one check; whatever a user's loss raises is a failed check."""
    title = check.__name__.removeprefix("check_").replace("_", " ")
    try:
        for seed in seeds:
            check(build, seed)
    except (Exception, SystemExit) as error:
        if is_termination(error):
            raise
        return CheckResult(title, False, f"{type(error).__name__}: {error}".split("\n")[0])
    return CheckResult(title, True, (check.__doc__ or "").split("\n")[0])


def check_scalar(build: Build, seed: int) -> None:
    """One finite number, the same when asked twice, for every pairing."""
    for pairing in PAIRINGS.values():
        contrast = pairing(random_views(seed, 6))
        value, again = build()(contrast), build()(contrast)
        assert value.shape == (), f"the loss has shape {tuple(value.shape)}, not one number"
        assert value.dtype == torch.float64, f"a float64 contrast gives a {value.dtype} loss"
        assert value.isfinite(), f"the loss is {value.item()}"
        assert value.item() == again.item(), "the same contrast gives two values"


def check_batch_size(build: Build, seed: int) -> None:
    """Finite value and gradient for batches of 2 to 64 samples."""
    size = 2 + seed % 63
    assert_finite(build(), some_pairing(seed), random_views(seed, size))


def check_permutation(build: Build, seed: int) -> None:
    """The order of the samples does not matter, unless the loss says that it is `ordered`."""
    if build().ordered:
        return
    views, generator = random_views(seed, 2 + seed % 7), torch.Generator().manual_seed(seed)
    order = torch.randperm(len(views[0]), generator=generator)
    pairing = some_pairing(seed, without="same_class")  # its classes go by position
    close(build()(pairing([v[order] for v in views])), build()(pairing(views)), 1e-10)


def check_rotation(build: Build, seed: int) -> None:
    """Only angles matter: a rotation of all embeddings changes nothing."""
    views, pairing = random_views(seed, 2 + seed % 7), some_pairing(seed)
    generator = torch.Generator().manual_seed(seed)
    rotation = torch.linalg.qr(torch.randn(8, 8, dtype=torch.float64, generator=generator)).Q
    close(build()(pairing([v @ rotation for v in views])), build()(pairing(views)), 1e-10)


def check_gradient(build: Build, seed: int) -> None:
    """The gradient is the difference quotient's, whatever is detached taken as constant."""
    loss, pairing, views = build(), some_pairing(seed), random_views(seed, 3, dim=3, grad=True)
    frozen = FrozenDetach()
    assert gradcheck(lambda *v: frozen.call(loss, pairing(v)), views, atol=1e-6, rtol=1e-4)


def check_second_gradient(build: Build, seed: int) -> None:
    """The gradient can be differentiated, and is right."""
    loss, pairing, views = build(), some_pairing(seed), random_views(seed, 3, dim=2, grad=True)
    frozen = FrozenDetach()
    assert gradgradcheck(lambda *v: frozen.call(loss, pairing(v)), views, atol=1e-5, rtol=1e-3)


def check_float32(build: Build, seed: int) -> None:
    """Float32 is within 1e-5 of float64."""
    views, pairing = [v.float() for v in random_views(seed, 2 + seed % 7)], some_pairing(seed)
    exact = build()(pairing([v.double() for v in views]))
    close(build()(pairing(views)).double(), exact, 1e-5)


def check_half_precision(build: Build, seed: int) -> None:
    """Float16 and bfloat16 embeddings, and autocast, give a float32 loss of these numbers."""
    loss, pairing = build(), some_pairing(seed)
    for dtype in (torch.float16, torch.bfloat16):
        views = [v.to(dtype) for v in random_views(seed, 6)]
        assert_finite(loss, pairing, views)
        expected = loss(pairing([v.float() for v in views]))
        close(loss(pairing(views)), expected, 1e-6)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            close(loss(pairing(views)), expected, 1e-6)


def check_low_temperature(build: Build, seed: int) -> None:
    """At temperature 0.01 value and gradient are finite wherever the number format can hold them."""
    if not any(key.rpartition(".")[2] == "temperature" for key in build().params):
        return
    for pairing in PAIRINGS.values():
        views = random_views(seed, 8, dim=32, grad=True)
        exact = value_and_gradient(build(temperature=0.01), pairing(views), views)
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            low = [v.detach().to(dtype).requires_grad_() for v in views]
            for found, true in zip(
                value_and_gradient(build(temperature=0.01), pairing(low), low), exact, strict=True
            ):
                if (
                    true.abs().max() < torch.finfo(found.dtype).max / 1000
                ):  # RINCE and NWJ grow as e^(1 / tau)
                    assert found.isfinite().all(), (
                        f"{dtype}: not finite where float64 gives {true.abs().max():.3g}"
                    )


def check_zero_rows(build: Build, seed: int) -> None:
    """Embeddings of zeros alone give a bounded value and gradient."""
    views = random_views(seed, 5, dtype=torch.float32)
    for rows in (slice(0, 1), slice(None)):
        zeroed = [v.index_fill(0, torch.arange(5)[rows], 0) for v in views]
        for pairing in PAIRINGS.values():
            assert_finite(build(), pairing, zeroed, bound=1e6)


def check_no_negatives(build: Build, seed: int) -> None:
    """A batch of one sample, which has no negatives, raises ValueError."""
    views = random_views(seed, 1)
    for pairing in (PAIRINGS["both_views"], PAIRINGS["other_view"]):
        raises_value_error(partial(evaluate, build, pairing, views), "a batch of one sample")


def check_padding(build: Build, seed: int) -> None:
    """Rows of padding among the positives change nothing."""
    contrast = PAIRINGS["both_views with positives"](random_views(seed, 4))
    padded = Contrast(
        contrast.anchor,
        torch.cat([contrast.positive, torch.zeros_like(contrast.positive)], dim=1),
        contrast.keys,
        contrast.anchor_id,
        contrast.key_id,
        padding=torch.arange(2 * contrast.positive.shape[1]).expand(len(contrast.anchor), -1)
        >= contrast.positive.shape[1],
    )
    close(build()(padded), build()(contrast), 1e-12)


def check_tiles(build: Build, seed: int) -> None:
    """Blocks of rows, and tiles, of every size that leaves a rest, give the value and gradient of the whole."""
    views = random_views(seed, 5, grad=True)
    for pairing in PAIRINGS.values():
        contrast = pairing(views)
        anchors, keys = len(contrast.anchor), len(contrast.keys)
        expected = value_and_gradient(build(), contrast, views)
        for size in (s for s in range(1, anchors) if anchors % s):
            for options in ({"block_elements": size * keys}, {"tile": size}):
                found = value_and_gradient(configured(build(), options), contrast, views)
                for a, b in zip(found, expected, strict=True):
                    close(a, b, 1e-12)


def check_parameters(build: Build, seed: int) -> None:
    """The parameters are plain data and make the same loss again; temperature and the like reject nonsense."""
    loss, contrast = build(), PAIRINGS["both_views"](random_views(seed, 4))
    params = json.loads(json.dumps(loss.params))
    close(build(**params)(contrast), loss(contrast), 0)
    for key, value in params.items():
        nonsense = (
            [math.nan, math.inf, -math.inf, "0.5", None, True]
            if isinstance(value, float)
            else ["no such", 3, None]
        )
        for bad in nonsense:
            raises_value_error(partial(build, **{key: bad}), f"{key}={bad!r}")


CHECKS: list[Check] = [
    check_scalar,
    check_batch_size,
    check_permutation,
    check_rotation,
    check_gradient,
    check_second_gradient,
    check_float32,
    check_half_precision,
    check_low_temperature,
    check_zero_rows,
    check_no_negatives,
    check_padding,
    check_tiles,
    check_parameters,
]


class FrozenDetach(TorchFunctionMode):
    """Replays what every detach() gave in the first call: a loss's detached weights are constants of its gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Tensor] = []
        self.position = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is not torch.Tensor.detach:
            return result
        if self.position == len(self.kept):
            self.kept.append(result.clone())
        self.position += 1
        return self.kept[self.position - 1]

    def call(self, loss: Loss, contrast: Contrast) -> Tensor:
        """The loss with the first call's weights."""
        self.position = 0
        with self:
            value: Tensor = loss(contrast)
        return value


def evaluate(build: Build, pairing: Pairing, views: Sequence[Tensor]) -> Tensor:
    """The loss of paired views."""
    value: Tensor = build()(pairing(views))
    return value


def value_and_gradient(loss: Loss, contrast: Contrast, views: Sequence[Tensor]) -> list[Tensor]:
    """The loss and what it sends back to each view."""
    value = loss(contrast)
    gradients = torch.autograd.grad(
        value, views, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    return [value, *gradients]


def configured(loss: Loss, options: Mapping[str, int]) -> Loss:
    """The loss, its parts that know such an option set to it."""
    for module in loss.modules():
        for name, value in options.items():
            if hasattr(module, name):
                setattr(module, name, value)
    return loss


def assert_finite(
    loss: Loss, pairing: Pairing, views: Sequence[Tensor], bound: float = math.inf
) -> None:
    """Fail unless value and gradients are finite."""
    leaves = [v.detach().clone().requires_grad_() for v in views]
    value, *gradients = value_and_gradient(loss, pairing(leaves), leaves)
    assert value.abs() < bound, f"the loss is {value.item()}"
    for gradient in gradients:
        assert gradient.isfinite().all(), "a gradient is not finite"
        assert gradient.abs().max() < bound, f"a gradient is {gradient.abs().max().item()}"


def close(found: Tensor, expected: Tensor, tolerance: float) -> None:
    """Fail unless numbers agree to the tolerance, relative to the larger of the expected ones and 1."""
    scale = max(1.0, expected.abs().max().item())
    error = (found - expected).abs().max().item()
    assert error <= tolerance * scale, (
        f"{error:.2g} apart from {expected.abs().max().item():.6g}, more than {tolerance:g}"
    )


def raises_value_error(call: Callable[[], object], what: str) -> None:
    """Fail unless the call raises ValueError."""
    try:
        call()
    except ValueError:
        return
    raise AssertionError(f"{what} does not raise ValueError")
