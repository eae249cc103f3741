"""Networks of timm as encoders."""

import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

pytest.importorskip("timm")
pytest.importorskip("PIL")
import timm

from contrastbench.domains.image.networks import timm_models
from contrastbench.domains.image.networks.encoders import open_encoder
from contrastbench.domains.image.views.transforms import normalise
from contrastbench.errors import UserError
from made_images import CPU

NAME, REPOSITORY = "test_resnet", "timm/test_resnet.r160_in1k"  # of 0.5 million weights


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the hub's cache, and no network."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    def refuse(*_: object, local_files_only: bool = False, **__: object) -> str:
        raise LocalEntryNotFoundError("none") if local_files_only else ConnectionError("no route")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", refuse)


def published(folder: Path) -> torch.nn.Module:
    """A model with a classifier, whose weights lie in a data root."""
    model = timm.create_model(NAME).eval()
    for buffer in model.buffers():  # as if it had been trained
        buffer.add_(torch.rand_like(buffer.float()).to(buffer.dtype))
    path = folder / REPOSITORY / timm_models.WEIGHTS_FILE
    path.parent.mkdir(parents=True)
    save_file(model.state_dict(), path)
    return model


def test_features_are_timms_before_its_classifier(tmp_path: Path) -> None:
    theirs = published(tmp_path)
    ours = open_encoder(f"timm:{NAME}", tmp_path, CPU)
    x = torch.rand(2, 3, 160, 160)
    about = timm.data.resolve_model_data_config(theirs)
    with torch.no_grad():
        seen = normalise(x, tuple(about["mean"]), tuple(about["std"]))
        expected = theirs.forward_head(theirs.forward_features(seen), pre_logits=True)
    torch.testing.assert_close(ours.features(x), expected)
    assert ours.preprocessing.size == 160
    tagged = open_encoder(f"timm:{NAME}.r160_in1k", tmp_path, CPU)
    assert torch.equal(tagged.features(x), ours.features(x)), "the tag is of its weights"


@pytest.mark.usefixtures("no_hub")
def test_new_weights_need_no_network_and_are_the_same_each_time() -> None:
    x = torch.rand(1, 3, 160, 160)
    one, other = (open_encoder(f"random:timm:{NAME}", None, CPU) for _ in range(2))
    assert torch.equal(one.features(x), other.features(x))


MISTAKES = [
    (f"timm:{NAME}", f"{REPOSITORY} cannot be read.*no route.*: put its model.safetensors into"),
    ("timm:resnet81", "unknown model of timm 'resnet81'.*did you mean"),
    (f"timm:{NAME}.r161_in1k", "unknown model of timm 'test_resnet.r161_in1k'.*r160_in1k"),
]


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize(("name", "message"), MISTAKES)
def test_a_mistake_is_one_line(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        open_encoder(name, None, CPU)
    assert "\n" not in str(error.value)


def test_weights_that_are_damaged_are_named(tmp_path: Path) -> None:
    published(tmp_path)
    path = tmp_path / REPOSITORY / timm_models.WEIGHTS_FILE
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(UserError, match=r"model.safetensors is damaged .*: delete it and get it"):
        open_encoder(f"timm:{NAME}", tmp_path, CPU)


def test_without_timm_its_line_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(UserError, match="timm is not installed: pip install timm"):
        open_encoder("timm:resnet18", None, CPU)
