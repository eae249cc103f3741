"""The recipe of images: how they are trained on and scored. It imports no numerics."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from contrastbench.domains.image.data.datasets import DATASETS, SOURCES
from contrastbench.domains.reading import refuse
from contrastbench.domains.recipe import ClassedRecipe, Misfits, Presets, Unused, Width, added
from contrastbench.errors import UserError
from contrastbench.losses.pairing import Pairing

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


# what each one is, declared once: audits are shown it, and `scoring/linear_probe.py` trains by it
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
# by which any encoder is scored
PROTOCOL_NAMES = (
    *("linear", "knn", "transfer", "few-shot", "few-shot-all", "retrieval", "semi-supervised"),
)
SMALL_SIDE = 96  # pixels a side up to which the published sets of photographs are kept as they are
Operations = Annotated[int, Field(ge=0)]
Magnitude = Annotated[float, Field(ge=0, le=10)]
SomeShare = Annotated[float, Field(gt=0, le=1)]
Network = Literal["resnet18", "resnet34", "resnet50", "convnet", "bn_inception"]
Torchvisions = Literal["torchvision:resnet18", "torchvision:resnet34", "torchvision:resnet50"]
PretrainedNetwork = Literal[Torchvisions, "pretrainedmodels:bn_inception"]
STEM = 64  # pixels a side of views up to which a network's stem keeps the size
INCEPTION = "bn_inception"
CONVNET = "convnet"  # four convolutions
OWN_START = (INCEPTION, CONVNET)  # networks whose weights start in one way
HALVED = 32  # pixels of an image for one that BN-Inception ends with
WEIGHT_PACKAGES = ("torchvision:", "pretrainedmodels:")  # packages that name weights of ImageNet
VOTE_TEMPERATURE = 0.5  # of the neighbours' votes
KINDS = {source.kind for source in SOURCES}  # of sets of one's own


def is_set(name: str) -> bool:
    return name in DATASETS or name.partition(":")[0] in KINDS


MISFITS: Misfits = {  # and what to do
    "score_on={found}: it is no set, and begins with none of " + ", ".join(PROTOCOL_NAMES): (
        lambda r: next((entry for entry in r.scored_sets if not is_set(entry)), "")
    ),
    "score_on={found}: there is no such set (bench list datasets)": (
        lambda r: next(
            (x for x in r.further_scores if (s := x.partition(":")[2]) and not is_set(s)), ""
        )
    ),
    "local_crops are used only by pairing=query_key: set it or remove local_crops": (
        lambda r: r.local_crops and r.pairing != "query_key"
    ),
    "local_size={r.local_size} is larger than the views' {r.size}": (
        lambda r: r.local_crops and r.local_size > r.size
    ),
    "positives need pairing=both_views or pairing=balanced: set one or remove positives": (
        lambda r: r.positives and r.pairing not in ("both_views", "balanced")
    ),
    "pairing=balanced needs other images of each class: positives=3": (
        lambda r: r.pairing == "balanced" and not r.positives
    ),
    "batch_size={r.batch_size} is no multiple of the {r.samples_per_class} images of a class": (
        lambda r: r.pairing == "balanced" and r.batch_size % r.samples_per_class
    ),
    "asymmetric views are two with a blur of their own: "
    "leave out positives, blur, jitter_strength, views=none": (
        lambda r: (
            r.asymmetric
            and (r.positives or (r.blur, r.jitter_strength) != (None, 0.5) or r.views == "none")
        )
    ),
    "rotation={r.rotation} needs a warp: warp=border": lambda r: r.rotation and not r.warp,
    "warp={r.warp} is of stored pictures: leave out whole_pictures": (
        lambda r: r.warp and r.whole_pictures
    ),
    "probe_lr needs a probe that is trained on views, not {r.probe}": (
        lambda r: r.probe_lr and r.probe not in PROBES
    ),
    f"{{r.encoder}} needs width=1.0 and a size of more than {STEM} pixels": (
        lambda r: r.pretrained and (r.width != 1 or r.size <= STEM)
    ),
    f"{{r.encoder}} needs images of {HALVED}, 64, ... 224 pixels: size=224": (
        lambda r: r.encoder.endswith(INCEPTION) and (r.size % HALVED or (r.test_size or 0) % HALVED)
    ),
    "eval_every needs validation images to choose by: give validation=0.1": (
        lambda r: r.eval_every and not r.validation
    ),
}


class ImageRecipe(ClassedRecipe):
    """SimCLR, MoCo v3 and supervised pairs on images; defaults for the digits on a CPU.

    The presets, with their sources, stand in `presets.yaml`.

    >>> ImageRecipe(encoder="resnet50").width
    0.25
    """

    presets: ClassVar[Any] = Presets(Path(__file__).with_name("presets.yaml"))
    of_training: ClassVar[frozenset[str]] = ClassedRecipe.of_training | {
        *("warmup", "eval_every", "views", "min_scale", "noisy_crop", "flip", "asymmetric"),
        *("randaugment", "jitter_strength", "warp", "rotation", "local_crops", "local_size"),
        *("positives", "pairing", "ema", "predictor", "predictor_bias", "predictor_width"),
        *("projection", "projection_norm", "chunk"),
    }
    optional: ClassVar[frozenset[str]] = ClassedRecipe.optional | {"eval_every", "noisy_crop"}
    unused: ClassVar[Unused] = {
        **ClassedRecipe.unused,
        ("chunk", "compile", "probe_lr", "score_on"): lambda r: True,
        ("ema", "predictor", "local_crops"): lambda r: r.pairing != "query_key",
        ("predictor_bias", "predictor_width"): (
            lambda r: r.pairing != "query_key" or not r.predictor
        ),
        ("whole_pictures",): lambda r: r.size <= SMALL_SIDE,
        ("positives",): lambda r: r.pairing not in ("both_views", "balanced"),
        ("knn_k", "knn_temperature"): lambda r: r.ranks and not r.eval_every,
        ("stem_init", "zero_init_residual"): lambda r: r.pretrained or r.encoder in OWN_START,
        ("local_size",): lambda r: not r.local_crops,
        ("warp", "rotation"): lambda r: r.warp is None,
        ("scored",): lambda r: r.scored in (None, r.scored_by_default),
    }
    misfits: ClassVar[Misfits] = {**ClassedRecipe.misfits, **MISFITS}

    epochs: int = Field(25, ge=0)
    batch_size: int = Field(64, ge=2)
    lr: float = Field(2e-3, gt=0)
    weight_decay: float = Field(1e-6, ge=0)
    schedule: Literal["constant", "cosine", "linear"] = "cosine"
    warmup: float = Field(0.0, ge=0)
    """epochs over which the learning rate rises from zero"""
    groups: str | None = added(None)
    """pattern of names, or array, of one's own: equal images stay in one part"""
    eval_every: int | None = Field(None, ge=1)
    """steps between choices of the best model by validation kNN"""
    validation: float = Field(0.1, ge=0, lt=1)
    """share of the training images kept out to choose by"""
    size: int = Field(8, ge=8)
    """of views, in pixels"""
    test_size: int | None = Field(None, ge=8)
    """of scored images; as the views unless given"""
    whole_pictures: bool = False
    """views are of whole pictures; else files are stored as square middles"""
    views: Literal["none", "base", "hard"] = "base"
    """none: crops and flips alone"""
    min_scale: float = Field(0.4, gt=0, lt=1)
    """smallest share of a picture that a view shows"""
    warp: Literal["zeros", "border", "reflection"] | None = added(None)
    """crops and flips by one sampling with such edges, colours by one matrix: fast"""
    rotation: float = added(0.0, ge=0)
    """largest angle of a warp, in radians"""
    noisy_crop: SomeShare | None = added(None)
    """share of a view that a further random crop shows in its place"""
    flip: float = Field(0.0, ge=0, le=1)
    """probability that a view is mirrored"""
    blur: float | None = Field(None, ge=0, le=1)
    """probability of Gaussian blur, in place of the views' own"""
    jitter_strength: SomeShare = added(0.5)
    """of colours: 1 is SimCLR's on ImageNet, 0.5 that of small images"""
    asymmetric: bool = False
    """BYOL's and MoCo v3's two views: one blurred, the other solarised"""
    randaugment: tuple[Operations, Magnitude] | None = Field(None, strict=False)
    """timm's operations in a row, their magnitude of 10, in place of the views' own"""
    local_crops: int = Field(0, ge=0)
    """small crops, further queries of query_key"""
    local_size: int = Field(96, ge=8)
    positives: int = Field(0, ge=0)
    """further views of both_views, other images of a class of balanced"""
    pairing: Literal[
        "both_views", "own_view", "query_key", "both_ways", "supervised", "balanced"
    ] = "both_views"
    """own_view: negatives of the own view alone, for dhel and kcl; both_ways: those of the other
    view alone; supervised: two views of each image; balanced: one, of metric learning"""
    ema: float = Field(0.99, ge=0, le=1)
    """of query_key's target network; rises to 1, or 0: it stays the network itself"""
    predictor: bool = True
    """query_key's prediction head"""
    predictor_bias: bool = True
    """of that head's last layer"""
    predictor_width: Width | None = added(None)
    """hidden width of that head; by default layers as those of the projection"""
    encoder: Literal[Network, PretrainedNetwork, "raw"] = "resnet18"
    """PACKAGE:NAME: with its weights of ImageNet; raw: pixels"""
    width: float = Field(0.25, gt=0, le=4)
    """times the published number of channels"""
    stem_init: Literal["kaiming", "pytorch"] = "kaiming"
    """pytorch: the first convolution as nn.Conv2d draws it"""
    zero_init_residual: bool = False
    """every residual block starts as its shortcut (Goyal et al. 2017)"""
    projection: tuple[Width, ...] = Field((512, 128), strict=False, min_length=1, max_length=3)
    """hidden widths and the last one; one width: a linear layer"""
    projection_norm: bool = False
    """batch norm without weights behind the projection, as MoCo v3"""
    precision: Literal["float32", "bf16"] = "float32"
    """of the networks' products; scores are float32"""
    # what was once a setting stands in records
    chunk: None = None
    """a batch is embedded at once"""
    compile: Literal[False] = False
    """give --compile, which no key has"""
    probe: Name = "lbfgs"
    """retrieval, recall: none is fitted, test images find their class; quick: logistic regression
    alone"""
    scored: Literal["features", "embedding"] | None = added(None)
    """before or behind the projection; behind it by default for balanced alone"""
    probe_lr: float | None = Field(None, gt=0)
    """of the probes that are trained on views, in place of their own"""
    knn_k: int = Field(20, ge=1)
    knn_temperature: Annotated[float, Field(gt=0)] | Literal["loss"] = VOTE_TEMPERATURE
    """loss: that of the loss, 0.5 where it has none"""

    score_on: tuple[str, ...] = added((), strict=False)
    """what scores one training: sets, of which the first trains and each has a record; or, in the
    same record, protocols of bench score, on this set or transfer:DTD"""

    def beside(self, loss: Mapping[str, Any]) -> Self:
        """Return the recipe with the loss's temperature for the neighbours, if they follow it.

        A sum has its terms'.
        """
        if self.knn_temperature != "loss":
            return self
        named = (value for key, value in loss.items() if key.rpartition(".")[2] == "temperature")
        temperatures = set(named) or {VOTE_TEMPERATURE}
        fix = f"name that of the neighbours, such as --recipe knn_temperature={VOTE_TEMPERATURE}"
        several = ", ".join(map(str, sorted(temperatures)))
        refuse("", (len(temperatures) > 1, f"the loss has temperatures {several}: {fix}"))
        return self.but(knn_temperature=temperatures.pop())

    @property
    def neighbours_temperature(self) -> float:
        own = self.knn_temperature
        return VOTE_TEMPERATURE if isinstance(own, str) else own

    @property
    def protocol(self) -> str:
        """Training and scoring as described in the image domain.

        Hard views had torchvision's RandAugment and uniform noise before images/2.
        """
        harder = self.views == "hard" or (self.randaugment is not None and self.randaugment[0] > 0)
        still = self.pairing == "query_key" and self.ema == 0  # it rose to 1 before
        return ("images/2" if harder else "images/1") + ("+still-ema" if still else "")

    @property
    def pairing_facts(self) -> Pairing | None:
        """Return the facts of the pairing; further positives or local crops leave no two views."""
        facts = super().pairing_facts
        if self.pairs_by_class or not facts:
            return facts
        alone = not (self.positives or self.local_crops)
        return replace(facts, one_positive=self.positives < 2, two_views=facts.two_views and alone)

    @property
    def evaluation(self) -> dict[str, Any]:
        features = "the embedding" if self.embeds else "before the projection"
        if self.ranks:
            ranking = "of test images among each other, by cosine"
            return {"features": features, "recall": ranking, "clusters": "k-means"}
        settings = {"features": features, "accuracy": "of the test images"}
        if self.probe not in PROBES:
            return settings
        words = self.probe_on_views.settings
        return settings | {f"probe {name}": value for name, value in words.items()}

    @property
    def probe_on_views(self) -> Probe:
        probe = PROBES[self.probe]
        return replace(probe, lr=self.probe_lr) if self.probe_lr else probe

    @property
    def further_scores(self) -> tuple[str, ...]:
        """Return the protocols of `score_on`, whose numbers stand in the same record."""
        return tuple(name for name in self.score_on if name.partition(":")[0] in PROTOCOL_NAMES)

    @property
    def scored_sets(self) -> tuple[str, ...]:
        return tuple(name for name in self.score_on if name not in self.further_scores)

    def idle(self, trained: bool) -> set[str]:
        """Return the settings that have no effect here, or that `evaluation` shows."""
        idle = super().idle(trained)
        # the projection is scored, untrained too
        return idle - {"pairing", "projection", "projection_norm"} if self.embeds else idle

    def fetch(self, dataset: str, folder: Path | None, trained: bool) -> dict[str, str]:
        """The sets of `score_on`; one that cannot be had keeps no other away."""
        from contrastbench.domains.registry import fetch

        places = {}
        for name in filter(None, (entry.partition(":")[2] for entry in self.further_scores)):
            try:
                places[name] = fetch("image", name, folder)
            except UserError as error:
                places[name] = f"MISSING {error}"
        return places

    @property
    def by_class(self) -> dict[str, Any]:
        """Return the values that pair images of one class.

        Where recall alone is scored, classes are many: a balanced batch has several of each. It has
        one view of each image, so it has twice as many, for as many steps over as many views.
        """
        if self.probe != "recall":
            return {"pairing": "supervised"}
        length = {} if self.steps else {"epochs": 2 * self.epochs}
        twice = {"batch_size": 2 * self.batch_size, **length}
        return {"pairing": "balanced", "positives": 3, **twice}

    @property
    def pairs_by_class(self) -> bool:
        """Two views of each image, or one in a balanced batch."""
        return self.pairing in ("supervised", "balanced")

    @property
    def samples_per_class(self) -> int:
        return 1 + self.positives

    @property
    def pretrained(self) -> str:
        """Return the network whose weights come from a package; empty if they are drawn."""
        return self.encoder.partition(":")[2]

    @property
    def embeds(self) -> bool:
        """Return whether the projection is what is scored, as in metric learning."""
        return (self.scored or self.scored_by_default) == "embedding"

    @property
    def scored_by_default(self) -> str:
        return "embedding" if self.pairing == "balanced" else "features"

    @property
    def ranks(self) -> bool:
        """Return whether test images are ranked among each other, and no classifier is fitted."""
        return self.probe in ("retrieval", "recall")
