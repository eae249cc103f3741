"""Operations of cells, counted against formulas."""

from pathlib import Path

import pytest
import torch

import operations
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.sweeps import plan
from contrastbench.domains.registry import declaration
from contrastbench.losses.spec import LossSpec
from operations import PARTS, Sample, encoder_sample

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
    page = (Path(__file__).parents[1] / "docs" / "scale.md").read_text()
    rows = [
        line.strip("| ").split(" | ")
        for line in page.splitlines()
        if line.startswith("| ") and "-table" in line
    ]
    assert rows
    kept = [[name, cells, hours.replace(",", "")] for name, cells, hours, *_ in rows]
    _, *counted = (Path(plan.__file__).with_name("operations.csv")).read_text().splitlines()
    assert [line.split(",") for line in counted] == [one for one in kept if "<" not in one[2]]
    for name, cells, *_ in rows:
        made = plan.make_plan(name, [], None, False, None, Path("nowhere"))
        own = {place.work.key: len(made.seeds) for place in made.places}
        assert int(cells) == sum(own.values()), f"python tests/tools/scale.py: {name} has changed"
