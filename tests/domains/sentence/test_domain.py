"""The sentence domain as the runner uses it."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
from scipy.stats import spearmanr
from transformers import BartConfig, BartModel, CamembertModel, MPNetModel, RobertaModel

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.domains.registry import make_recipe
from contrastbench.domains.sentence import SentenceRecipe, checkpoint, graded
from contrastbench.domains.sentence.checkpoint import load_checkpoint
from contrastbench.domains.sentence.data import Pairs
from contrastbench.domains.sentence.encoder import Embeddings, SentenceModel, encode, pad
from contrastbench.domains.sentence.scoring import evaluate_correlations, whitened
from contrastbench.losses import UserError, get_loss
from contrastbench.losses.spec import LossSpec
from opened import opened

CPU = torch.device("cpu")


domain = partial(opened, "sentence")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, checkpoint = tmp_path_factory.mktemp("tiny"), graded.tiny_checkpoint(0)
    checkpoint.encoder.save_pretrained(path)
    checkpoint.tokenizer.save_pretrained(path)
    return path


def test_both_views_are_dropout_passes_of_the_same_sentences() -> None:
    d = domain(max_length=8)
    model, batch = d.model(), next(iter(d.batches(0)))
    torch.manual_seed(5)
    before = torch.get_rng_state()
    (views,) = d.contrasts(model.train(), batch)
    assert torch.equal(torch.get_rng_state(), before), "the global random state is the user's"
    assert not torch.equal(views.anchor, views.keys)
    assert views.key_id.tolist() == [-1] * 64
    (same,) = d.contrasts(model.eval(), batch)
    assert torch.allclose(same.anchor, same.keys, atol=1e-6)


def test_the_last_partial_batch_is_kept_but_not_a_lone_sentence() -> None:
    for limit, sizes in ((130, [64, 64, 2]), (129, [64, 64])):
        d = domain(limit=limit)
        assert [len(batch.sentences) for batch in d.batches(0)] == sizes
        assert d.steps() == len(sizes)


@pytest.mark.parametrize(
    "pooler", ["avg", "avg_top2", "avg_first_last", "static", "cls_before_pooler"]
)
def test_poolers_and_encode_agree_with_one_sentence_at_a_time(pooler: str) -> None:
    d = domain(pooler=pooler)
    model = d.model().eval()
    sentences = ["babace kaba ban", "ban", "", "babace kaba ban", "gugu " * 40]
    found = encode(model, d.checkpoint, sentences, batch_tokens=64)
    assert found.odd == {"distinct_sentences": 4, "truncated": 0, "empty": 1, "with_nul": 0}
    for sentence, z in zip(sentences, found.of(sentences), strict=True):
        tokens = d.checkpoint.tokenizer(sentence, return_tensors="pt")
        with torch.no_grad():
            out = model.encoder(tokens["input_ids"], output_hidden_states=True)
        layers = [h[0] for h in out.hidden_states]
        expected = {
            "avg": layers[-1].mean(dim=0),
            "avg_top2": (layers[-1] + layers[-2]).mean(dim=0),
            "avg_first_last": (layers[-1] + layers[1]).mean(dim=0),
            "static": model.encoder.embeddings.word_embeddings(tokens["input_ids"])[0].mean(dim=0),
            "cls_before_pooler": layers[-1][0],
        }[pooler]
        expected = expected / 2 if pooler in ("avg_top2", "avg_first_last") else expected
        assert torch.allclose(z, expected, atol=1e-5)


def test_encoding_sees_the_newest_weights() -> None:
    d = domain()
    model = d.model()
    first = d.encode(model, ["ban", "kale"]).z
    get_loss("infonce")(d.contrasts(model.train(), next(iter(d.batches(0))))[0]).backward()
    with torch.no_grad():
        model.encoder.encoder.layer[0].output.dense.weight.mul_(2)
    assert not torch.allclose(d.encode(model, ["ban", "kale"]).z, first)


def test_the_head_is_for_training_and_never_scored_untrained() -> None:
    d = domain(pooler="cls")
    model = d.model()
    with pytest.raises(
        UserError,
        match=r"head that is newly initialised: train it, or give pooler=cls_before_pooler",
    ):
        d.validate(model)
    d.contrasts(model.train(), next(iter(d.batches(0))))
    assert -100 <= d.validate(model) <= 100
    tokens = pad([[2, 5, 3]], 0, CPU)
    before = SentenceModel(model.encoder, "cls_before_pooler", model.head).eval()(tokens)
    assert torch.allclose(model.eval()(tokens), model.head(before))


def test_odd_sentences_are_counted_or_refused() -> None:
    d = domain()
    model = d.model()
    found = d.encode(model, ["", " ", "ban\0ban", "babace " * 15000])
    assert found.odd == {"distinct_sentences": 4, "truncated": 1, "empty": 2, "with_nul": 1}
    assert torch.isfinite(found.z).all()
    with pytest.raises(UserError, match=r"lone surrogate at 3: it is no text"):
        d.encode(model, ["ban\ud800"])


def test_a_checkpoint_of_the_hub_is_that_of_the_pinned_revision(folder: Path, monkeypatch) -> None:
    asked = []

    def download(repository: str, revision: str, **_: object) -> str:
        asked.append((repository, revision))
        return str(folder)

    monkeypatch.setattr(checkpoint, "snapshot_download", download)
    found = load_checkpoint("bert-base-uncased", None)
    assert found.sha256 == load_checkpoint(str(folder), None).sha256
    load_checkpoint("some/encoder@v2", None)
    pinned = ("bert-base-uncased", "86b5e0934494bd15c9632b12f734a8a67f723594")
    assert asked == [pinned, ("some/encoder", "v2")]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            LocalEntryNotFoundError("no route"),
            r"the hub cannot be reached \(\w+Error\); name a fol",
        ),
        (RuntimeError("no DNS"), r"the hub cannot be reached \(RuntimeError\); name a folder"),
        (HFValidationError("A long name. More."), "cannot be loaded: A long name$"),
    ],
)
def test_a_checkpoint_that_cannot_be_had_is_one_line(
    error: Exception, message: str, monkeypatch
) -> None:
    def download(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(checkpoint, "snapshot_download", download)
    with pytest.raises(UserError, match=f"encoder 'nobody/none': {message}"):
        load_checkpoint("nobody/none@main", None)


def other_shape(folder: Path) -> None:
    config = folder / "config.json"
    config.write_text(
        config.read_text().replace('"intermediate_size": 256', '"intermediate_size": 96')
    )


def no_tokenizer(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()


def few_rows(folder: Path) -> None:
    encoder = graded.tiny_checkpoint(0).encoder
    encoder.resize_token_embeddings(20)
    encoder.save_pretrained(folder)


def diverged(folder: Path) -> None:
    encoder = graded.tiny_checkpoint(0).encoder
    with torch.no_grad():
        encoder.embeddings.word_embeddings.weight[3, 3] = torch.nan
    encoder.save_pretrained(folder)


@pytest.mark.parametrize(
    ("file", "before", "after", "message"),
    [
        ("config.json", '_layers": 2', '_layers": 100000', "100000 layers, more than 1000"),
        ("config.json", '_layers": 2', '_layers": -1', "no layers"),
        ("config.json", '"hidden_size": 64', '"hidden_size": 1000000', "weights, more than"),
        ("config.json", '"hidden_act": "gelu"', '"hidden_act": []', "cannot be loaded"),
        ("tokenizer.json", '"model": {', '"model": 3, "other": {', "cannot be loaded"),
        ("tokenizer_config.json", "128", '"x"', "cannot be loaded"),
    ],
)
def test_a_checkpoint_of_wrong_types_or_sizes_is_one_line(
    file: str, before: str, after: str, message: str, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    text = (copy / file).read_text()
    assert before in text
    (copy / file).write_text(text.replace(before, after))
    for name in (str(copy), f"random:{copy}"):
        with pytest.raises(UserError, match=message):
            load_checkpoint(name, None)


def another_kind(folder: Path) -> None:
    config = BartConfig(vocab_size=500, d_model=16, encoder_layers=1, decoder_layers=1)
    BartModel(config).save_pretrained(folder)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (other_shape, "newly initialised: encoder.layer"),
        (no_tokenizer, "has no tokenizer files"),
        (few_rows, r"its tokenizer has \d+ ids, its embedding 20 rows"),
        (diverged, "weights that are not finite"),
        (another_kind, "is a bart: an encoder of BERT's kind is needed"),
    ],
)
def test_checkpoints_that_would_be_scored_wrongly_are_refused(
    spoil: Callable[[Path], None], message: str, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    spoil(copy)
    with pytest.raises(UserError, match=message):
        load_checkpoint(str(copy), None)


@pytest.mark.parametrize("kind", [RobertaModel, MPNetModel, CamembertModel])
def test_positions_of_roberta_s_kind_begin_behind_the_padding(
    kind: Any, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    vocabulary = len(graded.tokenizer())
    kind(
        kind.config_class(vocab_size=vocabulary, max_position_embeddings=40, **sizes)
    ).save_pretrained(copy)
    found = load_checkpoint(str(copy), None)
    assert found.max_length == 38
    d = domain(encoder=str(copy), pooler="avg", max_length=38)
    assert torch.isfinite(d.encode(d.model(), ["ban " * 100]).z).all()


def test_equal_checkpoints_are_equal_wherever_they_lie(folder: Path, tmp_path: Path) -> None:
    sha256 = load_checkpoint(folder.name, folder.parent).sha256
    copy = shutil.copytree(folder, tmp_path / "another name")
    (copy / "README.md").write_text("not what numbers come from")
    assert load_checkpoint(str(copy), None).sha256 == sha256
    config = copy / "config.json"
    config.write_text(config.read_text().replace('"hidden_act": "gelu"', '"hidden_act": "relu"'))
    assert load_checkpoint(str(copy), None).sha256 != sha256
    assert load_checkpoint(f"random:{folder}", None).sha256 != sha256


def test_a_checkpoint_of_a_package_is_where_pip_installed_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "made-checkpoint"
    monkeypatch.setattr(checkpoint, "PACKAGES", (name,))
    with pytest.raises(UserError, match=f"not installed: pip install {name}"):
        load_checkpoint(name, None)
    site = tmp_path / "site"
    shutil.copytree(folder, site / "made_checkpoint/model")
    (site / "made_checkpoint/model/1_Pooling").mkdir()
    (site / "made_checkpoint/model/1_Pooling/config.json").write_text("{}")
    monkeypatch.syspath_prepend(site)
    assert load_checkpoint(name, None).sha256 == load_checkpoint(str(folder), None).sha256


def test_a_path_is_no_part_of_a_record(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    texts = [tmp_path / "a.txt", tmp_path / "b" / "c.txt"]
    texts[1].parent.mkdir()
    for text in texts:
        text.write_text("one\ntwo\nthree\n")
    found = []
    for path, text in zip((folder, copy), texts, strict=True):
        recipe = SentenceRecipe(encoder=str(path), corpus=str(text), pooler="avg")
        found.append(
            (
                domain(encoder=str(path), pooler="avg").data_hash(trained=True),
                recipe.contents(None, trained=True),
            )
        )
    assert found[0] == found[1]
    assert [value[:7] for value in found[0][1].values()] == ["sha256:"] * 2
    assert [*recipe.contents(None, trained=False)] == ["encoder"], (
        "a corpus that is not read is no part of it"
    )
    fresh = SentenceRecipe(encoder=f"random:{folder}")
    assert fresh.contents(None, trained=True)["encoder"].startswith("random:sha256:")
    named = SentenceRecipe(encoder="copy")
    assert named.contents(tmp_path, trained=True) == {}, (
        "the data root's names stay: tables use them"
    )
    assert SentenceRecipe().contents(None, trained=True) == {}
    experiments = [
        Experiment("sentence", "graded", LossSpec("none"), {"encoder": str(path), "pooler": "avg"})
        for path in (copy, folder)
    ]
    record, where = run_cell(experiments[0], 0, Options(tmp_path))
    # its command alone says where the files lie
    assert str(tmp_path) not in json.dumps({**record, "command": ""})
    assert record["details"]["encoder"]["name"] == "copy"
    assert run_cell(experiments[1], 0, Options(tmp_path)) == (record, where)
    assert experiments[1].ok_by_seed(tmp_path) == {0: record}


def test_whitening_gives_identity_covariance() -> None:
    x = torch.randn(200, 5, generator=torch.Generator().manual_seed(0)) @ torch.diag(
        torch.tensor([1.0, 2, 3, 4, 0])
    )
    first, second = whitened(x[:100], x[100:])
    assert first.shape == (100, 4)
    z = x.double() - x.double().mean(dim=0)
    precision = torch.linalg.pinv(z.T @ z / 200)
    expected = (z[:100] @ precision * z[100:]).sum(dim=1)
    assert torch.allclose((first * second).sum(dim=1), expected)
    with pytest.raises(UserError, match="4 sentences cannot be whitened in 5 dimensions"):
        whitened(x[:2], x[2:4])


def test_equal_cosines_are_said_and_rank_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    found = evaluate_correlations(
        Embeddings({"a": 0, "b": 1}, torch.ones(2, 4), {}),
        {"X": [Pairs("all", ["a", "b", "a"], ["b", "a", "a"], [1.0, 2.0, 3.0])]},
        whiten=False,
    )
    assert found.metrics == {"spearman": 0}
    assert "X: all cosines are equal" in capsys.readouterr().err


def test_a_set_s_number_is_that_of_all_its_pairs_together() -> None:
    rng = np.random.default_rng(0)
    z = torch.tensor(rng.normal(size=(120, 4)), dtype=torch.float32)
    names = [f"s{i}" for i in range(120)]
    gold = rng.normal(size=60)
    gold[:15] += 3  # another level: the subsets' own correlations do not see it
    parts = [
        Pairs(name, names[a:b], names[60 + a : 60 + b], list(gold[a:b]), unscored=a)
        for name, a, b in (("small", 0, 15), ("large", 15, 40), ("other", 40, 60))
    ]
    found = evaluate_correlations(
        Embeddings({s: i for i, s in enumerate(names)}, z, {}),
        {"X": parts[:2], "Y": parts[2:]},
        whiten=False,
    )
    cosine = torch.cosine_similarity(z[:60].double(), z[60:].double()).numpy()
    each = [
        100 * spearmanr(cosine[a:b], gold[a:b]).statistic for a, b in ((0, 15), (15, 40), (40, 60))
    ]
    everything = 100 * spearmanr(cosine[:40], gold[:40]).statistic
    assert found.metrics["X"] == pytest.approx(everything)
    assert found.metrics["Y"] == pytest.approx(each[2])
    details = found.details["sets"]["X"]
    assert (details["pairs"], details["unscored"]) == (40, 15)
    assert details["subsets"] == pytest.approx({"small": each[0], "large": each[1]})
    assert details["mean"] == pytest.approx((each[0] + each[1]) / 2)
    assert details["wmean"] == pytest.approx((15 * each[0] + 25 * each[1]) / 40)
    rounded = (round(everything, 2) + round(each[2], 2)) / 2
    assert found.metrics["avg"] == pytest.approx(rounded, abs=1e-12)
    assert abs(rounded - (everything + each[2]) / 2) > 1e-6
    assert min(abs(everything - details[key]) for key in ("mean", "wmean")) > 1


def test_graded_pairs_share_as_many_words_as_they_say() -> None:
    pairs = graded.graded_pairs("test")
    for first, second, gold in zip(pairs.first, pairs.second, pairs.gold, strict=True):
        content = [{word for word in s.split() if len(word) == 6} for s in (first, second)]
        assert len(content[0] & content[1]) == gold
    d = domain()
    embeddings = d.encode(d.model(), pairs.first + pairs.second)
    cosine = torch.cosine_similarity(embeddings.of(pairs.first), embeddings.of(pairs.second))
    evaluation = d.evaluate(d.model())
    assert evaluation.metrics["spearman"] == pytest.approx(
        100 * spearmanr(cosine, pairs.gold).statistic, abs=0.1
    )
    assert evaluation.details["pooler"] == "avg"
    assert np.isfinite(d.validate(d.model()))


def test_a_random_encoder_may_have_another_shape(folder: Path) -> None:
    found = load_checkpoint(f"random:1x128:{folder}", None)
    config = found.encoder.config
    assert (config.num_hidden_layers, config.hidden_size) == (1, 128)
    assert (config.num_attention_heads, config.intermediate_size) == (2, 512)
    assert len(found.tokenizer) == len(graded.tokenizer()), "the vocabulary is the checkpoint's"
    recipe = make_recipe("sentence", {"encoder": f"random:1x128:{folder}", "pooler": "avg"})
    assert recipe.contents(None, trained=True)["encoder"].startswith("random:1x128:sha256:")


@pytest.mark.parametrize("shape", ["2x", "x128", "0x128", "2x100", "two", "2x128x3"])
def test_a_shape_that_cannot_be_is_named(folder: Path, shape: str) -> None:
    with pytest.raises(UserError, match=r"give random:LAYERSxWIDTH:NAME, .* multiple of 64"):
        load_checkpoint(f"random:{shape}:{folder}", None)


def test_a_record_names_what_was_trained_on() -> None:
    """The recipe of `graded` has the default corpus in its key, which is not read there."""
    assert domain().notes(True)["corpus"]["name"] == "graded: its own training sentences"
    assert "corpus" not in domain().notes(False)


def test_a_set_that_another_one_trains_asks_for_no_corpus(offline: None, tmp_path: Path) -> None:
    recipe = {"encoder": "tiny", "pairing": "query_key"}
    scored = SentenceRecipe.of("sentence", {**recipe, "score_on": ["captions", "sts"]})
    assert scored.fetch("sts", tmp_path, True) == {}
    with pytest.raises(UserError, match="wiki1m"):
        SentenceRecipe.of("sentence", recipe).fetch("sts", tmp_path, True)
