"""Token ids are those of the tokenizer, whichever batch a sentence comes in, and are made once."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from contrastbench.domains.sentence import encoding, graded
from contrastbench.domains.sentence.checkpoint import Checkpoint
from contrastbench.domains.sentence.encoding import pad

SENTENCES = ["", "one", "one two three four five", "one", "zwölf 12 !", "two  one"]


class Counted:
    """A tokenizer that counts the sentences it is given."""

    def __init__(self) -> None:
        self.inner, self.count = graded.tokenizer(), 0

    def __call__(self, sentences: list[str], **about: Any) -> Any:
        self.count += len(sentences)
        return self.inner(sentences, **about)


@pytest.fixture
def checkpoint(monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    monkeypatch.setattr(encoding, "_kept", {})
    return Checkpoint(None, Counted(), None, sha256="a")


@pytest.mark.parametrize("most", [3, 64])
def test_ids_are_those_of_the_tokenizer_alone(checkpoint: Checkpoint, most: int) -> None:
    encoding.token_ids(checkpoint, SENTENCES[3:], most)
    found = encoding.token_ids(checkpoint, SENTENCES, most)
    about = {"truncation": True, "max_length": most}
    assert [[*row] for row in found] == [
        graded.tokenizer()(sentence, **about)["input_ids"] for sentence in SENTENCES
    ]


def test_a_sentence_is_tokenized_once_for_a_checkpoint_and_a_length(checkpoint: Checkpoint) -> None:
    distinct = len(set(SENTENCES))
    for _ in range(3):
        encoding.token_ids(checkpoint, SENTENCES, 8)
    assert checkpoint.tokenizer.count == distinct
    encoding.token_ids(checkpoint, SENTENCES, 9)
    assert checkpoint.tokenizer.count == 2 * distinct
    encoding.token_ids(replace(checkpoint, sha256="b"), SENTENCES, 8)
    assert checkpoint.tokenizer.count == 3 * distinct


def test_a_full_store_makes_room_for_the_next_set(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "MOST_SENTENCES", 3)
    given = ["a", "b"], ["b", "c", "d"], ["c", "d"], [*"efgh"], ["c"]
    found = [[[*row] for row in encoding.token_ids(checkpoint, some, 8)] for some in given]
    assert found == [graded.tokenizer()(some)["input_ids"] for some in given]
    assert checkpoint.tokenizer.count == 2 + 2 + 4


def test_a_checkpoint_without_files_keeps_nothing(checkpoint: Checkpoint) -> None:
    made = replace(checkpoint, sha256="")
    encoding.token_ids(made, SENTENCES, 8)
    encoding.token_ids(made, SENTENCES, 8)
    assert made.tokenizer.count == 2 * len(set(SENTENCES))


def test_a_padded_batch_is_that_of_torch() -> None:
    rows = [[2, 5, 3], [2], [2, 7, 7, 9, 3]]
    tokens = pad(iter(rows), 1, torch.device("cpu"))
    expected = nn.utils.rnn.pad_sequence([*map(torch.tensor, rows)], True, 1)
    assert tokens.ids.dtype == expected.dtype
    assert tokens.ids.equal(expected)
    assert tokens.mask.sum(1).tolist() == [3, 1, 5]
    assert tokens.mask[1].tolist() == [1, 0, 0, 0, 0]
    assert not tokens.full
    assert pad([[1, 2], [3, 4]], 0, torch.device("cpu")).full
