"""Dropout where several processes share a batch: each has its own rows of one process's masks."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import dropout, scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from contrastbench.distributed import own_rows
from contrastbench.domains.reading import refuse


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
