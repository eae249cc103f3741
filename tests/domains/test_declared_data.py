"""A dataset is one declaration: no other module of its domain knows its name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from contrastbench.domains.declaration import reader_of
from contrastbench.domains.registry import DOMAINS, declaration

ROOT = Path(__file__).parents[2] / "domains"
DECLARING = {"__init__.py", "datasets.py", "pmlb.py"}  # where declarations stand
DATA = {"image": "image.data"}  # where readers stand, if it is not the domain's folder
OTHER_MEANINGS = {"ImageNet", "SUN397"}  # a folder's name, a class of torchvision
NAMED = [
    (domain, name)
    for domain in DOMAINS
    for name in {**declaration(domain).datasets, **declaration(domain).corpora}
]


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module that are no docstring, with their lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_name_stands_in_its_declaration_alone(domain: str) -> None:
    names = {name for where, name in NAMED if where == domain}
    found = [
        f"{path.relative_to(ROOT)}:{line} {text}"
        for path in (ROOT / domain).rglob("*.py")
        if path.name not in DECLARING
        for line, text in texts(path)
        if text in names - OTHER_MEANINGS
    ]
    assert found == []


@pytest.mark.parametrize(("domain", "name"), NAMED)
def test_a_declared_set_names_its_reader(domain: str, name: str) -> None:
    about = declaration(domain)
    dataset = {**about.corpora, **about.datasets}[name]
    package = f"contrastbench.domains.{DATA.get(domain, domain)}"
    assert dataset.reader or dataset.url, "what is embedded is made by a function"
    if dataset.reader:
        assert callable(reader_of(package, dataset))
