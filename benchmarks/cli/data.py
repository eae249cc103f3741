"""Command `bench data`: downloads, and reports on data."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.options import parse_pairs
from contrastbench.benchmarks.cli.output import say
from contrastbench.benchmarks.running.options import check_data_root
from contrastbench.errors import UserError, check_known, unknown
from contrastbench.losses.spec import NONE, LossSpec

ACTIONS = ("list", "fetch", "verify", "check")
Values = dict[str, Any]
MOST_LINES = 1000  # of a report that is asked for


def data(
    action: str,
    name: Annotated[str | None, Argument()] = None,
    domain: str | None = None,
    target: str | None = None,
    recipe: list[str] | None = None,
    data_root: opt.DataRoot = None,
) -> None:
    """List datasets, download, verify, or check them.

    Of a table or a sweep file, fetch brings all that it needs. Without a name, verify checks all
    datasets. Check reads a data set as `bench run` does, and says its sizes, equal samples, what
    was left out, converted or guessed, and what is probably wrong. Exit code 1: a file is damaged,
    differs from the declared one, or could not be fetched; or something is probably wrong.

    Args:
        action: Action: list, fetch, verify or check.
        name: Data set; to fetch or check also KIND:WHAT; to fetch a sweep file.
        domain: Domain of a data set to check.

    Example: bench data fetch MUTAG
    Example: bench data fetch my.yaml --data-root DIR
    Example: bench data check csv:mine.csv --target kind
    """
    options = {"--domain": domain, "--target": target, "--recipe": recipe}
    for option in (option for option, value in options.items() if value and action != "check"):
        raise UserError(f"{option} is for check: leave it out")
    check_known("action", action, ACTIONS)
    bad = False
    lines = of_declared(action, name, data_root)
    if action == "check":
        lines = checked(name, domain, target, parse_pairs("--recipe", recipe), data_root)
    for line, is_bad in lines:
        say(line)
        bad |= is_bad
    if bad:
        raise typer.Exit(1)


def checked(
    name: str | None, domain: str | None, target: str | None, recipe: Values, data_root: Path | None
) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a report on data, each with whether something is probably wrong."""
    if name is None:
        raise UserError("name a data set to check, such as csv:mine.csv")
    check_data_root(data_root)
    from contrastbench.benchmarks.records.experiment import make_experiment
    from contrastbench.domains.registry import declaration

    known_domain = domain_of(name, data_root) if domain is None else domain
    about = declaration(known_domain)
    values = {**about.checked, **(about.datasets[name].scored_by if name in about.datasets else {})}
    work = make_experiment(known_domain, name, LossSpec(NONE), values | recipe, False, target)
    from contrastbench.benchmarks.running.devices import open_device
    from contrastbench.benchmarks.running.opening import open_domain

    opened = open_domain(work, 0, data_root, open_device("cpu"))
    report = opened.report(trained="corpus" in work.recipe)
    yield from ((line, report.wrong) for line in report.lines(name, MOST_LINES, always=True))


def domain_of(name: str, data_root: Path | None) -> str:
    """Return the domain of a declared set, or of a kind that one domain alone reads."""
    from contrastbench.domains.own import PYTHON, unknown_dataset
    from contrastbench.domains.registry import loaded_declarations

    about = loaded_declarations()
    declared = [domain for domain, known in about.items() if name in known.datasets]
    kind, colon, _ = name.partition(":")
    kind = PYTHON if kind.endswith(".py") else kind
    reading = [domain for domain, known in about.items() if kind in (s.kind for s in known.sources)]
    domains = declared or (reading if colon else [])
    if len(domains) > 1:
        raise UserError(f"{kind}: is a kind of {', '.join(domains)}: add --domain")
    if not domains:
        known = [dataset for declaration in about.values() for dataset in declaration.datasets]
        sources = [source for declaration in about.values() for source in declaration.sources]
        raise unknown_dataset("", name, known, sources, data_root, "; or add --domain")
    return domains[0]


def of_declared(action: str, name: str | None, root: Path | None) -> Iterator[tuple[str, bool]]:
    """Yield the lines of list, fetch or verify, each with whether a file is damaged or missing."""
    from contrastbench.benchmarks.cli import listing
    from contrastbench.benchmarks.tables.load import is_table
    from contrastbench.domains.download import file_state
    from contrastbench.domains.registry import fetch_declared, known_data

    known, fetches, word = known_data(), action == "fetch", name or ""
    about = known.get(word)
    whole = fetches and not about and is_table(word)
    if word and not (about or whole or (fetches and ":" in word)):
        raise unknown("dataset", word, known)
    if root and fetches:
        root.mkdir(parents=True, exist_ok=True)
    check_data_root(root)
    if action == "list":
        yield from ((line, False) for line in listing.data_lines(root, name))
    elif action == "verify":
        for dataset in [about] if about else known.values():
            said, bad = file_state(dataset, root)
            yield f"{dataset.name:16} {said}", bad
    elif whole:
        yield from fetched(word, root)
    elif about and about.url:
        yield f"{name}: {fetch_declared(about, root)}", False
    else:
        raise UserError(f"{name or 'fetch'}: name a dataset that is downloaded (bench data list)")


def fetched(what: str, data_root: Path | None) -> Iterator[tuple[str, bool]]:
    """Fetch the data of a table or a sweep; yield a line for each, and whether it failed."""
    from contrastbench.benchmarks.sweeps.plan import runnable_places
    from contrastbench.benchmarks.tables.load import load_table
    from contrastbench.domains.registry import fetch

    asked: dict[tuple[str, ...], Callable[[], dict[str, str]]] = {}
    for work in (place.work for place in runnable_places(load_table(what))):
        name, recipe, trained = (work.domain, work.dataset), work.full_recipe, work.trained
        asked[name] = partial(lambda of, data: {data: fetch(of, data, data_root)}, *name)
        further = (*name, recipe.model_dump_json(), str(trained))
        asked[further] = partial(recipe.fetch, work.dataset, data_root, trained)
    said = set[str]()
    for ask in asked.values():
        try:
            lines, failed = [f"{name}: {place}" for name, place in ask().items()], False
        except UserError as error:
            lines, failed = [f"MISSING {error}"], True
        yield from ((line, failed) for line in lines if line not in said)
        said |= {*lines}
