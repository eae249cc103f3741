"""Token ids, and exported encoders as other libraries load them."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.opening import check_export
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.domains.sentence import encoder as encoders
from contrastbench.domains.sentence import graded
from contrastbench.domains.sentence.checkpoint import Checkpoint, quiet
from contrastbench.losses import UserError
from contrastbench.losses.spec import LossSpec
from opened import opened

SENTENCES = ["babace kaba ban", "", "gugu dida ban ban ban", "cekaba"]
RECIPE = {"epochs": 1, "limit": 32, "batch_size": 16}


domain = partial(opened, "sentence", **RECIPE)


@pytest.fixture(params=["avg", "cls_before_pooler", "cls"])
def exported(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str, torch.Tensor]:
    d = domain(pooler=request.param)
    model = d.model().train()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    (contrast,) = d.contrasts(model, next(iter(d.batches(0))))
    (contrast.anchor @ contrast.keys.T).sum().backward()
    optimizer.step()
    d.export(model, tmp_path / "out")
    return tmp_path / "out", request.param, d.encode(model, SENTENCES).of(SENTENCES)


def test_transformers_says_nothing_while_we_read_or_write_and_then_what_it_said_before() -> None:
    before = logging.get_verbosity()
    with quiet():
        assert logging.get_verbosity() == logging.ERROR
    assert logging.get_verbosity() == before != logging.ERROR


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
        (
            "avg",
            "full/file/new",
            r"cannot write to .*new \(Not a directory\): name another folder with --export",
        ),
    ):
        experiment = Experiment("sentence", "graded", LossSpec("infonce"), {"pooler": pooler})
        with pytest.raises(UserError, match=message):
            run_cell(experiment, 0, Options(tmp_path, export=tmp_path / folder))
    assert not trained
    (tmp_path / "empty").mkdir()
    check_export("sentence", domain(), tmp_path / "empty", tmp_path / "none", False)


TEXTS = ["", "one", "one two three four five", "one", "zwölf 12 !", "two  one"]


class Counted:
    def __init__(self) -> None:
        self.inner, self.count = graded.tokenizer(), 0

    def __call__(self, sentences: list[str], **about: Any) -> Any:
        self.count += len(sentences)
        return self.inner(sentences, **about)


@pytest.fixture
def checkpoint(monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    monkeypatch.setattr(encoders, "_kept", {})
    return Checkpoint(None, Counted(), None, sha256="a")


@pytest.mark.parametrize("most", [3, 64])
def test_ids_are_those_of_the_tokenizer_alone(checkpoint: Checkpoint, most: int) -> None:
    encoders.token_ids(checkpoint, TEXTS[3:], most)
    found = encoders.token_ids(checkpoint, TEXTS, most)
    about = {"truncation": True, "max_length": most}
    assert [[*row] for row in found] == [
        graded.tokenizer()(sentence, **about)["input_ids"] for sentence in TEXTS
    ]


def test_a_sentence_is_tokenized_once_for_a_checkpoint_and_a_length(checkpoint: Checkpoint) -> None:
    distinct = len(set(TEXTS))
    for _ in range(3):
        encoders.token_ids(checkpoint, TEXTS, 8)
    assert checkpoint.tokenizer.count == distinct
    encoders.token_ids(checkpoint, TEXTS, 9)
    assert checkpoint.tokenizer.count == 2 * distinct
    encoders.token_ids(replace(checkpoint, sha256="b"), TEXTS, 8)
    assert checkpoint.tokenizer.count == 3 * distinct


def test_a_full_store_makes_room_for_the_next_set(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoders, "MOST_SENTENCES", 3)
    given = ["a", "b"], ["b", "c", "d"], ["c", "d"], [*"efgh"], ["c"]
    found = [[[*row] for row in encoders.token_ids(checkpoint, some, 8)] for some in given]
    assert found == [graded.tokenizer()(some)["input_ids"] for some in given]
    assert checkpoint.tokenizer.count == 2 + 2 + 4


def test_a_checkpoint_without_files_keeps_nothing(checkpoint: Checkpoint) -> None:
    made = replace(checkpoint, sha256="")
    encoders.token_ids(made, TEXTS, 8)
    encoders.token_ids(made, TEXTS, 8)
    assert made.tokenizer.count == 2 * len(set(TEXTS))
