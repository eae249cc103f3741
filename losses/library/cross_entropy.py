"""Cross-entropy over cosines with a learned weight of each class: a supervised network."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from contrastbench.losses.base import Loss
from contrastbench.losses.contrast import Contrast, unit, unless
from contrastbench.losses.ranges import TEMPERATURE, declare

NO_CLASSES = (
    "cross_entropy has a weight for each class, and the ids of this contrast are no classes from "
    "0: pair by same_class, after prepare(classes, dim)"
)


class CrossEntropy(Loss):
    r"""Normalised cross-entropy of the classes; positives and keys are not looked at.

    .. math:: -\frac{1}{N} \sum_i \log
       \frac{e^{s(z_i, w_{y_i}) / \tau}}{\sum_c e^{s(z_i, w_c) / \tau}}

    Wang et al., "NormFace: L2 Hypersphere Embedding for Face Verification", ACM Multimedia 2017,
    equation 5, https://arxiv.org/abs/1704.06369. Here s is the cosine, and the scale is 1 /
    temperature. The weights w_c of a class are learned with the embeddings. This is a supervised
    loss: it shows the score that labels reach with the same encoder.

    Args:
        temperature: > 0.

    Raises:
        ValueError: a parameter out of range.

    >>> import torch
    >>> from contrastbench.losses import get_loss, same_class
    >>> loss = get_loss("cross_entropy", temperature=1.0)
    >>> loss.prepare(classes=2, dim=4)
    >>> _ = loss.weights.data.copy_(torch.eye(2, 4))
    >>> loss(same_class(torch.eye(2, 4), torch.eye(2, 4), torch.tensor([0, 1])))
    tensor(0.3133, grad_fn=<NllLossBackward0>)
    """

    needs_classes = True
    ranges = declare(temperature=TEMPERATURE)

    temperature: float = 0.1

    def _set_up(self) -> None:
        self.weights = nn.Parameter(torch.empty(0, 0))

    def prepare(self, classes: int, dim: int) -> None:
        self.weights = nn.Parameter(torch.empty(classes, dim))
        nn.init.normal_(self.weights)

    def forward(self, contrast: Contrast) -> Tensor:
        ids, classes = contrast.anchor_id, len(self.weights)
        wrong = (ids.min() < 0) | (ids.max() >= classes)
        anchor = unless(wrong, contrast.anchor, NO_CLASSES)
        with torch.autocast(anchor.device.type, enabled=False):
            s = anchor @ unit(self.weights).to(anchor).T  # (A, classes)
            # where ids are wrong on a device the anchors are NaN already, and an index must be one
            return functional.cross_entropy(s / self.temperature, ids.clamp(0, classes - 1))
