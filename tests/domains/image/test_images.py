"""Splits of images, in memory and in files."""

from pathlib import Path

import pytest
import torch

pytest.importorskip("PIL")
from contrastbench.domains.image import files
from contrastbench.domains.image.data import load
from contrastbench.domains.image.folders import load_folder
from contrastbench.domains.image.images import ImageFiles, Images
from made_images import CPU, folder, noise, read, refused, save


def test_a_part_is_picked_by_row_numbers() -> None:
    train = load("digits", 8, None, CPU)[0].train
    assert isinstance(train, Images)
    rows = torch.tensor([5, 1, 5])
    assert torch.equal(train.batch(rows), train.pixels[[5, 1, 5]])
    chosen = train.select(rows)
    assert (len(chosen), chosen.labels.tolist()) == (3, train.labels[[5, 1, 5]].tolist())


@pytest.mark.parametrize("one_size", [True, False])
def test_files_that_do_not_fit_are_decoded_batch_by_batch(
    one_size: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = folder(tmp_path)
    if not one_size:
        save(root / "train/cat/0.png", noise(40, 60, 3))
    resident = read(root)
    monkeypatch.setattr(files, "RESIDENT_BYTES", 100)
    load_folder.cache_clear()
    unread = read(root)
    assert isinstance(unread.train, ImageFiles)
    rows = torch.tensor([4, 0, 4, 1])
    assert torch.equal(unread.train.batch(rows), resident.train.batch(rows))
    assert torch.equal(
        unread.train.select(rows).batch(torch.tensor([1, 0])), resident.train.batch(rows[[1, 0]])
    )
    assert torch.equal(unread.train.select(rows).labels, resident.train.labels[rows])


def test_a_file_damaged_later_is_named_by_its_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "RESIDENT_BYTES", 100)
    load_folder.cache_clear()
    unread = read(folder(tmp_path)).train
    (tmp_path / "train/cat/1.png").unlink()
    refused(lambda: unread.batch(torch.arange(6)), r"cannot read .*1\.png \(No such file")
