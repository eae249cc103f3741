"""Token ids of sentences, made once in a process: a sweep trains many cells on the same ones."""

from array import array
from collections import ChainMap
from collections.abc import Sequence

from contrastbench.domains.sentence.checkpoint import Checkpoint

Ids = Sequence[int]
MOST_SENTENCES = 200_000  # kept of one tokenizer and length: about 50 MB
_kept: dict[tuple[str, int], dict[str, Ids]] = {}


def token_ids(checkpoint: Checkpoint, sentences: Sequence[str], most: int) -> list[Ids]:
    """Return the ids of each sentence, cut to `most` tokens.

    A sentence has the same ids in each batch. So they are kept under the checksum of the
    checkpoint's files; a checkpoint without files keeps none.
    """
    kept = _kept.setdefault((checkpoint.sha256, most), {}) if checkpoint.sha256 else {}
    new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in kept]
    about = {"truncation": True, "max_length": most, "verbose": False}
    rows = checkpoint.tokenizer(new, **about)["input_ids"] if new else []
    made: dict[str, Ids] = {
        sentence: array("i", ids) for sentence, ids in zip(new, rows, strict=True)
    }
    ids_of = ChainMap(made, kept)
    found = [ids_of[sentence] for sentence in sentences]
    if len(made) <= MOST_SENTENCES:
        if len(kept) + len(made) > MOST_SENTENCES:
            kept.clear()  # they are those of sets that a sweep has left behind
        kept.update(made)
    return found
