"""Retrieval: whether rows find others of their class, as metric learning is scored."""

import torch
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from torch import Tensor

from contrastbench.domains.scoring.classifiers import Labelled, percent
from contrastbench.errors import UserError
from contrastbench.losses.contrast import unit

RECALLS = (1, 2, 4, 8, 10, 100)  # those of CUB, CAR and SOP
QUERY_BLOCK = 1024  # whose neighbours are looked for at once


def retrieval(rows: Labelled) -> dict[str, float]:
    """Recall at 1, 2, 4, 8, 10 and 100, MAP at R and NMI, in percent.

    Each row is a query among all others, by cosine. Its recall at k is whether one of its k nearest
    is of its class (Oh Song et al. 2016); its AP at R, with R others of its class, is the mean over
    the R nearest of the precision up to each that is of its class, and zero for those that are not
    (Musgrave et al. 2020). Queries whose class has no other row are left out of both. NMI is that
    of the classes and as many clusters by k-means, with the arithmetic mean of their entropies.

    >>> x = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> retrieval(Labelled(x, torch.tensor([0, 0, 1, 1])))["recall_at_1"]
    100.0
    """
    x, y, others, queries = retrieval_rows(rows)
    deepest = min(max(*RECALLS, int(others.max())), len(y) - 1)
    hits = of_one_class(x, y, queries, deepest)
    recalls = {f"recall_at_{k}": percent(hits[:, :k].any(dim=1)) for k in RECALLS}
    map_at_r = percent(average_precision(hits, others[queries]))
    return {**recalls, "map_at_r": map_at_r, "nmi": 100 * mutual_information(x, y)}


def recall_at_1(rows: Labelled) -> float:
    """Return the recall at 1 in percent, as `retrieval` has it."""
    x, y, _, queries = retrieval_rows(rows)
    return percent(of_one_class(x, y, queries, 1))


def retrieval_rows(rows: Labelled) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return unit rows, their classes, how many others each one's class has, and the queries."""
    x, y = unit(rows.x), rows.y.unique(return_inverse=True)[1]
    others = y.bincount()[y] - 1
    queries = others.nonzero().squeeze(1)
    if not len(queries):
        raise UserError("no class has two samples to score: there is nothing to retrieve")
    return x, y, others, queries


def of_one_class(x: Tensor, y: Tensor, queries: Tensor, k: int) -> Tensor:
    """(n, k) whether each query's k nearest others, the nearest first, are of its class."""
    parts = []
    for some in queries.split(QUERY_BLOCK):
        cosine = x[some] @ x.T
        cosine[torch.arange(len(some), device=x.device), some] = -torch.inf
        parts.append(y[cosine.topk(k).indices] == y[some, None])
    return torch.cat(parts)


def average_precision(same_class: Tensor, relevant: Tensor) -> Tensor:
    """(n,) of the first R places, R the number of relevant others."""
    place = torch.arange(1, same_class.shape[1] + 1, device=same_class.device)
    hits = same_class & (place <= relevant[:, None])
    precision = hits.cumsum(dim=1).double() / place
    return (precision * hits).sum(dim=1) / relevant


def mutual_information(x: Tensor, y: Tensor) -> float:
    """Return the normalised mutual information of classes and k-means clusters (fixed seed)."""
    points = x.cpu().numpy()
    clusters = KMeans(int(y.max()) + 1, random_state=0).fit_predict(points)
    return float(normalized_mutual_info_score(y.cpu().numpy(), clusters))
