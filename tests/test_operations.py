"""Operations of cells, counted against formulas."""

from pathlib import Path

import pytest
import torch

import operations
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.domains.image import ImageRecipe
from contrastbench.domains.registry import declaration, make_recipe
from contrastbench.domains.tabular import TabularRecipe
from contrastbench.losses.spec import LossSpec
from operations import PARTS, Sample, encoder_sample, stand_in

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


def test_a_row_of_a_table_by_its_layers() -> None:
    """Two views are embedded as queries and, without gradients, by the target network."""
    recipe = TabularRecipe(probe="logistic")
    model = operations.domain_class("tabular")(
        "digits-table", recipe, 0, None, operations.CPU
    ).model()
    weights = [p.numel() for name, p in model.named_parameters() if p.dim() == 2]
    sample = operations.sample_of("tabular", "digits-table", recipe)
    assert sample
    online = sum(
        p.numel() for n, p in model.named_parameters() if p.dim() == 2 and "target" not in n
    )
    target = sum(weights) - online
    first = model.encoder
    entry = next(p for p in first.parameters() if p.dim() == 2).numel()
    networks = 2 * 2 * (3 * online - entry + target)  # the input itself has no gradient
    pairs = sample.training - networks
    assert 0 <= pairs < 0.1 * networks
    assert sample.embedding == 2 * sum(p.numel() for p in first.parameters() if p.dim() == 2)


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_a_sparse_product_is_of_its_entries() -> None:
    dense, sparse = torch.ones(3, 4), torch.eye(4).to_sparse_csr()
    assert operations.counted(lambda: dense @ torch.ones(4, 5)) == 2 * 3 * 4 * 5
    assert operations.counted(lambda: sparse @ torch.ones(4, 5)) == 2 * 4 * 5
    assert operations.counted(lambda: torch.addmm(torch.ones(3), dense, torch.ones(4, 3))) == 72


def test_images_are_counted_on_a_few_and_cost_alike() -> None:
    recipe = ImageRecipe(width=0.125, size=16, projection=(32, 16))
    few = operations.sample_of("image", "CIFAR-10", recipe)
    operations.stand_in.cache_clear()
    more = {**operations.FEW, "image": {**operations.FEW["image"], "batch_size": 8}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operations, "FEW", more)
        twice = operations.sample_of("image", "CIFAR-10", recipe)
    operations.stand_in.cache_clear()
    assert few
    assert twice
    assert few.training == pytest.approx(twice.training, rel=0.01)
    assert few.embedding == twice.embedding


@pytest.fixture
def units(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample costs 30 to train on and 5 to embed."""
    monkeypatch.setattr(operations, "sample_of", lambda *_: Sample(30.0, 5.0))


@pytest.mark.parametrize("domain", ["graph", "tabular"])
def test_what_has_no_weights_takes_no_step(domain: str) -> None:
    recipe = make_recipe(domain, {"encoder": "raw"})
    found = stand_in(domain, type(recipe), recipe.model_dump_json())
    assert found.training == 0


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


def test_data_of_ones_own_cost_nobody_knows_what(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("a,kind\n1,x\n2,y\n")
    for domain, dataset, recipe in (
        ("graph", "folder:somewhere", {}),
        ("tabular", f"csv:{tmp_path}/own.csv", {"target": "kind"}),
    ):
        assert operations.operations(Experiment(domain, dataset, INFONCE, recipe)) is None


def test_sizes_are_those_of_the_declarations() -> None:
    for name, about in declaration("image").datasets.items():
        if about.sizes and name in PARTS:
            trained, _, scored = PARTS[name]
            assert (trained - about.unlabelled, scored) == about.sizes[1:], name
