"""Base classes of losses, which are functions of scores."""

import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from inspect import Parameter
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar, cast, dataclass_transform

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from contrastbench.distributed import gather, own_rows, world
from contrastbench.errors import UserError
from contrastbench.losses import blocks
from contrastbench.losses.blocks import fill, over_rows
from contrastbench.losses.contrast import Contrast, unless
from contrastbench.losses.expression import Title, flat_params, prefixes, weighted
from contrastbench.losses.limits import reduces
from contrastbench.losses.ranges import check_ranges, declare
from contrastbench.losses.ranges import in_range as in_range  # for the losses of users

T = TypeVar("T")
Pool = Callable[[Tensor], Tensor]
KIND = Parameter.POSITIONAL_OR_KEYWORD  # of annotated arguments

# Stands for -inf where a loss has parameters of its own: their gradient contains zero times a
# hole's score, which is nan for -inf. Far below any cosine, so that exp(FINITE_HOLE / 1000) is zero
# in float64 too, and its square is a number in float32.
FINITE_HOLE = -1e15

TAKES = (
    "takes a Contrast, which pairs anchors with positives and negatives: "
    "give loss(both_views(z1, z2)) as SimCLR pairs embeddings, other_view as GraphCL, whole_row as "
    "SimCSE, query_key as MoCo v3, or same_class (contrastbench.losses)"
)
NO_NEGATIVES = "an anchor has no negatives: put at least two different samples into each batch"
NO_POSITIVES = (
    "an anchor has no positive: put two samples of each of its classes into a batch, or pair two "
    "views of each sample"
)


@dataclass(frozen=True)
class Scores:
    """Cosines of a block of anchors with their positives and with all keys.

    Reduce with its methods: they leave out the keys that are no negatives and the padding among the
    positives.
    """

    pos: Tensor  # (a, P)
    neg: Tensor  # (a, K), -inf (or FINITE_HOLE) where the key is no negative of the anchor
    count: Tensor  # (a, 1) negatives of each anchor
    positive_in_denominator: bool = True
    mean_over_negatives: bool = False
    padded: Tensor | None = None  # as `padding`; None: the pairing has none, so nothing is masked
    # (a,) and (K,) samples of the anchors and of the keys, or their classes where classes pair
    anchor_id: Tensor = field(default_factory=lambda: torch.empty(0))
    key_id: Tensor = field(default_factory=lambda: torch.empty(0))
    rows: slice = field(default_factory=lambda: slice(None))  # the batch's anchors that these are
    # `of_batch` where these are a block of the batch; None: these are all
    whole: "Callable[[OfScores, Pool, bool], Tensor] | None" = None
    holes: Tensor | None = None  # where `fill` puts a value; None: as `hole` says

    @property
    def padding(self) -> Tensor:
        """(a, P) True where the anchor has fewer positives than others: pos is no positive."""
        if self.padded is None:
            return torch.zeros_like(self.pos, dtype=torch.bool)
        return self.padded

    def of_batch(self, f: "OfScores", pool: Pool, negatives: bool = True) -> Tensor:
        """Return what pool makes of (A, ...) f of all anchors of the batch, detached.

        A block's `terms` sees some anchors only, those of `rows`. Both functions are called once
        for a batch if they stay the same objects: give no lambda. If f asks positives alone, say
        `negatives=False`: the scores of all keys, a product more, are then seldom needed.
        """
        return (pool(f(self)) if self.whole is None else self.whole(f, pool, negatives)).detach()

    @property
    def hole(self) -> Tensor:
        """(a, K) True where the key is no negative of the anchor: its score is below any cosine."""
        return self.neg < -2

    def filled(self, x: Tensor, value: float) -> Tensor:
        """Return x of all keys, (a, K), with that value where the key is no negative."""
        return fill(x, self.hole if self.holes is None else self.holes, value)

    def mean_pos(self, x: Tensor) -> Tensor:
        """Mean over each anchor's positives, (a, P) -> (a,)."""
        if self.padded is None:
            return x.mean(dim=1)
        return x.masked_fill(self.padded, 0).sum(dim=1) / (~self.padded).sum(dim=1)

    def log_sum_pos(self, log_x: Tensor) -> Tensor:
        """Log of the sum over each anchor's positives, (a, P) -> (a, 1)."""
        if self.padded is not None:
            log_x = log_x.masked_fill(self.padded, -math.inf)
        return torch.logsumexp(log_x, dim=1, keepdim=True)

    def log_mean_pos(self, log_x: Tensor) -> Tensor:
        """Log of the mean over each anchor's positives, (a, P) -> (a, 1)."""
        total = self.log_sum_pos(log_x)
        if self.padded is None:
            return total - math.log(log_x.shape[1])
        return total - (~self.padded).sum(dim=1, keepdim=True).to(total.dtype).log()

    def weights_pos(self, log_x: Tensor) -> Tensor:
        """(a, P) each positive's x over the mean of its anchor's; zero where there is padding."""
        log_weight = log_x - self.log_mean_pos(log_x)
        if self.padded is not None:  # before exp, which padding's own x could overflow
            log_weight = log_weight.masked_fill(self.padded, -math.inf)
        return log_weight.exp()

    def mean_neg(self, x: Tensor) -> Tensor:
        """Mean over each anchor's negatives, (a, K) -> (a, 1)."""
        return self.filled(x, 0).sum(dim=1, keepdim=True) / self.count

    def log_mean_neg(self, log_x: Tensor) -> Tensor:
        """Log of the mean over each anchor's negatives, (a, K) with -inf in the holes -> (a, 1)."""
        return torch.logsumexp(log_x, dim=1, keepdim=True) - self.count.log()

    def log_share(self, log_pos: Tensor, log_neg: Tensor) -> Tensor:
        """Log of each positive's share of its denominator.

        The pairing's two flags live here and nowhere else.

        Args:
            log_pos: (a, P) log of each positive's term.
            log_neg: (a, K) log of each negative's term, -inf where the key is no negative; or (a,
                1) of their sum.

        Returns:
            (a, P) log(pos / (pos + sum neg)), or log(pos / sum neg) without the positive in the
            denominator.
        """
        total = torch.logsumexp(log_neg, dim=1, keepdim=True)
        if self.mean_over_negatives:
            total = total - self.count.log()
        return logsigmoid(log_pos - total) if self.positive_in_denominator else log_pos - total

    def log_denominator(self, log_pos: Tensor, log_neg: Tensor) -> Tensor:
        """Log of what each positive is divided by, (a, P); arguments as in `log_share`."""
        return log_pos - self.log_share(log_pos, log_neg)


OfScores = Callable[[Scores], Tensor]


@dataclass_transform(kw_only_default=True)
class Loss(nn.Module):
    """A scalar of a Contrast. Losses add up and scale: `infonce + 0.5 * dar` is a Loss.

    The constructor's arguments name the loss in records: each is kept as an attribute of the same
    name. An argument that becomes an `nn.Parameter`, such as a temperature that is learned, is
    recorded with the value that the constructor got, the initial one.

    A class without an `__init__` of its own has one: as in a dataclass, each annotated attribute
    that its `ranges` name is an argument, which is checked and kept. `_set_up` follows.

    A loss may have parameters and buffers of its own. Whoever trains with it has to

    - seed torch before making the loss, if its parameters are drawn,
    - call `loss.prepare(classes, dim)` once if `loss.needs_classes`, with the number of classes
      and the embeddings' dimensions, before the optimizer is made,
    - call `loss.prepare_samples(n)` once if `loss.needs_samples`, with the number of training
      samples, and give contrasts with an `index` (`losses.indexed`),
    - move it: `loss.to(device)`,
    - give the optimizer `loss.parameter_groups()` beside the encoder's parameters: a group has
      the key "lr" where the loss wants its own rate, and the encoder's rate otherwise,
    - call `loss.advance(share)` before each step, with the share of the steps that are done:
      0 before the first, 1 before the last,
    - switch `loss.train()` and `loss.eval()` as the encoder,
    - save `loss.state_dict()` in checkpoints, and load it after `prepare` and `prepare_samples`.

    The encoder is what is evaluated; the loss's parameters end with the training.
    """

    ranges = declare()  # by argument; a user's own loss needs none
    limits = reduces()  # the losses that it becomes; a user's own loss needs none
    # laws of `bench check-loss` that do not hold for it: name -> reason
    declined_laws: Mapping[str, str] = MappingProxyType({})
    # laws that say nothing about losses of its kind: name -> reason
    other_laws: Mapping[str, str] = MappingProxyType({})
    ordered = False  # whether the order of the anchors matters
    needs_classes = False  # whether `prepare` must be told the number of classes
    # whether `prepare_samples` must be told the number of training samples
    needs_samples = False
    own_view = False  # whether its paper takes negatives of the anchor's own view alone
    needs_views = False  # whether the contrast must have two whole views, as for a ViewLoss
    lr: float | None = None  # learning rate of the loss's own parameters; None: the encoder's
    _annotated: ClassVar[inspect.Signature] = inspect.Signature()  # of annotated arguments
    __signature__: ClassVar[inspect.Signature | None]
    _arguments: dict[str, Any]  # what the constructor got
    _target: Any = None  # the plain module or function that it calls

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Note the arguments, because an attribute that is learned does not keep its value."""
        loss = super().__new__(cls)
        loss.__dict__["_arguments"] = {}
        with suppress(TypeError):  # the call raises by itself, and copying calls nothing
            known = inspect.Signature([*constructor(cls).values()])
            loss.__dict__["_arguments"] = bind(known, args, kwargs)
        return loss

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.__signature__ = None
        if cls.__init__ is Loss.__init__:
            own = {n: kind for n, kind in inspect.get_annotations(cls).items() if n in cls.ranges}
            known = dict(cls._annotated.parameters)
            known |= {n: Parameter(n, KIND, default=vars(cls).get(n, Parameter.empty)) for n in own}
            cls.__signature__ = cls._annotated = inspect.Signature([*known.values()])
            for name in own.keys() & vars(cls).keys():
                if "Tensor" in str(own[name]):  # it is learned: an attribute of the loss alone
                    delattr(cls, name)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        kinds = type(self).__mro__[: type(self).__mro__.index(Loss)]  # above which is the call?
        above = max((k + 1 for k, kind in enumerate(kinds) if "__init__" in vars(kind)), default=0)
        base = next((kind for kind in kinds[above:] if issubclass(kind, Loss)), Loss)
        vars(self).update(check_ranges(self.ranges, bind(base._annotated, args, kwargs)))
        self._set_up()

    def _set_up(self) -> None:
        """Make what depends on the arguments, which are attributes by now."""

    def __call__(self, contrast: Contrast, *more: Any) -> Tensor:
        """Return the loss of one contrast; embeddings alone do not determine the pairs."""
        if more or not isinstance(contrast, Contrast):
            raise TypeError(f"{self.name} {TAKES}")
        if self.training:
            self.keep_in_range()
        return one_number(self.name, super().__call__(contrast))

    def forward(self, contrast: Contrast) -> Tensor:
        """The loss of one contrast, a scalar."""
        raise NotImplementedError

    def prepare(self, classes: int, dim: int) -> None:
        """Make what depends on the number of classes, such as a proxy of `dim` numbers for each.

        In the supervised pairings, `same_class` and `both_views` with labels, the ids of a contrast
        are the classes.
        """

    def prepare_samples(self, samples: int) -> None:
        """Make what is kept of each of so many training samples, as buffers.

        The `index` of a contrast says of which samples its anchors are. A loss changes what it
        keeps in training alone.
        """

    def remembered(self) -> dict[str, Tensor]:
        """Return single numbers, by name, that sum up for a record what it keeps of the samples."""
        return {}

    def advance(self, share: float) -> None:
        """Set what follows a schedule to its value after a share of the steps."""

    def keep_in_range(self) -> None:
        """Take what is learned back into its range, if a step has led out of it."""

    def _load_from_state_dict(self, kept: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        """Give buffers that begin empty, such as a queue, the shapes that a checkpoint has."""
        for name, buffer in self._buffers.items():
            if buffer is not None and not buffer.numel() and prefix + name in kept:
                self._buffers[name] = buffer.new_empty(kept[prefix + name].shape)
        super()._load_from_state_dict(kept, prefix, *rest)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """The loss's own parameters as groups of an optimizer; none if nothing is learned."""
        own = [parameter for parameter in self.parameters() if parameter.requires_grad]
        rate = {} if self.lr is None else {"lr": self.lr}
        return [{"params": own, **rate}] if own else []

    def checked(self, name: str, value: T) -> T:
        """The value of an argument, if it is in the range that the class declares for it."""
        if name not in self.ranges:
            at = sys._getframe(1)
            raise UserError(
                f"{at.f_code.co_filename}:{at.f_lineno}: self.checked({name!r}) finds no range: "
                f"add {name}=Number(low=0), or what it may be, to its ranges = declare(...)"
            )
        return cast(T, self.ranges[name].check(name, value, vars(self)))

    @property
    def name(self) -> str:
        """The name in the registry, which is the module's, or the user's own file's."""
        return title(type(self)).name

    @property
    def params(self) -> dict[str, Any]:
        """The constructor's arguments by name; what the loss learns has its initial value."""
        values = {name: getattr(self, name) for name in constructor(type(self))}
        return {
            name: self._arguments[name] if isinstance(value, Tensor) else value
            for name, value in values.items()
        }

    def extra_repr(self) -> str:
        """Return the arguments that repr() shows inside its brackets."""
        return ", ".join(f"{name}={value!r}" for name, value in self.params.items())

    def __add__(self, other: "Loss") -> "Loss":
        return Sum((1.0, self), (1.0, other))

    def __rmul__(self, weight: float) -> "Loss":
        return Sum((weight, self))


def one_number(name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise UserError(f"{name} returns {type(value).__name__}: return a tensor")
    if value.shape != ():
        shape = tuple(value.shape)
        raise UserError(f"{name} returns shape {shape}: return one number, such as .mean()")
    return value


def constructor(kind: type[Loss]) -> dict[str, Parameter]:
    if kind.__init__ is Loss.__init__:
        return dict(kind._annotated.parameters)
    _, *rest = inspect.signature(kind.__init__).parameters.values()
    return {argument.name: argument for argument in rest}


def bind(known: inspect.Signature, args: Sequence[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    bound = known.bind(*args, **given)
    bound.apply_defaults()
    return bound.arguments


def title(kind: type) -> Title:
    """The names of a class of losses: its module's, without packages, and its own."""
    return Title(kind.__module__.rpartition(".")[2], kind.__name__)


def definition(loss: Loss) -> Any:
    """Return the class that defines a loss, or the plain module or function that it calls."""
    return loss._target or type(loss)


class Sum(Loss):
    """A weighted sum of losses on the same contrast."""

    def __init__(self, *terms: tuple[float, Loss]) -> None:
        super().__init__()
        flat_terms = [
            (in_range("weight", w) * v, inner) for w, loss in terms for v, inner in summands(loss)
        ]
        self.weights = [w for w, _ in flat_terms]
        self.losses = nn.ModuleList(loss for _, loss in flat_terms)
        losses = [loss for _, loss in flat_terms]
        self.declined_laws = {k: why for loss in losses for k, why in loss.declined_laws.items()}
        self.other_laws = {k: why for loss in losses for k, why in loss.other_laws.items()}
        for need in ("ordered", "needs_classes", "needs_samples", "needs_views", "own_view"):
            setattr(self, need, any(getattr(loss, need) for loss in losses))

    def forward(self, contrast: Contrast) -> Tensor:
        values = [w * loss(contrast) for w, loss in zip(self.weights, self.losses, strict=True)]
        return torch.stack(values).sum()

    def prepare(self, classes: int, dim: int) -> None:
        for _, loss in summands(self):
            loss.prepare(classes, dim)

    def prepare_samples(self, samples: int) -> None:
        for _, loss in summands(self):
            loss.prepare_samples(samples)

    def advance(self, share: float) -> None:
        for _, loss in summands(self):
            loss.advance(share)

    def keep_in_range(self) -> None:
        for _, loss in summands(self):
            loss.keep_in_range()

    def parameter_groups(self) -> list[dict[str, Any]]:
        return [group for _, loss in summands(self) for group in loss.parameter_groups()]

    @property
    def prefixed(self) -> dict[str, Loss]:
        """Return the terms by prefixes that tell them apart, in names and in parameters."""
        losses = [loss for _, loss in summands(self)]
        titles = (Title(loss.name, definition(loss).__name__) for loss in losses)
        return dict(zip(prefixes(titles), losses, strict=True))

    @property
    def name(self) -> str:
        """The expression that `get_loss` takes."""
        terms = zip(self.prefixed, self.weights, strict=True)
        return " + ".join(weighted(prefix, weight) for prefix, weight in terms)

    @property
    def params(self) -> dict[str, Any]:
        """The arguments of every term, as `term.argument`; the weights are in the name."""
        return flat_params({prefix: loss.params for prefix, loss in self.prefixed.items()})


def summands(loss: Loss) -> list[tuple[float, Loss]]:
    """The weighted terms of a sum; any other loss is one term of weight 1."""
    if not isinstance(loss, Sum):
        return [(1.0, loss)]
    return list(zip(loss.weights, cast("list[Loss]", loss.losses), strict=True))


class ScoreLoss(Loss):
    """A loss that is a formula of scores: subclasses write `terms` in log space and nothing else.

    Rows are taken in blocks, none of which is kept, so memory grows with the number of keys, not
    with its square. A mean of rows has its gradient at once; for other functions of them the
    backward pass computes each block again. Scores and reductions run in float32 or better, under
    autocast too.
    """

    block_elements: int | None = None  # scores held at once; None: as many as suit the device

    def terms(self, scores: Scores) -> Tensor:
        """The paper's formula: (a,) or (a, k) terms of a block of anchors."""
        raise NotImplementedError

    def combine(self, terms: Tensor) -> Tensor:
        """One scalar of all anchors' terms.

        It is their mean unless the loss is a function of the whole batch.
        """
        return terms.mean()

    def conclude(self, contrast: Contrast, terms: Tensor) -> Tensor:
        """One scalar of all anchors' terms, where it takes more of the contrast than its scores.

        Blocks of terms may be computed again in the backward pass. What changes a loss stands here,
        which runs once.
        """
        return self.combine(terms)

    @property
    def hole(self) -> float:
        """The score of a key that is no negative, with which the loss can be differentiated."""
        return FINITE_HOLE if any(p.requires_grad for p in self.parameters()) else -math.inf

    def forward(self, contrast: Contrast) -> Tensor:
        @cache  # for the whole batch once, not in each block
        @torch.no_grad()
        def whole(f: OfScores, pool: Pool, negatives: bool) -> Tensor:
            if negatives or contrast.positive_key is not None:
                return pool(self.of_anchors(contrast, f))
            return pool(f(of_positives(contrast)))

        def terms(scores: Scores) -> Tensor:
            return self.block_terms(replace(scores, whole=whole))

        with torch.autocast(contrast.anchor.device.type, enabled=False):
            of_all = type(self).conclude, type(self).combine
            mean = of_all == (ScoreLoss.conclude, ScoreLoss.combine) and world() == 1
            found = self.of_anchors(contrast, terms, mean)
            return found if mean else self.conclude(contrast, found)

    def of_anchors(self, contrast: Contrast, f: OfScores, mean: bool = False) -> Tensor:
        """(A, ...) f of the scores of all anchors, computed in blocks of rows; or its mean."""
        anchors, own = len(contrast.anchor), own_rows(len(contrast.anchor))
        device, keys = contrast.anchor.device, max(1, len(contrast.keys))
        elements = self.block_elements or blocks.block_elements(device, anchors * keys)
        step = own.step * max(1, elements // keys)
        starts = range(own.start, anchors, step)
        parts = [slice(start, start + step, own.step) for start in starts] or [own]
        pos = positive_scores(contrast)
        learned = [parameter for parameter in self.parameters() if parameter.requires_grad]

        def block(rows: slice, scores: Tensor, pos: Tensor) -> Tensor:
            return f(replace(scored(contrast, rows, scores, pos, self.hole), rows=rows))

        values = over_rows(block, parts, contrast.anchor, contrast.keys, pos, learned, mean)
        terms = gather(values, anchors)
        if contrast.padding is None:
            return terms
        return unless(contrast.padding.all(dim=1).any(), terms, NO_POSITIVES)

    def block_terms(self, scores: Scores) -> Tensor:
        terms = self.terms(scores)
        if not isinstance(terms, Tensor):
            raise UserError(
                f"terms of {self.name} returns {type(terms).__name__}: "
                "return a tensor with a term for each anchor"
            )
        return terms


def block_scores(contrast: Contrast, rows: slice, hole: float = -math.inf) -> Scores:
    """Scores of some rows of anchors, with that score where a key is no negative."""
    scores = contrast.anchor[rows] @ contrast.keys.T
    return scored(contrast, rows, scores, positive_scores(contrast)[rows], hole)


def positive_scores(contrast: Contrast) -> Tensor:
    """(A, P) cosines of the anchors with positives that are no keys; of others (A, 0)."""
    if contrast.positive_key is not None:
        return contrast.anchor.new_empty(len(contrast.anchor), 0)
    return torch.linalg.vecdot(contrast.anchor.unsqueeze(1), contrast.positives())


def scored(contrast: Contrast, rows: slice, scores: Tensor, pos: Tensor, hole: float) -> Scores:
    """Scores of some rows of anchors, from their cosines with all keys and with other positives.

    Positives that are keys are scored once.
    """
    if contrast.positive_key is not None:
        pos = scores.gather(1, contrast.positive_key[rows])
    holes = contrast.holes(rows)
    found = with_positives(contrast, rows, fill(scores, holes, hole), pos)
    return replace(found, holes=holes)


def of_positives(contrast: Contrast) -> Scores:
    """Scores of all anchors without those of the keys, where positives are no keys."""
    neg = contrast.anchor.new_empty(len(contrast.anchor), 0)
    return with_positives(contrast, slice(None), neg, positive_scores(contrast))


def with_positives(contrast: Contrast, rows: slice, neg: Tensor, pos: Tensor) -> Scores:
    """The scores of some rows of anchors with all keys and with positives.

    Where an anchor has no negative, no contrastive loss is defined.
    """
    padding = None if contrast.padding is None else contrast.padding[rows]
    count = contrast.count(rows)
    if contrast.negatives is None:
        pos = unless(count < 1, pos, NO_NEGATIVES)
    elif contrast.negatives < (1 if contrast.positive_key is None else 2):  # it is one of them
        raise UserError(NO_NEGATIVES)
    flags = contrast.positive_in_denominator, contrast.mean_over_negatives
    ids = contrast.anchor_id[rows], contrast.key_id
    return Scores(pos, neg, count.to(neg.dtype), *flags, padding, *ids)
