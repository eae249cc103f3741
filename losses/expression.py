"""Sums of losses as text: terms, weights, and which term a parameter belongs to."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from os.path import isfile
from pathlib import Path
from typing import Any, NamedTuple

from contrastbench.errors import UserError, unknown

WEIGHT = r"(\d*\.?\d+(?:e-?\d+)?)\s*\*\s*"
LOSS_NAME = r"[^\s*+]+|[^*+]+\.py:\w+"  # a file's folder may have a blank in its name


class Title(NamedTuple):
    """The names of a loss: in records, and of its class, which tells two apart."""

    name: str
    kind: str


def file_and_class(name: str) -> tuple[Path, str] | None:
    """The file and the class that `file.py:Class` names; None for any other name.

    >>> file_and_class("infonce") is None
    True
    """
    match = re.fullmatch(r"(.+\.py):(\w+)", name)
    return (Path(match[1]), match[2]) if match else None


def package_and_name(name: str) -> tuple[str, str] | None:
    """The module and the name in it that `package.module:Name` names; None for any other name.

    >>> package_and_name("lightly.loss:VICRegLoss"), package_and_name("mine.py:Mine")
    (('lightly.loss', 'VICRegLoss'), None)
    """
    match = re.fullmatch(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*)", name)
    return (match[1], match[2]) if match and not file_and_class(name) else None


def is_sum(name: str) -> bool:
    """Return whether it is an expression such as `infonce + 0.5*dar`.

    `c++/mine.py:Mine` is none where that file is.
    """
    if "+" not in name and "*" not in name:
        return False
    own = file_and_class(name)
    return not (own and isfile(own[0]))  # noqa: PTH113 - a long sum is no name of one


def parse(name: str) -> list[tuple[float, str]]:
    """The weight and the name of each term of a sum, or of a loss alone.

    >>> parse("infonce + 0.5*dar"), parse("infonce")
    ([(1.0, 'infonce'), (0.5, 'dar')], [(1.0, 'infonce')])
    """
    terms = []
    for text in (text.strip() for text in name.split("+")) if is_sum(name) else ():
        match = re.fullmatch(f"(?:{WEIGHT})?({LOSS_NAME})", text)
        if not match:
            raise UserError(f"cannot read {text!r} in the loss {name!r}: write infonce + 0.5*dar")
        terms.append((float(match[1] or 1), match[2]))
    return terms or [(1.0, name)]


def names(name: str) -> list[str]:
    return [term for _, term in parse(name)]


def weighted(name: str, weight: float) -> str:
    """A term of an expression.

    >>> weighted("dar", 2.0)
    '2*dar'
    """
    return name if weight == 1 else f"{weight!r}".removesuffix(".0") + f"*{name}"


def with_terms(name: str, change: Callable[[str], str]) -> str:
    """Return the name of a loss or a sum after a change to the name of each term.

    >>> with_terms("infonce + 0.5*dar", str.upper)
    'INFONCE + 0.5*DAR'
    """
    return " + ".join(weighted(change(term), weight) for weight, term in parse(name))


def with_files(name: str, place: Callable[[Path], Path | str]) -> str:
    """Return the name of a loss or a sum with another place of each of its files.

    >>> with_files("infonce + mine.py:Mine", lambda path: Path("their") / path)
    'infonce + their/mine.py:Mine'
    """

    def placed(term: str) -> str:
        own = file_and_class(term)
        return f"{place(own[0])}:{own[1]}" if own else term

    return with_terms(name, placed)


def absolute(name: str) -> str:
    """Return the name of a loss with absolute paths, which hold in any folder.

    A sum stays as it is where its files' folder has a character of sums in its name.
    """
    if is_sum(name) and set("+*") & set(str(Path.cwd())):
        return name
    return with_files(name, Path.absolute)


def prefixes(titles: Iterable[Title]) -> list[str]:
    """Return a distinct prefix for the parameters of each term of a sum.

    That is the term's name; with its class where two have one name, and with a number where they
    have one class too.

    >>> prefixes([Title("infonce", "InfoNCE"), Title("mine", "A"), Title("mine", "B")])
    ['infonce', 'mine.A', 'mine.B']
    >>> prefixes([Title("mine", "A"), Title("mine", "A")])
    ['mine.A.1', 'mine.A.2']
    """
    titles = list(titles)
    names, all_titles = Counter(title.name for title in titles), Counter(titles)
    seen: Counter[Title] = Counter()
    distinct = []
    for title in titles:
        seen[title] += 1
        number = [str(seen[title])] if all_titles[title] > 1 else []
        distinct.append(".".join([*(title if names[title.name] > 1 else title[:1]), *number]))
    return distinct


def assign(
    expression: str, params: Mapping[str, Any], known: Mapping[str, Iterable[str]]
) -> dict[str, dict[str, Any]]:
    """Each term's own parameters, by its prefix; a loss that is no sum has "".

    A plain name goes to every term that has such a parameter, `prefix.name` to the one term and
    wins over a plain one.

    >>> assign("a + b", {"t": 1, "b.t": 2}, {"a": ["t"], "b": ["t"]})
    {'a': {'t': 1}, 'b': {'t': 2}}
    """
    full = {full_name(prefix, key): (prefix, key) for prefix, keys in known.items() for key in keys}
    own: dict[str, dict[str, Any]] = {prefix: {} for prefix in known}
    for name, value in sorted(params.items(), key=lambda item: item[0] in full):
        targets = [full[name]] if name in full else [to for to in full.values() if to[1] == name]
        if not targets:
            every = {*full, *(key for _, key in full.values())}
            raise unknown(f"parameter of {expression}", name, every)
        for prefix, key in targets:
            own[prefix][key] = value
    return own


def flat_params(params: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The parameters of all terms as `prefix.name`.

    >>> flat_params({"infonce": {"temperature": 0.5}, "dar": {"form": "star"}})
    {'infonce.temperature': 0.5, 'dar.form': 'star'}
    """
    return {full_name(prefix, key): v for prefix, own in params.items() for key, v in own.items()}


def full_name(prefix: str, key: str) -> str:
    """Return the name of a term's parameter; of a loss that is no sum without a prefix."""
    return f"{prefix}.{key}" if prefix else key
