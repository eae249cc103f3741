"""A Sphinx extension for a site that needs no network: formulas as MathML, and nothing fetched."""

import re
from pathlib import Path
from typing import Any

from docutils.nodes import SkipNode, math, math_block
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

FETCHED = re.compile(
    r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=\"(?:https?:)?//[^>]*"
)
log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the renderer and the check; Sphinx calls this function."""
    app.add_html_math_renderer("mathml", (add_formula, None), (add_block, None))
    app.connect("build-finished", check_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def add_formula(page: HTML5Translator, node: math) -> None:
    """Add a formula within a sentence to a page, in place of its LaTeX."""
    page.body.append(mathml(node))
    raise SkipNode


def add_block(page: HTML5Translator, node: math_block) -> None:
    """Add a formula of its own line; a wide one scrolls."""
    page.body.append(f'<div style="overflow: auto hidden; padding: 0.5em 0">{mathml(node)}</div>')
    raise SkipNode


def mathml(node: math | math_block) -> str:
    r"""Return a formula as MathML; a command that has none is a warning at its line.

    The converter of docutils reads \frac12 as twelve over what follows, so this is the report's.
    """
    display = "block" if isinstance(node, math_block) else "inline"
    found: str = convert(node.astext(), display=display)
    if "\\" in found:
        log.warning("a command without MathML in %s", node.astext(), location=node)
    return found


def check_pages(app: Sphinx, failed: Exception | None) -> None:
    """Raise if a page of the site fetches anything from elsewhere."""
    for path in [] if failed else sorted(Path(app.outdir).rglob("*.html")):
        if found := FETCHED.search(path.read_text(encoding="utf-8")):
            raise SphinxError(f"{path} fetches from elsewhere: {found[0]}")
