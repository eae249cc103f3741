"""The face of tables of numbers, which imports no numerics: RényiCL's recipe and the sets."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from contrastbench.domains import saved
from contrastbench.domains.declaration import Dataset, Declaration, Source, declared_sets
from contrastbench.domains.recipe import ClassedRecipe, Misfits, Presets, Unused, Width, added

LINEAR_PROBE: dict[str, Any] = {  # as scoring/linear.py has them
    "probe embeddings": "standardised and scaled to a mean square of 16",
    "probe optimizer": "sgd, momentum 0.9",
    "probe schedule": "cosine",
    "probe lr": [1, 3, 5],
    "probe lr chosen": "on validation rows",
    "probe epochs": 100,
    "probe batch size": 256,
    "probe weight decay": 0,
}
PLAIN_PROBE: dict[str, Any] = {
    "probe embeddings": "as they are",
    "probe schedule": "a fifth after epochs 80, 90 and 95",
    "probe batch size": 512,
}


class TabularRecipe(ClassedRecipe):
    """RényiCL's tabular protocol (Lee and Shin 2022, appendix B.5), a network for a CPU.

    The preset `renyicl` is the paper's full size: the encoder is trained on all of CovType's 15,120
    and Higgs' 100,000 rows, which training and validation part are together, and the linear
    classifier is fitted on the embeddings as they are. Open there are the batch size (512,
    i-Mix's), whether MoCo v3's learning rate scaling applies (no), and MoCo v3's prediction head
    (kept). The preset `scarf` is SCARF (Bahri et al. 2022): exactly int(rate * features) of the
    second view come from the empirical marginals, clean rows are anchors; it trains until the
    validation loss rises, here for 100 epochs.
    """

    presets: ClassVar[Any] = Presets(Path(__file__).with_name("presets.yaml"))

    of_training: ClassVar[frozenset[str]] = ClassedRecipe.of_training | {
        *("views", "rate", "choice", "pairing", "ema", "predictor", "projection")
    }
    optional: ClassVar[frozenset[str]] = ClassedRecipe.optional | {"target", "split", "drop"}
    unused: ClassVar[Unused] = {
        **ClassedRecipe.unused,
        ("parts",): lambda r: r.parts == "drawn",
        ("ema", "predictor"): lambda r: r.pairing != "query_key",
        ("rate", "choice"): lambda r: r.views == "none",
    }
    misfits: ClassVar[Misfits] = {
        **ClassedRecipe.misfits,
        "the last width {found} has no {r.maxout} equal sets: give another maxout": (
            lambda r: r.widths[-1] % r.maxout and r.widths[-1]
        ),
    }

    epochs: int = Field(20, ge=0)
    batch_size: int = Field(128, ge=2)
    lr: float = Field(0.1, gt=0)
    optimizer: Literal["adam", "sgd"] = "sgd"
    schedule: Literal["constant", "cosine"] = "cosine"
    target: str | None = None
    """the column of classes of one's own"""
    split: str | None = added(None)
    """the column of one's own that says train, validation or test"""
    drop: tuple[str, ...] = added((), strict=False)
    """columns of one's own that are left out"""
    groups: str | None = added(None)
    """the column of one's own, no feature, whose equal rows stay in one part"""
    parts: Literal["drawn", "fixed"] = added("drawn")
    """of a table without its own: drawn by each seed, or fixed, so that no seed tests on rows by
    which another one chose"""
    tested: float = added(0.2, gt=0, lt=1)
    """share of the rows that is tested, of a table without parts"""
    pretraining: Literal["train", "train+validation"] = "train"
    """rows that the encoder is trained on, without their classes"""
    statistics: Literal["train", "paper"] = "train"
    """of scaling: of the rows of pretraining; paper: of test rows too"""
    views: Literal["none", "masking", "corruption", "masking+corruption"] = "corruption"
    rate: float = Field(0.2, gt=0, le=1)
    """of masked and of corrupted features"""
    choice: Literal["each", "exact"] = "each"
    """each feature by chance, or exactly int(rate * all)"""
    pairing: Literal["query_key", "both_views", "own_view", "one_way", "supervised"] = "query_key"
    """own_view: negatives of the own view alone, for dhel and kcl; supervised: rows of one class
    are positives"""
    ema: float = Field(0.99, ge=0, le=1)
    """of query_key's target; rises to 1, but 0 stays"""
    predictor: bool = True
    """query_key's prediction head"""
    encoder: Literal["mlp", "raw"] = "mlp"
    """raw: the features as they are, for --loss none"""
    widths: tuple[Width, ...] = Field((256, 256, 512), min_length=1, strict=False)
    batch_norm: bool = True
    maxout: int = Field(4, ge=1)
    """sets of the last layer; 1: ReLU"""
    projection: tuple[Width, Width] = Field((256, 64), strict=False)
    """hidden and last width"""
    probe: Literal["linear", "plain", "pseudo_inverse", "logistic", "boosting"] = "linear"
    """plain: linear on the embeddings as they are"""

    @property
    def protocol(self) -> str:
        """RényiCL's protocol, the linear classifier's rate chosen on validation rows."""
        still = self.pairing == "query_key" and self.ema == 0  # it rose to 1 before
        return "renyicl-tabular/1" + ("+still-ema" if still else "")

    @property
    def evaluation(self) -> dict[str, Any]:
        scored = {"accuracy": "of the test rows", "embeddings": "before the projection"}
        probe = {**LINEAR_PROBE, **PLAIN_PROBE} if self.probe == "plain" else LINEAR_PROBE
        return scored | (probe if self.probe in ("linear", "plain") else {})


@dataclass(frozen=True)
class TabularDataset(Dataset):
    """A table: besides its source, how it is read. Its `sizes` are rows and columns."""

    layout: str = ""  # the name of scikit-learn's loader
    target: int | str = ""  # the column of the classes
    parts: tuple[int, int, int] | None = None  # rows to train, to validate, to test; None: drawn

    @property
    def starts(self) -> tuple[int, int] | None:
        return self.parts and (self.parts[0], self.parts[0] + self.parts[1])


DATASETS = declared_sets(Path(__file__).with_name("datasets.toml"), TabularDataset)

FILES_HELP = "FILE[,TEST]"
SOURCES = (
    Source("csv", FILES_HELP, "a table with a header, .tsv with tabs", "tabular", (".csv", ".tsv")),
    Source("parquet", FILES_HELP, "a table as pandas writes it", "tabular", (".parquet",)),
    saved.source("a table of the datasets library"),
    Source("openml", "ID", "a table of openml.org by its number", "tabular"),
)

DECLARATION = Declaration(
    summary="RényiCL's MLP on tables of numbers, linear probe",
    adapter="contrastbench.domains.tabular.domain:TabularDomain",
    recipe=TabularRecipe,
    datasets=DATASETS,
    default="hidden-clusters",
    tiny={"epochs": 2, "limit": 300, "batch_size": 64, "widths": (32, 32), "projection": (32, 16)},
    extra="contrastbench[tabular]",
    protocols=("linear", "plain", "pseudo_inverse", "logistic", "boosting"),
    scorer="contrastbench.domains.tabular.exports:score",
    opener="contrastbench.domains.tabular.exports:open_encoder",
    sources=SOURCES,
    perf="contrastbench.benchmarks.perf.tabular",
)
