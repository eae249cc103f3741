"""Score by epoch, mean and deviation over seeds (ADNCE, Figure 4).

    python examples/figures/learning_curves.py OUT.svg --domain graph --loss infonce --loss adnce

The paper's claim: ADNCE converges faster than SimCLR.
"""

from statistics import mean, pstdev

from common import arguments, common, panels, save

import contrastbench as cb


def main(given=None):
    """Train each loss with each seed, score on the way, and draw."""
    losses = ["infonce(temperature=0.5)", "adnce(temperature=0.5, mu=0.7, sigma=0.5)"]
    further = [("epochs", [1, 2, 4, 8, 16, 25])]
    args = arguments(__doc__, "image", losses, further, given)
    *on_the_way, last = [1, 2] if args.tiny else args.epochs
    recipe = {**args.recipe, "epochs": last, "score_at": on_the_way}
    drawing, (axes,) = panels(1, args.title)
    for loss in args.losses:
        records = cb.run(args.domain, loss.name, params=loss.params, recipe=recipe, **common(args))
        main_metric = records[0]["main"]
        names = [*(f"{main_metric}@{epoch}" for epoch in on_the_way), main_metric]
        scores = [[one["metrics"][name] for one in records] for name in names]
        axes.errorbar(
            *([*on_the_way, last], [mean(some) for some in scores]),
            yerr=[pstdev(some) for some in scores],
            **{"fmt": "o-", "capsize": 2, "label": loss.label},
        )
        print(loss.label, *(f"{mean(some):.1f}" for some in scores))
    axes.set(xlabel="epoch", ylabel=main_metric)
    axes.legend(fontsize=7)
    save(drawing, args.out)


if __name__ == "__main__":
    main()
