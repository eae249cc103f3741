"""Files that are decoded ahead of the step: what is begun, and that no number knows of it."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from contrastbench.benchmarks.running.training import train
from contrastbench.domains.image import domain as image_domain
from contrastbench.domains.image.data import decode, images
from contrastbench.domains.image.data.images import ImageFiles
from contrastbench.domains.image.domain import ImageDomain
from contrastbench.domains.image.recipe import PROBES
from contrastbench.domains.own import read_unchanged
from contrastbench.losses import get_loss
from made_images import folder, noise, read, refused, save
from opened import opened

RECIPE = {"epochs": 2, "batch_size": 4, "size": 8, "width": 0.0625, "validation": 0}


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "RESIDENT_BYTES", 100)
    read_unchanged.cache_clear()


def large(root: Path) -> Path:
    """A folder of pictures of several shapes, 24 of them to train on."""
    folder(root, side=16)
    for k in range(24):
        name = f"train/{'cat' if k % 2 else 'dog'}/{k // 2}.png"
        save(root / name, noise(20 + k, 40 - k, 3, seed=k))
    return root


def domain(root: Path, **recipe: object) -> ImageDomain:
    return opened("image", f"folder:{root}", **{**RECIPE, **recipe})


def test_an_error_leaves_what_no_thread_has_begun() -> None:
    """An error such as Ctrl-C leaves pictures undecoded that no thread has begun."""
    over, done = threading.Event(), []

    def work(number: int) -> None:
        if number == 0:
            raise KeyboardInterrupt
        over.wait()
        done.append(number)

    threads = decode.pool()
    begun = decode.begin_decoding(work, 10_000)
    with pytest.raises(KeyboardInterrupt):
        next(begun)
    over.set()
    threads.shutdown()
    decode.pool.cache_clear()
    most = 16 + 1  # threads, and one that goes on after the error
    assert len(done) <= most * decode.IMAGES_PER_THREAD


def test_a_training_that_ends_in_an_epoch_leaves_what_no_thread_has_begun(
    tmp_path: Path, unread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = domain(large(tmp_path)).batches(0)
    next(batches).files()
    left: list[bool] = []
    monkeypatch.setattr(image_domain, "cancel_decoding", lambda: left.append(True))
    del batches
    assert left == [True]
    for _ in domain(tmp_path).batches(0):
        pass
    assert left == [True], "an epoch that ends has nothing left"


def test_threads_decode_while_a_batch_is_used(tmp_path: Path, unread: None) -> None:
    """The second batch is whole before anybody asks for it."""
    train_files = read(large(tmp_path)).train
    assert isinstance(train_files, ImageFiles)
    seen, whole = [], threading.Event()

    def watched(name: str) -> bytes:
        data = train_files.read(name)
        seen.append((name, threading.current_thread() is threading.main_thread()))
        if len(seen) == 12:
            whole.set()
        return data

    watching = ImageFiles(**{**vars(train_files), "read": watched})
    batch = watching.ahead(torch.arange(24).split(4))
    batch(0)
    assert whole.wait(60), "three batches of four"
    assert {name for name, _ in seen} == set(train_files.names[:12])
    assert not any(main for _, main in seen)


@pytest.mark.parametrize(("whole", "probe"), [(False, "paper"), (True, "lbfgs")])
def test_numbers_are_those_of_decoding_within_the_step(
    whole: bool, probe: str, tmp_path: Path, unread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROBES, "paper", replace(PROBES["paper"], epochs=2))
    root, found = large(tmp_path), []
    for ahead in (0, 2):
        monkeypatch.setattr(decode, "BATCHES_AHEAD", ahead)
        one = domain(root, whole_pictures=whole, probe=probe)
        assert isinstance(one.splits["train"], ImageFiles)
        model, history = train(one, get_loss("infonce"))
        found.append((history.loss_by_epoch, one.evaluate(model).metrics))
    assert found[0] == found[1]


def test_sets_in_memory_and_in_files_give_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, found = large(tmp_path), []
    for limit in (1 << 30, 100):
        monkeypatch.setattr(images, "RESIDENT_BYTES", limit)
        read_unchanged.cache_clear()
        one = domain(root)
        assert isinstance(one.splits["train"], ImageFiles) is (limit == 100)
        found.append(train(one, get_loss("infonce"))[1].loss_by_epoch)
    assert found[0] == found[1]


def test_a_file_damaged_later_is_one_line_of_the_step_that_needs_it(
    tmp_path: Path, unread: None
) -> None:
    one = domain(large(tmp_path))
    batches = list(one.batches(0))
    split = one.splits["train"]
    assert isinstance(split, ImageFiles)
    damaged = split.names[int(batches[1].rows[2])]
    (tmp_path / damaged).write_bytes(b"no image")
    model = one.model()
    one.contrasts(model, batches[0])
    words = rf"{damaged} is no image .*: remove or replace it"
    refused(lambda: one.contrasts(model, batches[1]), words)


def test_a_file_that_has_another_size_by_now_is_one_line(tmp_path: Path, unread: None) -> None:
    split = read(folder(tmp_path, side=16)).train
    save(tmp_path / split.names[1], noise(20, 30, 3))
    refused(lambda: split.batch(torch.arange(3)), rf"{split.names[1]} is damaged \(.*\): remove")
