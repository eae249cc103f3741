"""Images: SimCLR, MoCo v3, multi-crop and metric learning; probes, neighbours and retrieval.

This is the domain's face: its recipe and its declaration; its datasets stand in `datasets.py`.
Importing it imports no numerics; the adapter is in `domain.py`.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from contrastbench.domains import hub
from contrastbench.domains.declaration import Declaration, Source
from contrastbench.domains.image.datasets import DATASETS
from contrastbench.domains.recipe import Recipe, Width
from contrastbench.losses.errors import UserError
from contrastbench.losses.pairing import BOTH_VIEWS, QUERY_KEY, SAME_CLASS, Pairing

# by which any encoder is scored
PROTOCOLS = (
    "linear",
    "knn",
    "transfer",
    "few-shot",
    "few-shot-all",
    "retrieval",
    "semi-supervised",
)
SMALL = 96  # pixels a side up to which the published sets of photographs are kept as they are
Operations = Annotated[int, Field(ge=0)]
Magnitude = Annotated[float, Field(ge=0, le=10)]
STEM = 64  # pixels a side of views up to which a network's stem keeps the size
INCEPTION = "bn_inception"
HALVED = 32  # pixels of an image for one that BN-Inception ends with
KEPT = ("torchvision:", "pretrainedmodels:")  # packages that name weights of ImageNet
TEMPERATURE = 0.5  # of the neighbours' votes
CIFAR: dict[str, Any] = {"size": 32, "min_scale": 0.08, "flip": 0.5, "knn_k": 200}
# for small images, as DCL's, HCL's, ADNCE's and AttentionNCE's code has it
SIMCLR: dict[str, Any] = {
    **CIFAR,
    "blur": 0.5,
    "epochs": 400,
    "batch_size": 256,
    "lr": 1e-3,
    "schedule": "constant",
    "encoder": "resnet50",
    "width": 1.0,
    "stem_init": "pytorch",
    "probe": "paper",
    "knn_temperature": "loss",
    "validation": 0.0,
}
# DASL's, on crops and flips: what it does not print is ours
METRIC: dict[str, Any] = {
    "size": 224,
    "min_scale": 0.08,
    "flip": 0.5,
    "views": "none",
    "pairing": "balanced",
    "positives": 3,
    "batch_size": 512,
    "epochs": 500,
    "lr": 1e-3,
    "encoder": "resnet50",
    "width": 1.0,
    "projection": (512,),
    "probe": "retrieval",
    "validation": 0.0,
}
# of linear classifiers trained on views, as evaluation.py has them
ADAM: dict[str, Any] = {
    "optimizer": "adam",
    "lr": 1e-3,
    "weight decay": 1e-6,
    "schedule": "constant",
    "batch size": 512,
    "epochs": 100,
    "views": "base",
    "epoch scored": "the last",
}
SGD: dict[str, Any] = {
    **ADAM,
    "optimizer": "sgd, momentum 0.9",
    "weight decay": 0,
    "schedule": "cosine",
    "views": "crops and flips",
}
PROBES: dict[str, dict[str, Any]] = {
    "paper": {**ADAM, "batch norm": "statistics move"},
    "strict": {**ADAM, "batch norm": "still"},
    "renyicl": {**SGD, "lr": 0.3, "batch norm": "still"},
    "renyicl-imagenet": {
        **SGD,
        "lr": 0.4,
        "batch size": 1024,
        "epochs": 90,
        "batch norm": "still",
    },
    "simclr-imagenet": {
        **SGD,
        "optimizer": "sgd, momentum 0.9, Nesterov's",
        "lr": 1.6,
        "batch size": 4096,
        "epochs": 90,
        "batch norm": "still",
    },
}


class ImageRecipe(Recipe):
    """SimCLR, MoCo v3 and supervised pairs on images; defaults for the digits on a CPU.

    Presets: `cpu` is a narrow network for real images. `adnce` is Wu et al. 2023 by the released
    code, which is that of DCL and HCL too, with Gaussian blur of every second image; `attentionnce`
    adds four further views as positives; `simclr-imagenet` is SimCLR itself (Chen et al. 2020,
    sections 2 and 3, appendix B). `metric` is metric learning (Chen et al. 2024, section 5):
    a linear embedding, one view each of four images of a class. `renyicl-cifar` (Lee and Shin 2022,
    appendix B.4, which lists no blur) leaves open the batch size (256) and the schedule (cosine);
    `renyicl-imagenet` (B.3: 100 epochs, six local crops, learning rate 0.15 times the root of the
    batch size) the warm-up and the rates of blur and solarisation (5 epochs and MoCo v3's, as in
    the released code, whose heads, first weights and order of operations it has, too). RandAugment
    of both is timm's.

    >>> ImageRecipe(encoder="resnet50").width
    0.25
    """

    by_class: ClassVar[dict[str, Any] | None] = {"pairing": "supervised"}
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {},
        "metric": METRIC,
        "cpu": {**CIFAR, "epochs": 12, "batch_size": 128, "lr": 2e-3, "precision": "bf16"},
        "adnce": SIMCLR,
        "attentionnce": {**SIMCLR, "positives": 4},
        "simclr-imagenet": {
            **CIFAR,
            "size": 224,
            "epochs": 1000,
            "batch_size": 4096,
            "optimizer": "lars",
            "lr": 0.3 * 4096 / 256,
            "warmup": 10,
            "jitter_strength": 1.0,
            "encoder": "resnet50",
            "width": 1.0,
            "zero_init_residual": True,
            "projection": (2048, 128),
            "projection_norm": True,
            "whole_pictures": True,
            "probe": "simclr-imagenet",
            "validation": 0.0,
        },
        "renyicl-cifar": {
            **CIFAR,
            "epochs": 500,
            "batch_size": 256,
            "optimizer": "sgd",
            "lr": 0.5,
            "weight_decay": 5e-4,
            "views": "hard",
            "width": 1.0,
            "projection": (2048, 128),
            "probe": "renyicl",
            "validation": 0.0,
        },
        "renyicl-imagenet": {
            **CIFAR,
            "size": 224,
            "epochs": 100,
            "batch_size": 512,
            "optimizer": "lars",
            "lr": 0.15 * 512**0.5,
            "weight_decay": 1.5e-6,
            "warmup": 5,
            "min_scale": 0.2,
            "asymmetric": True,
            "randaugment": (2, 10.0),
            "local_crops": 6,
            "pairing": "query_key",
            "encoder": "resnet50",
            "width": 1.0,
            "zero_init_residual": True,
            "projection": (4096, 256),
            "projection_norm": True,
            "predictor_bias": False,
            "whole_pictures": True,
            "precision": "bf16",
            "probe": "renyicl-imagenet",
            "validation": 0.0,
        },
    }

    of_training: ClassVar[frozenset[str]] = Recipe.of_training | {
        *("warmup", "eval_every", "views", "min_scale", "flip", "asymmetric", "randaugment"),
        "jitter_strength",
        *("local_crops", "local_size", "positives", "pairing", "ema", "predictor"),
        "predictor_bias",
        *("projection", "projection_norm", "chunk"),
    }

    epochs: int = Field(25, ge=0)
    batch_size: int = Field(64, ge=2)
    lr: float = Field(2e-3, gt=0)
    weight_decay: float = Field(1e-6, ge=0)
    schedule: Literal["constant", "cosine", "linear"] = "cosine"
    warmup: float = Field(
        0.0, ge=0, description="epochs over which the learning rate rises from zero"
    )
    eval_every: int | None = Field(
        None, ge=1, description="steps between choices of the best model by validation kNN"
    )
    validation: float = Field(
        0.1, ge=0, lt=1, description="share of the training images kept out to choose by"
    )
    size: int = Field(8, ge=8, description="of views, in pixels")
    test_size: int | None = Field(
        None, ge=8, description="of scored images; as the views unless given"
    )
    whole_pictures: bool = Field(
        False, description="views are of whole pictures; else files are stored as square middles"
    )
    views: Literal["none", "base", "hard"] = Field(
        "base", description="none: crops and flips alone"
    )
    min_scale: float = Field(
        0.4, gt=0, lt=1, description="smallest share of a picture that a view shows"
    )
    flip: float = Field(0.0, ge=0, le=1, description="probability that a view is mirrored")
    blur: float | None = Field(
        None, ge=0, le=1, description="probability of Gaussian blur, in place of the views' own"
    )
    jitter_strength: float = Field(
        0.5,
        gt=0,
        le=1,
        exclude_if=lambda strength: strength == 0.5,  # records are older
        description="of colours: 1 is SimCLR's on ImageNet, 0.5 that of small images",
    )
    asymmetric: bool = Field(
        False, description="BYOL's and MoCo v3's two views: one blurred, the other solarised"
    )
    randaugment: tuple[Operations, Magnitude] | None = Field(
        None,
        strict=False,
        description="timm's operations in a row, their magnitude of 10, in place of the views' own",
    )
    local_crops: int = Field(0, ge=0, description="small crops, further queries of query_key")
    local_size: int = Field(96, ge=8)
    positives: int = Field(
        0, ge=0, description="further views of both_views, other images of a class of balanced"
    )
    pairing: Literal["both_views", "query_key", "supervised", "balanced"] = Field(
        "both_views",
        description="supervised: two views of each image; balanced: one, of metric learning",
    )
    ema: float = Field(0.99, ge=0, le=1, description="of query_key's target network; rises to 1")
    predictor: bool = Field(True, description="query_key's prediction head")
    predictor_bias: bool = Field(True, description="of that head's last layer")
    encoder: Literal[
        "resnet18",
        "resnet34",
        "resnet50",
        "bn_inception",
        "torchvision:resnet18",
        "torchvision:resnet34",
        "torchvision:resnet50",
        "pretrainedmodels:bn_inception",
        "raw",
    ] = Field("resnet18", description="PACKAGE:NAME: with its weights of ImageNet; raw: pixels")
    width: float = Field(0.25, gt=0, le=4, description="times the published number of channels")
    stem_init: Literal["kaiming", "pytorch"] = Field(
        "kaiming", description="pytorch: the first convolution as nn.Conv2d draws it"
    )
    zero_init_residual: bool = Field(
        False, description="every residual block starts as its shortcut (Goyal et al. 2017)"
    )
    projection: tuple[Width, ...] = Field(
        (512, 128),
        strict=False,
        min_length=1,
        max_length=2,
        description="hidden and last width; one width: a linear layer",
    )
    projection_norm: bool = Field(
        False, description="batch norm without weights behind the projection, as MoCo v3"
    )
    precision: Literal["float32", "bf16"] = Field(
        "float32", description="of the networks' products; scores are float32"
    )
    chunk: int | None = Field(
        None, ge=2, description="images embedded at once; the batch is contrasted whole"
    )
    compile: bool = Field(False, description="the encoder by torch.compile")
    probe: Literal[
        "lbfgs",
        "knn",
        "retrieval",
        "paper",
        "strict",
        "renyicl",
        "renyicl-imagenet",
        "simclr-imagenet",
    ] = Field("lbfgs", description="retrieval: none is fitted, test images find their class")
    probe_lr: float | None = Field(
        None, gt=0, description="of the probes that are trained on views, in place of their own"
    )
    knn_k: int = Field(20, ge=1)
    knn_temperature: Annotated[float, Field(gt=0)] | Literal["loss"] = Field(
        TEMPERATURE, description="loss: that of the loss, 0.5 where it has none"
    )

    score_on: tuple[str, ...] = Field(
        (),
        strict=False,
        exclude_if=lambda entries: not entries,  # records are older
        description="what the encoder is scored by besides: a protocol of bench score, on this set "
        "or on another one: transfer:DTD",
    )

    @model_validator(mode="after")
    def _further_scores_are_known(self) -> "ImageRecipe":
        kinds = {source.kind for source in SOURCES}
        for entry in self.score_on:
            protocol, _, dataset = entry.partition(":")
            if protocol not in PROTOCOLS:
                raise ValueError(f"score_on={entry}: it begins with none of {', '.join(PROTOCOLS)}")
            if dataset and dataset not in DATASETS and dataset.partition(":")[0] not in kinds:
                raise ValueError(f"score_on={entry}: there is no such set (bench list datasets)")
        return self

    @model_validator(mode="after")
    def _parts_fit_together(self) -> "ImageRecipe":
        if self.chunk and self.batch_size % self.chunk:
            raise ValueError(f"batch_size={self.batch_size} is no multiple of chunk={self.chunk}")
        if self.local_crops and self.pairing != "query_key":
            raise ValueError(
                "local_crops are used only by pairing=query_key: set it or remove local_crops"
            )
        if self.local_crops and self.local_size > self.size:
            raise ValueError(f"local_size={self.local_size} is larger than the views' {self.size}")
        if self.positives and self.pairing not in ("both_views", "balanced"):
            raise ValueError(
                "positives need pairing=both_views or pairing=balanced: set one or remove positives"
            )
        if self.pairing == "balanced" and not self.positives:
            raise ValueError("pairing=balanced needs other images of each class: positives=3")
        if self.pairing == "balanced" and self.batch_size % (alike := 1 + self.positives):
            fix = f"is no multiple of the {alike} images of each class"
            raise ValueError(f"batch_size={self.batch_size} {fix}")
        if self.asymmetric and (
            self.positives
            or self.blur is not None
            or self.views == "none"
            or self.jitter_strength != 0.5
        ):
            others = "leave out positives, blur, jitter_strength, views=none"
            raise ValueError(f"asymmetric views are two with a blur of their own: {others}")
        if self.probe_lr and self.probe not in PROBES:
            raise ValueError(f"probe_lr needs a probe that is trained on views, not {self.probe}")
        if self.pretrained and (self.width != 1 or self.size <= STEM):
            fix = f"needs width=1.0 and a size of more than {STEM} pixels"
            raise ValueError(f"{self.encoder} {fix}")
        if self.encoder.endswith(INCEPTION) and (
            self.size % HALVED or (self.test_size or 0) % HALVED
        ):
            raise ValueError(
                f"{self.encoder} needs images of {HALVED}, 64, ... 224 pixels: size=224"
            )
        if self.eval_every and not self.validation:
            raise ValueError("eval_every needs validation images to choose by: give validation=0.1")
        return self

    def beside(self, loss: Mapping[str, Any]) -> Self:
        """Return the recipe with the loss's temperature for the neighbours, if they follow it.

        A sum has its terms'.

        Raises:
            UserError: these have several.
        """
        if self.knn_temperature != "loss":
            return self
        named = (value for key, value in loss.items() if key.rpartition(".")[2] == "temperature")
        found = set(named) or {TEMPERATURE}
        if len(found) > 1:
            several = ", ".join(map(str, sorted(found)))
            raise UserError(
                f"the loss has temperatures {several}: name that of the neighbours, such as "
                f"--recipe knn_temperature={TEMPERATURE}"
            )
        return self.model_copy(update={"knn_temperature": found.pop()})

    @property
    def neighbours_temperature(self) -> float:
        """Return the temperature of the neighbours' votes, or the default if it names a loss."""
        own = self.knn_temperature
        return TEMPERATURE if isinstance(own, str) else own

    @property
    def raw(self) -> dict[str, Any]:
        """Return the values that score the raw input."""
        return {"encoder": "raw"}

    @property
    def protocol(self) -> str:
        """Training and scoring as described in the image domain.

        Hard views had torchvision's RandAugment and uniform noise before images/2.
        """
        harder = self.views == "hard" or (self.randaugment is not None and self.randaugment[0] > 0)
        return "images/2" if harder else "images/1"

    @property
    def pairing_facts(self) -> Pairing:
        """Two views of each image, MoCo v3's queries and keys, or images of one class."""
        if self.pairs_by_class:
            return SAME_CLASS
        pairing = QUERY_KEY if self.pairing == "query_key" else BOTH_VIEWS
        return replace(pairing, one_positive=self.positives < 2)

    @property
    def evaluation(self) -> dict[str, Any]:
        """How the classifier of `probe` is fitted and scored."""
        features = "the embedding" if self.embeds else "before the projection"
        if self.probe == "retrieval":
            ranking = "of test images among each other, by cosine"
            return {"features": features, "recall": ranking, "clusters": "k-means"}
        settings = {"features": features, "accuracy": "of the test images"}
        if self.probe not in PROBES:
            return settings
        probe = PROBES[self.probe] | ({"lr": self.probe_lr} if self.probe_lr else {})
        return settings | {f"probe {name}": value for name, value in probe.items()}

    def idle(self, trained: bool) -> set[str]:
        """Return the settings that have no effect here, or that `evaluation` shows."""
        idle = {*super().idle(trained), "probe_lr", "score_on"}
        idle |= {key for key in ("chunk", "compile", "eval_every") if not getattr(self, key)}
        if self.pairing != "query_key":
            idle |= {"ema", "predictor", "local_crops"}
        if self.pairing != "query_key" or not self.predictor:
            idle.add("predictor_bias")
        if self.size <= SMALL:
            idle.add("whole_pictures")
        if self.pairing not in ("both_views", "balanced"):
            idle.add("positives")
        if self.probe == "retrieval" and not self.eval_every:
            idle |= {"knn_k", "knn_temperature"}
        if self.pretrained or self.encoder == INCEPTION:
            idle |= {"stem_init", "zero_init_residual"}
        return idle if self.local_crops else {*idle, "local_size"}

    def fetch(self, dataset: str, folder: Path | None, trained: bool) -> dict[str, str]:
        """The sets of `score_on`; one that cannot be had keeps no other away."""
        from contrastbench.domains.registry import fetch

        found = {}
        for name in filter(None, (entry.partition(":")[2] for entry in self.score_on)):
            try:
                found[name] = fetch("image", name, folder)
            except UserError as error:
                found[name] = f"MISSING {error}"
        return found

    @property
    def warmup_epochs(self) -> float:
        """Epochs over which the learning rate rises from zero, before the schedule."""
        return self.warmup

    @property
    def validate_every(self) -> int | None:
        """Steps between two scores of the validation images."""
        return self.eval_every

    @property
    def pairs_by_class(self) -> bool:
        """Two views of each image, or one in a balanced batch."""
        return self.pairing in ("supervised", "balanced")

    @property
    def pretrained(self) -> str:
        """Return the network whose weights come from a package; empty if they are drawn."""
        return self.encoder.partition(":")[2]

    @property
    def embeds(self) -> bool:
        """Return whether the projection is what is scored, as in metric learning."""
        return self.pairing == "balanced"

    @property
    def trainable(self) -> bool:
        """Pixels have no weights."""
        return self.encoder != "raw"


SOURCES = (
    Source("folder", "PATH", "train/CLASS/FILE, test/CLASS/FILE", "image", folder=True),
    Source("npz", "FILE", "arrays images, labels, test_images, test_labels", "image", (".npz",)),
    hub.source("images of the hub, or of the datasets library"),
)

DECLARATION = Declaration(
    summary="ResNets by SimCLR or MoCo v3, linear probe and kNN",
    adapter="contrastbench.domains.image.domain:ImageDomain",
    recipe=ImageRecipe,
    datasets=DATASETS,
    default="digits",
    tiny={"epochs": 1, "limit": 200, "batch_size": 32, "width": 0.125, "projection": (32, 16)},
    extra="contrastbench[image]",
    needs=("PIL", "torchvision"),
    sources=SOURCES,
    protocols=PROTOCOLS,
    scorer="contrastbench.domains.image.protocols:score",
    opener="contrastbench.domains.image.encoders:open_encoder",
)
