"""The registry of losses by name; importing it does not import torch, so that listing stays instant."""

import ast
import importlib
import importlib.util
import inspect
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrastbench.losses.errors import UserError, unknown, users_code
from contrastbench.losses.own import class_in_file, make

if TYPE_CHECKING:
    from contrastbench.losses.base import Loss

LOSSES: Mapping[str, str] = {  # name -> "module:Class", the module inside contrastbench.losses
    "infonce": "infonce:InfoNCE",
    "debiased": "debiased:Debiased",
    "decoupled": "decoupled:Decoupled",
    "hcl": "hcl:HCL",
    "rince": "rince:RINCE",
    "alpha_cl": "alpha_cl:AlphaCL",
    "mean_variance": "mean_variance:MeanVariance",
    "adnce": "adnce:ADNCE",
    "phi_dro": "phi_dro:PhiDRO",
    "attentionnce": "attentionnce:AttentionNCE",
    "cpc": "cpc:CPC",
    "mlcpc": "mlcpc:MLCPC",
    "rmlcpc": "rmlcpc:RMLCPC",
    "renyi": "renyi:Renyi",
    "nwj": "nwj:NWJ",
    "dv": "dv:DV",
    "npair": "npair:NPair",
    "dar": "dar:DAR",
}
ALIASES: Mapping[str, tuple[str, str]] = {  # name -> its name in LOSSES, what to know about it
    "dcl": (
        "debiased",
        "the loss 'dcl' is 'debiased' contrastive learning; lightly's DCL is 'decoupled'",
    ),
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
        name: a key of `LOSSES`, the name of an entry point of the group `contrastbench.losses`,
            `file.py:Class`, or a weighted sum of these such as `infonce + 0.5*dar`.
        params: the parameters of the loss by name; see `bench list losses`. In a sum a plain name
            goes to every term that has such a parameter, `dar.form` to the one term.

    Raises:
        ValueError: unknown name, unknown parameter or a value out of range; the message names the
            fix.

    >>> get_loss("infonce", temperature=0.2)
    InfoNCE(temperature=0.2)
    >>> get_loss("infonce + 0.5*dar", temperature=0.2, **{"dar.form": "star"}).name
    'infonce + 0.5*dar'
    """
    if is_sum(name):
        return get_sum(name, params)
    factory = loss_class(name)
    known = list(inspect.signature(factory).parameters)
    for key in params:
        if key not in known:
            raise unknown(f"parameter of {name}", key, known)
    return make(name, factory, params)


def get_sum(expression: str, params: Mapping[str, Any]) -> "Loss":
    """The weighted sum, its parameters handed to the terms that have them."""
    from contrastbench.losses.base import Sum

    terms = split_sum(expression)
    known = {term: list(inspect.signature(loss_class(term)).parameters) for term in terms}
    shared = assign(expression, params, known)
    return Sum(*((weight, get_loss(term, **shared[term])) for term, weight in terms.items()))


def assign(
    expression: str, params: Mapping[str, Any], known: Mapping[str, list[str]]
) -> dict[str, dict[str, Any]]:
    """Each term's own parameters: a plain name goes to every term that has it, `term.name` to one and comes first.

    >>> assign("a + b", {"t": 1, "b.t": 2}, {"a": ["t"], "b": ["t"]})
    {'a': {'t': 1}, 'b': {'t': 2}}
    """
    full = {f"{short(term)}.{key}": (term, key) for term, keys in known.items() for key in keys}
    shared: dict[str, dict[str, Any]] = {term: {} for term in known}
    for name, value in sorted(params.items(), key=lambda item: item[0] in full):
        targets = (
            [full[name]]
            if name in full
            else [(term, key) for term, key in full.values() if key == name]
        )
        if not targets:
            raise unknown(
                f"parameter of {expression}", name, [*full, *(key for _, key in full.values())]
            )
        for term, key in targets:
            shared[term][key] = value
    return shared


def is_sum(name: str) -> bool:
    """Whether the name is an expression such as `infonce + 0.5*dar`; `c++/mine.py:Mine` is none where that file is."""
    return ("+" in name or "*" in name) and not is_file(name.rpartition(":")[0])


def is_file(path: str) -> bool:
    """Whether there is such a file; a long sum is no name of one."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


def split_sum(expression: str) -> dict[str, float]:
    """The weight of each term of an expression.

    >>> split_sum("infonce + 0.5*dar")
    {'infonce': 1.0, 'dar': 0.5}
    """
    terms: dict[str, float] = {}
    for part in expression.split("+"):
        match = re.fullmatch(r"(?:(\d*\.?\d+(?:e-?\d+)?)\s*\*\s*)?([^\s*+]+)", part.strip())
        if not match:
            raise UserError(
                f"cannot read {part.strip()!r} in the loss {expression!r}: write it as infonce + 0.5*dar"
            )
        weight, term = float(match[1] or 1), ALIASES.get(match[2], (match[2],))[0]
        if term in terms:
            raise UserError(f"{term} is twice in the loss {expression!r}: add its weights")
        terms[term] = weight
    return terms


def short(term: str) -> str:
    """What a term's parameters are prefixed with: its name, a file's without folder and class.

    >>> short("folder/my_loss.py:MyLoss")
    'my_loss'
    """
    return Path(term.rpartition(":")[0]).stem if ".py:" in term else term


def loss_class(name: str) -> Any:
    """The class behind a name of the registry, an entry point or `file.py:Class`."""
    if name in ALIASES:
        return loss_class(resolve_alias(name))
    if name in LOSSES:
        module, attribute = LOSSES[name].split(":")
        return getattr(importlib.import_module(f"contrastbench.losses.{module}"), attribute)
    if match := re.fullmatch(r"(.+\.py):(\w+)", name):
        return class_in_file(Path(match[1]), match[2])
    plugins = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if name in plugins:
        with users_code(f"load {name}"):
            return plugins[name].load()
    raise unknown("loss", name, [*LOSSES, *ALIASES, *plugins])


@cache  # so that the note is given once
def resolve_alias(name: str) -> str:
    """The name in LOSSES behind an alias, with a note on it."""
    target, note = ALIASES[name]
    warnings.warn(note, stacklevel=4)
    return target


def complete(name: str, params: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name and parameters after defaults, as the loss itself has them; without torch for registered ones.

    Raises:
        UserError: unknown name or parameter.

    >>> complete("infonce+0.5 * dar", {"temperature": 0.2})
    ('infonce + 0.5*dar', {'infonce.temperature': 0.2, 'dar.form': 'chain'})
    """
    if not is_registered(name):
        loss = get_loss(name, **params)
        return loss.name, loss.params
    terms = terms_of(name)
    known = {term: describe(term).params for term in terms}
    if is_sum(name):
        given = assign(name, params, {term: list(keys) for term, keys in known.items()})
        full = {
            f"{term}.{key}": value
            for term in terms
            for key, value in {**known[term], **given[term]}.items()
        }
        return " + ".join(weighted(term, weight) for term, weight in terms.items()), full
    (term,) = terms
    for key in params:
        if key not in known[term]:
            raise unknown(f"parameter of {name}", key, known[term])
    return term, {**known[term], **params}


def is_registered(name: str) -> bool:
    """Whether the loss, and each term of a sum, is one of ours."""
    return set(terms_of(name)) <= set(LOSSES)


def terms_of(name: str) -> dict[str, float]:
    """The weight of each term; a loss that is no sum is its only one."""
    return split_sum(name) if is_sum(name) else {ALIASES.get(name, (name,))[0]: 1.0}


def weighted(name: str, weight: float) -> str:
    """A term of an expression.

    >>> weighted("dar", 2.0)
    '2*dar'
    """
    return name if weight == 1 else f"{weight!r}".removesuffix(".0") + f"*{name}"


def describe(name: str) -> Description:
    """Summary and defaults of a registered loss or of a sum of them, read from the source without importing torch.

    >>> describe("infonce").params
    {'temperature': 0.5}
    >>> describe("infonce + 0.5*dar").params
    {'infonce.temperature': 0.5, 'dar.form': 'chain'}
    """
    if is_sum(name):
        terms = {term: describe(term) for term in split_sum(name)}
        params = {
            f"{term}.{key}": value
            for term, about in terms.items()
            for key, value in about.params.items()
        }
        return Description(" + ".join(about.summary for about in terms.values()), params)
    name = ALIASES.get(name, (name,))[0]
    if name not in LOSSES:
        raise unknown("loss", name, [*LOSSES, *ALIASES])
    module, attribute = LOSSES[name].split(":")
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
    node = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == attribute)
    init = next(n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    names = [a.arg for a in init.args.args[1:]]
    defaults = [ast.literal_eval(d) for d in init.args.defaults]
    return Description(
        (ast.get_docstring(node) or "").split("\n")[0], dict(zip(names, defaults, strict=True))
    )
