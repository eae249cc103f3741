"""Write a table in LaTeX: names, values and their marks; the template has the rest."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from contrastbench.benchmarks.tables.entries import Entry, Value

VALUES = THEIRS, OURS, BOTH = "theirs", "ours", "both"
GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega varsigma"
)
LATEX_ESCAPES = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    **{c: f"${c}$" for c in "<>|"},
    **{c: f"{{{c}}}" for c in "[]*"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", '"': "''"},
    **{"±": r"$\pm$", "−": "$-$", "≥": r"$\geq$", "≤": r"$\leq$", "→": r"$\to$", "×": r"$\times$"},
    **{
        letter: f"$\\{name}$"
        for letter, name in zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩς", GREEK.split(), strict=True)
    },
}
# a letter with an index or a star, as names of rows have it
SYMBOL = re.compile(rf"\b({GREEK.replace(' ', '|')})(?:(\d)|\{{\*\}})(?!\w)")


class LatexRow(NamedTuple):
    """A row of LaTeX: the text of each place, and its mean as it is shown if it is a contestant."""

    name: str
    texts: Sequence[str]
    means: Sequence[float | None]


def latex_text(plain: str) -> str:
    r"""A text as LaTeX prints it, on one line, with a minus before negative numbers.

    >>> print(latex_text("50 % of a_b: -0.5 ± 0.1, (tau0), (tau*)"))
    50 \% of a\_b: $-$0.5 $\pm$ 0.1, ($\tau_0$), ($\tau^*$)
    """
    text = "".join(LATEX_ESCAPES.get(c, c) for c in " ".join(plain.splitlines()))
    text = SYMBOL.sub(lambda m: f"$\\{m[1]}{'_' + m[2] if m[2] else '^*'}$", text)
    return re.sub(r"(?<![\w.])-(?=\d)", "$-$", text)


def label(name: str) -> str:
    return re.sub(r"[^\w.:-]", "-", name, flags=re.ASCII)


def bold(plain: str) -> str:
    return rf"\textbf{{{latex_text(plain)}}}"


def latex_cells(lines: Iterable[list[Entry]], decimals: int, values: str) -> list[list[str]]:
    """Return the cells of all rows: the best of a column bold, the second underlined."""
    rows = [row for line in lines for row in latex_rows(line, decimals, values)]
    best = [first_two(means) for means in zip(*(row.means for row in rows), strict=True)]
    return [[row.name, *map(marked, row.texts, row.means, best)] for row in rows]


def latex_rows(line: list[Entry], decimals: int, values: str) -> Iterator[LatexRow]:
    """Yield the rows of a method: printed values, and below them ours with the differences."""
    paper, ours, differences = zip(*(entry.parts(decimals) for entry in line), strict=True)
    name, printed = latex_text(line[0].line.name), any(entry.paper for entry in line)
    own = [shown_mean(e, e.ours if e.run else e.paper, decimals) for e in line]
    if printed and values != OURS:
        yield LatexRow(name, paper, [shown_mean(e, e.paper, decimals) for e in line])
    elif printed or values != THEIRS:
        yield LatexRow(name, [b or a for a, b in zip(paper, ours, strict=True)], own)
    if values == BOTH and printed and any(entry.run for entry in line):
        yield LatexRow(r"\quad ours", ours, own)
        if any(differences):
            yield LatexRow(r"\quad difference", differences, [None] * len(line))


def shown_mean(entry: Entry, value: Value | None, decimals: int) -> float | None:
    """Return a mean as it is shown; controls and what is not trained are no contestants."""
    control = entry.line.control or entry.line.is_untrained
    return round(value.mean, decimals) if value and not control else None


def first_two(means: Iterable[float | None]) -> list[float]:
    """Return the best and the second of several means.

    >>> first_two([80.0, 79.0, None, 80.0]), first_two([79.0])
    ([80.0, 79.0], [])
    """
    distinct = sorted({mean for mean in means if mean is not None}, reverse=True)
    return distinct[:2] if len(distinct) > 1 else []


def marked(plain: str, mean: float | None, best: Sequence[float]) -> str:
    """Return a text in bold if its mean is the best of its column, underlined if the second."""
    text = latex_text(plain)
    if mean is None or not plain or mean not in best:
        return text
    return bold(plain) if mean == best[0] else rf"\underline{{{text}}}"
