"""Operations that CUDA refuses, asked of torch without a card.

A build of torch for CUDA holds the kernels and says for each operation whether there is one. Some
kernels refuse types that the CPU takes, and some raise under `use_deterministic_algorithms`, which
is the default of `bench`. The shadow device asks here before it computes, so that each test of it
is one of CUDA's operations too.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor

KEYS = {  # of torch's dispatcher, by the layout of operands; the first that is there decides
    torch.sparse_csr: "SparseCsrCUDA",
    torch.sparse_coo: "SparseCUDA",
    torch.strided: "CUDA",
}
INTEGERS = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
BYTES = {torch.uint8}
HALVES = {torch.bfloat16, torch.float16}
PRODUCTS = (
    *("mm", "addmm", "addmv", "addbmm", "baddbmm", "bmm", "mv", "dot", "vdot", "linear"),
    *("convolution", "_convolution", "convolution_overrideable"),
)
POOLING = ("max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d")
RESIZING = (
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d"),
    *("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
)
# types that CUDA's kernels refuse, and those of the CPU take
REFUSED_TYPES: dict[str, set[torch.dtype]] = {
    **dict.fromkeys((*PRODUCTS, *POOLING), INTEGERS),
    **dict.fromkeys(RESIZING, BYTES),
    **dict.fromkeys(("igamma", "igammac", "histc"), HALVES),
    "scatter_reduce": {torch.bool},
}
Values = Mapping[str, Any]


def always(values: Values) -> bool:
    """Refuse an operation whatever its operands are."""
    return True


# names in torch's documentation, and the operations that raise; of all releases that are supported
NOT_REPEATABLE: dict[str, dict[str, Callable[[Values], bool]]] = {
    "AvgPool3d": {"avg_pool3d_backward": always},
    "AdaptiveAvgPool2d": {"_adaptive_avg_pool2d_backward": always},
    "AdaptiveAvgPool3d": {"_adaptive_avg_pool3d_backward": always},
    "AdaptiveMaxPool2d": {"adaptive_max_pool2d_backward": always},
    "FractionalMaxPool2d": {"fractional_max_pool2d_backward": always},
    "FractionalMaxPool3d": {"fractional_max_pool3d_backward": always},
    "MaxUnpool1d": {"max_unpool2d": always},
    "MaxPool3d": {"max_pool3d_with_indices_backward": always},
    "MaxUnpool2d": {"max_unpool2d": always},
    "MaxUnpool3d": {"max_unpool3d": always},
    "interpolate": {f"{name}_backward": always for name in RESIZING},
    "ReflectionPad1d": {"reflection_pad1d_backward": always},
    "ReflectionPad2d": {"reflection_pad2d_backward": always},
    "ReflectionPad3d": {"reflection_pad3d_backward": always},
    "NLLLoss": {"nll_loss2d_forward": always},  # that of plain classes repeats
    "CTCLoss": {"_ctc_loss_backward": always},
    "EmbeddingBag": {"_embedding_bag_backward": lambda v: v["mode"] == 2},
    "put_": {"put_": always},
    "histc": {"histc": always},
    "bincount": {"bincount": lambda v: v.get("weights") is not None},
    "median": {"median.dim": always, "nanmedian.dim": always},
    "grid_sample": {"grid_sampler_2d_backward": always, "grid_sampler_3d_backward": always},
    "scatter_reduce": {"scatter_reduce.two": lambda v: v["reduce"] not in ("sum", "mean")},
    "kthvalue": {"kthvalue": always},
    "cumsum": {"cumsum": lambda v: v["self"].is_floating_point() or v["self"].is_complex()},
}
RAISING = {name: when for names in NOT_REPEATABLE.values() for name, when in names.items()}


@cache
def built() -> bool:
    return has_kernel("aten::mm", "CUDA")


@cache
def has_kernel(name: str, key: str) -> bool:
    has: bool = torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, key)
    return has


def check(func: Any, values: Values, operands: list[Tensor]) -> None:
    """Raise NotImplementedError where CUDA has no kernel, RuntimeError where it may not repeat."""
    if not built():
        return
    layouts = {operand.layout for operand in operands} or {torch.strided}
    key = next(key for layout, key in KEYS.items() if layout in layouts)
    if not has_kernel(func.name(), key):
        raise NotImplementedError(f"{func}: there is no kernel for {key}")
    name = func.name().removeprefix("aten::")
    refused = REFUSED_TYPES.get(base(name), set()) & {operand.dtype for operand in operands}
    if refused:
        raise NotImplementedError(f"{func}: there is no kernel of CUDA for {refused.pop()}")
    if any(RAISING[one](values) for one in spellings(name) if one in RAISING):
        raise RuntimeError(f"{func} does not have a deterministic implementation on CUDA")


@cache
def base(name: str) -> str:
    return name.partition(".")[0]


@cache
def spellings(name: str) -> tuple[str, ...]:
    """Return the names under which an operation may stand in the tables.

    >>> spellings("median.dim"), spellings("put_")
    (('median.dim', 'median'), ('put_', 'put'))
    """
    plain = base(name)
    return tuple(dict.fromkeys((name, plain, plain.removesuffix("_"))))


def documented() -> Iterator[str]:
    """Yield the operations that torch's documentation says to raise on CUDA."""
    text = torch.use_deterministic_algorithms.__doc__ or ""
    listed = text.rpartition("will throw a\n")[2].partition("In addition")[0]
    for item in listed.split("* :")[1:]:
        words = " ".join(item.split())
        if "MPS" not in words.replace("CUDA or MPS", "CUDA") and "quantized" not in words:
            yield words.partition("`")[2].partition("`")[0].rpartition(".")[2]
