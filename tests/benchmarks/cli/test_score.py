"""Encoders that were written, and anybody's, scored by every protocol."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch

pytest.importorskip("PIL")
from contrastbench.domains.base import Exports
from contrastbench.domains.image import DECLARATION, protocols
from contrastbench.domains.image.domain import ImageDomain
from contrastbench.domains.image.encoders import open_encoder
from contrastbench.domains.registry import make_recipe
from contrastbench.domains.scoring.few_shot import few_shot
from contrastbench.losses import UserError
from made_images import CPU

METRIC = {"pairing": "balanced", "positives": 3, "projection": (6,), "probe": "retrieval"}


def exported(folder: Path, **recipe: object) -> ImageDomain:
    d = ImageDomain("digits", make_recipe("image", {**DECLARATION.tiny, **recipe}), 0, None, CPU)
    assert isinstance(d, Exports)
    d.check_export()
    d.export(d.model(), folder)
    return d


@pytest.mark.parametrize("recipe", [{}, METRIC], ids=["before the projection", "the embedding"])
def test_a_folder_gives_the_features_that_were_scored(recipe: dict, tmp_path: Path) -> None:
    d = exported(tmp_path / "encoder", **recipe)
    opened = open_encoder(str(tmp_path / "encoder"), None, CPU)
    found = opened.preprocessing.features(opened.model, d.splits["test"])
    assert torch.equal(found.x, d.embeddings(d.model()).x)


def test_every_protocol_scores(tmp_path: Path, bench, monkeypatch: pytest.MonkeyPatch) -> None:
    exported(tmp_path / "encoder")
    monkeypatch.setattr(protocols, "few_shot", partial(few_shot, episodes=5))
    assert list(protocols.PROTOCOLS) == list(DECLARATION.protocols)
    monkeypatch.setattr("contrastbench.domains.scoring.logistic.TRANSFER_GRID", (0.01, 1.0))
    for by in DECLARATION.protocols:
        code, out, err = bench("score", "--encoder", str(tmp_path / "encoder"), "--by", by)
        assert code == 0, err
        metrics = json.loads(out)["metrics"]
        assert all(0 <= value <= 100 for value in metrics.values())
        main = {"few-shot": "5-way_1-shot", "retrieval": "recall_at_1"}.get(by, "accuracy")
        assert metrics[main] > 30, "ten digits, an untrained encoder"


def test_what_cannot_be_scored_is_one_line(tmp_path: Path, bench) -> None:
    folder = tmp_path / "encoder"
    exported(folder)
    for words, message in (
        (("--by", "knm"), "unknown protocol 'knm': did you mean 'knn'"),
        (("--by", "knn", "--domain", "graph"), "domain graph scores no encoder but its own"),
    ):
        code, _, err = bench("score", "--encoder", str(folder), *words)
        assert (code, message in err) == (2, True), err
    with pytest.raises(UserError, match="nowhere is no encoder: give a folder that bench run"):
        open_encoder("nowhere", None, CPU)
    (folder / "model.safetensors").write_bytes(b"none")
    with pytest.raises(UserError, match=r"is damaged .*: export it again"):
        open_encoder(str(folder), None, CPU)
    raw = ImageDomain("digits", make_recipe("image", {"encoder": "raw"}), 0, None, CPU)
    with pytest.raises(UserError, match="pixels are no encoder"):
        raw.check_export()
