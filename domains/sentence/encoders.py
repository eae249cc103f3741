"""Trained encoders of sentences as folders, ready to embed."""

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from contrastbench.domains import own
from contrastbench.domains.exported import EXPORT_FIX, Samples, no_export
from contrastbench.domains.reading import contents, reading, refuse
from contrastbench.domains.sentence.checkpoint import Checkpoint, load_checkpoint
from contrastbench.domains.sentence.data import lines_of
from contrastbench.domains.sentence.encoder import Head, SentenceModel
from contrastbench.domains.sentence.encoding import encode
from contrastbench.domains.sentence.export import MEAN, POOLING_CONFIG
from contrastbench.domains.sentence.own import saved_texts
from contrastbench.errors import UserError

BATCH_TOKENS = 2048


@dataclass(frozen=True)
class Encoder:
    """A frozen model with its tokenizer."""

    network: SentenceModel
    checkpoint: Checkpoint

    def embed(self, data: Any) -> Tensor:
        """(n, d) float32 on the CPU.

        Args:
            data: a list of sentences.

        Raises:
            UserError: there is none, or one is no text.
        """
        if isinstance(data, str):
            raise UserError(f"{data[:40]!r} is one text: give a list of sentences")
        sentences = list(data)
        for number, sentence in enumerate(sentences):
            if not isinstance(sentence, str):
                raise UserError(f"sentence {number} is {sentence!r}, no text: give strings")
        refuse("", (not sentences, "there are no sentences: give a list with some"))
        return encode(self.network, self.checkpoint, sentences, BATCH_TOKENS).of(sentences)

    def read(self, dataset: str, data_root: Path | None) -> Samples:
        """Return the lines of a text file, or the texts of a set of `datasets`, in order."""
        kind, _, what = dataset.partition(":")
        if kind == "text" and what:
            lines = lines_of(own.find_path(what, data_root))
        elif kind == "hf" and what:
            lines = saved_texts(what, data_root)
        else:
            raise UserError(
                f"{dataset} holds no plain sentences: give --dataset text:FILE with one in a line"
            )
        return Samples(lines, lines)


def open_encoder(name: str, data_root: Path | None, device: torch.device) -> Encoder:
    """Open a folder that `bench run --export` wrote.

    Raises:
        UserError: there is none, or it is damaged.
    """
    folder = Path(name)
    if not (folder / POOLING_CONFIG).is_file():
        raise no_export(name)
    with reading(folder, EXPORT_FIX):
        pooling = json.loads(contents(folder / POOLING_CONFIG))
        checkpoint = load_checkpoint(str(folder.absolute()), None)
        head, pooler = None, "avg" if pooling[MEAN] else "cls_before_pooler"
        if (folder / "2_Dense").is_dir():
            head, pooler = Head(copy.deepcopy(checkpoint.own_pooler(name)), trained=True), "cls"
        model = SentenceModel(checkpoint.encoder, pooler, head)
    return Encoder(model.to(device).eval(), checkpoint)
