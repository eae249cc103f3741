"""Corpora of rows whose sentences belong together, and the captions that are retrieved."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from contrastbench.domains.download import whereabouts
from contrastbench.domains.sentence import graded, own, scoring
from contrastbench.domains.sentence.data import Corpus, named_columns, read_corpus
from contrastbench.domains.sentence.datasets import DATASETS
from contrastbench.domains.sentence.domain import SentenceDomain, one_of_each, two_of_each
from contrastbench.domains.sentence.encoder import Embeddings
from contrastbench.losses import UserError, get_loss
from contrastbench.losses.contrast import unit
from opened import opened

CAPTIONS = DATASETS["captions"]
ROWS = [
    [f"{graded.spell(k + 1)} {word}" for word in ("kaba", "gugu", "dile")[: 2 + k % 2]]
    for k in range(40)
]
TEXT = "\n".join("\t".join(row) for row in ROWS) + "\n"


def domain(root: Path, dataset: str = "pairs:scored.tsv", seed: int = 0, **recipe: object):
    lines = (f"ban {k}\tban {k + k % 3}\t{k % 6}" for k in range(20))
    (root / "scored.tsv").write_text("\n".join(lines) + "\n")
    (root / "rows.tsv").write_text(TEXT)
    values = {"corpus": "pairs:rows.tsv", "batch_size": 16, **recipe}
    return opened("sentence", dataset, root, seed, **values)


def rows(path: Path) -> Corpus:
    return read_corpus(f"pairs:{path}", None)


def met(d: SentenceDomain, epoch: int) -> list[tuple[str, str]]:
    return [
        pair
        for batch in d.batches(epoch)
        for pair in zip(batch.sentences, batch.positives, strict=True)
    ]


def test_each_epoch_draws_two_different_sentences_of_each_row(tmp_path: Path) -> None:
    d = domain(tmp_path)
    row_of = {sentence: k for k, row in enumerate(ROWS) for sentence in row}
    seen = [met(d, epoch) for epoch in range(40)]
    for pairs in seen:
        assert sorted(row_of[one] for one, _ in pairs) == list(range(40))
        assert all(row_of[one] == row_of[two] and one != two for one, two in pairs)
    orders = {pair for pairs in seen for pair in pairs if row_of[pair[0]] == 1}
    assert len(orders) == 6, "every ordered pair of a row of three"


def test_seed_and_epoch_decide_what_is_drawn(tmp_path: Path) -> None:
    one, same, other = domain(tmp_path), domain(tmp_path), domain(tmp_path, seed=1)
    assert met(one, 3) == met(same, 3)
    assert met(one, 3) != met(one, 4)
    assert met(one, 3) != met(other, 3)


def test_the_views_are_of_the_two_sentences(tmp_path: Path) -> None:
    d = domain(tmp_path)
    model, batch = d.model().eval(), next(iter(d.batches(0)))
    (contrast,) = d.contrasts(model, batch)
    expected = torch.nn.functional.normalize(d.encode(model, batch.positives).of(batch.positives))
    assert torch.allclose(contrast.keys, expected, atol=1e-5)
    assert not torch.allclose(contrast.anchor, contrast.keys, atol=1e-2)


def test_a_row_may_have_fewer_negatives_than_there_are_columns() -> None:
    lines = ["anchor\tnegative_1\tpositive\tnegative_2", "a\tn\tb\t", "c\tm\td\to"]
    rows, negatives = named_columns("a.tsv", lines)
    assert rows == [["a", "b"], ["c", "d"]]
    assert {one: {*some} for one, some in negatives.items()} == {"a": {"n"}, "c": {"m", "o"}}


def test_the_draws_of_a_seed_stay_those_that_records_were_trained_on() -> None:
    """Seed 0 draws 0.97, 0.71, 0.46, 0.92, 0.65, 0.79 in float64, and others in float32."""
    rows = [[f"{row}{k}" for k in range(5)] for row in "abc"]
    pairs = two_of_each(rows, torch.Generator().manual_seed(0))
    assert pairs == [("a4", "a2"), ("b2", "b1"), ("c3", "c2")]
    negatives = {row: [f"{row}{k}" for k in range(9)] for row in "abcdef"}
    corpus = Corpus([[row] for row in negatives], 0, "", negatives=negatives)
    drawn = one_of_each(corpus, torch.Generator().manual_seed(0))
    assert drawn == ["a8", "b6", "c4", "d8", "e5", "f7"]


@pytest.mark.parametrize("pairing", ["whole_row", "query_key", "own_view"])
def test_hard_negatives_are_negatives_of_all(pairing: str, tmp_path: Path) -> None:
    """Whole rows with InfoNCE are supervised SimCSE: the cross-entropy of positives and these."""
    names = {"own_view": "query\tneg\tanswer"}.get(pairing, "sent0\thard_neg\tsent1")
    lines = [names, *(f"{a}\t{a} fi\t{b}" for a, b, *_ in ROWS)]
    (tmp_path / "hard.tsv").write_text("\n".join(lines))
    d = domain(tmp_path, pairing=pairing, corpus="pairs:hard.tsv")
    own = domain(tmp_path, dataset="pairs:hard.tsv", corpus="wiki1m").report(trained=True)
    batch = next(iter(d.batches(0)))
    first, hard = ([text.split()[0] for text in of] for of in (batch.sentences, batch.negatives))
    assert (first, own.features["hard negatives"]) == (hard, 32), "of the same rows"
    z = torch.randn(48, 6, generator=torch.Generator().manual_seed(0))
    contrast, (z1, z2, z3) = d.paired(*z.split(16))[0], z.split(16)
    assert ((contrast.key_id[-16:] == -1).all(), contrast.views) == (True, None)
    logits = unit(z1) @ unit(torch.cat([z2, z3])).T / 0.05
    expected = torch.nn.functional.cross_entropy(logits, torch.arange(16))
    found = get_loss("infonce", temperature=0.05)(contrast)
    assert torch.allclose(found, expected) == (pairing != "own_view")
    assert get_loss("infonce")(d.contrasts(d.model(), batch)[0]).isfinite()


def test_a_line_of_one_sentence_meets_itself(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("ban\n\nkaba\n")
    d = domain(tmp_path, corpus="lines.txt")
    batch = next(iter(d.batches(0)))
    assert sorted(batch.sentences) == ["ban", "kaba"]
    assert batch.sentences == batch.positives


@pytest.fixture
def few_captions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty rows under the name of the captions, five of which are held out twice."""
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / CAPTIONS.file).write_bytes(gzip.compress(TEXT.encode()))
    monkeypatch.setattr(own, "HELD_OUT_ROWS", 5)
    found = rows(tmp_path / "text" / CAPTIONS.file).sha256
    monkeypatch.setitem(DATASETS, CAPTIONS.name, replace(CAPTIONS, content=found))
    return tmp_path


def test_held_out_captions_are_retrieved_and_not_trained_on(few_captions: Path) -> None:
    d = domain(few_captions, dataset="captions", corpus="wiki1m")
    trained = {row for row, _ in met(d, 0)}
    assert len(trained) == 30
    assert not trained & {sentence for row in ROWS[30:] for sentence in row}
    result = d.evaluate(d.model().eval())
    assert result.main == "recall_at_1"
    assert 0 <= result.metrics["recall_at_1"] <= result.metrics["recall_at_10"] <= 100
    assert 0 <= d.validate(d.model()) <= 100
    with pytest.raises(UserError, match="captions has its own training sentences"):
        domain(few_captions, dataset="captions")


def test_captions_train_for_other_sets_by_their_name(few_captions: Path) -> None:
    d = domain(few_captions, corpus="captions")
    own = domain(few_captions, dataset="captions", corpus="wiki1m")
    assert met(d, 2) == met(own, 2)


def test_a_scored_caption_is_not_trained_on(few_captions: Path) -> None:
    """Multi30k and the STS tasks share captions; case and punctuation may differ."""
    pairs = few_captions / "compared.tsv"
    lines = [f"{ROWS[3][1].upper()}!\tgugu\t9", *(f"ba {k}\tdu\t{k}" for k in range(8))]
    pairs.write_text("\n".join(lines) + "\n")
    all_rows = domain(few_captions, corpus="captions").corpus
    d = domain(few_captions, dataset=f"pairs:{pairs}", corpus="captions")
    assert d.corpus.rows == [row for row in all_rows.rows if row != ROWS[3]]
    assert len(d.corpus.rows) == 29
    assert d.corpus.sha256 != all_rows.sha256


def test_other_captions_are_refused(few_captions: Path, monkeypatch) -> None:
    monkeypatch.setitem(DATASETS, CAPTIONS.name, replace(CAPTIONS, content="0" * 64))
    with pytest.raises(UserError, match="not Multi30k's captions"):
        domain(few_captions, dataset="captions", corpus="wiki1m")


def test_captions_in_several_files_are_those_of_one(few_captions: Path) -> None:
    pairs = [row[:2] for row in ROWS]
    whole = few_captions / "text" / CAPTIONS.file
    whole.write_bytes(gzip.compress("\n".join(map("\t".join, pairs)).encode()))
    declared = replace(CAPTIONS, files=CAPTIONS.files[:2], content=rows(whole).sha256)
    of_one = own.read_captions(declared, few_captions).captions
    whole.unlink()
    first, second = (few_captions / file.name for file in declared.files)
    for path, column in zip((first, second), zip(*pairs, strict=True), strict=True):
        path.write_bytes(gzip.compress("\n".join(column).encode()))
    assert own.read_captions(declared, few_captions).captions == of_one
    assert whereabouts(declared, few_captions).startswith(str(second))
    second.write_bytes(gzip.compress(b"one line"))
    with pytest.raises(UserError, match=rf"unlike numbers of lines: .* 40, .*{second.name} 1$"):
        own.read_captions(declared, few_captions)


def found_by_loop(z: dict[str, torch.Tensor], held: list[list[str]]) -> float:
    hits = 0
    for asked, answer in held:
        best, nearest = -2.0, ""
        for _, other in held:
            cosine = float(z[asked] @ z[other] / (z[asked].norm() * z[other].norm()))
            if cosine > best:
                best, nearest = cosine, other
        hits += nearest == answer or [asked, nearest] in held
    return 100 * hits / len(held)


@pytest.mark.parametrize("seed", range(5))
def test_the_first_sentence_searches_among_the_second_ones_alone(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    held = [[f"question {k % 9}", f"answer {k % 11}"] for k in range(30)]
    held += [[f"answer {k}", f"question {k}"] for k in range(3)]  # in both columns
    names = [*dict.fromkeys(sentence for row in held for sentence in row)]
    x = torch.randn(len(names), 6, generator=draw)
    x[1::2] += 2 * x[::2][: len(x[1::2])]
    z = dict(zip(names, x.double(), strict=True))
    recall = scoring.search_recall(Embeddings({n: k for k, n in enumerate(names)}, x, {}), held)
    assert recall == pytest.approx(found_by_loop(z, held))
    assert 0 < recall < 100


def test_embeddings_that_are_all_one_find_one_answer() -> None:
    held = [[f"q {k}", f"a {k}"] for k in range(8)]
    row = {sentence: k for k, sentence in enumerate(sentence for pair in held for sentence in pair)}
    assert scoring.search_recall(Embeddings(row, torch.ones(16, 3), {}), held) == 100 / 8


PAIRS = [name for name, about in DATASETS.items() if about.reader == "own:read_pairs"]


@pytest.mark.parametrize("name", PAIRS)
def test_shipped_pairs_have_no_sentence_in_two_parts(name: str) -> None:
    found = own.read_pairs(DATASETS[name], None).captions
    assert (len(found.dev), len(found.test)) == (1000, 1000)
    parts = [found.train.rows, found.dev, found.test]
    assert DATASETS[name].summary.startswith(f"{sum(map(len, parts)):,} ")
    assert all(len(row) == 2 for rows in parts for row in rows)
    texts = [{plain(s) for row in rows for s in row} for rows in parts]
    assert not texts[2] & (texts[0] | texts[1])
    assert len({plain(row[1]) for row in found.test}) == 1000


def plain(sentence: str) -> str:
    return "".join(filter(str.isalnum, sentence.lower()))


def test_pairs_are_chosen_and_scored_by_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "HELD_OUT_ROWS", 50)
    d = opened("sentence", "tldr", limit=200)
    model = d.model().eval()
    result, part = d.evaluate(model), d.scored.captions
    assert result.main == scoring.SEARCH
    embeddings = d.encode(model, scoring.caption_sentences(part.test))
    assert result.metrics[scoring.SEARCH] == scoring.search_recall(embeddings, part.test)
    assert "recall_at_1" in result.metrics, "among the sentences of both columns"
    embeddings = d.encode(model, scoring.caption_sentences(part.dev))
    assert d.validate(model) == scoring.search_recall(embeddings, part.dev)
