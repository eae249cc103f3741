"""Domains: who announces them, and what they declare."""

import ast
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from statistics import fmean

import pytest
import torch

from contrastbench.benchmarks.cli import doctor, listing
from contrastbench.domains import registry
from contrastbench.domains.declaration import Dataset, declared_sets, reader_of
from contrastbench.domains.registry import (
    DOMAINS,
    declaration,
    domain_class,
    known_data,
    make_recipe,
)
from contrastbench.losses import UserError

FACE = """
from contrastbench.domains.declaration import Dataset, Declaration, by_name
from contrastbench.domains.recipe import Recipe


class PointRecipe(Recipe):
    noise: float = 0.1

    @property
    def protocol(self):
        return "points/1"


def declared(**changes):
    plane = by_name(Dataset("plane", "embedded: points of a plane"))
    values = {"adapter": "pointset_domain:PointDomain", "default": "plane", "tiny": {"epochs": 1}}
    values |= {"summary": "points", "recipe": PointRecipe, "datasets": plane}
    return Declaration(**{**values, **changes})


DECLARATION = declared()
NO_DEFAULT = declared(default="sphere")
NO_CLASS = declared(adapter="pointset_domain")
NO_RECIPE = declared(recipe=dict)
NO_MODULE = declared(adapter="pointset_domian:PointDomain")
NO_ATTRIBUTE = declared(adapter="pointset_domain:Pointdomain")
NO_LIBRARY = declared(adapter="pointset_library:PointDomain")
NO_LIBRARY_OF_AN_EXTRA = declared(adapter="pointset_library:PointDomain", extra="pointset[all]")
NO_IMPORT = declared(adapter="pointset_wrong:PointDomain")
"""


@pytest.fixture
def points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {
        "pointset": FACE,
        "pointset_domain": "",
        "pointset_library": "import no_such_library",
        "pointset_wrong": "1 / 0",
    }
    for name, code in modules.items():
        (tmp_path / f"{name}.py").write_text(code)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    announce(monkeypatch, points="pointset:DECLARATION")


def announce(monkeypatch: pytest.MonkeyPatch, *others: EntryPoint, **values: str) -> None:
    entries = [EntryPoint(name, value, registry.ENTRY_POINTS) for name, value in values.items()]
    monkeypatch.setattr(registry, "entry_points", lambda group: (*others, *entries))


def test_a_packages_domain_is_listed_without_its_adapter(points: None) -> None:
    assert "points     points; embedded: plane" in list(listing.domain_lines())
    assert "plane                points    embedded: points of a plane" in list(
        listing.dataset_lines()
    )
    assert "plane" in registry.known_data()
    assert "pointset_domain" not in sys.modules


BROKEN = {  # what a package announces, and what is said of it
    "no_such_module:B": r"cannot load domain new from no_such_module:B \(ModuleNotFoundError: No",
    "json:B": r"cannot load domain new from json:B \(AttributeError: module 'json' has no",
    "pointset_wrong:B": r"cannot load domain new from pointset_wrong:B \(ZeroDivisionError: div",
    "json:JSONDecoder": "domain new: json:JSONDecoder is no Declaration: see contrastbench.dom",
    "pointset:NO_DEFAULT": "NO_DEFAULT has the default 'sphere', which is none of its datasets$",
    "pointset:NO_CLASS": "NO_CLASS has the adapter 'pointset_domain': write module:Class$",
    "pointset:NO_RECIPE": "NO_RECIPE has the recipe <class 'dict'>: give a class derived from ",
}


@pytest.mark.parametrize("value", BROKEN)
def test_a_broken_declaration_is_one_line_and_takes_no_other_domain_down(
    value: str, points: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(monkeypatch, new=value, points="pointset:DECLARATION")
    with pytest.raises(UserError, match=BROKEN[value]) as error:
        registry.domain_class("new")
    names = [line.split()[0] for line in listing.domain_lines()]
    assert names == [*registry.DOMAINS, "new", "points"]
    assert f"new        BROKEN: {error.value}" in list(listing.domain_lines())
    assert f"domain new is BROKEN: {error.value}" in list(doctor.broken_domains())
    assert {"plane", "motifs", "wiki1m"} < registry.known_data().keys()
    assert any(line.startswith("plane") for line in listing.data_lines())


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("NO_MODULE", r"cannot import pointset_domian:PointDomain of domain new \(ModuleNotFound"),
        ("NO_ATTRIBUTE", r"cannot import pointset_domain:Pointdomain of domain new \(AttributeErr"),
        ("NO_IMPORT", r"cannot import pointset_wrong:PointDomain of domain new \(ZeroDivisionErr"),
        ("NO_LIBRARY", "domain new needs no_such_library, .*: pip install no_such_library$"),
        ("NO_LIBRARY_OF_AN_EXTRA", r'needs no_such_library, .*: pip install "pointset\[all\]"$'),
    ],
)
def test_an_adapter_that_cannot_be_imported_is_one_line(
    attribute: str, message: str, points: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(monkeypatch, new=f"pointset:{attribute}")
    with pytest.raises(UserError, match=message):
        registry.domain_class("new")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            [("graph", "theirs:DECLARATION")],
            "two domains are named graph: contrastbench.domains.graph:DECLARATION and theirs:DECL",
        ),
        ([("new", "a:B"), ("new", "c:D")], "two domains are named new: a:B and c:D: uninstall one"),
    ],
)
def test_a_name_clash_is_refused(
    monkeypatch: pytest.MonkeyPatch, entries: list[tuple[str, str]], message: str
) -> None:
    announce(monkeypatch, *(EntryPoint(*entry, registry.ENTRY_POINTS) for entry in entries))
    for ask in (registry.domains, registry.known_data, lambda: list(listing.domain_lines())):
        with pytest.raises(UserError, match=message):
            ask()


def test_an_unknown_domain_answers_with_packages_too(points: None) -> None:
    with pytest.raises(UserError, match="unknown domain 'point': did you mean 'points'"):
        registry.check_domain_name("point")


@pytest.mark.parametrize("own", ["graph.own", "image.data.own", "sentence.own", "tabular.own"])
def test_every_kind_of_own_data_has_a_reader(own: str) -> None:
    kinds = {source.kind for source in registry.declaration(own.partition(".")[0]).sources}
    assert import_module(f"contrastbench.domains.{own}").READERS.keys() == kinds - {"text"}


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
def test_a_declared_set_names_its_source_and_its_reader(domain: str, name: str) -> None:
    about = declaration(domain)
    dataset = {**about.corpora, **about.datasets}[name]
    package = f"contrastbench.domains.{DATA.get(domain, domain)}"
    wanted = ["summary", "citation"] + ["reader", "target"] * (domain == "tabular")
    for key in wanted if dataset.url else ("summary",):
        assert getattr(dataset, key) != "", f"{name} has no {key}: declare it in datasets.toml"
    assert dataset.reader or dataset.url, "what is embedded is made by a function"
    if dataset.reader:
        assert callable(reader_of(package, dataset))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('url = "https://a"', "beetles: summary: Field required"),
        ('summary = "beetles"\nurls = "https://a"', "beetles: urls: Unexpected keyword argument"),
    ],
)
def test_a_slip_in_a_declaration_is_one_line(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "datasets.toml"
    path.write_text(f"[here.sets.beetles]\n{line}\n")
    with pytest.raises(UserError) as raised:
        declared_sets(path, Dataset)
    assert str(raised.value) == f"datasets.toml: {said}"


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
