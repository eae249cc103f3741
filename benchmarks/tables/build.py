"""Build a sweep's table from its file, from the sweep that it extends, and from what is asked for.

A table is built once and never changed: losses that join it, its quick part and the tiny recipes of
a smoke test are arguments here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os.path import isfile
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records.seeds import parse_seeds
from contrastbench.benchmarks.tables import controls as controlling
from contrastbench.benchmarks.tables import schema
from contrastbench.benchmarks.tables.controls import AGAIN
from contrastbench.benchmarks.tables.table import NO_QUICK_PART, QUICK, Table
from contrastbench.domains import registry
from contrastbench.domains.reading import doubles, refuse
from contrastbench.domains.recipe import laid_over
from contrastbench.domains.strict_yaml import Document
from contrastbench.errors import UserError, check_known, unknown
from contrastbench.losses.registry import SUPERVISED, losses
from contrastbench.losses.spec import NONE, LossSpec

Entry = str | dict[str, schema.Params | str]  # of a list of losses or data sets
TITLE = "name"  # the key of an entry that names its row or column
# keys that the sweep which a file extends sets
EXTENDED = ("seeds", "tune", "decimals", "quick", "draft")
SMOKE = schema.SweepFile(
    title="every loss in every domain",
    seeds="0",
    domains={name: schema.DomainPart() for name in registry.DOMAINS},
    losses=["all", "none"],
)


@dataclass(frozen=True)
class Asked:
    """What a command asks of a table besides what its file says, see `load_table`."""

    losses: Sequence[LossSpec] = ()
    quick: bool = False
    tiny: bool = False


def build_sweep(
    file: schema.SweepFile,
    document: Document,
    name: str,
    base: Table | None = None,
    asked: Asked = Asked(),
) -> Table:
    """A row for each loss, a column for each dataset."""
    check_parts(file, document)
    columns = listed_columns(file, document, base.columns if base else {})
    listed = [*(base.rows if base else ()), *listed_rows(file, document)]
    with document.at("losses"):
        check_rows(listed)
    listed = kept_to(listed, file, document, columns)
    facts = dict(base) if base else file_facts(file, document, columns)
    with document.at("controls"):
        named = [*(base.controls if base else ()), *controlling.asked_controls(file.controls)]
        controls = controlling.asked_controls(named)
        if AGAIN in controls and not facts["tune"]:
            fix = "give tune: {}"
            raise UserError(f"{AGAIN} is another search, and nothing is searched: {fix}")
    joined = [
        row_of(loss, loss.name, beside=asked.quick)
        for loss in asked.losses
        if not any(has_loss(row, loss) for row in listed)
    ]
    rows: list[schema.Row] = [*listed, *joined]
    if controls:
        rows = controlling.with_controls(rows, columns, controls)
    rows += controlling.supervised(columns) if file is SMOKE else ()
    facts |= {"name": name, "columns": columns, "rows": rows, "controls": controls}
    facts |= {"sweep": True, "apart": file is SMOKE, "tiny": asked.tiny}
    facts["asked"] = [r.name for r in rows if any(has_loss(r, loss) for loss in asked.losses)]
    facts["joined"] = [row.name for row in joined]
    facts["title"] = title_of(file, base, bool(joined) and not asked.quick)
    facts |= quick_facts(facts, listed) if asked.quick else {}
    check_rows(facts["rows"])
    return Table(**facts)


def title_of(file: schema.SweepFile, base: Table | None, joined: bool) -> str:
    title = file.title or (base.title if base else "our own runs")
    more = joined or (base and not file.title)
    return f"{title}, extended" if more and not title.endswith(", extended") else title


def check_parts(file: schema.SweepFile, document: Document) -> None:
    """Raise unless losses meet data, or extend those that do, and nothing else of them."""
    for key in ("domains", "losses"):
        if not file.extends and not getattr(file, key):
            raise document.wrong_at([key], f"the sweep has no {key}: give at least one")
    if not file.extends:
        return
    for key in EXTENDED:
        if key in file.model_fields_set:
            fault = f"{file.extends}, which this sweep extends, sets it: remove it"
            raise document.wrong_at([key], fault)
    if not (file.domains or file.losses or file.controls):
        fault = "nothing is added: give domains, losses or controls: true"
        raise document.wrong_at(["extends"], fault)


def file_facts(
    file: schema.SweepFile, document: Document, columns: Mapping[str, schema.Column]
) -> dict[str, Any]:
    """Return what the table of a file that extends no other has from it."""
    tune = file.tune
    seeds = sorted({seed for column in columns.values() for seed in column.seeds})
    with document.at("tune"):
        if shared := {*tune.seeds} & {*seeds} if tune else None:
            fix = "tune with other seeds"
            raise UserError(f"seeds {sorted(shared)} are in tune and in seeds: {fix}")
    return {
        "source": file.source,
        "notes": file.notes,
        "findings": file.findings,
        "decimals": file.decimals,
        "domain": next(iter(file.domains)),
        "seeds": seeds,
        "tune": tune,
        "draft": file.draft,
        "quick": declared_quick(file, document, columns, seeds),
    }


def shown_seeds(file: schema.SweepFile, document: Document, domain: str) -> list[int]:
    """Return the seeds of a domain, its own or the sweep's; []: those of the sweep it extends."""
    own = file.domains[domain].seeds
    where: list[int | str] = ["seeds"] if own is None else ["domains", domain, "seeds"]
    if file.extends and own is not None:
        raise document.wrong_at(where, f"{file.extends}, which this sweep extends, sets the seeds")
    with document.at(*where):
        return [] if file.extends else seed_numbers(file.seeds if own is None else own)


def seed_numbers(seeds: str | int | list[int]) -> list[int]:
    text = ",".join(map(str, seeds)) if isinstance(seeds, list) else str(seeds)
    return parse_seeds(text, "seeds")


def declared_quick(
    file: schema.SweepFile,
    document: Document,
    known: Mapping[str, schema.Column],
    seeds: Sequence[int],
) -> schema.QuickPart | None:
    if not file.quick:
        return None
    with document.at("quick", "datasets"):
        for name in file.quick.datasets:
            check_known("data set of the sweep", name, known)
        check_distinct(file.quick.datasets, "dataset")
    with document.at("quick", "seeds"):
        own = seed_numbers(file.quick.seeds)
        if others := sorted(set(own) - set(seeds)):
            raise UserError(f"seeds {others} are none of the sweep's: give some of its seeds")
    return file.quick.but(seeds=own)


def quick_facts(whole: Mapping[str, Any], listed: Sequence[schema.Row]) -> dict[str, Any]:
    """Return what makes a suite its quick part: a table with a name and a title of its own.

    Where losses join it, it has the baseline, the controls and these losses, no others. Nothing is
    searched there, so another search is no control.
    """
    name, part, columns = whole["name"], whole["quick"], whole["columns"]
    if not part:
        raise UserError(f"{name} {NO_QUICK_PART}")
    base, all_rows = schema.baseline(listed), [row for row in whole["rows"] if row.control != AGAIN]
    kept = {base.name if base else "", *whole["asked"]}
    rows = [row for row in all_rows if row.control or row.name in kept]
    counts = {"data sets": (part.datasets, columns), "seeds": (part.seeds, whole["seeds"])}
    fewer = [f"{len(a)} of {len(b)} {what}" for what, (a, b) in counts.items() if len(a) < len(b)]
    return {
        "name": f"{name}{QUICK}",
        "title": f"Quick part of {name}" + f", {' with '.join(fewer)}" * bool(fewer),
        "columns": {name: columns[name].but(seeds=[]) for name in part.datasets},
        "rows": rows if whole["asked"] else all_rows,
        "joined": whole["asked"],
        "seeds": part.seeds,
        "is_quick": True,
    }


def listed_columns(
    file: schema.SweepFile, document: Document, taken: Mapping[str, schema.Column]
) -> dict[str, schema.Column]:
    """Return the data sets by name, those of the table that is extended first."""
    columns = dict(taken)
    for domain, part in file.domains.items():
        where = ("domains", domain)
        with document.at(*where):
            registry.check_domain_name(domain)
        with document.at(*where, "recipe"):
            registry.make_recipe(domain, part.recipe)
        seeds = shown_seeds(file, document, domain)
        listed = [registry.declaration(domain).default] if part.datasets is None else part.datasets
        for i, entry in enumerate(listed):
            with document.at(*where, "datasets", i):
                title, values = titled(entry, "dataset", "recipe values, or {}")
                for dataset, own in values.items():
                    registry.check_listed_dataset(domain, dataset)
                    check_distinct([*columns, title or dataset], "dataset")
                    registry.make_recipe(domain, laid_over(part.recipe, own))
                    columns[title or dataset] = schema.Column(
                        dataset=dataset,
                        domain=domain,
                        recipe=laid_over(part.recipe, own),
                        seeds=seeds,
                    )
    if not columns:
        raise document.wrong_at(["domains"], "the sweep has no data sets: name at least one")
    return columns


def titled(entry: Entry, what: str, values: str) -> tuple[str, dict[str, schema.Params]]:
    """Return the name that an entry gives to its row or column, or "", and what it lists."""
    listed: dict[str, Any] = {entry: {}} if isinstance(entry, str) else dict(entry)
    if not listed:
        raise UserError(f"the entry is empty: name a {what}, or remove it")
    title = listed.pop(TITLE, "")
    if not isinstance(title, str):
        raise UserError(f"{TITLE} is {title}: give a text")
    if title and len(listed) != 1:
        write = f"write {{{what.upper()}: {{}}, {TITLE}: {title}}}"
        fix = "give each its own entry" if listed else write
        raise UserError(f"{TITLE} {title} is for one {what}, not for {len(listed)}: {fix}")
    for name, own in listed.items():
        if isinstance(own, str):
            raise UserError(f"{name} is {own!r}: give {values}")
    return title, listed


def listed_rows(file: schema.SweepFile, document: Document) -> list[schema.Row]:
    rows: list[schema.Row] = []
    for i, entry in enumerate(file.losses):
        with document.at("losses", i):
            title, listed = titled(entry, "loss", "its parameters, such as {temperature: 0.5}")
        for name, params in listed.items():
            with document.at("losses", i, name):
                if name == "all":
                    rows += every_row(title, params)
                    continue
                loss = LossSpec(with_files_beside(name, document.path), params)
                _ = loss.complete  # an unknown name or parameter is an error of this line
                rows.append(row_of(loss, name, title))
    return rows


def kept_to(
    rows: Sequence[schema.Row], file: schema.SweepFile, document: Document, columns: Iterable[str]
) -> list[schema.Row]:
    """Return the rows, those of `only` with the columns that they run in."""
    there: dict[str, dict[str, schema.Params]] = {}
    for name, parts in file.only.items():
        with document.at("only", name):
            check_known("loss of the sweep", name, [row.name for row in rows])
            for part in parts:
                if not any(part in column for column in columns):
                    raise unknown("part of a data set's name", part, columns)
        there[name] = {c: {} for c in columns if any(part in c for part in parts)}
    return [row.but(recipe_by_column=there.get(row.name, row.recipe_by_column)) for row in rows]


def every_row(title: str, params: schema.Params) -> list[schema.Row]:
    if title or params:
        what = "name" if title else "parameters"
        raise UserError(f"all stands for every loss and takes no {what}: name one loss instead")
    return [row_of(LossSpec(name), name) for name in losses() if name not in SUPERVISED]


def row_of(loss: LossSpec, name: str, title: str = "", beside: bool = False) -> schema.Row:
    """Return the row of a loss; `beside`: it is trained at the baseline's setting."""
    params = ", ".join(f"{key}={value}" for key, value in loss.params.items())
    label = title or (f"{name} ({params})" if params else name)
    return schema.Row(name=label, loss=loss.name, params=loss.params, beside=beside)


def with_files_beside(loss: str, path: Path | None) -> str:
    """The loss with its own files beside the sweep file, or else from the current folder."""

    def beside(match: re.Match[str]) -> str:
        here = path.parent / match[0] if path else Path(match[0])
        return str(here) if isfile(here) else match[0]  # noqa: PTH113 - too long a name is none

    return re.sub(r"(?<![^\s*+])[^\s*+]+\.py(?=:)", beside, loss)


def has_loss(row: schema.Row, loss: LossSpec) -> bool:
    return row.loss == loss.name and row.params == loss.params and not row.control


def check_distinct(names: Sequence[str], what: str) -> None:
    refuse(what, (doubles(names), " {} is listed twice: remove one"))


def check_rows(rows: Sequence[schema.Row]) -> None:
    """Raise if two rows have one name, or are the same cells by an alias or a default spelt out."""
    check_distinct([row.name for row in rows], "loss")
    seen: list[tuple[LossSpec, str]] = []
    losses = [row for row in rows if not row.control]
    for row in losses:
        loss = LossSpec(row.loss or NONE, row.params)
        if (cells := (loss.complete, loss.code)) in seen:
            other = losses[seen.index(cells)].name
            raise UserError(f"losses {other} and {row.name} are the same: remove one")
        seen.append(cells)
