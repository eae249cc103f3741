"""SentEval's files and corpora."""

from pathlib import Path

import pytest

from contrastbench.domains.sentence.data import (
    STS_YEARS,
    TextFiles,
    corpus_file,
    corpus_sentences,
    senteval_path,
    sick_pairs,
    sts_sets,
    stsb_pairs,
    year_pairs,
)
from contrastbench.domains.sentence.datasets import DATASETS
from contrastbench.domains.sentence.transfer import tasks
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
    with pytest.raises(UserError, match=r"has a damaged pair"):
        sick_pairs(TextFiles(tmp_path))


def test_a_missing_folder_and_bad_text_are_one_line(tmp_path: Path, offline: None) -> None:
    for root in (None, tmp_path):
        with pytest.raises(UserError, match=r"--data-root"):
            senteval_path(DATASETS["sts"], root)
    write(tmp_path, "bad.txt", b"fine\n\xed\xa0\x80\n")
    with pytest.raises(UserError, match=r"bad\.txt line 2 is not UTF-8"):
        corpus_sentences(tmp_path / "bad.txt")
    write(tmp_path, "one.txt", "only\n\n")
    with pytest.raises(UserError, match="1 sentences: give at least two"):
        corpus_sentences(tmp_path / "one.txt")
    for name in ("wiki1m", "no.txt"):
        with pytest.raises(UserError):
            corpus_file(name, tmp_path)
    write(tmp_path, "two.txt", "one\n \ntwo\r\n")
    assert corpus_sentences(corpus_file("two.txt", tmp_path))[:2] == (["one", "two"], 1)


def test_the_seven_sets_in_full(shared) -> None:
    root = shared("data", "senteval", "downstream")
    places = (root, root.parent, root.parents[1])
    assert {senteval_path(DATASETS["sts"], path) for path in places} == {root}
    sets = sts_sets(TextFiles(root))
    sizes = {name: sum(map(len, parts)) for name, parts in sets.items()}
    assert sizes == {
        "STS12": 3108, "STS13": 1500, "STS14": 3750, "STS15": 3000, "STS16": 1186,
        "STSB": 1379, "SICKR": 4927,
    }  # fmt: skip
    assert [*sets] == [*STS_YEARS, "STSB", "SICKR"]
    assert sum(part.unscored for part in sets["STS15"]) > 0


def test_the_seven_transfer_tasks_in_full(shared) -> None:
    found = {task.name: task for task in tasks(TextFiles(shared("data", "senteval", "downstream")))}
    assert [*found] == ["MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC"]
    assert len(found["MR"].train.y) == 10662
    assert [
        len(split.y)
        for split in (found["SST2"].train, found["SST2"].test, found["SST2"].dev)
        if split
    ] == [
        67349,
        1821,
        872,
    ]
    assert len(set(found["TREC"].train.y)) == 6
    assert len(found["MRPC"].test.second) == 1725
