"""Downloads: from the network into the cache, used only if the sha256 is the declared one."""

import hashlib
from pathlib import Path

import platformdirs

from contrastbench.domains.datasets import Dataset
from contrastbench.losses.errors import UserError


def cache_folder() -> Path:
    """Where downloads are kept."""
    return Path(platformdirs.user_cache_dir("contrastbench"))


def cached_file(dataset: Dataset) -> Path:
    """Where the dataset's download is kept."""
    return cache_folder() / (dataset.file or dataset.url.rsplit("/", 1)[-1])


def fetch(dataset: Dataset) -> Path:
    """The dataset's file, from the cache or the network.

    Raises:
        UserError: no network, no declared hash, or what came is not the declared file.
    """
    import pooch  # it brings requests, which takes long to import and is needed for downloads only

    name = cached_file(dataset).name
    fix = f"put {name} into a folder and name it with --data-root (or CONTRASTBENCH_DATA)"
    if not dataset.sha256:
        raise UserError(f"{dataset.name} is not downloaded unhashed: get {dataset.url}, {fix}")
    try:
        path = pooch.retrieve(
            dataset.url, f"sha256:{dataset.sha256}", fname=name, path=cache_folder(), progressbar=True
        )
    except (OSError, ValueError) as error:  # requests' errors are OSErrors, a wrong hash is a ValueError
        reason = type(error).__name__ if isinstance(error, OSError) else "its sha256 is not the declared one"
        raise UserError(f"cannot download {dataset.url} ({reason}): {fix}") from None
    return Path(path)


def state(dataset: Dataset) -> str:
    """Whether the dataset's file is in the cache, and whole."""
    if not dataset.url:
        return "embedded"
    path = cached_file(dataset)
    if not path.is_file():
        return "not downloaded"
    with path.open("rb") as file:
        whole = hashlib.file_digest(file, "sha256").hexdigest() == dataset.sha256
    return "downloaded, sha256 verified" if whole else f"DAMAGED: delete {path}"
