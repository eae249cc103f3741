"""Sets of graphs: several answers, shipped ones, and what an encoder must see in them."""

import hashlib
import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from contrastbench.domains.graph import DATASETS
from contrastbench.domains.graph.data import Graphs, load_graphs
from contrastbench.domains.graph.generated import face_rings, listed_graphs
from contrastbench.domains.graph.own import load_own_graphs, of_data
from contrastbench.domains.graph.tasks import task_evaluation
from contrastbench.losses import UserError
from opened import opened


def molecules(folder: Path, count: int, answer: str = "") -> str:
    """Write rings and paths: whether one is a ring, whether it is long, and a rare answer."""
    lines = ["file,ring,long,rare"]
    for k in range(count):
        nodes = 4 + k % 7
        edges = [(i, i + 1) for i in range(nodes)] + [(nodes, 0)] * (k % 2)
        (folder / f"{k}.csv").write_text("".join(f"{a},{b}\n" for a, b in edges))
        lines.append(f"{k}.csv,{k % 2},{int(nodes > 6) if k % 5 else answer},{int(k == 0)}")
    (folder / "labels.csv").write_text("\n".join(lines))
    return f"folder:{folder}"


def test_answers_stand_behind_the_file(tmp_path: Path) -> None:
    graphs, digest, _ = load_own_graphs(molecules(tmp_path, 6), None)
    assert graphs.y[:, 0].tolist() == [0, 1, 0, 1, 0, 1]
    assert graphs.y[:, 1].isnan().tolist() == [True, False, False, False, False, True]
    assert load_own_graphs(molecules(tmp_path, 6, "NaN"), None)[1] == digest


def test_answers_of_torch_geometrics_data() -> None:
    edge, y = torch.tensor([[0], [1]]), torch.tensor([[1.0, math.nan]])
    graphs, _ = of_data("mine", [Data(edge_index=edge, y=y, num_nodes=2)] * 2)
    assert graphs.y[:, 0].tolist() == [1, 1]
    assert (graphs.tasks, graphs.y[:, 1].isnan().all().item()) == (2, True)


def test_the_score_is_the_mean_area_over_tasks_and_folds() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=(60, 3)).astype(float)
    x = np.stack([y[:, 0], rng.normal(size=60)], axis=1)
    y[::4, 1], y[:, 2] = np.nan, 0
    x[::4, 1] = 99 * rng.normal(size=15)  # of unknown answers
    found = task_evaluation(x, y, 3, 0)
    alone = [task_evaluation(x, y[:, [task]], 3, 0).folds for task in (0, 1)]
    assert alone[0] == [100, 100, 100]
    assert 20 < np.mean(alone[1]) < 80
    assert found.folds == pytest.approx(np.mean(alone, axis=0).tolist())
    assert found.metrics["auroc"] == pytest.approx(np.mean(found.folds))
    assert len(found.inner) == 3
    with pytest.raises(UserError, match="a fold has no task with both answers"):
        task_evaluation(x, y[:, 2:], 3, 0)


def test_a_set_of_tasks_is_scored(tmp_path: Path) -> None:
    name = molecules(tmp_path, 60)
    made = opened("graph", name, folds=3)
    assert made.evaluate(made.model()).main == "auroc"
    said = made.report(trained=False).lines(name)[0]
    assert "60 graphs; nodes: " in said
    assert "tasks: 3, unknown answers: 12" in said
    with pytest.raises(UserError, match="has tasks and no classes: leave out --recipe pairing"):
        opened("graph", name, pairing="supervised")


FACES = DATASETS["faces"]


def outline_files(folder: Path) -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    (folder / "ucr").mkdir()
    rows = []
    for file, count in zip(FACES.files, (3, 5), strict=True):
        lines = np.column_stack([np.arange(count) % 2 + 4, draw.normal(size=(count, 131))])
        np.savetxt(folder / "ucr" / file.name, lines, delimiter="\t")
        rows += [*lines]
    return rows


def test_each_node_of_a_ring_is_the_mean_of_its_piece(tmp_path: Path) -> None:
    rows = outline_files(tmp_path)
    hashes = [hashlib.sha256((tmp_path / "ucr" / f.name).read_bytes()) for f in FACES.files]
    files = tuple(
        replace(file, sha256=digest.hexdigest())
        for file, digest in zip(FACES.files, hashes, strict=True)
    )
    x, edges, ends, y = face_rings(replace(FACES, files=files), tmp_path)
    assert y.tolist() == [int(row[0]) - 4 for row in rows]
    assert np.diff(ends).tolist() == [32] * 8
    cuts = [round(131 * k / 32) for k in range(33)]
    means = [[row[1:][a:b].mean() for a, b in pairwise(cuts)] for row in rows]
    scaled = (np.array(means) - np.mean(means)) / np.std(means)
    assert x == pytest.approx(scaled.reshape(-1, 1), abs=1e-6)
    both = {(a, b) for a, b in edges.T.tolist()}
    assert both == {
        pair
        for start in range(0, 256, 32)
        for k in range(32)
        for pair in [(start + k, start + (k + 1) % 32), (start + (k + 1) % 32, start + k)]
    }


def test_other_outlines_are_refused(tmp_path: Path) -> None:
    outline_files(tmp_path)
    with pytest.raises(UserError, match=r"TRAIN.tsv is not the declared file .*: remove it"):
        face_rings(FACES, tmp_path)


def test_lists_of_neighbours_are_graphs_side_by_side() -> None:
    """Three graphs of 3, 1 and 2 nodes."""
    text = "3  3 2  0 1 1  5 2 0 2  0 1 1   1 0  0 0   2 2  0 1 1  0 1 0"
    x, edges, ends, y = listed_graphs([*map(int, text.split())])
    assert (x.shape, ends.tolist(), y.tolist()) == ((6, 0), [0, 3, 4, 6], [1, 0, 1])
    assert edges.T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1], [4, 5], [5, 4]]


def test_shipped_graphs_are_touching_dark_pixels() -> None:
    d = opened("graph", "pixels", features="attributes", parts="fixed")
    assert d.notes(trained=True) == {}, "its sizes are the declared ones"
    rows, columns, counts = d.graphs.x.T
    assert len(rows.unique()) == len(columns.unique()) == 8
    assert len(counts.unique()) == 11, "6 to 16"
    source, target = d.graphs.edge_index[:, d.graphs.edge_index[0] != d.graphs.edge_index[1]]
    step = rows.unique().diff().max() * 1.001
    assert ((rows[source] - rows[target]).abs() <= step).all()
    report = d.report(trained=True)
    assert report.parts == {"train": 1800, "test": 1200}
    assert report.twins.trained_on == 0


LABELS = 12


@pytest.fixture(scope="module")
def graphs() -> Graphs:
    return load_graphs("label-pairs")[0]


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
