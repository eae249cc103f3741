"""A sweep of one's own: a short YAML file that says which losses meet which data.

    seeds: 0-4                         # or [0, 1, 2]; this is the default
    domains:
      graph: {datasets: [MUTAG, NCI1: {limit: 1000}], recipe: {augmentation: random4}}
                                       # {csv:x.csv: {}, name: X}: the column's name in tables
      tabular: {}                      # the domain's embedded dataset, its default recipe
    losses: [all, none, {mine.py:Mine: {margin: 0.2}}]   # all: those that need no classes
                                       # {hcl: {}, name: HCL}: the row's name in tables
    tune: {trials: 12}                 # choose settings by validation data, in stages; or
                                       # `search: points`: each seed by the others, at points that
                                       # losses share; or `search: hypercube`
    controls: true                     # rows that must come out worse or better than InfoNCE;
                                       # or a list of their names
    test: seeds                        # of a comparison over data sets: wilcoxon, t or seeds
    quick: {datasets: [MUTAG], seeds: 0-2}    # the part that `--quick` asks for
    draft: true                        # not released: every answer says so
    extends: other.yaml                # all of another sweep, and what this file adds to it

A domain may have `trial_seeds`, which its trials take instead of those of `tune`, and the range of
`temperature` that a search at shared points has for all losses. What a file says
is checked here; `build` makes its table.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os.path import isfile
from pathlib import Path
from typing import Annotated

from pydantic import Field

from contrastbench.benchmarks.records.seeds import parse_seeds
from contrastbench.benchmarks.tables.controls import AGAIN
from contrastbench.benchmarks.tables.hypercube import Params
from contrastbench.benchmarks.tables.schema import Column, Seed, SetTestName, Tune
from contrastbench.domains.registry import (
    DOMAINS,
    check_domain_name,
    check_listed_dataset,
    declaration,
    make_recipe,
)
from contrastbench.domains.strict import Strict
from contrastbench.domains.strict_yaml import Document
from contrastbench.errors import UserError
from contrastbench.losses.registry import SUPERVISED, losses
from contrastbench.losses.spec import LossSpec

TITLE = "name"  # the key of an entry that names the row
# keys that the sweep which a file extends sets
EXTENDED = ("seeds", "tune", "decimals", "test", "quick", "draft")


class DomainPart(Strict):
    """The datasets and the recipe of one domain in a sweep."""

    datasets: list[str | dict[str, Params | str]] | None = Field(
        None,
        description="default: the domain's embedded one; {SET: {..}} adds to its recipe, and "
        "{SET: {}, name: Mine} names its column",
    )
    recipe: Params = Field({})
    trial_seeds: list[Seed] = Field([], description="seeds of trials, instead of those of tune")
    temperature: tuple[Annotated[float, Field(gt=0)], float] | None = Field(
        None, strict=False, description="range of all losses in a search at shared points"
    )

    def columns(self, domain: str) -> Iterator[tuple[str, Column]]:
        """Yield the name and the column of each dataset, with the domain's recipe or its own.

        Raises:
            UserError: a name is of no dataset or of several, or a recipe is none.
        """
        embedded = [declaration(domain).default]
        for entry in embedded if self.datasets is None else self.datasets:
            entry = {entry: {}} if isinstance(entry, str) else entry
            title = title_of(entry, "dataset")
            for dataset, own in entry.items():
                if isinstance(own, str) and dataset == TITLE:
                    continue
                if isinstance(own, str):
                    raise UserError(f"{dataset} is {own!r}: give recipe values, or {{}}")
                column = Column(
                    dataset=dataset,
                    domain=domain,
                    recipe=self.recipe | own,
                    trial_seeds=self.trial_seeds,
                    temperature=self.temperature,
                )
                yield title or dataset, column


class QuickPart(Strict):
    """The data sets and seeds of the quick part of a sweep."""

    datasets: list[str]
    seeds: str | int | list[int] = "0-2"


class SweepFile(Strict):
    """The keys of a sweep file."""

    title: str = ""
    source: str = "records"
    notes: str = ""
    extends: str | None = None
    seeds: str | int | list[int] = "0-4"
    domains: dict[str, DomainPart] = Field({})
    losses: list[str | dict[str, Params | str]] = Field([])
    tune: Tune | None = None
    decimals: int = Field(2, ge=0, le=10)
    controls: bool | list[str] = Field(
        False, description="rows that must come out worse or better, see `tables.controls`"
    )
    test: SetTestName | None = Field(
        None, description="of a comparison over data sets, where none is asked for"
    )
    quick: QuickPart | None = None
    draft: bool = Field(False, description="a suite that is not released")


@dataclass(frozen=True)
class Listed:
    """A loss as a sweep file lists it."""

    name: str  # as it is written there, without the path where its file was looked up
    loss: LossSpec
    title: str = ""  # of its row, in place of the loss with what was given

    @property
    def label(self) -> str:
        """Return the row's name."""
        params = ", ".join(f"{key}={value}" for key, value in self.loss.params.items())
        return self.title or (f"{self.name} ({params})" if params else self.name)


SMOKE = SweepFile(
    title="every loss in every domain",
    seeds="0",
    domains={name: DomainPart() for name in DOMAINS},
    losses=["all", "none"],
)


def check_parts(file: SweepFile, document: Document) -> None:
    """Raise unless losses meet data, or extend those that do, and nothing else of them."""
    for key in ("domains", "losses"):
        if not file.extends and not getattr(file, key):
            raise document.wrong_at([key], f"the sweep has no {key}: give at least one")
    if file.extends:
        for key in EXTENDED:
            if key in file.model_fields_set:
                raise document.wrong_at(
                    [key], f"{file.extends}, which this sweep extends, sets it: remove it"
                )
        if not (file.domains or file.losses or file.controls):
            raise document.wrong_at(
                ["extends"], "nothing is added: give domains, losses or controls: true"
            )


def dataset_columns(
    file: SweepFile, document: Document, taken: Mapping[str, Column]
) -> Iterator[tuple[str, Column]]:
    """Name and column of each dataset that is not taken."""
    for domain, part in file.domains.items():
        with document.at("domains", domain):
            check_domain_name(domain)
        with document.at("domains", domain, "recipe"):
            make_recipe(domain, part.recipe)
        names = [*taken]
        with document.at("domains", domain, "datasets"):
            columns = list(part.columns(domain))
        for i, (name, column) in enumerate(columns):
            with document.at("domains", domain, "datasets", i):
                check_listed_dataset(domain, column.dataset or "")
                names.append(name)
                check_distinct(names, "dataset")
                make_recipe(domain, column.recipe)
            yield name, column


def listed_losses(file: SweepFile, document: Document) -> list[Listed]:
    """Return the losses that a file lists."""
    return [one for i, entry in enumerate(file.losses) for one in of_entry(entry, document, i)]


def of_entry(entry: str | dict[str, Params | str], document: Document, i: int) -> Iterator[Listed]:
    """The losses that an entry of the list means."""
    if isinstance(entry, str):
        entry = {entry: {}}
    where = ("losses", i)
    with document.at(*where):
        title = title_of(entry, "loss")
    for name, params in entry.items():
        if name == TITLE:
            continue
        with document.at(*where, name):
            if isinstance(params, str):
                raise UserError(
                    f"{name} is {params!r}: give its parameters, such as {{temperature: 0.5}}"
                )
            if name == "all":
                if title:
                    raise UserError("all stands for every loss and takes no name: remove it")
                if params:
                    raise UserError(
                        "all stands for every loss and takes no parameters: name one loss instead"
                    )
                every = (name for name in losses() if name not in SUPERVISED)
                yield from (Listed(one, LossSpec(one)) for one in every)
                continue
            loss = LossSpec(with_files_beside(name, document.path), params)
            _ = loss.complete  # an unknown name or parameter is an error of this line
            yield Listed(name, loss, title)


def title_of(entry: Mapping[str, Params | str], what: str) -> str:
    """Return the name that an entry of a list gives to its loss or dataset; "" for none."""
    if not entry:
        raise UserError(f"the entry is empty: name a {what}, or remove it")
    title, count = entry.get(TITLE, ""), len(entry) - (TITLE in entry)
    if not isinstance(title, str):
        raise UserError(f"{TITLE} is {title}: give a text")
    if title and count != 1:
        fix = (
            "give each its own entry"
            if count
            else f"write {{{what.upper()}: {{}}, {TITLE}: {title}}}"
        )
        raise UserError(f"{TITLE} {title} is for one {what}, not for {count}: {fix}")
    return title


def with_files_beside(loss: str, path: Path | None) -> str:
    """The loss with its own files beside the sweep file, or else from the current folder."""

    def found(match: re.Match[str]) -> str:
        here = path.parent / match[0] if path else Path(match[0])
        return str(here) if isfile(here) else match[0]  # noqa: PTH113 - too long a name is none

    return re.sub(r"[^\s*+]+\.py(?=:)", found, loss)


def check_tune(file: SweepFile, seeds: Sequence[int]) -> None:
    """Raise if seeds choose and confirm, or if nothing can be searched again."""
    again = not isinstance(file.controls, bool) and AGAIN in file.controls
    if again and not (file.tune and file.tune.search == "points"):
        raise UserError(
            f"{AGAIN} is another search at shared points: give tune: {{search: points}}"
        )
    if not file.tune:
        return
    own = (seed for part in file.domains.values() for seed in part.trial_seeds)
    shared = {*file.tune.seeds, *own} & {*seeds}
    if shared:
        raise UserError(f"seeds {sorted(shared)} are in tune and in seeds: tune with other seeds")


def check_distinct(names: list[str], what: str) -> None:
    """Raise if a name is there twice."""
    double = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if double is not None:
        raise UserError(f"{what} {double} is listed twice: remove one")


def check_seeds(seeds: str | int | list[int]) -> list[int]:
    """The seeds as a list."""
    text = ",".join(map(str, seeds)) if isinstance(seeds, list) else str(seeds)
    return parse_seeds(text, "seeds")
