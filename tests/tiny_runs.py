"""Numbers of every loss in every domain: the first step of a training.

A module of its own, so that a process can be started with it on instructions that every CPU has.
`python tests/tiny_runs.py` adds new losses, new domains and domains whose protocol has a new
version to the file that tests/attack/test_numbers.py compares with, and leaves every other line.
`python tests/tiny_runs.py --anew DOMAIN` writes the numbers of that domain anew.
"""

import json
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import frozen
from contrastbench.domains.registry import DOMAINS

KNOWN = Path(__file__).with_name("attack") / "numbers.json"
PLAIN = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OMP_NUM_THREADS": "1",
}
SMALL = {"limit": 48, "batch_size": 16}
# where it is not the domain's default
DATASETS = {"graph": "motifs", "image": "digits", "tabular": "digits-table"}


def measure(domain: str) -> dict[str, Any]:
    """The protocol, and each loss's value and the length of its gradient on the first batch.

    Further steps tell rounding from meaning no more: on graphs they part by percents.
    """
    import torch

    from contrastbench.benchmarks.records.experiment import Cell, Experiment
    from contrastbench.benchmarks.running.runner import make_cell_loss, open_domain
    from contrastbench.domains.registry import declaration
    from contrastbench.losses.registry import LOSSES
    from contrastbench.losses.spec import LossSpec

    torch.set_num_threads(1)
    about, steps = declaration(domain), {}
    dataset = DATASETS.get(domain, about.default)
    works = {
        name: Experiment(domain, dataset, LossSpec(name), {**about.tiny, **SMALL})
        for name in LOSSES
    }
    opened = open_domain(works["infonce"], 0, None, torch.device("cpu"))
    for name, work in works.items():
        model = opened.model().train()
        loss = make_cell_loss(Cell(work, 0, "", {}), opened)
        contrasts = opened.contrasts(model, next(iter(opened.batches(0))))
        value = torch.stack([loss(contrast) for contrast in contrasts]).sum()
        value.backward()
        gradients = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
        steps[name] = [value.item(), torch.cat(gradients).norm().item()]
    return {"protocol": work.full_recipe.protocol, "losses": steps}


def measured() -> dict[str, Any]:
    """The same of all domains, in a process with plain instructions."""
    done = subprocess.run(
        [sys.executable, __file__, "--print"],
        env={**os.environ, **PLAIN},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def joined(kept: dict[str, Any], now: dict[str, Any], anew: Collection[str] = ()) -> dict[str, Any]:
    """Return the kept numbers with those of new losses; a new protocol has its own numbers."""

    def domain(name: str) -> dict[str, Any]:
        old, new = kept.get(name, {}), now[name]
        if name in anew or old.get("protocol") != new["protocol"]:
            return new
        losses = frozen.updated(old["losses"], new["losses"], new["losses"].__getitem__)
        return {**new, "losses": losses}

    return {name: domain(name) for name in now}


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        print(json.dumps({domain: measure(domain) for domain in DOMAINS}))
    else:
        anew = frozen.asked(DOMAINS)
        frozen.write(KNOWN, joined(frozen.read(KNOWN), measured(), anew))
