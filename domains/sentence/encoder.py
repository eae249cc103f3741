"""The sentence encoder: a model of transformers, its poolers, and the head that training adds."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


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
