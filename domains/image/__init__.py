"""The face of images, which imports no numerics: their declaration, and names for users."""

from contrastbench.domains.declaration import Declaration
from contrastbench.domains.image.data.datasets import DATASETS, SOURCES
from contrastbench.domains.image.recipe import PROTOCOL_NAMES, ImageRecipe

__all__ = ["DECLARATION", "ImageRecipe"]

DECLARATION = Declaration(
    summary="ResNets by SimCLR or MoCo v3, linear probe and kNN",
    adapter="contrastbench.domains.image.domain:ImageDomain",
    recipe=ImageRecipe,
    datasets=DATASETS,
    default="shifted-digits",
    tiny={"epochs": 1, "limit": 200, "batch_size": 32, "width": 0.125, "projection": (32, 16)},
    checked={"size": 32},  # larger pictures are decoded to it
    extra="contrastbench[image]",
    needs=("PIL", "torchvision"),
    sources=SOURCES,
    protocols=PROTOCOL_NAMES,
    scorer="contrastbench.domains.image.scoring.protocols:score",
    opener="contrastbench.domains.image.networks.exports:open_encoder",
    names=True,
    perf="contrastbench.benchmarks.perf.image",
)
