"""A device that is the CPU in disguise: it refuses what CUDA refuses and counts what CUDA is asked.

Tensors on it hold a CPU tensor and compute there, so that numbers are the CPU's to the last bit.
Operands of two devices are an error, and so is an operation that CUDA refuses (`cuda_kernels`).
Three things are counted that cost time on a real device:

- launches: operations of ATen that compute or copy, a few of which are several kernels on CUDA;
  views, metadata and allocations are none,
- host reads: what the processor must wait for, such as `.item()` or the size of `nonzero()`,
- copies from the host to the device.

>>> device = shadow()
>>> with counting() as counts:
...     x = torch.ones(3, device=device)
...     total = (2 * x).sum().item()
>>> total, counts.launches, counts.host_reads, counts.copies
(6.0, 3, 1, 0)
"""

import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

import contrastbench
import cuda_kernels

NAME = "shadow"
PACKAGE = Path(contrastbench.__file__).parent

# that make a tensor from sizes and values alone
FACTORIES = (
    *("empty.memory_format", "empty_strided", "empty_permuted", "zeros", "ones", "full", "eye"),
    *("eye.m", "arange", "arange.start", "arange.start_step", "linspace", "scalar_tensor"),
    *("rand", "rand.generator", "randn", "randn.generator", "randperm", "randperm.generator"),
    *("randint", "randint.generator", "randint.low", "randint.low_generator", "normal.float_float"),
    *("tril_indices", "triu_indices"),
)
# that run nothing on the device
NO_LAUNCH = {"empty", "empty_strided", "empty_permuted", "empty_like", "new_empty"} | {
    *("new_empty_strided", "resize_", "_unsafe_view", "set_", "_local_scalar_dense")
}
# whose result the host needs: a number, or one that its shape depends on
READS = {"_local_scalar_dense", "equal", "nonzero", "masked_select", "bincount"} | {
    *("_unique", "_unique2", "unique_dim", "unique_consecutive", "_linalg_check_errors")
}
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
# products that autocast makes in half precision, on the CPU and on CUDA
LOWER = (
    *("linear", "matmul", "mm", "bmm", "addmm", "addbmm", "baddbmm"),
    "scaled_dot_product_attention",
    *("conv1d", "conv2d", "conv3d", "_convolution", "linalg_vecdot", "prelu"),
)
PROMOTED = ("cat", "stack")  # to the widest operand


@dataclass
class Counts:
    """The launches, host reads and copies of the shadow device."""

    launches: int = 0
    host_reads: int = 0
    copies: int = 0  # from the host to the device
    copied_bytes: int = 0
    read_at: Counter[str] = field(default_factory=Counter)  # lines of the package, reads of each
    copied_at: Counter[str] = field(default_factory=Counter)
    launched: Counter[str] = field(default_factory=Counter)  # by operation
    sizes: Counter[int] = field(default_factory=Counter)  # bytes of new memory, how often

    def __sub__(self, earlier: "Counts") -> "Counts":
        """Return the counts since an earlier moment."""
        return Counts(*(getattr(self, x.name) - getattr(earlier, x.name) for x in fields(self)))


active: list[Counts] = []  # innermost last; each is told of everything


@contextmanager
def counting() -> Iterator[Counts]:
    """Count what the shadow device does within the block."""
    active.append(Counts())
    try:
        yield active[-1]
    finally:
        active.pop()


def count_launch(operation: str) -> None:
    """An operation that computes or copies on the device."""
    for counts in active:
        counts.launches += 1
        counts.launched[operation] += 1


def count_read() -> None:
    """The host waits for a result."""
    for counts in active:
        counts.host_reads += 1
        counts.read_at[line()] += 1


def count_copy(tensor: Tensor) -> None:
    """Data of the host become the device's."""
    for counts in active:
        counts.copies += 1
        counts.copied_bytes += tensor.numel() * tensor.itemsize
        counts.copied_at[line()] += 1


def line() -> str:
    """The innermost line of the package that led here; backward passes have none."""
    for frame in reversed(traceback.extract_stack()):
        path = Path(frame.filename)
        if path.is_relative_to(PACKAGE) and frame.filename != __file__:
            return f"{path.relative_to(PACKAGE)}:{frame.lineno}"
    return "outside the package"


class Recording:
    """A CUDA graph on the CPU: operations of one time, that can run again on the same memory.

    As where CUDA captures, what was there before is afterwards as it was.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Any, Sequence[Any], dict[str, Any], Any]] = []
        self.made: set[int] = set()  # the memory of results
        self.before: dict[int, tuple[Any, Any]] = {}  # other memory, and what was in it

    def run(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run an operation, and keep the operands that no operation of the recording has made."""
        for memory in memories([*args, *kwargs.values()]):
            if memory.data_ptr() not in {*self.made, *self.before}:
                self.before[memory.data_ptr()] = memory, memory.clone()
        result = func(*args, **kwargs)
        self.made |= {memory.data_ptr() for memory in memories([result])} - self.before.keys()
        self.calls.append((func, args, kwargs, result))
        return result

    def end(self) -> None:
        """Put everything back that was there before."""
        for memory, content in self.before.values():
            memory.copy_(content)

    @torch.no_grad()
    def replay(self) -> None:
        """Run all operations again, into the memory of the first time."""
        for func, args, kwargs, result in self.calls:
            again = func(*args, **kwargs)
            for old, new in zip(tensors([result]), tensors([again]), strict=True):
                if old.data_ptr() != new.data_ptr():
                    old.copy_(new)


recordings: list[Recording] = []


def tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def memories(values: Sequence[Any]) -> list[Any]:
    return [x.untyped_storage() for x in tensors(values)]


def capture(
    work: Callable[[], Tensor], rngs: Sequence[torch.Generator]
) -> tuple[Callable[[], None], Tensor]:
    """Capture work as `compiling.capture` does, and refuse what a CUDA graph cannot have."""
    generators = [torch.default_generator, *rngs]
    states = [rng.get_state() for rng in generators]
    recordings.append(Recording())
    with counting() as counts:
        value = work()
    recorded = recordings.pop()
    recorded.end()
    for rng, state in zip(generators, states, strict=True):
        rng.set_state(state)
    assert counts.host_reads == 0, f"the host reads at {counts.read_at}"
    assert counts.copies == 0, f"the host copies at {counts.copied_at}"
    return recorded.replay, value


class ShadowTensor(Tensor):
    """A tensor that says it is on the device, and holds one of the CPU."""

    held: Tensor

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, held: Tensor) -> "ShadowTensor":
        strided = held.layout == torch.strided  # a sparse one is seen by its shape alone
        made: ShadowTensor = torch.Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            held.stride() if strided else None,
            held.storage_offset() if strided else None,
            dtype=held.dtype,
            device=shadow(),
        )
        made.held = held
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"shadow of {self.held!r}"

    def tolist(self) -> Any:
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return run(func, args, kwargs or {})


class Generator(torch.Generator):
    """The CPU's generator, for draws on the device."""

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return shadow()

    def __new__(cls, device: Any = None) -> "Generator":
        return super().__new__(cls)


def run(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run an operation on the CPU tensors of shadows, and return shadows of its results."""
    operands = tensors((args, kwargs))
    name = func._schema.name.removeprefix("aten::")
    onto_host = "device" in kwargs and kwargs["device"] is not None and not is_shadow(kwargs)
    with noting_if_backward():
        count(func, name, args, kwargs, operands, onto_host)
    shadows = {id(x.held): x for x in operands if isinstance(x, ShadowTensor)}
    held = {key: unwrap(value) for key, value in kwargs.items()}
    if "device" in kwargs and not onto_host and kwargs["device"] is not None:
        held["device"] = torch.device("cpu")
    if recordings:
        result = recordings[-1].run(func, unwrap(args), held)
    else:
        result = func(*unwrap(args), **held)
    made = tensors([result]) if active and not is_view(func) else []
    for counts in active:
        counts.sizes.update(x.numel() * x.itemsize for x in made if x.layout == torch.strided)
    stays = onto_host or (name == "copy_" and not isinstance(args[0], ShadowTensor))
    return result if stays else wrap(result, shadows)


late: list[RuntimeError] = []  # of a backward pass


@contextmanager
def noting_if_backward() -> Iterator[None]:
    """Note an error in a thread of a backward pass, where raising it would end the process."""
    try:
        yield
    except RuntimeError as error:
        if threading.current_thread() is threading.main_thread():
            raise
        late.append(error)


def raising_late(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Return a backward pass that raises the first error that was noted in it."""

    def run_backward(*args: Any, **kwargs: Any) -> Any:
        result, noted = backward(*args, **kwargs), late[:]
        late.clear()
        if noted:
            raise noted[0]
        return result

    return run_backward


def is_shadow(kwargs: dict[str, Any]) -> bool:
    return torch.device(kwargs["device"]).type == NAME


def unwrap(value: Any) -> Any:
    """CPU tensors in the place of shadows."""
    return tree_map_only(ShadowTensor, held, value)


def wrap(value: Any, shadows: dict[int, ShadowTensor]) -> Any:
    """Shadows in the place of CPU tensors; of one that was an operand the operand itself."""

    def shown(result: Tensor) -> ShadowTensor:
        known = shadows.get(id(result))
        if known is not None and known.shape != result.shape:
            raise NotImplementedError("the shadow device has no operations that reshape in place")
        return ShadowTensor(result) if known is None else known

    return tree_map_only(Tensor, shown, value)


def count(
    func: Any,
    name: str,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    operands: list[Tensor],
    onto_host: bool,
) -> None:
    """Count the operation's launches, host reads and copies; raise for operands of two devices."""
    host = [x for x in operands if not isinstance(x, ShadowTensor)]
    if name in ("copy_", "_to_copy"):
        if onto_host or (name == "copy_" and host and host[0] is args[0]):
            return count_read()
        if host:
            return count_copy(host[0])
        return count_launch(name)
    if name in INDEXING:
        indices = [x for x in args[1] if x is not None]
        for index in indices:
            if not isinstance(index, ShadowTensor):
                count_copy(index)
        host = [x for x in host if not any(x is index for index in indices)]
        masks = any(x.dtype in (torch.bool, torch.uint8) for x in indices)
        if masks and not (name != "index" and args[2].numel() == 1):
            count_read()
    values = {**dict(zip((a.name for a in func._schema.arguments), args, strict=False)), **kwargs}
    refuse(func, values, host)
    cuda_kernels.check(func, values, [held(x) for x in operands])
    if name in READS or (name == "repeat_interleave" and kwargs.get("output_size") is None):
        count_read()
    if not (name in NO_LAUNCH or is_view(func)):
        count_launch(name)


def held(operand: Tensor) -> Tensor:
    """Return the CPU tensor of a shadow, whose layout it is too."""
    return operand.held if isinstance(operand, ShadowTensor) else operand


def refuse(func: Any, values: dict[str, Any], host: list[Tensor]) -> None:
    """Raise for operands of the host, but for single numbers that are read: CUDA takes them."""
    written = {a.name for a in func._schema.arguments if a.alias_info and a.alias_info.is_write}
    alone = [
        value for name, value in values.items() if isinstance(value, Tensor) and name not in written
    ]
    if any(x.ndim or all(x is not value for value in alone) for x in host):
        raise RuntimeError(
            f"{func}: expected all tensors to be on the same device, "
            f"but found at least two devices, {shadow()} and cpu"
        )


@cache
def is_view(func: Any) -> bool:
    """Return whether the result is another look at an operand's memory."""
    return any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)


@cache
def shadow() -> torch.device:
    """The device; torch knows it from the first call on, for the rest of the process."""
    _setup_privateuseone_for_python_backend(NAME, backend_module=backend())
    anything, library = (torch.library.Library(of, "IMPL") for of in ("_", "aten"))
    anything.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    for name in FACTORIES:
        library.impl(name, partial(make, operation(name)), "PrivateUse1")
    library.impl("_copy_from", copy_from, "PrivateUse1")  # what torch.tensor(list, device) calls
    for name in LOWER:
        library.impl(name, partial(cast, operation(name), lowered), "AutocastPrivateUse1")
    for name in PROMOTED:
        library.impl(name, partial(cast, operation(name), widest), "AutocastPrivateUse1")
    kept.extend((anything, library))
    torch.autograd._engine_run_backward = raising_late(torch.autograd._engine_run_backward)
    return torch.device(NAME, 0)


kept: list[torch.library.Library] = []  # what is registered lives as long as the library


def backend() -> Any:
    """Return the module that torch asks about the device."""
    return SimpleNamespace(
        Generator=Generator,
        current_device=lambda: 0,
        device_count=lambda: 1,
        get_amp_supported_dtype=lambda: [torch.bfloat16, torch.float16],
        is_available=lambda: True,
        is_initialized=lambda: True,
        _is_in_bad_fork=lambda: False,
        manual_seed_all=lambda seed: None,
        get_rng_state=lambda device: torch.get_rng_state(),  # it has none of its own
        set_rng_state=lambda state, device: None,
    )


def operation(name: str) -> Any:
    """An operation of torch by its name."""
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def make(func: Any, *args: Any, **kwargs: Any) -> Any:
    """A new tensor on the device."""
    return run(func, args, kwargs)


def copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    """The source's values in the target's memory."""
    copied: Tensor = run(torch.ops.aten.copy_.default, (target, source, non_blocking), {})
    return copied


def cast(func: Any, types: Callable[[list[Tensor]], torch.dtype], *args: Any, **kwargs: Any) -> Any:
    dtype = types(tensors((args, kwargs)))

    def as_type(value: Tensor) -> Tensor:
        eligible = value.is_floating_point() and value.dtype != torch.float64
        return value.to(dtype) if eligible and value.device.type == NAME else value

    args, kwargs = tree_map_only(Tensor, as_type, (args, kwargs))
    with torch._C._ExcludeDispatchKeyGuard(
        torch._C.DispatchKeySet(torch._C._dispatch_key_parse("AutocastPrivateUse1"))
    ):
        return func(*args, **kwargs)


def lowered(operands: list[Tensor]) -> torch.dtype:
    """Return the type that autocast lowers operands to."""
    return torch.get_autocast_dtype(NAME)


def widest(operands: list[Tensor]) -> torch.dtype:
    """Float32 if an operand has it, else autocast's type."""
    found = any(x.dtype == torch.float32 for x in operands)
    return torch.float32 if found else torch.get_autocast_dtype(NAME)
