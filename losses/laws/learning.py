"""Check learning: a loss's own parameters learn, move and are saved."""

import torch
from torch import Tensor, nn

from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast
from contrastbench.losses.laws import assertions
from contrastbench.losses.laws.assertions import law
from contrastbench.losses.laws.causes import NO_NUMBERS
from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS, random_views, some_pairing

# the whole in both formats, single rows, tiles with a rest
CASES: tuple[tuple[torch.dtype, dict[str, int]], ...] = (
    *((torch.float64, {}), (torch.float32, {})),
    *((torch.float64, {"block_elements": 1}), (torch.float32, {"tile": 5})),
)


@law("a parameter of the loss does not learn", f"let terms use it, or take it out; {NO_NUMBERS}")
def check_learning(build: assertions.Build, seed: int) -> None:
    """Every parameter of the loss's own gets a finite gradient, in float32 too."""
    names = [name for name, p in build().named_parameters() if p.requires_grad]
    if not names:
        return
    taught = set()
    for pairing in LAW_PAIRINGS.values():
        for dtype, options in CASES:
            loss = assertions.configured(build().to(dtype), options)
            views = random_views(seed, 6, dtype=dtype, grad=True)
            own = assertions.value_and_gradient(loss, pairing(views), views)[1 + len(views) :]
            for name, gradient in zip(names, own, strict=True):
                assert gradient.isfinite().all(), f"the gradient of {name} is not finite"
                taught |= {name} if gradient.any() else set()
    missing = [name for name in names if name not in taught]
    assert not missing, f"{', '.join(missing)} never gets a gradient"


@law("a checkpoint does not restore the loss", "leave state_dict to torch.nn.Module, and its load")
def check_state(build: assertions.Build, seed: int) -> None:
    """State dict and dtype carry over all that was learned; nothing but the parameters learns."""
    loss, views, pairing = build(), random_views(seed, 6), some_pairing(seed)
    contrast, before = pairing(views), build().params
    with torch.no_grad():
        for parameter in assertions.learned_parameters(loss):
            parameter.mul_(1.25)
    assert loss.params == before, "the loss's record changes while it learns"
    again = build()
    again.load_state_dict(loss.state_dict())
    assertions.check_close(again(contrast), loss(contrast), 0)
    frozen = build().requires_grad_(False)  # holes are -inf then, and finite where something learns
    assertions.check_close(frozen(contrast), build()(contrast), 1e-12)
    single = loss.float()(pairing([v.float() for v in views]))
    assert single.dtype == torch.float32, f"a float32 contrast gives a {single.dtype} loss"
    assertions.check_close(single.double(), again(contrast), 1e-5)
    check_resumed(build, seed)


def check_resumed(build: assertions.Build, seed: int) -> None:
    """Fail if the loss of a training that goes on from a checkpoint is another one.

    A loss that draws by other generators than torch's is not compared.
    """
    trained, resumed, one, other = (build().train() for _ in range(4))
    pairing = some_pairing(seed)
    contrast = pairing(random_views(seed, 6))
    for drawn_by in range(seed, seed + 3):
        trained(pairing(random_views(drawn_by, 6, grad=True))).backward()
    resumed.load_state_dict(trained.state_dict())
    names = hidden_changes(build(), trained)
    if differ(one, other, contrast) or not differ(trained, resumed, contrast):
        return
    changed = ", ".join(names) or "what is no attribute of the loss"
    remedy = f'self.register_buffer("{[*names, "x"][0]}", a tensor) in __init__ is kept'
    raise assertions.Wrong(f"training changes {changed}, which no checkpoint holds", remedy)


def differ(one: Loss, other: Loss, contrast: Contrast) -> bool:
    """Return whether two losses differ on a contrast, with the same draws of torch."""
    values = []
    for loss in (one, other):
        torch.manual_seed(0)
        values.append(loss(contrast))
    return not torch.equal(*values)


def hidden_changes(fresh: Loss, trained: Loss) -> list[str]:
    """Return the attributes that training has changed and that are no part of a checkpoint."""
    kept = {*trained.state_dict(), *vars(nn.Module())}
    pairs = zip(fresh.modules(), trained.named_modules(), strict=True)
    return [
        key
        for before, (prefix, after) in pairs
        for key, value in {**vars(after), **after._buffers}.items()
        if not {key, f"{prefix}.{key}".lstrip(".")} & kept
        and repr(value) != repr(getattr(before, key, None))
    ]


@law(
    "what the loss remembers depends on blocks of rows",
    "change buffers in conclude: terms runs again for each block in the backward pass",
)
def check_buffers(build: assertions.Build, seed: int) -> None:
    """A training step leaves the same buffers in blocks of rows as in one piece."""
    start = dict(build().named_buffers())
    whole, blocked = (
        buffers_after_step(assertions.configured(build(), options).train(), start, seed)
        for options in ({}, {"block_elements": 1})
    )
    if build().needs_views:
        if changed := different(start, whole):
            raise assertions.Remark(
                f"a training step changes {changed}, and whole views have no blocks to compare; "
                "a resumed training keeps of it what state_dict holds"
            )
    elif changed := different(whole, blocked):
        raise AssertionError(f"{changed} differs where rows are taken in blocks")


def buffers_after_step(loss: Loss, start: dict[str, Tensor], seed: int) -> dict[str, Tensor]:
    """Return what a training step makes of the given buffers, as torch.empty fills them anew."""
    for name, buffer in loss.named_buffers():
        buffer.data = start[name].clone()
    loss(some_pairing(seed)(random_views(seed, 5, grad=True))).backward()
    return dict(loss.named_buffers())


def different(some: dict[str, Tensor], others: dict[str, Tensor]) -> str:
    pairs = ((name, some[name], others[name]) for name in some)
    return ", ".join(n for n, a, b in pairs if not torch.allclose(a, b, rtol=1e-9, equal_nan=True))
