"""Contrastive losses, unchanged, on images, sentences, graphs and tables of numbers.

`cb.run` trains and scores, `cb.records` reads what was found, `cb.table` and `cb.compare` show it.
`cb.encoder` opens an exported encoder, which embeds your own data.
Nothing is imported before it is used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contrastbench.benchmarks.api.cells import run
    from contrastbench.benchmarks.api.encoders import encoder
    from contrastbench.benchmarks.api.frames import compare, records, table
    from contrastbench.losses.registry import list_losses
    from contrastbench.losses.spec import get_loss

    __version__: str

__all__ = [
    "__version__",
    "compare",
    "encoder",
    "get_loss",
    "list_losses",
    "records",
    "run",
    "table",
]

_MODULES = {
    "run": "benchmarks.api.cells",
    "encoder": "benchmarks.api.encoders",
    **dict.fromkeys(["compare", "records", "table"], "benchmarks.api.frames"),
    "get_loss": "losses.spec",
    "list_losses": "losses.registry",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        found = importlib.import_module("contrastbench.benchmarks.running.provenance")
        return found.provenance().version or "0"
    if name in _MODULES:
        return getattr(importlib.import_module(f"contrastbench.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
