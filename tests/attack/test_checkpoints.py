"""Encoders and checkpoints that are out to harm: refused in one line, nothing of theirs is run."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import hostile
from contrastbench.benchmarks.running import checkpoints
from contrastbench.domains.download import file_sha256
from contrastbench.domains.image.networks import exports, model
from contrastbench.domains.image.networks.model import ImageModel
from contrastbench.domains.image.preprocessing import Preprocessing
from contrastbench.domains.registry import declaration, make_recipe
from contrastbench.domains.sentence import graded
from contrastbench.domains.sentence.checkpoint import load_checkpoint
from contrastbench.losses import UserError

WEIGHTS, CONFIG = "model.safetensors", "config.json"
CODE = "import os; os.mkdir({!r})\nclass Mine: pass\n"
AUTO = dict.fromkeys(("AutoConfig", "AutoModel", "AutoTokenizer"), "code.Mine")
Spoil = Callable[[Path, Path], None]


def header(folder: Path, change: Callable[[dict], object]) -> None:
    """Another header before the same bytes."""
    data = (folder / WEIGHTS).read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    about = json.loads(data[8:end])
    text = json.dumps(change(about) or about).encode()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + data[end:])


def first(about: dict) -> dict:
    return next(value for key, value in about.items() if key != "__metadata__")


def length(folder: Path, size: int) -> None:
    data = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", size) + data[8:])


def config(folder: Path, **keys: object) -> None:
    about = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(about | keys))


def pickle_alone(folder: Path, canary: Path) -> None:
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(hostile.pickled(canary / "owned"))


def pickle_of_torch(folder: Path, canary: Path) -> None:
    torch.save(hostile.Reduced(canary / "owned"), folder / WEIGHTS)


def code(folder: Path, canary: Path) -> None:
    (folder / "code.py").write_text(CODE.format(str(canary / "owned")))
    config(folder, auto_map=AUTO, model_type="mine", architectures=["Mine"])


def outside(folder: Path, canary: Path) -> None:
    shutil.move(folder / WEIGHTS, canary / "secret.safetensors")
    names = load_file(canary / "secret.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "../canary/secret.safetensors")}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index))


SPOILS: dict[str, Spoil] = {
    "a pickle in its place": pickle_alone,
    "a pickle under its name": lambda f, c: (
        (f / WEIGHTS).write_bytes(hostile.pickled(c / "owned")) and None
    ),
    "a pickle of torch under its name": pickle_of_torch,
    "code of its own": code,
    "parts that lie elsewhere": outside,
    "a header of exabytes": lambda f, c: length(f, 1 << 62),
    "a header longer than the file": lambda f, c: length(f, 90_000_000),
    "a header that is a tower": lambda f, c: (
        (f / WEIGHTS).write_bytes(struct.pack("<Q", 200_000) + b"[" * 200_000) and None
    ),
    "offsets behind the end": lambda f, c: header(
        f, lambda h: first(h).update(data_offsets=[0, 1 << 40])
    ),
    "offsets that overlap": lambda f, c: header(
        f, lambda h: [t.update(data_offsets=[0, 4]) for k, t in h.items() if k[0] != "_"] and None
    ),
    "offsets below nothing": lambda f, c: header(
        f, lambda h: first(h).update(data_offsets=[-4, 0])
    ),
    "a shape beyond all numbers": lambda f, c: header(
        f, lambda h: first(h).update(shape=[1 << 62, 1 << 62])
    ),
    "a type that nobody knows": lambda f, c: header(f, lambda h: first(h).update(dtype="OBJECT")),
}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, checkpoint = tmp_path_factory.mktemp("tiny"), graded.tiny_checkpoint(0)
    checkpoint.encoder.save_pretrained(folder)
    checkpoint.tokenizer.save_pretrained(folder)
    return folder


def besiege(spoil: Spoil, good: Path, root: Path, read: Callable[[Path], object]) -> None:
    """Read what was spoilt: one line that names it, and nothing is touched."""
    canary, folder = root / "canary", Path(shutil.copytree(good, root / "mine"))
    canary.mkdir()
    spoil(folder, canary)
    before = hostile.tree(root)
    with hostile.watched(canary) as touched, pytest.raises(UserError) as error:
        read(folder)
    assert str(folder) in str(error.value)
    assert touched == []
    assert hostile.tree(root) == before


def test_sentence_encoders(
    encoder: Path, tmp_path: Path, found: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda _: "y")  # nobody is asked whether code may run
    for k, spoil in enumerate(SPOILS.values()):
        besiege(
            spoil, encoder, tmp_path / str(k), lambda folder: load_checkpoint(str(folder), None)
        )
    assert load_checkpoint(str(encoder), None).sha256
    tokenizer = {"tokenizer_class": "Mine", "auto_map": {"AutoTokenizer": ["code.Mine", None]}}

    def class_of_its_own(folder: Path, canary: Path) -> None:
        code(folder, canary)
        (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))

    besiege(
        class_of_its_own, encoder, tmp_path / "t", lambda f: load_checkpoint(f"random:{f}", None)
    )
    besiege(
        lambda f, _: config(f, quantization_config={"quant_method": "mine"}),
        *(encoder, tmp_path / "q", lambda f: load_checkpoint(str(f), None)),
    )
    own = Path(shutil.copytree(encoder, tmp_path / "own"))
    config(own, attn_implementation="kernels-community/flash-attn2")  # code of the hub
    assert load_checkpoint(str(own), None).encoder.config._attn_implementation == "sdpa"
    found(f"data: {len(SPOILS) + 3} hostile sentence encoders: refused, nothing touched")


def test_image_encoders(tmp_path: Path, found: Callable[[str], None]) -> None:
    good, cpu = tmp_path / "good", torch.device("cpu")
    recipe = make_recipe("image", declaration("image").tiny)
    exports.export(ImageModel(recipe, 0), recipe, Preprocessing((0,) * 3, (1,) * 3, 8), good)
    assert exports.open_encoder(str(good), None, cpu)
    spoils = {name: spoil for name, spoil in SPOILS.items() if spoil is not code}  # nobody asks
    for k, spoil in enumerate(spoils.values()):
        besiege(spoil, good, tmp_path / str(k), lambda f: exports.open_encoder(str(f), None, cpu))
    found(f"data: {len(spoils)} hostile image encoders: refused, nothing touched")


@pytest.mark.parametrize("pinned", [False, True])
def test_weights_of_torchvision(pinned: bool, tmp_path: Path) -> None:
    """A pickle is refused by its hash, and where its name has that, since it is no tensors."""
    canary, whole = tmp_path / "canary", tmp_path / "whole"
    canary.mkdir()
    torch.save({"w": hostile.Reduced(canary / "owned")}, whole)
    name = f"a-{file_sha256(whole)[:8] if pinned else '0676ba61'}.pth"
    whole.rename(tmp_path / name)
    url = f"https://download.pytorch.org/models/{name}"
    why = "Weights only load failed" if pinned else "does not begin with 0676ba61"
    with (
        hostile.watched(canary) as touched,
        pytest.raises(UserError, match=rf"{why}.*: put {name}"),
    ):
        model.pretrained_weights(url, tmp_path)
    assert all(event.startswith(f"os.mkdir ('{tmp_path}'") for event in touched), "it is there"
    assert not list(canary.iterdir())


def test_checkpoints_of_a_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], found: Callable[[str], None]
) -> None:
    good = tmp_path / "good"
    checkpoints.write_checkpoint(good / WEIGHTS, {"w": torch.ones(3)}, {"step": 1})
    spoils = [
        spoil
        for name, spoil in SPOILS.items()
        if name not in ("a pickle in its place", "code of its own", "parts that lie elsewhere")
    ]
    for k, spoil in enumerate(spoils):
        canary, folder = tmp_path / f"canary{k}", Path(shutil.copytree(good, tmp_path / str(k)))
        canary.mkdir()
        spoil(folder, canary)
        with hostile.watched(canary) as touched:
            assert checkpoints.read_checkpoint(folder / WEIGHTS) is None
        assert (touched, list(canary.iterdir())) == ([], [])
        assert len(capsys.readouterr().err.splitlines()) == 1
    found(f"data: {len(spoils)} hostile checkpoints of a training: refused, nothing touched")
