"""Downloads into the cache, used only if the sha256 is the one known beforehand."""

import hashlib
import os
import re
from pathlib import Path

import platformdirs

from contrastbench.domains.declaration import Dataset
from contrastbench.losses.errors import UserError


def cache_folder() -> Path:
    """Where downloads are kept."""
    return Path(platformdirs.user_cache_dir("contrastbench"))


def cached_file(dataset: Dataset) -> Path:
    """Where the dataset's download is kept."""
    return cache_folder() / (dataset.file or dataset.url.rsplit("/", 1)[-1])


def sidecar(dataset: Dataset) -> Path:
    """Where the sha256 is kept that the hub gave for a file whose sha256 is not declared."""
    path = cached_file(dataset)
    return path.with_name(f"{path.name}.sha256")


def known_sha256(dataset: Dataset) -> str:
    """What the file must have: declared, or kept from the hub; empty if neither."""
    kept = sidecar(dataset)
    return dataset.sha256 or (kept.read_text() if kept.is_file() else "")


def fetch(dataset: Dataset) -> Path:
    """The dataset's file, from the cache or the network.

    Raises:
        UserError: no network, no hash known beforehand, or what came is not the file with that
            hash.
    """
    import pooch  # it brings requests, which takes long to import and is needed for downloads only

    name = cached_file(dataset).name
    fix = f"put {name} into a folder and name it with --data-root (or CONTRASTBENCH_DATA)"
    known = known_sha256(dataset) or (hub_sha256(dataset, fix) if dataset.revision else "")
    if not known:
        raise UserError(f"{dataset.name} is not downloaded unhashed: get {dataset.url}, {fix}")
    try:
        path = pooch.retrieve(
            dataset.url, f"sha256:{known}", fname=name, path=cache_folder(), progressbar=True
        )
    except (
        OSError,
        ValueError,
    ) as error:  # requests' errors are OSErrors, a wrong hash is a ValueError
        reason = (
            type(error).__name__
            if isinstance(error, OSError)
            else "its sha256 is not the declared one"
        )
        raise UserError(f"cannot download {dataset.url} ({reason}): {fix}") from None
    return Path(path)


def hub_sha256(dataset: Dataset, fix: str) -> str:
    """The hub's sha256 for the file at the pinned revision, kept so that it is asked for once."""
    import requests

    try:
        answer = requests.head(dataset.url, allow_redirects=True, timeout=20)
    except OSError as error:
        raise UserError(f"cannot download {dataset.url} ({type(error).__name__}): {fix}") from None
    tags = [step.headers.get("X-Linked-ETag", "").strip('"') for step in (*answer.history, answer)]
    digest = next((tag for tag in tags if re.fullmatch("[0-9a-f]{64}", tag)), None)
    if digest is None:
        raise UserError(
            f"cannot download {dataset.url} ({answer.status_code}, and no sha256 beforehand): {fix}"
        )
    kept = sidecar(dataset)
    kept.parent.mkdir(parents=True, exist_ok=True)
    temporary = kept.with_suffix(f".{os.getpid()}")
    temporary.write_text(digest)
    temporary.replace(kept)
    return digest


def state(dataset: Dataset) -> str:
    """Whether the dataset's file is in the cache, and whole."""
    if not dataset.url:
        return "embedded"
    path, known = cached_file(dataset), known_sha256(dataset)
    if not path.is_file():
        return "not downloaded"
    if not known:
        return f"downloaded, sha256 not known: bench data fetch {dataset.name}"
    return "downloaded, sha256 verified" if sha256(path) == known else f"DAMAGED: delete {path}"


def sha256(path: Path) -> str:
    """Of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
