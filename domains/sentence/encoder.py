"""Sentence encoders: any BERT-type checkpoint of transformers, its poolers, and the head that training adds."""

import hashlib
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import HfApi, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging
from transformers.utils.hub import cached_file

from contrastbench.domains.progress import Progress
from contrastbench.domains.sentence.data import check_text
from contrastbench.losses.errors import UserError

TOKENIZER_FILES = (
    "tokenizer*.json",
    "vocab.*",
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
    "*.model",
)
REVISIONS = {  # of the names that the papers' tables use
    "bert-base-uncased": "86b5e0934494bd15c9632b12f734a8a67f723594",
    "roberta-base": "e2da8e2f811d1448a5b465c236feacd80ffbac7b",
}


@dataclass(frozen=True)
class Checkpoint:
    """An encoder as it was found, its tokenizer, and the layer over its first token if it has one."""

    encoder: Any
    tokenizer: Any
    pooler: nn.Linear | None
    sha256: str = ""  # of its files; empty where the seed alone makes it

    def own_pooler(self, name: str) -> nn.Linear:
        """The checkpoint's layer over the first token.

        Raises:
            UserError: it has none.
        """
        if self.pooler is None:
            raise UserError(f"encoder {name!r} has no pooler of its own: give --recipe head=new and train it")
        return self.pooler

    @property
    def max_length(self) -> int:
        """Tokens that the encoder has positions for; RoBERTa's begin behind the padding id."""
        config = self.encoder.config
        offset = config.pad_token_id + 1 if "roberta" in config.model_type else 0
        return min(int(config.max_position_embeddings) - offset, self.tokenizer.model_max_length)


def load_checkpoint(name: str, data_root: Path | None) -> Checkpoint:
    """The checkpoint of a folder (in the data root or not) or of the hub; `random:` before it gives it new weights.

    Raises:
        UserError: no such checkpoint, no network, no weights, or weights that would be newly initialised.
    """
    source, fresh = name.removeprefix("random:"), name.startswith("random:")
    path, revision = locate(source, data_root)
    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(path, revision=revision)
            encoder, new = random_encoder(path, revision) if fresh else saved_encoder(path, revision)
            config = cached_file(path, "config.json", revision=revision)  # it lies beside all that was just read
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"encoder {name!r} cannot be loaded: {reason(error, path)}") from None
    checkpoint = checked(name, encoder, tokenizer, new)
    return replace(checkpoint, sha256=files_hash(Path(str(config)).parent, weights=not fresh))


def saved_encoder(path: str, revision: str | None) -> tuple[Any, set[str]]:
    """The checkpoint's encoder and those of its weights that are newly initialised; no pickle is read."""
    encoder, info = AutoModel.from_pretrained(
        path, revision=revision, output_loading_info=True, dtype=torch.float32, use_safetensors=True
    )
    return encoder, set(info["missing_keys"]) | {key for key, *_ in info["mismatched_keys"]}


def random_encoder(path: str, revision: str | None) -> tuple[Any, set[str]]:
    """An encoder of the checkpoint's shape with new weights; its pooler is not to be scored."""
    encoder = AutoModel.from_config(AutoConfig.from_pretrained(path, revision=revision))
    return encoder, {"pooler.dense.weight"}


def files_hash(folder: Path, weights: bool) -> str:
    """Sha256 over names and bytes of configuration, tokenizer and weights: the same wherever the folder lies."""
    patterns = ("config.json", *TOKENIZER_FILES, *(["model*.safetensors"] if weights else []))
    found = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in folder.glob(pattern)}):
        with path.open("rb") as file:
            found.update(path.name.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def locate(source: str, data_root: Path | None) -> tuple[str, str | None]:
    """The folder or the hub's name, and the revision for the hub."""
    for path in ([data_root / source] if data_root else []) + [Path(source)]:
        if path.is_dir():
            if not (path / "config.json").is_file():
                raise UserError(f"encoder {source!r}: {path} has no config.json: it is no checkpoint of transformers")
            return str(path), None
    if source.startswith((".", "/", "~")) or source.count("/") > 1:
        raise UserError(f"encoder {source!r}: no such folder")
    repository, _, named = source.partition("@")
    revision = named or REVISIONS.get(repository)
    check_hub(repository, revision)
    return repository, revision


def check_hub(repository: str, revision: str | None) -> None:
    """Raise if the hub is needed and cannot be reached: transformers would try again for minutes."""
    if isinstance(try_to_load_from_cache(repository, "config.json", revision=revision), str):
        return
    try:
        HfApi().model_info(repository, revision=revision, timeout=20)
    except (HfHubHTTPError, HFValidationError):
        return  # it was reached, or the name is none: transformers says what is wrong
    except Exception as error:  # a network library's, whichever the hub's version uses
        fix = f"name a folder that holds the checkpoint, here or in the data root: get https://huggingface.co/{repository}"
        raise UserError(f"encoder {repository!r}: the hub cannot be reached ({type(error).__name__}); {fix}") from None


def reason(error: Exception, path: str) -> str:
    """What went wrong, in one line."""
    text = " ".join(str(error).split())
    if "no file named model.safetensors" in text:
        return f"{path} has no model.safetensors (weights of another kind: save_pretrained of transformers writes it)"
    return text.split(". ")[0][:200]


def checked(name: str, encoder: Any, tokenizer: Any, missing: set[str]) -> Checkpoint:
    """The checkpoint if all of its weights come from its file; its pooler is taken off and may be new."""
    lost = sorted(key for key in missing if not key.startswith("pooler."))
    if lost:
        fix = f"encoder {name!r} lacks weights that would be newly initialised"
        raise UserError(f"{fix}: {', '.join(lost[:3])}{', ...' if len(lost) > 3 else ''}")
    pooler = getattr(getattr(encoder, "pooler", None), "dense", None)
    if hasattr(encoder, "pooler"):
        encoder.pooler = None  # it would run, untrained as it may be, on every batch
    return Checkpoint(encoder, tokenizer, None if missing else pooler)


@contextmanager
def quiet() -> Any:
    """Without transformers' bars and reports on standard error; errors are still raised."""
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()


class Head(nn.Module):
    """SimCSE's dense layer and tanh over the pooled vector; knows whether its weights mean anything."""

    def __init__(self, dense: nn.Linear, trained: bool) -> None:
        super().__init__()
        self.dense = dense
        self.trained: Tensor
        self.register_buffer("trained", torch.tensor(trained))

    def forward(self, x: Tensor) -> Tensor:
        """(N, D) to (N, D)."""
        if self.training:
            self.trained.fill_(True)
        return torch.tanh(self.dense(x))


class SentenceModel(nn.Module):
    """Encoder, pooler, and the head that both cls poolers train through.

    Args:
        encoder: a model of transformers.
        pooler: as in the recipe.
        head: of the cls poolers.
    """

    def __init__(self, encoder: Any, pooler: str, head: Head | None, precision: str = "float32") -> None:
        super().__init__()
        self.encoder, self.pooler, self.head, self.precision = encoder, pooler, head, precision

    def forward(self, tokens: dict[str, Tensor]) -> Tensor:
        """(N, D) embeddings: with the head in training, by the recipe's pooler in evaluation."""
        with torch.autocast(tokens["input_ids"].device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            z = self.pooled(tokens)
            return self.head(z) if self.head and (self.training or self.pooler == "cls") else z

    def pooled(self, tokens: dict[str, Tensor]) -> Tensor:
        """(N, D) before the head."""
        if self.pooler == "static":
            return mean(self.encoder.get_input_embeddings()(tokens["input_ids"]), tokens["attention_mask"])
        layers = self.pooler in ("avg_top2", "avg_first_last")
        out = self.encoder(**tokens, output_hidden_states=layers)
        if self.pooler.startswith("cls"):
            return out.last_hidden_state[:, 0]
        if not layers:
            return mean(out.last_hidden_state, tokens["attention_mask"])
        other = out.hidden_states[-2 if self.pooler == "avg_top2" else 1]  # 0 is the embedding layer
        return mean((out.last_hidden_state + other) / 2, tokens["attention_mask"])


def mean(x: Tensor, mask: Tensor) -> Tensor:
    """(N, D) means of (N, T, D) over the tokens that are no padding."""
    weight = mask.unsqueeze(2).to(x.dtype)
    return (x * weight).sum(dim=1) / weight.sum(dim=1)


def pad(rows: Iterable[list[int]], padding: int, device: torch.device) -> dict[str, Tensor]:
    """A batch of token ids."""
    ids = [torch.tensor(row) for row in rows]
    mask = [torch.ones_like(row) for row in ids]
    padded = nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=padding)
    return {
        "input_ids": padded.to(device),
        "attention_mask": nn.utils.rnn.pad_sequence(mask, batch_first=True).to(device),
    }


@dataclass(frozen=True)
class Embeddings:
    """Embeddings of distinct sentences, and what was odd about the sentences."""

    row: dict[str, int]
    z: Tensor  # (n, D) float32 on the CPU
    odd: dict[str, int]

    def of(self, sentences: Iterable[str]) -> Tensor:
        """(len(sentences), D) in their order."""
        return self.z[[self.row[sentence] for sentence in sentences]]


@torch.no_grad()
def encode(model: SentenceModel, checkpoint: Checkpoint, sentences: Iterable[str], batch_tokens: int) -> Embeddings:
    """Embeddings of sentences: each distinct one once, in batches of equal or nearly equal length.

    Sentences are cut only where the encoder has no more positions; how many were cut, empty or had a NUL is counted.

    Raises:
        UserError: a sentence has a lone surrogate, or the head that would be scored was never trained.
    """
    if model.head and model.pooler == "cls" and not model.head.trained:
        fix = "train it, or give pooler=cls_before_pooler, or head=checkpoint"
        raise UserError(f"pooler=cls would score a head that is newly initialised: {fix}")
    distinct = list(dict.fromkeys(sentences))
    ids, odd = tokenized(checkpoint, distinct)
    batches = by_length([len(row) for row in ids], batch_tokens)
    device, model = next(model.parameters()).device, model.eval()
    parts: list[Tensor] = []
    with Progress(len(batches), "encoding") as progress:
        for rows in batches:
            parts.append(model(pad((ids[i] for i in rows), checkpoint.tokenizer.pad_token_id, device)).float().cpu())
            progress.step()
    z = torch.empty(len(ids), parts[0].shape[1])
    z[torch.tensor([*chain.from_iterable(batches)])] = torch.cat(parts)
    return Embeddings({sentence: i for i, sentence in enumerate(distinct)}, z, odd)


def by_length(lengths: list[int], batch_tokens: int) -> list[list[int]]:
    """Rows in batches of equal or nearly equal length, the longest first: memory problems show at once.

    >>> by_length([3, 9, 2, 3], batch_tokens=6)
    [[1], [0, 3], [2]]
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    batches, start = [], 0
    while start < len(order):
        size = max(1, batch_tokens // lengths[order[start]])
        batches.append(order[start : start + size])
        start += size
    return batches


def tokenized(checkpoint: Checkpoint, sentences: list[str]) -> tuple[list[list[int]], dict[str, int]]:
    """Token ids, and how many sentences were cut, empty or had a NUL."""
    check_text(sentences)
    limit = checkpoint.max_length
    ids = checkpoint.tokenizer(sentences, truncation=True, max_length=limit + 1, verbose=False)["input_ids"]
    cut = [i for i, row in enumerate(ids) if len(row) > limit]
    for i in cut:
        ids[i] = checkpoint.tokenizer(sentences[i], truncation=True, max_length=limit)["input_ids"]
    empty, nul = sum(not s.strip() for s in sentences), sum("\0" in s for s in sentences)
    return ids, {"distinct_sentences": len(sentences), "truncated": len(cut), "empty": empty, "with_nul": nul}
