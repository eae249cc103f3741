"""Losses of pytorch-metric-learning with other parts than its defaults."""

from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.reducers import MeanReducer


class AllTriplets(TripletMarginLoss):
    """The mean over all triplets, also those whose term is zero."""

    def __init__(self, margin=0.05):
        super().__init__(margin=margin, reducer=MeanReducer())
