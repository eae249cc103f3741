"""Clusters with differences that are alike or not: geometry, scores against loops, and words."""

import csv
import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor

from contrastbench.benchmarks.analyses.consistency import (
    CASES,
    CLUSTERS,
    centres,
    draw_points,
    scores,
    train_embedding,
)
from contrastbench.benchmarks.analyses.trainer import training_loss
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.losses.spec import LossSpec


@pytest.mark.parametrize("name", CASES)
def test_clusters_have_the_distances_that_the_case_says(name: str) -> None:
    first, second, third = centres(CASES[name]).double()
    found = [math.dist(first, second), math.dist(second, third), math.dist(first, third)]
    assert found == pytest.approx(CASES[name][:3], rel=1e-6)


def test_what_is_compared_has_one_distance() -> None:
    unequal, equal, corner, straight, nearer = (case[:3] for case in CASES.values())
    assert sum(unequal) == pytest.approx(sum(equal))
    assert sum(corner) == pytest.approx(sum(nearer))
    assert corner[:2] == straight[:2]
    assert straight[2] / straight[0] == nearer[2] / nearer[0] == pytest.approx(2)


def test_points_are_of_one_distribution_and_of_the_seed() -> None:
    train, test = draw_points(CASES["distances equal"], 0)
    again, _ = draw_points(CASES["distances equal"], 0)
    other, _ = draw_points(CASES["distances equal"], 1)
    assert (len(train.y), len(test.y)) == (3000, 600)
    assert torch.equal(train.x, again.x)
    assert not torch.equal(train.x, other.x)
    for part in (train, test):
        centre = torch.stack([part.x[part.y == k].mean(dim=0) for k in range(CLUSTERS)])
        assert (centre - centres(CASES["distances equal"])).abs().max() < 0.25
    assert not set(map(tuple, train.x.tolist())) & set(map(tuple, test.x.tolist()))


def few(count: int, seed: int) -> Labelled:
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(CLUSTERS * count, 2, generator=rng, dtype=torch.float64)
    return Labelled(x, torch.arange(CLUSTERS).repeat_interleave(count))


def nearest(train: Labelled, x: Tensor, k: int) -> int:
    """The class that most of the k nearest have, the smallest of equals."""
    order = sorted(range(len(train.y)), key=lambda j: math.dist(train.x[j], x))
    votes = Counter(int(train.y[j]) for j in order[:k])
    return min(votes, key=lambda label: (-votes[label], label))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_accuracies_are_those_of_the_nearest_points(k: int) -> None:
    train, test = few(7, 0), few(4, 1)
    found = scores(None, train, test, [k])
    for part, rows in (("training", train), ("test", test)):
        right = [nearest(train, x, k) == int(y) for x, y in zip(rows.x, rows.y, strict=True)]
        size = len(rows.y) // CLUSTERS
        for c in range(CLUSTERS):
            expected = 100 * sum(right[c * size : (c + 1) * size]) / size
            assert found[f"{part}, k = {k}", str(c + 1)] == pytest.approx(expected)
        assert found[f"{part}, k = {k}", "average"] == pytest.approx(100 * sum(right) / len(right))


def test_the_variation_is_that_of_differences_between_clusters() -> None:
    """Each row's neighbour is of another cluster, so that no difference is left out."""
    test = few(3, 0)
    rows = [test.x[c * 3 + i] for i in range(3) for c in range(CLUSTERS)]
    z = [(row / row.norm()).tolist() for row in rows]
    steps = [[a - b for a, b in zip(u, v, strict=True)] for u, v in pairwise(z)]
    lengths = [math.dist(a, b) for j, a in enumerate(steps) for b in steps[:j]]
    found = scores(lambda x: x, few(4, 1), test, [1])["variation of test differences", "all"]
    assert found == pytest.approx(sum(lengths) / len(lengths), rel=1e-6)


def test_a_network_learns_what_its_loss_asks_for() -> None:
    """Embeddings of one cluster come nearer to each other than to the others'."""
    train, test = draw_points(CASES["distances equal"], 0)
    loss = training_loss(LossSpec("infonce"))
    z = train_embedding(loss, train, 0, 1)(test.x)
    same = test.y.unsqueeze(1) == test.y
    cosines = z @ z.T
    assert torch.allclose(z.norm(dim=1), torch.ones(len(z)), atol=1e-5)
    assert cosines[same].mean() > cosines[~same].mean() + 0.5


def test_the_command_writes_a_table_and_a_plot(bench, tmp_path: Path) -> None:
    words = ("--loss", "infonce", "--with", "neighbours=1", "--seeds", "0,1", "--output", "out")
    code, found, error = bench("analyse", "consistency", "--tiny", *words)
    assert code == 0, error
    assert found.split() == ["out/consistency.csv", "out/consistency.svg"]
    with Path("out/consistency.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["case"] for row in rows} == set(CASES)
    assert {row["loss"] for row in rows} == {"points", "infonce"}
    assert {row["n"] for row in rows} == {"2"}
    own = [row for row in rows if row["measure"] == "training, k = 1" and row["loss"] == "points"]
    assert {row["mean"] for row in own} == {"100.0"}, "a point is its own nearest"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--with", "neighbours=3,0"],
            "--with neighbours=0: give whole numbers from 1 to 1000 between commas",
        ),
        (
            ["--with", "neighbours=1.5"],
            "--with neighbours=1.5: give whole numbers from 1 to 1000 between commas",
        ),
        (["--loss", "none"], "--loss none trains nothing: name another loss (bench list losses)"),
    ],
)
def test_a_mistake_is_one_line(bench, words: list[str], message: str) -> None:
    code, found, error = bench("analyse", "consistency", *words)
    assert (code, found, error.strip()) == (2, "", f"bench: {message}")
