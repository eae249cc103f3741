"""Outlines that become rings, lists of neighbours, and the graphs that ship in the package."""

import hashlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from contrastbench.domains.graph import DATASETS, GraphRecipe
from contrastbench.domains.graph.collected import face_rings, listed_graphs
from contrastbench.domains.graph.domain import GraphDomain
from contrastbench.losses import UserError

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
    recipe = GraphRecipe(features="attributes", parts="fixed")
    d = GraphDomain("pixels", recipe, 0, None, torch.device("cpu"))
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
