"""Declarations of domains, which need no torch."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from contrastbench.domains.reading import cause
from contrastbench.domains.recipe import Recipe
from contrastbench.errors import UserError

# all samples in turn, drawn by each seed, the set's own
TestPart = Literal["folds", "redrawn", "fixed"]


@dataclass(frozen=True)
class Dataset:
    """One dataset: its source, its expected content and its licence."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # of a file that declares it

    name: str
    summary: str
    url: str = ""  # empty: made by this package, nothing to download
    # of the downloaded file; empty: not known, so the file must be in the data root
    sha256: str = ""
    file: str = ""  # its name, where the address does not end in it
    citation: str = ""
    licence: str = "none stated by its distributor"
    # checked where known: counts of the domain, such as graphs, nodes and directed edges
    sizes: tuple[int, ...] = ()
    # what is known to go round under this name with other content, by its data hash
    copies: Mapping[str, str] = field(default_factory=dict)
    # what scored trainings on a known corpus, by their data hash: early records do not say it
    scored_as: Mapping[str, str] = field(default_factory=dict)
    # commit of the hub's repository that the address names; the hub knows its files' sha256
    revision: str = ""
    content: str = ""  # sha256 of its samples as the domain orders them, however they are kept
    folder: str = ""  # of its collection; a data root may hold the file in it
    files: "tuple[Dataset, ...]" = ()  # what is downloaded where no one has it as one file
    places: tuple[str, ...] = ()  # where else a data root may hold its content
    reader: str = ""  # "module:function" in the domain's folder; empty: the format of its domain
    # recipe values that score it where the defaults cannot
    scored_by: Mapping[str, Any] = field(default_factory=dict)
    equal: float = 0.0  # percent of test samples that equal a training one, mean over seeds 0-9
    shipped: Path | None = None  # its file in the package: with that sha256, cut from the address

    @property
    def within(self) -> str:
        """Return how the package holds it, so that nothing is downloaded; empty: it does not."""
        return ("shipped" if self.shipped else "") if self.url else "embedded"

    @property
    def described(self) -> str:
        """Return the summary, with what is known of equal samples."""
        equal = f"; {self.equal:g} % of test samples equal a training one" if self.equal else ""
        return self.summary + equal


@dataclass(frozen=True)
class Source:
    """A kind of data that users bring themselves: `--dataset KIND:WHAT`.

    The domain has a reader of the same kind, which is imported when the data are read.
    """

    kind: str
    what: str  # as help writes what stands behind the colon
    summary: str
    extra: str = ""  # what pip installs for the reader, if it is more than the domain's own
    suffixes: tuple[str, ...] = ()  # of the files whose owner may have forgotten the kind
    folder: bool = False  # the same of folders
    corpus: bool = False  # to train on, not to score
    runs_code: bool = False  # whether WHAT names Python: a record that names it needs --trust

    @property
    def usage(self) -> str:
        return f"{self.kind}:{self.what}"


def reader_of(package: str, dataset: Dataset) -> Any:
    return resolve_name(f"{package}.{dataset.reader}")


Datasets = Mapping[str, Dataset]
Declared = TypeVar("Declared", bound=Dataset)


def declared_sets(path: Path, kind: type[Declared], **words: str) -> dict[str, Declared]:
    """Read the sets that a TOML file declares: each collection says what its sets share.

    Args:
        path: of the file; what ships lies in a folder beside it.
        kind: the class of the sets, whose fields are the keys.
        words: what stands for {word} in texts, besides {name} for the name of a set.

    Raises:
        UserError: a set has an unknown key, or lacks one.
    """
    declare, found = TypeAdapter(kind).validate_python, dict[str, Declared]()
    for shared in tomllib.loads(path.read_text(encoding="utf-8")).values():
        for name, own in shared.pop("sets").items():
            values = filled({"name": name, **shared, **own}, {"name": name, **words})
            if "shipped" in values:
                values["shipped"] = path.with_name("shipped") / values["shipped"]
            try:
                found[name] = declare(values)
            except ValidationError as error:
                raise UserError(f"{path.name}: {name}: {cause(error)}") from None
    return found


def filled(value: Any, words: Mapping[str, str]) -> Any:
    """Return texts with words in place of these in braces.

    >>> filled({"file": ["{name}.gz"]}, {"name": "iris"})
    {'file': ['iris.gz']}
    """
    if isinstance(value, dict):
        return {key: filled(one, words) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, words) for one in value]
    for word, text in words.items() if isinstance(value, str) else ():
        value = value.replace(f"{{{word}}}", text)
    return value


def by_name(*datasets: Declared) -> dict[str, Declared]:
    return {dataset.name: dataset for dataset in datasets}


@dataclass(frozen=True)
class Declaration:
    """A domain's face: all that lists, plans and tables need of it.

    A package announces its own in the entry-point group `contrastbench.domains`.
    """

    summary: str
    adapter: str  # "module:Class" of its `Domain`, imported when a cell is run
    recipe: type[Recipe]
    datasets: Datasets
    default: str  # the dataset that needs no file and no network
    tiny: dict[str, Any]  # recipe values of a smoke test
    extra: str = ""  # what pip installs for the adapter's libraries
    needs: tuple[str, ...] = ()  # modules of the extra without which nothing runs
    corpora: Datasets = field(default_factory=dict)  # to train on, not to score
    sources: tuple[Source, ...] = ()  # what users bring themselves
    protocols: tuple[str, ...] = ()  # by which `bench score` scores any encoder
    scorer: str = ""  # "module:function" of encoder, dataset, protocol, seed, data root and device
    opener: str = ""  # "module:function" of an encoder's name, data root and device
    names: bool = False  # the opener also takes names of published encoders
    mark: str = ""  # a key of config.json that its exports alone have
    checked: Mapping[str, Any] = field(default_factory=dict)  # recipe values to check data by
    perf: str = ""  # the module whose report `bench perf` prints
