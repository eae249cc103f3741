"""How much a loss's gradient weighs a negative, by its score (ADNCE, Figure 3).

    python examples/figures/weights.py OUT.svg --loss "hcl(temperature=0.5)" --loss mine.py:Mine

The derivative of the loss by each negative's cosine, one on average: for anchors whose positive has
0.8, and 400 negatives spread evenly over [-1, 1]. No data are read.
"""

import torch
from common import arguments, panels, save

from contrastbench.losses.base import Scores

LOSSES = [
    *("infonce(temperature=0.1)", "infonce(temperature=0.5)"),
    *(f"adnce(temperature=0.5, mu={mu}, sigma=0.5)" for mu in (0.3, 0.7)),
]


def weights(loss, neg):
    """Return the weight of each negative in the gradient, one on average."""
    scores = neg.repeat(2, 1).requires_grad_()
    pos, count = torch.full((2, 1), 0.8, dtype=neg.dtype), torch.full((2, 1), float(len(neg)))
    loss.combine(loss.terms(Scores(pos, scores, count.to(neg.dtype)))).backward()
    pull = scores.grad.sum(dim=0)
    return pull / pull.abs().mean()


def main(given=None):
    """Draw the weights of each loss."""
    args = arguments(__doc__, losses=LOSSES, given=given)
    drawing, (axes,) = panels(1, "weight of a negative in the gradient")
    neg = torch.linspace(-1, 1, 400, dtype=torch.float64)
    for loss in args.losses:
        found = weights(loss.make(), neg)
        axes.plot(neg.tolist(), found.tolist(), label=loss.label)
        print(f"{loss.label}: most at {neg[found.argmax()]:.2f}")
    axes.set(xlabel="cosine of the negative", ylabel="weight", ylim=(0, 8))
    axes.legend(fontsize=7)
    save(drawing, args.out)


if __name__ == "__main__":
    main()
