"""The terms of a sum, step by step, in a training with and without them (DASL, Figure 8).

    python examples/figures/terms.py OUT.svg --loss infonce --loss "infonce + 0.1*dar"

The paper's claim: a loss alone leaves the variation of differences large, and difference alignment
lowers it. Each term of any of the losses is followed in the trainings of all.
"""

import torch
from common import arguments, followed, panels, save

from contrastbench.losses import get_loss
from contrastbench.losses.expression import parse


def main(given=None):
    """Train each loss, and draw a panel for each term."""
    losses = ["infonce", "infonce + 0.1*dar", "infonce + 0.5*dar"]
    args = arguments(__doc__, "image", losses, given=given)
    names = list(dict.fromkeys(name for loss in args.losses for _, name in parse(loss.name)))
    terms = [get_loss(name) for name in names]
    drawing, axes = panels(len(names), args.title)

    def measured(contrasts):
        return torch.stack([sum(term(one) for one in contrasts) for term in terms])

    for loss in args.losses:
        steps = torch.stack(followed(args, loss, measured)[2])
        width = max(1, len(steps) // 60)
        smooth = steps[: len(steps) // width * width].view(-1, width, len(names)).mean(dim=1)
        for one, name, values in zip(axes, names, smooth.T.tolist(), strict=True):
            one.plot([(k + 1) * width for k in range(len(values))], values, label=loss.label)
            one.set(xlabel="step", title=name)
        last = steps[-len(steps) // 5 :].mean(dim=0).tolist()
        ends = ", ".join(f"{name} {value:.2f}" for name, value in zip(names, last, strict=True))
        print(f"{loss.label}: {ends} in the last fifth")
    axes[0].legend(fontsize=7)
    save(drawing, args.out)


if __name__ == "__main__":
    main()
