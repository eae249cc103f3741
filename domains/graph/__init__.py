"""The face of graphs, which imports no numerics: GraphCL's recipe and the TU collection."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from contrastbench.domains.declaration import Dataset, Declaration, Source, declared_sets
from contrastbench.domains.own import PYTHON
from contrastbench.domains.recipe import Misfits, Presets, Recipe, Unused, added

Augmentation = Literal["drop", "edges", "mask", "subgraph", "random2", "random3", "random4"]
TU_URL = "https://www.chrsmrrs.com/graphkerneldatasets/{}.zip"
LINEAR_SVM: dict[str, Any] = {  # what `svm=linear` is, as scoring/svm.py has it
    "classifier": "linear SVM",
    "C": [0.001, 0.01, 0.1, 1, 10, 100, 1000],
    "C chosen": "by the next fold, which the classifier is not fitted on",
    "embeddings": "of all graphs, before the projection, standardised",
    "accuracy": "mean over stratified folds, shuffled by each run",
}


class GraphRecipe(Recipe):
    """GraphCL's unsupervised_TU protocol, which ADNCE's graph code shares; InfoGraph's pairing.

    The preset `infograph` is InfoGraph (Sun et al. 2020), scored as in DASL's appendix A.2.
    """

    presets: ClassVar[Any] = Presets(Path(__file__).with_name("presets.yaml"))
    of_training: ClassVar[frozenset[str]] = Recipe.of_training | {
        *("pairing", "augmentation", "subgraph", "drop_ratio"),
        *("edge_ratio", "mask_ratio", "subgraph_ratio"),
    }
    optional: ClassVar[frozenset[str]] = Recipe.optional | {"target"}
    unused: ClassVar[Unused] = {  # ratios of operations that are not drawn, and so on
        **Recipe.unused,
        ("drop_ratio",): lambda r: r.drawn in ("", "subgraph", "edges", "mask"),
        ("subgraph_ratio", "subgraph"): lambda r: r.drawn in ("", "drop", "edges", "mask"),
        ("edge_ratio",): lambda r: r.drawn not in ("edges", "random3", "random4"),
        ("mask_ratio",): lambda r: r.drawn not in ("mask", "random4"),
        ("augmentation",): lambda r: not r.drawn,
        ("parts",): lambda r: r.nested,
        ("folds",): lambda r: not r.nested,
    }
    misfits: ClassVar[Misfits] = {
        **Recipe.misfits,
        "svm=linear needs one fold to test and one to choose C: give folds=3 or more": (
            lambda r: r.svm == "linear" and r.folds < 3
        ),
        "svm=linear chooses C by a fold, and parts={r.parts} has none: leave one": (
            lambda r: r.svm == "linear" and not r.nested
        ),
    }

    pairing: Literal["other_view", "own_view", "part_of", "whole_of", "supervised"] = "other_view"
    """own_view: negatives of the own view alone, for dhel and kcl; part_of: InfoGraph's, a graph
    meets nodes, without views; whole_of: as its code has it, a node meets graphs; supervised:
    graphs of one class are positives, those of test folds too, so it is no fair result"""
    augmentation: Augmentation = "random2"
    # what was once a setting stands in records
    subgraph: Literal["official"] = "official"
    """1-hop, as released"""
    drop_ratio: float = Field(0.1, ge=0, lt=1)
    edge_ratio: float = Field(0.1, ge=0, lt=1)
    mask_ratio: float = Field(0.1, ge=0, le=1)
    subgraph_ratio: float = Field(0.2, ge=0, le=1)
    features: Literal["labels", "degree", "attributes", "codes"] = "labels"
    """node labels or 1 where there are none; degree; attributes: labels and the set's node
    attributes, standardised; codes: columns of whole numbers, one-hot"""
    encoder: Literal["gin", "gine", "raw", "sizes", "ecfp"] = "gin"
    """gine: with the edges' labels or bonds; raw: degrees and labels counted and projected, for
    --loss none; sizes: nodes and edges; ecfp: fingerprints of molecules"""
    layers: int = Field(3, ge=1)
    hidden: int = Field(32, ge=1)
    folds: int = Field(10, ge=2)
    parts: Literal["drawn", "fixed", "scaffold"] = added("drawn")
    """drawn: folds of each seed, tested in turn; fixed: 40 % are tested, the same for all seeds,
    and neither trained on nor asked by a choice; scaffold: molecules of rare scaffolds are, a
    tenth, and another tenth chooses"""
    target: str | None = added(None)
    """the columns of answers of one's own, as A,B"""
    groups: str | None = added(None)
    """the field or column of one's own whose equal graphs stay in one fold"""
    svm: Literal["rbf", "linear"] = "rbf"
    """linear: on standardised embeddings, the next fold chooses its C"""

    @property
    def protocol(self) -> str:
        """GraphCL's unsupervised_TU; other node features make it another protocol."""
        other = f"+{self.features}" if self.features != "labels" else ""
        return f"graphcl-unsupervised-tu/1{other}"

    @property
    def nested(self) -> bool:
        return self.parts == "drawn"

    @property
    def trainable(self) -> bool:
        return self.encoder in ("gin", "gine")

    @property
    def reads_edges(self) -> bool:
        return self.encoder == "gine"

    @property
    def of_nodes(self) -> bool:
        """Return whether graphs meet nodes, as in InfoGraph, and no views are drawn."""
        return self.pairing in ("part_of", "whole_of")

    @property
    def drawn(self) -> str:
        """Return the operations that views are drawn by; empty where there are no views."""
        return "" if self.of_nodes else self.augmentation

    @property
    def evaluation(self) -> dict[str, Any]:
        if self.svm == "linear":
            return LINEAR_SVM
        return {
            **LINEAR_SVM,
            "classifier": "SVM with an RBF kernel, gamma as scikit-learn's default",
            "C chosen": "by 5 inner folds of each training part",
            "embeddings": "of all graphs, before the projection, not scaled",
            "accuracy": "mean over stratified folds, shuffled by each run"
            if self.nested
            else "of a stratified test part, the same for every run",
        }


@dataclass(frozen=True)
class GraphDataset(Dataset):
    """A set of graphs; its `sizes` are graphs, nodes and directed edges, as far as known."""

    node_labels: bool = False
    target: str = ""  # the columns of answers, where it is a file of SMILES
    equal_with_attributes: float | None = None  # as `equal`, where nodes begin with attributes

    @property
    def described(self) -> str:
        if self.equal_with_attributes is None:
            return super().described
        return f"{super().described} ({self.equal_with_attributes:g} % with features=attributes)"


DATASETS = declared_sets(Path(__file__).with_name("datasets.toml"), GraphDataset)
MOLECULES = Source("smiles", "FILE.csv", "molecules as SMILES, and answers 0 or 1", "molecule")

SOURCES = (
    Source("folder", "PATH", "TU text files, or GraphML and edge lists", "graph", folder=True),
    Source(PYTHON, "FUNCTION", "your code, which lists PyG's Data", "graph", runs_code=True),
    Source("pyg", "CLASS[:NAME]", "a set of torch_geometric.datasets", "graph", runs_code=True),
    MOLECULES,
)

DECLARATION = Declaration(
    summary="GraphCL's GIN on the TU collection, SVM 10-fold",
    adapter="contrastbench.domains.graph.domain:GraphDomain",
    recipe=GraphRecipe,
    datasets=DATASETS,
    default="label-pairs",
    tiny={"epochs": 2, "limit": 90, "folds": 3},
    extra="contrastbench[graph]",
    protocols=("svm", "linear-svm"),
    scorer="contrastbench.domains.graph.exports:score",
    opener="contrastbench.domains.graph.exports:open_encoder",
    sources=SOURCES,
    perf="contrastbench.benchmarks.perf.graph",
)
