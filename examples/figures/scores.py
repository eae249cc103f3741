"""Variance of the negatives' scores and mean of the positives', step by step (ADNCE, Figure 2).

    python examples/figures/scores.py OUT.svg --domain graph --loss adnce

The paper's claim: the temperature controls the variance of the negatives' scores, and a smaller one
gives a smaller variance.
"""

import torch
from common import arguments, followed, panels, save

from contrastbench.losses.base import block_scores

NAMES = ("variance of the negatives' cosines", "mean of the positives' cosines")


def moments(contrasts):
    """Return both numbers over the anchors of a step; a positive is no negative."""
    found = []
    for contrast in contrasts:
        scores = block_scores(contrast, slice(None))
        hole = scores.hole
        if contrast.positive_key is not None:
            hole = hole.scatter(1, contrast.positive_key, True)
        neg, count = scores.neg.masked_fill(hole, 0), (~hole).sum(dim=1)
        mean = neg.sum(dim=1) / count
        variance = (neg - mean[:, None]).masked_fill(hole, 0).square().sum(dim=1) / count
        found.append(torch.stack([variance.mean(), scores.mean_pos(scores.pos).mean()]))
    return torch.stack(found).mean(dim=0)


def main(given=None):
    """Follow each loss, and draw its curves, each point the mean of neighbouring steps."""
    losses = [f"infonce(temperature={tau})" for tau in (0.1, 0.2, 0.4, 0.8)]
    args = arguments(__doc__, "image", losses, given=given)
    drawing, axes = panels(2, args.title)
    for loss in args.losses:
        steps = torch.stack(followed(args, loss, moments)[2])
        width = max(1, len(steps) // 60)
        smooth = steps[: len(steps) // width * width].view(-1, width, 2).mean(dim=1)
        for one, name, values in zip(axes, NAMES, smooth.T.tolist(), strict=True):
            at = [(k + 1) * width for k in range(len(values))]
            one.plot(at, values, label=loss.label)
            one.set(xlabel="step", ylabel=name)
        last = steps[-len(steps) // 5 :].mean(dim=0)
        print(f"{loss.label}: variance {last[0]:.4f}, positives {last[1]:.3f} in the last fifth")
    axes[0].legend(fontsize=7)
    save(drawing, args.out)


if __name__ == "__main__":
    main()
