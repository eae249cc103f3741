"""Turn numbers and verdicts into words: the templates, and the filters that they share."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from contrastbench.benchmarks.comparison import DECIDED, Verdict
from contrastbench.benchmarks.records.grouping import grouped
from contrastbench.benchmarks.report.latex import latex_text
from contrastbench.benchmarks.tables.entries import WIDEST, signed
from contrastbench.benchmarks.tables.schema import Row, Setting
from contrastbench.errors import plural
from contrastbench.losses.registry import SUPERVISED
from contrastbench.losses.spec import NONE

if TYPE_CHECKING:
    from contrastbench.benchmarks.comparison.compare import Verdicts  # brings numpy

TEMPLATES = Path(__file__).with_name("templates")
MAX_NAMES = 4  # names in one list of the answer
HASH_SHOWN = 12  # digits of a data hash


def said(verdicts: "Verdicts", *parts: str, **values: Any) -> list[str]:
    """Return what parts of a comparison say, a line each; by default the whole answer."""
    template = shared(finalize=one_line).get_template("words.j2")
    macros = template.make_module({"v": verdicts, **values})
    texts = (str(getattr(macros, part)()) for part in parts or ["answer"])
    return [line for text in texts for line in paragraphs(text)]


def paragraphs(text: str) -> list[str]:
    return [line for part in re.split(r"\n\s*\n", text) if (line := flat(part))]


def sentences(**values: Any) -> Any:
    """Return the macros of sentences on a table, in which a name may have several lines."""
    return shared().get_template("tables.j2").make_module(values)


def rendered(template: str, **values: Any) -> str:
    return shared().get_template(template).render(**values)


def drawn(figure: Any) -> str:
    """Return a figure as an SVG file, in which every name is a text."""
    return shared(autoescape=True).get_template("figure.svg.j2").render(figure=figure)


def environment(
    autoescape: bool = False, finalize: Callable[[Any], Any] | None = None
) -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=autoescape,
        finalize=finalize,
        undefined=StrictUndefined,
        optimized=False,  # of templates that are used once
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = [signed, number, names, turned, listed, flat, paragraphs, setting]
    made.filters |= {used.__name__: used for used in [*filters, unmentioned, tallied]}
    made.filters |= {"p": p_text, "s": plural, "verdict": verdict_text, "cell": escaped_cell}
    made.filters |= {"table": markdown_table, "tex": latex_text, "near_infonce": near_infonce}
    made.filters |= {"parameters": parameters}
    made.globals |= {"DECIDED": DECIDED, "VERDICTS": [*Verdict], "said": said, "WIDEST": WIDEST}
    made.globals |= {"isfinite": isfinite, "INFINITE": inf, "HASH_SHOWN": HASH_SHOWN}
    return made


shared = cache(environment)  # what pages add to one of their own stays theirs


def one_line(value: Any) -> Any:
    """Return a text without line breaks, so that a name begins no paragraph."""
    return " ".join(value.splitlines()) if isinstance(value, str) else value


def names(things: Iterable[Any], text: Callable[[Any], str] = str) -> str:
    """Return names in a sentence, of many the first ones; the rows below have them all.

    >>> names("ab"), names("abcdef")
    ('a, b', 'a, b, c and 3 more')
    """
    shown = list(things)
    if len(shown) <= MAX_NAMES:
        return listed(shown, text)
    return f"{listed(shown[: MAX_NAMES - 1], text)} and {len(shown) - MAX_NAMES + 1} more"


def turned(choices: Mapping[str, str]) -> str:
    """Return the choices that a verdict hangs on, by the verdict without them.

    >>> turned({"Omniglot": "undecided", "graph": "undecided", "the mean": "worse"})
    'Omniglot, graph (undecided); the mean (worse)'
    """
    by_word = grouped((word, name) for name, word in choices.items())
    return "; ".join(f"{names(some)} ({word})" for word, some in by_word.items())


def listed(things: Iterable[Any], text: Callable[[Any], str] = str) -> str:
    return ", ".join(one_line(str(text(thing)).strip()) for thing in things)


def number(value: float | None, decimals: int) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"


def p_text(p: float | None) -> str:
    """Return a p-value as papers print it.

    >>> p_text(1.0), p_text(0.05), p_text(1e-9), p_text(None)
    ('> 0.99', '0.0500', '< 0.0001', '-')
    """
    if p is None:
        return "-"
    return "< 0.0001" if p < 0.0001 else "> 0.99" if p > 0.99 else f"{p:.4f}"


def tallied(verdicts: Sequence[str]) -> str:
    """Return how often each verdict is there.

    >>> tallied(["undecided", "better", "undecided"])
    '1 better, 2 undecided'
    """
    return ", ".join(f"{verdicts.count(word)} {word}" for word in Verdict if word in verdicts)


def flat(text: str) -> str:
    return " ".join(text.split())


def markdown_table(lines: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown; the first line is its header."""
    shown = (lines[0], ["---"] * len(lines[0]), *lines[1:])
    return "\n".join(f"| {' | '.join(map(escaped_cell, line))} |" for line in shown)


def escaped_cell(text: str) -> str:
    """A text that ends neither the cell nor the row, and is no HTML, link or picture.

    >>> escaped_cell("a|b"), escaped_cell("<b>[x](y)"), escaped_cell("p < 0.1")
    ('a&#124;b', '&lt;b>[x]&#40;y)', 'p < 0.1')
    """
    line = re.sub(r"&(?=#?\w+;)", "&amp;", " ".join(text.splitlines()))
    line = line.replace("|", "&#124;").replace("](", "]&#40;")
    return re.sub("<(?=[a-zA-Z/!?])", "&lt;", line)


def unmentioned(text: str) -> str:
    """Return Markdown in which GitHub sees no person, team or issue, as Renovate writes it.

    >>> unmentioned("a@b @org/team org/repo#1")
    'a@b @&#8203;org/team org/repo#&#8203;1'
    """
    return re.sub(r"(?<![a-zA-Z0-9])@(?=\w)|(?<!&)#(?=\d)", r"\g<0>&#8203;", text)


def verdict_text(place: Any) -> str:
    notes = "; ".join(filter(None, (place.why, place.failure)))
    return place.verdict + (f" ({notes})" if notes else "")


def setting(trial: Setting) -> str:
    return parameters({**trial.params, **trial.recipe})


def near_infonce(trial: Setting, row: Row) -> str:
    """Return how near the gradient of a chosen setting is to InfoNCE's; nothing to say of it."""
    name = row.loss or NONE
    if row.control or name in (NONE, "infonce", *SUPERVISED):
        return ""
    from contrastbench.benchmarks.against.compare import nearness  # brings torch

    cosine, temperature = nearness(name, trial.params)
    return f", gradient at cosine {cosine:.3f} to infonce's at temperature {temperature:g}"


def parameters(params: dict[str, Any]) -> str:
    """Format parameters for people.

    >>> parameters({"mu": 0.7, "sigma": 1.0}), parameters({})
    ('mu=0.7, sigma=1.0', 'the defaults')
    """
    return ", ".join(f"{key}={value}" for key, value in params.items()) or "the defaults"
