"""Graphs: GraphCL's unsupervised protocol on the TU collection, with any loss."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import compress
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from contrastbench.distributed import alone
from contrastbench.domains import exported
from contrastbench.domains.base import Domain, Evaluation, samples_drawn
from contrastbench.domains.graph import DATASETS, GraphRecipe, data
from contrastbench.domains.graph import encoder as networks
from contrastbench.domains.graph.molecules import fingerprints, scaffold_parts
from contrastbench.domains.graph.own import load_own_graphs, tu_files
from contrastbench.domains.graph.tasks import task_evaluation, task_part
from contrastbench.domains.graph.twins import colours
from contrastbench.domains.graph.views import add_loops, augment
from contrastbench.domains.model import Raw, embed_together, pair_views
from contrastbench.domains.own import PARTS
from contrastbench.domains.probe import write_probe
from contrastbench.domains.random import generator
from contrastbench.domains.reading import refuse
from contrastbench.domains.report import Rules, found_by
from contrastbench.domains.samples import Samples, draw_folds, draw_share, of_test
from contrastbench.domains.scoring import svm as svms
from contrastbench.domains.scoring.classifiers import Labelled
from contrastbench.domains.scoring.metrics import largest_share
from contrastbench.errors import UserError
from contrastbench.losses import contrast

Model = networks.GraphModel | networks.InfoGraph | Raw
TEST_SHARE = 0.4  # of a fixed test part
# views are made for so many edges at once: small sets in one pass, large ones in bounded memory
CHUNK_EDGES = 2**22
UNREAD = {  # files of the TU collection's format, and what becomes of them
    "node_attributes": "left out: --recipe features=attributes reads them",
    "edge_labels": "left out: --recipe encoder=gine reads them",
    **dict.fromkeys(("edge_attributes", "graph_attributes"), "left out"),
}


class Batch(NamedTuple):
    """Graphs of a step, their augmented views, and their numbers."""

    graphs: data.Graphs
    views: data.Graphs
    rows: Tensor


class GraphDomain(Domain[GraphRecipe, Model, Batch]):
    """A graph dataset under GraphCL's protocol (You et al. 2020, unsupervised_TU).

    The first view is the graph itself, the second an augmented one; in InfoGraph's pairing a graph
    meets its nodes, and there is no view. The set is permuted once by the seed and not shuffled
    again; all graphs are embedded for evaluation, and an SVM is scored by stratified folds, or on a
    fixed test part that the encoder is not trained on.
    """

    uncaptured = "graphs of a batch differ in their sizes"

    def read(self) -> None:
        dataset, recipe, root = self.dataset, self.recipe, self.data_root
        graphs, self.sha256, self.data_notes = load_own_graphs(
            dataset, root, recipe.reads_edges, recipe.target, recipe.groups
        )
        self.labels, self.class_names = graphs.labels, graphs.classes
        if recipe.features == "attributes":
            raw = tu_files(dataset, root)
            graphs, self.sha256 = data.with_attributes(graphs, self.sha256, dataset, raw)
        self.counts = data.graph_counts(graphs)
        self.check_recipe(graphs)
        # what is tested in every seed is also drawn by one
        kept = recipe.parts == "scaffold"
        graphs = permuted_graphs(graphs, self.seed if recipe.nested else 0, recipe.limit, kept)
        with samples_drawn(recipe):
            if not graphs.tasks:
                names = np.array(self.class_names or range(int(graphs.y.max()) + 1))
                parted_by = (recipe.folds, svms.FOLDS_FIX) if recipe.nested else (2, svms.DATA_FIX)
                svms.check_folds(names[graphs.y], *parted_by, dataset)
            few = f" has {len(graphs)} graphs, fewer than {recipe.folds} folds; {svms.FOLDS_FIX}"
            refuse(dataset, (recipe.nested and len(graphs) < recipe.folds, few))
        self.parts = {"all": len(graphs)}
        if not recipe.nested:
            graphs, self.parts = parted(graphs, self.seed, recipe.parts)
        self.most_nodes = int(graphs.node_ptr.diff().max())
        if recipe.encoder == "ecfp":
            graphs = fingerprints(graphs)
        graphs = with_features(graphs, recipe.features)
        self.graphs = add_loops(graphs.to(self.device))
        self.rows = torch.arange(self.sample_count, device=self.device)

    def check_recipe(self, graphs: data.Graphs) -> None:
        recipe, empty = self.recipe, bool((graphs.node_ptr.diff() == 0).any())
        classes, smiles = not graphs.tasks, bool(graphs.smiles)
        for key, wrong, fault in (
            ("pairing", recipe.pairs_by_class and not classes, "has tasks and no classes"),
            ("parts", recipe.parts == "fixed" and not classes, "has tasks and no classes"),
            ("parts", recipe.parts == "scaffold" and not smiles, "has no SMILES"),
            ("parts", recipe.parts == "scaffold" and bool(graphs.groups), "has groups as asked"),
            ("encoder", recipe.encoder == "ecfp" and not smiles, "has no SMILES"),
            ("pairing", recipe.pairing == "part_of" and empty, "has graphs without nodes"),
            ("features", recipe.features == "codes" and not few_codes(graphs.x), "has no codes"),
        ):
            refuse(self.dataset, (wrong, f" {fault}: leave out --recipe {key}"))

    @cached_property
    def draws(self) -> list[tuple[data.Array, data.Array]]:
        """Draw the folds, and those that choose C of each training part where there are groups."""
        y, named = self.graphs.y.cpu().numpy(), np.array(self.graphs.groups)
        draws = [*draw_folds(y, self.recipe.folds, self.seed, named)] if self.recipe.nested else []
        for train, _ in draws if len(named) and y.ndim == 1 else ():
            [*draw_folds(y[train], svms.INNER_FOLDS, groups=named[train])]
        return draws

    @cached_property
    def training(self) -> data.Graphs:
        return self.graphs[: self.sample_count]

    def notes(self, trained: bool) -> dict[str, Any]:
        known = DATASETS.get(self.dataset)
        copy = known.copies.get(self.sha256) if known else None
        counts = {} if is_known(self.dataset) else self.counts
        notes = counts | self.data_notes | ({"copy": copy} if copy else {})
        return {"data": notes} if notes else {}

    def samples(self, trained: bool) -> Samples:
        graphs, recipe, y = self.graphs, self.recipe, self.graphs.y.cpu().numpy()
        own, (source, target) = not is_known(self.dataset), graphs.edge_index
        sizes = {"nodes": len(graphs.x), "edges": int((source != target).sum())}
        classes = () if graphs.tasks else self.class_names
        if graphs.tasks:
            sizes |= {"tasks": graphs.tasks, "unknown answers": int(np.isnan(y).sum())}
        return Samples(
            "graphs",
            self.parts,
            np.zeros(len(y)) if graphs.tasks else y,
            classes if classes or graphs.tasks else [*map(str, range(self.class_count))],
            keys=lambda: colours(graphs, recipe.layers),
            groups=graphs.groups,
            draws=self.draws or None,
            features=sizes,
            notes=self.data_notes | (self.unused() if own else {}) | found_by(NOTES, graphs),
            doubts=found_by(DOUBTS, graphs),
            own=own,
        )

    def unused(self) -> dict[str, str]:
        """Return notes on what a set in the TU collection's format has, and nothing here reads."""
        raw = tu_files(self.dataset, self.data_root)
        read = {"node_attributes": self.recipe.features == "attributes"}
        read["edge_labels"] = self.recipe.reads_edges
        return {
            part.replace("_", " "): fate
            for part, fate in UNREAD.items()
            if not read.get(part) and raw.read(part) is not None
        }

    def model(self) -> Model:
        recipe, features = self.recipe, self.graphs.x.shape[1]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            if recipe.encoder == "raw":
                return Raw(networks.Histograms(features, self.dim)).to(self.device)
            if not recipe.trainable:
                return Raw(networks.Sizes() if recipe.encoder == "sizes" else networks.Sums())
            kind = networks.InfoGraph if recipe.of_nodes else networks.GraphModel
            bonds = self.graphs.edge_attr.shape[1]
            return kind(networks.GIN(features, recipe.hidden, recipe.layers, bonds)).to(self.device)

    def batches(self, epoch: int) -> Iterator[Batch]:
        size = self.recipe.batch_size
        for start, stop in chunks(self.training, size):
            graphs = views = self.training[start:stop]
            if not self.recipe.of_nodes:
                rng = generator(self.device, self.seed, epoch, start)
                views = augment(graphs, self.recipe, rng)
            parts = graphs.split(size), views.split(size), self.rows[start:stop].split(size)
            yield from compress(map(Batch, *parts), self.has_negatives[start // size :])

    @cached_property
    def has_negatives(self) -> list[bool]:
        """Whether each batch has two graphs, or two classes for pairs by class."""
        classes = self.training.y.cpu().split(self.recipe.batch_size)
        return [len(y.unique() if self.recipe.pairs_by_class else y) > 1 for y in classes]

    def steps(self) -> int:
        return sum(self.has_negatives)

    @property
    def sample_count(self) -> int:
        return next(iter(self.parts.values()))

    def contrasts(self, model: Model, batch: Batch) -> list[contrast.Contrast]:
        pairs, rows = self.paired(model, batch), batch.rows
        nodes = self.recipe.pairing == "whole_of"
        return [contrast.indexed(pair, rows[pair.anchor_id] if nodes else rows) for pair in pairs]

    def paired(self, model: Model, batch: Batch) -> list[contrast.Contrast]:
        graphs, views, _ = batch
        if isinstance(model, networks.InfoGraph):
            with alone():  # nodes are not shared out
                whole, nodes = model(graphs)
            if self.recipe.pairing == "whole_of":
                return [contrast.whole_of(nodes, whole, graphs.node_ptr)]
            return [contrast.part_of(whole, nodes, graphs.node_ptr, self.most_nodes)]
        first, second = embed_together(model, graphs), embed_together(model, views, symmetric=False)
        return pair_views(self.recipe.pairing, first, second, labels=graphs.y)

    @cached_property
    def class_count(self) -> int:
        if self.graphs.tasks:
            raise UserError(f"{self.dataset} has tasks and no classes: take a loss without classes")
        return int(self.graphs.y.max()) + 1

    @property
    def dim(self) -> int:
        return self.recipe.hidden * self.recipe.layers

    def embeddings(self, model: Model) -> Labelled:
        z = embed_graphs(model.encoder, self.graphs, self.recipe.batch_size)
        return Labelled(z, self.graphs.y)

    def check_export(self) -> None:
        super().check_export()
        features, fault = self.recipe.features, " are of one set alone: leave --export out"
        refuse(f"features={features}", (features in ("attributes", "codes"), fault))

    def export(self, model: Model, folder: Path) -> None:
        weights = model.encoder.state_dict()
        about = {"seed": self.seed, "labels": list(self.labels)}
        exported.write_export(folder, "graph", self.recipe, weights, **about)
        if not self.graphs.tasks:
            x, y = (part[: self.sample_count] for part in self.embeddings(model))
            write_probe(folder, self.class_names, Labelled(x, y))

    def evaluate(self, model: Model) -> Evaluation:
        recipe, embeddings, named = self.recipe, self.embeddings(model), self.graphs.groups
        if not recipe.nested:
            return part_evaluation(embeddings, self.parts, named)
        return svm_evaluation(embeddings, recipe.svm, recipe.folds, self.seed, named)


@torch.no_grad()
def embed_graphs(encoder: nn.Module, graphs: data.Graphs, batch_size: int) -> Tensor:
    """(graphs, d) embeddings, before the projection."""
    encoder.eval()
    return torch.cat([encoder(part) for part in graphs.split(batch_size)])


def svm_evaluation(
    embeddings: Labelled, svm: str, folds: int, seed: int, groups: Sequence[str] = ()
) -> Evaluation:
    """Stratified k-fold accuracy of an SVM on embeddings; or the AUROC over tasks."""
    x, y = embeddings
    if y.ndim > 1:
        return task_evaluation(x.cpu().numpy(), y.cpu().numpy(), folds, seed, groups)
    score = svms.svm_folds if svm == "rbf" else svms.linear_folds
    scored = score(x.cpu().numpy(), y.cpu().numpy(), folds, seed, groups)
    accuracy, inner = [fold.accuracy for fold in scored], [fold.inner for fold in scored]
    # a fold of one class, as groups may make it, has no AUROC, and so their mean is none
    shared = [name for name in scored[0].beside if all(name in fold.beside for fold in scored)]
    beside = {name: [fold.beside[name] for fold in scored] for name in shared}
    return Evaluation(
        {
            "accuracy": float(np.mean(accuracy)),
            "accuracy_std_over_folds": float(np.std(accuracy)),  # which says nothing about seeds
            **{name: fmean(each) for name, each in beside.items()},
        },
        "accuracy",
        # the folds turn, every graph is in some training part: choices are nested, by `inner`
        validation=sum(inner) / len(inner),
        folds=accuracy,
        inner=inner,
        samples={"train": len(y)},
        test_part="folds",
        details={
            **{"folds_ddof": 0, "folds_n": folds, "C": [fold.c for fold in scored]},
            "largest_class": largest_share(y.cpu().numpy()),
            "folds_of": beside,
        },
    )


def part_evaluation(
    embeddings: Labelled, parts: Mapping[str, int], groups: Sequence[str] = ()
) -> Evaluation:
    """Accuracy of the SVM on the last part, fitted on the first one; or the AUROC over tasks."""
    x, y = (part.cpu().numpy() for part in embeddings)
    if y.ndim > 1:
        return task_part(x, y, parts)
    train, test = of_test(parts)
    score = svms.svm_part(x, y, train, test, groups)
    return Evaluation(
        {"accuracy": score.accuracy, **score.beside},
        "accuracy",
        validation=score.inner,
        samples={"train": len(train), "test": len(test)},
        test_part="fixed",
        details={"C": score.c, "largest_class": largest_share(y[test])},
    )


def parted(graphs: data.Graphs, seed: int, parts: str) -> tuple[data.Graphs, dict[str, int]]:
    """Return the graphs to train on in the order of a seed, then the other parts; their sizes."""
    kept = parts == "scaffold"
    whole = graphs.y.numpy(), TEST_SHARE, 0, graphs.groups
    numbers = scaffold_parts(graphs.smiles) if kept else draw_share(*whole)
    train, *others = map(torch.from_numpy, numbers)
    order = torch.randperm(len(train), generator=generator(torch.device("cpu"), seed))
    sizes = dict(zip(PARTS if kept else PARTS[::2], map(len, numbers), strict=True))
    return graphs.select(torch.cat([train[order], *others])), sizes


def permuted_graphs(
    graphs: data.Graphs, seed: int, limit: int | None = None, kept: bool = False
) -> data.Graphs:
    """Return the graphs in the order of a seed, or the first of them; `kept`: in their own."""
    order = torch.randperm(len(graphs), generator=generator(torch.device("cpu"), seed))[:limit]
    return graphs.select(order.sort().values if kept else order)


def is_known(name: str) -> bool:
    """Return whether a set's graphs, nodes and edges are declared, or it is made here.

    >>> is_known("motifs"), is_known("MUTAG"), is_known("folder:mine")
    (True, True, False)
    """
    known = DATASETS.get(name)
    return known is not None and (not known.url or len(known.sizes) == 3)


def without_edges(graphs: data.Graphs) -> int:
    source, target = graphs.edge_index
    edges = data.occurrences(graphs.graph_of_node[source[source != target]], len(graphs))
    return int(((graphs.node_ptr.diff() > 1) & (edges == 0)).sum())


NOTES: Rules[data.Graphs] = {
    "graphs without edges": without_edges,
    "nodes of one whole number, read as an amount (if it is a code: features=codes)": lambda g: (
        len(g.x) * bool(g.x.shape[1] == 1 and (g.x == g.x.round()).all() and g.x.max() > 1)
    ),
}
DOUBTS: Rules[data.Graphs] = {"graphs without nodes": lambda g: int((g.node_ptr.diff() == 0).sum())}


def with_features(graphs: data.Graphs, features: str) -> data.Graphs:
    x = graphs.x
    if features == "degree":
        x = one_hot(graphs.row_ptr.diff().clamp_max(data.MAX_DEGREE), data.MAX_DEGREE + 1).float()
    elif features == "codes":
        kinds = [column.unique(return_inverse=True)[1] for column in x.T]
        x = torch.cat([one_hot(kind).float() for kind in kinds], dim=1)
    elif x.shape[1] == 0:
        x = x.new_ones(len(x), 1)
    return replace(graphs, x=x)


def few_codes(x: Tensor) -> bool:
    whole = x.shape[1] > 0 and bool((x == x.round()).all())
    return whole and len(x.unique()) * x.numel() <= data.MAX_FEATURES


def chunks(graphs: data.Graphs, batch_size: int) -> Iterator[tuple[int, int]]:
    """Runs of whole batches with at most CHUNK_EDGES edges each, or of one batch."""
    ends = torch.cat([graphs.edge_ptr[:-1:batch_size], graphs.edge_ptr[-1:]]).tolist()
    first = 0
    for last in range(1, len(ends)):
        if last == len(ends) - 1 or ends[last + 1] - ends[first] > CHUNK_EDGES:
            yield first * batch_size, min(last * batch_size, len(graphs))
            first = last
