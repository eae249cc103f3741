"""What sources say of each table: the audit puts each key in exactly one of four lists."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from contrastbench.benchmarks.report.tables import audit_markdown, render_table
from contrastbench.benchmarks.tables import catalogue
from contrastbench.benchmarks.tables import load as loading
from contrastbench.benchmarks.tables.audit import (
    DEVIATES,
    HEADS,
    LEFT_OPEN,
    SAME,
    UNCOMPARED,
    Finding,
    PublishedPlace,
    findings,
    published_places,
)
from contrastbench.benchmarks.tables.catalogue import table_names
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import Resolved, resolve
from contrastbench.benchmarks.tables.table import Table
from contrastbench.domains.registry import declaration, declarations
from contrastbench.losses import UserError
from contrastbench.losses.registry import OURS, canonical_name, describe
from made_records import made
from opened import opened

FACTS: list[dict[str, Any]] = [
    {"from": "paper (4)", "recipe": {"epochs": 20, "folds": 10}, "evaluation": {"seeds": 2}},
    {"from": "open", "recipe": {"batch_size": "the code's"}, "params": {"temperature": "a guess"}},
]
TABLE: dict[str, Any] = {
    "title": "t",
    "source": "s",
    "decimals": 1,
    "domain": "graph",
    "metric": "accuracy",
    "seeds": [0, 1],
    "protocol": {"facts": FACTS},
    "columns": {
        "A": {"dataset": "MUTAG"},
        "B": {"dataset": "DD", "recipe": {"augmentation": "random3"}},
        "C": {},
    },
    "rows": [
        {"name": "quoted", "paper": {"A": [80.0, 1.0]}},
        {"name": "ours", "loss": "infonce", "paper": {"A": [85.0], "B": [75.0], "C": [1.0]}},
        {"name": "ours only", "loss": "adnce"},
    ],
}


def table(tmp_path: Path, *facts: dict[str, Any], **change: Any) -> Table:
    protocol = {"facts": [*FACTS, *facts]}
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump({**TABLE, "protocol": protocol, **change}, sort_keys=False))
    return load_table(str(path))


EMPTY = Path("no", "such", "results")


def lists(table: Table | Resolved) -> dict[str, dict[str, dict[str, Any]]]:
    """By verdict, then column: the findings on the row "ours" by key."""
    found: dict[str, dict[str, dict[str, Any]]] = {verdict: {} for verdict in HEADS}
    for place in published_places(
        table if isinstance(table, Resolved) else resolve(table, None, EMPTY)
    ):
        for finding in findings(place):
            found[finding.verdict].setdefault(place.cell.column, {})[finding.what] = finding
    return found


def add(results: Path, table: Table, column: str, seed: int, **change: Any) -> None:
    """The record of a seed of the row "ours", with changes."""
    work = table.places[table.rows[1].name, column].work
    values = {**work.full_recipe.model_dump(mode="json"), **change.pop("recipe", {})}
    made(results, work, seed, recipe=values, **change)


def test_each_key_is_in_one_list(tmp_path: Path) -> None:
    found = lists(table(tmp_path))
    place = next(iter(published_places(resolve(table(tmp_path), None, tmp_path))))
    every = [key for keys in place.ours.values() for key in keys]
    listed = [key for verdict in HEADS for key in found[verdict].get("A", {})]
    assert sorted(listed) == sorted(every)
    assert len(set(every)) == len(every)
    assert set(found[SAME]["A"]) == {"epochs", "folds", "seeds"}
    assert set(found[LEFT_OPEN]["A"]) == {"batch_size", "temperature"}
    assert not found[DEVIATES]
    assert {"lr", "augmentation", "C", "classifier", "model"} <= set(found[UNCOMPARED]["A"])


def test_our_own_recipes_are_no_words_of_the_paper(tmp_path: Path) -> None:
    found = lists(table(tmp_path, recipe={"lr": 0.5}))
    assert found[UNCOMPARED]["B"]["augmentation"].ours == "random3"
    assert found[UNCOMPARED]["A"]["lr"].ours == "0.5"


def test_values_deviate_with_source_and_reason(tmp_path: Path) -> None:
    says = {"from": "code (main.py)", "recipe": {"lr": 0.1}, "why": {"lr": "too large here"}}
    found = lists(table(tmp_path, says))[DEVIATES]["A"]["lr"]
    assert found.cells == ["lr", "0.1, code (main.py)", "0.01", "too large here"]


def test_parameters_and_evaluation_are_compared(tmp_path: Path) -> None:
    says = {"from": "paper (2)", "params": {"temperature": 0.5}, "evaluation": {"C": [1.0]}}
    found = lists(table(tmp_path, says))
    assert found[SAME]["A"]["temperature"].source == "paper (2)"
    assert found[DEVIATES]["A"]["C"].paper == "(1.0)"


def lacking(kind: str, name: str, domain: str) -> bool:
    """Return whether the library has no such thing, or has it where a reason says so."""
    about = declaration(domain)
    if kind == "loss":
        return canonical_name(name) not in OURS
    if kind == "data":
        return name not in about.datasets
    if kind == "preset":
        return name not in about.recipe.presets
    if kind == "elsewhere":
        return any(row.loss and "SimCLR" in row.name for row in load_table(name).rows)
    if kind == "printed":
        return name not in describe("adnce").params and "rayleigh" in str(describe("adnce").ranges)
    if kind == "metric":
        return all(
            name not in str(one.metric) for one in load_table("dasl-table4").columns.values()
        )
    keys = {"views": ("views", "augmentation")}.get(kind, (kind,))
    return not any(about.recipe.may_be(key, name) for key in keys)


@pytest.mark.parametrize("name", [name for name in table_names() if load_table(name).quotes])
def test_each_quoted_value_has_a_reason_that_is_true_of_the_library(name: str) -> None:
    shown = load_table(name)
    for row in shown.rows:
        quoted = row.loss is None and bool(row.paper)
        assert bool(row.quoted) == quoted, f"{row.name}: say why it is quoted, by `quoted`"
        if quoted:
            kind, thing = row.quoted.partition(":")[0].split()
            assert lacking(kind, thing, shown.domain), f"{row.name}: it is here: {row.quoted}"


def test_a_reason_that_the_library_refutes_is_seen() -> None:
    assert not lacking("loss", "byol", "image")
    assert not lacking("pairing", "query_key", "image")
    assert not lacking("views", "random2", "graph")
    assert not lacking("encoder", "resnet50", "image")
    assert not lacking("data", "CIFAR-10", "image")
    assert not lacking("preset", "adnce", "image")
    assert not lacking("elsewhere", "adnce-table5", "graph")
    assert not lacking("printed", "mu", "image")


def test_reasons_stand_in_audits_and_tables() -> None:
    resolved = resolve(load_table("adnce-table5"), None, EMPTY)
    for text in (audit_markdown(resolved), render_table(resolved, "md")):
        assert "JOAO (views joao: chosen while it trains)" in text


def test_the_last_statement_holds(tmp_path: Path) -> None:
    one, two = ({"from": f"paper ({n})", "recipe": {"epochs": 10 * n}} for n in (1, 2))
    assert lists(table(tmp_path, one))[DEVIATES]["A"]["epochs"].source == "paper (1)"
    assert lists(table(tmp_path, one, two))[SAME]["A"]["epochs"].source == "paper (2)"
    open_ = {"from": "open", "recipe": {"epochs": "nobody knows"}}
    assert lists(table(tmp_path, two, open_))[LEFT_OPEN]["A"]["epochs"].why == "nobody knows"


@pytest.mark.parametrize("where", [{"columns": ["B"]}, {"datasets": ["DD"]}])
def test_a_statement_may_be_of_some_places(tmp_path: Path, where: dict[str, Any]) -> None:
    says = {"from": "paper (3)", "recipe": {"augmentation": "random3"}, **where}
    found = lists(table(tmp_path, says))
    assert "augmentation" in found[SAME]["B"]
    assert "augmentation" in found[UNCOMPARED]["A"]
    rows = [{**TABLE["rows"][1], "name": name} for name in ("ours", "other")]
    of_one = {"from": "paper (3)", "recipe": {"lr": 0.01}, "rows": ["other"]}
    verdicts = {
        place.line.name: finding.verdict
        for place in published_places(resolve(table(tmp_path, of_one, rows=rows), None, tmp_path))
        for finding in findings(place)
        if finding.what == "lr"
    }
    assert verdicts == {"ours": UNCOMPARED, "other": SAME}


def test_seeds_of_some_rows_are_not_those_of_the_table(tmp_path: Path) -> None:
    assert table(tmp_path).protocol.seeds == 2
    of_one = {"from": "paper (3)", "evaluation": {"seeds": 7}, "rows": ["ours"]}
    assert table(tmp_path, of_one).protocol.seeds == 2
    open_ = {"from": "open", "evaluation": {"seeds": "ours"}}
    assert table(tmp_path, open_).protocol.seeds is None


def test_values_that_are_marked_as_printed_are_the_papers(tmp_path: Path) -> None:
    row = {
        **TABLE["rows"][1],
        "params_by_column": {"A": {"temperature": 0.3}, "B": {"temperature": 0.4}},
        "params_from": {"paper (Table 9)": ["temperature"]},
        "recipe": {"lr": 0.2},
        "recipe_from": {"code (go.sh)": ["lr"]},
    }
    column = {**TABLE["columns"]["B"], "recipe_from": {"code (README)": ["augmentation"]}}
    columns = {**TABLE["columns"], "B": column}
    marked = table(tmp_path, rows=[row], columns=columns, protocol={})
    found = lists(marked)[SAME]
    assert found["A"]["temperature"].cells == ["temperature: 0.3", "paper (Table 9)"]
    assert found["B"]["temperature"].cells == ["temperature: 0.4", "paper (Table 9)"]
    assert found["A"]["lr"].source == "code (go.sh)"
    assert found["B"]["augmentation"].source == "code (README)"
    assert "augmentation" not in found["A"]


def test_what_changes_nothing_is_not_compared(tmp_path: Path) -> None:
    untrained = {**TABLE["rows"][1], "loss": "none"}
    for rows, idle, active in (
        (TABLE["rows"], {"momentum", "mask_ratio"}, {"lr", "parameters", "temperature"}),
        ([untrained], {"lr", "augmentation", "model", "parameters"}, {"layers", "C", "seeds"}),
    ):
        found = lists(table(tmp_path, rows=rows))
        keys = {key for verdict in found.values() for key in verdict.get("A", {})}
        assert active <= keys
        assert not idle & keys


def test_a_difference_that_no_value_shows_deviates(tmp_path: Path) -> None:
    known = {"what": "order", "paper": "shuffled", "ours": "fixed", "why": "for resuming"}
    says = {"from": "code (main.py)", "columns": ["B"], "differs": [known]}
    found = lists(table(tmp_path, says))[DEVIATES]
    assert found["B"]["order"].cells[1:] == ["shuffled, code (main.py)", "fixed", "for resuming"]
    assert "A" not in found


def shared(tmp_path: Path, name: str, **content: Any) -> None:
    (tmp_path / "protocols").mkdir(exist_ok=True)
    (tmp_path / "protocols" / f"{name}.yaml").write_text(yaml.safe_dump(content))


def test_tables_share_protocols_and_say_the_last_word(tmp_path: Path) -> None:
    facts = [{"from": "code (a.py)", "recipe": {"epochs": 7, "lr": 0.01}}]
    shared(tmp_path, "mine", domain="graph", datasets=["MUTAG"], facts=facts)
    found = lists(table(tmp_path, protocol={"use": ["mine"], "facts": FACTS}))
    assert set(found[SAME]["A"]) >= {"lr", "epochs"}
    assert "lr" in found[UNCOMPARED]["B"]
    shared(tmp_path, "mine", domain="image", facts=facts)
    assert "lr" in lists(table(tmp_path, protocol={"use": ["mine"]}))[UNCOMPARED]["A"]


def test_a_statement_on_recipes_is_of_the_tables_own_domain(tmp_path: Path) -> None:
    other = {"dataset": "digits", "domain": "image", "metric": "accuracy"}
    columns = {**TABLE["columns"], "C": other}
    says = {"from": "paper (4)", "recipe": {"epochs": 20}}
    found = lists(table(tmp_path, says, columns=columns))
    assert "epochs" in found[SAME]["A"]
    assert "epochs" in found[UNCOMPARED]["C"]
    found = lists(table(tmp_path, {**says, "columns": ["C"]}, columns=columns))
    assert found[DEVIATES]["C"]["epochs"].ours == "25"


def test_a_wrong_shared_file_is_named(tmp_path: Path) -> None:
    shared(tmp_path, "mine", domain="graph", facts=[{"from": "paper (1)", "recipe": {"epoch": 1}}])
    with pytest.raises(UserError, match=r"mine\.yaml:\d+: unknown recipe key .* 'epoch'"):
        table(tmp_path, protocol={"use": ["mine"]})
    shared(tmp_path, "mine", domain="grap", facts=[])
    with pytest.raises(UserError, match=r"mine\.yaml:\d+: unknown domain 'grap'"):
        table(tmp_path, protocol={"use": ["mine"]})


def test_the_report_groups_places(tmp_path: Path) -> None:
    says = {"from": "paper (3)", "recipe": {"augmentation": "random3"}, "columns": ["B"]}
    text = audit_markdown(resolve(table(tmp_path, says), None, tmp_path))
    for heading in HEADS:
        assert text.count(f"#### {heading}\n") == 1
    assert "| everywhere | epochs: 20; folds: 10; seeds: 2 | paper (4) |" in text
    assert "| B | augmentation: random3 | paper (3) |" in text
    assert "| everywhere | batch_size: 128 | the code's |" in text
    assert (
        "- 4 published values: 2 quoted only, 2 can be run here, of which 2 are missing and 0 "
        "have too few seeds." in text
    )
    assert "- Published: mean over 2 runs." in text


def unstated(resolved: Resolved) -> Iterator[str]:
    """What a shipped table says too little of, and the line that says it."""
    name = resolved.table.name
    for place in published_places(resolved):
        kinds = {key: kind for kind, keys in place.ours.items() for key in keys}
        for finding in findings(place):
            where = f"{place.line.name}, {place.cell.column}: {finding.what} (ours {finding.ours})"
            file = f"benchmarks/tables/{name}.yaml, or in the file of protocols/ that it uses"
            if finding.verdict == UNCOMPARED:
                says = f"{{from: paper (B.3), {kinds[finding.what]}: {{{finding.what}: ...}}}}"
                yield f"{where} is not compared: state it in {file}, such as {says}"
            if finding.verdict == DEVIATES and not finding.why:
                yield f"{where} deviates without a reason: add it to `why` in {file}"


@pytest.mark.parametrize("name", [name for name in table_names() if "-table" in name])
def test_every_key_of_a_shipped_table_is_compared(name: str) -> None:
    resolved = resolve(load_table(name), None, EMPTY)
    assert not (list_ := list(unstated(resolved))), "\n".join(list_[:3])
    text = audit_markdown(resolved)
    assert ("nothing to audit" in text) or ("#### Same as the paper" in text)
    assert resolved.table.source in text


def test_a_sweep_has_no_published_values(tmp_path: Path) -> None:
    text = audit_markdown(resolve(load_table("standard"), None, tmp_path))
    assert "It has no published values: nothing to audit." in text


def test_shared_protocols_are_used() -> None:
    folder = catalogue.FOLDER / "protocols"
    used = {name for table in table_names() for name in load_table(table).protocol.use}
    assert {path.stem for path in folder.glob("*.yaml")} == used


@pytest.mark.parametrize("name", declarations())
def test_settings_of_the_evaluation_have_names_of_their_own(name: str) -> None:
    about = declarations()[name]
    assert not set(about.recipe().evaluation) & set(about.recipe.model_fields)
    assert about.recipe().idle(trained=False) <= set(about.recipe.model_fields)
    assert about.recipe.of_training <= set(about.recipe.model_fields)


EMBEDS = {"pairing": "balanced", "positives": 3, "batch_size": 20, "probe": "retrieval"}


@pytest.mark.parametrize(
    ("domain", "dataset", "common", "key", "values"),
    [
        ("tabular", "wine", {"batch_size": 32}, "pretraining", ("train", "train+validation")),
        ("image", "digits", EMBEDS, "projection", ((8,), (16, 4))),
        ("image", "digits", EMBEDS, "projection_norm", (False, True)),
    ],
)
def test_a_key_that_changes_an_untrained_score_is_not_idle(
    domain: str, dataset: str, common: dict, key: str, values: tuple
) -> None:
    """An audit would leave out what deviates."""
    made = [opened(domain, dataset, **common, **{key: value}) for value in values]
    assert any(key not in one.recipe.idle(trained=False) for one in made)
    first, second = (one.evaluate(one.model()).metrics for one in made)
    assert first != second


class Stated(NamedTuple):
    """A verdict on a key of a place, and a word of its source, its value or its reason."""

    table: str
    row: str
    column: str
    key: str
    verdict: str
    says: str


OWN = sorted(str(path) for path in (Path(__file__).parents[3] / "results").glob("*.yaml"))
STATED = [  # what is easily taken for another: whose code it is, open or printed, ours or theirs
    # ADNCE's aug.py gives random2 one rate, which its script does not pass; random3 has 0.1 and 0.2
    Stated("adnce-table10", "ADNCE", "DD", "drop_ratio", LEFT_OPEN, "noise_ratio"),
    Stated("adnce-table10", "ADNCE", "NCI1", "edge_ratio", SAME, "code (ADNCE, graph/aug.py)"),
    # the baseline's values are GraphCL's, and so is RényiCL's code
    Stated("adnce-table10", "GraphCL", "DD", "drop_ratio", SAME, "code (GraphCL, aug.py)"),
    Stated("renyicl-table6", "RényiCL", "DD", "augmentation", LEFT_OPEN, "not printed"),
    # a base rate, of an open batch size
    Stated("renyicl-table14", "CPC", "CovType RM", "lr", LEFT_OPEN, "base rate of 0.3"),
    Stated("renyicl-table14", "CPC", "CovType FC", "choice", LEFT_OPEN, "SCARF"),
    # evaluate.sh passes --pooler cls
    Stated("adnce-table4", "ADNCE-BERT-base", "STS12", "pooler", DEVIATES, "sentence/evaluate.sh"),
    Stated("adnce-table3", "InfoNCE (tau*)", "STL10 100", "temperature", SAME, "paper (Table 6)"),
    Stated("attentionnce-table1", "HCL", "STL10 200", "parameters", LEFT_OPEN, "not said"),
    Stated("attentionnce-table3", "AttentionNCE (M = 2)", "STL10", "d_pos", LEFT_OPEN, "M = 4"),
    Stated("renyicl-table1", "RényiCL (200 epochs)", "Top-1", "batch size", DEVIATES, "1,024"),
    Stated("renyicl-table8", "RényiCL", "Hard", "randaugment", SAME, "paper (B.3)"),
    # DASL: h = 512 is one width, and embeddings have length 1
    Stated("dasl-table2", "Npair", "CAR R@1", "projection", LEFT_OPEN, "512"),
    Stated("dasl-table2", "DASL-NP", "SOP R@1", "length of the embeddings", DEVIATES, "length 1"),
]


@cache
def load(name: str) -> Table:
    return loading.load_table(name)


def place(table: str, row: str, column: str) -> PublishedPlace:
    resolved = resolved_table(table)
    line = next(one for one in resolved.lines if one.name == row)
    return PublishedPlace(resolved, line, line.cells[column])


@cache
def resolved_table(name: str) -> Resolved:
    return resolve(load(name), None, Path("no", "such", "results"))


def words(finding: Finding) -> str:
    return " ".join(finding.cells)


@pytest.mark.parametrize("stated", STATED, ids=lambda s: f"{s.table} {s.key}")
def test_a_statement_is_that_of_its_source(stated: Stated) -> None:
    found = [f for f in findings(place(*stated[:3])) if f.what == stated.key]
    assert [f.verdict for f in found] == [stated.verdict]
    assert stated.says in words(found[0])


@pytest.mark.parametrize("name", table_names())
def test_top_5_is_asked_of_classifiers_that_have_it(name: str) -> None:
    table = load(name)
    for row in table.rows:
        for column in filter(lambda column: (row.name, column) in table.places, table.columns):
            if table.metric_of(column) == "top_5":
                assert table.places[row.name, column].work.full_recipe.probe_on_views.top_5


@pytest.mark.parametrize("name", [*table_names(), *OWN])
def test_notes_name_baselines_that_are_rows(name: str) -> None:
    table = load(name)
    rows = {row.name for row in table.rows}
    named = re.findall(r'--baseline (?:"([^"]+)"|(\w+))', table.notes)
    assert {quoted or word for quoted, word in named} <= rows
