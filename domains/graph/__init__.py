"""Graphs: GraphCL's unsupervised protocol on the TU collection, any registered loss in place of its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from contrastbench.domains.base import Evaluation, generator
from contrastbench.domains.classifiers import Labelled
from contrastbench.domains.graph.data import MAX_DEGREE, Graphs, load
from contrastbench.domains.graph.encoder import GraphModel
from contrastbench.domains.graph.views import add_loops, augment
from contrastbench.domains.probes import check_folds, svm_folds
from contrastbench.domains.recipes import GraphRecipe, Recipe
from contrastbench.losses.contrast import Contrast, other_view

CHUNK_EDGES = 2**22  # views are made for so many edges at once: small sets in one pass, large ones in bounded memory


class GraphDomain:
    """A graph dataset under GraphCL's protocol (You et al. 2020, unsupervised_TU).

    The first view is the graph itself, the second an augmented one. The set is permuted once by the seed and not
    shuffled again; all graphs are embedded for evaluation, and an SVM is scored by stratified folds.
    """

    threads: ClassVar[int] = 1

    def __init__(
        self, dataset: str, recipe: GraphRecipe, seed: int, data_root: Path | None, device: torch.device
    ) -> None:
        graphs, self.data_hash = load(dataset, data_root)
        order = torch.randperm(len(graphs), generator=generator(torch.device("cpu"), seed))
        graphs = with_features(graphs.select(order[: recipe.limit]), recipe.features)
        check_folds(graphs.y.numpy(), recipe.folds)
        self.graphs, self.seed, self.recipe, self.device = add_loops(graphs.to(device)), seed, recipe, device

    def model(self, recipe: Recipe) -> GraphModel:
        """GIN and projection, initialised by the seed."""
        recipe = cast(GraphRecipe, recipe)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return GraphModel(self.graphs.x.shape[1], recipe.hidden, recipe.layers).to(self.device)

    def batches(self, recipe: Recipe, epoch: int) -> Iterator[tuple[Graphs, Graphs]]:
        """Consecutive graphs and their augmented views."""
        for start, stop in chunks(self.graphs, recipe.batch_size):
            graphs = self.graphs[start:stop]
            views = augment(graphs, cast(GraphRecipe, recipe), generator(self.device, self.seed, epoch, start))
            for first in range(0, stop - start, recipe.batch_size):
                part = slice(first, first + recipe.batch_size)
                if len(graphs[part]) > 1:  # a last graph alone has no negatives
                    yield graphs[part], views[part]

    def steps(self, recipe: Recipe) -> int:
        """Number of batches in an epoch."""
        full, rest = divmod(len(self.graphs), recipe.batch_size)
        return full + (rest > 1)

    def contrasts(self, model: nn.Module, batch: tuple[Graphs, Graphs]) -> list[Contrast]:
        """GraphCL's pairing."""
        graphs, views = batch
        return [other_view(model(graphs), model(views, symmetric=False))]

    def classes(self, batch: tuple[Graphs, Graphs]) -> Tensor:
        """The class of each graph."""
        return batch[0].y

    @torch.no_grad()
    def embeddings(self, model: nn.Module) -> Labelled:
        """The embeddings of all graphs, before the projection."""
        encoder = cast(GraphModel, model).encoder.eval()
        size = self.recipe.batch_size
        x = torch.cat([encoder(self.graphs[i : i + size]) for i in range(0, len(self.graphs), size)])
        return Labelled(x, self.graphs.y)

    def evaluate(self, model: nn.Module) -> Evaluation:
        """Stratified k-fold accuracy of an SVM on the embeddings."""
        x, y = self.embeddings(model)
        scores = svm_folds(x.cpu().numpy(), y.cpu().numpy(), self.recipe.folds, self.seed)
        metrics = {"accuracy": scores.mean, "accuracy_std_over_folds": scores.std}
        details = {"folds": scores.accuracy, "folds_ddof": 0, "folds_n": self.recipe.folds, "C": scores.c}
        # no test fold is scored, but the folds turn: every graph is in some training part
        validation = sum(scores.inner) / len(scores.inner)
        return Evaluation(metrics, "accuracy", {**details, "validation": validation})


def with_features(graphs: Graphs, features: str) -> Graphs:
    """Node features of the recipe: labels as they are, 1 where the set has none, or the degree one-hot."""
    x = graphs.x
    if features == "degree":
        x = one_hot(graphs.row_ptr.diff().clamp_max(MAX_DEGREE), MAX_DEGREE + 1).float()
    elif x.shape[1] == 0:
        x = x.new_ones(len(x), 1)
    return Graphs(x, graphs.edge_index, graphs.node_ptr, graphs.edge_ptr, graphs.y)


def chunks(graphs: Graphs, batch_size: int) -> Iterator[tuple[int, int]]:
    """Runs of whole batches with at most CHUNK_EDGES edges each, or of one batch."""
    ends = [*graphs.edge_ptr[torch.arange(0, len(graphs), batch_size)].tolist(), int(graphs.edge_ptr[-1])]
    first = 0
    for last in range(1, len(ends)):
        if last == len(ends) - 1 or ends[last + 1] - ends[first] > CHUNK_EDGES:
            yield first * batch_size, min(last * batch_size, len(graphs))
            first = last
