"""The sentence encoder with its poolers and training head, and sentences encoded by length."""

import copy
import math
from array import array
from collections import ChainMap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from contrastbench.distributed import own_rows
from contrastbench.domains.model import unwaited
from contrastbench.domains.progress import Progress
from contrastbench.domains.reading import refuse
from contrastbench.domains.sentence.checkpoint import Checkpoint
from contrastbench.domains.sentence.data import check_text
from contrastbench.errors import UserError

Ids = Sequence[int]
MOST_SENTENCES = 200_000  # kept of one tokenizer and length: about 50 MB
_kept: dict[tuple[str, int], dict[str, Ids]] = {}


class Tokens(NamedTuple):
    """A batch of sentences."""

    ids: Tensor  # (N, T)
    mask: Tensor  # (N, T) 1 for tokens, 0 for padding
    full: bool  # whether there is no padding, which the host knows


class Head(nn.Module):
    """SimCSE's dense layer and tanh over the pooled vector; knows whether it was trained."""

    def __init__(self, dense: nn.Linear, trained: bool) -> None:
        super().__init__()
        self.dense = dense
        self.trained: Tensor
        self.register_buffer("trained", torch.tensor(trained))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.trained.fill_(True)
        return torch.tanh(self.dense(x))


class SentenceModel(nn.Module):
    """Encoder, pooler, and the head that both cls poolers train through."""

    def __init__(
        self, encoder: Any, pooler: str, head: Head | None, precision: str = "float32"
    ) -> None:
        super().__init__()
        self.encoder, self.pooler, self.head, self.precision = encoder, pooler, head, precision

    def forward(self, tokens: Tokens) -> Tensor:
        """(N, D) embeddings: with the head in training, by the recipe's pooler in evaluation."""
        kind, half = tokens.ids.device.type, self.precision == "bf16"
        with torch.autocast(kind, torch.bfloat16, enabled=half):
            z = self.pooled(tokens)
            return self.head(z) if self.head and (self.training or self.pooler == "cls") else z

    def attended(self, tokens: Tokens) -> Tensor | None:
        """The mask as the encoder takes it without looking whether there is padding.

        transformers would wait for the device to know, and asks nothing of no mask and of one with
        four dimensions.
        """
        if tokens.full:
            return None
        if self.encoder.config._attn_implementation != "sdpa":
            return tokens.mask
        length = tokens.ids.shape[1]
        return tokens.mask[:, None, None].bool().expand(-1, 1, length, -1)

    def pooled(self, tokens: Tokens) -> Tensor:
        """(N, D) before the head."""
        if self.pooler == "static":
            return mean(self.encoder.get_input_embeddings()(tokens.ids), tokens.mask)
        layers = self.pooler in ("avg_top2", "avg_first_last")
        out = self.encoder(
            input_ids=tokens.ids, attention_mask=self.attended(tokens), output_hidden_states=layers
        )
        if self.pooler.startswith("cls"):
            return out.last_hidden_state[:, 0]
        if not layers:
            return mean(out.last_hidden_state, tokens.mask)
        # 0 is the embedding layer
        other = out.hidden_states[-2 if self.pooler == "avg_top2" else 1]
        return mean((out.last_hidden_state + other) / 2, tokens.mask)


def mean(x: Tensor, mask: Tensor) -> Tensor:
    """(N, D) means of (N, T, D) over the tokens that are no padding."""
    weight = mask.unsqueeze(2).to(x.dtype)
    return (x * weight).sum(dim=1) / weight.sum(dim=1)


def token_ids(checkpoint: Checkpoint, sentences: Sequence[str], most: int) -> list[Ids]:
    """Return the ids of each sentence, cut to `most` tokens.

    A sentence has the same ids in each batch. So they are kept under the checksum of the
    checkpoint's files; a checkpoint without files keeps none.
    """
    kept = _kept.setdefault((checkpoint.sha256, most), {}) if checkpoint.sha256 else {}
    new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in kept]
    about = {"truncation": True, "max_length": most, "verbose": False}
    rows = checkpoint.tokenizer(new, **about)["input_ids"] if new else []
    made: dict[str, Ids] = {text: array("i", ids) for text, ids in zip(new, rows, strict=True)}
    ids_of = ChainMap(made, kept)
    found = [ids_of[sentence] for sentence in sentences]
    if len(made) <= MOST_SENTENCES:
        if len(kept) + len(made) > MOST_SENTENCES:
            kept.clear()  # they are those of sets that a sweep has left behind
        kept.update(made)
    return found


def pad(rows: Iterable[Ids], padding: int, device: torch.device, least: int = 0) -> Tokens:
    """A batch of token ids of at least this length, in one copy to the device."""
    rows = [*rows]
    lengths = np.array([*map(len, rows)])
    there = np.arange(max(least, lengths.max())) < lengths[:, None]
    ids = np.full(there.shape, padding)
    ids[there] = np.fromiter(chain.from_iterable(rows), ids.dtype, lengths.sum())
    padded, mask = unwaited(torch.from_numpy(np.stack([ids, there])), device)
    return Tokens(padded, mask, bool(there.all()))


class OneDnnLinear(nn.Module):
    """A linear layer for inference on a CPU whose product runs in oneDNN.

    PyTorch gives float32 products to MKL, which takes about twice the time on AMD's processors.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight = linear.weight.detach().to_mkldnn()
        self.bias = None if linear.bias is None else linear.bias.detach().to_mkldnn()

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x.to_mkldnn(), self.weight, self.bias).to_dense()


def for_inference(model: SentenceModel, device: torch.device) -> SentenceModel:
    """The model in evaluation mode; on a CPU in float32 a copy with oneDNN's linear layers."""
    model = model.eval()
    if (
        device.type != "cpu"
        or model.precision != "float32"
        or not torch.backends.mkldnn.is_available()
    ):
        return model
    # no copies of the weights
    model = copy.deepcopy(model, {id(weight): weight for weight in model.parameters()})
    for module in [*model.encoder.modules()]:
        for name, child in module.named_children():
            if type(child) is nn.Linear:
                setattr(module, name, OneDnnLinear(child))
    return model


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
def encode(
    model: SentenceModel, checkpoint: Checkpoint, sentences: Iterable[str], batch_tokens: int
) -> Embeddings:
    """Embeddings of sentences: each distinct one once, in batches of equal or nearly equal length.

    Sentences are cut only where the encoder has no more positions; how many were cut, empty or had
    a NUL is counted.
    """
    check_head(model)
    distinct = list(dict.fromkeys(sentences))
    ids, odd = counted_ids(checkpoint, distinct)
    lengths = [len(row) for row in ids]
    batches = by_length(lengths, batch_tokens)
    device = next(model.parameters()).device
    model = for_inference(model, device)
    parts: list[Tensor] = []
    # batches of long sentences come first and hold few: tokens are what takes time
    with Progress(sum(lengths), "encoding tokens") as progress:
        for rows in batches:
            parts.append(
                model(pad((ids[i] for i in rows), checkpoint.tokenizer.pad_token_id, device))
                .float()
                .cpu()
            )
            progress.step(size=sum(lengths[i] for i in rows))
    z = torch.empty(len(ids), parts[0].shape[1])
    z[torch.tensor([*chain.from_iterable(batches)])] = torch.cat(parts)
    return Embeddings({sentence: i for i, sentence in enumerate(distinct)}, z, odd)


def check_head(model: SentenceModel) -> None:
    """Raise if a head would be scored that was never trained."""
    if model.head and model.pooler == "cls" and not model.head.trained:
        fix = "train it, or give pooler=cls_before_pooler, or head=checkpoint"
        raise UserError(f"pooler=cls would score a head that is newly initialised: {fix}")


def by_length(lengths: list[int], batch_tokens: int) -> list[list[int]]:
    """Rows in batches of nearly equal length, the longest first: memory fails at once.

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


def counted_ids(checkpoint: Checkpoint, sentences: list[str]) -> tuple[list[Ids], dict[str, int]]:
    check_text(sentences)
    limit = checkpoint.max_length
    ids = token_ids(checkpoint, sentences, limit + 1)
    cut = [i for i, row in enumerate(ids) if len(row) > limit]
    for i, row in zip(cut, token_ids(checkpoint, [sentences[i] for i in cut], limit), strict=True):
        ids[i] = row
    empty, nul = sum(not s.strip() for s in sentences), sum("\0" in s for s in sentences)
    return ids, {
        "distinct_sentences": len(sentences),
        "truncated": len(cut),
        "empty": empty,
        "with_nul": nul,
    }


class SharedDropout(TorchFunctionMode):
    """Draw dropout masks for the whole batch, as one process does, and cut them.

    The fused attention of one process draws masks too, so that attention is written out here.
    """

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows = rows

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is dropout:
            return self.drop(*args, **kwargs)
        if func is scaled_dot_product_attention and kwargs.get("dropout_p"):
            return self.attend(*args, **kwargs)
        return func(*args, **kwargs)

    def drop(
        self, x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        """The rows of this process under the mask of all."""
        if not training or p == 0:
            return x
        return x * dropout(x.new_ones(self.rows, *x.shape[1:]), p)[own_rows(self.rows)]

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        fault = "the attention of this encoder does not support several devices: give --devices 1"
        refuse("", (is_causal or enable_gqa, fault))
        scores = query @ key.mT * (scale or 1 / math.sqrt(query.shape[-1]))
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        elif attn_mask is not None:
            scores = scores + attn_mask
        return self.drop(scores.softmax(dim=-1), dropout_p) @ value
