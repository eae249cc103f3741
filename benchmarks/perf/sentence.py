"""Measure sentence encoding for `bench perf sentence`, here and by sentence-transformers.

All ways pool by the mean and take as many threads. They encode the same pairs of all over the STS
suite in turns, as many as ours in float32 does in `SECONDS`. sentence-transformers encodes what its
users give it, both sides of every pair; here each distinct sentence is encoded once.
"""

import copy
import importlib.util
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import cast

import torch

from contrastbench.benchmarks.perf.timing import CPU, medians, run_seconds, table_head
from contrastbench.domains.registry import make_recipe
from contrastbench.domains.sentence import SentenceRecipe
from contrastbench.domains.sentence.data import Pairs
from contrastbench.domains.sentence.domain import SentenceDomain
from contrastbench.domains.sentence.encoder import Embeddings
from contrastbench.domains.sentence.scoring import evaluate_correlations

DEFAULT = ("bert-base-uncased",)  # encoders: folders or names of the hub
DATASET = "sts"
PEER = "sentence-transformers"
SECONDS = 2.0  # of encoding by each way in a round, about
ROUNDS = 3
TRIAL = 512  # sentences that say how many take so long
Encode = Callable[[list[str]], Embeddings]


def report(encoders: list[str], root: Path | None, device: torch.device = CPU) -> Iterator[str]:
    """Yield a Markdown table, a line for each encoder and way."""
    speed = "pairs | seconds | sentences/s | speed beside float32"
    yield table_head(f"encoder | way | {speed} | Spearman, farthest from float32", 2)
    for encoder in encoders:
        recipe = make_recipe("sentence", {"encoder": encoder, "pooler": "avg"})
        domain = SentenceDomain(DATASET, cast(SentenceRecipe, recipe), 0, root, device)
        torch.set_num_threads(domain.threads)
        yield from encoder_lines(Path(encoder).name, domain)


def encoder_lines(name: str, domain: SentenceDomain) -> Iterator[str]:
    """Yield the lines of an encoder; rates count every sentence, also repeated ones."""
    sets = share(domain)
    given = [part for parts in sets.values() for part in parts]
    suite = [sentence for part in given for sentence in part.first + part.second]
    ways = {way: our_encoding(domain, way) for way in ("float32", "bf16")}
    if importlib.util.find_spec("sentence_transformers"):
        ways[PEER] = peers_encoding(domain)
    works = [partial(encode, suite) for encode in ways.values()]
    taken = medians(works, ROUNDS, domain.device)
    scores = [evaluate_correlations(work(), sets, whiten=False).metrics for work in works]
    of = f"{len(suite) // 2} of {sum(map(len, chain(*domain.scored.sets.values())))}"
    for way, seconds, metrics in zip(ways, taken, scores, strict=True):
        far = max(abs(metrics[key] - value) for key, value in scores[0].items()) / 100
        speed = f"{seconds:.1f} | {len(suite) / seconds:.0f} | {taken[0] / seconds:.2f}"
        yield f"| {name} | {way} | {of} | {speed} | {far:.5f} |"
    if PEER not in ways:
        yield f"| {name} | {PEER} | not installed | | | | |"


def share(domain: SentenceDomain) -> dict[str, list[Pairs]]:
    """Return the same share of each set, of which ours encodes all in `SECONDS`, about."""
    sets, encode = domain.scored.sets, our_encoding(domain, "float32")
    firsts = [sentence for part in chain(*sets.values()) for sentence in part.first]
    trial = firsts[:: -(-len(firsts) // TRIAL)]
    encode(trial)
    taken = run_seconds(partial(encode, trial), domain.device)
    part_of = min(1.0, SECONDS / taken * len(trial) / len(firsts) / 2)
    return {k: [pairs.few(int(part_of * len(pairs)) + 1) for pairs in sets[k]] for k in sets}


def our_encoding(domain: SentenceDomain, precision: str) -> Encode:
    other = copy.copy(domain)
    other.recipe = domain.recipe.but(precision=precision)
    model = other.model()
    return lambda sentences: domain.encode(model, sentences)


def peers_encoding(domain: SentenceDomain) -> Encode:
    """Return sentence-transformers' encoding by the same weights, with its own defaults."""
    from sentence_transformers import SentenceTransformer

    with tempfile.TemporaryDirectory() as folder:
        domain.export(domain.model(), Path(folder))
        model = SentenceTransformer(folder, device=str(domain.device))

    def encode(sentences: list[str]) -> Embeddings:
        z = model.encode(sentences, convert_to_tensor=True, show_progress_bar=False).cpu()
        return Embeddings({sentence: i for i, sentence in enumerate(sentences)}, z, {})

    return encode
