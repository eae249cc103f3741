"""Numbers of every loss, and the table of README that lists them.

- "pairings": on fixed embeddings, value and gradients, which tests/losses/test_values.py compares,
- "domains": in the first step of a training, which tests/attack/test_numbers.py compares,
- "ranges": what a loss's parameters may be and where a search draws them, which decides its cells.

`loss_numbers.py` adds new losses, new domains and domains whose protocol has a new
version to losses/numbers.json, and leaves every other line. `--anew NAME` writes those of a loss,
or of a domain, anew. The domains are measured in a process that is started with this module on
instructions that every CPU has.
"""

import json
import os
import subprocess
import sys
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

import frozen
from contrastbench.domains.registry import DOMAINS
from contrastbench.losses import LOSSES, get_loss
from contrastbench.losses.registry import FAMILIES, describe

FILE = Path(__file__).parents[1] / "losses" / "numbers.json"
README = Path(__file__).parents[2] / "README.md"
HEAD = "| family | [losses](docs/reference/losses.md) |\n| --- | --- |\n"
WRITE = "run python tests/tools/loss_numbers.py"
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
    from contrastbench.benchmarks.running.opening import make_cell_loss, open_domain
    from contrastbench.domains.registry import declaration
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


def compute(name: str, pairing: str) -> list[float]:
    from contrastbench.losses.laws import random_contrasts as drawn
    from contrastbench.losses.laws.assertions import value_and_gradient

    views, loss = drawn.random_views(0, 6, grad=True), drawn.with_sample_numbers(get_loss(name))
    found = value_and_gradient(loss, drawn.LAW_PAIRINGS[pairing](views), views)
    return [number.norm().item() if number.ndim else number.item() for number in found]


def with_pairings(kept: dict[str, Any], anew: Collection[str] = ()) -> dict[str, Any]:
    """Return the kept numbers with those of new losses and of new pairings."""
    from contrastbench.losses.laws.random_contrasts import LAW_PAIRINGS

    def loss(name: str) -> dict[str, Any]:
        old = {} if name in anew else kept.get(name, {})
        return frozen.updated(old, LAW_PAIRINGS, partial(compute, name))

    return frozen.updated(kept, LOSSES, loss, LOSSES)


def with_domains(
    kept: dict[str, Any], now: dict[str, Any], anew: Collection[str] = ()
) -> dict[str, Any]:
    """Return the kept numbers with those of new losses; a new protocol has its own numbers."""

    def domain(name: str) -> dict[str, Any]:
        old, new = kept.get(name, {}), now[name]
        if name in anew or old.get("protocol") != new["protocol"]:
            return new
        losses = frozen.updated(old["losses"], new["losses"], new["losses"].__getitem__, anew)
        return {**new, "losses": losses}

    return {name: domain(name) for name in now}


def ranges(name: str) -> dict[str, str]:
    """Return the declared range of each parameter of a loss."""
    return {key: repr(each) for key, each in describe(name).ranges.items()}


def families() -> str:
    """Return the lines of README's table of the losses by family."""
    return "".join(f"| {family} | {', '.join(FAMILIES[family])} |\n" for family in FAMILIES)


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        print(json.dumps({domain: measure(domain) for domain in DOMAINS}))
    else:
        anew, kept = frozen.asked([*LOSSES, *DOMAINS]), frozen.read(FILE)
        pairings = with_pairings(kept["pairings"], anew)
        domains = with_domains(kept["domains"], measured(), anew)
        declared = frozen.updated(kept["ranges"], LOSSES, ranges, anew)
        frozen.write(FILE, {"pairings": pairings, "domains": domains, "ranges": declared})
        page = frozen.with_table(README.read_text(encoding="utf-8"), HEAD, families())
        README.write_text(page, encoding="utf-8")
