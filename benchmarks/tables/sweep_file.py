"""A sweep of one's own: a short YAML file that says which losses meet which data.

It becomes a table without a paper.

    seeds: 0-4                         # or [0, 1, 2]; this is the default
    domains:
      graph: {datasets: [MUTAG, NCI1: {limit: 1000}], recipe: {augmentation: random4}}
      tabular: {}                      # the domain's embedded dataset, its default recipe
    losses: [all, none, {mine.py:Mine: {margin: 0.2}}]   # all: those that need no classes
                                       # {hcl: {}, name: HCL}: the row's name in tables
    grid: {temperature: [0.1, 0.2]}    # for every loss that has the parameter
    tune: {trials: 4}                  # choose among them by validation data; without a grid
                                       # in stages, or `search: hypercube`: among its defaults
                                       # and points of its declared ranges
    controls: true                     # rows that must come out worse or better than InfoNCE;
                                       # or a list of their names
    test: seeds                        # of a comparison over data sets: wilcoxon, t or seeds
    quick: {datasets: [MUTAG], seeds: 0-2}    # the part that `--quick` asks for
    draft: true                        # not released: every answer says so
    resources: {card: {devices: 1}}    # what jobs of a cluster get, see `tables.resources`
    extends: other.yaml                # all of another sweep, and what this file adds to it

A domain may have `trial_seeds`, which its trials take instead of those of `tune`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from os.path import isfile
from pathlib import Path
from typing import Any

from pydantic import Field

from contrastbench.benchmarks.records.seeds import parse_seeds
from contrastbench.benchmarks.tables.controls import asked_controls, supervised, with_controls
from contrastbench.benchmarks.tables.grid import has_duplicates
from contrastbench.benchmarks.tables.hypercube import Params
from contrastbench.benchmarks.tables.resources import ResourceClasses, check_resources
from contrastbench.benchmarks.tables.rows import Row
from contrastbench.benchmarks.tables.schema import Column, Seed, SetTestName, Tune
from contrastbench.benchmarks.tables.table import Quick, Table
from contrastbench.domains.registry import (
    DOMAINS,
    check_domain_name,
    check_listed_dataset,
    declaration,
    make_recipe,
)
from contrastbench.domains.strict import Strict
from contrastbench.domains.strict_yaml import Document
from contrastbench.errors import UserError, unknown
from contrastbench.losses.registry import SUPERVISED, losses
from contrastbench.losses.spec import LossSpec

TITLE = "name"  # the key of an entry that names the row
# a loss, its parameters of the grid, its line
LossEntry = tuple[LossSpec, list[str], list[int | str]]


class DomainPart(Strict):
    """The datasets and the recipe of one domain in a sweep."""

    datasets: list[str | dict[str, Params]] | None = Field(
        None, description="default: the domain's embedded one; {NAME: {..}} adds to its recipe"
    )
    recipe: Params = Field({})
    trial_seeds: list[Seed] = Field([], description="seeds of trials, instead of those of tune")

    @property
    def recipes(self) -> list[tuple[str, Params]]:
        """Return each dataset with its recipe: the domain's, changed by its own values."""
        entries: list[dict[str, Params]] = [
            {entry: {}} if isinstance(entry, str) else entry for entry in self.datasets or []
        ]
        return [(name, self.recipe | own) for entry in entries for name, own in entry.items()]


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
    grid: dict[str, list[Any]] = Field({})
    tune: Tune | None = None
    decimals: int = Field(2, ge=0, le=10)
    resources: ResourceClasses = Field({}, description="classes of cells, see `tables.resources`")
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
    title: str = ""  # of its rows, in place of the loss with what was given

    @property
    def label(self) -> str:
        """Return the row's name."""
        return self.label_at({})

    def label_at(self, chosen: Params) -> str:
        """Return the name of the row with these values of a grid."""
        shown = chosen if self.title else {**self.loss.params, **chosen}
        params = ", ".join(f"{key}={value}" for key, value in shown.items())
        name = self.title or self.name
        return f"{name} ({params})" if params else name

    @property
    def free(self) -> set[str]:
        """Parameters that a grid may set."""
        full = LossSpec(self.loss.name, self.loss.params).complete.params
        return set(full) - set(self.loss.params)


SMOKE = SweepFile(
    title="every loss in every domain",
    seeds="0",
    domains={name: DomainPart() for name in DOMAINS},
    losses=["all", "none"],
)


def to_table(
    file: SweepFile,
    document: Document,
    name: str,
    base: Table | None = None,
    released: bool = False,
) -> Table:
    """A row for each loss and setting of the grid, a column for each dataset.

    Args:
        file: the keys of the file.
        document: the file, for errors.
        name: the table's.
        base: what it extends.
        released: whether it ships with a package, so that it keeps the search of its release.
    """
    check_parts(file, document)
    check_resources(file.resources, document)
    tune = tuning_of_file(file, released)
    rows = all_rows(file, document, tune, base)
    columns = all_columns(file, document, base)
    controls = all_controls(file, document, base)
    if controls:
        rows = with_controls(rows, columns, controls)
    if file is SMOKE:
        rows = [*rows, *supervised(columns)]
    own = {"name": name, "columns": columns, "rows": rows, "controls": controls}
    return extended(base, file, own) if base else new_table(file, document, tune, own)


def extended(base: Table, file: SweepFile, own: Mapping[str, Any]) -> Table:
    """Return the table with the parts that a file adds to it."""
    added = {key: one for key, one in own["columns"].items() if key not in base.columns}
    return base.but(
        **own,
        title=file.title or f"{base.title}, extended",
        resources=file.resources or base.resources,
        trial_seeds=base.trial_seeds | trial_seeds(file, added),
    )


def new_table(
    file: SweepFile, document: Document, tune: Tune | None, own: Mapping[str, Any]
) -> Table:
    """Return the table of a file that extends no other."""
    with document.at("seeds"):
        seeds = check_seeds(file.seeds)
    return Table(
        **own,
        title=file.title or "our own runs",
        source=file.source,
        sweep=True,
        apart=file is SMOKE,
        notes=file.notes,
        decimals=file.decimals,
        domain=next(iter(file.domains)),
        seeds=seeds,
        grid=file.grid,
        tune=tune,
        trial_seeds=trial_seeds(file, own["columns"]),
        draft=file.draft,
        test=file.test,
        quick=declared_quick(file, document, own["columns"], seeds),
        resources=file.resources,
    )


def all_rows(
    file: SweepFile, document: Document, tune: Tune | None, base: Table | None
) -> list[Row]:
    """Return the rows of losses, those of the table that is extended first."""
    found = [
        one for i, entry in enumerate(file.losses) for one in listed_losses(entry, document, i)
    ]
    settings = (base.grid, base.tune) if base else (file.grid, tune)
    rows = [row for method in found for row in loss_rows(method, *settings)]
    rows = [*(base.rows if base else []), *rows]
    for key in file.grid:
        with document.at("grid", key):
            check_grid(key, file.grid[key], found)
    with document.at("tune"):
        check_tune(file)
    with document.at("losses"):
        check_distinct([row.name for row in rows], "loss")
        check_cells([row for row in rows if not row.control])
    return rows


def all_columns(file: SweepFile, document: Document, base: Table | None) -> dict[str, Column]:
    """Return the data sets, those of the table that is extended first."""
    taken = base.columns if base else {}
    columns = {**taken, **dict(dataset_columns(file, document, taken))}
    if not columns:
        raise document.wrong_at(["domains"], "the sweep has no data sets: name at least one")
    return columns


def all_controls(file: SweepFile, document: Document, base: Table | None) -> list[str]:
    """Return the controls, those of the table that is extended first."""
    with document.at("controls"):
        return asked_controls([*(base.controls if base else []), *asked_controls(file.controls)])


def trial_seeds(file: SweepFile, known: Mapping[str, Column]) -> dict[str, list[int]]:
    """Return the seeds of trials of the columns whose domain has its own."""
    own = {domain: part.trial_seeds for domain, part in file.domains.items() if part.trial_seeds}
    return {name: own[one.domain] for name, one in known.items() if one.domain in own}


def check_parts(file: SweepFile, document: Document) -> None:
    """Raise unless losses meet data, or extend those that do, and nothing else of them."""
    for key in ("domains", "losses"):
        if not file.extends and not getattr(file, key):
            raise document.wrong_at([key], f"the sweep has no {key}: give at least one")
    if file.extends:
        for key in ("seeds", "tune", "grid", "decimals", "test", "quick", "draft"):
            if key in file.model_fields_set:
                raise document.wrong_at(
                    [key], f"{file.extends}, which this sweep extends, sets it: remove it"
                )
        if not (file.domains or file.losses or file.controls):
            raise document.wrong_at(
                ["extends"], "nothing is added: give domains, losses or controls: true"
            )


def tuning_of_file(file: SweepFile, released: bool) -> Tune | None:
    """Return what a selection may cost, with its search.

    A file that names no search has a staged one; but a file of a package's has the hypercube, which
    was the only search when such files were released without the key.
    """
    if not file.tune or file.tune.search or file.grid:
        return file.tune
    return file.tune.but(search="hypercube" if released else "staged")


def loss_rows(method: Listed, grid: dict[str, list[Any]], tune: Tune | None) -> Iterator[Row]:
    """The rows of a loss: one that chooses, or one for each setting of the grid."""
    if not tune:
        yield from fixed(method, grid)
    else:
        mine = {key: values for key, values in grid.items() if key in method.free}
        yield Row(name=method.label, loss=method.loss.name, params=method.loss.params, grid=mine)


def dataset_columns(
    file: SweepFile, document: Document, taken: Mapping[str, Column]
) -> Iterator[tuple[str, Column]]:
    """Name and column of each dataset that is not taken."""
    for domain, part in file.domains.items():
        with document.at("domains", domain):
            check_domain_name(domain)
        with document.at("domains", domain, "recipe"):
            make_recipe(domain, part.recipe)
        embedded = [(declaration(domain).default, part.recipe)]
        recipes = embedded if part.datasets is None else part.recipes
        for i, (dataset, recipe) in enumerate(recipes):
            with document.at("domains", domain, "datasets", i):
                check_listed_dataset(domain, dataset)
                check_distinct([*taken, *(name for name, _ in recipes[: i + 1])], "dataset")
                make_recipe(domain, recipe)
            yield dataset, Column(dataset=dataset, domain=domain, recipe=recipe)


def listed_losses(
    entry: str | dict[str, Params | str], document: Document, i: int
) -> Iterator[Listed]:
    """The losses that an entry of the list means."""
    if isinstance(entry, str):
        entry = {entry: {}}
    with document.at("losses", i):
        title = title_of(entry)
    for name, params in entry.items():
        if name == TITLE:
            continue
        with document.at("losses", i, name):
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
                yield from (Listed(loss, LossSpec(loss)) for loss in every)
                continue
            loss = LossSpec(with_files_beside(name, document.path), params)
            _ = loss.complete  # an unknown name or parameter is an error of this line
            yield Listed(name, loss, title)


def title_of(entry: Mapping[str, Params | str]) -> str:
    """Return the name that an entry of the list gives to its loss; "" for none."""
    title, count = entry.get(TITLE, ""), len(entry) - (TITLE in entry)
    if not isinstance(title, str):
        raise UserError(f"{TITLE} is {title}: give a text")
    if title and count != 1:
        fix = "give each its own entry" if count else f"write {{LOSS: {{}}, {TITLE}: {title}}}"
        raise UserError(f"{TITLE} {title} has {count or 'no'} loss{'es' * (count > 1)}: {fix}")
    return title


def with_files_beside(loss: str, path: Path | None) -> str:
    """The loss with its own files beside the sweep file, or else from the current folder."""

    def found(match: re.Match[str]) -> str:
        here = path.parent / match[0] if path else Path(match[0])
        return str(here) if isfile(here) else match[0]  # noqa: PTH113 - too long a name is none

    return re.sub(r"[^\s*+]+\.py(?=:)", found, loss)


def fixed(base: Listed, grid: dict[str, list[Any]]) -> Iterator[Row]:
    """A row for each setting of the grid for parameters that the entry leaves open."""
    mine = {key: values for key, values in grid.items() if key in base.free}
    for values in product(*mine.values()):
        chosen = dict(zip(mine, values, strict=True))
        params = {**base.loss.params, **chosen}
        yield Row(name=base.label_at(chosen), loss=base.loss.name, params=params)


def check_grid(key: str, values: list[Any], losses: list[Listed]) -> None:
    """Raise unless there are values, each once, for a parameter that some loss leaves open."""
    if not values:
        raise UserError(f"the grid of {key} is empty: give it values or remove it")
    if has_duplicates(values):
        raise UserError(f"the grid of {key} has a value twice")
    known = {name for one in losses for name in one.free}
    if key not in known:
        raise unknown("parameter in the grid", key, known)


def check_tune(file: SweepFile) -> None:
    """Raise if seeds choose and confirm, or if two searches are asked for."""
    if not file.tune:
        return
    if file.grid and file.tune.search:
        raise UserError(f"search: {file.tune.search} has no grid: remove the grid or the search")
    own = (seed for part in file.domains.values() for seed in part.trial_seeds)
    shared = {*file.tune.seeds, *own} & set(check_seeds(file.seeds))
    if shared:
        raise UserError(f"seeds {sorted(shared)} are in tune and in seeds: tune with other seeds")


def declared_quick(
    file: SweepFile, document: Document, known: Mapping[str, Column], seeds: Sequence[int]
) -> Quick | None:
    """Return the quick part that a file declares, of its own data sets and seeds."""
    if not file.quick:
        return None
    with document.at("quick", "datasets"):
        for name in file.quick.datasets:
            if name not in known:
                raise unknown("data set of the sweep", name, known)
        check_distinct(file.quick.datasets, "dataset")
    with document.at("quick", "seeds"):
        own = check_seeds(file.quick.seeds)
        if others := sorted(set(own) - set(seeds)):
            raise UserError(f"seeds {others} are none of the sweep's: give some of its seeds")
    return Quick(file.quick.datasets, own)


def check_distinct(names: list[str], what: str) -> None:
    """Raise if a name is there twice."""
    double = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if double is not None:
        raise UserError(f"{what} {double} is listed twice: remove one")


def check_cells(rows: list[Row]) -> None:
    """Raise if two rows are the same cells under two names.

    An alias, or a default that is spelt out.
    """
    seen: list[tuple[tuple[LossSpec, str, Any], Row]] = []
    for row in rows:
        loss = LossSpec(row.loss or "none", row.params)
        cells = (loss.complete, loss.code, row.grid)
        for other_cells, other in seen:
            if cells == other_cells:
                raise UserError(f"losses {other.name} and {row.name} are the same: remove one")
        seen.append((cells, row))


def loss_entries(file: SweepFile, document: Document) -> Iterator[LossEntry]:
    """Yield the values that a sweep file gives to losses."""
    for i, entry in enumerate(file.losses):
        for one in listed_losses(entry, document, i):
            for row in fixed(one, file.grid):
                grid = [key for key in row.params if key not in one.loss.params]
                yield LossSpec(row.loss or "none", row.params), grid, ["losses", i, one.name]


def check_seeds(seeds: str | int | list[int]) -> list[int]:
    """The seeds as a list."""
    text = ",".join(map(str, seeds)) if isinstance(seeds, list) else str(seeds)
    return parse_seeds(text, "seeds")
