"""What `bench list` prints; reads declarations only, so it is instant."""

from collections.abc import Iterator

from contrastbench.benchmarks.tables import catalogue
from contrastbench.domains import registry
from contrastbench.losses.errors import UserError
from contrastbench.losses.registry import LOSSES, describe
from contrastbench.losses.registry import losses as registered_losses


def losses() -> Iterator[str]:
    """Name, parameters with defaults, summary, ranges; of a package's loss where it stands."""
    for name, entry in registered_losses().items():
        if name not in LOSSES:  # to describe it would import it, and torch with it
            yield f"{name}\n    Of a package: {entry.value}"
            continue
        loss = describe(name)
        params = ", ".join(f"{key}={value}" for key, value in loss.params.items())
        ranges = "; ".join(f"{key} {r}" for key, r in loss.ranges.items())
        yield f"{name}({params})\n    {loss.summary}\n    {ranges}"
    yield "none\n    No training: the encoder as it is."


def domains() -> Iterator[str]:
    """Name, summary, embedded dataset; of a package that cannot be loaded, why."""
    for name, about in registry.declarations().items():
        if isinstance(about, UserError):
            yield f"{name:10} BROKEN: {about}"
        else:
            yield f"{name:10} {about.summary}; embedded: {about.default}"


def datasets() -> Iterator[str]:
    """Name, domain, summary."""
    for domain, some in registry.datasets().items():
        for dataset in some.values():
            yield f"{dataset.name:16} {domain:9} {dataset.summary}"


def data() -> Iterator[str]:
    """Datasets, and corpora to train on."""
    yield from datasets()
    for domain, about in registry.loaded().items():
        for corpus in about.corpora.values():
            yield f"{corpus.name:16} {domain:9} {corpus.summary}"


def tables() -> Iterator[str]:
    """Name and source."""
    files = catalogue.files()
    for name in sorted(files, key=catalogue.by_number):
        yield f"{name:21} {catalogue.source(files[name])}"
