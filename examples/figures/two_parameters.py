r"""Score over two parameters of a loss (AttentionNCE, Figure 5).

    python examples/figures/two_parameters.py OUT.svg --loss adnce --names mu sigma \\
        --first 0.3 0.7 --second 0.5 1

The paper's claim: d_pos and d_neg matter, and the best pair differs between data sets.
"""

from statistics import mean

import numpy as np
from common import arguments, common, panels, save

import contrastbench as cb


def main(given=None):
    """Train at each pair of values, and draw the scores as a map."""
    further = [
        *(("names", ["d_pos", "d_neg"]), ("first", [0.5, 1.0, 4.0]), ("second", [0.5, 1.0, 4.0])),
    ]
    losses = ["attentionnce(temperature=0.5)"]
    args = arguments(__doc__, "image", losses, further, given)
    (loss, *_), (one, two) = args.losses, args.names
    scores = np.zeros((len(args.first), len(args.second)))
    for i, a in enumerate(args.first):
        for j, b in enumerate(args.second):
            params = {**loss.params, one: a, two: b}
            recipe = {**args.recipe, **({"positives": 2} if args.domain == "image" else {})}
            records = cb.run(args.domain, loss.name, params=params, recipe=recipe, **common(args))
            scores[i, j] = mean(record["metrics"][record["main"]] for record in records)
    drawing, (axes,) = panels(1, f"{loss.label}, {args.title}")
    axes.imshow(scores, cmap="viridis")
    for (i, j), score in np.ndenumerate(scores):
        axes.text(j, i, f"{score:.1f}", ha="center", va="center", color="white")
    axes.set_xticks(range(len(args.second)), [f"{value:g}" for value in args.second])
    axes.set_yticks(range(len(args.first)), [f"{value:g}" for value in args.first])
    axes.set(xlabel=two, ylabel=one)
    print(f"from {scores.min():.1f} to {scores.max():.1f}")
    save(drawing, args.out)


if __name__ == "__main__":
    main()
