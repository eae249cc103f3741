"""Measure sentence encoding for `bench perf sentence`.

The whole STS suite encoded here and by sentence-transformers, side by side in one run.

All ways pool by the mean and take as many threads. The suite is cut into rounds in which the ways
take turns, so that a machine that is busy for a while is busy for all of them.
sentence-transformers encodes what its users give it, both sides of every set; here each distinct
sentence is encoded once.
"""

import copy
import importlib.util
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from contrastbench.benchmarks.perf.timing import CPU, run_seconds
from contrastbench.domains.progress import Progress
from contrastbench.domains.registry import make_recipe
from contrastbench.domains.sentence import SentenceRecipe, scoring
from contrastbench.domains.sentence.domain import SentenceDomain
from contrastbench.domains.sentence.encoding import Embeddings

DEFAULT = ("bert-base-uncased",)  # encoders: folders or names of the hub
DATASET = "sts"
PEER = "sentence-transformers"
ROUNDS = 8


@dataclass
class Way:
    """One way to encode the suite, with its inputs and its time."""

    name: str
    encode: Callable[[list[str]], Tensor]
    sentences: list[str]
    seconds: float = 0.0
    parts: list[Tensor] = field(default_factory=list)

    def round(self, number: int) -> None:
        """Encode the round's share."""
        part = self.sentences[number::ROUNDS]
        self.seconds += run_seconds(lambda: self.parts.append(self.encode(part)))

    def scores(self, domain: SentenceDomain) -> dict[str, float]:
        """Spearman correlations of the sets."""
        order = [
            sentence for number in range(ROUNDS) for sentence in self.sentences[number::ROUNDS]
        ]
        embeddings = Embeddings(
            {sentence: i for i, sentence in enumerate(order)}, torch.cat(self.parts), {}
        )
        return scoring.evaluate_correlations(embeddings, domain.scored.sets, whiten=False).metrics


def report(
    encoders: list[str], data_root: Path | None, device: torch.device = CPU
) -> Iterator[str]:
    """A Markdown table, a line at a time: one run of the suite for each encoder and way."""
    yield (
        "| encoder | way | encoded | seconds | sentences/s | ratio | Spearman, farthest from "
        "float32 |"
    )
    yield "| --- | --- |" + " ---: |" * 5
    for encoder in encoders:
        recipe = cast(
            SentenceRecipe, make_recipe("sentence", {"encoder": encoder, "pooler": "avg"})
        )
        domain = SentenceDomain(DATASET, recipe, 0, data_root, device)
        torch.set_num_threads(domain.threads)
        yield from encoder_lines(Path(encoder).name, domain)


def encoder_lines(name: str, domain: SentenceDomain) -> Iterator[str]:
    """The lines of an encoder.

    Rates count every sentence of the suite, encoded or found to be encoded already.
    """
    pairs = [part for parts in domain.scored.sets.values() for part in parts]
    suite = [sentence for part in pairs for sentence in part.first + part.second]
    ways = [
        *peer(domain, suite),
        our_encoding(domain, suite, "float32"),
        our_encoding(domain, suite, "bf16"),
    ]
    take_turns(ways)
    exact = next(way for way in ways if way.name == "float32").scores(domain)
    if ways[0].name != PEER:
        yield f"| {name} | {PEER} | not installed | | | | |"
    for way in ways:
        found = way.scores(domain)
        far = max(abs(found[key] - exact[key]) for key in exact) / 100
        speed, ratio = len(suite) / way.seconds, ways[0].seconds / way.seconds
        rate = f"{way.seconds:.1f} | {speed:.0f} | {ratio:.2f}"
        yield f"| {name} | {way.name} | {len(way.sentences)} | {rate} | {far:.5f} |"


def take_turns(ways: list[Way]) -> None:
    """Let every way take its share of every round."""
    for way in ways:
        way.encode(way.sentences[:64])  # what is loaded at the first call belongs to nobody
    with Progress(ROUNDS * len(ways), "encoding in turns") as progress:
        for number in range(ROUNDS):
            for way in ways:
                way.round(number)
                progress.step(way.name)


def our_encoding(domain: SentenceDomain, suite: list[str], precision: str) -> Way:
    """The sentence domain's encoding."""
    other = copy.copy(domain)
    other.recipe = domain.recipe.but(precision=precision)
    model = other.model()
    return Way(precision, lambda part: domain.encode(model, part).z, list(dict.fromkeys(suite)))


def peer(domain: SentenceDomain, suite: list[str]) -> Iterator[Way]:
    """sentence-transformers on the same weights, with its own defaults, if it is installed."""
    if importlib.util.find_spec("sentence_transformers") is None:
        return
    from sentence_transformers import SentenceTransformer

    with tempfile.TemporaryDirectory() as folder:
        domain.export(domain.model(), Path(folder))
        model = SentenceTransformer(folder, device=str(domain.device))
    yield Way(
        PEER,
        lambda part: model.encode(part, convert_to_tensor=True, show_progress_bar=False).cpu(),
        suite,
    )
