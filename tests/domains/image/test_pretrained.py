"""Weights of torchvision in our ResNets."""

from pathlib import Path

import pytest
import torch

pytest.importorskip("torchvision")
from torchvision.models import get_model

from contrastbench.domains.image import pretrained
from contrastbench.domains.image.encoder import ResNet
from contrastbench.domains.registry import make_recipe
from contrastbench.losses import UserError


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_features_are_torchvisions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    theirs, ours, x = get_model(name).eval(), ResNet(name).eval(), torch.randn(1, 3, 72, 72)
    for buffer in theirs.buffers():  # as if it had been trained
        buffer.add_(torch.rand_like(buffer.float()).to(buffer.dtype))
    monkeypatch.setattr(pretrained, "weights", lambda url, root: theirs.state_dict())
    pretrained.load_weights(ours, name, None)
    theirs.fc = torch.nn.Identity()
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-6, atol=1e-6)


def test_they_lie_in_the_data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://download.pytorch.org/models/a-0676ba61.pth"
    torch.save({"w": torch.ones(2)}, tmp_path / "a-0676ba61.pth")
    assert pretrained.weights(url, tmp_path)["w"].tolist() == [1, 1]
    (tmp_path / "a-0676ba61.pth").write_bytes(b"no weights")
    with pytest.raises(UserError, match=r"cannot be read .*: put a-0676ba61.pth into a folder"):
        pretrained.weights(url, tmp_path)


def test_they_are_of_the_published_width_and_stem() -> None:
    recipe = {"encoder": "torchvision:resnet50", "size": 224}
    assert make_recipe("image", {**recipe, "width": 1.0}).pretrained == "resnet50"
    for change in ({}, {"width": 1.0, "size": 64}):
        with pytest.raises(UserError, match=r"needs width=1\.0 and a size of more than 64 pixels"):
            make_recipe("image", {**recipe, **change})
