"""Losses of installed packages: any class or function of two views, named by its import path."""

import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Mapping
from functools import partial, update_wrapper
from importlib.metadata import packages_distributions, version
from numbers import Real
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from torch import Tensor, nn

from contrastbench.errors import UserError, unknown, users_code
from contrastbench.losses.base import Loss
from contrastbench.losses.settings import keep_settings
from contrastbench.losses.views import NOT_OF_VIEWS, ViewLoss

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class PackageLoss(ViewLoss):
    """A loss of an installed package on the two views of a contrast.

    Args:
        path: its import path, which is its name.
        target: the class or function behind it.
        values: the parameters that are given.

    Raises:
        UserError: it takes no two views, a value is of another kind than its default, or the
            package would gather the views of all processes once more.
    """

    other_laws = MappingProxyType(
        {**NOT_OF_VIEWS, "parameters": "the package decides which values it takes"}
    )

    def __init__(self, path: str, target: Callable[..., Any], values: Mapping[str, Any]) -> None:
        super().__init__()
        self.path, self.target = path, target
        known = call_parameters(target)
        for name, value in values.items():
            check_value(name, value, known[name].default)
        defaults = {n: p.default for n, p in known.items() if p.default is not p.empty}
        self.values = {**defaults, **values}
        self.inner = target(**values) if isinstance(target, type) else partial(target, **values)
        check_call(path, self.inner)

    @property
    def name(self) -> str:
        """Return the import path."""
        return self.path

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name, after the package's defaults."""
        return dict(self.values)

    def of_views(self, z1: Tensor, z2: Tensor) -> Tensor:
        return self.inner(z1, z2)


def package_loss(module: str, name: str) -> Any:
    """Return the class of losses of that import path, or a function that makes a PackageLoss.

    Raises:
        UserError: no such package, module or name, or it is no class or function.
    """
    target = import_target(module, name)
    if isinstance(target, type) and issubclass(target, Loss):
        return target
    if not (isinstance(target, type) or inspect.isroutine(target)):
        kind = type(target).__name__
        raise UserError(f"{module}:{name} is a {kind}: give a class or a function of two views")

    def make(**values: Any) -> PackageLoss:
        return PackageLoss(f"{module}:{name}", target, values)

    update_wrapper(make, target, updated=())
    make.__signature__ = inspect.Signature([*call_parameters(target).values()])  # type: ignore[attr-defined]
    return make


def import_target(module: str, name: str) -> Any:
    """Return what an import path names.

    Raises:
        UserError: it cannot be imported, or has no such name.
    """
    path = f"{module}:{name}"
    try:
        with users_code(f"import {module}"), keep_settings(path):
            found = importlib.import_module(module)
    except UserError as error:
        if isinstance(error.__cause__, ModuleNotFoundError):
            raise missing_module(path, module, error.__cause__.name or "") from None
        raise
    if not hasattr(found, name):
        known = [key for key, value in vars(found).items() if callable(value) and key[0] != "_"]
        raise unknown(f"name in {module}", name, known)
    return getattr(found, name)


def missing_module(path: str, module: str, lacks: str) -> UserError:
    """Return the error for a module that is not there: the package's own, or one that it needs."""
    root = module.partition(".")[0]
    if lacks == root:
        if Path(f"{path.partition(':')[0]}.py").is_file():
            return UserError(f"no package {root}: did you mean {path.replace(':', '.py:')}?")
        near = close_package(root)
        fix = f"did you mean {near}?" if near else f"pip install {root.replace('_', '-')}"
        return UserError(f"{path} needs the package {root}, which is not installed: {fix}")
    if not f"{module}.".startswith(f"{lacks}."):
        return UserError(f"{path} needs {lacks}, which is not installed: pip install {lacks}")
    parent, _, name = lacks.rpartition(".")
    folder = importlib.import_module(parent)
    return unknown(f"module of {parent}", name, modules(folder))


def close_package(root: str) -> str | None:
    """Return the installed package whose name is closest, if one is close."""
    import difflib

    found = difflib.get_close_matches(root, packages_distributions(), n=1, cutoff=0.8)
    return found[0] if found else None


def modules(package: ModuleType) -> list[str]:
    """Return the names of the modules within a package."""
    return [found.name for found in pkgutil.iter_modules(getattr(package, "__path__", []))]


def call_parameters(target: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class's constructor, or of a function after its two views."""
    given = [*inspect.signature(target).parameters.values()]
    if not isinstance(target, type):
        given = [p for p in given if p not in given[:2] or p.kind not in POSITIONAL]
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {
        p.name: p.replace(kind=p.KEYWORD_ONLY, annotation=p.empty)
        for p in given
        if p.kind not in variable
    }


def check_value(name: str, value: Any, default: Any) -> None:
    """Raise unless a value is of the kind of its default, and leaves the gathering to us."""
    if name.startswith("gather") and value:
        raise UserError(f"{name} must be {default}: a loss gets the views of all processes here")
    if isinstance(default, bool | str):
        if not isinstance(value, type(default)):
            raise UserError(f"{name} must be a {type(default).__name__}, got {value!r}")
    elif isinstance(default, int | float):
        number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
        if not number:
            raise UserError(f"{name} must be a finite number, got {value!r}")


def check_call(path: str, inner: Any) -> None:
    """Raise unless the loss takes exactly two views, by their places."""
    call = inspect.signature(inner.forward if isinstance(inner, nn.Module) else inner)
    given = [*call.parameters.values()]
    needed = [p for p in given if p.default is p.empty and p.kind not in (p.VAR_KEYWORD,)]
    several = [p for p in given if p.kind is p.VAR_POSITIONAL]
    if several or (len(needed) == 2 and needed == given[:2] and given[1].kind in POSITIONAL):
        return
    raise UserError(
        f"{path} takes {call}, not two views: write a class of contrastbench.losses.ViewLoss "
        "that calls it, and give --loss FILE:CLASS"
    )


def release(path: str) -> dict[str, str]:
    """Return the distributions that have the package of an import path, with their versions."""
    root = path.partition(":")[0].partition(".")[0]
    return {name: version(name) for name in packages_distributions().get(root, [])}
