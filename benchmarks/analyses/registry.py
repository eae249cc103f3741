"""The analyses by name, as `bench analyse` lists and runs them; imports no torch."""

from contrastbench.benchmarks.analyses.declaration import Analysis, Parameter

TRAINING = ("domain", "dataset", "recipe", "tiny", "seeds", "data_root", "device")

ANALYSES = {
    "scores": Analysis(
        "Measure cosines during training (ADNCE, Fig. 2).",
        "These are mean and variance over negatives, and mean over positives.",
        (
            "bench analyse scores --domain image "
            '--loss "infonce(temperature=0.2)" --loss "infonce(temperature=0.8)"',
        ),
        TRAINING,
    ),
    "false-negatives": Analysis(
        "Measure weights of false negatives (ADNCE, Fig. 1).",
        "The analysis keeps a share of the false negatives, and trains once for each share and "
        "temperature. It measures their scores and weights against the temperature.",
        ("bench analyse false-negatives --domain graph --loss infonce --with kept=0,1",),
        TRAINING,
        {
            "kept": Parameter(
                float, (0.0, 0.5, 1.0), "Shares of the false negatives that are kept.", high=1
            ),
            "temperatures": Parameter(
                float, (0.2, 0.4, 0.6, 0.8, 1.0), "Temperatures to train with."
            ),
        },
        one_loss=True,
    ),
    "terms": Analysis(
        "Plot each term of a loss by step (DASL, Fig. 8).",
        "Every term is measured in the training of every loss.",
        ('bench analyse terms --domain image --loss infonce --loss "infonce + 0.5*dar"',),
        TRAINING,
    ),
    "learning-curve": Analysis(
        "Plot the score by epoch over seeds (ADNCE, Fig. 4).",
        "The plot shows mean and standard deviation. Cells that `bench run` has recorded are not "
        "trained again.",
        (
            "bench analyse learning-curve --domain image "
            "--loss infonce --loss adnce --seeds 0-2 --with every=5",
        ),
        (*TRAINING, "results"),
        {"every": Parameter(int, 1, "Number of epochs between two scores.", low=1)},
        one_seed=False,
    ),
    "weights": Analysis(
        "Plot gradient weights by score (ADNCE, Fig. 3).",
        "These are the weights that the gradient puts on negatives and on positives.",
        (
            "bench analyse weights "
            '--loss "infonce(temperature=0.2)" --loss "adnce(mu=0.7, sigma=0.5)"',
        ),
    ),
    "mutual-information": Analysis(
        "Estimate information of Gaussians (RényiCL, Fig. 2).",
        "Losses that bound a divergence estimate it by a critic, where the truth is known.",
        (
            'bench analyse mutual-information --loss "mlcpc(alpha=0.01)" --loss dv '
            "--with critic=joint",
        ),
        ("tiny", "seeds", "device"),  # it draws its own data
        {
            "critic": Parameter(
                str,
                ("separable",),
                "Critic; joint is the paper's.",
                choices=("separable", "joint"),
            ),
            "information": Parameter(
                float,
                (2.0, 4.0, 6.0, 8.0, 10.0),
                "True information in nats, in this order.",
                high=100,  # of more, float32 holds no Gaussians: rho is 1 - 2e-5 there
            ),
            "steps": Parameter(int, 4000, "Number of training steps at each information.", low=2),
        },
        losses=tuple(f"{name}(alpha=0.0078125)" for name in ("cpc", "mlcpc", "rmlcpc", "nwj")),
    ),
}
