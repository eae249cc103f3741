"""The graph domain as the runner uses it."""

import math
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from contrastbench.domains.graph import DATASETS, GraphRecipe
from contrastbench.domains.graph import domain as graph
from contrastbench.domains.graph.data import load_graphs, union
from contrastbench.domains.graph.domain import chunks, permuted_graphs, with_features
from contrastbench.domains.graph.own import Item, both_ways, with_classes
from contrastbench.domains.graph.twins import colours
from contrastbench.domains.graph.views import add_loops
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.losses import UserError, get_loss
from contrastbench.losses.contrast import unit
from opened import opened
from tu_files import write

domain = partial(opened, "graph", dataset="motifs")


def test_every_epoch_draws_new_views_of_the_same_batches() -> None:
    d = domain(batch_size=150)
    first, second = (list(d.batches(epoch)) for epoch in (0, 1))
    assert [len(batch.graphs) for batch in first] == [150, 150, 100]
    assert d.steps() == 3
    for (a, view_a, rows), (b, view_b, again) in zip(first, second, strict=True):
        assert torch.equal(rows, again)
        assert torch.equal(a.edge_index, b.edge_index)
        assert len(a) == len(view_a)
        assert view_a.x.shape != view_b.x.shape


def test_a_last_graph_alone_is_left_out_of_training() -> None:
    d = domain(limit=101, batch_size=50)
    assert [len(batch.graphs) for batch in d.batches(0)] == [50, 50]
    assert d.steps() == 2
    assert len(d.graphs) == 101


def test_graphs_of_one_class_are_positives_where_pairs_are_by_class() -> None:
    d = domain(limit=101, batch_size=50, pairing="supervised")
    assert [len(batch.graphs) for batch in d.batches(0)] == [50, 50], "the last graph has no other"
    assert d.steps() == 2
    batch = next(iter(d.batches(0)))
    (contrast,) = d.contrasts(d.model(), batch)
    assert torch.equal(contrast.anchor_id, batch[0].y.repeat(2))
    assert contrast.positive_key is not None
    assert contrast.padding is not None
    positives = contrast.key_id[contrast.positive_key]
    assert (positives == contrast.anchor_id[:, None])[~contrast.padding].all()


def test_a_batch_of_one_class_is_left_out_where_pairs_are_by_class() -> None:
    d = domain(limit=102, batch_size=50, pairing="supervised")
    rest = d.graphs.y[100:]
    batches = [len(batch.graphs) for batch in d.batches(0)]
    assert len(batches) == d.steps() == 2 + int(rest[0] != rest[1])


def test_chunks_are_whole_batches_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    d = domain()
    monkeypatch.setattr(graph, "CHUNK_EDGES", int(d.graphs.edge_ptr[130]))
    parts = list(chunks(d.graphs, 32))
    assert parts[0] == (0, 128)
    assert [stop for _, stop in parts[:-1]] == [start for start, _ in parts[1:]]
    assert parts[-1][1] == 400
    assert all(start % 32 == 0 for start, _ in parts)
    monkeypatch.setattr(graph, "CHUNK_EDGES", 1)
    assert list(chunks(d.graphs, 300)) == [(0, 300), (300, 400)]
    assert sum(len(batch.graphs) for batch in d.batches(0)) == 400


def test_a_graph_meets_its_own_nodes_and_those_of_others() -> None:
    d = domain(limit=23, batch_size=11, folds=3, pairing="part_of", features="degree")
    model, tau = d.model().double(), 0.3
    graphs, same, rows = next(iter(d.batches(0)))
    assert torch.equal(graphs.edge_index, same.edge_index), "there is no view"
    graphs = replace(graphs, x=graphs.x.double())
    (contrast,) = d.contrasts(model, graph.Batch(graphs, graphs, rows))
    loss = get_loss("jsd", temperature=tau)(contrast)
    (gradient,) = torch.autograd.grad(loss, model.encoder.mlps[0][0].weight)
    whole, nodes = map(unit, model(graphs))
    terms = []
    for g, (start, stop) in enumerate(pairwise(graphs.node_ptr.tolist())):
        cosines = (nodes @ whole[g] / tau).tolist()
        assert stop > start
        own, others = cosines[start:stop], cosines[:start] + cosines[stop:]
        positive = sum(math.log(1 + math.exp(-s)) for s in own) / len(own)
        terms.append(positive + sum(math.log(1 + math.exp(s)) for s in others) / len(others))
    assert loss.item() == pytest.approx(np.mean(terms) - 2 * math.log(2), abs=1e-9)
    assert bool(gradient.any()), "nodes and graphs both train the encoder"
    dar = get_loss("dar")(contrast)
    differences = [a - b for a, b in pairwise(whole)]
    norms = [(a - b).norm() for k, a in enumerate(differences) for b in differences[k + 1 :]]
    assert dar.item() == pytest.approx(torch.stack(norms).mean().item(), abs=1e-9)


def test_a_node_meets_its_own_graph_and_others_as_in_infographs_code() -> None:
    """The loop is over all pairs of a node and a graph; a mean over graphs would not do."""
    d = domain(limit=23, batch_size=11, folds=3, pairing="whole_of", features="degree")
    model, tau = d.model().double(), 0.3
    graphs, _, rows = next(iter(d.batches(0)))
    graphs = replace(graphs, x=graphs.x.double())
    (contrast,) = d.contrasts(model, graph.Batch(graphs, graphs, rows))
    whole, nodes = map(unit, model(graphs))
    owner = [g for g, size in enumerate(graphs.node_ptr.diff().tolist()) for _ in range(size)]
    own, others = [], []
    for v, g in ((v, g) for v in range(len(nodes)) for g in range(len(whole))):
        f = nodes[v] @ whole[g] / tau
        (own if owner[v] == g else others).append((1 + (-f if owner[v] == g else f).exp()).log())
    expected = torch.stack(own).mean() + torch.stack(others).mean() - 2 * math.log(2)
    loss, weight = get_loss("jsd", temperature=tau)(contrast), model.encoder.mlps[0][0].weight
    gradients = [torch.autograd.grad(x, weight, retain_graph=True)[0] for x in (loss, expected)]
    assert loss.item() == pytest.approx(expected.item(), abs=1e-9)
    assert torch.allclose(*gradients, rtol=1e-7, atol=1e-10)
    assert bool(gradients[0].any())
    assert contrast.index.equal(rows[torch.tensor(owner)])


def test_infographs_heads_are_three_layers_and_one_beside() -> None:
    model = domain(pairing="part_of").model()
    beside, one, two, three = (m for m in model.of_nodes.modules() if isinstance(m, nn.Linear))
    x = torch.randn(5, 96, generator=torch.Generator().manual_seed(0))
    expected = three(two(one(x).relu()).relu()).relu() + beside(x)
    assert torch.equal(model.of_nodes(x), expected)


def test_graphs_without_nodes_meet_none(monkeypatch: pytest.MonkeyPatch) -> None:
    motifs, digest = load_graphs("motifs")
    ends = torch.cat([motifs.node_ptr[:1], motifs.node_ptr])[:-1]
    monkeypatch.setattr(
        graph, "load_own_graphs", lambda *_: (replace(motifs, node_ptr=ends), digest, {})
    )
    with pytest.raises(UserError, match="motifs has graphs without nodes: leave out --recipe pai"):
        domain(pairing="part_of")


def pairs_with_attributes(folder: Path) -> Path:
    """Twenty graphs of two nodes, whose only difference is an attribute."""
    return write(
        folder,
        "PAIRS",
        A="".join(f"{k}, {k + 1}\n{k + 1}, {k}\n" for k in range(1, 41, 2)),
        graph_indicator="".join(f"{k // 2 + 1}\n" for k in range(40)),
        graph_labels="0\n1\n" * 10,
        node_labels=None,
        node_attributes="".join(f"{k}.5\n" for k in range(40)),
    )


def test_nodes_begin_with_the_attributes_of_their_graph(tmp_path: Path) -> None:
    root = pairs_with_attributes(tmp_path)
    plain = domain(dataset="PAIRS", data_root=root, folds=2)
    found = domain(dataset="PAIRS", data_root=root, folds=2, features="attributes")
    assert plain.graphs.x.unique().tolist() == [1.0]
    assert found.data_hash(True) != plain.data_hash(True)
    assert found.graphs.y.equal(plain.graphs.y)
    none, ends = torch.zeros(2, 0, dtype=torch.int64), torch.zeros(21, dtype=torch.int64)
    order = permuted_graphs(union(torch.zeros(0, 1), none, ends, torch.arange(20)), 0).y
    scaled = (np.arange(40) - 19.5) / np.std(np.arange(40))
    expected = np.concatenate([scaled[2 * k : 2 * k + 2] for k in order.tolist()])
    assert found.graphs.x[:, 0].numpy() == pytest.approx(expected, rel=1e-6)
    with pytest.raises(UserError, match="leave --export out"):
        found.check_export()
    own = domain(dataset=f"folder:{next(root.rglob('*_A.txt')).parent}", folds=2)
    (note,) = own.report(trained=False).notes.items()
    assert note == ("node attributes", "left out: --recipe features=attributes reads them")
    attributes = domain(dataset=own.dataset, folds=2, features="attributes")
    assert attributes.graphs.x.equal(found.graphs.x)
    assert not attributes.report(trained=False).notes


def test_graphs_that_the_encoder_cannot_tell_apart_are_counted() -> None:
    """A ring of six and two of three are one graph to it, and a path is another."""
    ring = [(k, (k + 1) % 6) for k in range(6)]
    rings = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]
    turned = [(5 - a, 5 - b) for a, b in ring[:5]]
    items = [
        Item(torch.tensor(edges).T, torch.ones(6, 1), 0)
        for edges in (ring, rings, ring[:5], turned)
    ]
    graphs = both_ways(with_classes(items)[0])[0]
    found = colours(graphs, 3)
    assert found[0] == found[1] != found[2] == found[3]
    assert colours(add_loops(graphs), 3) == found, "loops are no edges"
    nodes = replace(graphs, x=torch.arange(24.0)[:, None] % 2)
    assert len({*colours(nodes, 3)}) == 3, "features tell the rings apart"


def test_features_are_labels_or_one_or_the_degree() -> None:
    motifs, _ = load_graphs("motifs")
    assert torch.equal(with_features(motifs, "labels").x, torch.ones(len(motifs.x), 1))
    degree = with_features(motifs, "degree").x
    assert torch.equal(degree.argmax(dim=1), motifs.row_ptr.diff())
    ends = torch.tensor([0, 5])
    labelled = union(torch.eye(5), motifs.edge_index[:, :0], ends, motifs.y[:1])
    assert torch.equal(with_features(labelled, "labels").x, torch.eye(5))
    assert GraphRecipe(features="degree").protocol != GraphRecipe().protocol


def test_evaluation_says_what_it_measured() -> None:
    d = domain(limit=80, folds=4)
    evaluation = d.evaluate(d.model())
    assert evaluation.main == "accuracy"
    assert evaluation.metrics["accuracy"] == pytest.approx(np.mean(evaluation.folds))
    assert evaluation.metrics["accuracy_std_over_folds"] == pytest.approx(np.std(evaluation.folds))
    assert (evaluation.details["folds_n"], evaluation.details["folds_ddof"]) == (4, 0)
    assert (len(evaluation.folds), evaluation.test_part) == (4, "folds")
    assert evaluation.samples == {"train": 80}
    assert evaluation.validation == pytest.approx(np.mean(evaluation.inner))
    assert (len(evaluation.inner), d.recipe.nested) == (4, True)


def test_a_fold_of_one_class_has_no_auroc_and_so_has_none_the_mean() -> None:
    """Groups make such folds; here each is one group, such as all graphs of a patient."""
    y = torch.tensor([0, 1] * 35 + [0] * 10)
    groups = [f"g{k // 10}" for k in range(len(y))]
    x = y[:, None] + torch.randn(len(y), 3, generator=torch.Generator().manual_seed(0))
    found = graph.svm_evaluation(Labelled(x, y), "rbf", 8, 0, groups)
    assert {*found.metrics} >= {"accuracy", "balanced_accuracy", "macro_f1"}
    assert "auroc" not in {*found.metrics, *found.details["folds_of"]}
    mixed = graph.svm_evaluation(Labelled(x[:70], y[:70]), "rbf", 7, 0, groups[:70])
    assert len(mixed.details["folds_of"]["auroc"]) == 7


def test_a_fixed_part_is_that_of_all_seeds_and_not_trained_on() -> None:
    one, two = (domain(seed=seed, limit=90, parts="fixed", batch_size=20) for seed in (1, 2))
    assert one.parts["test"] == 36, "40 % of the drawn graphs"
    for a, b in zip(one.graphs.split(1)[54:], two.graphs.split(1)[54:], strict=True):
        assert torch.equal(a.edge_index, b.edge_index)
    batches = [[batch.graphs for batch in d.batches(0)] for d in (one, two)]
    assert [len(graphs) for graphs in batches[0]] == [20, 20, 14]
    assert not torch.equal(batches[0][0].edge_index, batches[1][0].edge_index)
    seen = torch.cat([graphs.edge_ptr.diff() for graphs in batches[0]])
    assert torch.equal(seen, one.graphs.edge_ptr.diff()[:54])
    assert one.sample_count == 54
    evaluation = one.evaluate(one.model())
    assert (evaluation.folds, evaluation.test_part) == ((), "fixed")
    assert evaluation.samples == {"train": 54, "test": 36}
    assert 0 < evaluation.validation < 100
    assert one.report(trained=True).parts == {"train": 54, "test": 36}
    assert not one.recipe.nested


def test_a_record_says_that_it_is_of_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    d = domain(limit=60, folds=3)
    assert d.notes(trained=True) == {}
    copied = replace(DATASETS["motifs"], copies={d.sha256: "typed off a screen"})
    monkeypatch.setitem(DATASETS, "motifs", copied)
    assert d.notes(trained=True) == {"data": {"copy": "typed off a screen"}}
