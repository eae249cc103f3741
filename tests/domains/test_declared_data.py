"""A dataset is one declaration: no other module of its domain knows its name."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean

import pytest
import torch

from contrastbench.domains.declaration import reader_of
from contrastbench.domains.registry import (
    DOMAINS,
    declaration,
    domain_class,
    known_data,
    make_recipe,
)

ROOT = Path(__file__).parents[2] / "domains"
DECLARING = {"__init__.py", "datasets.py"}  # where declarations stand
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


@pytest.mark.parametrize(
    ("domain", "file", "name"),
    [("tabular", "pmlb/spambase.tsv.gz", "spambase"), ("graph", "tudataset/DHFR.zip", "DHFR")],
)
def test_the_declared_share_of_equal_samples_is_that_of_reports(
    domain: str, file: str, name: str, shared: Callable[..., Path]
) -> None:
    root, kind = shared("data", file).parent.parent, domain_class(domain)
    reports = [
        kind(name, make_recipe(domain, {}), seed, root, torch.device("cpu")).report(trained=False)
        for seed in range(10)
    ]
    shares = [report.twins.share for report in reports if report.twins]
    assert fmean(shares) == pytest.approx(known_data()[name].equal, abs=0.5), "draws differ"
