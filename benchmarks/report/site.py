"""Make the pages of the report: each by its template, linked by relative addresses."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup, escape

from contrastbench.benchmarks.records import files
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.records.store import file_name
from contrastbench.benchmarks.report import contents, losses, words
from contrastbench.benchmarks.report.comparison import comparison_rows
from contrastbench.benchmarks.report.contents import Group, TableView, settings_line, titles
from contrastbench.benchmarks.report.figures import with_minus
from contrastbench.benchmarks.report.tables import choice_lines, render_table
from contrastbench.benchmarks.report.words import TEMPLATES
from contrastbench.benchmarks.running.provenance import provenance
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables.load import NEWEST, load_table
from contrastbench.benchmarks.tables.schema import Tune
from contrastbench.domains.progress import Progress
from contrastbench.losses.spec import LossSpec

INDEX, RECORDS, ADD = "index", "records/index", "add-your-loss"
STUDIES = "Studies"  # the heading of sweeps and files of the user
MOST_RECORDS = 20_000  # with a line of their own: about 6 MB
SiteFiles = dict[str, str]  # by path in the folder


class Page(NamedTuple):
    """One page: its name is its path without the ending."""

    name: str
    title: str
    template: str
    values: dict[str, Any]


@dataclass(frozen=True)
class Report:
    """The tables and records that a report is of."""

    shown: Sequence[TableView]
    groups: Sequence[Group]  # all, by number
    chosen: Sequence[Group]  # those that the report shows
    named: bool  # whether tables were asked for by name

    @cached_property
    def losses(self) -> list[str]:
        return losses.page_losses(self.shown, self.chosen, not self.named)

    @property
    def families(self) -> dict[str, list[str]]:
        return grouped((losses.family(name) or "sums and others", name) for name in self.losses)

    @cached_property
    def tuning(self) -> set[int]:
        """Return the seeds that choose parameters, which are no results."""
        return {*Tune().seeds, *(seed for view in self.shown for seed in view.table.tuning_seeds)}

    @cached_property
    def told(self) -> list[Group]:
        """Return experiments with a page: those behind numbers, and others while there is room."""
        behind = {n for view in self.shown for some in view.behind.values() for n in some}
        first = sorted(self.chosen, key=lambda group: group.number not in behind)
        ends = zip(first, accumulate(len(group.records) for group in first), strict=True)
        return [one for one, end in ends if end <= MOST_RECORDS or one.number in behind]

    @property
    def statuses(self) -> Counter[str]:
        return Counter(record["status"] for group in self.chosen for record in group.records)

    @property
    def summary(self) -> str:
        counted = f"tables: {len(self.shown)}, experiments: {len(self.chosen)}"
        return f"{counted}, records: {self.statuses.total()}"


def read_report(
    names: Sequence[str], results: Path, joining: Sequence[LossSpec] = (), quick: bool = False
) -> Report:
    # own sweeps, the standing comparison, published tables
    ours = sorted(catalogue.table_names(), key=lambda name: not name.startswith("standard-"))
    wanted = names or [*map(str, sorted(results.glob("*.yaml"))), *ours]
    # a wrong name ends it at once
    tables = [load_table(name, losses=joining, quick=quick) for name in wanted]
    groups = contents.read_groups(results)
    shown = list(contents.table_views(tables, results, groups))
    # of named tables also those of the same losses on the same data with other parameters
    used = {groups[n].folder for view in shown for some in view.behind.values() for n in some}
    chosen = [group for group in groups if not names or group.folder in used]
    return Report(shown, groups, chosen, bool(names))


def pages(report: Report) -> Iterator[Page]:
    board = leaderboard(report.shown)
    times = contents.costs(board, report.groups) if board else {}
    about = {"board": board, "papers": by_paper(report.shown), "times": times}
    yield Page(INDEX, "Contrastive losses, compared", "index", about)
    for view in report.shown:
        values = {"one": view, "choices": choice_lines(view.resolved)}
        yield Page(view.page, view.table.name, "table", values)
    yield from loss_pages(report, board)
    yield Page(ADD, "Add your loss", "add", {})
    sets = grouped((group.page, group) for group in report.told)
    yield Page(RECORDS, "Records", "records", {"sets": sets})
    for name, members in sets.items():
        first = members[0].first
        title = f"Records of {first['dataset']} ({first['domain']})"
        yield Page(name, title, "dataset", {"groups": members, **by_loss(members)})


def by_loss(members: Sequence[Group]) -> dict[str, Any]:
    by_name: dict[str, list[Group]] = grouped((group.first["loss"], group) for group in members)
    recipes = [group.first["recipe"] for group in members]
    first = {**recipes[0], "protocol": members[0].first["protocol"]}
    shared = {key: first[key] for key in first if len({str(r.get(key)) for r in recipes}) == 1}
    return {"losses_here": {name: titles(some) for name, some in by_name.items()}, "shared": shared}


def leaderboard(shown: Sequence[TableView]) -> TableView | None:
    """Return the standing comparison, or else the first table that decides over data sets."""
    standing = NEWEST["standard"]
    drawn = (v for v in shown if v.verdicts and (v.verdicts.decides or v.table.name == standing))
    seen = (view for view in drawn if view.effects)
    return min(seen, key=lambda view: view.table.name != standing, default=None)


def loss_pages(report: Report, board: TableView | None) -> Iterator[Page]:
    judged = board.verdicts.rows if board and board.verdicts else ()
    effects = {name: row for row in judged for name in (row.effect.row, *row.effect.also)}
    figure = board and board.effects
    for name in report.losses:
        values = {"board": board, "own": effects.get(name), "figure": figure and figure.only(name)}
        yield Page(loss_page(name), name, "loss", {"loss": name, **values})


def loss_page(name: str) -> str:
    return f"losses/{file_name(name)}"


def by_paper(tables: Sequence[TableView]) -> dict[str, list[TableView]]:
    """Return the studies, and then the published tables by their paper."""
    papers = []
    for view in tables:
        published = view.table.quotes and view.table.name in catalogue.table_files()
        source = view.table.source  # ends in the number of the table
        papers.append((source.rpartition(", ")[0] or source if published else STUDIES, view))
    return grouped(sorted(papers, key=lambda one: one[0] != STUDIES))


def render_site(report: Report, single: bool, home: bool = False) -> SiteFiles:
    """Return the files of the report, whose pages link the site above it if that is their home."""
    wanted = list(pages(report))
    made = jinja_environment()
    known = {page.name for page in wanted}
    made.globals |= {"report": report, "single": single, "known": known, "home": home}
    bodies = dict(rendered(made, wanted, single))
    frame = made.get_template("frame.html.j2")
    if single:
        link = partial(address, INDEX, single)
        return {"": frame.render(title=wanted[0].title, bodies=bodies, here=INDEX, link=link)}
    site = {
        f"{page.name}.html": frame.render(
            title=page.title,
            bodies={page.name: bodies[page.name]},
            here=page.name,
            link=partial(address, page.name, single),
        )
        for page in wanted
    }
    beside = {name: text_of(name) for name in ("style.css", "script.js")}
    return site | linked_files(report) | beside


def rendered(env: Environment, pages: Sequence[Page], single: bool) -> Iterator[tuple[str, Markup]]:
    with Progress(len(pages), "pages") as progress:
        for page in pages:
            template = env.get_template(f"{page.template}.html.j2")
            name = f"{page.name}:" if single else ""
            about = {"page": page, "link": partial(address, page.name, single)}
            values = {**page.values, **about, "id": name.__add__}
            yield page.name, Markup(template.render(**values))
            progress.step(page.name)


def address(here: str, single: bool, page: str, anchor: str = "", ending: str = ".html") -> str:
    """Return the address of a page, or of a place on it, as another page links it.

    >>> address("tables/a", False, "records/graph/MUTAG/adnce", "0123")
    '../records/graph/MUTAG/adnce.html#0123'
    >>> address("tables/a", True, "records/graph/MUTAG/adnce", "0123")
    '#records/graph/MUTAG/adnce:0123'
    """
    if single:
        return f"#{quote(page, safe='/:')}" + (f":{quote(anchor)}" if anchor else "")
    path = posixpath.relpath(page + ending, posixpath.dirname(here) or ".")
    return quote(path) + (f"#{quote(anchor)}" if anchor else "")


def linked_files(report: Report) -> SiteFiles:
    linked: SiteFiles = {}
    for view in report.shown:
        linked[f"{view.page}.csv"] = render_table(view.resolved, "csv")
        if view.figure:
            linked[f"{view.page}.svg"] = words.drawn(view.figure)
        if view.verdicts:
            tests = files.comma_separated(comparison_rows(view.verdicts), "{:.6g}")
            linked[f"{view.page}-tests.csv"] = tests
    return linked


def text_of(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def jinja_environment() -> Environment:
    """Return the templates; autoescape is on for all that is not marked as ours."""
    made = words.environment(autoescape=True)
    about = {"version": provenance().version or "", "losses": losses, "loss_page": loss_page}
    made.globals |= {**about, "RECORDS": RECORDS, "INDEX": INDEX, "ADD": ADD}
    made.globals["ours"] = lambda name: Markup(text_of(name))
    made.filters |= {"signed": with_minus, "pairs": settings_line, "code": as_code}
    return made


def as_code(text: str) -> Markup:
    """Return a text as HTML, with what stands between backticks as code.

    >>> str(as_code("`a<b` or c"))
    '<code>a&lt;b</code> or c'
    """
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))
