"""Losses as loops over anchors, straight from the papers: the judge of the real ones.

They are slow, plain and in float64. Each oracle takes a contrast and the loss's parameters. Weights
that a paper detaches are plain numbers here. Below stands where each loss's parameters are drawn.
"""

import math
from collections.abc import Callable, Iterable, Iterator

import torch
from scipy.optimize import brentq
from torch import Tensor

from contrastbench.losses import LOSSES, Contrast

Oracle = Callable[..., Tensor]
Terms = Iterator[Tensor]  # one for each anchor


def anchors(contrast: Contrast) -> Iterator[tuple[Tensor, Tensor]]:
    """Cosines of each anchor with its positives and with its negatives."""
    for i, anchor in enumerate(contrast.anchor):
        positive = contrast.positives()[i]
        if contrast.padding is not None:
            positive = positive[~contrast.padding[i]]
        yield positive @ anchor, contrast.keys[contrast.key_id != contrast.anchor_id[i]] @ anchor


def exponentials(contrast: Contrast, temperature: float) -> Iterator[tuple[Tensor, Tensor]]:
    """The exponentials of those cosines over the temperature."""
    for pos, neg in anchors(contrast):
        yield torch.exp(pos / temperature), torch.exp(neg / temperature)


def mean(values: Iterable[Tensor]) -> Tensor:
    return torch.stack([*values]).mean()


def mean_of_terms(terms: Callable[..., Terms]) -> Oracle:
    """Return the loss of a function that yields each anchor's term."""
    return lambda *args, **params: mean(terms(*args, **params))


def over(contrast: Contrast, negatives: Tensor) -> Tensor:
    """The negatives' part of a denominator: their sum, or their mean where the pairing says so."""
    return negatives.mean() if contrast.mean_over_negatives else negatives.sum()


def share(contrast: Contrast, pos: Tensor, negatives: Tensor) -> Tensor:
    """Mean of -log of each positive's share of its denominator.

    The denominator contains the positive where the pairing says so.
    """
    return -torch.log(pos / (pos * contrast.positive_in_denominator + negatives)).mean()


@mean_of_terms
def infonce(contrast: Contrast, temperature: float) -> Terms:
    for pos, neg in exponentials(contrast, temperature):
        yield share(contrast, pos, over(contrast, neg))


@mean_of_terms
def decoupled(contrast: Contrast, temperature: float) -> Terms:
    for pos, neg in exponentials(contrast, temperature):
        yield -torch.log(pos / neg.sum()).mean()


@mean_of_terms
def hcl(contrast: Contrast, temperature: float, tau_plus: float, beta: float) -> Terms:
    for s_pos, s_neg in anchors(contrast):
        pos, neg = torch.exp(s_pos / temperature), torch.exp(s_neg / temperature)
        weight = torch.exp(beta * s_neg / temperature)
        g = ((weight / weight.mean() * neg).mean() - tau_plus * pos.mean()) / (1 - tau_plus)
        g = torch.clamp(g, min=math.exp(-1 / temperature))
        yield share(contrast, pos, over(contrast, g.repeat(len(neg))))


@mean_of_terms
def debiased(contrast: Contrast, temperature: float, tau_plus: float) -> Terms:
    for pos, neg in exponentials(contrast, temperature):
        g = torch.clamp(
            (neg.mean() - tau_plus * pos.mean()) / (1 - tau_plus), min=math.exp(-1 / temperature)
        )
        yield share(contrast, pos, over(contrast, g.repeat(len(neg))))


@mean_of_terms
def rince(contrast: Contrast, temperature: float, q: float, lam: float) -> Terms:
    for pos, neg in exponentials(contrast, temperature):
        everything = pos * contrast.positive_in_denominator + over(contrast, neg)
        yield (-(pos**q) / q + (lam * everything) ** q / q).mean()


@mean_of_terms
def alpha_cl(contrast: Contrast, temperature: float, p: float, variant: str = "paper") -> Terms:
    power = {"paper": p / 2, "adnce_code": p}[variant]  # of the squared distance
    for pos, neg in anchors(contrast):
        square = (1 - neg.detach()).clamp(min=0)
        alpha = torch.exp(-(square**power) / temperature)
        yield (alpha / alpha.sum() * neg).sum() - pos.mean()


@mean_of_terms
def mean_variance(contrast: Contrast, temperature: float) -> Terms:
    for pos, neg in anchors(contrast):
        yield -pos.mean() + neg.mean() + neg.var(correction=0) / (2 * temperature)


def adnce_weight(x: float, m: float, n: float, weight: str) -> float:
    """Equation 11 and the densities of Table 11; those are of x = score + 1."""
    if weight == "gaussian":
        return 1 / (n * math.sqrt(2 * math.pi)) * math.exp(-0.5 * ((x - m) / n) ** 2)
    x = max(x + 1, 1e-6)
    if weight == "gamma":
        return float(1 / (math.gamma(m) * n**m) * x ** (m - 1) * math.exp(-x / n))
    if weight == "rayleigh":
        return x / m**2 * math.exp(-(x**2) / (2 * m**2))
    return float(1 / (2 ** (m / 2) * math.gamma(m / 2)) * x ** (m / 2 - 1) * math.exp(-x / 2))


@mean_of_terms
def adnce(
    contrast: Contrast,
    temperature: float,
    mu: float,
    sigma: float,
    weight: str = "gaussian",
    variant: str = "official_code",
) -> Terms:
    for s_pos, s_neg in anchors(contrast):
        pos, neg = torch.exp(s_pos / temperature), torch.exp(s_neg / temperature)
        arguments = (s_neg if variant == "official_code" else neg).tolist()
        weights = torch.tensor(
            [adnce_weight(x, mu, sigma, weight) for x in arguments], dtype=neg.dtype
        )
        yield share(contrast, pos, over(contrast, weights / weights.mean() * neg))


@mean_of_terms
def phi_dro(contrast: Contrast, temperature: float, phi: str = "kl", k: float = 1.5) -> Terms:
    """Equation 3 as it stands: the worst distribution, penalised by tau times its divergence."""
    for pos, neg in anchors(contrast):
        ratio = worst_ratio(neg.detach(), temperature, phi, k)
        worst = (ratio * neg).mean() - temperature * divergence(ratio, phi, k).mean()
        yield worst - pos.mean()


def divergence(x: Tensor, phi: str, k: float) -> Tensor:
    if phi == "kl":
        return x * torch.log(x) - x + 1
    if phi == "chi2":
        return (x - 1) ** 2 / 4
    return (x**k - k * x + k - 1) / (k * (k - 1))


def worst_ratio(neg: Tensor, temperature: float, phi: str, k: float) -> Tensor:
    """Q / Q0 of mean 1 where phi'(ratio) = (s - lambda) / tau, or 0 where that is negative."""

    def ratio(lam: float) -> Tensor:
        y = (neg - lam) / temperature
        if phi == "kl":
            return torch.exp(y)
        if phi == "chi2":
            return (1 + 2 * y).clamp(min=0)
        return (1 + (k - 1) * y).clamp(min=0) ** (1 / (k - 1))

    bounds = float(neg.min()) - 1e-9, float(neg.max()) + 1e-9
    return ratio(brentq(lambda lam: float(ratio(lam).mean()) - 1, *bounds, xtol=1e-15, rtol=1e-15))


@mean_of_terms
def attentionnce(
    contrast: Contrast,
    temperature: float,
    d_pos: float,
    d_neg: float,
    variant: str = "official_code",
) -> Terms:
    for pos, neg in anchors(contrast):
        alpha = torch.softmax(pos.detach() / d_pos, dim=0)
        beta = torch.softmax(neg.detach() / d_neg, dim=0)
        beta = (beta + (1e-6 if variant == "official_code" else 0)) * len(neg)
        prototype = torch.exp((alpha * pos).sum() / temperature)
        yield share(contrast, prototype, over(contrast, torch.exp(beta * neg / temperature)))


@mean_of_terms
def cpc(contrast: Contrast, temperature: float, alpha: float) -> Terms:
    for pos, neg in exponentials(contrast, temperature):
        yield -torch.log(pos / (alpha * pos + (1 - alpha) * neg.mean())).mean()


def expectation(contrast: Contrast, positive: bool, f: Callable[[Tensor], Tensor]) -> Tensor:
    """E over all positive, or all negative, pairs of the batch: an anchor, then a pair of it."""
    return mean(f(pos if positive else neg).mean() for pos, neg in anchors(contrast))


def mlcpc(contrast: Contrast, temperature: float, alpha: float) -> Tensor:
    p = expectation(contrast, True, lambda s: torch.exp(s / temperature))
    q = expectation(contrast, False, lambda s: torch.exp(s / temperature))
    return -expectation(contrast, True, lambda s: s / temperature) + torch.log(
        alpha * p + (1 - alpha) * q
    )


def rmlcpc(contrast: Contrast, temperature: float, alpha: float, gamma: float) -> Tensor:
    tilted = expectation(contrast, True, lambda s: torch.exp((gamma - 1) * s / temperature))
    p = expectation(contrast, True, lambda s: torch.exp(gamma * s / temperature))
    q = expectation(contrast, False, lambda s: torch.exp(gamma * s / temperature))
    return -torch.log(tilted) / (gamma - 1) + torch.log(alpha * p + (1 - alpha) * q) / gamma


def renyi(contrast: Contrast, temperature: float, gamma: float) -> Tensor:
    p = expectation(contrast, True, lambda s: torch.exp((gamma - 1) * s / temperature))
    q = expectation(contrast, False, lambda s: torch.exp(gamma * s / temperature))
    return -(torch.log(p) / (gamma - 1) - torch.log(q) / gamma)


def dv(contrast: Contrast, temperature: float) -> Tensor:
    q = expectation(contrast, False, lambda s: torch.exp(s / temperature))
    return -(expectation(contrast, True, lambda s: s / temperature) - torch.log(q))


def nwj(contrast: Contrast, temperature: float, alpha: float) -> Tensor:
    f = expectation(contrast, True, lambda s: s / temperature)
    p = expectation(contrast, True, lambda s: torch.exp(s / temperature - 1))
    q = expectation(contrast, False, lambda s: torch.exp(s / temperature - 1))
    return -(f - alpha * p - (1 - alpha) * q)


def jsd(contrast: Contrast, temperature: float) -> Tensor:
    p = expectation(contrast, True, lambda s: torch.log(1 + torch.exp(-s / temperature)))
    q = expectation(contrast, False, lambda s: torch.log(1 + torch.exp(s / temperature)))
    return p + q - 2 * math.log(2)


@mean_of_terms
def npair(contrast: Contrast, temperature: float, similarity: str = "cosine") -> Terms:
    for pos, neg in anchors(contrast):
        if similarity == "distance":
            pos, neg = -torch.sqrt(2 - 2 * pos), -torch.sqrt(2 - 2 * neg)
        yield mean(torch.log(1 + torch.exp((neg - p) / temperature).sum()) for p in pos)


def dar(contrast: Contrast, form: str = "chain", reduction: str = "mean") -> Tensor:
    z, ids = contrast.anchor, contrast.anchor_id.tolist()
    pairs = [(j - 1 if form == "chain" else 0, j) for j in range(1, len(z))]
    differences = [z[i] - z[j] for i, j in pairs if ids[i] != ids[j]]
    norms = [(a - b).norm() for j, a in enumerate(differences) for b in differences[j + 1 :]]
    if not norms:
        return 0 * z.sum()
    return torch.stack(norms).sum() / (len(norms) if reduction == "mean" else 1)


def square_distance(s: Tensor) -> Tensor:
    """Return the squared distance of unit vectors, from their cosine."""
    return 2 - 2 * s


def align_uniform(contrast: Contrast, alpha: float, t: float, weight: float) -> Tensor:
    align = expectation(contrast, True, lambda s: square_distance(s).sqrt() ** alpha)
    uniform = torch.log(expectation(contrast, False, lambda s: torch.exp(-t * square_distance(s))))
    return align + weight * uniform


@mean_of_terms
def dcl_w(contrast: Contrast, temperature: float, sigma: float) -> Terms:
    rows = [(pos.mean(), neg) for pos, neg in anchors(contrast)]
    easy = [math.exp(pos.item() / sigma) for pos, _ in rows]
    for (pos, neg), x in zip(rows, easy, strict=True):
        w = 2 - x / (sum(easy) / len(easy))
        yield -w * pos / temperature + torch.log(torch.exp(neg / temperature).sum())


@mean_of_terms
def dual_temperature(contrast: Contrast, temperature: float, ratio: float) -> Terms:
    """The softmax of the weights is over the positive and the negatives, in each pairing."""

    def rest(pos: Tensor, neg: Tensor, tau: float) -> Tensor:
        others = torch.exp(neg.detach() / tau).sum()
        return others / (torch.exp(pos.detach() / tau) + others)

    for positives, neg in anchors(contrast):
        negatives = over(contrast, torch.exp(neg / temperature))
        yield mean(
            rest(pos, neg, ratio * temperature)
            / rest(pos, neg, temperature)
            * share(contrast, torch.exp(pos / temperature), negatives)
            for pos in positives
        )


def f_micl(contrast: Contrast, f: str, sigma: float, weight: float, k: float) -> Tensor:
    """The similarity is f' of the kernel by autograd, the conjugate u f'(u) - f(u)."""

    def generator(u: Tensor) -> Tensor:
        return {
            "kl": lambda: u * torch.log(u),
            "js": lambda: u * torch.log(u) - (u + 1) * torch.log((u + 1) / 2),
            "chi2": lambda: (u - 1) ** 2,
            "sh": lambda: (torch.sqrt(u) - 1) ** 2,
            "tsallis": lambda: u**k / (k - 1),
            "vlc": lambda: (u - 1) ** 2 / (u + 1),
        }[f]()

    def kernel(s: Tensor) -> Tensor:
        g = torch.exp(-square_distance(s) / (2 * sigma**2))
        return g if g.requires_grad else g.requires_grad_()

    def slope(u: Tensor) -> Tensor:
        return torch.autograd.grad(generator(u).sum(), u, create_graph=True)[0]

    def conjugate(u: Tensor) -> Tensor:
        return u * slope(u) - generator(u)

    similarity = expectation(contrast, True, lambda s: slope(kernel(s)))
    return weight * expectation(contrast, False, lambda s: conjugate(kernel(s))) - similarity


def spectral(contrast: Contrast, mu: float) -> Tensor:
    """Embeddings have the square root of mu as their length, and the loss is over mu."""
    near = expectation(contrast, True, lambda s: mu * s)
    return (-2 * near + expectation(contrast, False, lambda s: (mu * s) ** 2)) / mu


@mean_of_terms
def circle(contrast: Contrast, margin: float, gamma: float) -> Terms:
    for pos, neg in anchors(contrast):
        near = [max(0.0, 1 + margin - s.item()) * (s - (1 - margin)) for s in pos]
        far = [max(0.0, s.item() + margin) * (s - margin) for s in neg]
        pairs = [torch.exp(gamma * (b - a)) for a in near for b in far]
        yield torch.log(1 + torch.stack(pairs).sum())


@mean_of_terms
def multi_similarity(
    contrast: Contrast, alpha: float, beta: float, base: float, epsilon: float
) -> Terms:
    for pos, neg in anchors(contrast):
        near = [torch.exp(-alpha * (s - base)) for s in pos if s < max(neg) + epsilon]
        far = [torch.exp(beta * (s - base)) for s in neg if s > min(pos) - epsilon]
        pulled = torch.log(1 + sum(near, 0 * pos.sum())) / alpha
        yield pulled + torch.log(1 + sum(far, 0 * neg.sum())) / beta


def triplet(contrast: Contrast, margin: float, mining: str) -> Tensor:
    """The mean over chosen triplets, one by one; each has the scores of its pairs."""
    chosen = []
    for pos, neg in anchors(contrast):
        triplets = [(p, n) for p in pos for n in neg]
        if mining == "hard":
            triplets = [(min(pos), max(neg))]
        for p, n in triplets:
            gap = square_distance(n).sqrt() - square_distance(p).sqrt()
            if mining != "semihard" or (p - n > 1e-6 and gap < margin):
                chosen.append((margin - gap).clamp(min=0))
    return torch.stack(chosen).mean() if chosen else 0 * contrast.anchor.sum()


@mean_of_terms
def lifted(contrast: Contrast, margin: float) -> Terms:
    for pos, neg in anchors(contrast):
        near = torch.exp(square_distance(pos).sqrt()).sum()
        far = torch.exp(margin - square_distance(neg).sqrt()).sum()
        yield (torch.log(near) + torch.log(far)).clamp(min=0)


@mean_of_terms
def supcon(contrast: Contrast, temperature: float, form: str = "out") -> Terms:
    for pos, neg in exponentials(contrast, temperature):
        total = pos.sum() * contrast.positive_in_denominator + over(contrast, neg)
        shares = pos / total
        yield -torch.log(shares).mean() if form == "out" else -torch.log(shares.mean())


@mean_of_terms
def siglip(
    contrast: Contrast, temperature: float, bias: float = -10.0, reduction: str = "sum"
) -> Terms:
    for pos, neg in anchors(contrast):
        wrong = torch.log(1 + torch.exp(neg / temperature + bias))
        right = torch.log(1 + torch.exp(-(pos / temperature + bias)))
        yield right.mean() + (wrong.sum() if reduction == "sum" else wrong.mean())


def clip(contrast: Contrast, temperature: float) -> Tensor:
    columns = []
    for i, (pos, _) in enumerate(anchors(contrast)):
        terms = []
        for m in range(len(pos)):  # padding comes last
            own = contrast.anchor_id[i]
            if contrast.positive_key is not None:
                own = contrast.key_id[contrast.positive_key[i, m]]
            cosines = contrast.anchor @ contrast.positives()[i, m]
            neg = torch.exp(cosines[contrast.anchor_id != own] / temperature)
            terms.append(share(contrast, torch.exp(pos[m] / temperature), over(contrast, neg)))
        columns.append(mean(terms))
    return (infonce(contrast, temperature) + mean(columns)) / 2


@mean_of_terms
def hardness(contrast: Contrast, temperature: float, alpha: float) -> Terms:
    for pos, neg in anchors(contrast):
        weights = torch.tensor([math.exp(alpha * s) for s in neg.tolist()], dtype=neg.dtype)
        negatives = over(contrast, weights * torch.exp(neg / temperature))
        yield share(contrast, torch.exp(pos / temperature), negatives)


@mean_of_terms
def macl(contrast: Contrast, temperature: float, alpha: float, threshold: float) -> Terms:
    alignment = expectation(contrast, True, lambda s: s).item()
    for pos, neg in exponentials(
        contrast, temperature * max(0.1, 1 + alpha * (alignment - threshold))
    ):
        odds = pos / neg.sum()  # p / (1 - p)
        yield (torch.log1p(1 / odds) * (1 + odds).detach()).mean()


@mean_of_terms
def weince(
    contrast: Contrast,
    temperature: float,
    margin: float,
    kappa_rho: float,
    kappa_aic: float,
    variant: str = "official_code",
) -> Terms:
    rho = [max(1e-6, 1 - neg.max().item()) for _, neg in anchors(contrast)]
    pivot = sorted(rho)[round(0.2 * (len(rho) - 1))]
    for (pos, neg), near in zip(anchors(contrast), rho, strict=True):
        beta, better = weibull_tail(neg.tolist())
        lam = sigmoid(kappa_rho * math.log(pivot / near)) * sigmoid(kappa_aic * (better - margin))
        slope = lam * (beta if variant == "paper" else 1)
        logits = [
            (1 - lam) * s / temperature - slope * torch.log((1 - s).clamp(min=1e-6))
            for s in (pos, neg)
        ]
        yield share(contrast, logits[0].exp(), over(contrast, logits[1].exp()))


@mean_of_terms
def kept_average(contrast: Contrast, temperature: float, gamma: float, kept: float) -> Terms:
    """Each anchor's -s + tau log u, with the gradient of SogCLR's algorithm: u is a number.

    Before the batch every sample has the moving average `kept`.
    """
    for pos, neg in anchors(contrast):
        mean = torch.exp(neg / temperature).mean()
        u = (1 - gamma) * kept + gamma * mean.item()
        yield temperature * (math.log(u) + (mean - mean.item()) / u) - pos.mean()


def sogclr(contrast: Contrast, temperature: float, gamma: float) -> Tensor:
    """After one batch whose negatives all had the cosine 0.3, as `ready` of the laws leaves it."""
    return kept_average(contrast, temperature, gamma, math.exp(0.3 / temperature))


def isogclr(
    contrast: Contrast,
    temperature: float,
    gamma: float,
    rho: float,
    eta: float,
    beta: float,
    temperature_min: float,
    temperature_max: float,
) -> Tensor:
    """After one batch whose negatives all had the cosine 0.3: the derivative by tau was rho."""
    kept, moved = math.exp(0.3 / temperature), temperature
    if eta:
        moved = min(max(temperature - eta * beta * rho, temperature_min), temperature_max)
    return kept_average(contrast, moved, gamma, kept) + moved * rho


@mean_of_terms
def dhel(contrast: Contrast, temperature: float, variant: str) -> Terms:
    weight = {"official_code": 0.5, "paper": 1}[variant]
    for pos, neg in anchors(contrast):
        yield torch.log(torch.exp(neg / temperature).sum()) - weight * pos.mean() / temperature


@mean_of_terms
def kcl(contrast: Contrast, t: float, gamma: float, kernel: str) -> Terms:
    k: Callable[[Tensor], Tensor] = {
        "gaussian": lambda square: torch.exp(-t * square),
        "log": lambda square: -torch.log(1 + t * square),
        "imq": lambda square: t / torch.sqrt(t**2 + square),
    }[kernel]
    for pos, neg in anchors(contrast):
        yield gamma * k(2 - 2 * neg).mean() - k(2 - 2 * pos).mean()


@mean_of_terms
def free(contrast: Contrast) -> Terms:
    for pos, neg in anchors(contrast):
        yield share(contrast, (1 + pos) / (1 - pos), over(contrast, (1 + neg) / (1 - neg)))


@mean_of_terms
def dystress(contrast: Contrast, temperature: float, spread: float) -> Terms:
    low, high = temperature, temperature + spread
    for scores in anchors(contrast):
        pos, neg = (
            torch.exp(s / (low + 0.5 * (high - low) * (1 + torch.cos(math.pi * (1 + s.detach())))))
            for s in scores
        )
        yield share(contrast, pos, over(contrast, neg))


def gor(contrast: Contrast, mean_weight: float, second_moment_weight: float) -> Tensor:
    first = expectation(contrast, False, lambda s: s)
    second = expectation(contrast, False, lambda s: s**2)
    beyond = max(second - 1 / contrast.anchor.shape[1], 0 * second)
    return mean_weight * first * first + second_moment_weight * beyond


def koleo(contrast: Contrast) -> Tensor:
    nearest = [torch.sqrt(2 - 2 * neg.max()) for _, neg in anchors(contrast)]
    return -mean(torch.log(d + 1e-8) for d in nearest)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def weibull_tail(neg: list[float]) -> tuple[float, float]:
    """The slope of the Weibull line, and by how much its AIC is below the Gumbel line's."""
    size = min(len(neg), max(32, round(0.1 * len(neg))))
    ranks = range(max(1, size // 20) + 1, size + 1)
    if len(ranks) < 3:
        return 0.0, -math.inf
    hardest = sorted(neg, reverse=True)
    x = [math.log(max(1e-6, 1 - hardest[rank - 1])) for rank in ranks]
    log_f = [math.log(rank / (size + 1)) for rank in ranks]
    slope, weibull = fitted(x, log_f)
    other, gumbel = fitted(x, [math.log(-y) for y in log_f])
    weibull, gumbel = weibull + 1e6 * (slope <= 0), gumbel + 1e6 * (other >= 0)
    return max(0.0, slope), len(x) * (math.log(gumbel / len(x)) - math.log(weibull / len(x)))


def fitted(x: list[float], y: list[float]) -> tuple[float, float]:
    """The slope of least squares and the sum of the squared residuals."""
    a, b = sum(x) / len(x), sum(y) / len(y)
    pairs = list(zip(x, y, strict=True))
    slope = sum((u - a) * (v - b) for u, v in pairs) / max(1e-12, sum((u - a) ** 2 for u in x))
    return slope, max(1e-12, sum((v - b - slope * (u - a)) ** 2 for u, v in pairs))


# an oracle has the name of its loss
ORACLES: dict[str, Oracle] = {name: globals()[name] for name in LOSSES if name in globals()}

# between which two numbers each parameter is drawn, and others that are drawn as often as the ends;
# temperatures are between 0.1 and 1
DRAWN: dict[str, tuple[float, ...]] = {
    "debiased.tau_plus": (0, 0.5),
    "hcl.tau_plus": (0, 0.5),
    "hcl.beta": (0, 2),
    "rince.q": (0.01, 1),
    "rince.lam": (0.01, 1),
    "alpha_cl.p": (1, 6, 2),
    "adnce.mu": (0.3, 4),
    "adnce.sigma": (0.3, 2),
    "phi_dro.k": (1.05, 2),
    "attentionnce.d_pos": (0.1, 4),
    "attentionnce.d_neg": (0.1, 10),
    "cpc.alpha": (0, 1),
    "mlcpc.alpha": (0, 1),
    "rmlcpc.alpha": (0, 1),
    "rmlcpc.gamma": (1.1, 3, 0.5),
    "renyi.gamma": (1.1, 3, 0.5),
    "nwj.alpha": (0, 1),
    "align_uniform.alpha": (0.5, 4, 1),
    "align_uniform.t": (0.3, 4, 1),
    "align_uniform.weight": (0, 3),
    "dcl_w.sigma": (0.2, 3),
    "f_micl.sigma": (0.6, 2),
    "f_micl.weight": (0.2, 10),
    "f_micl.k": (1.05, 3, 2),
    "spectral.mu": (0.1, 10),
    "circle.margin": (0.05, 0.9),
    "circle.gamma": (1, 100),
    "multi_similarity.alpha": (0.5, 8),
    "multi_similarity.beta": (1, 60),
    "multi_similarity.base": (0, 1),
    "multi_similarity.epsilon": (0.05, 1, 2),
    "triplet.margin": (0.05, 1.5),
    "lifted.margin": (0.1, 2),
    "siglip.bias": (-10, 2, 0),
    "hardness.alpha": (0, 10),
    "macl.alpha": (0, 1),
    "macl.threshold": (0, 1),
    "weince.margin": (-6, 6),
    "weince.kappa_rho": (1, 20),
    "weince.kappa_aic": (0.2, 2),
    "sogclr.gamma": (0.05, 1),
    "isogclr.gamma": (0.05, 1),
    "isogclr.rho": (0, 1),
    "isogclr.eta": (0, 0.5),
    "isogclr.beta": (0.1, 1),
    "isogclr.temperature_min": (0.05, 0.2),
    "isogclr.temperature_max": (0.3, 1),
    "kcl.t": (0.1, 4),
    "kcl.gamma": (0.5, 20),
    "dual_temperature.ratio": (0.5, 20, 1),
    "dystress.spread": (0, 1),
    "gor.mean_weight": (0, 3),
    "gor.second_moment_weight": (0, 3),
}
