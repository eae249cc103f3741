"""A loss with its parameters, as a user names it and as a record holds it."""

import hashlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrastbench.losses.errors import UserError
from contrastbench.losses.registry import complete, get_loss, is_registered

if TYPE_CHECKING:
    from contrastbench.losses.base import Loss


@dataclass(frozen=True)
class LossSpec:
    """A loss with its parameters."""

    name: str
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """For people: the name with the parameters that are given."""
        params = ", ".join(f"{name}={value}" for name, value in self.params.items())
        return f"{self.name}({params})" if params else self.name

    @cached_property
    def complete(self) -> "LossSpec":
        """Name and parameters after defaults, as records have them."""
        if self.name == "none":
            if self.params:
                first = next(iter(self.params))
                raise UserError(f"none is the untrained encoder and has no parameters, got {first}")
            return self
        return LossSpec(*complete(self.name, self.params))

    @cached_property
    def code(self) -> str:
        """Sha256 of a user's own files."""
        return "" if self.name == "none" or is_registered(self.name) else own_code(self.make())

    def make(self) -> "Loss | None":
        """The loss; None for none."""
        return None if self.name == "none" else get_loss(self.name, **self.params)


def own_code(loss: "Loss | None") -> str:
    """Sha256 over losses from outside this package: their classes' names, and their files, which a user may edit.

    What these files import is not covered, except for classes that the loss is derived from and
    methods it takes over.
    """
    from contrastbench.losses.base import parts

    kinds = (
        [kind for _, part in parts(loss) for kind in type(part).__mro__] if loss is not None else []
    )
    own = [
        kind
        for kind in kinds
        if not kind.__module__.startswith(("contrastbench.", "torch.", "builtins"))
    ]
    files = {file for kind in own for file in source_files(kind)}
    code = [kind.__qualname__.encode() for kind in own] + [
        Path(file).read_bytes() for file in sorted(files)
    ]
    return hashlib.sha256(b"\0".join(code)).hexdigest() if own else ""


def source_files(kind: type) -> Iterator[str]:
    """The file of a class, which may have no methods, and those of its methods; none of the standard library's."""
    if kind.__module__.partition(".")[0] in sys.stdlib_module_names:
        return
    files = [f.__code__.co_filename for f in vars(kind).values() if inspect.isfunction(f)]
    for file in [*files, getattr(sys.modules.get(kind.__module__), "__file__", None)]:
        if file and Path(file).is_file():  # what a decorator makes may be from "<string>"
            yield file
