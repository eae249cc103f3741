"""Weights of torchvision in our ResNets, and of BN-Inception in ours."""

import hashlib
from functools import partial
from pathlib import Path

import pytest
import torch

pytest.importorskip("torchvision")
from torchvision.models import get_model

from contrastbench.domains.download import file_sha256
from contrastbench.domains.image.networks import pretrained
from contrastbench.domains.image.networks.inception import Inception
from contrastbench.domains.image.networks.resnet import ResNet
from made_images import refused


@pytest.mark.parametrize("name", ["resnet18", "resnet34", "resnet50"])
def test_features_are_torchvisions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    theirs, ours, x = get_model(name).eval(), ResNet(name).eval(), torch.randn(1, 3, 72, 72)
    for buffer in theirs.buffers():  # as if it had been trained
        buffer.add_(torch.rand_like(buffer.float()).to(buffer.dtype))
    monkeypatch.setattr(pretrained, "pretrained_weights", lambda url, root: theirs.state_dict())
    pretrained.load_weights(ours, name, None)
    theirs.fc = torch.nn.Identity()
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-6, atol=1e-6)


def test_bn_inception_takes_weights_without_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Old files without counters are read, also with a classifier behind the encoder."""
    kept = {
        name: torch.rand_like(tensor)
        for name, tensor in Inception().state_dict().items()
        if not name.endswith("num_batches_tracked")
    }
    theirs = {f"{k}.of_another_name": tensor for k, tensor in enumerate(kept.values())}
    asked = []
    classifier = {"last_linear.weight": torch.zeros(1000, 1024)}
    monkeypatch.setattr(
        pretrained,
        "pretrained_weights",
        lambda url, root: asked.append(url) or {**theirs, **classifier},
    )
    pretrained.load_weights(ours := Inception(), "bn_inception", None)
    assert asked == [pretrained.INCEPTION_URL]
    assert all(torch.equal(ours.state_dict()[name], tensor) for name, tensor in kept.items())
    theirs.popitem()
    again = partial(pretrained.load_weights, ours, "bn_inception", None)
    refused(again, r"bn_inception-52deb4733.pth is damaged")


def test_they_lie_in_the_data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "weights")
    digits = file_sha256(tmp_path / "weights")[:8]
    path = (tmp_path / "weights").rename(tmp_path / f"a-{digits}.pth")
    url = f"https://download.pytorch.org/models/{path.name}"
    assert pretrained.pretrained_weights(url, tmp_path)["w"].tolist() == [1, 1]
    torch.save({"w": torch.zeros(2)}, path)
    load, empty = pretrained.pretrained_weights, hashlib.sha256(b"").hexdigest()[:8]
    refused(lambda: load(url, tmp_path), f"does not begin with {digits}.*: put {path.name} into a")
    (tmp_path / f"a-{empty}.pth").touch()
    url = f"https://download.pytorch.org/models/a-{empty}.pth"
    refused(lambda: load(url, tmp_path), rf"cannot be read .*: put a-{empty}.pth into a folder")


def test_a_download_is_kept_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "made"
    torch.save({"w": torch.ones(2)}, made)
    digits, asked = file_sha256(made)[:8], []

    def download(url: str, path: str, begins: str) -> None:
        asked.append(begins)
        Path(path).write_bytes(made.read_bytes())

    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    for _ in range(2):
        found = pretrained.pretrained_weights(
            f"https://download.pytorch.org/models/a-{digits}.pth", None
        )
        assert found["w"].tolist() == [1, 1]
    assert asked == [digits]
