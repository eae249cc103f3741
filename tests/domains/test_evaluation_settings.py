"""Settings of scorers, and the classifier that an export takes along."""

from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from contrastbench.domains.graph import GraphRecipe
from contrastbench.domains.image import ImageRecipe
from contrastbench.domains.image.recipe import PROBES
from contrastbench.domains.probe import FILE, read_probe, write_probe
from contrastbench.domains.scoring import linear, svm
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.domains.tabular import TabularRecipe
from contrastbench.losses import UserError
from opened import opened


def test_the_svm_is_the_one_that_graphs_say() -> None:
    said = GraphRecipe().evaluation
    assert tuple(said["C"]) == svm.C_GRID
    assert said["C chosen"] == f"by {svm.INNER_FOLDS} inner folds of each training part"


@pytest.mark.parametrize("augmentation", ["random2", "random3", "random4", "mask"])
def test_idle_keys_of_graphs_change_no_view(augmentation: str) -> None:
    """And every ratio that is not idle does."""

    def view(**changed: Any) -> list[Tensor]:
        domain = opened("graph", "motifs", augmentation=augmentation, **changed)
        graphs = next(iter(domain.batches(0)))[1]
        return [graphs.x, graphs.edge_index, graphs.node_ptr]

    idle, before = GraphRecipe(augmentation=augmentation).idle(trained=True), view()
    for key in ("drop_ratio", "edge_ratio", "mask_ratio", "subgraph_ratio"):
        pairs = zip(before, view(**{key: 0.0}), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs) == (key in idle), key


def test_only_probes_that_are_trained_on_views_have_settings_here() -> None:
    shown = {
        name
        for name in get_args(ImageRecipe.model_fields["probe"].annotation)
        if any(key.startswith("probe") for key in ImageRecipe(probe=name).evaluation)
    }
    assert shown == set(PROBES)


def test_the_linear_classifier_is_the_one_that_tables_of_numbers_say() -> None:
    scaled, plain = (TabularRecipe(probe=name).evaluation for name in ("linear", "plain"))
    assert tuple(scaled["probe lr"]) == tuple(plain["probe lr"]) == linear.RATES
    assert scaled["probe epochs"] == plain["probe epochs"] == linear.EPOCHS
    assert (scaled["probe batch size"], plain["probe batch size"]) == (
        linear.BATCH,
        linear.PLAIN_BATCH,
    )
    assert str(linear.MEAN_SQUARE) in scaled["probe embeddings"]
    drops = ", ".join(map(str, linear.PLAIN_DROPS[:-1])) + f" and {linear.PLAIN_DROPS[-1]}"
    assert plain["probe schedule"] == f"a fifth after epochs {drops}"
    assert "probe lr" not in TabularRecipe(probe="pseudo_inverse").evaluation


@pytest.mark.parametrize(
    ("numbers", "names", "known"),
    [((0, 1), ("a", "b"), ["a", "b"]), ((0, 2, 3), ("a", "b", "c"), ["a", "c", "3"])],
)
def test_probabilities_are_those_of_scikit_learn(
    numbers: tuple[int, ...], names: tuple[str, ...], known: list[str], tmp_path: Path
) -> None:
    """A class that has no row is left out, and one without a name has its number."""
    rng = torch.Generator().manual_seed(0)
    y = torch.tensor(numbers).repeat(20)
    x = torch.randn(len(y), 5, generator=rng) + 3 * y.unsqueeze(1) * torch.eye(5)[0]
    write_probe(tmp_path, names, Labelled(x, y))
    probe, new = read_probe(tmp_path), torch.randn(7, 5, generator=rng) + 1
    scaler = StandardScaler().fit(x.numpy())
    model = LogisticRegression(max_iter=300).fit(scaler.transform(x.numpy()), y.numpy())
    expected = torch.from_numpy(model.predict_proba(scaler.transform(new.numpy()))).double()
    torch.testing.assert_close(probe.probabilities(new), expected, rtol=1e-3, atol=1e-5)
    assert probe.classes == known


def test_a_missing_and_a_damaged_classifier_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no classifier: export an encoder of data with"):
        read_probe(tmp_path)
    (tmp_path / FILE).write_bytes(b"{}")
    with pytest.raises(UserError, match="export it again"):
        read_probe(tmp_path)
