"""Losses of a user's own: read from a file, and made such that a record can name them and make them again."""

import hashlib
import importlib.util
import inspect
import json
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from contrastbench.losses.errors import UserError, unknown, users_code

if TYPE_CHECKING:
    from contrastbench.losses.base import Loss


def class_in_file(path: Path, attribute: str) -> Any:
    """A user's own loss class, from a file."""
    if not path.is_file():
        raise UserError(f"no file {path}: give --loss as path/to/file.py:Class")
    place = hashlib.sha256(str(path.resolve()).encode()).hexdigest()
    spec = importlib.util.spec_from_file_location(f"file_{place}.{path.stem}", path)
    assert spec is not None, "a .py file always has a loader"
    assert spec.loader is not None, "a .py file always has a loader"
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where inspect and dataclasses look for a class's module
    with users_code(f"import {path}"):
        spec.loader.exec_module(module)
    if not hasattr(module, attribute):
        raise unknown(
            f"class in {path}",
            attribute,
            [k for k, v in vars(module).items() if isinstance(v, type)],
        )
    return checked_class(getattr(module, attribute), f"{attribute} in {path}")


def checked_class(found: Any, where: str) -> Any:
    """What was found, if it is a class of losses."""
    from contrastbench.losses.base import Loss

    if not (isinstance(found, type) and issubclass(found, Loss)):
        raise UserError(
            f"{where} is no loss: write it as a class of contrastbench.losses.ScoreLoss or Loss"
        )
    return found


def make(name: str, factory: Any, params: Mapping[str, Any]) -> "Loss":
    """The loss, such that a record can name it.

    Raises:
        UserError: it cannot be made, or not be made again from its `params`.
    """
    from contrastbench.losses.base import Loss

    with users_code(f"make {name}"):
        loss = factory(**params)
        if not isinstance(loss, Loss):
            raise UserError(
                f"{name} makes a {type(loss).__name__}, which is no loss: name a class of Loss"
            )
        if type(loss).params is Loss.params:
            check_attributes(name, loss)
        for key, value in loss.params.items():
            if not is_plain(value):
                shown = textwrap.shorten(repr(value), 80, placeholder="...")
                raise UserError(
                    f"{name}: a record cannot hold {key}={shown}: take a finite number, a text or a list"
                )
    return loss


def check_attributes(name: str, loss: "Loss") -> None:
    """Raise if an argument of the constructor is not kept under its name."""
    for key, argument in inspect.signature(type(loss)).parameters.items():
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
            raise UserError(f"{name} takes {argument}: write its arguments out by name")
        if not hasattr(loss, key):
            raise UserError(
                f"{name} does not keep its argument {key}: add self.{key} = {key} to its constructor"
            )


def is_plain(value: Any) -> bool:
    """Whether JSON gives the value back as it is.

    >>> is_plain([1, 0.5, "a", True, None]), is_plain(float("inf")), is_plain((1, 2))
    (True, False, False)
    """
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError):
        return False
