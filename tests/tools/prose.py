"""Measure how plainly pages and docstrings are written.

`prose.py` prints the figures of every page, the worst first, and the docstrings that
are no sentence. `prose.py FILE...` prints those of the named pages, with their longest
sentences. Code, tables, headings and the targets of links are not counted.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = ("*.md", "results/README.md", "docs/**/*.md")
FOLDERS = ("losses", "domains", "benchmarks", "docs", "tests")
LONG = 30  # words
NOT_READ = re.compile(r"```.*?```|<!--.*?-->|^(?:\||#|!\[|<).*?$", flags=re.DOTALL | re.MULTILINE)
NO_SENTENCE = re.compile(r"(Of|As|Those|That of|What it|Nothing of|Who|By what|Whose)\b")
BY_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Figures(NamedTuple):
    """How plainly one page is written."""

    mean: float  # words a sentence
    long: float  # share of the sentences above LONG words
    paragraph: int  # words of the longest paragraph


def pages() -> list[Path]:
    return sorted(path for pattern in PAGES for path in ROOT.glob(pattern))


def paragraphs(text: str) -> list[str]:
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", NOT_READ.sub("\n\n", text))
    blocks = re.split(r"\n\s*\n|\n\s*(?=[-*] |\d+\. )", re.sub(r"`[^`]*`", "code", text))
    return [" ".join(block.split()).lstrip("-* ") for block in blocks if len(block.split()) > 3]


def sentences(text: str) -> list[str]:
    ends = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`(\"'*0-9])")
    found = (sentence for paragraph in paragraphs(text) for sentence in ends.split(paragraph))
    return [sentence for sentence in found if len(sentence.split()) > 1]


def figures(text: str) -> Figures:
    """Return the figures of a page; a page without sentences has zeros."""
    lengths = [len(sentence.split()) for sentence in sentences(text)] or [0]
    longest = max((len(paragraph.split()) for paragraph in paragraphs(text)), default=0)
    long = sum(length > LONG for length in lengths) / len(lengths)
    return Figures(sum(lengths) / len(lengths), long, longest)


def is_sentence(docstring: str) -> bool:
    """Return whether a docstring's first line can be understood without the signature."""
    first = docstring.partition("\n")[0]
    return NO_SENTENCE.match(first) is None and len(first.split()) > 3


def fragments(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and first words of each docstring in a source that is no sentence."""
    for node in ast.walk(ast.parse(source)):
        docstring = isinstance(node, BY_DOCSTRING) and ast.get_docstring(node)
        if docstring and not is_sentence(docstring):
            yield getattr(node, "lineno", 1), docstring.partition("\n")[0]


def all_fragments() -> list[str]:
    """Return a line for each docstring of the repository that is no sentence."""
    sources = sorted(path for folder in FOLDERS for path in ROOT.glob(f"{folder}/**/*.py"))
    return [
        f"{path.relative_to(ROOT)}:{line} {first}"
        for path in sources
        for line, first in fragments(path.read_text(encoding="utf-8"))
    ]


def main(named: list[str]) -> None:
    """Print the figures of the named pages, or of all pages and docstrings."""
    texts = {str(path): path.read_text() for path in (map(Path, named) if named else pages())}
    print("words a sentence  above 30 words  longest paragraph  page")
    for name in sorted(texts, key=lambda name: figures(texts[name]), reverse=True):
        mean, long, paragraph = figures(texts[name])
        print(f"{mean:16.1f} {long:15.0%} {paragraph:18d}  {name}")
        for sentence in sorted(sentences(texts[name]), key=lambda s: -len(s.split()))[:5]:
            if named:
                print(f"    {len(sentence.split())} words: {sentence}")
    if not named:
        found = all_fragments()
        print(f"{len(found)} docstrings are no sentence", *found, sep="\n    ")


if __name__ == "__main__":
    main(sys.argv[1:])
