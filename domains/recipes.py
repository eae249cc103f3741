"""How each domain trains and scores: everything besides data, loss and seed that can change a number.

Importing it imports no numerics, so that tables are rendered in an instant.
"""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from contrastbench.domains.registry import domain_class
from contrastbench.losses.errors import UserError, unknown

Augmentation = Literal["drop", "edges", "mask", "subgraph", "random2", "random3", "random4"]


class Recipe(BaseModel):
    """What every domain's recipe has; unknown keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
    presets: ClassVar[dict[str, dict[str, Any]]] = {}  # --recipe preset=NAME: values in place of the defaults

    epochs: int = Field(20, ge=0)
    batch_size: int = Field(128, ge=2)
    lr: float = Field(0.01, gt=0)
    optimizer: Literal["adam", "adamw", "sgd", "lars"] = "adam"
    momentum: float = Field(0.9, ge=0, lt=1, description="of sgd and lars")
    weight_decay: float = Field(0.0, ge=0)
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    limit: int | None = Field(None, ge=2, description="use only so many samples: for smoke tests")

    @property
    def protocol(self) -> str:
        """Names everything about training and scoring that the recipe's values do not; part of a record's key."""
        raise NotImplementedError

    @property
    def max_grad_norm(self) -> float | None:
        """Length to which gradients are cut before a step; None: as they are."""
        return None

    @property
    def warmup_epochs(self) -> float:
        """Epochs over which the learning rate rises from zero, before the schedule."""
        return 0.0

    @property
    def validate_every(self) -> int | None:
        """Steps between two choices of the best model by the domain's `validate`; None: the last model is taken."""
        return None

    @property
    def trainable(self) -> bool:
        """Whether there are weights that a loss can train."""
        return True

    def contents(self, data_root: Path | None, trained: bool) -> dict[str, str]:
        """Hashes for the record in place of values that are paths: what is equal must not depend on where it lies."""
        return {}


class GraphRecipe(Recipe):
    """GraphCL's unsupervised_TU protocol, which ADNCE's graph code shares.

    >>> GraphRecipe(augmentation="random4").epochs
    20
    """

    augmentation: Augmentation = "random2"
    subgraph: Literal["official", "fixed"] = Field("official", description="1-hop as released, or a random walk")
    drop_ratio: float = Field(0.1, ge=0, lt=1)
    edge_ratio: float = Field(0.1, ge=0, lt=1)
    mask_ratio: float = Field(0.1, ge=0, le=1)
    subgraph_ratio: float = Field(0.2, ge=0, le=1)
    features: Literal["labels", "degree"] = Field("labels", description="node labels or 1 where there are none; degree")
    layers: int = Field(3, ge=1)
    hidden: int = Field(32, ge=1)
    folds: int = Field(10, ge=2)

    @property
    def protocol(self) -> str:
        """GraphCL's unsupervised_TU as described in the graph domain; degree features make it another protocol."""
        return "graphcl-unsupervised-tu/1" + ("+degree" if self.features == "degree" else "")


Width = Annotated[int, Field(ge=1)]


class TabularRecipe(Recipe):
    """RényiCL's tabular protocol (Lee and Shin 2022, appendix B.5) with a network for a CPU in place of theirs.

    The preset `renyicl` is the paper's full size, which leaves open: the batch size (512, i-Mix's), whether MoCo v3's
    learning rate scaling applies (no), and MoCo v3's prediction head (kept). The preset `scarf` is SCARF (Bahri et al.
    2022): exactly int(rate * features) of the second view come from the empirical marginals, clean rows are anchors;
    it trains until the validation loss rises, here for 100 epochs.

    >>> TabularRecipe(views="masking").maxout
    4
    """

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {},
        "renyicl": {
            "epochs": 500,
            "batch_size": 512,
            "widths": (2048, 2048, 4096, 4096, 8192),
            "projection": (2048, 128),
            "lr": 0.3,
        },
        "scarf": {
            "epochs": 100,
            "batch_size": 128,
            "optimizer": "adam",
            "lr": 0.001,
            "schedule": "constant",
            "pairing": "one_way",
            "predictor": False,
            "rate": 0.6,
            "choice": "exact",
            "widths": (256, 256, 256, 256),
            "batch_norm": False,
            "maxout": 1,
            "projection": (256, 256),
        },
    }

    epochs: int = Field(20, ge=0)
    batch_size: int = Field(128, ge=2)
    lr: float = Field(0.1, gt=0)
    optimizer: Literal["adam", "sgd"] = "sgd"
    schedule: Literal["constant", "cosine"] = "cosine"
    target: str | None = Field(None, description="the column of classes, for csv: and parquet: files")
    statistics: Literal["train", "paper"] = Field("train", description="of scaling; paper: of training and test rows")
    views: Literal["none", "masking", "corruption", "masking+corruption"] = "corruption"
    rate: float = Field(0.2, gt=0, le=1, description="of masked and of corrupted features")
    choice: Literal["each", "exact"] = Field("each", description="each feature by chance, or exactly int(rate * all)")
    pairing: Literal["query_key", "both_views", "one_way"] = "query_key"
    ema: float = Field(0.99, ge=0, le=1, description="of query_key's target network; rises to 1")
    predictor: bool = Field(True, description="query_key's prediction head")
    encoder: Literal["mlp", "raw"] = Field("mlp", description="raw: the features as they are, for --loss none")
    widths: tuple[Width, ...] = Field((256, 256, 512), min_length=1, strict=False)
    batch_norm: bool = True
    maxout: int = Field(4, ge=1, validate_default=True, description="sets of the last layer; 1: ReLU")
    projection: tuple[Width, Width] = Field((256, 64), strict=False, description="hidden and last width")
    probe: Literal["linear", "pseudo_inverse", "logistic", "boosting"] = "linear"

    @field_validator("maxout")
    @classmethod
    def _sets_divide_the_last_width(cls, sets: int, info: ValidationInfo) -> int:
        if "widths" in info.data and info.data["widths"][-1] % sets:
            raise ValueError(f"the last width {info.data['widths'][-1]} has no {sets} equal sets")
        return sets

    @property
    def protocol(self) -> str:
        """RényiCL's protocol, the learning rate of the linear classifier chosen on validation rows."""
        return "renyicl-tabular/1"

    @property
    def trainable(self) -> bool:
        """The features as they are have no weights."""
        return self.encoder != "raw"


class SentenceRecipe(Recipe):
    """Unsupervised SimCSE, which ADNCE's sentence code shares; the embedded tiny encoder is trained from scratch.

    RoBERTa takes batch_size=512 and lr=1e-5.

    >>> SentenceRecipe(encoder="bert-base-uncased").lr
    3e-05
    """

    from_scratch: ClassVar[dict[str, Any]] = {"pooler": "avg", "epochs": 3, "lr": 3e-3, "eval_every": 32}

    epochs: int = Field(1, ge=0)
    batch_size: int = Field(64, ge=2)
    lr: float = Field(3e-5, gt=0)
    optimizer: Literal["adam", "adamw", "sgd"] = "adamw"
    schedule: Literal["constant", "cosine", "linear"] = "linear"
    encoder: str = Field("tiny", description="tiny, a checkpoint's folder or hub name[@revision], random:FOLDER")
    pooler: Literal["cls", "cls_before_pooler", "avg", "avg_top2", "avg_first_last", "static"] = Field(
        "cls_before_pooler", description="of the scored embedding; both cls train through a dense layer and tanh"
    )
    head: Literal["new", "checkpoint"] = Field("new", description="that dense layer: new, or the checkpoint's pooler")
    whiten: bool = Field(False, description="BERT-whitening of each scored set's embeddings")
    corpus: str = Field("wiki1m", description="sentences to train on, one a line: wiki1m or a file of the data root")
    max_length: int = Field(32, ge=3, description="tokens of a training sentence; scored sentences are not cut")
    eval_every: int = Field(125, ge=1, description="steps between two evaluations on the development pairs")
    precision: Literal["float32", "bf16"] = Field("float32", description="of the encoder's matrix products")

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_tiny_encoder(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {**cls.from_scratch, **values} if values.get("encoder", "tiny") == "tiny" else values

    @model_validator(mode="after")
    def _head_of_a_cls_pooler(self) -> "SentenceRecipe":
        if self.head == "checkpoint" and not self.pooler.startswith("cls"):
            raise ValueError(f"head=checkpoint is of the cls poolers: pooler={self.pooler} has no head")
        return self

    @property
    def protocol(self) -> str:
        """SimCSE's training and its order of scoring (SentEval, all setting, cosine, Spearman)."""
        return "simcse-unsupervised/1"

    @property
    def trainable(self) -> bool:
        """Static embeddings have no dropout: both views of a sentence would be one."""
        return self.pooler != "static"

    @property
    def max_grad_norm(self) -> float | None:
        """As SimCSE's trainer."""
        return 1.0

    @property
    def validate_every(self) -> int | None:
        """Steps between two evaluations on the development pairs."""
        return self.eval_every

    def contents(self, data_root: Path | None, trained: bool) -> dict[str, str]:
        """Of a checkpoint, and of a corpus that is trained on, unless they are named as in the data root or the hub."""
        found: dict[str, str] = {}
        kind, colon, source = self.encoder.rpartition(":")
        if source != "tiny" and is_path(source, data_root):
            from contrastbench.domains.sentence.checkpoint import files_hash

            found["encoder"] = f"{kind}{colon}sha256:{files_hash(Path(source), weights=not kind)[:16]}"
        if trained and self.corpus != "wiki1m" and is_path(self.corpus, data_root):
            from contrastbench.domains.sentence.data import corpus_sentences

            found["corpus"] = f"sha256:{corpus_sentences(Path(self.corpus))[2][:16]}"
        return found


def is_path(name: str, data_root: Path | None) -> bool:
    """Whether it names a file or folder of this machine, not one of the data root nor of the hub."""
    in_root = data_root is not None and not Path(name).is_absolute() and (data_root / name).exists()
    return Path(name).exists() and not in_root


Operations = Annotated[int, Field(ge=0)]
Magnitude = Annotated[float, Field(ge=0, le=10)]
CIFAR: dict[str, Any] = {"size": 32, "min_scale": 0.08, "flip": 0.5, "knn_k": 200}
SIMCLR: dict[str, Any] = {  # for small images, as DCL's, HCL's, ADNCE's and AttentionNCE's code has it
    **CIFAR,
    "blur": 0.5,
    "epochs": 400,
    "batch_size": 256,
    "lr": 1e-3,
    "schedule": "constant",
    "encoder": "resnet50",
    "width": 1.0,
    "probe": "paper",
    "validation": 0.0,
}


class ImageRecipe(Recipe):
    """SimCLR, MoCo v3 and supervised pairs on images; the defaults suit the embedded digits on a CPU.

    Presets: `cpu` is a narrow network for real images. `adnce` is Wu et al. 2023 by the released code, which is that of
    DCL and HCL too, with Gaussian blur of every second image; `attentionnce` adds four further views as positives.
    `renyicl-cifar` (Lee and Shin 2022, appendix B.4, which lists no blur) leaves open the batch size (256) and the
    schedule (cosine); `renyicl-imagenet` (B.3: 100 epochs, six local crops, learning rate 0.15 times the root of the
    batch size) the warm-up and the rates of blur and solarisation (5 epochs and MoCo v3's, as in the released code,
    which applies RandAugment after the blur, not before the jitter as here, and erases in one of the two views only).

    >>> ImageRecipe(encoder="resnet50").width
    0.25
    """

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {},
        "cpu": {**CIFAR, "epochs": 12, "batch_size": 128, "lr": 2e-3, "precision": "bf16"},
        "adnce": SIMCLR,
        "attentionnce": {**SIMCLR, "positives": 4},
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
            "projection": (4096, 256),
            "projection_norm": True,
            "precision": "bf16",
            "probe": "renyicl-imagenet",
            "validation": 0.0,
        },
    }

    epochs: int = Field(25, ge=0)
    batch_size: int = Field(64, ge=2)
    lr: float = Field(2e-3, gt=0)
    weight_decay: float = Field(1e-6, ge=0)
    schedule: Literal["constant", "cosine", "linear"] = "cosine"
    warmup: float = Field(0.0, ge=0, description="epochs over which the learning rate rises from zero")
    eval_every: int | None = Field(None, ge=1, description="steps between choices of the best model by validation kNN")
    validation: float = Field(0.1, ge=0, lt=1, description="share of the training images kept out to choose by")
    size: int = Field(8, ge=8, description="of views, in pixels")
    test_size: int | None = Field(None, ge=8, description="of scored images; as the views unless given")
    views: Literal["none", "base", "hard"] = Field("base", description="none: crops and flips alone")
    min_scale: float = Field(0.4, gt=0, lt=1, description="smallest share of a picture that a view shows")
    flip: float = Field(0.0, ge=0, le=1, description="probability that a view is mirrored")
    blur: float | None = Field(None, ge=0, le=1, description="probability of Gaussian blur, in place of the views' own")
    asymmetric: bool = Field(False, description="BYOL's and MoCo v3's two views: one blurred, the other solarised")
    randaugment: tuple[Operations, Magnitude] | None = Field(
        None, strict=False, description="operations in a row and their magnitude of 10, in place of the views' own"
    )
    local_crops: int = Field(0, ge=0, description="small crops, further queries of query_key")
    local_size: int = Field(96, ge=8)
    positives: int = Field(0, ge=0, description="further views, the positives of both_views")
    pairing: Literal["both_views", "query_key", "supervised"] = "both_views"
    ema: float = Field(0.99, ge=0, le=1, description="of query_key's target network; rises to 1")
    predictor: bool = Field(True, description="query_key's prediction head")
    encoder: Literal["resnet18", "resnet34", "resnet50", "raw"] = Field("resnet18", description="raw: pixels")
    width: float = Field(0.25, gt=0, le=4, description="times the published number of channels")
    projection: tuple[Width, Width] = Field((512, 128), strict=False, description="hidden and last width")
    projection_norm: bool = Field(False, description="batch norm without weights behind the projection, as MoCo v3")
    precision: Literal["float32", "bf16"] = Field(
        "float32", description="of the networks' products; scores are float32"
    )
    chunk: int | None = Field(None, ge=2, description="images embedded at once; the batch is contrasted whole")
    compile: bool = Field(False, description="the encoder by torch.compile")
    probe: Literal["lbfgs", "knn", "paper", "strict", "renyicl", "renyicl-imagenet"] = "lbfgs"
    knn_k: int = Field(20, ge=1)
    knn_temperature: float = Field(0.5, gt=0)

    @model_validator(mode="after")
    def _parts_fit_together(self) -> "ImageRecipe":
        if self.chunk and self.batch_size % self.chunk:
            raise ValueError(f"batch_size={self.batch_size} is no multiple of chunk={self.chunk}")
        if self.local_crops and self.pairing != "query_key":
            raise ValueError("local_crops are further queries of pairing=query_key")
        if self.positives and self.pairing != "both_views":
            raise ValueError("positives are further views of pairing=both_views")
        if self.asymmetric and (self.positives or self.blur is not None or self.views == "none"):
            raise ValueError("asymmetric views are two with a blur of their own: leave out positives, blur, views=none")
        if self.eval_every and not self.validation:
            raise ValueError("eval_every chooses by validation images: give validation=0.1")
        return self

    @property
    def protocol(self) -> str:
        """Training and scoring as described in the image domain."""
        return "images/1"

    @property
    def warmup_epochs(self) -> float:
        """Epochs over which the learning rate rises from zero, before the schedule."""
        return self.warmup

    @property
    def validate_every(self) -> int | None:
        """Steps between two scores of the validation images."""
        return self.eval_every

    @property
    def trainable(self) -> bool:
        """Pixels have no weights."""
        return self.encoder != "raw"


RECIPES: dict[str, type[Recipe]] = {
    "graph": GraphRecipe,
    "image": ImageRecipe,
    "sentence": SentenceRecipe,
    "tabular": TabularRecipe,
}
TINY: dict[str, dict[str, Any]] = {
    "graph": {"epochs": 2, "limit": 60, "folds": 3},
    "image": {"epochs": 1, "limit": 200, "batch_size": 32, "width": 0.125, "projection": (32, 16)},
    "sentence": {"epochs": 2, "limit": 96, "batch_size": 32, "eval_every": 2},
    "tabular": {"epochs": 2, "limit": 300, "batch_size": 64, "widths": (32, 32), "projection": (32, 16)},
}


def recipe_class(domain: str) -> type[Recipe]:
    """The recipe of a domain, which a package's brings along."""
    return RECIPES[domain] if domain in RECIPES else cast("type[Recipe]", domain_class(domain).recipe)


def tiny(domain: str) -> dict[str, Any]:
    """Recipe values of a smoke test."""
    return TINY[domain] if domain in TINY else cast("dict[str, Any]", domain_class(domain).tiny)


def make_recipe(domain: str, values: dict[str, Any]) -> Recipe:
    """The domain's recipe with these values in place of the defaults, or of those of the preset named among them.

    Raises:
        UserError: unknown key, wrong type or a value out of range, in one line.

    >>> make_recipe("graph", {"epoch": 3})
    Traceback (most recent call last):
    contrastbench.losses.errors.UserError: unknown recipe key of domain graph 'epoch': did you mean 'epochs'?
    """
    recipe = recipe_class(domain)
    if "preset" in values:
        values = {**preset(domain, values["preset"]), **{k: v for k, v in values.items() if k != "preset"}}
    for key in values:
        if key not in recipe.model_fields:
            raise unknown(f"recipe key of domain {domain}", key, recipe.model_fields)
    try:
        return recipe(**values)
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:  # several values do not fit together
            raise UserError(f"recipe: {first['ctx']['error']}") from None
        raise UserError(f"recipe {first['loc'][0]}={first['input']!r}: {first['msg'].lower()}") from None


def preset(domain: str, name: Any) -> dict[str, Any]:
    """The values of a preset."""
    presets = recipe_class(domain).presets
    if name not in presets:
        raise unknown(f"preset of domain {domain}", str(name), presets)
    return presets[name]
