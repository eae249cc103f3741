"""How each domain trains and scores: everything besides data, loss and seed that can change a number.

Importing it imports no numerics, so that tables are rendered in an instant.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from contrastbench.losses.errors import UserError, unknown

Augmentation = Literal["drop", "edges", "mask", "subgraph", "random2", "random3", "random4"]


class Recipe(BaseModel):
    """What every domain's recipe has; unknown keys and wrong types are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
    presets: ClassVar[dict[str, dict[str, Any]]] = {}  # --recipe preset=NAME: values in place of the defaults

    epochs: int = Field(20, ge=0)
    batch_size: int = Field(128, ge=2)
    lr: float = Field(0.01, gt=0)
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    momentum: float = Field(0.9, ge=0, lt=1, description="of sgd")
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
    def validate_every(self) -> int | None:
        """Steps between two choices of the best model by the domain's `validate`; None: the last model is taken."""
        return None

    @property
    def trainable(self) -> bool:
        """Whether there are weights that a loss can train."""
        return True


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


RECIPES: dict[str, type[Recipe]] = {"graph": GraphRecipe, "sentence": SentenceRecipe, "tabular": TabularRecipe}
TINY: dict[str, dict[str, Any]] = {
    "graph": {"epochs": 2, "limit": 60, "folds": 3},
    "sentence": {"epochs": 2, "limit": 96, "batch_size": 32, "eval_every": 2},
    "tabular": {"epochs": 2, "limit": 300, "batch_size": 64, "widths": (32, 32), "projection": (32, 16)},
}


def make_recipe(domain: str, values: dict[str, Any]) -> Recipe:
    """The domain's recipe with these values in place of the defaults, or of those of the preset named among them.

    Raises:
        UserError: unknown key, wrong type or a value out of range, in one line.

    >>> make_recipe("graph", {"epoch": 3})
    Traceback (most recent call last):
    contrastbench.losses.errors.UserError: unknown recipe key of domain graph 'epoch': did you mean 'epochs'?
    """
    recipe = RECIPES[domain]
    if "preset" in values:
        values = {**preset(domain, values["preset"]), **{k: v for k, v in values.items() if k != "preset"}}
    for key in values:
        if key not in recipe.model_fields:
            raise unknown(f"recipe key of domain {domain}", key, recipe.model_fields)
    try:
        return recipe(**values)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"recipe {first['loc'][0]}={first['input']!r}: {first['msg'].lower()}") from None


def preset(domain: str, name: Any) -> dict[str, Any]:
    """The values of a preset."""
    presets = RECIPES[domain].presets
    if name not in presets:
        raise unknown(f"preset of domain {domain}", str(name), presets)
    return presets[name]
