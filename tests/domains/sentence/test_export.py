"""Exported encoders as other libraries load them."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.opening import check_export
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.domains.registry import make_recipe
from contrastbench.domains.sentence.domain import SentenceDomain
from contrastbench.losses import UserError
from contrastbench.losses.spec import LossSpec

SENTENCES = ["babace kaba ban", "", "gugu dida ban ban ban", "cekaba"]
RECIPE = {"epochs": 1, "limit": 32, "batch_size": 16}


def domain(**recipe: object) -> SentenceDomain:
    return SentenceDomain(
        "graded", make_recipe("sentence", RECIPE | recipe), 0, None, torch.device("cpu")
    )


@pytest.fixture(params=["avg", "cls_before_pooler", "cls"])
def exported(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str, torch.Tensor]:
    """A trained encoder's folder, its pooler and its embeddings."""
    d = domain(pooler=request.param)
    model = d.model().train()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    (contrast,) = d.contrasts(model, next(iter(d.batches(0))))
    (contrast.anchor @ contrast.keys.T).sum().backward()
    optimizer.step()
    d.export(model, tmp_path / "out")
    return tmp_path / "out", request.param, d.encode(model, SENTENCES).of(SENTENCES)


def test_transformers_gives_the_same_embeddings(exported: tuple[Path, str, torch.Tensor]) -> None:
    folder, pooler, expected = exported
    model = AutoModel.from_pretrained(folder, add_pooling_layer=pooler == "cls").eval()
    tokens = AutoTokenizer.from_pretrained(folder)(SENTENCES, padding=True, return_tensors="pt")
    with torch.no_grad():
        out = model(tokens["input_ids"], attention_mask=tokens["attention_mask"])
    weight = tokens["attention_mask"].unsqueeze(2)
    found = {
        "avg": (out.last_hidden_state * weight).sum(dim=1) / weight.sum(dim=1),
        "cls_before_pooler": out.last_hidden_state[:, 0],
        "cls": out.pooler_output,
    }[pooler]
    assert torch.allclose(found, expected, atol=1e-5)


def test_sentence_transformers_gives_the_same_embeddings(
    exported: tuple[Path, str, torch.Tensor],
) -> None:
    library = pytest.importorskip(
        "sentence_transformers", reason="the optional sentence-transformers is not installed"
    )
    folder, _, expected = exported
    found = library.SentenceTransformer(str(folder), device="cpu").encode(
        SENTENCES, convert_to_tensor=True
    )
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_run_exports_the_encoder_that_it_scored(tmp_path: Path) -> None:
    out = tmp_path / "out"
    trained = Experiment("sentence", "graded", LossSpec("infonce"), RECIPE)
    record, path = run_cell(trained, 0, Options(tmp_path, export=out))
    recipe = {"encoder": str(out), "pooler": "avg"}
    again = Experiment("sentence", "graded", LossSpec("none"), recipe)
    assert run_cell(again, 0, Options(tmp_path))[0]["metrics"] == record["metrics"]
    assert json.loads((out / "modules.json").read_text())[1]["path"] == "1_Pooling"
    assert run_cell(trained, 0, Options(tmp_path, export=out)) == (record, path), "it is there"
    (out / "cell.json").write_text(json.dumps({**record, "seed": 1}))
    for other in (out, tmp_path / "new"):
        with pytest.raises(
            UserError,
            match=r"is finished, and a record keeps no model: train it anew in another --results",
        ):
            run_cell(trained, 0, Options(tmp_path, export=other))
    assert path.exists()


def test_what_cannot_be_exported_is_said_before_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trains, trained = "contrastbench.benchmarks.running.runner.train", list[object]()
    monkeypatch.setattr(trains, lambda *given: trained.append(given))  # what it raised is recorded
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    for pooler, folder, message in (
        ("avg_top2", "new", r"pooler=avg_top2 cannot be exported"),
        ("avg", "full", r"full is not empty: name another folder"),
        ("avg", "full/file/new", r"cannot write to .*new \(Not a directory\): name another folder"),
    ):
        experiment = Experiment("sentence", "graded", LossSpec("infonce"), {"pooler": pooler})
        with pytest.raises(UserError, match=message):
            run_cell(experiment, 0, Options(tmp_path, export=tmp_path / folder))
    assert not trained
    (tmp_path / "empty").mkdir()
    check_export("sentence", domain(), tmp_path / "empty", tmp_path / "none", False)
