"""The linear classifiers that are trained on views: what each one is, declared once.

The recipe shows these settings to audits, and `scoring/linear_probe.py` trains by them.
"""

from dataclasses import dataclass
from typing import Any, Literal

# all that `probe` of the recipe may be; those of PROBES are trained on views
OfPapers = Literal["paper", "strict", "renyicl", "renyicl-imagenet", "simclr-imagenet"]
Name = Literal["lbfgs", "knn", "quick", "retrieval", "recall", OfPapers]


@dataclass(frozen=True)
class Probe:
    """A linear classifier trained on views of the training images, through the frozen encoder."""

    optimizer: Literal["adam", "sgd"]
    lr: float
    batch: int
    epochs: int
    views: Literal["none", "base"]  # crops and flips, or SimCLR's
    weight_decay: float = 0
    momentum: float = 0.9  # of sgd
    nesterov: bool = False
    cosine: bool = False
    # of batch norm: released code leaves the encoder in training mode
    statistics_move: bool = False
    # of first weights, with zero biases; None: PyTorch's own
    deviation: float | None = None
    top_5: bool = False  # whether the first five classes are scored too

    @property
    def settings(self) -> dict[str, Any]:
        momentum = f", momentum {self.momentum}" if self.optimizer == "sgd" else ""
        return {
            "optimizer": self.optimizer + momentum + ", Nesterov's" * self.nesterov,
            "lr": self.lr,
            "weight decay": self.weight_decay,
            "schedule": "cosine" if self.cosine else "constant",
            "batch size": self.batch,
            "epochs": self.epochs,
            "views": "crops and flips" if self.views == "none" else self.views,
            "epoch scored": "the last",
            "batch norm": "statistics move" if self.statistics_move else "still",
        }


PROBES: dict[str, Probe] = {
    # linear.py of DCL, HCL and ADNCE, and the score that after the last epoch. AttentionNCE's is
    # the same but for its rate on STL-10, and it reports the best epoch on the test set
    "paper": Probe(
        "adam", 1e-3, 512, 100, "base", weight_decay=1e-6, statistics_move=True, top_5=True
    ),
    # ours
    "strict": Probe("adam", 1e-3, 512, 100, "base", weight_decay=1e-6),
    # RényiCL's appendix B.4, which leaves batch and schedule open; the momentum of its
    # main_lincls.py
    "renyicl": Probe("sgd", 0.3, 512, 100, "none", cosine=True),
    # its B.3: 0.1 for 256, scaled to 1,024. main_lincls.py, too, keeps the encoder in evaluation
    # mode; it reports the best epoch on the test set
    "renyicl-imagenet": Probe(
        "sgd", 0.1 * 1024 / 256, 1024, 90, "none", cosine=True, deviation=0.01, top_5=True
    ),
    # appendix B.6 of Chen et al. (2020); its code starts the classifier from zero
    "simclr-imagenet": Probe(
        "sgd", 1.6, 4096, 90, "none", nesterov=True, cosine=True, deviation=0.0, top_5=True
    ),
}
