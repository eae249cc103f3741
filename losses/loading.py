"""Find the class or function that a name stands for, and make a loss of it.

What a user's file or a package holds is shown to be a loss before anything of it is called: it is a
class of losses or of modules, or a function, whose call takes two tensors.
"""

import ast
import importlib
import inspect
import json
import sys
import textwrap
from collections.abc import Mapping
from os.path import isfile
from pathlib import Path
from typing import Any

from torch import nn

from contrastbench.errors import UserError, unknown, users_code
from contrastbench.losses.base import Loss, constructor
from contrastbench.losses.settings import keep_settings, keep_variables
from contrastbench.losses.source import Sources
from contrastbench.losses.views import AdaptedLoss, takes_two_views

PIP_NAMES = {"GCL": "PyGCL"}  # of packages that pip knows by another name
DERIVE = (
    "derive it from contrastbench.losses.ScoreLoss, ViewLoss (a loss of two views) or Loss, or "
    "name a module or a function of two views"
)


def from_file(path: Path, attribute: str, sources: Sources) -> Any:
    if not (sources.has(path) or isfile(path)):  # noqa: PTH113 - too long a name is none
        raise no_file(path)
    with users_code(f"import {path}", str(path.absolute())):
        module = sources.run(path)
    if not hasattr(module, attribute):
        own = (
            kind
            for kind in vars(module).values()
            if inspect.isroutine(kind) or isinstance(kind, type)
        )
        names = [kind.__name__ for kind in own if kind.__module__ == module.__name__]
        raise unknown(f"loss in {path}", attribute, names)
    return getattr(module, attribute)


def lacks_class(path: Path) -> UserError:
    """Return the error for a file of which no class is named; its code is not run."""
    if not isfile(path):  # noqa: PTH113 - too long a name is none
        return no_file(path)
    with users_code(f"read {path}"):
        tree = ast.parse(path.read_bytes())
    names = [f"{path}:{node.name}" for node in tree.body if isinstance(node, ast.ClassDef)]
    if not names:
        return UserError(f"{path} has no class: write the loss as one, and give {path}:CLASS")
    return UserError(f"{path} names no class: did you mean {' or '.join(names)}?")


def no_file(path: Path) -> UserError:
    return UserError(f"no file {path}: give --loss as path/to/file.py:Class")


def from_package(path: str) -> Any:
    module, _, name = path.partition(":")
    if is_pythons(module):
        raise UserError(
            f"{path} is of Python's standard library, which has no losses: name one of a package"
        )
    try:
        with users_code(f"import {module}"), keep_settings(path), keep_variables(path):
            imported = importlib.import_module(module)
    except UserError as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            raise missing_module(path, module, error.__cause__.name or "") from None
        raise
    if not hasattr(imported, name):
        known = [key for key, value in vars(imported).items() if callable(value) and key[0] != "_"]
        raise unknown(f"name in {module}", name, known)
    return getattr(imported, name)


def is_pythons(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def shown_loss(title: str, target: Any) -> Any:
    """Return what a name stands for, if it is seen to be a loss; nothing of it is called."""
    if isinstance(target, type) and issubclass(target, Loss):
        return target
    module = isinstance(target, type) and issubclass(target, nn.Module)
    home = str(getattr(target, "__module__", None) or "")
    if not (module or inspect.isroutine(target)) or is_pythons(home):
        raise UserError(f"{title} is no loss: {DERIVE}")
    takes_two_views(title, target)
    return target


def missing_module(path: str, module: str, lacks: str) -> UserError:
    root, lacking = module.partition(".")[0], lacks.partition(".")[0]
    if lacks == root and Path(f"{module}.py").is_file():
        return UserError(f"no package {root}: did you mean {path.replace(':', '.py:')}?")
    if lacks != lacking:
        return UserError(f"{path}: the package {lacking} has no module {lacks}")
    pip = PIP_NAMES.get(lacking, lacking.replace("_", "-"))
    return UserError(f"{path} needs {lacking}, which is not installed: pip install {pip}")


def make_loss_of(name: str, target: Any, adapted_name: str, params: Mapping[str, Any]) -> Loss:
    file = getattr(sys.modules.get(target.__module__ or ""), "__file__", None)
    with users_code(f"make {name}", file or ""):
        with keep_settings(name):
            if isinstance(target, type) and issubclass(target, Loss):
                loss: Loss = target(**params)
            else:
                loss = AdaptedLoss(adapted_name, target, params)
        if "_modules" not in vars(loss):
            raise UserError(f"{name} is not set up: call super().__init__() first in its __init__")
        if type(loss).params is Loss.params:
            check_attributes(name, loss)
        check_plain(name, loss.params)
    return loss


def check_attributes(name: str, loss: Loss) -> None:
    for key, argument in constructor(type(loss)).items():
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
            raise UserError(f"{name} takes {argument}: name each argument of the constructor")
        if not hasattr(loss, key):
            fix = f"add self.{key} = {key} to its constructor"
            raise UserError(f"{name} does not keep its argument {key}: {fix}")


def check_plain(name: str, params: Mapping[str, Any]) -> None:
    """Raise for a parameter that JSON does not give back as it is."""
    for key, value in params.items():
        if not is_plain(value):
            shown = textwrap.shorten(repr(value), 80, placeholder="...")
            fix = "take a finite number, a text or a list"
            raise UserError(f"{name}: a record cannot hold {key}={shown}: {fix}")


def is_plain(value: Any) -> bool:
    """Return whether JSON gives the value back as it is.

    >>> is_plain([1, 0.5, "a", True, None]), is_plain(float("inf")), is_plain((1, 2))
    (True, False, False)
    """
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError):
        return False
