"""SentEval's files and corpora."""

from pathlib import Path

import pytest

from contrastbench.domains.sentence.data import (
    TextFiles,
    corpus_file,
    read_corpus,
    senteval_path,
    sick_pairs,
    stsb_pairs,
    year_pairs,
)
from contrastbench.domains.sentence.datasets import DATASETS
from contrastbench.losses import UserError


def write(root: Path, name: str, text: str | bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def test_rows_without_a_gold_score_are_counted_and_left_out(tmp_path: Path) -> None:
    write(tmp_path, "STS/STS15-en-test/STS.input.belief.txt", "a\tb\nc\td\ne\x85x\tf\n")
    write(tmp_path, "STS/STS15-en-test/STS.gs.belief.txt", "1.5\n\n5\n")
    found = year_pairs(TextFiles(tmp_path), "STS15", "belief")
    assert (found.first, found.second, found.gold, found.unscored) == (
        ["a", "e x"],
        ["b", "f"],
        [1.5, 5.0],
        1,
    )
    write(tmp_path, "STS/STS15-en-test/STS.gs.belief.txt", "1.5\n")
    with pytest.raises(UserError, match=r"STS\.gs\.belief\.txt is damaged: 3 pairs for 1 scores"):
        year_pairs(TextFiles(tmp_path), "STS15", "belief")


def test_stsb_and_sick_columns(tmp_path: Path) -> None:
    write(
        tmp_path,
        "STS/STSBenchmark/sts-dev.csv",
        'g\tf\ty\t1\t2.5\ta "b\tc\ng\tf\ty\t1\t0\td\te\tsource\n',
    )
    found = stsb_pairs(TextFiles(tmp_path), "dev")
    assert (found.first, found.second, found.gold) == (['a "b', "d"], ["c", "e"], [2.5, 0.0])
    write(
        tmp_path,
        "SICK/SICK_test_annotated.txt",
        "head\r\n6\ta\tb\t3.3\tN\tM\r\n7\tc\td\t4\tN\tM\r\n",
    )
    assert sick_pairs(TextFiles(tmp_path)).gold == [3.3, 4.0]
    write(tmp_path, "SICK/SICK_test_annotated.txt", "head\n6\ta\n")
    with pytest.raises(UserError, match=r"line 2 has a damaged pair"):
        sick_pairs(TextFiles(tmp_path))


def test_a_missing_folder_and_bad_text_are_one_line(tmp_path: Path, offline: None) -> None:
    for root in (None, tmp_path):
        with pytest.raises(UserError, match=r"--data-root"):
            senteval_path(DATASETS["sts"], root)
    with pytest.raises(UserError):
        corpus_file("wiki1m", tmp_path)
    write(tmp_path, "two.txt", "one\n \ntwo\r\n")
    assert read_corpus("two.txt", tmp_path)[:2] == ([["one"], ["two"]], 1)
