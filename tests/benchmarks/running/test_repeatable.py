"""No operation of ours lacks a deterministic kernel on CUDA: `--deterministic` refuses none.

The list is that of torch's `use_deterministic_algorithms`, by the operations that a CPU is asked
for in its place.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.opening import open_domain
from contrastbench.benchmarks.running.training import train
from contrastbench.domains.registry import declaration
from contrastbench.losses import LOSSES, get_loss
from contrastbench.losses.laws.battery import prepared_loss
from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS, random_views
from contrastbench.losses.spec import LossSpec

REFUSED = {
    *("avg_pool3d_backward", "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward"),
    *("adaptive_max_pool2d_backward", "fractional_max_pool2d_backward", "max_unpool2d"),
    *("fractional_max_pool3d_backward", "max_unpool3d", "upsample_linear1d_backward"),
    *("upsample_bilinear2d_backward", "upsample_bicubic2d_backward", "nll_loss2d_forward"),
    *("_upsample_bilinear2d_aa_backward", "_upsample_bicubic2d_aa_backward", "_ctc_loss_backward"),
    *("upsample_trilinear3d_backward", "reflection_pad1d_backward", "reflection_pad2d_backward"),
    *("reflection_pad3d_backward", "put", "put_", "histc", "histogram", "grid_sampler_2d_backward"),
    *("grid_sampler_3d_backward", "kthvalue", "median"),
    *("nanmedian", "index_reduce", "index_reduce_"),
}
EXTRA: dict[str, tuple[dict[str, Any], ...]] = {
    "graph": ({"augmentation": "random4"},),
    "image": ({"views": "hard", "blur": 0.5, "probe": "paper"}, {"pairing": "query_key"}),
    "sentence": ({},),
    "tabular": ({"views": "masking+corruption"},),
}


class Asked(TorchDispatchMode):
    """Names of operations, those that are refused above all."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.refused: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name, kwargs = func._schema.name.removeprefix("aten::"), kwargs or {}
        weights = args[1] if len(args) > 1 else kwargs.get("weights")
        sums = name.startswith("scatter_reduce") and {"sum", "mean"} & {*args[4:], *kwargs.values()}
        if name in REFUSED or sums or (name == "bincount" and weights is not None):
            self.refused.add(name)
        self.names.add(name)
        return func(*args, **kwargs)


@pytest.mark.parametrize(("name", "values"), [(n, v) for n, some in EXTRA.items() for v in some])
def test_a_cell_asks_for_none(
    name: str, values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip({"graph": "torch_geometric", "sentence": "transformers"}.get(name, "torch"))
    about = declaration(name)
    experiment = Experiment(name, about.default, LossSpec("adnce"), {**about.tiny, **values})
    domain = open_domain(experiment, 0, None, torch.device("cpu"))
    if name == "image":
        from contrastbench.domains.image.probes import PROBES

        monkeypatch.setitem(PROBES, "paper", replace(PROBES["paper"], epochs=1))
    with Asked() as asked:
        model, _ = train(domain, get_loss("adnce"))
        domain.evaluate(model)
    assert "native_batch_norm_backward" in asked.names or "mm" in asked.names, "it has seen it all"
    assert asked.refused == set()


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_asks_for_none(name: str) -> None:
    with Asked() as asked:
        for pairing in LAW_PAIRINGS.values():
            views = random_views(0, 9, grad=True)
            prepared_loss(name, {})(pairing(views)).backward()
    assert asked.names & {"mm", "bmm", "_cdist_backward"}, "it has seen the backward pass too"
    assert asked.refused == set()


def test_one_that_is_refused_is_seen() -> None:
    with Asked() as asked:
        torch.bincount(torch.zeros(2, dtype=torch.long), torch.ones(2))
        torch.ones(3).histc(2)
        torch.bincount(torch.zeros(2, dtype=torch.long), None, 4)
        for kind in ("amax", "sum"):
            torch.zeros(2).scatter_reduce_(0, torch.ones(2).long(), torch.ones(2), kind)
    assert asked.refused == {"bincount", "histc", "scatter_reduce_"}
