"""The embedded set `label-pairs`: no count tells its classes apart, and training does."""

from collections import Counter
from functools import cache

import pytest
import torch
from torch import Tensor

from contrastbench.benchmarks.running.training import train
from contrastbench.domains.graph import GraphRecipe
from contrastbench.domains.graph.data import Graphs, load_graphs
from contrastbench.domains.graph.domain import GraphDomain
from contrastbench.losses import get_loss

LABELS = 12
MARGIN = 10  # points that training gains over the untrained encoder, at least


@pytest.fixture(scope="module")
def graphs() -> Graphs:
    return load_graphs("label-pairs")[0]


@cache
def domain(seed: int, **recipe: object) -> GraphDomain:
    """Return the set under a third of the folds and a quarter of the default recipe's epochs."""
    values = {"epochs": 5, "folds": 3, **recipe}
    return GraphDomain("label-pairs", GraphRecipe(**values), seed, None, torch.device("cpu"))


@cache
def untrained(seed: int, **recipe: object) -> float:
    """Return the accuracy of an encoder without a training."""
    opened = domain(seed, **recipe)
    return opened.evaluate(opened.model()).metrics["accuracy"]


def counted(rows: Tensor, graphs: Graphs) -> list[Counter[tuple[int, ...]]]:
    """Return for each class how often each row of counts occurs."""
    return [Counter(map(tuple, rows[graphs.y == c].tolist())) for c in graphs.y.unique()]


def test_degrees_and_labels_are_the_same_counts_in_every_class(graphs: Graphs) -> None:
    degrees = graphs.row_ptr.diff().view(len(graphs), -1).sort(dim=1).values
    labels = torch.segment_reduce(graphs.x, "sum", offsets=graphs.node_ptr, axis=0)
    for rows in (degrees, labels.long()):
        first, *others = counted(rows, graphs)
        assert all(other == first for other in others)


def test_a_class_is_which_labels_meet(graphs: Graphs) -> None:
    label = graphs.x[:, :LABELS].argmax(dim=1)
    source, target = graphs.edge_index
    kind = graphs.y[graphs.graph_of_node[source]]
    met = torch.zeros(len(graphs.y.unique()), LABELS, LABELS)
    met.index_put_((kind, label[source], label[target]), torch.ones(len(source)), accumulate=True)
    assert torch.equal(met, met.transpose(1, 2))
    partner = met.argmax(dim=2)
    assert (met.amax(dim=2) > 5 * met.median(dim=2).values).all()
    assert all(len(set(column)) == len(column) for column in partner.T.tolist())
    assert torch.equal(partner.gather(1, partner), torch.arange(LABELS).expand_as(partner))


def test_a_count_is_at_chance() -> None:
    assert untrained(0, encoder="raw") < 100 / 6 + 1
    assert untrained(0, encoder="sizes") < 100 / 6 + 1


def test_a_trained_encoder_is_better_than_an_untrained_one() -> None:
    opened = domain(0)
    model, _ = train(opened, get_loss("adnce"))
    assert opened.evaluate(model).metrics["accuracy"] > untrained(0) + MARGIN
