"""Writes a page for each loss from the code, the golden values and the records, for `conf.py`."""

import csv
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import torch
from matplotlib.figure import Figure
from torch import Tensor

from contrastbench.benchmarks.report import losses
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.losses import ScoreLoss, get_loss
from contrastbench.losses.base import Scores
from contrastbench.losses.registry import FAMILIES, LIBRARY, OURS, aliases, describe, load

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).with_name("reference") / "losses"
POSITIVE = 0.8  # score of the anchor's positive
SHOWN = (-1.0, -0.5, 0.0, 0.5, 0.8, 1.0)  # scores of negatives in the table of weights


def write() -> None:
    """Write the page of each loss, and nothing else, into the folder that git ignores."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for name in OURS:
        (FOLDER / f"{name}.rst").write_text(page(name), encoding="utf-8")


def overview() -> str:
    """Return the table of families with links, as Markdown."""
    rows = "\n".join(
        f"| {family} | {', '.join(f'{{doc}}`{name} <losses/{name}>`' for name in members)} |"
        for family, members in FAMILIES.items()
    )
    pages = "\n".join(f"losses/{name}" for name in OURS)
    tree = f"```{{toctree}}\n:hidden:\n\n{pages}\n```"
    return f"| family | losses |\n| --- | --- |\n{rows}\n\n{tree}\n"


def page(name: str) -> str:
    """Return the page of a loss, as reStructuredText."""
    parts = {
        name: formula(name),
        "Parameters": table(("parameter", "default", "values", "searched"), parameters(name)),
        "Limits": "\n".join(limits(name)),
        "Reference code": table(("code", "version", "place", "pairing", "cases"), codes(name)),
        "Weights of negatives": weights_section(name),
        "Standing comparison": table(("suite", "data set", "mean ± std", "seeds"), standing(name)),
    }
    return "\n\n".join(
        f"{title}\n{('=' if title == name else '-') * len(title)}\n\n{text}"
        for title, text in parts.items()
        if text
    )


def formula(name: str) -> str:
    """Return the family, the other names, and the docstring with the formula."""
    also = ", ".join(f"``{other}``" for other in aliases(name))
    said = f"Family: {losses.family(name)}." + f" Other names: {also}." * bool(also)
    params = ", ".join(f"{key}={value!r}" for key, value in describe(name).params.items())
    place = f"{LIBRARY}.{name}.{load(name).__name__}"
    return f"{said}\n\n.. autoclass:: {place}({params})\n"


def parameters(name: str) -> Iterator[tuple[str, ...]]:
    """Yield each parameter with its default, its values and the part that a search tries."""
    for key, default, *rest in losses.parameter_table(name):
        yield f"``{key}``", f"``{default}``", *rest


def limits(name: str) -> Iterator[str]:
    """Yield the losses that a loss becomes, and those that become it; each is a tested law."""
    for becomes, other, law in losses.limit_laws(name):
        said = f"It becomes :doc:`{other}`" if becomes else f":doc:`{other}` becomes it"
        yield f"- {said}: ``{law}``"


def codes(name: str) -> Iterator[tuple[str, ...]]:
    """Yield each released code that the tests compare the loss with, and its version."""
    for group in golden():
        if group["loss"] == name:
            repository, commit = group["repository"], group.get("commit")
            linked = f"`{commit[:10]} <{repository}/tree/{commit}>`__" if commit else ""
            version = ", ".join(filter(None, [group.get("release"), linked]))
            code = f"`{repository.rpartition('github.com/')[2]} <{repository}>`__"
            yield code, version, group["place"], group["pairing"], str(len(group["cases"]))


@cache
def golden() -> list[dict[str, Any]]:
    """Return the groups of values that released codes gave."""
    groups: list[dict[str, Any]] = json.loads(
        (ROOT / "tests" / "losses" / "golden.json").read_text(encoding="utf-8")
    )["released"]
    return groups


def standing(name: str) -> Iterator[tuple[str, ...]]:
    """Yield the loss's row of the standing comparison: data sets, means and deviations, seeds."""
    suite = load_table("standard").name
    path = ROOT / "results" / f"{suite}.csv"  # none while the suite is a draft
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for line in csv.DictReader(lines):
        if line["method"].replace(" ", "_") == line["loss"] == name and line["ours_mean"]:
            value = f"{float(line['ours_mean']):.2f} ± {float(line['ours_std']):.2f}"
            yield suite, line["column"], value, line["ours_seeds"]


def weights_section(name: str) -> str:
    """Return the weights of negatives as a table and a plot; "" for a loss without scores."""
    loss = get_loss(name)
    if not isinstance(loss, ScoreLoss):
        return ""
    scores, gradient = gradient_weights(loss)
    shown = [gradient[(scores - score).abs().argmin()].item() for score in SHOWN]
    rows = [("weight", *(f"{weight:.2f}" for weight in shown))]
    drawn = "".join(f"   {line}\n" for line in drawing(scores, gradient).splitlines())
    words = "The gradient in a negative's score, divided by the mean size of these gradients."
    head = ("score", *(f"{score:g}" for score in SHOWN))
    return f"{words}\n\n{table(head, rows)}\n\n.. raw:: html\n\n{drawn}"


def drawing(scores: Tensor, gradient: Tensor) -> str:
    """Return the plot of the weights as an SVG."""
    figure = Figure(figsize=(5, 2.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(scores, gradient)
    axes.set(xlabel="cosine of the negative with the anchor", ylabel="its weight")
    file = StringIO()
    with mpl.rc_context({"svg.hashsalt": "contrastbench"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    svg = file.getvalue()
    return f"<figure>{svg[svg.index('<svg') :]}</figure>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in reStructuredText; "" without rows."""
    lines = [head, *rows]
    if len(lines) == 1:
        return ""
    cells = "\n".join(
        f"   {'*' if i == 0 else ' '} - {cell}" for line in lines for i, cell in enumerate(line)
    )
    return f".. list-table::\n   :header-rows: 1\n\n{cells}"


def gradient_weights(loss: ScoreLoss) -> tuple[Tensor, Tensor]:
    """Return scores of negatives, and the gradient of one anchor's loss in each, of mean size 1."""
    neg = torch.linspace(-1, 1, 1001, dtype=torch.float64).unsqueeze(0).requires_grad_()
    pos = torch.full((1, 1), POSITIVE, dtype=torch.float64)
    count = torch.full_like(pos, neg.shape[1])
    value = loss.combine(loss.terms(Scores(pos, neg, count, True, True)))
    (gradient,) = torch.autograd.grad(value, neg)
    return neg.detach()[0], (gradient / gradient.abs().mean())[0]
