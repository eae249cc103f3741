"""The site, made by Sphinx: pages, and what they take from the code."""

import inspect
import os
import sys
from pathlib import Path

from sphinx.application import Sphinx
from typer.main import get_command

from contrastbench import __version__
from contrastbench.benchmarks.cli.main import app as bench

sys.path.insert(0, str(Path(__file__).parent))
import loss_pages

project = "contrastbench"
version = release = __version__
extensions = ["myst_parser", "offline", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_math_renderer = "mathml"
html_theme = "furo"
html_title = project
html_baseurl = os.environ.get("SITE_ADDRESS", "")  # of the canonical links, where it is known
exclude_patterns = ["*.ipynb"]
default_role = "code"
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_use_rtype = False


def add_sections(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the sections that are made from the code to a page."""
    added = {"reference/losses": loss_pages.overview, "reference/commands": commands}
    source[0] += added.get(page, str)()


def write_pages(app: Sphinx) -> None:
    """Write the pages of losses before Sphinx looks for pages."""
    loss_pages.write()


def setup(app: Sphinx) -> None:
    """Connect our handlers; Sphinx calls this function."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", add_sections)


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
