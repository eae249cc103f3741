r"""Information between views beside the score, by how hard the views are (RényiCL, Figure 1).

    python examples/figures/views_information.py OUT.svg --domain graph --key drop_ratio \\
        --values 0.05 0.1 0.2 0.4

The estimate is Algorithm 2 (appendix C.3) with the critic f = cosine / temperature: the positive's
score less the log-mean of the negatives' exponentials, over the last fifth of the steps. The
paper's claim: harder views share less information and make better features.
"""

import torch
from common import arguments, followed, panels, save

from contrastbench.benchmarks.records.command import parse_value
from contrastbench.losses.base import block_scores


def information(contrasts, temperature):
    """Return the estimate in nats over the anchors of a step; a positive is no negative."""
    found = []
    for contrast in contrasts:
        scores = block_scores(contrast, slice(None))
        neg = scores.neg / temperature
        if contrast.positive_key is not None:
            neg = neg.scatter(1, contrast.positive_key, -torch.inf)
        count = (~neg.isneginf()).sum(dim=1)
        log_mean = neg.logsumexp(dim=1) - count.log()
        found.append((scores.mean_pos(scores.pos / temperature) - log_mean).mean())
    return torch.stack(found).mean()


def main(given=None):
    """Train with each kind of views and each loss, and draw scores against information."""
    further = [("key", "views"), ("values", ["none", "base", "hard"])]
    losses = ["infonce(temperature=0.5)", "rmlcpc(temperature=0.5)"]
    args = arguments(__doc__, "image", losses, further, given)
    drawing, (axes,) = panels(1, args.title)
    for loss in args.losses:
        temperature, points = loss.complete.params["temperature"], []
        for value in args.values:
            opened, model, seen = followed(
                *(args, loss, lambda contrasts, tau=temperature: information(contrasts, tau)),
                **{args.key: parse_value(value)},
            )
            result = opened.evaluate(model)
            nats = torch.stack(seen[-len(seen) // 5 :]).mean().item()
            points.append((nats, result.metrics[result.main]))
            axes.annotate(value, points[-1], fontsize=7, xytext=(3, 3), textcoords="offset points")
            print(f"{loss.label}, {value}: {nats:.2f} nats, {result.main} {points[-1][1]:.1f}")
        axes.plot(*zip(*points, strict=True), "o-", label=loss.label)
    axes.set(xlabel="information between views, nats", ylabel=result.main)
    axes.legend(fontsize=7)
    save(drawing, args.out)


if __name__ == "__main__":
    main()
