"""What `bench list` prints; reads declarations only, so it is instant."""

from collections.abc import Iterator

from contrastbench.benchmarks import table_files
from contrastbench.domains.datasets import CORPORA, DATASETS, EMBEDDED
from contrastbench.domains.registry import DOMAINS, plugins
from contrastbench.losses.registry import LOSSES, describe


def losses() -> Iterator[str]:
    """Name, parameters with defaults, summary."""
    for name in LOSSES:
        loss = describe(name)
        params = ", ".join(f"{key}={value}" for key, value in loss.params.items())
        yield f"{name}({params})\n    {loss.summary}"
    yield "none\n    No training: the encoder as it is."


def domains() -> Iterator[str]:
    """Name, summary, embedded dataset."""
    for name, (_, summary) in DOMAINS.items():
        yield f"{name:10} {summary}; embedded: {EMBEDDED[name]}"
    for name, entry in plugins().items():
        yield f"{name:10} announced by {entry.dist.name if entry.dist else 'a package'}: {entry.value}"


def datasets() -> Iterator[str]:
    """Name, domain, summary."""
    for dataset in DATASETS.values():
        yield f"{dataset.name:16} {dataset.domain:9} {dataset.summary}"


def data() -> Iterator[str]:
    """Datasets, and corpora to train on."""
    yield from datasets()
    for corpus in CORPORA.values():
        yield f"{corpus.name:16} {corpus.domain:9} {corpus.summary}"


def tables() -> Iterator[str]:
    """Name and source."""
    files = table_files.files()
    for name in sorted(files, key=table_files.by_number):
        yield f"{name:21} {table_files.source(files[name])}"
