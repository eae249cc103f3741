"""SentEval's files and corpora, and runs on them with what real text brings along."""

from functools import partial
from pathlib import Path

import pytest

import senteval
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.store import Record
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.domains.sentence import transfer
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
from contrastbench.domains.sentence.transfer import Examples
from contrastbench.losses import UserError
from contrastbench.losses.spec import LossSpec
from opened import opened


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
    for text in ("one\n \ntwo\r\n", "one\r \rtwo\r"):
        write(tmp_path, "two.txt", text)
        assert read_corpus("two.txt", tmp_path)[:2] == ([["one"], ["two"]], 1)


TRAINING = {"epochs": 1, "batch_size": 8, "eval_every": 3}


def score(root: Path, dataset: str, loss: str = "none", recipe: dict | None = None) -> Record:
    """The record of a run on the files of a folder; results stand beside them."""
    experiment = Experiment("sentence", dataset, LossSpec(loss), recipe or {})
    return run_cell(experiment, 0, Options(root / "results", data_root=root, device="cpu"))[0]


def test_odd_sentences_are_trained_on_scored_and_counted(tmp_path: Path, small_sets: None) -> None:
    senteval.make(tmp_path, senteval.ODD)
    unscored = [f"{one} more" for one in [*senteval.ODD[1:], *map(senteval.sentence, range(20))]]
    corpus = ["one and the same"] * 16 + ["", *unscored]
    (tmp_path / "corpus.txt").write_text("\n".join(corpus) + "\n", encoding="utf-8")
    recipe = {**TRAINING, "corpus": "corpus.txt"}
    record = score(tmp_path, "sts", "adnce", recipe)
    assert record["status"] == "ok", record["details"]
    assert {*record["metrics"]} == {
        "STS12",
        "STS13",
        "STS14",
        "STS15",
        "STS16",
        "STSB",
        "SICKR",
        "avg",
    }
    details = record["details"]
    assert [details[key] for key in ("empty", "with_nul", "truncated")] == [1, 1, 1]
    assert details["corpus"] == {"name": "corpus.txt", "sentences": 38, "empty_lines": 1}
    assert [step for step, _ in details["dev_curve"]] == [3, 5]


def test_transfer_tasks_are_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_sets: None
) -> None:
    monkeypatch.setattr(transfer, "FOLDS", 3)
    senteval.make(tmp_path, [])
    record = score(tmp_path, "transfer")
    assert record["status"] == "ok", record["details"]
    assert {*record["metrics"]} == {"MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC", "avg"}
    assert len(record["details"]["tasks"]["MR"]) == 3
    assert record["metrics"]["TREC"] == 100, "its test sentences are the training ones"


@pytest.mark.parametrize("dataset", ["sts", "transfer"])
def test_a_truncated_set_is_no_smaller_set(dataset: str, tmp_path: Path) -> None:
    senteval.make(tmp_path, [])
    with pytest.raises(UserError, match=r"downstream: STSB dev has 12 rows, not 1500: get https"):
        score(tmp_path, dataset)


def test_a_corpus_that_is_not_simcse_s_is_not_taken_for_it(
    tmp_path: Path, small_sets: None
) -> None:
    senteval.make(tmp_path, [])
    (tmp_path / "wiki1m_for_simcse.txt").write_text("one\ntwo\n")
    with pytest.raises(
        UserError, match=r"wiki1m_for_simcse.txt is not SimCSE's file .*--recipe corpus="
    ):
        score(tmp_path, "sts", "infonce")


@pytest.mark.parametrize(
    ("dataset", "recipe", "message"),
    [
        ("transfer", {"whiten": True}, "whitening needs scored pairs, but transfer has none"),
        ("graded", {"pooler": "cls"}, "head that is newly initialised"),
    ],
)
def test_what_would_be_ignored_or_fail_later_is_refused(
    dataset: str, recipe: dict[str, object], message: str, tmp_path: Path, small_sets: None
) -> None:
    senteval.make(tmp_path, [])
    with pytest.raises(UserError, match=message):
        score(tmp_path, dataset, recipe=recipe)
    assert not (tmp_path / "results").exists()


def test_a_limit_scores_few_too_and_is_other_data(tmp_path: Path, small_sets: None) -> None:
    senteval.make(tmp_path, [])

    domain = partial(opened, "sentence", data_root=tmp_path)
    whole, few = domain("sts"), domain("sts", limit=4)
    assert (len(whole.scored.dev.gold), len(few.scored.dev.gold)) == (12, 4)
    assert few.scored.dev.first == whole.scored.dev.first[::3]
    assert {len(part.gold) for some in few.scored.sets.values() for part in some} == {4}
    hashes = {one.data_hash(False) for one in (whole, few, domain("sts", limit=5))}
    assert len(hashes) == 3
    trec, whole = (domain("transfer", **one).scored.tasks[5].train for one in ({"limit": 8}, {}))
    assert trec.y == whole.y, "folds within folds need more of each"


def test_few_of_a_task_are_as_many_of_each_class() -> None:
    many = Examples([str(i) for i in range(100)], ["0"] * 70 + ["1"] * 30, ["x"] * 100)
    few = many.few(60)
    assert (few.y.count("0"), few.y.count("1"), len(few.second)) == (30, 30, 60)
    assert few.first[:2] == ["0", "1"]
