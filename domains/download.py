"""Downloads into the cache, used only if the sha256 is the one known beforehand."""

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import BinaryIO, TypeVar

import platformdirs

from contrastbench.domains.declaration import Dataset
from contrastbench.domains.reading import refuse
from contrastbench.errors import UserError

T = TypeVar("T")
MAX_DOWNLOAD_BYTES = 8 << 30  # bytes of a download; no declared set has half of it
LEAST_RATE, RATE_SECONDS = 1000, 60.0  # bytes a second, over so many; silence ends it earlier
WHOLE = "downloaded, sha256 verified"


def cache_folder() -> Path:
    return Path(platformdirs.user_cache_dir("contrastbench"))


def cached_file(dataset: Dataset) -> Path:
    return cache_folder() / (dataset.file or dataset.url.rsplit("/", 1)[-1])


@contextmanager
def in_place(folder: Path) -> Iterator[Path]:
    """Yield a folder to fill, and move it into place whole; another process may be first."""
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    temporary.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield temporary
        if not folder.exists():
            temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that others see whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def sidecar(dataset: Dataset) -> Path:
    """Return the path of the hub's sha256, for a file whose sha256 is not declared."""
    path = cached_file(dataset)
    return path.with_name(f"{path.name}.sha256")


def known_sha256(dataset: Dataset) -> str:
    kept = sidecar(dataset)
    return dataset.sha256 or (kept.read_text("utf-8") if kept.is_file() else "")


def fetch_file(dataset: Dataset, folder: Path | None = None) -> Path:
    """The dataset's file, from a folder or the network; without a folder from the cache.

    Raises:
        UserError: no network, no hash known beforehand, or what came is not the file with that
            hash.
    """
    if dataset.shipped:
        return shipped_file(dataset)
    import logging  # these take long to import, and are needed for downloads only

    import pooch

    logging.getLogger("urllib3").setLevel(logging.ERROR)  # its warnings bring tracebacks
    name = cached_file(dataset).name
    where = f"put {name} into a folder and name it with --data-root (or CONTRASTBENCH_DATA)"
    fix = f"{where}; no data root has it yet"
    known = known_sha256(dataset) or (hub_sha256(dataset, fix) if dataset.revision else "")
    fault = f" has no known hash and is not downloaded: get {dataset.url}, {fix}"
    refuse(dataset.name, (not known, fault))
    # requests would hold the body of a redirection in memory, whatever its size
    hooks = {"response": lambda answer, **_: answer.close() if answer.is_redirect else None}
    download = partial(bounded, pooch.HTTPDownloader(progressbar=True, hooks=hooks))
    try:
        place = (name, folder or cache_folder())
        return Path(pooch.retrieve(dataset.url, f"sha256:{known}", *place, downloader=download))
    except (OSError, ValueError) as error:  # requests' errors too
        fault = (
            "its sha256 is not the expected one"
            if type(error) is ValueError
            else type(error).__name__
        )
        raise UserError(f"cannot download {dataset.url} ({fault}): {fix}") from None


class TooLarge(OSError):
    """A server sends more than any declared set has."""


class TooSlow(OSError):
    """A server sends so little that a download would not end."""


class BoundedFile:
    """A file that takes so many bytes, and counts them."""

    def __init__(self, file: BinaryIO, room: int) -> None:
        self.file, self.room, self.came = file, room, 0

    def write(self, data: bytes) -> None:
        self.came += len(data)
        if self.came > self.room:
            raise TooLarge
        self.file.write(data)

    def flush(self) -> None:
        self.file.flush()


def bounded(download: Callable[..., None], url: str, path: str, pooch: object) -> None:
    """Download like pooch's downloader, but only up to the largest size, and at some rate."""
    with Path(path).open("wb") as file:
        counted = BoundedFile(file, MAX_DOWNLOAD_BYTES)
        hurried(lambda: download(url, counted, pooch), lambda: counted.came)


def hurried(ask: Callable[[], T], came: Callable[[], int] = lambda: 0) -> T:
    """Return what a server answers while bytes come at the least rate, from the question on.

    A thread waits for it: a server may send its headers as slowly as it likes.

    Raises:
        TooSlow: fewer came; what comes later is not waited for.
    """
    answered: Future[T] = Future()

    def answer(future: Future[T]) -> None:
        try:
            future.set_result(ask())
        except BaseException as error:
            future.set_exception(error)
            del future  # which this frame, the error's own, would hold: sockets are closed with it

    Thread(target=answer, args=[answered], daemon=True).start()
    before = 0
    while not wait([answered], RATE_SECONDS).done:
        if came() - before < LEAST_RATE * RATE_SECONDS:
            raise TooSlow
        before = came()
    try:
        return answered.result()
    finally:
        del answered  # for the same reason


def hub_sha256(dataset: Dataset, fix: str) -> str:
    """The hub's sha256 for the file at the pinned revision, kept so that it is asked for once."""
    import requests

    try:
        answer = hurried(partial(requests.head, dataset.url, allow_redirects=True, timeout=20))
    except OSError as error:
        raise UserError(f"cannot download {dataset.url} ({type(error).__name__}): {fix}") from None
    tags = [step.headers.get("X-Linked-ETag", "").strip('"') for step in (*answer.history, answer)]
    digest = next((tag for tag in tags if re.fullmatch("[0-9a-f]{64}", tag)), "")
    fault = f" ({answer.status_code}, and no sha256 beforehand): {fix}"
    refuse(f"cannot download {dataset.url}", (not digest, fault))
    write_whole(sidecar(dataset), digest.encode())
    return digest


def shipped_file(dataset: Dataset) -> Path:
    said, bad = file_state(dataset)
    refuse(dataset.name, (bad, f": {said}"))
    assert dataset.shipped, "asked for by its declaration"
    return dataset.shipped


def local_file(dataset: Dataset, data_root: Path | None) -> Path | None:
    """Return the dataset's file in the package, in the data root or the cache, or None."""
    if dataset.shipped:
        return shipped_file(dataset)
    name = cached_file(dataset).name
    roots = (data_root, data_root / dataset.folder) if data_root else ()
    places = [data_root / place for place in dataset.places] if data_root else []
    paths = [*(root / name for root in roots), *places, cache_folder() / name]
    return next(filter(holds_file, paths), None)


def holds_file(path: Path) -> bool:
    if path.is_dir():
        return any(files for _, _, files in os.walk(path, followlinks=True))
    return path.exists()


def obtain(dataset: Dataset, data_root: Path | None) -> Path:
    """Return the dataset's file, or its folder; what is not here comes from the network."""
    return local_file(dataset, data_root) or fetch_file(dataset)


def whereabouts(dataset: Dataset, data_root: Path | None) -> str:
    """Return where the dataset's file is, and its size; of several files, where the last is."""
    if dataset.within:
        return dataset.within
    path = local_file(dataset, data_root)
    if path is None:
        places = [whereabouts(file, data_root) for file in dataset.files]
        return "not here" if "not here" in places or not places else places[-1]
    size = f"{path.stat().st_size / 2**10:,.0f} KiB" if path.is_file() else "a folder"
    return f"{path}, {size}"


def file_state(dataset: Dataset, data_root: Path | None = None) -> tuple[str, bool]:
    """Return the state of the dataset's file, in the data root or the cache; True: it is bad."""
    if dataset.shipped:
        same = dataset.shipped.is_file() and file_sha256(dataset.shipped) == dataset.sha256
        fix = f"DAMAGED: install contrastbench again for {dataset.shipped}"
        return (fix, True) if not same else (f"{dataset.within}, sha256 verified", False)
    if not dataset.url:
        return dataset.within, False
    path, known = local_file(dataset, data_root), known_sha256(dataset)
    if path is None and dataset.files:
        states = [file_state(file, data_root) for file in dataset.files]
        return next((state for state in states if state != (WHOLE, False)), (WHOLE, False))
    if path is None:
        return "not downloaded", False
    if not (path.is_file() or path.is_dir()):  # a device has no end
        return f"{path} is neither file nor folder: remove it", True
    if path.is_dir():
        return f"{path} is a folder: records hold the hash of what is read of it", False
    if not known and dataset.content:
        return f"{path}: its content is checked as it is read", False
    if not known:
        return f"downloaded, sha256 not known: bench data fetch {dataset.name}", False
    if file_sha256(path) == known:
        return WHOLE, False
    ours = path == cached_file(dataset)
    return f"DAMAGED: delete {path}" if ours else f"DIFFERS from the declared file: {path}", True


def file_sha256(path: Path) -> str:
    refuse(path, (not path.is_file(), " is no file: name another"))
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
