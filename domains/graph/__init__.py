"""Graphs: GraphCL's unsupervised protocol on the TU collection.

This is the domain's face: its recipe and its datasets. Importing it imports no numerics; the
adapter is in `domain.py`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from contrastbench.domains.declaration import Dataset, Declaration, Source, by_name
from contrastbench.domains.own import PYTHON
from contrastbench.domains.recipe import Recipe
from contrastbench.losses.pairing import OTHER_VIEW, OWN_VIEW, PART_OF, SAME_CLASS, Pairing

Augmentation = Literal["drop", "edges", "mask", "subgraph", "random2", "random3", "random4"]
TU_URL = "https://www.chrsmrrs.com/graphkerneldatasets/{}.zip"
TU_CITATION = (
    "Morris et al., TUDataset: A collection of benchmark datasets for learning with graphs, 2020"
)


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

    >>> GraphRecipe(augmentation="random4").epochs
    20
    """

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "infograph": {"pairing": "part_of", "lr": 1e-3, "svm": "linear"},
    }
    of_training: ClassVar[frozenset[str]] = Recipe.of_training | {
        *("pairing", "augmentation", "subgraph", "drop_ratio"),
        *("edge_ratio", "mask_ratio", "subgraph_ratio"),
    }

    pairing: Literal["other_view", "own_view", "part_of", "supervised"] = Field(
        "other_view",
        description="own_view: negatives of the own view alone, for dhel and kcl; "
        "part_of: InfoGraph's, a graph meets nodes, without views; supervised: graphs "
        "of one class are positives, those of test folds too, so it is no fair result",
    )
    augmentation: Augmentation = "random2"
    subgraph: Literal["official", "fixed"] = Field(
        "official", description="1-hop as released, or a random walk"
    )
    drop_ratio: float = Field(0.1, ge=0, lt=1)
    edge_ratio: float = Field(0.1, ge=0, lt=1)
    mask_ratio: float = Field(0.1, ge=0, le=1)
    subgraph_ratio: float = Field(0.2, ge=0, le=1)
    features: Literal["labels", "degree", "attributes"] = Field(
        "labels",
        description="node labels or 1 where there are none; degree; attributes: labels and the "
        "set's node attributes, standardised",
    )
    encoder: Literal["gin", "raw", "sizes"] = Field(
        "gin",
        description="raw: degrees and labels counted and projected, for --loss none; "
        "sizes: nodes and edges",
    )
    layers: int = Field(3, ge=1)
    hidden: int = Field(32, ge=1)
    folds: int = Field(10, ge=2)
    svm: Literal["rbf", "linear"] = Field(
        "rbf", description="linear: on standardised embeddings, the next fold chooses its C"
    )

    @model_validator(mode="after")
    def _next_folds_are_others(self) -> Self:
        if self.svm == "linear" and self.folds < 3:
            raise ValueError(
                "svm=linear needs one fold to test and one to choose C: give folds=3 or more"
            )
        return self

    @property
    def raw(self) -> dict[str, Any]:
        """Return the values that score the raw input."""
        return {"encoder": "raw"}

    @property
    def protocol(self) -> str:
        """GraphCL's unsupervised_TU; other node features make it another protocol."""
        other = f"+{self.features}" if self.features != "labels" else ""
        return f"graphcl-unsupervised-tu/1{other}"

    @property
    def trainable(self) -> bool:
        """Return whether the encoder has weights; counts have none."""
        return self.encoder == "gin"

    @property
    def by_class(self) -> dict[str, Any]:
        """Return the values that pair graphs of one class."""
        return {"pairing": "supervised"}

    @property
    def pairs_by_class(self) -> bool:
        """Return whether graphs of one class are each other's positives."""
        return self.pairing == "supervised"

    @property
    def nested(self) -> bool:
        """Every graph is tested in turn."""
        return True

    @property
    def pairing_facts(self) -> Pairing:
        """GraphCL's pairing, DHEL's, pairs by class, or InfoGraph's."""
        if self.pairs_by_class:
            return SAME_CLASS
        return {"other_view": OTHER_VIEW, "own_view": OWN_VIEW}.get(self.pairing, PART_OF)

    @property
    def evaluation(self) -> dict[str, Any]:
        """How the SVM is scored."""
        if self.svm == "linear":
            return LINEAR_SVM
        return {
            "classifier": "SVM with an RBF kernel, gamma as scikit-learn's default",
            "C": [0.001, 0.01, 0.1, 1, 10, 100, 1000],
            "C chosen": "by 5 inner folds of each training part",
            "embeddings": "of all graphs, before the projection, not scaled",
            "accuracy": "mean over stratified folds, shuffled by each run",
        }

    def idle(self, trained: bool) -> set[str]:
        """Ratios of operations that are not drawn."""
        operations = {
            "drop_ratio": ("drop", "random2", "random3", "random4"),
            "subgraph_ratio": ("subgraph", "random2", "random3", "random4"),
            "subgraph": ("subgraph", "random2", "random3", "random4"),
            "edge_ratio": ("edges", "random3", "random4"),
            "mask_ratio": ("mask", "random4"),
        }
        drawn = self.augmentation if self.pairing != "part_of" else ""
        idle = {key for key, users in operations.items() if drawn not in users}
        idle |= set() if drawn else {"augmentation"}
        return super().idle(trained) | idle


@dataclass(frozen=True)
class GraphDataset(Dataset):
    """A set of graphs; its `sizes` are graphs, nodes and directed edges, as far as known."""

    node_labels: bool = False


CONVERTED = (
    "converted from lists of neighbours: node order and class numbers are not those of the "
    "collection's own file"
)

EQUAL = {  # percent of graphs that a GIN of three layers cannot tell from one of another fold
    **{"MUTAG": 14.7, "PROTEINS": 5.4, "NCI1": 3.0, "NCI109": 2.6, "IMDB-BINARY": 56.8},
    **{"ENZYMES": 1.4, "Letter-high": 97.5, "Letter-med": 98.8, "COIL-DEL": 20.1},
    **{"DHFR": 8.7, "AIDS": 8.3, "PTC_FM": 8.7},
}


def tu(
    name: str,
    summary: str,
    sha256: str,
    sizes: tuple[int, ...],
    node_labels: bool = False,
    converted: str = "",
    content: str = "",
) -> GraphDataset:
    """A set of the TU collection; the hash is that of the server's zip.

    Args:
        name: the collection's.
        summary: for `bench list datasets`.
        sha256: of the zip.
        sizes: graphs, nodes, directed edges, as far as they are known.
        node_labels: whether it has them.
        converted: data hash of a conversion that goes round, if there is one.
        content: data hash of what that zip holds, where it was at hand.
    """
    return GraphDataset(
        name,
        summary,
        TU_URL.format(name),
        sha256,
        citation=TU_CITATION,
        sizes=sizes,
        node_labels=node_labels,
        folder="tudataset",
        places=(name, f"tudataset/{name}"),
        copies={converted: CONVERTED} if converted else {},
        content=content,
        equal=EQUAL.get(name, 0.0),
    )


DATASETS = by_name(
    GraphDataset(
        "label-pairs",
        "embedded: rings, only which labels are neighbours differs, 6 classes",
        citation="generated by contrastbench, seeded",
        licence="MIT",
        reader="label_pairs:label_pairs",
    ),
    GraphDataset(
        "motifs",
        "embedded: random trees with planted motifs, 4 classes",
        citation="generated by contrastbench, seeded",
        licence="MIT",
        reader="motifs:motif_graphs",
    ),
    tu(
        "MUTAG",
        "188 molecules, 2 classes",
        "c419bdc853c367d2d83da4973c45100954ae15e10f5ae2cddde6ca431f8207f6",
        (188, 3371, 7442),
        node_labels=True,
    ),
    tu(
        "PROTEINS",
        "1,113 proteins, 2 classes",
        "2da8de15284b88edabca2888ce5444d62f364ed41159260977088c4e53d4d848",
        (1113, 43471, 162088),
        node_labels=True,
    ),
    tu(
        "NCI1",
        "4,110 molecules, 2 classes",
        "10e1458f3bd9224f14e6d7627e74dcfd13e48d376d73935e7bd2900590ef1d82",
        (4110, 122747, 265506),
        node_labels=True,
    ),
    tu(
        "NCI109",
        "4,127 molecules, 2 classes",
        "96e521a294e3e9c088540e9e9caccf55e4ca6e97cf468d68445814467956abaf",
        (4127, 122494, 265208),
        node_labels=True,
    ),
    tu(
        "PTC_MR",
        "344 molecules, 2 classes",
        "5699a6d9f1bc5b3d71495f09ef50de53fa3e6bb24ead1150da678500229f5237",
        (344,),
        node_labels=True,
    ),
    tu(
        "DD",
        "1,178 proteins, 2 classes",
        "d033d7aeb1a48c4b2b47cf0390e7fc9671de70d98c8df5b11e458d2ec5515cd2",
        (1178, 334925, 1686092),
        node_labels=True,
        converted="2db9f26cbffa01a3a5823b8b27f9e97bf24f8cef4aa4ccfc07c4389e92f1f51e",
    ),
    tu(
        "COLLAB",
        "5,000 collaboration ego-nets, 3 classes",
        "cb5b772bc4f3a4690d0601378a3fc993b092aeafd63e2b0f2330137dda1cdcc6",
        (5000, 372474, 24572158),
        converted="07567b00ddeabec33bf8d9b4db9a51f3464455e3ca1c9bc6ec436768607a708e",
    ),
    tu(
        "IMDB-BINARY",
        "1,000 film ego-nets, 2 classes",
        "b291ec8b26d85c70faa2ba0a2433e1f407ed2ef5d0fc072d36b9a95e49a1bb27",
        (1000, 19773, 193062),
    ),
    tu("IMDB-MULTI", "1,500 film ego-nets, 3 classes", "", (1500,)),
    tu(
        "REDDIT-BINARY",
        "2,000 discussion threads, 2 classes",
        "982dc64ddade42a6365ba9c93f5080d0b9d315df0df492b57fd9fbb7e40dbe16",
        (2000, 859254, 1991016),
        converted="cc85b3982d4cf23a5405ba931cabdc7500ffc3650c07c6f1e5dfee7dc53d53af",
    ),
    tu(
        "REDDIT-MULTI-5K",
        "4,999 discussion threads, 5 classes",
        "68587783c33d54dd6107a1fc101594fd2b9d1af4e99cafe733636f383ae0c8ee",
        (4999,),
    ),
    tu(
        "ENZYMES",
        "600 enzymes, 6 classes",
        "0ca7125d7978788346fc6ba5c3cc643b6122153b304220c2230bcb09f99f8ffb",
        (600, 19580, 74564),
        node_labels=True,
        content="5af36178aca218a19ae5b23ce722e57e24051d76b771e49c3ddd4564c5c3766c",
    ),
    tu(
        "MSRC_21",
        "563 images as graphs of superpixels, 20 classes",
        "0743d13b9bb5123167d3d34df71b4088d1877ccd3c31303e77b8daa0f7037a0b",
        (563, 43644, 223312),
        node_labels=True,
        content="dab810e6a5d1838ffdf63b4388d3b4ed0d848230db70a2a4289fde9da1ff7761",
    ),
    tu(
        "Letter-high",
        "2,250 distorted letters, 15 classes",
        "050b0366502654084fbf5255afa896729c265f8c76b19a2f7c1c60338d15340c",
        (2250, 10507, 20250),
        content="27780f27d877e311feab54621d3966a4980b56cc1c670916c314aacf9030addb",
    ),
    tu(
        "Letter-med",
        "2,250 less distorted letters, 15 classes",
        "914c1bc0b59de0f8d745ba34c7ce8ab13a435c40ef76966342955472edd5e5cf",
        (2250, 10518, 14426),
        content="36112f70d14e2c6381ecfa85e644c3a87bf274bd503fbbe087afc60f13f2d747",
    ),
    tu(
        "COIL-DEL",
        "3,900 photographs of 100 objects as graphs of corners",
        "418bc66f1f8191da3600dc14723c3ae528fda0fd0c2ed3c2befb4ec2ac2a818e",
        (3900, 83995, 423048),
        content="f7573ef8c89123046b08fdcafee636f2ad003b727d74830ea0a6ab081b7f1b87",
    ),
    tu(
        "DHFR",
        "756 molecules, 2 classes",
        "a1c59162c453c81ee008d8f4bc4acc6f9464004317b48dfef3ee5b243e3ed8b1",
        (756, 32075, 67352),
        node_labels=True,
        content="db35adbad0a3d24a5c92b988e8aeeaa825efb39c23fc667e013c32498e740dcd",
    ),
    tu(
        "Mutagenicity",
        "4,337 molecules, 2 classes",
        "eedcb94a7f19eabfeda39236c719c2e25e1f0eca9a391e67a4d440bdc0f349ef",
        (4337, 131488, 266894),
        node_labels=True,
        content="a56180dba6fb61d113260506121843c2875bb7883a8053f10c5c1f5b06ecb6ec",
    ),
    tu(
        "AIDS",
        "2,000 molecules, 2 classes",
        "760720923c1c0be43687f565722fc29a1f450c3a8dda3a218b798bbd1e90cf81",
        (2000, 31385, 64780),
        node_labels=True,
        content="7b5e62abda1922d8b0966fcd3a9d08bd1fb4c3d5db15db924fcf3abc4aec297a",
    ),
    tu(
        "PTC_FM",
        "349 molecules, 2 classes",
        "09339ff33859984c1a8ba71e9f721babbe199b68eb8d3b6b93806fb5ec806146",
        (349, 4925, 10110),
        node_labels=True,
        content="d40b5765226a8d48a6ea6932f0a76c3e5d836566f5200b43e9c5c784c12ecded",
    ),
)

PYG = "contrastbench.domains.graph.own:read_pyg"
SOURCES = (
    Source("folder", "PATH", "TU text files, or GraphML and edge lists", "graph", folder=True),
    Source(
        "pyg", "CLASS(...)", "a set of torch_geometric.datasets", "graph", fetch=PYG, runs_code=True
    ),
    Source(
        PYTHON,
        "FUNCTION",
        "your code, which gives a list of torch_geometric's Data",
        "graph",
        runs_code=True,
    ),
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
    scorer="contrastbench.domains.graph.encoders:score",
    opener="contrastbench.domains.graph.encoders:open_encoder",
    sources=SOURCES,
    samples="graphs",
    perf="contrastbench.benchmarks.perf.graph",
)
