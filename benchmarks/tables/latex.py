"""Format tables in LaTeX."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega varsigma"
)
LATEX_ESCAPES = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", '"': "''"},
    **{
        "<": "$<$",
        ">": "$>$",
        "|": "$|$",
        "[": "{[}",
        "]": "{]}",
        "*": "{*}",
        "±": r"$\pm$",
        "−": "$-$",
        "≥": r"$\geq$",
        "≤": r"$\leq$",
        "→": r"$\to$",
        "×": r"$\times$",
    },
    **{
        letter: f"$\\{name}$"
        for letter, name in zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩς", GREEK.split(), strict=True)
    },
}

# a letter with an index or a star, as names of rows have it
SYMBOL = re.compile(rf"\b({GREEK.replace(' ', '|')})(?:(\d)|\{{\*\}})(?!\w)")


class Marks(NamedTuple):
    """The two best means of a column as they are shown."""

    best: float | None = None
    second: float | None = None


def latex_text(plain: str) -> str:
    r"""A text as LaTeX prints it, on one line, with a minus before negative numbers.

    >>> print(latex_text("50 % of a_b: -0.5 ± 0.1, (tau0), (tau*)"))
    50 \% of a\_b: $-$0.5 $\pm$ 0.1, ($\tau_0$), ($\tau^*$)
    """
    text = "".join(LATEX_ESCAPES.get(c, c) for c in " ".join(plain.splitlines()))
    text = SYMBOL.sub(lambda m: f"$\\{m[1]}{'_' + m[2] if m[2] else '^*'}$", text)
    return re.sub(r"(?<![\w.])-(?=\d)", "$-$", text)


def first_two(means: Iterable[float]) -> Marks:
    """Return the best and the second of several means.

    >>> first_two([80.0, 79.0, 80.0]), first_two([79.0])
    (Marks(best=80.0, second=79.0), Marks(best=None, second=None))
    """
    distinct = sorted({*means}, reverse=True)
    return Marks(*distinct[:2]) if len(distinct) > 1 else Marks()


def marked(plain: str, mean: float | None, marks: Marks) -> str:
    """A text in bold if its mean is the best of its column, underlined if it is the second."""
    text = latex_text(plain)
    if mean is None or not plain or mean not in marks:
        return text
    return rf"\textbf{{{text}}}" if mean == marks.best else rf"\underline{{{text}}}"


def latex_label(name: str) -> str:
    """A name without what ends a label or its line.

    >>> latex_label("100% a_b")
    '100--a_b'
    """
    return re.sub(r"[^\w.:-]", "-", name, flags=re.ASCII)


def tabular(
    name: str,
    caption: str,
    header: list[str],
    body: list[list[str]],
    notes: Sequence[str] = (),
) -> str:
    """A table by booktabs and graphicx, made smaller where it is wider than the line.

    Notes, such as hashes, are comments above it.
    """
    rows = [" & ".join(cells) + r" \\" for cells in (header, *body)]
    return "\n".join(
        [
            r"% \usepackage{booktabs,graphicx}",
            *("% " + " ".join(note.splitlines()) for note in notes),
            r"\begin{table}",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{latex_label(name)}}}",
            r"\centering",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{l{'c' * (len(header) - 1)}}}",
            *[r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule"],
            r"\end{tabular}%",
            "}",
            r"\end{table}",
            "",
        ]
    )
