"""Data that no method was thought for: numbers are finite, or one line says what is wrong."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contrastbench.benchmarks.records.experiment import Cell, Experiment
from contrastbench.benchmarks.running.opening import make_cell_loss, open_domain
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.domains.registry import DOMAINS, declaration
from contrastbench.losses import UserError
from contrastbench.losses.registry import LOSSES
from contrastbench.losses.spec import LossSpec
from counts import SCALE
from tu_files import write

N = 24
HALF = [k % 2 for k in range(N)]
RANDOM = np.random.default_rng(0)
Made = tuple[str, dict[str, Any]]  # the dataset's name, and keys of the recipe


def table(folder: Path, rows: Sequence[Sequence[object]]) -> Made:
    names = [*(f"x{k}" for k in range(len(rows[0]) - 1 if rows else 2)), "y"]
    lines = [",".join(map(str, row)) for row in (names, *rows)]
    (folder / "it.csv").write_text("\n".join(lines) + "\n")
    return f"csv:{folder / 'it.csv'}", {"target": "y"}


def numbers(count: int = N, scale: float = 1) -> list[list[float]]:
    return (scale * RANDOM.normal(size=(count, 3))).tolist()


def labelled(rows: list[list[Any]], y: Sequence[object]) -> list[list[Any]]:
    return [[*row, label] for row, label in zip(rows, y, strict=True)]


TABLES = {
    "no row": [],
    "one row": labelled(numbers(1), "a"),
    "two rows": labelled(numbers(2), "ab"),
    "one class": labelled(numbers(), "a" * N),
    "a class of one": labelled(numbers(), "b" + "a" * (N - 1)),
    "constant features": labelled([[1.0, 2.0]] * N, HALF),
    "one row repeated": labelled([numbers(1)[0]] * N, HALF),
    "no numbers": labelled([["", ""]] * N, HALF),
    "some missing": labelled([["", k, "nan"] for k in range(N)], HALF),
    "infinite": labelled([["inf", "-inf", k] for k in range(N)], HALF),
    "huge": labelled(numbers(scale=1e300), HALF),
    "tiny": labelled(numbers(scale=1e-300), HALF),
    "one feature": [[k, k % 2] for k in range(N)],
    "only texts, all different": labelled([[f"t{k}"] for k in range(N)], HALF),
}


def pictures(folder: Path, about: tuple[Any, Sequence[int]]) -> Made:
    images, y = about
    np.savez(folder / "it.npz", images=images, labels=np.array(y, dtype=int))
    return f"npz:{folder / 'it.npz'}", {"size": 16}


def noise(*shape: int) -> Any:
    return RANDOM.integers(0, 256, shape, dtype=np.uint8)


IMAGES = {
    "no image": (noise(0, 16, 16), []),
    "one image": (noise(1, 16, 16), [0]),
    "two images": (noise(2, 16, 16), [0, 1]),
    "one class": (noise(N, 16, 16), [0] * N),
    "a class of one": (noise(N, 16, 16), [1] + [0] * (N - 1)),
    "all black": (np.zeros((N, 16, 16), np.uint8), HALF),
    "all white": (np.full((N, 16, 16, 3), 255, np.uint8), HALF),
    "one image repeated": (np.repeat(noise(1, 16, 16, 3), N, 0), HALF),
    "one pixel": (noise(N, 1, 1), HALF),
    "eight pixels a side": (noise(N, 8, 8), HALF),
    "very wide": (noise(N, 8, 256), HALF),
    "not finite": (np.full((N, 16, 16), np.nan), HALF),
    "labels that are far apart": (noise(N, 16, 16), [2**40 * y for y in HALF]),
}


def pairs(folder: Path, rows: Sequence[tuple[str, str, object]]) -> Made:
    lines = ["sentence1\tsentence2\tscore", *("\t".join(map(str, row)) for row in rows)]
    (folder / "it.tsv").write_text("\n".join(lines) + "\n")
    texts = [2 * text for row in rows for text in row[:2]]  # what is scored is not trained on
    (folder / "it.txt").write_text("\n".join(texts) + "\n")
    return f"pairs:{folder / 'it.tsv'}", {"corpus": f"text:{folder / 'it.txt'}"}


SOME = [(f"ban {k}", f"ban {k * 7 % 5} kale", k % 6) for k in range(N)]
SENTENCES = {
    "no pair": [],
    "one pair": SOME[:1],
    "two pairs": SOME[:2],
    "one sentence repeated": [("ban", "ban", k % 6) for k in range(N)],
    "all empty": [("", "", k % 6) for k in range(N)],
    "one side empty": [("", f"ban {k}", k % 6) for k in range(N)],
    "one score": [(a, b, 3) for a, b, _ in SOME],
    "a score that is no number": [(a, b, "nan") for a, b, _ in SOME],
    "an infinite score": [(a, b, "inf") for a, b, _ in SOME],
    "words that nobody knows": [("\U0001f600" * k, "\u0416" * (k + 1), k % 6) for k in range(1, N)],
    "a sentence of 20,000 words": [*SOME, ("ban " * 20_000, "kale", 1)],
    "nothing but marks": [("." * (k + 1), "?!" * (k + 1), k % 6) for k in range(N)],
    "no text between blanks": [(" \u00a0 ", "\u200b", k % 6) for k in range(N)],
}


def graphs(folder: Path, about: tuple[Any, ...]) -> Made:
    sizes, edges, y, *more = about
    starts = [sum(sizes[:k]) + 1 for k in range(len(sizes))]
    lines = [
        f"{s + a}, {s + b}\n{s + b}, {s + a}\n"
        for s, n in zip(starts, sizes, strict=True)
        for a, b in edges(n)
    ]
    text = {
        "A": "".join(lines),
        "graph_indicator": "".join(f"{k + 1}\n" * n for k, n in enumerate(sizes)),
        "graph_labels": "".join(f"{label}\n" for label in y),
    }
    write(folder, "IT", **text, node_labels=more[0] if more else None)
    return f"folder:{folder}", {"folds": 2}


def path_of(n: int) -> list[tuple[int, int]]:
    return [(k, k + 1) for k in range(n - 1)]


def all_of(n: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(n) for b in range(a)]


GRAPHS = {
    "no graph": ([], path_of, []),
    "one graph": ([5], path_of, [0]),
    "two graphs": ([5, 6], path_of, [0, 1]),
    "one class": ([5] * N, path_of, [0] * N),
    "a class of one": ([5] * N, path_of, [1] + [0] * (N - 1)),
    "no edge": ([5] * N, lambda n: [], HALF),
    "one edge in all": ([2, *[1] * (N - 1)], path_of, HALF),
    "one node each, and loops": ([1] * N, lambda n: [(0, 0)], HALF),
    "one graph repeated": ([5] * N, path_of, HALF),
    "every edge there is": ([6 + k % 3 for k in range(N)], all_of, HALF),
    "graphs without nodes between": ([5, 0, 0, 5] * 6, path_of, HALF),
    "one of 3,000 nodes": ([3000, *[2] * (N - 1)], path_of, HALF),
    "labels that are far apart": ([3] * N, path_of, HALF, "0\n9999999\n5\n" * N),
}
SETS: dict[str, tuple[Callable[[Path, Any], Made], dict[str, Any]]] = {
    "graph": (graphs, GRAPHS),
    "image": (pictures, IMAGES),
    "sentence": (pairs, SENTENCES),
    "tabular": (table, TABLES),
}


@pytest.mark.parametrize("domain", DOMAINS)
def test_degenerate_data(domain: str, tmp_path: Path, found: Callable[[str], None]) -> None:
    make, sets = SETS[domain]
    steps = runs = refused = 0
    for k, (name, about) in enumerate(sets.items()):
        folder = tmp_path / str(k)
        folder.mkdir()
        dataset, keys = make(folder, about)
        recipe = {**declaration(domain).tiny, "epochs": 1, "batch_size": 8, **keys}
        works = {loss: Experiment(domain, dataset, LossSpec(loss), recipe) for loss in LOSSES}
        if not done(lambda works=works, name=name: check_steps(works, name)):
            refused += 1
            continue
        steps += len(works)
        untrained = Experiment(domain, dataset, LossSpec("none"), recipe)
        for work in [untrained, *works.values()] if SCALE >= 10 else [works["infonce"]]:
            runs += done(lambda work=work, at=folder, name=name: check_run(work, at, name))
    assert steps, "some are trained on"
    found(
        f"input: {len(sets)} degenerate sets of domain {domain} with {len(LOSSES)} losses: "
        f"{refused} refused in one line, {steps} first steps and {runs} whole runs finite"
    )


def done(work: Callable[[], None]) -> bool:
    said = []
    try:
        work()
    except UserError as error:
        said = str(error).splitlines()
    assert len(said) <= 1
    return not said


def check_steps(works: dict[str, Experiment], name: str) -> None:
    """The first step of each loss: value and gradient are finite."""
    opened = open_domain(works["infonce"], 0, None, torch.device("cpu"))
    batch, model = next(iter(opened.batches(0))), opened.model().train()
    contrasts = opened.contrasts(model, batch)
    for loss, work in works.items():
        made = make_cell_loss(Cell(work, 0, "", {}), opened)
        model.zero_grad()
        value = torch.stack([made(one) for one in contrasts]).sum()
        value.backward(retain_graph=True)
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        assert value.isfinite(), (name, loss)
        assert all(bool(gradient.isfinite().all()) for gradient in gradients), (name, loss)


def check_run(work: Experiment, results: Path, name: str) -> None:
    """A whole run: its numbers are finite, or it says in one line that they are not."""
    record, _ = run_cell(work, 0, Options(results / "results", device="cpu"))
    why = record["details"].get("error", "")
    assert record["status"] in ("ok", "diverged"), (name, work.loss.name, why)
    assert len(why.splitlines()) <= 1
    assert all(map(math.isfinite, record.get("metrics", {}).values())), (name, work.loss.name)
