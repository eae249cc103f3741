"""Trained encoders of graphs as folders, ready to embed and to be scored."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from contrastbench.domains import exported
from contrastbench.domains import own as owned
from contrastbench.domains.exported import EXPORT_FIX, Listed
from contrastbench.domains.graph import MOLECULES, SOURCES, GraphRecipe, domain, own
from contrastbench.domains.graph.data import Graphs
from contrastbench.domains.graph.encoder import GIN
from contrastbench.domains.graph.molecules import read_smiles
from contrastbench.domains.graph.views import add_loops
from contrastbench.domains.reading import reading, refuse
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.domains.scoring.svm import DATA_FIX, check_folds
from contrastbench.errors import tell

SVMS = {"svm": "rbf", "linear-svm": "linear"}


@dataclass(frozen=True)
class Encoder:
    """A frozen network, and the recipe of its node features."""

    name: str
    network: GIN
    recipe: GraphRecipe
    labels: tuple[str, ...]  # of nodes, where the training's data named them
    device: torch.device

    def embed(self, data: Any) -> Tensor:
        """(graphs, d) float32 on the CPU.

        Args:
            data: a list of torch_geometric's `Data`, or a batch of them; classes are not needed.
        """
        if hasattr(data, "to_data_list"):  # a batch of torch-geometric
            data = data.to_data_list()
        listed = [data] if hasattr(data, "edge_index") else data
        graphs = data if isinstance(data, Graphs) else own.without_classes("data", list(listed))
        return self.of_graphs(graphs, "data").cpu()

    def of_graphs(self, graphs: Graphs, what: str) -> Tensor:
        """(graphs, d) on the device."""
        graphs = domain.with_features(graphs, self.recipe.features)
        network = self.network  # 0 features of edges: they are not read
        for kind, width, part in (
            ("node", network.features, graphs.x),
            ("edge", network.edge_features, graphs.edge_attr),
        ):
            columns = part.shape[1]
            fault = f" has {columns} features for each {kind}, and {self.name} was trained"
            fix = f" on {width}: give graphs with the features of the training"
            refuse(what, (width and columns != width, fault + fix))
        return domain.embed_graphs(
            self.network, add_loops(graphs.to(self.device)), self.recipe.batch_size
        )

    def read(self, dataset: str, data_root: Path | None) -> Listed:
        parsed = owned.parse_source(dataset, SOURCES)
        if parsed and parsed[0].kind == owned.PYTHON:
            return Listed(own.function_data(parsed[1], data_root))
        if parsed and parsed[0] is MOLECULES:
            with reading(dataset, fault="cannot be read", extra=MOLECULES.extra):
                graphs, _ = read_smiles(parsed[1], data_root, target="")
            return Listed(graphs, [*graphs.smiles])
        if parsed and parsed[0].folder and not self.recipe.reads_edges:
            with reading(dataset, fault="cannot be read"):
                graphs, names = own.folder_of_any(parsed[1], data_root)
            return Listed(self.relabelled(graphs, dataset), names)
        graphs = own.load_own_graphs(dataset, data_root, self.recipe.reads_edges)[0]
        return Listed(self.relabelled(graphs, dataset))

    def relabelled(self, graphs: Graphs, what: str) -> Graphs:
        """Return graphs whose named labels stand in the columns of the training.

        A folder has columns for the labels that are in it. Nodes of unknown labels have zeros.
        """
        if graphs.labels == self.labels or not (graphs.labels and self.labels):
            return graphs
        place = {label: k for k, label in enumerate(graphs.labels)}
        unknown = [label for label in graphs.labels if label not in self.labels]
        if unknown:
            tell(f"{what}: node labels that {self.name} does not know: {', '.join(unknown)}")
        none = graphs.x.new_zeros(len(graphs.x))
        columns = [graphs.x[:, place[k]] if k in place else none for k in self.labels]
        return replace(graphs, x=torch.stack(columns, dim=1), labels=self.labels)


def open_encoder(name: str, data_root: Path | None, device: torch.device) -> Encoder:
    weights, config = exported.read_export(Path(name), "graph")
    with reading(name, EXPORT_FIX):
        recipe = GraphRecipe(**config["recipe"])
        features = weights["mlps.0.0.weight"].shape[1]
        bonds = weights["bonds.0.weight"].shape[1] if recipe.reads_edges else 0
        network = GIN(features, recipe.hidden, recipe.layers, bonds)
        network.load_state_dict(weights)
        labels = tuple(map(str, config.get("labels", ())))  # exports of older versions have none
    return Encoder(name, network.to(device).eval(), recipe, labels, device)


def score(
    encoder: str, dataset: str, by: str, seed: int, data_root: Path | None, device: torch.device
) -> dict[str, float]:
    opened = open_encoder(encoder, data_root, device)
    graphs = own.load_own_graphs(dataset, data_root, opened.recipe.reads_edges)[0]
    graphs = domain.permuted_graphs(opened.relabelled(graphs, dataset), seed)
    if not graphs.tasks:
        check_folds(graphs.y.numpy(), opened.recipe.folds, DATA_FIX, dataset)
    embeddings = Labelled(opened.of_graphs(graphs, dataset), graphs.y)
    return domain.svm_evaluation(embeddings, SVMS[by], opened.recipe.folds, seed).metrics
