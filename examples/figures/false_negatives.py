"""Score against temperature, with and without false negatives (ADNCE, Figure 1).

    python examples/figures/false_negatives.py OUT.svg --domain image

Without them (r = 0) samples of an anchor's class are no negatives; with all (r = 1) labels are not
used. The paper's claim: the more negatives are false, the larger is the best temperature.
"""

from statistics import mean

from common import arguments, common, panels, save

import contrastbench as cb


def main(given=None):
    """Train at each temperature with and without false negatives, and draw the scores."""
    args = arguments(
        *(__doc__, "tabular", ["infonce"]),
        further=[("temperatures", [0.05, 0.1, 0.2, 0.4, 0.8])],
        given=given,
    )
    drawing, (axes,) = panels(1, f"{args.losses[0].label}, {args.title}")
    for kept in (False, True):
        recipe = {"pairing": "both_views", **args.recipe, "false_negatives": kept}
        scores = []
        for temperature in args.temperatures:
            params = {**args.losses[0].params, "temperature": temperature}
            records = cb.run(
                args.domain, args.losses[0].name, params=params, recipe=recipe, **common(args)
            )
            scores.append(mean(one["metrics"][one["main"]] for one in records))
        best = args.temperatures[scores.index(max(scores))]
        relative = [score - max(scores) for score in scores]
        label = f"r = {int(kept)}: best {max(scores):.1f} at {best:g}"
        axes.plot(args.temperatures, relative, "o-", label=label)
        print(label)
    axes.set(xscale="log", xlabel="temperature", ylabel="score less the best of its curve")
    axes.legend()
    save(drawing, args.out)


if __name__ == "__main__":
    main()
