"""Sentences: unsupervised SimCSE with any registered loss, scored by SentEval's protocol.

The two views of a sentence are two dropout passes of the encoder, so this domain has no file of
views.
"""

import copy
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from contrastbench.distributed import gather, own_rows, world
from contrastbench.domains.base import Domain, Evaluation
from contrastbench.domains.model import pair_views
from contrastbench.domains.random import generator, seed_torch
from contrastbench.domains.reading import refuse
from contrastbench.domains.samples import WRONG_SHARE, Samples
from contrastbench.domains.scoring.retrieval import recall_at_1, retrieval
from contrastbench.domains.sentence import SentenceRecipe, exports, graded, own, scoring, transfer
from contrastbench.domains.sentence import encoder as encoding
from contrastbench.domains.sentence.checkpoint import load_checkpoint
from contrastbench.domains.sentence.data import Corpus, read_corpus, sentences_of, without_sentences
from contrastbench.domains.sentence.datasets import CORPORA, DATASETS
from contrastbench.domains.sentence.encoder import Embeddings, Head, SentenceModel, Tokens
from contrastbench.domains.sentence.report import sentence_samples
from contrastbench.losses.contrast import Contrast, against, indexed

CAPTURED = ("bert", "roberta")  # whose steps launch the same kernels each time
HEAD_STD = 0.02  # BERT's initialisation, which SimCSE's head has too


@dataclass(frozen=True)
class Batch:
    """Sentences of a step, what each meets, and the seed of the two dropout passes."""

    sentences: list[str]
    seed: int
    positives: list[str]  # themselves, or others of their rows
    rows: Tensor = field(compare=False)  # of the corpus
    negatives: list[str] = field(default_factory=list)  # hard ones, of each row or of none


@dataclass(frozen=True)
class PaddedBatch:
    """Tokens of a step's sentences and positives, all padded to the recipe's length."""

    ids: Tensor
    mask: Tensor
    rows: Tensor


SMALL_WIDTH = 128  # of encoders that several threads make no faster


class SentenceDomain(Domain[SentenceRecipe, SentenceModel, Batch]):
    """An encoder trained on single sentences by unsupervised SimCSE (Gao et al. 2021).

    Where the corpus has rows of several sentences, two of a row meet. Both dropout passes are one
    forward pass of the doubled batch. The scored embedding is the recipe's pooler without the head
    unless that is `cls`. The development pairs choose the model; the reported sets are seen once,
    at the end.
    """

    threads = os.cpu_count() or 1
    other_as_graph = "sentences are padded to max_length, so dropout draws other numbers"

    def read(self) -> None:
        recipe = self.recipe
        self.about = DATASETS.get(self.dataset)  # None: the set is the user's own
        self.scored = own.read_any(self.dataset, self.data_root)
        if recipe.limit is not None and self.about and self.about.url:
            self.scored = self.scored.few(recipe.limit)  # a smoke test is scored on few, too
        if recipe.encoder == "tiny":
            self.checkpoint, self.threads = graded.tiny_checkpoint(self.seed), 1
        else:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.seed)
                self.checkpoint = load_checkpoint(recipe.encoder, self.data_root)
            if self.checkpoint.encoder.config.hidden_size <= SMALL_WIDTH:
                self.threads = 1
        self.check_recipe()
        kind = self.checkpoint.encoder.config.model_type
        self.uncaptured = "" if kind in CAPTURED else f"a {kind} may compute on the host"
        self.batch_tokens = 2048 if self.device.type == "cpu" else 2**16
        self.model()  # a head that cannot be had is named before the training

    def check_recipe(self) -> None:
        recipe, positions = self.recipe, self.checkpoint.max_length
        own = self.about and self.about.own_corpus and recipe.names_corpus
        fix = "leave corpus out, or give --dataset sts"
        bare = recipe.whiten and not self.scored.sets
        refuse(f"the dataset {self.dataset}", (own, f" has its own training sentences: {fix}"))
        unscored = f", but {self.dataset} has none: leave whiten out"
        refuse("whitening needs scored pairs", (bare, unscored))
        long = f": encoder {recipe.encoder!r} has {positions} positions"
        refuse(f"max_length={recipe.max_length}", (recipe.max_length > positions, long))

    def check_untrained(self) -> None:
        encoding.check_head(self.model())

    @cached_property
    def corpus(self) -> Corpus:
        """Rows of training sentences; read only by a run that trains.

        Rows with a sentence that is scored are left out, but of Wikipedia for a declared set.
        """
        name, root = self.recipe.corpus, self.data_root
        others = {*self.recipe.scored_sets} - {self.dataset}
        compared = [s for other in sorted(others) for s in own.read_any(other, root).compared]
        if self.scored.corpus and not self.recipe.names_corpus:
            mine = [] if self.about else self.scored.compared
            return without_sentences(self.scored.corpus(), [*compared, *mine])
        if name in CORPORA and name not in DATASETS and self.about:
            return read_corpus(name, root)
        if name in DATASETS and name in CORPORA:
            corpus = own.read_any(name, root).corpus
            assert corpus, "it is declared as a corpus"
            found = corpus()
        elif name.startswith("hf:"):
            found = sentences_of(name, own.saved_texts(name.removeprefix("hf:"), root))
        else:
            found = read_corpus(name, root)
        return without_sentences(found, [*self.scored.compared, *compared])

    @property
    def corpus_name(self) -> str:
        """Return the name of the training sentences; of a file without the folders it lies in."""
        if self.scored.corpus and not self.recipe.names_corpus:
            if self.about is None:
                return Path(self.dataset).name
            others = self.dataset in CORPORA  # that may be trained on them as well
            return self.dataset if others else f"{self.dataset}: its own training sentences"
        name = self.recipe.corpus
        return name if name.startswith("hf:") else Path(name).name

    def data_hash(self, trained: bool) -> str:
        corpus = self.corpus.sha256 if trained else ""
        return hashlib.sha256(
            "\n".join((self.scored.sha256, self.checkpoint.sha256, corpus)).encode()
        ).hexdigest()

    def notes(self, trained: bool) -> dict[str, Any]:
        told = self.about is None and (self.scored.sets or self.scored.notes)
        notes: dict[str, Any] = {"data": dict(self.scored.notes)} if told else {}
        if trained:
            notes["corpus"] = {
                "name": self.corpus_name,
                "sentences": sum(map(len, self.corpus.rows)),
                "empty_lines": self.corpus.empty_lines,
            }
        if self.checkpoint.sha256:
            name = Path(self.recipe.encoder).name
            notes["encoder"] = {"name": name, "sha256": self.checkpoint.sha256}
        return notes

    def samples(self, trained: bool) -> Samples:
        mine = self.about is None
        trained |= bool(mine and self.scored.corpus and not self.recipe.names_corpus)
        counts: dict[str, int] = {}
        if trained:
            first = f"first 1,000 training sentences, cut to {self.recipe.max_length} tokens"
            counts = {
                "empty lines of the training sentences": self.corpus.empty_lines,
                "training rows left out, with a scored sentence": self.corpus.scored,
                first: 0 if self.corpus_name in CORPORA else self.cut_sentences(),
            }
        most, compared = self.checkpoint.max_length, dict.fromkeys(self.scored.compared)
        cut = sum(len(ids) > most for ids in self.seen([*compared] if mine else []))
        counts[f"scored sentences, cut to {most} tokens"] = cut
        data = dict(self.notes(trained).get("data", {}))
        data |= {note: count for note, count in counts.items() if count}
        corpus = self.corpus if trained else None
        found = sentence_samples(self.scored, corpus, data, mine, self.seen if mine else None)
        unknown = self.unknown_tokens() if mine else 0
        doubt = "percent of words unknown to the encoder, take another, such as random:1x64:NAME"
        return replace(found, doubts={**found.doubts, **({doubt: unknown} if unknown else {})})

    def seen(self, sentences: list[str]) -> list[tuple[int, ...]]:
        """Return the tokens of sentences, one more than the encoder has positions for."""
        return [*map(tuple, self.token_ids(sentences, self.checkpoint.max_length + 1))]

    def unknown_tokens(self) -> int:
        """Return the percent of unknown tokens in the first 1,000 scored sentences; 0 of few."""
        first = [*islice(self.scored.compared, 1000)]
        ids = [*chain.from_iterable(self.token_ids(first, self.checkpoint.max_length))]
        share = 100 * ids.count(self.checkpoint.tokenizer.unk_token_id) / len(ids)
        return round(share) if share >= WRONG_SHARE else 0

    def cut_sentences(self) -> int:
        most, first = self.recipe.max_length, chain.from_iterable(self.corpus.rows)
        ids = self.token_ids([*islice(first, 1000)], most + 1)
        return sum(len(row) > most for row in ids)

    def token_ids(self, sentences: list[str], most: int) -> list[encoding.Ids]:
        return encoding.token_ids(self.checkpoint, sentences, most)

    def model(self) -> SentenceModel:
        recipe = self.recipe
        encoder = copy.deepcopy(self.checkpoint.encoder)
        head = self.head() if recipe.pooler.startswith("cls") else None
        return SentenceModel(encoder, recipe.pooler, head, recipe.precision).to(self.device)

    def head(self) -> Head:
        if self.recipe.head == "checkpoint":
            own = self.checkpoint.own_pooler(self.recipe.encoder)
            return Head(copy.deepcopy(own), trained=True)
        width = self.checkpoint.encoder.config.hidden_size
        dense, cpu = nn.Linear(width, width), torch.device("cpu")
        nn.init.normal_(dense.weight, std=HEAD_STD, generator=generator(cpu, self.seed))
        nn.init.zeros_(dense.bias)
        return Head(dense, trained=False)

    def batches(self, epoch: int) -> Iterator[Batch]:
        """All rows in the epoch's order; a last one alone has no negatives, is left out.

        Of a row with several sentences two are drawn.
        """
        cpu, rows = torch.device("cpu"), self.corpus.rows[: self.recipe.limit]
        shuffled = torch.randperm(len(rows), generator=generator(cpu, self.seed, epoch))
        order, on_device = shuffled.tolist(), shuffled.to(self.device)
        # the fourth number keeps it apart from the seeds of batches
        drawn = two_of_each(rows, generator(cpu, self.seed, epoch, 0, 1))
        hard = one_of_each(self.corpus, generator(cpu, self.seed, epoch, 0, 2))
        for start in range(0, len(order) - 1, self.recipe.batch_size):
            seed = generator(cpu, self.seed, epoch, start).initial_seed()
            part = slice(start, start + self.recipe.batch_size)
            first, second = zip(*(drawn[i] for i in order[part]), strict=True)
            negatives = [hard[i] for i in order[part] if hard]
            yield Batch([*first], seed, [*second], on_device[part], negatives)

    def steps(self) -> int:
        full, rest = divmod(self.sample_count, self.recipe.batch_size)
        return full + (rest > 1)

    @property
    def sample_count(self) -> int:
        return len(self.corpus.rows[: self.recipe.limit])

    def tokens(self, batch: Batch, least: int = 0) -> Tokens:
        views = batch.sentences + batch.positives + batch.negatives
        ids = self.token_ids(views, self.recipe.max_length)
        return encoding.pad(ids, self.checkpoint.tokenizer.pad_token_id, self.device, least)

    def for_graph(self, batch: Batch) -> PaddedBatch:
        """Return the batch in one length; the generator of the step draws its dropout."""
        tokens = self.tokens(batch, self.recipe.max_length)
        return PaddedBatch(tokens.ids, tokens.mask, batch.rows)

    def contrasts(self, model: SentenceModel, batch: Batch | PaddedBatch) -> list[Contrast]:
        if isinstance(batch, PaddedBatch):  # a graph cannot look whether there is padding, nor seed
            z = embed_tokens(model, Tokens(batch.ids, batch.mask, full=False))
        else:
            tokens = self.tokens(batch)
            with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
                seed_torch(self.device, batch.seed)  # dropout: an interruption must not change it
                z = embed_tokens(model, tokens)
        pairs = self.paired(*z.split(len(batch.rows)))
        return [indexed(contrast, batch.rows) for contrast in pairs]

    def paired(self, z1: Tensor, z2: Tensor, *negatives: Tensor) -> list[Contrast]:
        pairs = pair_views(self.recipe.pairing, z1, z2, labels=None)
        for z in negatives:
            pairs = [against(one, z) for one in pairs]
        return pairs

    def encode(self, model: SentenceModel, sentences: list[str]) -> Embeddings:
        """The only way from sentences to scored embeddings."""
        return encoding.encode(model, self.checkpoint, sentences, self.batch_tokens)

    def check_export(self) -> None:
        exports.check_pooler(self.recipe.pooler)

    def export(self, model: SentenceModel, folder: Path) -> None:
        """A folder that transformers and sentence-transformers load."""
        exports.export(model, self.checkpoint, folder)

    def validate(self, model: SentenceModel) -> float:
        """Spearman correlation in percent on the development pairs, or the recall among rows."""
        if self.scored.captions:
            rows = self.scored.captions.dev
            embeddings = self.encode(model, scoring.caption_sentences(rows))
            if self.scored.captions.search:
                return scoring.search_recall(embeddings, rows)
            return recall_at_1(scoring.caption_classes(embeddings, rows))
        dev = self.scored.dev
        assert dev, "all sets but captions have such pairs"
        embeddings = self.encode(model, dev.first + dev.second)
        return scoring.correlation(embeddings, [dev], self.recipe.whiten)

    def evaluate(self, model: SentenceModel) -> Evaluation:
        if self.scored.captions:
            rows = self.scored.captions.test
            embeddings = self.encode(model, scoring.caption_sentences(rows))
            scores, main = retrieval(scoring.caption_classes(embeddings, rows)), "recall_at_1"
            if self.scored.captions.search:
                main = scoring.SEARCH
                scores = {main: scoring.search_recall(embeddings, rows), **scores}
            result = Evaluation(scores, main, samples={"test": len(rows)})
        elif self.scored.tasks:
            tasks = self.scored.tasks
            embeddings = self.encode(model, [s for task in tasks for s in task.sentences])
            result = transfer.evaluate_transfer(embeddings, tasks, self.seed)
        else:
            pairs = [part for parts in self.scored.sets.values() for part in parts]
            embeddings = self.encode(model, [s for part in pairs for s in part.first + part.second])
            result = scoring.evaluate_correlations(embeddings, self.scored.sets, self.recipe.whiten)
        result.details.update(embeddings.odd, pooler=self.recipe.pooler)
        return result


def two_of_each(rows: list[list[str]], rng: torch.Generator) -> list[tuple[str, str]]:
    """Draw two different sentences of each row; a single sentence meets itself."""
    sizes = torch.tensor([*map(len, rows)])
    share = torch.rand(len(rows), 2, generator=rng, dtype=torch.float64)
    first = (share[:, 0] * sizes).long()
    second = (first + 1 + (share[:, 1] * (sizes - 1)).long()) % sizes
    places = zip(rows, first.tolist(), second.tolist(), strict=True)
    return [(row[i], row[j]) for row, i, j in places]


def one_of_each(corpus: Corpus, rng: torch.Generator) -> list[str]:
    """Draw a hard negative of each row; there may be none of any."""
    share = torch.rand(len(corpus.rows), generator=rng, dtype=torch.float64).tolist()
    found = ([x for one in row for x in corpus.negatives.get(one, ())] for row in corpus.rows)
    return [some[int(x * len(some))] for some, x in zip(found, share, strict=True) if some]


def embed_tokens(model: SentenceModel, tokens: Tokens) -> Tensor:
    """(N, D) embeddings of a batch; processes that share it embed rows of their own each."""
    if world() == 1:
        return model(tokens)
    rows, own = len(tokens.ids), own_rows(len(tokens.ids))
    with encoding.SharedDropout(rows):
        z = model(Tokens(tokens.ids[own], tokens.mask[own], tokens.full))
    return gather(z, rows)
