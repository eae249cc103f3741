"""Groups, such as the pictures of one patient, stay in one part, whatever the samples are."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import made_images
from contrastbench.domains.samples import draw_share
from contrastbench.domains.scoring.svm import linear_folds, svm_folds
from contrastbench.losses import UserError
from opened import opened

OF = [k // 4 for k in range(60)]  # the group of each sample
MAKE_GRAPHS = """
import torch
from torch_geometric.data import Data
edges = torch.tensor([[0, 1], [1, 2]])
graphs = lambda: [Data(edge_index=edges, y=k // 4 % 2, num_nodes=3, who=k // 4) for k in range(60)]
"""


def write_all(root: Path) -> None:
    for k, who in enumerate(OF):
        made_images.save(root / f"p/{who % 2}/{who}/f{k}.png", made_images.noise(16, 16, seed=k))
        (root / f"g{k}.csv").write_text("0,1\n1,2\n")
    np.savez(root / "a.npz", x=made_images.noise(60, 8, 8), y=np.array(OF) % 2, Patient_ID=OF)
    (root / "mine.py").write_text(MAKE_GRAPHS)
    for name, text in (("t.csv", "C{0},p{1},{2}"), ("labels.csv", "g{3}.csv,p{1},{2}")):
        rows = [text.format("C" * (k % 9), who, who % 2, k) for k, who in enumerate(OF)]
        (root / name).write_text("\n".join(("smiles,who,y", *rows)))


@pytest.mark.parametrize(
    ("domain", "name", "groups", "recipe"),
    [
        ("image", "folder:p", r"^\d+", {"size": 8}),
        ("image", "npz:a.npz", "Patient_ID", {"size": 8}),
        ("graph", "mine.py:graphs", "who", {"folds": 3}),
        ("graph", "folder:.", "who", {"parts": "fixed"}),
        ("graph", "smiles:t.csv", "who", {"folds": 3}),
        ("tabular", "csv:t.csv", "who", {"target": "y"}),
    ],
)
def test_groups_stay_whole(
    domain: str, name: str, groups: str, recipe: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    write_all(tmp_path)
    monkeypatch.chdir(tmp_path)

    made = partial(opened, domain, name, **recipe)
    found, every = made(groups=groups), np.arange(60)
    samples = found.samples(False)
    named, parts = np.array(samples.groups), np.cumsum([*samples.parts.values()])[:-1]
    of_parts = ((part, np.setdiff1d(every, part)) for part in np.split(every, parts))
    assert not any({*named[a]} & {*named[b]} for a, b in samples.draws or of_parts)
    assert (len(named), len({*named})) == (60, 15)
    with pytest.raises(UserError, match=r"unknown|no array|no regular"):
        made(groups="(x")
    if name != "folder:.":  # whose third column is then a task
        assert made().data_hash(False) != found.data_hash(False), "of other parts"


def test_whoever_knows_a_group_alone_is_no_better_than_chance() -> None:
    who = np.repeat(np.arange(40), 5)
    x, y = np.eye(40)[who], np.random.default_rng(0).permutation(40)[who] % 2
    for score in (svm_folds, linear_folds):
        whole, torn = score(x, y, 5, groups=who.astype(str)), score(x, y, 5)
        mean, other = (np.mean([fold.accuracy for fold in folds]) for folds in (whole, torn))
        assert max(mean, *(fold.inner for fold in whole)) < 80 < other, "C is chosen so as well"
    assert len(draw_share(y, 0.4, 0, who)[1]) == 80
    with pytest.raises(UserError, match="class number 1 is in one alone"):
        draw_share(np.array([0] * 9 + [1]), 0.2, 0, [*"abcdefghij"])
