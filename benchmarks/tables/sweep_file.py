"""A sweep of one's own: a short YAML file that says which losses meet which data. It becomes a table without a paper.

seeds: 0-4                         # or [0, 1, 2]; this is the default domains: graph: {datasets:
[MUTAG, PROTEINS], recipe: {augmentation: random4}} tabular: {}                      # the domain's
embedded dataset, its default recipe
losses: [all, none, {mine.py:Mine: {margin: 0.2}}]   # all: every registered one; mine.py lies
beside this file
grid: {temperature: [0.1, 0.2]}    # every loss that has the parameter, with each of these values
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field

from contrastbench.benchmarks.cli.arguments import parse_seeds, twice
from contrastbench.benchmarks.tables import catalogue, strict_yaml
from contrastbench.benchmarks.tables import table as tables
from contrastbench.benchmarks.tables.table import Column, Row, Strict, Table, Tune
from contrastbench.domains.registry import DOMAINS, check_domain, declaration, make_recipe
from contrastbench.losses.errors import UserError, unknown
from contrastbench.losses.registry import complete, get_loss, is_registered, losses

Params = dict[str, Any]
Given = tuple[
    str, Params, list[str], list[int | str]
]  # a loss, its parameters, those of the grid, where it stands


class Part(Strict):
    """What is run in a domain."""

    datasets: list[str] = Field([], description="default: the domain's embedded one")
    recipe: dict[str, Any] = Field({})


class SweepFile(Strict):
    """The file's keys."""

    title: str = ""
    seeds: str | list[int] = "0-4"
    domains: dict[str, Part] = Field(min_length=1)
    losses: list[str | dict[str, Params]] = Field(min_length=1)
    grid: dict[str, list[Any]] = Field({})
    tune: Tune | None = None
    decimals: int = Field(2, ge=0)


class Method(NamedTuple):
    """A loss with its parameters."""

    loss: str
    params: Params
    own: str = ""  # the loss as a sweep file has it, without the path where it was found

    @property
    def label(self) -> str:
        """The row's name: the loss with what was given."""
        text = ", ".join(f"{key}={value}" for key, value in self.params.items())
        name = self.own or self.loss
        return f"{name} ({text})" if text else name


SMOKE = SweepFile(
    title="every loss in every domain",
    seeds="0",
    domains={name: Part() for name in DOMAINS},
    losses=["all", "none"],
)
BUILT_IN = {"smoke": SMOKE}


def load(what: str) -> Table:
    """A published table or a sweep, by name or by the path of a user's own file.

    Raises:
        UserError: whatever is wrong, in one line with the file and the line in it.
    """
    if what in BUILT_IN:
        return to_table(BUILT_IN[what], Lines()).model_copy(update={"name": what})
    path = catalogue.find(what, also=BUILT_IN)
    if "losses" not in (strict_yaml.load(path) or {}):
        return tables.load(what)
    if path.stem in BUILT_IN:
        raise UserError(
            f"{path}: there is a sweep named {path.stem} already: give the file another name"
        )
    return to_table(strict_yaml.load_as(path, SweepFile), Lines(path)).model_copy(
        update={"name": path.stem}
    )


class Lines:
    """Where a file's parts stand."""

    def __init__(self, path: Path | None = None) -> None:
        self.path, self.node = path, strict_yaml.read(path)[0] if path else None

    @contextmanager
    def at(self, *where: int | str) -> Iterator[None]:
        """Mistakes found within are of this part."""
        try:
            yield
        except UserError as error:
            if self.path is None:
                raise
            raise UserError(
                f"{self.path}:{strict_yaml.line_of(self.node, list(where))}: {error}"
            ) from None


def to_table(file: SweepFile, lines: Lines) -> Table:
    """A row for each loss and setting of the grid, a column for each dataset."""
    found = [method for i, entry in enumerate(file.losses) for method in methods(entry, lines, i)]
    rows = [
        row
        for method in found
        for row in (tuned(method, file.grid) if file.tune else fixed(method, file.grid))
    ]
    for key in file.grid:
        with lines.at("grid", key):
            check_grid(key, file.grid[key], found)
    with lines.at("tune"):
        check_tune(file)
    with lines.at("losses"):
        check_distinct([row.name for row in rows], "loss")
        check_cells(rows)
    with lines.at("seeds"):
        seeds = check_seeds(file.seeds)
    return Table(
        title=file.title or "our own runs",
        source="records",
        decimals=file.decimals,
        domain=next(iter(file.domains)),
        columns=dict(columns(file, lines)),
        rows=rows,
        seeds=seeds,
        tune=file.tune,
        selection="validation: not chosen yet" if file.tune else "none: every setting is shown",
    )


def columns(file: SweepFile, lines: Lines) -> Iterator[tuple[str, Column]]:
    """Name and column of each dataset."""
    for domain, part in file.domains.items():
        with lines.at("domains", domain):
            check_domain(domain)
        with lines.at("domains", domain, "recipe"):
            make_recipe(domain, part.recipe)
        for i, dataset in enumerate(part.datasets or [declaration(domain).default]):
            with lines.at("domains", domain, "datasets", i):
                check_dataset(domain, dataset)
                check_distinct(part.datasets[: i + 1], "dataset")
            yield dataset, Column(dataset=dataset, domain=domain, recipe=part.recipe)


def check_dataset(domain: str, dataset: str) -> None:
    """Raise unless it is declared for the domain, a file such as csv:mine.csv, or of a package's domain."""
    known = declaration(domain).datasets
    if dataset not in known and ":" not in dataset and domain in DOMAINS:
        raise unknown(f"{domain} dataset", dataset, known)


def methods(entry: str | dict[str, Params], lines: Lines, i: int) -> Iterator[Method]:
    """The losses that an entry of the list means."""
    if isinstance(entry, str):
        entry = {entry: {}}
    for name, params in entry.items():
        with lines.at("losses", i, name):
            if name == "all":
                if params:
                    raise UserError("all takes no parameters: name the loss that has them")
                yield from (Method(loss, {}) for loss in losses())
            elif name == "none":
                if params:
                    raise UserError(
                        f"none is the untrained encoder and has no parameters, got {next(iter(params))}"
                    )
                yield Method("none", {})
            else:
                loss = beside(name, lines.path)
                complete(loss, params)
                yield Method(loss, params, own=name)


def beside(loss: str, path: Path | None) -> str:
    """The loss with its own Python files found beside the sweep file, or else as named from the current folder."""

    def found(match: re.Match[str]) -> str:
        here = path.parent / match[0] if path else Path(match[0])
        return str(here) if here.is_file() else match[0]

    return re.sub(r"[^\s*+]+\.py(?=:)", found, loss)


def fixed(base: Method, grid: dict[str, list[Any]]) -> Iterator[Row]:
    """A row for each combination of the grid's values for parameters that the loss has and the entry leaves open."""
    mine = {key: values for key, values in grid.items() if key in free(base)}
    for values in product(*mine.values()):
        method = base._replace(params={**base.params, **dict(zip(mine, values, strict=True))})
        yield Row(name=method.label, loss=method.loss, params=method.params)


def tuned(base: Method, grid: dict[str, list[Any]]) -> Iterator[Row]:
    """A row that chooses among these."""
    mine = {key: values for key, values in grid.items() if key in free(base)}
    yield Row(name=base.label, loss=base.loss, params=base.params, grid=mine)


def free(base: Method) -> set[str]:
    """Parameters that a grid may set."""
    known = set() if base.loss == "none" else set(complete(base.loss, base.params)[1])
    return known - set(base.params)


def check_grid(key: str, values: list[Any], losses: list[Method]) -> None:
    """Raise unless there are values, each once, for a parameter that some loss leaves open."""
    if not values:
        raise UserError(f"the grid of {key} is empty: give it values or remove it")
    if twice(values):
        raise UserError(f"the grid of {key} has a value twice")
    known = {name for method in losses for name in free(method)}
    if key not in known:
        raise unknown("parameter in the grid", key, known)


def check_tune(file: SweepFile) -> None:
    """Raise if there is nothing to choose from, or if seeds choose and confirm."""
    if not file.tune:
        return
    if not file.grid:
        raise UserError("tune chooses among the values of a grid: give one")
    shared = set(file.tune.seeds) & set(check_seeds(file.seeds))
    if shared:
        raise UserError(f"seeds {sorted(shared)} are among those that confirm: tune with others")


def check_distinct(names: list[str], what: str) -> None:
    """Raise if a name is there twice."""
    double = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if double is not None:
        raise UserError(f"{what} {double} is there twice: remove one")


def check_cells(rows: list[Row]) -> None:
    """Raise if two rows are the same cells under two names: an alias, or a default that is spelt out."""
    seen: dict[str, list[tuple[Params, Row]]] = {}
    for row in rows:
        loss = row.loss or ""
        name, params = (
            complete(loss, row.params)
            if loss != "none" and is_registered(loss)
            else (loss, row.params)
        )
        for other_params, other in seen.setdefault(name, []):
            if (params, row.grid) == (other_params, other.grid):
                raise UserError(f"losses {other.name} and {row.name} are the same: remove one")
        seen[name].append((params, row))


def check_values(what: str) -> None:
    """Raise for values in a user's own file that their loss refuses.

    That takes the loss itself, and so torch where values are given: only a sweep can wait for it.

    Raises:
        UserError: one is out of its range, in one line with the file and the line in it.
    """
    if not what.endswith(catalogue.ENDINGS):
        return
    path = catalogue.find(what, also=BUILT_IN)
    given = in_sweep if "losses" in (strict_yaml.load(path) or {}) else in_table
    for loss, params, grid, where in given(path):
        error = refusal(loss, params)
        if error is not None:
            for key in grid:
                if (
                    refusal(loss, {name: value for name, value in params.items() if name != key})
                    is None
                ):
                    where = ["grid", key]
            raise strict_yaml.wrong_at(path, where, error)


def in_sweep(path: Path) -> Iterator[Given]:
    """What a sweep file gives to losses."""
    file, lines = strict_yaml.load_as(path, SweepFile), Lines(path)
    for i, entry in enumerate(file.losses):
        for method in methods(entry, lines, i):
            for row in fixed(method, file.grid):
                grid = [key for key in row.params if key not in method.params]
                yield method.loss, row.params, grid, ["losses", i, method.own]


def in_table(path: Path) -> Iterator[Given]:
    """What a table gives to losses."""
    table = tables.load(str(path))
    for i, row in enumerate(table.rows):
        for column in (column for column in table.columns if tables.runnable(table, row, column)):
            where = ["params_by_column", column] if column in row.params_by_column else ["params"]
            work = tables.experiment(table, row, column)
            yield work.loss, work.params, [], ["rows", i, *where]


def refusal(loss: str, params: Params) -> UserError | None:
    """Why a loss cannot be had with these parameters."""
    if loss == "none" or not params:  # defaults are within their ranges
        return None
    try:
        get_loss(loss, **params)
    except UserError as error:
        return error
    return None


def check_seeds(seeds: str | list[int]) -> list[int]:
    """The seeds as a list."""
    return parse_seeds(seeds if isinstance(seeds, str) else ",".join(map(str, seeds)))
