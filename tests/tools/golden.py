"""Golden values where no code was released: loops in float64, and the complex step as gradient.

Nothing here is shared with the package or with `oracles.py`: cosines, pairings and losses are loops
over rows of numpy, and the derivative by x is the imaginary part of f(x + ih) / h, which is exact
to rounding for h = 1e-200. `python tests/tools/golden.py` computes the cases under "oracle" in
losses/golden.json anew; those under "released" stay as they are.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).parents[1] / "losses" / "golden.json"
STEP = 1e-200

Row = tuple[list[complex], list[complex]]  # an anchor's cosines with positives and negatives


def unit(z: np.ndarray) -> np.ndarray:
    return z / np.sqrt((z * z).sum(axis=-1, keepdims=True))


@dataclass(frozen=True)
class Batch:
    """Views of the same samples with their classes and pairing."""

    views: np.ndarray  # (views, samples, dimensions)
    labels: list[int]
    pairing: str

    def anchors(self) -> list[np.ndarray]:
        return [*unit(self.views[0]), *unit(self.views[1])]

    def rows(self) -> list[Row]:
        return {
            "both_views": self.both_views,
            "same_class": self.same_class,
            "other_view": self.other_view,
        }[self.pairing]()

    def both_views(self) -> list[Row]:
        """Positives: the sample's further views if there are any, else the partner."""
        keys, n, found = self.anchors(), len(self.labels), []
        further = [unit(view) for view in self.views[2:]]
        for a, anchor in enumerate(keys):
            positives = [view[a % n] for view in further] or [keys[(a + n) % (2 * n)]]
            negatives = [key for j, key in enumerate(keys) if j % n != a % n]
            found.append(([anchor @ p for p in positives], [anchor @ k for k in negatives]))
        return found

    def same_class(self) -> list[Row]:
        keys, classes, found = self.anchors(), 2 * self.labels, []
        for a, anchor in enumerate(keys):
            mates = [j for j in range(len(keys)) if classes[j] == classes[a] and j != a]
            others = [j for j in range(len(keys)) if classes[j] != classes[a]]
            found.append(([anchor @ keys[j] for j in mates], [anchor @ keys[j] for j in others]))
        return found

    def other_view(self) -> list[Row]:
        one, two = map(unit, self.views)
        return [
            ([anchor @ two[i]], [anchor @ key for j, key in enumerate(two) if j != i])
            for i, anchor in enumerate(one)
        ]


def softmax(x: Sequence[float]) -> np.ndarray:
    e = np.exp(np.array(x) - max(x))
    return e / e.sum()


def alpha_cl(batch: Batch, temperature: float, p: float, variant: str = "paper") -> complex:
    terms = []
    for (pos,), neg in batch.rows():
        power = p if variant == "adnce_code" else p / 2
        alpha = softmax([-(max(0.0, 1 - s.real) ** power) / temperature for s in neg])
        terms.append(sum(a * (s - pos) for a, s in zip(alpha, neg, strict=True)))
    return sum(terms) / len(terms)


def cpc(batch: Batch, temperature: float, alpha: float) -> complex:
    terms = []
    for (pos,), neg in batch.rows():
        mean = sum(np.exp(s / temperature) for s in neg) / len(neg)
        e = np.exp(pos / temperature)
        terms.append(-np.log(e / (alpha * e + (1 - alpha) * mean)))
    return sum(terms) / len(terms)


def f_micl(batch: Batch, f: str, sigma: float, weight: float, k: float) -> complex:
    slope, conjugate = {  # f' and f*, of the paper's table of divergences
        "kl": (lambda u: np.log(u) + 1, lambda t: np.exp(t - 1)),
        "js": (lambda u: np.log(2) + np.log(u / (1 + u)), lambda t: -np.log(2 - np.exp(t))),
        "chi2": (lambda u: 2 * (u - 1), lambda t: t**2 / 4 + t),
        "sh": (lambda u: 1 - u**-0.5, lambda t: t / (1 - t)),
        "tsallis": (
            lambda u: k / (k - 1) * u ** (k - 1),
            lambda t: ((k - 1) / k * t) ** (k / (k - 1)),
        ),
        "vlc": (lambda u: 1 - 4 / (u + 1) ** 2, lambda t: 4 - t - 4 * np.sqrt(1 - t)),
    }[f]
    terms = []
    for pos, neg in batch.rows():
        near, far = ([slope(np.exp((s - 1) / sigma**2)) for s in row] for row in (pos, neg))
        terms.append(weight * sum(map(conjugate, far)) / len(far) - sum(near) / len(near))
    return sum(terms) / len(terms)


def npair(batch: Batch, temperature: float, similarity: str = "cosine") -> complex:
    terms = []
    for (pos,), neg in batch.rows():
        if similarity == "distance":  # of unit vectors
            pos, neg = -np.sqrt(2 - 2 * pos), [-np.sqrt(2 - 2 * s) for s in neg]
        terms.append(np.log(1 + sum(np.exp((s - pos) / temperature) for s in neg)))
    return sum(terms) / len(terms)


def dar(batch: Batch, form: str = "chain", reduction: str = "mean") -> complex:
    z, n, lengths = batch.anchors(), len(batch.labels), []
    pairs = [(j - 1 if form == "chain" else 0, j) for j in range(1, len(z))]
    differences = [z[i] - z[j] for i, j in pairs if i % n != j % n]  # of two samples
    for j, a in enumerate(differences):
        for b in differences[j + 1 :]:
            lengths.append(np.sqrt(((a - b) ** 2).sum()))
    return sum(lengths) / (len(lengths) if reduction == "mean" else 1)


def dasl(batch: Batch, **params: Any) -> complex:
    return npair(batch, **params) + 0.5 * dar(batch)


def attentionnce(
    batch: Batch, temperature: float, d_pos: float, d_neg: float, variant: str = "official_code"
) -> complex:
    terms, extra = [], 1e-6 if variant == "official_code" else 0
    for pos, neg in batch.rows():
        alpha = softmax([s.real / d_pos for s in pos])
        beta = len(neg) * (softmax([s.real / d_neg for s in neg]) + extra)
        prototype = np.exp(sum(a * s for a, s in zip(alpha, pos, strict=True)) / temperature)
        negatives = sum(np.exp(b * s / temperature) for b, s in zip(beta, neg, strict=True))
        terms.append(-np.log(prototype / (prototype + negatives)))
    return sum(terms) / len(terms)


def learned_temperature(batch: Batch, temperature: complex) -> complex:
    terms = []
    for (pos,), neg in batch.rows():
        e = np.exp(pos / temperature)
        terms.append(-np.log(e / (e + sum(np.exp(s / temperature) for s in neg))))
    return sum(terms) / len(terms)


def learned_scale(batch: Batch, log_scale: complex) -> complex:
    return learned_temperature(batch, np.exp(-log_scale))


def learned_proxies(batch: Batch, proxies: np.ndarray, temperature: float) -> complex:
    terms = []
    for anchor, label in zip(batch.anchors(), 2 * batch.labels, strict=True):
        e = [np.exp(anchor @ proxy / temperature) for proxy in unit(proxies)]
        terms.append(-np.log(e[label] / sum(e)))
    return sum(terms) / len(terms)


ORACLES: dict[str, Callable[..., complex]] = {
    "alpha_cl": alpha_cl,
    "cpc": cpc,
    "f_micl": f_micl,
    "npair": npair,
    "dar": dar,
    "dasl": dasl,
    "attentionnce": attentionnce,
    "learned_temperature": learned_temperature,
    "learned_scale": learned_scale,
    "learned_proxies": learned_proxies,
}


def oracle(
    golden: dict[str, Any], group: dict[str, Any], case: dict[str, Any]
) -> tuple[Callable[..., complex], dict[str, np.ndarray]]:
    """A case's loss as a function of all that it has gradients by, and these."""

    def f(views: np.ndarray, **learned: np.ndarray) -> complex:
        batch = Batch(views, golden["labels"], group["pairing"])
        return ORACLES[group["oracle"]](batch, **case["params"], **learned)

    learned = {name: np.array(x) for name, x in case.get("learned", {}).items()}
    return f, {"views": np.array(golden["views"][: group["views"]]), **learned}


def gradients(f: Callable[..., complex], leaves: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    found = {name: np.empty(leaf.shape) for name, leaf in leaves.items()}
    for name, leaf in leaves.items():
        for place in np.ndindex(leaf.shape):
            moved = leaf.astype(complex)
            moved[place] += 1j * STEP
            found[name][place] = f(**{**leaves, name: moved}).imag / STEP
    return found


def compute(golden: dict[str, Any], group: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """What the file holds of a case besides its parameters."""
    f, leaves = oracle(golden, group, case)
    by = gradients(f, leaves)
    views = by.pop("views")
    return {
        "value": float(f(**leaves).real),
        "gradient_norms": [float(np.sqrt((g * g).sum())) for g in views],
        "gradient_row": views[0, 0].tolist(),
        **({"learned_gradients": {name: g.tolist() for name, g in by.items()}} if by else {}),
    }


def write(golden: dict[str, Any]) -> None:
    """What holds no list or object stands on one line."""
    text = json.dumps(golden, indent=1, ensure_ascii=False)
    innermost = re.compile(r"([\[{])\s+([^][{}]*?)\s+([\]}])")
    FILE.write_text(innermost.sub(lambda m: m[1] + " ".join(m[2].split()) + m[3], text) + "\n")


def update() -> None:
    golden = json.loads(FILE.read_text())
    for group in golden["oracle"]:
        for case in group["cases"]:
            case |= compute(golden, group, case)
    write(golden)


if __name__ == "__main__":
    update()
