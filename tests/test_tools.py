"""What the tools of the tests write, count and change, and the pages that they write."""

import ast
import math
from collections import Counter
from pathlib import Path

import pytest
import torch

import frozen
import mutation
import operations
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.sweeps import plan
from contrastbench.benchmarks.tables.audit import printed_values
from contrastbench.benchmarks.tables.catalogue import table_names
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.domains.registry import declaration
from contrastbench.losses.spec import LossSpec
from operations import PARTS, Sample, encoder_sample
from promises import PROMISES

NAMES = ["a", "b", "c"]
DRIFTED = math.nextafter(0.1, 1)  # within what a test allows


def lines(entries: dict[str, list[float]], file: Path) -> list[str]:
    frozen.write(file, entries)
    return file.read_text().splitlines()


@pytest.mark.parametrize("order", [["a", "c"], ["c", "a"]])
def test_a_new_entry_comes_last_and_no_line_of_another_changes(
    order: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "numbers.json"
    kept = {name: [DRIFTED, 1e-17] for name in order}
    *before, _ = lines(kept, file)
    frozen.write(file, frozen.updated(frozen.read(file), NAMES, lambda name: [0.1, 0.0]))
    after = file.read_text().splitlines()
    assert after[: len(before)] == [*before[:-1], before[-1] + ","]
    assert frozen.read(file) == {**kept, "b": [0.1, 0.0]}


def test_an_entry_that_is_asked_for_is_written_anew() -> None:
    kept = dict.fromkeys(NAMES, DRIFTED)
    assert frozen.updated(kept, NAMES, lambda name: 0.1, ["b"]) == {**kept, "b": 0.1}


@pytest.mark.parametrize(
    ("argv", "anew"), [([], []), (["--anew", "b"], ["b"]), (["--anew"], NAMES)]
)
def test_only_an_explicit_argument_writes_anew(argv: list[str], anew: list[str]) -> None:
    assert list(frozen.asked(NAMES, argv)) == anew


def test_what_lacks_and_what_is_no_more_is_named() -> None:
    frozen.check_names("x.json", ["c", "a", "b"], NAMES, "run me")
    with pytest.raises(AssertionError, match="lacks b, c and still has d: run me"):
        frozen.check_names("x.json", ["a", "d"], NAMES, "run me")


def test_a_table_of_a_page_is_written_anew() -> None:
    page = frozen.with_table("before\n| h |\n| old |\n| old |\n\nafter\n", "| h |\n", "| new |\n")
    assert page == "before\n| h |\n| new |\n\nafter\n"


SOURCE = """
def least(values: list[float], bound: float = 1.0) -> float:
    print("said")
    return min(v for v in values if v < bound and not flag(v, deep=True))
"""


def test_each_change_is_code_that_says_another_thing() -> None:
    found = dict(mutation.mutants(SOURCE))
    assert "4: v < bound -> v <= bound" in found.values()
    assert "4: flag(v, deep=True) -> flag(v)" in found.values()
    assert "3: print('said') -> pass" in found.values()
    assert len(found) == len({ast.dump(ast.parse(text)) for text in [*found, SOURCE]}) - 1
    assert all("list[float]" in text for text in found), "annotations stay"


def test_a_change_that_waits_for_ever_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_it.py").write_text("import time\n\ndef test_it(): time.sleep(600)\n")
    monkeypatch.setattr(mutation, "WAITING", 2)
    assert mutation.failed_test(tmp_path, ["test_it.py"]) == mutation.NO_END


def test_a_test_that_fails_anyway_hides_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.py"
    file.write_text("old")

    def failed_test(_: Path, tests: list[str]) -> str | None:
        if tests != ["t.py::good"] and "--deselect=t.py::red" not in tests:
            return "t.py::red"
        return "t.py::good" if file.read_text() == "new" else None

    monkeypatch.setattr(mutation, "failed_test", failed_test)
    monkeypatch.setattr(mutation, "nearest", lambda _: ["t.py"])
    for source, by in (("new", "t.py::good"), ("equal", None)):
        assert mutation.noticed_by(tmp_path, Path("a.py"), source, {}) == by
        assert file.read_text() == "old"


PROJECT = Path(__file__).parents[1]


@pytest.mark.parametrize("promise", PROMISES)
def test_the_test_of_a_promise_is_there(promise: str) -> None:
    file, _, name = PROMISES[promise].partition("::")
    tree = ast.parse((PROJECT / file).read_text())
    assert name in {part.name for part in tree.body if isinstance(part, ast.FunctionDef)}


def test_no_test_holds_two_promises() -> None:
    assert len(set(PROMISES.values())) == len(PROMISES)


INFONCE = LossSpec("infonce")


def test_a_sentence_of_bert_base_by_its_layers() -> None:
    """12 layers of four h x h and two h x 4h products and of attention; the pooler is scored."""
    layers, length, h = 12, 32, 768
    products = 2 * length * (4 * h * h + 2 * h * 4 * h)
    attention = 2 * (2 * length * length * h)
    sample = encoder_sample("bert-base-uncased", length)
    assert sample
    assert sample.embedding == layers * (products + attention) + 2 * h * h
    # both passes of SimCSE, each forward and twice as much backward, but for the pooler and
    # attention, whose backward computes the scores once more
    forward = layers * (products + attention)
    assert 2 * 3 * forward <= sample.training <= 2 * 3.05 * forward
    assert encoder_sample("some/other", length) is None


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_a_sparse_product_is_of_its_entries() -> None:
    dense, sparse = torch.ones(3, 4), torch.eye(4).to_sparse_csr()
    assert operations.counted(lambda: dense @ torch.ones(4, 5)) == 2 * 3 * 4 * 5
    assert operations.counted(lambda: sparse @ torch.ones(4, 5)) == 2 * 4 * 5
    assert operations.counted(lambda: torch.addmm(torch.ones(3), dense, torch.ones(4, 3))) == 72


@pytest.fixture
def units(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample costs 30 to train on and 5 to embed."""
    monkeypatch.setattr(operations, "sample_of", lambda *_: Sample(30.0, 5.0))


def test_a_cell_is_its_steps_and_the_samples_that_are_embedded(units: None) -> None:
    recipe = {"preset": "adnce", "epochs": 3}
    asked = operations.operations(Experiment("image", "CIFAR-10", INFONCE, recipe))
    assert asked
    assert asked.step == 256 * 30
    assert asked.training == 3 * 50_000 * 30
    assert asked.evaluation == (10_000 + 50_000 + 100 * 50_000) * 5
    untrained = operations.operations(Experiment("image", "CIFAR-10", LossSpec("none"), recipe))
    assert untrained
    assert (untrained.training, untrained.evaluation) == (0, asked.evaluation)
    graphs = operations.operations(Experiment("graph", "MUTAG", INFONCE, {"epochs": 2}))
    assert graphs
    assert graphs.training == 2 * 188 * 30
    assert operations.operations(Experiment("tabular", "csv:a.csv", INFONCE, {})) is None


def test_a_limit_is_a_limit_of_operations_too(units: None) -> None:
    def training(domain: str, dataset: str, **recipe: int) -> float:
        asked = operations.operations(Experiment(domain, dataset, INFONCE, recipe))
        assert asked
        return asked.training

    assert training("graph", "MUTAG", epochs=2, limit=94) == 2 * 94 * 30
    assert training("graph", "MUTAG", epochs=2, limit=500) == 2 * 188 * 30
    few = training("image", "CIFAR-10", epochs=1, limit=6_000)
    assert few == 5_000 * 30


def test_sizes_are_those_of_the_declarations() -> None:
    for name, about in declaration("image").datasets.items():
        if about.sizes and name in PARTS:
            trained, _, scored = PARTS[name]
            assert (trained - about.unlabelled, scored) == about.sizes[1:], name


def test_the_page_has_the_cells_of_its_tables() -> None:
    """Its hours are an estimate of some day; what is run is that of the tables now."""
    page = (PROJECT / "docs" / "scale.md").read_text()
    rows = [
        line.strip("| ").split(" | ")
        for line in page.splitlines()
        if line.startswith("| ") and "-table" in line
    ]
    assert rows
    kept = [[name, cells, hours.replace(",", "")] for name, cells, hours, *_ in rows]
    _, *counted = Path(plan.__file__).with_name("operations.csv").read_text().splitlines()
    assert [line.split(",") for line in counted] == [one for one in kept if "<" not in one[2]]
    for name, cells, *_ in rows:
        made = plan.make_plan(name, [], None, False, None, Path("nowhere"))
        own = {place.work.key: len(made.seeds) for place in made.places}
        assert int(cells) == sum(own.values()), f"python tests/tools/scale.py: {name} has changed"


PAPERS = {"adnce": "ADNCE", "attentionnce": "AttentionNCE", "dasl": "DASL", "renyicl": "RényiCL"}


def test_the_results_say_how_much_of_each_paper_is_done() -> None:
    found: dict[tuple[str, str], Counter[str]] = {}
    for name in table_names():
        table = load_table(name)
        for _, column, cell in printed_values(resolve(table, None, PROJECT / "results")):
            place = PAPERS[name.partition("-")[0]], table.domain_of(column)
            found.setdefault(place, Counter()).update(
                printed=1, runnable=cell is not None, done=bool(cell and cell.ok)
            )
    page = (PROJECT / "results" / "README.md").read_text()
    prices = (PROJECT / "docs" / "scale.md").read_text()
    for (paper, domain), of in found.items():
        short = next(short for short, name in PAPERS.items() if name == paper)
        price = prices.partition(f"\n| {short} | {domain} | ")[2].partition(" |")[0]
        counts = f"{of['printed']} | {of['runnable']} | {of['done']} | {price}"
        assert price
        assert f"| {paper} | {domain} | {counts} |" in page
    runnable, done = (sum(of[key] for of in found.values()) for key in ("runnable", "done"))
    assert f"{runnable} can be run here, and {done} are done" in page
    assert f"{done} of {runnable} runnable values" in (PROJECT / "README.md").read_text()
