"""What a recipe says of its scoring is what the scorers do."""

from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from contrastbench.domains.graph import GraphRecipe
from contrastbench.domains.graph.domain import GraphDomain
from contrastbench.domains.image import ImageRecipe
from contrastbench.domains.image.probes import PROBES
from contrastbench.domains.scoring import linear, svm
from contrastbench.domains.tabular import TabularRecipe


def test_the_svm_is_the_one_that_graphs_say() -> None:
    said = GraphRecipe().evaluation
    assert tuple(said["C"]) == svm.C_GRID
    assert said["C chosen"] == f"by {svm.INNER_FOLDS} inner folds of each training part"


@pytest.mark.parametrize("augmentation", ["random2", "random3", "random4", "mask"])
def test_idle_keys_of_graphs_change_no_view(augmentation: str) -> None:
    """And every ratio that is not idle does."""

    def view(**changed: Any) -> list[Tensor]:
        recipe = GraphRecipe(augmentation=augmentation, **changed)
        domain = GraphDomain("motifs", recipe, 0, None, torch.device("cpu"))
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
