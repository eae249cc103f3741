"""Stand-ins of losses whose code is not imported: classes in memory that have what it declares."""

import sys
from collections.abc import Mapping
from inspect import Parameter, Signature
from pathlib import Path
from types import ModuleType
from typing import Any

from contrastbench.losses.base import Loss
from contrastbench.losses.expression import file_and_class
from contrastbench.losses.registry import Description


def make_stand_ins(terms: Mapping[str, Description]) -> dict[str, str]:
    """Return names for terms FILE:CLASS, under which Python finds a stand-in of each."""
    names = {}
    for place, (term, declared) in enumerate(terms.items()):
        file, name = file_and_class(term) or (Path(), "")
        module = ModuleType(f"stand_in_{place}")
        setattr(module, name, stand_in(f"{module.__name__}.{file.stem}", name, declared))
        sys.modules[module.__name__] = module
        names[term] = f"{module.__name__}:{name}"
    return names


def stand_in(module: str, name: str, about: Description) -> type:
    def keep(self: Any, **params: Any) -> None:
        Loss.__init__(self)
        vars(self).update({**about.params, **params})

    defaults = {**dict.fromkeys(about.required, Parameter.empty), **about.params}
    own = [Parameter(k, Parameter.KEYWORD_ONLY, default=v) for k, v in defaults.items()]
    vars(keep)["__signature__"] = Signature([Parameter("self", Parameter.POSITIONAL_ONLY), *own])
    has = {"ranges": about.ranges, "limits": about.limits, "__init__": keep, "__module__": module}
    return type(name, (Loss,), has)
