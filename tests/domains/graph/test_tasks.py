"""Graphs with several answers each, some unknown: what is read, and the mean AUROC over tasks."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from contrastbench.domains.graph import GraphRecipe
from contrastbench.domains.graph.domain import GraphDomain
from contrastbench.domains.graph.own import load_own_graphs, of_data
from contrastbench.domains.graph.tasks import task_evaluation
from contrastbench.losses import UserError


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
    Data = pytest.importorskip("torch_geometric.data").Data
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
    name, cpu = molecules(tmp_path, 60), torch.device("cpu")
    made = GraphDomain(name, GraphRecipe(folds=3), 0, None, cpu)
    assert made.evaluate(made.model()).main == "auroc"
    said = made.report(trained=False).lines(name)[0]
    assert "60 graphs; nodes: " in said
    assert "tasks: 3, unknown answers: 12" in said
    with pytest.raises(UserError, match="has tasks and no classes: leave out --recipe pairing"):
        GraphDomain(name, GraphRecipe(pairing="supervised"), 0, None, cpu)
