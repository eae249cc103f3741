"""The registry of losses by name, ours and those that packages announce.

Importing it does not import torch, so that listing stays instant.
"""

import ast
import importlib
import inspect
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from contrastbench.errors import UserError, unknown, users_code
from contrastbench.losses import limits, ranges
from contrastbench.losses.expression import (
    Title,
    assign,
    file_and_class,
    flat_params,
    is_sum,
    package_and_name,
    prefixes,
    split_sum,
    weighted,
)
from contrastbench.losses.limits import Limits
from contrastbench.losses.own import class_in_file, lacks_class, make_own_loss
from contrastbench.losses.ranges import Choice, Number, Range
from contrastbench.losses.schedules import Course, course
from contrastbench.losses.source import Sources

if TYPE_CHECKING:
    from contrastbench.losses.base import Loss

FAMILIES: Mapping[str, Mapping[str, str]] = {  # family -> name -> "module:Class" in this package
    "InfoNCE": {
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
        "npair": "npair:NPair",
        "dcl_w": "dcl_w:DCLW",
        "supcon": "supcon:SupCon",
        "clip": "clip:CLIP",
        "hardness": "hardness:Hardness",
        "macl": "macl:MACL",
        "weince": "weince:WEINCE",
        "sogclr": "sogclr:SogCLR",
        "isogclr": "isogclr:ISogCLR",
        "dhel": "dhel:DHEL",
    },
    "mutual information": {
        "mlcpc": "mlcpc:MLCPC",
        "rmlcpc": "rmlcpc:RMLCPC",
        "renyi": "renyi:Renyi",
        "nwj": "nwj:NWJ",
        "dv": "dv:DV",
        "jsd": "jsd:JSD",
        "align_uniform": "align_uniform:AlignUniform",
        "f_micl": "f_micl:FMICL",
        "spectral": "spectral:Spectral",
        "siglip": "siglip:SigLIP",
        "kcl": "kcl:KCL",
    },
    "metric learning": {
        "circle": "circle:Circle",
        "multi_similarity": "multi_similarity:MultiSimilarity",
        "triplet": "triplet:Triplet",
        "lifted": "lifted:Lifted",
    },
    "regularisation": {"dar": "dar:DAR"},
    "classes": {
        "proxy_anchor": "proxy_anchor:ProxyAnchor",
        "cross_entropy": "cross_entropy:CrossEntropy",
    },
}
# of a supervised training: no contrast without classes will do, so `all` leaves them out
SUPERVISED: Mapping[str, str] = FAMILIES["classes"]
OURS: Mapping[str, str] = {name: at for family in FAMILIES.values() for name, at in family.items()}
LOSSES: Mapping[str, str] = {name: at for name, at in OURS.items() if name not in SUPERVISED}
ALIASES: Mapping[str, tuple[str, str]] = {  # name -> its name in OURS, a note on it
    "dcl": (
        "debiased",
        "the loss 'dcl' is 'debiased' contrastive learning; lightly's DCL is 'decoupled'",
    ),
    "dclw": ("dcl_w", "the loss 'dclw' is 'dcl_w', weighted decoupled contrastive learning"),
    "lifted_structure": ("lifted", "the loss 'lifted_structure' is 'lifted', its generalised form"),
    "ms": ("multi_similarity", "the loss 'ms' is 'multi_similarity'"),
    "spectral_contrastive": ("spectral", "the loss 'spectral_contrastive' is 'spectral'"),
    "nt_xent": ("infonce", "the loss 'nt_xent' is 'infonce'"),
    "simclr": ("infonce", "SimCLR's loss is 'infonce', and its pairing the recipe's both_views"),
    "simcse": ("infonce", "SimCSE's loss is 'infonce', and its pairing that of sentences"),
    "mnrl": (
        "infonce",
        "the multiple negatives ranking loss is 'infonce', and its scale 1 / temperature",
    ),
    "sincere": ("infonce", "SINCERE is 'infonce' with several positives, those of one class"),
    "llave": ("hardness", "LLaVE's loss is 'hardness'"),
    "sigmoid": ("siglip", "the sigmoid loss is 'siglip'"),
    "gcl": ("sogclr", "the global contrastive loss 'gcl' is 'sogclr'"),
    "rgcl": ("isogclr", "the robust global contrastive loss 'rgcl' is 'isogclr'"),
}
NO_LOSSES: Mapping[str, str] = dict.fromkeys(  # name of a method -> why no loss has it
    ("byol", "simsiam"),
    "it needs a predictor and a stopped gradient; on images and tables run align_uniform with "
    "weight=0 and --recipe pairing=query_key, which has both",
)
HINTS = (  # for parts of a schedule that YAML has split, and for another form of `learned`
    "within braces write a schedule in quotes, such as {temperature: 'cosine(0.1, 1.0)'}",
    "a temperature is learned by temperature=learned(0.1)",
)
ENTRY_POINTS = "contrastbench.losses"  # each names a class of losses


@dataclass(frozen=True)
class Description:
    """A loss as its source declares it."""

    summary: str
    params: dict[str, Any]  # name -> default
    ranges: dict[str, Range] = field(default_factory=dict)  # of the parameters that declare one
    limits: Limits = ()  # the losses that it becomes


@dataclass(frozen=True)
class Term:
    """A loss within a sum, or alone; it is imported when it is needed."""

    name: str
    weight: float = 1.0
    sources: Sources = field(default_factory=Sources)

    @property
    def registered(self) -> bool:
        """Return whether it is one of ours."""
        return self.name in OURS

    @cached_property
    def factory(self) -> Any:
        """The class, or what else an entry point names."""
        return loss_class(self.name, self.sources)

    @property
    def title(self) -> Title:
        """The loss's name in records, and its class's."""
        if self.registered:
            return Title(self.name, OURS[self.name].partition(":")[2])
        if (own := package_and_name(self.name)) and not isinstance(self.factory, type):
            return Title(self.name, own[1])
        from contrastbench.losses.base import title

        return title(self.factory)

    @property
    def arguments(self) -> list[str]:
        """The names of its parameters."""
        if self.registered:
            return list(self.describe().params)
        return list(signature(self.factory))

    def describe(self) -> Description:
        """Summary, defaults and ranges; read from the source of a registered one."""
        return describe_source(self.name) if self.registered else describe_class(self.factory)

    def numbers(self) -> dict[str, Range]:
        """The ranges of the parameters that are numbers; any number where none is declared."""
        about = self.describe()
        found = dict[str, Range](about.ranges)
        for key, default in about.params.items():
            if key not in about.ranges and type(default) in (int, float):
                found[key] = Number()
        return {key: one for key, one in found.items() if not isinstance(one, Choice)}

    def read_courses(self, params: Mapping[str, Any]) -> dict[str, Course]:
        """The schedules among the parameters, and what is to be learned.

        Raises:
            UserError: one of them cannot be read.
        """
        texts = {key: value for key, value in params.items() if isinstance(value, str)}
        if not texts:
            return {}
        defaults = self.describe().params
        numbers = self.numbers()
        found = {k: course(k, v, defaults.get(k)) for k, v in texts.items() if k in numbers}
        return {key: one for key, one in found.items() if one is not None}

    def make(self, params: Mapping[str, Any]) -> "Loss":
        """Make the loss of this term."""
        courses = self.read_courses(params)
        if not courses:
            return make_own_loss(self.name, self.factory, params)
        from contrastbench.losses.changing import make_changing

        numbers = self.numbers()
        ranges.check_ranges(numbers, {**self.describe().params, **params})
        return make_changing(self.name, self.factory, params, courses, numbers)


def list_losses() -> list[str]:
    """The names that `get_loss` takes, ours first; `bench list losses` says more of each.

    >>> list_losses()[:2]
    ['infonce', 'debiased']
    """
    return list(losses())


def get_loss(name: str, **params: Any) -> "Loss":
    """The loss of that name with those parameters.

    Args:
        name: a key of `OURS`, the name of an entry point of the group `contrastbench.losses`,
            `file.py:Class`, `package.module:Name` of an installed package, or a weighted sum of
            these such as `infonce + 0.5*dar`.
        params: the parameters of the loss by name; see `bench list losses`. In a sum a plain name
            goes to every term that has such a parameter, `dar.form` to the one term; of two terms
            from one file, `mine.A.margin` to the one of class A.

    Raises:
        ValueError: unknown name, unknown parameter or a value out of range; the message names the
            fix.

    >>> get_loss("infonce", temperature=0.2)
    InfoNCE(temperature=0.2)
    >>> get_loss("infonce + 0.5*dar", temperature=0.2, **{"dar.form": "star"}).name
    'infonce + 0.5*dar'
    """
    return make_loss(name, params, Sources())


def make_loss(name: str, params: Mapping[str, Any], sources: Sources) -> "Loss":
    """Make a loss like `get_loss`, from a user's files as they were first read."""
    for alias in ALIASES.keys() & set(term_names(name)):
        give_note(alias)
    terms = parse_terms(name, sources)
    own = distribute(name, terms, params)
    if "" in terms:
        return terms[""].make(own[""])
    from contrastbench.losses.base import Sum

    return Sum(*((term.weight, term.make(own[prefix])) for prefix, term in terms.items()))


@cache  # so that it is given once
def give_note(alias: str) -> None:
    """Warn that a name is an alias."""
    _, note = ALIASES[alias]
    warnings.warn(note, stacklevel=4)


def canonical_name(name: str) -> str:
    """Return the name of a loss that may be given by an alias.

    >>> canonical_name("llave"), canonical_name("infonce")
    ('hardness', 'infonce')
    """
    return ALIASES.get(name, (name,))[0]


def term_names(name: str) -> list[str]:
    """Return the losses of a sum as they are written, or the only loss."""
    return [term for _, term in split_sum(name)] if is_sum(name) else [name]


def parse_terms(name: str, sources: Sources | None = None) -> dict[str, Term]:
    """The terms of a sum by the prefix of their parameters; by "" a loss that is no sum.

    Args:
        name: as `get_loss` takes it.
        sources: a user's files that were read before.

    Raises:
        UserError: a term is there twice, perhaps as an alias.
    """
    sources = sources or Sources()
    if not is_sum(name):
        return {"": Term(canonical_name(name), sources=sources)}
    terms = [Term(canonical_name(term), weight, sources) for weight, term in split_sum(name)]
    names = [term.name for term in terms]
    double = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if double is not None:
        raise UserError(f"{double} is twice in the loss {name!r}: write it once, with one weight")
    return dict(zip(prefixes(term.title for term in terms), terms, strict=True))


def distribute(
    name: str, terms: Mapping[str, Term], params: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The parameters that each term is given, by its prefix; schedules in the form of records.

    Raises:
        UserError: a parameter that no term has, or a schedule that cannot be read.
    """
    known = {prefix: term.arguments for prefix, term in terms.items()}
    every = {key for names in known.values() for key in names}
    for key in params:
        if key not in every and (key == "learn" or ")" in key):
            raise UserError(f"unknown parameter of {name} {key!r}: {HINTS[key == 'learn']}")
        if "" in terms and key not in every:
            raise unknown(f"parameter of {name}", key, known[""])
    own = {"": dict(params)} if "" in terms else assign(name, params, known)
    for prefix, term in terms.items():
        own[prefix] |= {key: str(one) for key, one in term.read_courses(own[prefix]).items()}
    return own


def complete(
    name: str, params: Mapping[str, Any], sources: Sources | None = None
) -> tuple[str, dict[str, Any]]:
    """Name and parameters after defaults, as the loss itself has them.

    Registered losses need no torch for that, and their values are not checked.

    Raises:
        UserError: unknown name or parameter.

    >>> complete("infonce+2 * decoupled", {"temperature": 0.2})
    ('infonce + 2*decoupled', {'infonce.temperature': 0.2, 'decoupled.temperature': 0.2})
    """
    sources = sources or Sources()
    check_finite(name, params, sources)
    terms = parse_terms(name, sources)
    if not all(term.registered for term in terms.values()):
        loss = make_loss(name, params, sources)
        return loss.name, loss.params
    own = distribute(name, terms, params)
    full = {prefix: {**term.describe().params, **own[prefix]} for prefix, term in terms.items()}
    if "" in terms:
        return terms[""].name, full[""]
    return " + ".join(weighted(prefix, terms[prefix].weight) for prefix in terms), flat_params(full)


def check_finite(name: str, params: Mapping[str, Any], sources: Sources) -> None:
    """Raise for a number that no record can hold."""
    for key, value in params.items():
        if isinstance(value, float) and not math.isfinite(value):
            check_loss_params(name, params, sources)  # which names the range, if there is one
            raise UserError(f"{key} must be a finite number, got {value}")


def check_loss_params(name: str, params: Mapping[str, Any], sources: Sources | None = None) -> None:
    """Raise unless the loss can be had with these parameters.

    Registered losses need no torch for that, unless a parameter changes over the training.

    Raises:
        UserError: unknown name or parameter, or a value out of its range, which is named.

    >>> check_loss_params("infonce", {"temperature": 0})
    Traceback (most recent call last):
    contrastbench.errors.UserError: temperature must be a finite number > 0, got 0
    """
    sources = sources or Sources()
    terms = parse_terms(name, sources)
    if not all(term.registered for term in terms.values()):
        make_loss(name, params, sources)
        return
    own = distribute(name, terms, params)
    for prefix, term in terms.items():
        about = term.describe()
        ranges.in_range("weight", term.weight)
        ranges.check_ranges(about.ranges, {**about.params, **own[prefix]})
        if term.read_courses(own[prefix]):
            term.make(own[prefix])


def is_registered(name: str) -> bool:
    """Return whether the loss, and each term of a sum, is one of ours."""
    return all(canonical_name(term) in OURS for term in term_names(name))


def losses() -> dict[str, EntryPoint]:
    """All losses by name, ours first; none of the packages' code is run.

    Raises:
        UserError: two losses have one name, or a package's has one that means something else here.
    """
    known = {
        name: EntryPoint(name, f"contrastbench.losses.{target}", ENTRY_POINTS)
        for name, target in OURS.items()
    }
    taken = {name: entry.value for name, entry in known.items()}
    taken |= dict.fromkeys([*ALIASES, "all", "none"], "a word of contrastbench's own")
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name in taken:
            pair = f"{taken[entry.name]} and {entry.value}"
            raise UserError(f"two losses are named {entry.name}: {pair}: uninstall one")
        known[entry.name], taken[entry.name] = entry, entry.value
    return known


def aliases(name: str) -> list[str]:
    """Return the other names of a registered loss.

    >>> aliases("hardness")
    ['llave']
    """
    return [alias for alias, (target, _) in ALIASES.items() if target == name]


def loss_class(name: str, sources: Sources | None = None) -> Any:
    """The class or function that makes the loss of a name, a file or an import path."""
    if name in OURS:
        module, attribute = OURS[name].split(":")
        return getattr(importlib.import_module(f"contrastbench.losses.{module}"), attribute)
    if own := file_and_class(name):
        return class_in_file(*own, sources or Sources())
    if name.endswith(".py"):
        raise lacks_class(Path(name))
    if path := package_and_name(name):
        from contrastbench.losses.packaged import package_loss

        with users_code(f"load {name}"):
            return package_loss(*path)
    if name in NO_LOSSES:
        raise UserError(f"{name} is more than a loss: {NO_LOSSES[name]}")
    known = losses()
    if name not in known:
        raise unknown_loss(name, [*known, *ALIASES])
    with users_code(f"load {name}"):
        return known[name].load()


def unknown_loss(name: str, known: Sequence[str]) -> UserError:
    """Return the error for the name of no loss; one with values says where these belong.

    >>> unknown_loss("hcl(beta=2)", ["hcl"])
    UserError('hcl(beta=2) is no name of a loss: give hcl, and --set beta=2 or {hcl: {beta: 2}}')
    """
    loss, bracket, values = name.rstrip(")").partition("(")
    if not (bracket and loss in known):
        return unknown("loss", name, known)
    pairs = [pair.strip() for pair in values.split(",")]
    words = " ".join(f"--set {pair}" for pair in pairs)
    listed = ", ".join(pair.replace("=", ": ", 1) for pair in pairs)
    return UserError(
        f"{name} is no name of a loss: give {loss}, and {words} or {{{loss}: {{{listed}}}}}"
    )


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
    about = {prefix: term.describe() for prefix, term in parse_terms(name).items()}
    if "" in about:
        return about[""]
    return Description(
        " + ".join(term.summary for term in about.values()),
        flat_params({prefix: term.params for prefix, term in about.items()}),
        flat_params({prefix: term.ranges for prefix, term in about.items()}),
    )


@cache
def describe_source(name: str) -> Description:
    """Read summary, defaults, ranges and limits of a registered loss from its module's text."""
    module, attribute = OURS[name].split(":")
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
    node = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == attribute)
    init = next(n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    names = [a.arg for a in init.args.args[1:]]
    summary = (ast.get_docstring(node) or "").split("\n")[0]
    defaults = [evaluate_text(default, ranges) for default in init.args.defaults]
    params = dict(zip(names, defaults, strict=True))
    return Description(
        summary, params, declared(node, "ranges", ranges), declared(node, "limits", limits) or ()
    )


def declared(node: ast.ClassDef, attribute: str, names: ModuleType) -> Any:
    """Evaluate a class attribute that uses the names of one module alone; None without one."""
    found = next(
        (
            n.value
            for n in node.body
            if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == attribute
        ),
        None,
    )
    return None if found is None else evaluate_text(found, names)


def evaluate_text(expression: ast.expr, names: ModuleType) -> Any:
    """Evaluate our own text, which uses the names of one module alone."""
    return eval(compile(ast.Expression(expression), "<ours>", "eval"), vars(names).copy())


def describe_class(factory: Any) -> Description:
    """Describe a loss that is not registered; a parameter without a default is left out."""
    defaults = {name: argument.default for name, argument in signature(factory).items()}
    return Description(
        (inspect.getdoc(factory) or "").split("\n")[0],
        {name: value for name, value in defaults.items() if value is not inspect.Parameter.empty},
        dict(getattr(factory, "ranges", {})),
        tuple(getattr(factory, "limits", ())),
    )


def signature(factory: Any) -> Mapping[str, inspect.Parameter]:
    """The arguments of a class of losses, or of what else an entry point names."""
    from contrastbench.losses.base import Loss, constructor

    if isinstance(factory, type) and issubclass(factory, Loss):
        return constructor(factory)
    return inspect.signature(factory).parameters
