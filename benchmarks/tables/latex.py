"""Format tables in LaTeX."""

import re

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


def latex_text(plain: str) -> str:
    r"""A text as LaTeX prints it, on one line, with a minus before negative numbers.

    >>> print(latex_text("50 % of a_b: -0.5 ± 0.1"))
    50 \% of a\_b: $-$0.5 $\pm$ 0.1
    """
    return re.sub(
        r"(?<![\w.])-(?=\d)",
        "$-$",
        "".join(LATEX_ESCAPES.get(c, c) for c in " ".join(plain.splitlines())),
    )


def italic(plain: str) -> str:
    """A text in italics."""
    return rf"\textit{{{latex_text(plain)}}}"


def bold(plain: str, marked: bool = True) -> str:
    """A text in bold, if it is marked."""
    return rf"\textbf{{{latex_text(plain)}}}" if marked and plain else latex_text(plain)


def latex_label(name: str) -> str:
    """A name without what ends a label or its line.

    >>> latex_label("100% a_b")
    '100--a_b'
    """
    return re.sub(r"[^\w.:-]", "-", name, flags=re.ASCII)


def tabular(name: str, caption: str, header: list[str], body: list[list[str]]) -> str:
    """A table by booktabs and graphicx, made smaller where it is wider than the line."""
    rows = [" & ".join(cells) + r" \\" for cells in (header, *body)]
    return "\n".join(
        [
            r"% \usepackage{booktabs,graphicx}",
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
