"""A trained encoder as a folder that transformers and sentence-transformers load."""

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from contrastbench.domains.reading import refuse
from contrastbench.domains.sentence.checkpoint import Checkpoint, quiet
from contrastbench.domains.sentence.encoder import Head, SentenceModel

MODULE = "sentence_transformers.models.{}"  # the name that its old and new versions know
POOLING_CONFIG, MEAN = "1_Pooling/config.json", "pooling_mode_mean_tokens"
POOLING = {"avg": "mean_tokens", "cls": "cls_token", "cls_before_pooler": "cls_token"}


def check_pooler(pooler: str) -> None:
    """Raise unless sentence-transformers has this pooler."""
    fault = f" cannot be exported: sentence-transformers pools by {', '.join(POOLING)}"
    refuse(f"pooler={pooler}", (pooler not in POOLING, fault))


def export(model: SentenceModel, checkpoint: Checkpoint, folder: Path) -> None:
    """Write encoder, tokenizer and pooling; with `cls` the head too, as BERT's pooler.

    Raises:
        UserError: the recipe's pooler has no counterpart.
    """
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
    """The head as a module of sentence-transformers."""
    tanh = "torch.nn.modules.activation.Tanh"
    write_json(
        folder / "config.json",
        {"in_features": width, "out_features": width, "bias": True, "activation_function": tanh},
    )
    weights = {
        f"linear.{key}": tensor.cpu().contiguous()
        for key, tensor in head.dense.state_dict().items()
    }
    save_file(weights, folder / "model.safetensors")


def write_json(path: Path, value: Any) -> None:
    """JSON for people too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
