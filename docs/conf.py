"""The site, made by Sphinx: pages, and what they take from the code."""

import inspect
from importlib.metadata import version as installed
from io import StringIO

import matplotlib as mpl
import torch
from matplotlib.figure import Figure
from sphinx.application import Sphinx
from torch import Tensor
from typer.main import get_command

from contrastbench.benchmarks.cli.main import app as bench
from contrastbench.losses import ScoreLoss, get_loss
from contrastbench.losses.base import Scores
from contrastbench.losses.registry import OURS, describe

project = "contrastbench"
version = release = installed("contrastbench")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = project
exclude_patterns = ["*.ipynb"]
default_role = "code"
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_use_rtype = False

POSITIVE = 0.8  # score of the anchor's positive in the plots


def add_sections(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the sections that are made from the code to a page."""
    added = {"reference/losses": losses, "reference/commands": commands}
    source[0] += added.get(page, str)()


def setup(app: Sphinx) -> None:
    """Connect our handlers; Sphinx calls this function."""
    app.connect("source-read", add_sections)


def losses() -> str:
    """A section for each registered loss."""
    return "\n\n".join(section(name, target) for name, target in OURS.items())


def section(name: str, target: str) -> str:
    """Docstring and plot of a loss."""
    place = f"contrastbench.losses.{target.replace(':', '.')}"
    loss = get_loss(name)
    plot = drawing(loss) if isinstance(loss, ScoreLoss) else ""
    params = ", ".join(f"{key}={value!r}" for key, value in describe(name).params.items())
    return f"## {name}\n\n```{{eval-rst}}\n.. autoclass:: {place}({params})\n```\n\n{plot}\n"


def weights(loss: ScoreLoss) -> tuple[Tensor, Tensor]:
    """Scores of negatives, and the gradient of one anchor's loss in each, of mean size 1."""
    neg = torch.linspace(-1, 1, 1001, dtype=torch.float64).unsqueeze(0).requires_grad_()
    pos = torch.full((1, 1), POSITIVE, dtype=torch.float64)
    count = torch.full_like(pos, neg.shape[1])
    value = loss.combine(loss.terms(Scores(pos, neg, count, True, True)))
    (gradient,) = torch.autograd.grad(value, neg)
    return neg.detach()[0], (gradient / gradient.abs().mean())[0]


def drawing(loss: ScoreLoss) -> str:
    """The weights of negatives as an SVG."""
    scores, gradient = weights(loss)
    figure = Figure(figsize=(5, 2.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(scores, gradient)
    axes.set(xlabel="cosine of the negative with the anchor", ylabel="its weight")
    file = StringIO()
    with mpl.rc_context({"svg.hashsalt": "contrastbench"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    svg = file.getvalue()
    return f"<figure>{svg[svg.index('<svg') :]}</figure>".replace("\n", " ")


def commands() -> str:
    """Return a section for each command, with the text of `bench COMMAND --help`."""
    return "\n\n".join(
        f"### bench {name}\n\n```text\n{shown(name, command)}\n```"
        for name, command in get_command(bench).commands.items()
    )


def shown(name: str, command) -> str:
    """Return the help of a command."""
    with command.make_context(f"bench {name}", [], resilient_parsing=True) as context:
        return inspect.cleandoc(command.get_help(context))
