"""The base of recipes: all settings besides data, loss and seed that can change a number."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, ValidationError, field_validator, model_validator

from contrastbench.domains.strict import Strict
from contrastbench.errors import UserError, check_known, unknown
from contrastbench.losses.pairing import PAIRINGS, Pairing

Width = Annotated[int, Field(ge=1)]  # of a layer
Epoch = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
LENGTHS = {"epochs", "steps"}  # of a training, by the one or the other
Misfits = Mapping[str, Callable[[Any], object]]  # what is found in a recipe, by the words for it
Unused = Mapping[tuple[str, ...], Callable[[Any], object]]  # whether so, by keys


def added(default: Any, **facts: Any) -> Any:
    """Declare a setting that is younger than records: no key has it where it is the default."""
    return Field(default, exclude_if=lambda value: value == default, **facts)


def laid_over(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of a recipe over others, of which a length ends one in the other unit.

    >>> laid_over({"epochs": 20, "lr": 0.1}, {"steps": 500})
    {'lr': 0.1, 'steps': 500}
    """
    if any(over.get(unit) is not None for unit in LENGTHS):
        under = {key: value for key, value in under.items() if key not in LENGTHS}
    return {**under, **over}


@dataclass(frozen=True)
class Presets:
    """A class attribute, the values of each preset by its name, read of a file at the first use."""

    path: Path

    def __get__(self, recipe: object, kind: type) -> dict[str, dict[str, Any]]:
        return self.values

    @cached_property
    def values(self) -> dict[str, dict[str, Any]]:
        from contrastbench.domains import strict_yaml  # takes a tenth of the time of a list

        return dict(strict_yaml.read_yaml(self.path).value)


class Recipe(Strict):
    """The base of all recipes; unknown keys and wrong types are errors.

    Some keys mean the same in every domain that has them: `encoder="raw"` scores the input,
    `pairing` is a name of `losses.pairing.PAIRINGS`, of which "supervised" pairs samples of one
    class, and `eval_every` steps a model is validated.
    """

    # --recipe preset=NAME: values in place of the defaults
    presets: ClassVar[Mapping[str, dict[str, Any]]] = {}
    # keys that change nothing of an untrained encoder's score
    of_training: ClassVar[frozenset[str]] = frozenset(
        {"epochs", "steps", "batch_size", "permuted", "schedule"}
        | {"lr", "optimizer", "momentum", "weight_decay"}
    )
    # keys that change nothing as long as they have no value
    optional: ClassVar[frozenset[str]] = frozenset({"permuted", "score_on", "limit", "steps"})
    # keys that change nothing beside some values of others
    unused: ClassVar[Unused] = {
        ("momentum",): lambda r: r.optimizer not in ("sgd", "lars"),
        ("epochs",): lambda r: r.steps,
    }
    # what does not fit together: in its words, {r} is the recipe and {found} what is found
    misfits: ClassVar[Misfits] = {
        "epochs={r.epochs} and steps={found} are two lengths of one training: give one": (
            lambda r: "epochs" in r.model_fields_set and r.steps
        ),
        "score_at={r.score_at} counts epochs, and steps={found} has no whole number of them: "
        "give epochs in its place, or leave score_at out": lambda r: r.score_at and r.steps,
        "score_at={found} is not before the last of {r.epochs} epochs, "
        "which is scored anyway: leave it out": (
            lambda r: next((epoch for epoch in r.score_at if epoch >= r.epochs), None)
        ),
    }

    max_grad_norm: ClassVar[float | None] = None  # to which gradients are cut before a step

    epochs: int = Field(20, ge=0)
    steps: int | None = added(None, ge=1)
    """length of the training in place of epochs, for sets of any size"""
    batch_size: int = Field(128, ge=2)
    lr: float = Field(0.01, gt=0)
    optimizer: Literal["adam", "adamw", "sgd", "lars"] = "adam"
    momentum: float = Field(0.9, ge=0, lt=1)
    """of sgd and lars"""
    weight_decay: float = Field(0.0, ge=0)
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    limit: int | None = Field(None, ge=2)
    """use only so many samples: for smoke tests"""
    permuted: bool | Share = False
    """a control: positives are of other samples, so they teach nothing; or the share of them"""
    score_at: tuple[Epoch, ...] = Field((), strict=False)
    """epochs after which the model is scored, besides the last"""
    score_on: tuple[str, ...] = added((), strict=False)
    """sets that score one training, of which the first trains: a record for each"""

    @field_validator("permuted")
    @classmethod
    def _all_and_none_are_no_shares(cls, share: bool | float) -> bool | float:
        return bool(share) if share in (0, 1) else share

    @model_validator(mode="after")
    def _values_fit_together(self) -> Self:
        for words, find in self.misfits.items():
            if found := find(self):
                raise ValueError(words.format(r=self, found=found))
        return self

    def model_dump(self, **how: Any) -> dict[str, Any]:
        """Return the values, of one length.

        No serializer of pydantic's does it, which makes an error of a Ctrl-C within one.
        """
        values = super().model_dump(**how)
        if self.steps:
            values.pop("epochs", None)
        return values

    def length(self, steps_per_epoch: int) -> int:
        """Return the steps of a training.

        >>> Recipe(epochs=3).length(10), Recipe(steps=25).length(10)
        (30, 25)
        """
        return self.steps or self.epochs * steps_per_epoch

    def beside(self, loss: Mapping[str, Any]) -> Self:
        """Return the recipe with values that follow the loss, such as a temperature.

        Args:
            loss: its parameters by name.
        """
        return self

    @property
    def scored_sets(self) -> tuple[str, ...]:
        """Return the sets that score one training, the one that trains first; none: the own one."""
        return self.score_on

    @property
    def protocol(self) -> str:
        """Names all of training and scoring that the recipe's values do not, in a record's key."""
        raise NotImplementedError("the recipe has no `protocol`: name its training and scoring")

    @property
    def nested(self) -> bool:
        """Return whether parameters are chosen fold by fold, by `Evaluation.inner`."""
        return False

    @property
    def validate_every(self) -> int | None:
        """Steps between choices of the best model by `validate`; None: the last one is taken."""
        return getattr(self, "eval_every", None)

    @classmethod
    def may_be(cls, key: str, value: str) -> bool:
        """Return whether a setting is a choice that has the value."""
        return key in cls.model_fields and value in get_args(cls.model_fields[key].annotation)

    @property
    def trainable(self) -> bool:
        """Return whether there are weights that a loss can train."""
        return getattr(self, "encoder", "") != "raw"

    @property
    def raw(self) -> dict[str, Any] | None:
        """Return values that score the raw input in the encoder's place; None: there is none."""
        return {"encoder": "raw"} if self.may_be("encoder", "raw") else None

    @property
    def by_class(self) -> dict[str, Any] | None:
        """Return values that pair samples of one class; None: the domain has no such pairing."""
        return {"pairing": "supervised"} if self.may_be("pairing", "supervised") else None

    @property
    def pairs_by_class(self) -> bool:
        """Return whether positives are samples of one class, so that no negative is a false one."""
        return getattr(self, "pairing", "") == "supervised"

    @property
    def pairing_facts(self) -> Pairing | None:
        """Return facts about the denominators of this recipe's contrasts; None if they are unknown.

        It tells which losses are the same here.
        """
        return PAIRINGS.get(getattr(self, "pairing", ""))

    @property
    def evaluation(self) -> dict[str, Any]:
        """Settings of scoring that no key shows, by name: what audits compare with papers."""
        return {}

    def idle(self, trained: bool) -> set[str]:
        """Keys that change nothing: the momentum of adam, a limit that is none, further scores."""
        idle = {"score_at", *(() if trained else self.of_training)}
        idle |= {key for key in self.optional if not getattr(self, key)}
        return idle.union(*(keys for keys, is_so in self.unused.items() if is_so(self)))

    def contents(self, data_root: Path | None, trained: bool) -> dict[str, str]:
        """Hashes for the record in place of paths: equal data are equal wherever they lie."""
        return {}

    def fetch(self, dataset: str, folder: Path | None, trained: bool) -> dict[str, str]:
        """Bring what it names besides the dataset into a data root, or into the cache; where.

        Args:
            dataset: the one that is trained and scored, which may need nothing else.
            folder: the data root; None: the cache.
            trained: whether there is a loss to train with.

        Raises:
            UserError: it cannot be had.
        """
        return {}

    @classmethod
    def of(cls, domain: str, values: dict[str, Any]) -> Self:
        """The recipe with these values in place of the defaults, or of a preset's.

        Args:
            domain: what the error calls it.
            values: by key; `preset` names one of `presets`.

        Raises:
            UserError: unknown key, wrong type or a value out of range, in one line.
        """
        if "preset" in values:
            name = values["preset"]
            if not isinstance(name, str) or name not in cls.presets:
                raise unknown(f"preset of domain {domain}", str(name), cls.presets)
            given = {key: value for key, value in values.items() if key != "preset"}
            values = laid_over(cls.presets[name], given)
        for key in values:
            check_known(f"recipe key of domain {domain}", key, cls.model_fields)
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            if not first["loc"]:  # several values do not fit together
                raise UserError(f"recipe: {first['ctx']['error']}") from None
            fault = f"recipe {first['loc'][0]}={first['input']!r}"
            raise UserError(f"{fault}: {asked_for(first)}") from None


def asked_for(error: Any) -> str:
    from contrastbench.domains.strict_yaml import KINDS

    kind, value = error["type"], error["input"]
    if kind == "tuple_type":  # which is how recipes hold lists
        return f"give a list, such as [{value if isinstance(value, str) else '10,20'}]"
    if kind == "int_type" and isinstance(value, float):  # 1e3 is one
        return f"give a whole number, such as {value:.0f}"
    return f"give {KINDS[kind]}" if kind in KINDS else str(error["msg"]).lower()


class ClassedRecipe(Recipe):
    """The base of recipes that may use classes to make false negatives, or to take them out."""

    of_training: ClassVar[frozenset[str]] = Recipe.of_training | {
        "batch_classes",
        "false_negatives",
    }
    optional: ClassVar[frozenset[str]] = Recipe.optional | {"batch_classes"}
    unused: ClassVar[Unused] = {**Recipe.unused, ("false_negatives",): lambda r: r.false_negatives}
    misfits: ClassVar[Misfits] = {
        **Recipe.misfits,
        "batch_size={r.batch_size} is no multiple of batch_classes={r.batch_classes}: "
        "give another one": (lambda r: r.batch_classes and r.batch_size % r.batch_classes),
        "false_negatives=false needs pairing=both_views, not {r.pairing}: leave it out": (
            lambda r: not r.false_negatives and r.pairing != "both_views"
        ),
    }

    pairing: str
    batch_classes: int | None = added(None, ge=2)
    """classes of a batch, as many samples of each: the fewer, the more negatives are false"""
    false_negatives: bool = added(True)
    """False, with both_views: samples of an anchor's class are no negatives of it"""

    @property
    def pairing_facts(self) -> Pairing | None:
        """Return the facts of the pairing; without false negatives there are no two whole views."""
        facts = super().pairing_facts
        return facts and replace(facts, two_views=facts.two_views and self.false_negatives)

    @property
    def reads_classes(self) -> bool:
        """Return whether contrasts are made by classes, of positives or of what is no negative."""
        return self.pairs_by_class or not self.false_negatives
