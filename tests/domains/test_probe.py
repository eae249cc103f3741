"""The classifier of an exported encoder is scikit-learn's logistic regression."""

from pathlib import Path

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from contrastbench.domains.probe import FILE, read_probe, write_probe
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.losses import UserError


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
