"""Sentences that users bring: pairs with scores, and texts to train on."""

from dataclasses import replace
from pathlib import Path

import datasets
import numpy as np
import pytest
import torch

from contrastbench.domains.report import DataReport
from contrastbench.domains.sentence import SentenceRecipe, own
from contrastbench.domains.sentence.data import Corpus, sentences_of
from contrastbench.domains.sentence.graded import graded_pairs, spell
from contrastbench.domains.sentence.own import read_any
from contrastbench.domains.sentence.report import sentence_samples
from contrastbench.domains.sentence.scoring import spearman
from contrastbench.losses import UserError
from opened import opened

ROWS = [f"sentence {k}\tsentence {k + k % 3}\t{k % 6}" for k in range(20)]


def write(path: Path, rows: list[str], header: str | None = None) -> Path:
    path.write_text("\n".join([header, *rows] if header else rows) + "\n")
    return path


def test_a_fifth_of_one_file_chooses(tmp_path: Path) -> None:
    scored = read_any(f"pairs:{write(tmp_path / 'a.tsv', ROWS)}", None)
    assert (len(scored.dev), len(scored.sets["pairs"][0])) == (4, 16)
    assert sorted(scored.dev.first + scored.sets["pairs"][0].first) == sorted(
        f"sentence {k}" for k in range(20)
    )
    assert read_any(f"pairs:{tmp_path / 'a.tsv'}", None).sha256 == scored.sha256, "for every run"


def test_an_encoder_that_knows_few_of_the_words_is_doubted(tmp_path: Path) -> None:
    rows = [f"xyz {k}\txyz {k + 1}\t{k % 6}" for k in range(20)]
    name = f"pairs:{write(tmp_path / 'a.tsv', rows)}"
    domain = opened("sentence", name)
    (share,) = domain.report(trained=False).doubts.values()
    assert share > 15


def test_the_second_of_two_files_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "dev.tsv", ROWS[:8])
    named = [f"x\t{b}\t{c}\t{a}" for a, b, c in (row.split("\t") for row in ROWS[8:])]
    write(tmp_path / "test.tsv", [*named, "x\ta\t\tb"], "id\tsentence2\tscore\tsentence1")
    scored = read_any("pairs:dev.tsv,test.tsv", tmp_path)
    assert (len(scored.dev), len(scored.sets["pairs"][0])) == (8, 12)
    (test,) = scored.sets["pairs"]
    assert (test.first[0], test.second[0], test.gold[0]) == ("sentence 8", "sentence 10", 2.0)
    assert (scored.dev.unscored, scored.sets["pairs"][0].unscored) == (0, 1)


def test_rows_without_scores_train_choose_and_report(tmp_path: Path) -> None:
    made = graded_pairs("test")
    rows = [list(pair) for pair in zip(made.first[:40], made.second[:40], strict=True)]
    lines = ["\t".join(row) for row in [*rows, [rows[1][1], "one more"], ["so", "so"]]]
    path = write(tmp_path / "a.tsv", lines, "sentence1\tsentence2")
    found = read_any(f"pairs:{path}", None)
    assert found.captions
    assert found.corpus
    assert [*found.notes.values()] == [1, 1]
    train, dev, test = found.corpus().rows, found.captions.dev, found.captions.test
    assert (len(train), len(dev), len(test)) == (32, 4, 4)
    rows[1].append("one more")  # its row is joined with that of the same sentence
    assert sorted([*train, *dev, *test]) == sorted(rows)
    recipe = {"epochs": 1, "eval_every": 9, "max_length": 3}  # a word between two marks
    own_pairs = opened("sentence", f"pairs:{path}", **recipe)
    assert own_pairs.evaluate(own_pairs.model()).main == "recall_at_1"
    assert own_pairs.corpus.rows == train
    told = own_pairs.report(trained=False)
    assert told.notes["first 1,000 training sentences, cut to 3 tokens"] == sum(map(len, train))
    assert own_pairs.notes(trained=True)["corpus"]["name"] == "a.tsv"


def test_pairs_of_the_datasets_library(tmp_path: Path) -> None:
    cells = [row.split("\t") for row in ROWS]
    columns = {
        "sentence1": [row[0] for row in cells],
        "sentence2": [row[1] for row in cells],
        "label": [float(row[2]) for row in cells],
    }
    whole = datasets.Dataset.from_dict(columns)
    parts = {"validation": whole.select(range(8)), "test": whole.select(range(8, 20))}
    datasets.DatasetDict({"train": whole, **parts}).save_to_disk(tmp_path / "mine")
    write(tmp_path / "dev.tsv", ROWS[:8])
    write(tmp_path / "test.tsv", ROWS[8:])
    assert read_any("hf:mine", tmp_path) == read_any("pairs:dev.tsv,test.tsv", tmp_path)
    datasets.Dataset.from_dict({**columns, "label": [None, *columns["label"][1:]]}).save_to_disk(
        tmp_path / "holes"
    )
    scored = read_any("hf:holes", tmp_path)
    assert scored.dev.unscored + scored.sets["pairs"][0].unscored == 1
    datasets.Dataset.from_dict({"text": ["one", "", "two"]}).save_to_disk(tmp_path / "texts")
    (tmp_path / "lines.txt").write_text("one\n\ntwo\n")
    rows, empty, digest, *_ = sentences_of("texts", own.saved_texts("texts", tmp_path))
    assert (rows, empty) == ([["one"], ["two"]], 1)
    recipe = SentenceRecipe(corpus="text:lines.txt")
    domain = opened("sentence", "graded", tmp_path)
    domain.scored, domain.recipe = replace(domain.scored, corpus=None), recipe
    assert domain.corpus[2] == digest, "the hub's texts are those of a file"
    with pytest.raises(UserError, match="hf:texts has the columns text: name sentence1"):
        read_any("hf:texts", tmp_path)
    with pytest.raises(UserError, match="hf:mine has no column text or sentence"):
        own.saved_texts("mine", tmp_path)


@pytest.mark.parametrize(
    "header",
    [
        "#1 String\t#2 String\tQuality",
        "sent_a\tsent_b\tsimilarity",
        "text1\ttext2\tlabel",
        "Question1\tQuestion2\tgold_score",
    ],
)
def test_columns_may_have_the_names_that_others_give(header: str, tmp_path: Path) -> None:
    write(tmp_path / "plain.tsv", ROWS)
    write(tmp_path / "named.tsv", ROWS, header)
    assert (
        read_any("pairs:named.tsv", tmp_path).sha256 == read_any("pairs:plain.tsv", tmp_path).sha256
    )


def test_equal_pairs_and_repeated_lines_are_counted(tmp_path: Path) -> None:
    rows = [f"{'ab'[k % 2]} {k // 2}\t{'ba'[k % 2]} {k // 2}\t{k}" for k in range(40)]
    write(tmp_path / "a.tsv", rows)
    corpus = Corpus([["a line"], ["a 1"], ["a line"], ["more"]], 2, "")
    report = DataReport.of(
        sentence_samples(read_any("pairs:a.tsv", tmp_path), corpus, {}, own=True)
    )
    assert report.twins
    assert (report.twins.repeated, report.twins.conflicts) == (40, 40)
    assert report.doubts == {"training sentences that repeat another": 1}
    assert report.notes == {"scored sentences that are trained on": 1}
    same = [f"a {k}\ta {k}\t{k}" for k in range(20)]
    write(tmp_path / "b.tsv", same)
    doubts = sentence_samples(read_any("pairs:b.tsv", tmp_path), None, {}, own=True).doubts
    assert doubts == {"pairs of twice the same sentence": 20}


@pytest.mark.parametrize(
    ("first", "more", "lines", "found"),
    [
        ("Dakima", "", ["nodasa"], {}),
        ("nan", "", ["nodasa"], {"pairs with a word for what is missing as a sentence": 1}),
        ("dakima", " ra" * 150, ["nodasa"], {"scored sentences, cut to 128 tokens": 1}),
        ("a", "", ["LEVU"], {"training rows left out, with a scored sentence": 1}),
        (
            "a",
            "",
            ["nodasa", "nodaSA", "nodas\u00e1", "nodasa!"],
            {"training sentences that repeat another but for capitals or the like": 2},
        ),
    ],
)
def test_sentences_are_compared_as_the_encoder_sees_them(
    first: str, more: str, lines: list[str], found: dict[str, int], tmp_path: Path
) -> None:
    words = ["levu", *map(spell, range(1, 31))]
    rows = [f"{a}\t{b}\t{k}" for k, (a, b) in enumerate(zip(words[1:], words, strict=False))]
    write(tmp_path / "a.tsv", [*rows[:-1], f"{first}{more}\t{words[7]} {words[9]}\t5.5"])
    write(tmp_path / "c.txt", lines + [spell(k) for k in range(40, 45)])
    domain = opened("sentence", "pairs:a.tsv", tmp_path, corpus="text:c.txt")
    report = domain.report(trained=True)
    assert {**report.notes, **report.doubts} == found


def test_pairs_that_differ_in_capitals_are_nearly_equal(tmp_path: Path) -> None:
    words = [*map(spell, range(1, 41))]
    rows = [f"{a}\t{b}\t{k}" for k, (a, b) in enumerate(zip(words[::2], words[1::2], strict=True))]
    write(tmp_path / "a.tsv", [*rows, *map(str.upper, rows)])
    domain = opened("sentence", "pairs:a.tsv", tmp_path)
    report = domain.report(trained=False)
    assert (report.twins.repeated, report.near.repeated) == (0, 40)


def test_the_order_of_what_rounding_left_is_no_rank() -> None:
    noise = torch.randn(100, generator=torch.Generator().manual_seed(0)).double().numpy() * 1e-8
    cosine, gold = 1 + noise, [*range(100)]
    cosine[:8] = [k / 10 for k in range(8)]
    level = cosine.round(3)
    assert spearman(cosine, gold) == pytest.approx(spearman(level, gold))
    assert spearman(noise[:8] + cosine[:8], gold[:8]) == 1
    assert spearman(noise, np.ones(100)) == 0, "nor is there one of equal scores"
