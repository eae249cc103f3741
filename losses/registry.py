"""The registry of losses by name; importing it does not import torch, so that listing stays instant."""

import ast
import importlib
import importlib.util
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from contrastbench.losses.errors import UserError, unknown

if TYPE_CHECKING:
    from contrastbench.losses.base import Loss

LOSSES: Mapping[str, str] = {  # name -> "module:Class", the module inside contrastbench.losses
    "infonce": "infonce:InfoNCE",
    "adnce": "adnce:ADNCE",
}
ENTRY_POINTS = "contrastbench.losses"


@dataclass(frozen=True)
class Description:
    """What a loss is and takes, read from its source."""

    summary: str
    params: dict[str, Any]  # name -> default


def get_loss(name: str, **params: Any) -> "Loss":
    """The loss of that name with those parameters.

    Args:
        name: a key of `LOSSES`, the name of an entry point of the group `contrastbench.losses`, or `file.py:Class`.
        params: the parameters of the loss by name; see `bench list losses`.

    Raises:
        ValueError: unknown name, unknown parameter or a value out of range; the message names the fix.

    >>> get_loss("infonce", temperature=0.2)
    InfoNCE(temperature=0.2)
    """
    factory = loss_class(name)
    known = list(inspect.signature(factory).parameters)
    for key in params:
        if key not in known:
            raise unknown(f"parameter of {name}", key, known)
    return factory(**params)


def loss_class(name: str) -> Any:
    """The class behind a name of the registry, an entry point or `file.py:Class`."""
    if name in LOSSES:
        module, attribute = LOSSES[name].split(":")
        return getattr(importlib.import_module(f"contrastbench.losses.{module}"), attribute)
    if match := re.fullmatch(r"(.+\.py):(\w+)", name):
        return class_in_file(Path(match[1]), match[2])
    plugins = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if name in plugins:
        return plugins[name].load()
    raise unknown("loss", name, [*LOSSES, *plugins])


def class_in_file(path: Path, attribute: str) -> Any:
    """A user's own loss class, from a file."""
    if not path.is_file():
        raise UserError(f"no file {path}: give --loss as path/to/file.py:Class")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None, "a .py file always has a loader"
    assert spec.loader is not None, "a .py file always has a loader"
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, attribute):
        raise unknown(f"class in {path}", attribute, [k for k, v in vars(module).items() if isinstance(v, type)])
    return getattr(module, attribute)


def describe(name: str) -> Description:
    """Summary and defaults of a registered loss, read from its source without importing torch.

    >>> describe("infonce").params
    {'temperature': 0.5}
    """
    if name not in LOSSES:
        raise unknown("loss", name, LOSSES)
    module, attribute = LOSSES[name].split(":")
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
    node = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == attribute)
    init = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
    summary = (ast.get_docstring(node) or "").split("\n")[0]
    if init is None:
        return Description(summary, {})
    names = [a.arg for a in init.args.args[1:]]
    defaults = [ast.literal_eval(d) for d in init.args.defaults]
    return Description(summary, dict(zip(names, defaults, strict=True)))
