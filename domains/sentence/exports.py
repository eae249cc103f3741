"""Trained encoders of sentences as folders, written and opened.

transformers and sentence-transformers load them too.
"""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from contrastbench.domains import own
from contrastbench.domains.exported import EXPORT_FIX, Listed, config_of, write_json, write_tensors
from contrastbench.domains.reading import reading, refuse
from contrastbench.domains.sentence.checkpoint import Checkpoint, load_checkpoint, quiet
from contrastbench.domains.sentence.data import lines_of
from contrastbench.domains.sentence.encoder import Head, SentenceModel, encode
from contrastbench.domains.sentence.own import saved_texts
from contrastbench.errors import UserError

BATCH_TOKENS = 2048
MODULE = "sentence_transformers.models.{}"  # the name that its old and new versions know
POOLING_CONFIG, MEAN = "1_Pooling/config.json", "pooling_mode_mean_tokens"
POOLING = {"avg": "mean_tokens", "cls": "cls_token", "cls_before_pooler": "cls_token"}


@dataclass(frozen=True)
class Encoder:
    """A frozen model with its tokenizer."""

    network: SentenceModel
    checkpoint: Checkpoint

    def embed(self, data: Any) -> Tensor:
        """(n, d) float32 on the CPU.

        Args:
            data: a list of sentences.
        """
        if isinstance(data, str):
            raise UserError(f"{data[:40]!r} is one text: give a list of sentences")
        sentences = list(data)
        for number, sentence in enumerate(sentences):
            if not isinstance(sentence, str):
                raise UserError(f"sentence {number} is {sentence!r}, no text: give strings")
        refuse("", (not sentences, "there are no sentences: give a list with some"))
        return encode(self.network, self.checkpoint, sentences, BATCH_TOKENS).of(sentences)

    def read(self, dataset: str, data_root: Path | None) -> Listed:
        kind, _, what = dataset.partition(":")
        if kind == "text" and what:
            lines = lines_of(own.find_path(what, data_root))
        elif kind == "hf" and what:
            lines = saved_texts(what, data_root)
        else:
            raise UserError(
                f"{dataset} holds no plain sentences: give text:FILE, with one in a line"
            )
        return Listed(lines, lines)


def open_encoder(name: str, data_root: Path | None, device: torch.device) -> Encoder:
    folder = Path(name)
    pooling = config_of(folder, POOLING_CONFIG)
    with reading(folder, EXPORT_FIX):
        checkpoint = load_checkpoint(str(folder.absolute()), None)
        head, pooler = None, "avg" if pooling[MEAN] else "cls_before_pooler"
        if (folder / "2_Dense").is_dir():
            head, pooler = Head(copy.deepcopy(checkpoint.own_pooler(name)), trained=True), "cls"
        model = SentenceModel(checkpoint.encoder, pooler, head)
    return Encoder(model.to(device).eval(), checkpoint)


def check_pooler(pooler: str) -> None:
    fault = f" cannot be exported: sentence-transformers pools by {', '.join(POOLING)}"
    refuse(f"pooler={pooler}", (pooler not in POOLING, fault))


def export(model: SentenceModel, checkpoint: Checkpoint, folder: Path) -> None:
    check_pooler(model.pooler)
    head = model.head if model.pooler == "cls" else None
    weights = {key: tensor.cpu().contiguous() for key, tensor in model.encoder.state_dict().items()}
    if head:
        weights |= {
            f"pooler.dense.{key}": tensor.cpu() for key, tensor in head.dense.state_dict().items()
        }
    with quiet():
        model.encoder.save_pretrained(folder, state_dict=weights)
        # else it is saved with the length that was last encoded with
        checkpoint.tokenizer.backend_tokenizer.no_truncation()
        checkpoint.tokenizer.save_pretrained(folder)
    write_json(
        folder / "sentence_bert_config.json",
        {"max_seq_length": checkpoint.max_length, "do_lower_case": False},
    )
    modules = [("Transformer", ""), ("Pooling", "1_Pooling"), *[("Dense", "2_Dense")] * bool(head)]
    kinds = [
        {"idx": i, "name": str(i), "path": p, "type": MODULE.format(kind)}
        for i, (kind, p) in enumerate(modules)
    ]
    write_json(folder / "modules.json", kinds)
    modes = {
        f"pooling_mode_{mode}": mode == POOLING[model.pooler]
        for mode in ("cls_token", "mean_tokens")
    }
    width = model.encoder.config.hidden_size
    write_json(folder / POOLING_CONFIG, {"word_embedding_dimension": width, **modes})
    if head:
        write_dense(head, width, folder / "2_Dense")


def write_dense(head: Head, width: int, folder: Path) -> None:
    tanh = "torch.nn.modules.activation.Tanh"
    write_json(
        folder / "config.json",
        {"in_features": width, "out_features": width, "bias": True, "activation_function": tanh},
    )
    weights = {f"linear.{key}": tensor for key, tensor in head.dense.state_dict().items()}
    write_tensors(folder / "model.safetensors", weights)
