"""The face of sentences, which imports no numerics: SimCSE's recipe, sets and corpora."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from contrastbench.domains.declaration import Declaration
from contrastbench.domains.recipe import Misfits, Presets, Recipe, Unused, laid_over
from contrastbench.domains.sentence.datasets import CORPORA, DATASETS, SOURCES


class SentenceRecipe(Recipe):
    """Unsupervised SimCSE, which ADNCE's sentence code shares.

    The embedded tiny encoder is trained from scratch. RoBERTa takes batch_size=512 and lr=1e-5.

    >>> SentenceRecipe(encoder="bert-base-uncased").lr
    3e-05
    """

    presets: ClassVar[Any] = Presets(Path(__file__).with_name("presets.yaml"))
    of_training: ClassVar[frozenset[str]] = Recipe.of_training | {
        *("head", "corpus", "max_length", "eval_every", "pairing")
    }
    unused: ClassVar[Unused] = {
        **Recipe.unused,
        ("head",): lambda r: not r.pooler.startswith("cls"),
        ("pairing",): lambda r: r.pairing == "whole_row",
    }
    misfits: ClassVar[Misfits] = {
        **Recipe.misfits,
        "head=checkpoint needs a cls pooler, not pooler={r.pooler}: give head=new": (
            lambda r: r.head == "checkpoint" and not r.pooler.startswith("cls")
        ),
    }
    from_scratch: ClassVar[Any] = {"pooler": "avg", "epochs": 3, "lr": 3e-3, "eval_every": 32}

    max_grad_norm: ClassVar[float | None] = 1.0  # SimCSE's trainer's

    epochs: int = Field(1, ge=0)
    batch_size: int = Field(64, ge=2)
    lr: float = Field(3e-5, gt=0)
    optimizer: Literal["adam", "adamw", "sgd"] = "adamw"
    schedule: Literal["constant", "cosine", "linear"] = "linear"
    encoder: str = "tiny"
    """tiny, a checkpoint's folder or hub name[@revision], random:NAME with new weights,
    random:2x128:NAME with 2 layers of 128 as well"""
    pooler: Literal["cls", "cls_before_pooler", "avg", "avg_top2", "avg_first_last", "static"] = (
        "cls_before_pooler"
    )
    """of the scored embedding; both cls train through a dense layer and tanh"""
    head: Literal["new", "checkpoint"] = "new"
    """that dense layer: new, or the checkpoint's pooler"""
    whiten: bool = False
    """BERT-whitening of each scored set's embeddings"""
    corpus: str = "wiki1m"
    """sentences to train on: wiki1m, captions, text:FILE with one a line, pairs:FILE with rows of
    some that belong together, or hf:PATH"""
    # records are older than the key
    pairing: Literal["whole_row", "query_key", "own_view"] = Field(
        "whole_row", exclude_if=lambda pairing: pairing == "whole_row"
    )
    """whole_row, as SimCSE: the positive is among the negatives; query_key: it is not; own_view:
    negatives of the own view alone, for dhel and kcl"""
    max_length: int = Field(32, ge=3)
    """tokens of a training sentence; scored sentences are not cut"""
    eval_every: int = Field(125, ge=1)
    """steps between two evaluations on the development pairs"""
    precision: Literal["float32", "bf16"] = "float32"
    """of the encoder's matrix products"""

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_tiny_encoder(cls, values: dict[str, Any]) -> dict[str, Any]:
        drawn = values.get("encoder", "tiny") == "tiny"
        return laid_over(cls.from_scratch, values) if drawn else values

    @field_validator("corpus")
    @classmethod
    def _a_file_is_its_name(cls, corpus: str) -> str:
        return corpus.removeprefix("text:")  # records are older than kinds of data

    @property
    def protocol(self) -> str:
        """SimCSE's training and its order of scoring (SentEval, all setting, cosine, Spearman)."""
        return "simcse-unsupervised/1"

    @property
    def trainable(self) -> bool:
        """Static embeddings have no dropout: both views of a sentence would be one."""
        return self.pooler != "static"

    @property
    def raw(self) -> dict[str, Any] | None:
        """Return the values that score the mean of word vectors, which no layer has met.

        The tiny encoder has none: `standard-1` was released without such a row.
        """
        return None if self.encoder == "tiny" else {"pooler": "static"}

    @property
    def names_corpus(self) -> bool:
        return bool(self.corpus != type(self).model_fields["corpus"].default)

    @property
    def evaluation(self) -> dict[str, Any]:
        settings = {
            "similarity": "cosine",
            "correlation": "Spearman over all pairs of a set",
            "scored sentences": "whole, tokens joined by blanks",
            "average": "of the sets' numbers, each rounded to two decimals",
            "development pairs": "STS-B dev, Spearman",
        }
        return {**settings, "whitening fitted on": "each scored set"} if self.whiten else settings

    def contents(self, data_root: Path | None, trained: bool) -> dict[str, str]:
        hashes: dict[str, str] = {}
        kind, colon, source = self.encoder.rpartition(":")
        if source != "tiny" and is_path(source, data_root):
            from contrastbench.domains.sentence.checkpoint import files_hash

            digest = files_hash(Path(source), weights=not kind)
            hashes["encoder"] = f"{kind}{colon}sha256:{digest[:16]}"
        source = self.corpus.removeprefix("pairs:")
        if trained and self.corpus not in CORPORA and is_path(source, data_root):
            from contrastbench.domains.sentence.data import read_corpus

            digest = read_corpus(self.corpus, data_root).sha256
            hashes["corpus"] = f"{self.corpus.removesuffix(source)}sha256:{digest[:16]}"
        return hashes

    def fetch(self, dataset: str, folder: Path | None, trained: bool) -> dict[str, str]:
        from contrastbench.domains.registry import fetch

        trains = next(iter(self.scored_sets), dataset)
        own = trains in DATASETS and DATASETS[trains].own_corpus
        corpora = [self.corpus] if trained and not own else []
        brought = {corpus: fetch("sentence", corpus, folder) for corpus in corpora}
        source = self.encoder.rpartition(":")[2]
        if source == "tiny":
            return brought
        from contrastbench.domains.sentence.checkpoint import bring_checkpoint

        return {**brought, source: str(bring_checkpoint(source, folder))}


def is_path(name: str, data_root: Path | None) -> bool:
    """Return whether it names a file or folder of this machine outside the data root."""
    in_root = data_root is not None and not Path(name).is_absolute() and (data_root / name).exists()
    return Path(name).exists() and not in_root


DECLARATION = Declaration(
    summary="SimCSE on any BERT-type encoder, Spearman on STS",
    adapter="contrastbench.domains.sentence.domain:SentenceDomain",
    recipe=SentenceRecipe,
    datasets=DATASETS,
    default="graded",
    tiny={"epochs": 2, "limit": 96, "batch_size": 32, "eval_every": 2},
    extra="contrastbench[sentence]",
    needs=("huggingface_hub", "tokenizers", "transformers"),
    corpora=CORPORA,
    sources=SOURCES,
    opener="contrastbench.domains.sentence.exports:open_encoder",
    mark="model_type",  # as transformers writes it
    perf="contrastbench.benchmarks.perf.sentence",
)
