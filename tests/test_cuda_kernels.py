"""The operations that the shadow device refuses because CUDA does."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import cuda_kernels
from shadow import shadow

SHADOW = shadow()  # before any backward pass, which settles the devices
needs_kernels = pytest.mark.skipif(
    not cuda_kernels.built(), reason="this build of torch holds no kernels of CUDA"
)
Work = Callable[[Tensor], object]


@pytest.fixture
def x() -> Tensor:
    return torch.linspace(0.1, 1, 64, device=SHADOW).view(1, 1, 8, 8).requires_grad_()


def pictures(x: Tensor, mode: str) -> Tensor:
    return nn.functional.interpolate(x, (4, 4), mode=mode).sum()


def grid(x: Tensor) -> Tensor:
    places = torch.zeros(1, 2, 2, 2, device=x.device)
    return nn.functional.grid_sample(x, places, align_corners=False).sum()


NOT_REPEATABLE: dict[str, Work] = {
    "sums of fractions": lambda x: x.detach().cumsum(2),
    "weighted counts": lambda x: torch.ones(3, device=x.device).long().bincount(x.flatten()[:3]),
    "median with its place": lambda x: x.median(dim=3),
    "k-th value": lambda x: x.kthvalue(2),
    "histogram": lambda x: x.detach().histc(4),
    "written anywhere": lambda x: x.detach().put_(x[0, 0, 0].long(), x[0, 0, 0].detach()),
    "extreme by place": lambda x: x.detach().scatter_reduce(3, x.long(), x.detach(), "amax"),
    "pooling to a size": lambda x: nn.AdaptiveAvgPool2d(3)(x).sum().backward(),
    "greatest to a size": lambda x: nn.AdaptiveMaxPool2d(3)(x).sum().backward(),
    "smaller pictures": lambda x: pictures(x, "bilinear").backward(),
    "reflected borders": lambda x: nn.ReflectionPad2d(1)(x).sum().backward(),
    "samples of a grid": lambda x: grid(x).backward(),
}
NO_KERNEL: dict[str, Work] = {
    "products of whole numbers": lambda x: x.long()[0, 0] @ x.long()[0, 0],
    "layers of whole numbers": lambda x: nn.functional.linear(x.long()[0, 0], x.long()[0, 0]),
    "maxima of whole numbers": lambda x: nn.functional.max_pool2d(x.long(), 2),
    "pictures of bytes": lambda x: pictures(x.detach().byte(), "bilinear"),
    "a histogram with edges": lambda x: torch.histogram(x.detach(), 4),
    "layers of oneDNN": lambda x: torch.ops.mkldnn._linear_pointwise(
        x.detach()[0, 0], x.detach()[0, 0], None, "none", [], ""
    ),
}
ALLOWED: dict[str, Work] = {
    "sums of whole numbers": lambda x: x.long().cumsum(2),
    "counts": lambda x: torch.ones(3, device=x.device).long().bincount(),
    "median": lambda x: x.median(),
    "sums by place": lambda x: x.detach().scatter_reduce(3, x.long(), x.detach(), "sum"),
    "a pooled picture": lambda x: nn.AdaptiveAvgPool2d(3)(x.detach()),
    "the mean of a picture": lambda x: nn.AdaptiveAvgPool2d(1)(x).sum().backward(),
    "sampled without a gradient": lambda x: grid(x.detach()),
    "classes": lambda x: nn.functional.cross_entropy(x[0, 0], x[0, 0, 0].long()).backward(),
    "bags of means": lambda x: nn.functional.embedding_bag(
        x.long()[0, 0], x[0, 0], mode="mean"
    ).sum(),
    "products": lambda x: x[0, 0] @ x[0, 0],
}


@needs_kernels
@pytest.mark.parametrize("name", NOT_REPEATABLE)
def test_operations_that_do_not_repeat_are_refused(name: str, x: Tensor) -> None:
    with pytest.raises(RuntimeError, match="does not have a deterministic implementation"):
        NOT_REPEATABLE[name](x)


@needs_kernels
@pytest.mark.parametrize("name", NO_KERNEL)
def test_operations_without_a_kernel_are_refused(name: str, x: Tensor) -> None:
    with pytest.raises(NotImplementedError, match="there is no kernel"):
        NO_KERNEL[name](x)


@needs_kernels
@pytest.mark.parametrize("name", ALLOWED)
def test_other_operations_compute(name: str, x: Tensor) -> None:
    ALLOWED[name](x)


@needs_kernels
@pytest.mark.parametrize(("layout", "known"), [(torch.sparse_csr, True), (torch.sparse_coo, False)])
def test_the_kernel_is_that_of_the_layout(layout: torch.layout, known: bool) -> None:
    """Conversion to compressed rows has a kernel of dense rows, and the other one has none."""
    func = torch.ops.aten.index_select.default
    operand = torch.eye(3).to_sparse(layout=layout)
    key = cuda_kernels.KEYS[layout]
    assert cuda_kernels.has_kernel(func.name(), key) is not known
    if known:
        with pytest.raises(NotImplementedError, match=key):
            cuda_kernels.check(func, {"self": operand}, [operand])
    else:
        cuda_kernels.check(func, {"self": operand}, [operand])


def test_every_operation_that_torch_documents_is_in_the_table() -> None:
    """A release of torch that adds one fails here with its name."""
    listed = set(cuda_kernels.documented())
    assert len(listed) > 15
    assert listed <= set(cuda_kernels.NOT_REPEATABLE)


def test_a_build_without_kernels_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_kernels, "built", lambda: False)
    x = torch.ones(3, device=SHADOW)
    assert x.cumsum(0).tolist() == [1.0, 2.0, 3.0]


def test_operations_in_the_tables_are_torchs() -> None:
    """A name that is spelt wrongly would refuse nothing."""
    for name in (*cuda_kernels.REFUSED_TYPES, *cuda_kernels.RAISING):
        packet, _, overload = name.partition(".")
        found = getattr(torch.ops.aten, packet)
        assert not overload or overload in found.overloads(), name
