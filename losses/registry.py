"""The registry of losses by name, ours and those that packages announce.

Importing it does not import torch, so that listing stays instant.
"""

import ast
import importlib
import inspect
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import entry_points
from pathlib import Path
from traceback import walk_tb
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from contrastbench.errors import UserError, unknown, users_code
from contrastbench.losses import expression, limits, ranges
from contrastbench.losses.expression import names
from contrastbench.losses.limits import Limits
from contrastbench.losses.ranges import Range
from contrastbench.losses.source import Sources

if TYPE_CHECKING:
    from contrastbench.losses.base import Loss

FAMILIES: Mapping[str, tuple[str, ...]] = {  # family -> names, each a module in library/
    "InfoNCE": (
        *("infonce", "debiased", "decoupled", "hcl", "rince", "alpha_cl", "mean_variance", "adnce"),
        *("phi_dro", "attentionnce", "cpc", "npair", "dcl_w", "supcon", "clip", "hardness", "macl"),
        *("weince", "sogclr", "isogclr", "dhel", "free", "dystress", "dual_temperature"),
    ),
    "mutual information": (
        *("mlcpc", "rmlcpc", "renyi", "nwj", "dv", "jsd", "align_uniform", "f_micl", "spectral"),
        *("siglip", "kcl"),
    ),
    "metric learning": ("circle", "multi_similarity", "triplet", "lifted"),
    "regularisation": ("dar", "gor", "koleo"),
    "classes": ("proxy_anchor", "cross_entropy"),
}
# of a supervised training: no contrast without classes will do, so `all` leaves them out
SUPERVISED = FAMILIES["classes"]
OURS: Mapping[str, str] = {name: family for family, names in FAMILIES.items() for name in names}
LOSSES: Mapping[str, str] = {name: at for name, at in OURS.items() if name not in SUPERVISED}


class Alias(NamedTuple):
    """Another name of a loss of ours, or of one of its settings."""

    loss: str
    note: str = ""  # what a user of that name has to know besides
    settings: Mapping[str, Any] = MappingProxyType({})  # defaults in place of the loss's own


FIXED = MappingProxyType({"weight": 0.0})
MOVING = "with weight=0, which needs the recipe's pairing=query_key"
ALIASES: Mapping[str, Alias] = {
    "dcl": Alias("debiased", "lightly's DCL is 'decoupled'"),
    "dclw": Alias("dcl_w"),
    "lifted_structure": Alias("lifted", "its generalised form"),
    "ms": Alias("multi_similarity"),
    "spectral_contrastive": Alias("spectral"),
    "nt_xent": Alias("infonce"),
    "simclr": Alias("infonce", "SimCLR's pairing is the recipe's both_views"),
    "simcse": Alias("infonce", "SimCSE's pairing is that of sentences"),
    "mnrl": Alias("infonce", "its scale is 1 / temperature"),
    "sincere": Alias("infonce", "with several positives, those of one class"),
    "llave": Alias("hardness"),
    "sigmoid": Alias("siglip"),
    "gcl": Alias("sogclr"),
    "rgcl": Alias("isogclr"),
    "byol": Alias("align_uniform", f"{MOVING} and predictor=true", FIXED),
    "simsiam": Alias("align_uniform", f"{MOVING}, predictor=true, ema=0", FIXED),
    "moco_v3": Alias("infonce", "MoCo v3's pairing is the recipe's query_key"),
    "simco": Alias("dual_temperature", "its pairing is the recipe's both_ways"),
    "simmoco": Alias(
        "dual_temperature", "its pairing is the recipe's query_key with predictor=false"
    ),
}
ENTRY_POINTS = "contrastbench.losses"  # each names a class of losses
LIBRARY = "contrastbench.losses.library"


@dataclass(frozen=True)
class Description:
    """A loss as its source declares it."""

    summary: str
    params: dict[str, Any]  # name -> default
    ranges: dict[str, Range] = field(default_factory=dict)  # of the parameters that declare one
    limits: Limits = ()  # the losses that it becomes
    required: tuple[str, ...] = ()  # parameters without a default

    @cached_property
    def arguments(self) -> list[str]:
        return [*self.required, *self.params]


@dataclass(frozen=True)
class Term:
    """A loss within a sum, or alone; it is imported when it is needed."""

    name: str
    weight: float = 1.0
    sources: Sources = field(default_factory=Sources)
    settings: Mapping[str, Any] = field(default_factory=dict)  # defaults of its alias

    @property
    def registered(self) -> bool:
        return self.name in OURS

    @cached_property
    def target(self) -> Any:
        """Its class, or a function of two views; nothing of it was called."""
        return load(self.name, self.sources)

    @property
    def adapted(self) -> bool:
        from contrastbench.losses.base import Loss

        return not (isinstance(self.target, type) and issubclass(self.target, Loss))

    @property
    def package(self) -> str:
        """Return the package whose version tells its code; "" for none."""
        ours = self.registered or expression.file_and_class(self.name)
        path = "" if ours else import_path(self.name)
        return path.partition(":")[0].partition(".")[0] if path and self.adapted else ""

    @property
    def title(self) -> expression.Title:
        if self.registered:
            return expression.Title(self.name, source_class(self.name).name)
        from contrastbench.losses.base import title

        if self.adapted and not expression.file_and_class(self.name):
            return expression.Title(import_path(self.name), self.target.__name__)
        return title(self.target)

    def describe(self) -> Description:
        if self.registered:
            about = describe_source(self.name)
            settings = self.settings
            return replace(about, params={**about.params, **settings}) if settings else about
        with users_code(f"read what {self.name} declares"):
            return describe_class(self.target)

    def full(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters after defaults, as a record can hold them; nothing is made."""
        about = self.describe()
        full = {**about.params, **params}
        if lacking := [key for key in about.required if key not in params]:
            ways = "--set {0}=VALUE, LOSS({0}=VALUE), or in a file {{LOSS: {{{0}: VALUE}}}}"
            fix = f"give it a default, or a value: {ways.format(lacking[0])}"
            raise UserError(f"{self.name} needs {lacking[0]}: {fix}")
        if self.registered:
            return full
        from contrastbench.losses.loading import check_plain
        from contrastbench.losses.views import check_values

        if self.adapted:
            check_values(about.params, params)
        check_plain(self.name, full)
        return full

    def make(self, params: Mapping[str, Any]) -> "Loss":
        from contrastbench.losses.loading import make_loss_of

        self.full(params)  # raises
        return make_loss_of(self.name, self.target, self.title.name, {**self.settings, **params})


def list_losses() -> list[str]:
    """The names that `get_loss` takes, ours first; `bench list losses` says more of each.

    >>> list_losses()[:2]
    ['infonce', 'debiased']
    """
    return list(losses())


@cache  # so that it is given once
def give_note(alias: str) -> None:
    loss, note, _ = ALIASES[alias]
    warnings.warn(f"the loss {alias!r} is {loss!r}" + f"; {note}" * bool(note), stacklevel=4)


def canonical_name(name: str) -> str:
    return ALIASES.get(name, Alias(name)).loss


def terms_of(name: str, sources: Sources | None = None) -> dict[str, Term]:
    """The terms of a sum by the prefix of their parameters; by "" a loss that is no sum."""
    sources = sources or Sources()
    terms = [
        Term(alias.loss, weight, sources, alias.settings)
        for weight, term in expression.parse(name)
        for alias in [ALIASES.get(term, Alias(term))]
    ]
    if not expression.is_sum(name):
        return {"": terms[0]}
    counts = Counter(term.name for term in terms)
    if double := next((term for term, count in counts.items() if count > 1), ""):
        raise UserError(f"{double} is twice in the loss {name!r}: write it once, with one weight")
    return dict(zip(expression.prefixes(term.title for term in terms), terms, strict=True))


def is_registered(name: str) -> bool:
    return all(canonical_name(term) in OURS for term in names(name))


def losses() -> dict[str, str]:
    """All losses by name, ours first, with their import paths; no code of packages is run."""
    known = {name: f"{LIBRARY}.{name}" for name in OURS}
    taken = known | dict.fromkeys([*ALIASES, "all", "none"], "a word of contrastbench's own")
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name in taken:
            pair = f"{taken[entry.name]} and {entry.value}"
            raise UserError(f"two losses are named {entry.name}: {pair}: uninstall one")
        known[entry.name] = taken[entry.name] = entry.value.partition("[")[0].strip()
    return known


def aliases(name: str) -> list[str]:
    return [other for other, alias in ALIASES.items() if alias.loss == name]


def load(name: str, sources: Sources | None = None) -> Any:
    """Return the class or function of a loss by its name, file or import path; it is not called."""
    if name in OURS:
        return getattr(importlib.import_module(f"{LIBRARY}.{name}"), source_class(name).name)
    path = "" if name.endswith(".py") or expression.file_and_class(name) else import_path(name)
    from contrastbench.losses import loading

    with users_code(f"read {name}"):  # what is a class by its looks may answer by an exception
        if path:
            return loading.shown_loss(path, loading.from_package(path))
        if not (own := expression.file_and_class(name)):
            raise loading.lacks_class(Path(name))
        target = loading.from_file(*own, sources or Sources())
        return loading.shown_loss(f"{own[1]} in {own[0]}", target)


def import_path(name: str) -> str:
    if expression.package_and_name(name):
        return name
    known = losses()
    if "(" in name:
        raise UserError(f"{name} is no name of a loss: give its parameters apart (--set KEY=VALUE)")
    if name not in known:
        raise unknown("loss", name, [*known, *ALIASES])
    return known[name]


def describe(name: str) -> Description:
    """Summary, defaults and ranges of a loss or of a sum of them.

    For registered losses they are read from the source without importing torch.

    >>> describe("infonce").params
    {'temperature': 0.5}
    >>> describe("infonce + 0.5*dar").params
    {'infonce.temperature': 0.5, 'dar.form': 'chain', 'dar.reduction': 'mean'}
    >>> print(describe("rince").ranges["q"])
    > 0 and <= 1
    """
    about = {prefix: term.describe() for prefix, term in terms_of(name).items()}
    if "" in about:
        return about[""]
    return Description(
        " + ".join(term.summary for term in about.values()),
        expression.flat_params({prefix: term.params for prefix, term in about.items()}),
        expression.flat_params({prefix: term.ranges for prefix, term in about.items()}),
    )


@cache
def source_class(name: str) -> ast.ClassDef:
    """Read the class of a registered loss from its module: it has the module's name, as classes do.

    >>> source_class("alpha_cl").name
    'AlphaCL'
    """
    path = Path(__file__).with_name("library") / f"{name}.py"
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.ClassDef) and node.name.lower() == name.replace("_", ""):
            return node
    raise UserError(f"losses/library/{name}.py has no class of that name, without _: rename one")


@cache
def describe_source(name: str) -> Description:
    node = source_class(name)
    values = {
        ast.unparse(line.targets[0] if isinstance(line, ast.Assign) else line.target): line.value
        for line in node.body
        if isinstance(line, ast.Assign | ast.AnnAssign) and line.value
    }
    about = {key: declared(name, values[key]) for key in ("ranges", "limits") if key in values}
    params = {key: declared(name, values[key]) for key in values if key in about.get("ranges", ())}
    return Description((ast.get_docstring(node) or "").split("\n")[0], params, **about)


def declared(name: str, value: ast.expr) -> Any:
    """Evaluate a declaration of a loss of ours, which uses names of `ranges` and `limits` alone."""
    names = {**vars(limits), **vars(ranges)}
    try:
        return eval(compile(ast.Expression(value), "<ours>", "eval"), names)
    except Exception as error:
        line = next(n for f, n in walk_tb(error.__traceback__) if f.f_code.co_filename == "<ours>")
        fix = "write Number(low=0), Choice(...), Given(...) or Limit(...)"
        raise UserError(f"losses/library/{name}.py:{line}: {error}: {fix}") from None


def describe_class(target: Any) -> Description:
    from contrastbench.losses.base import Loss, constructor
    from contrastbench.losses.views import own_parameters

    ours = isinstance(target, type) and issubclass(target, Loss)
    arguments = constructor(target) if ours else own_parameters(target)
    empty = inspect.Parameter.empty
    gathering = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    lacking = [n for n, each in arguments.items() if each.default is empty]
    given = dict(getattr(target, "ranges", {})) if ours else {}
    if wrong := [name for name, each in given.items() if not isinstance(each, Range)]:
        raise UserError(f"the range of {wrong[0]} is {given[wrong[0]]!r}: write it by declare()")
    return Description(
        (inspect.getdoc(target) or "").split("\n")[0],
        {name: each.default for name, each in arguments.items() if each.default is not empty},
        given,
        tuple(getattr(target, "limits", ())) if ours else (),
        tuple(name for name in lacking if arguments[name].kind not in gathering),
    )
