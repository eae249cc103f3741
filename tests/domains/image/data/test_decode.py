"""Image files: what they hold besides RGB, and what is refused."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("PIL")
from PIL import Image

from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data.decode import ORIENTATION
from made_images import folder, noise, read, refused, save


def harmless(
    image: Image.Image, tmp_path: Path, suffix: str = "png", **options: Any
) -> tuple[Any, dict[str, Any]]:
    """The pixels of an odd image among ordinary ones, and what is noted."""
    root = folder(tmp_path)
    (root / "train/cat/0.png").unlink()
    image.save(root / f"train/cat/0.{suffix}", **options)
    images = read(root)
    return images.train.batch(torch.tensor([0]))[0].numpy().transpose(1, 2, 0), images.notes


RGBA, PALETTE = noise(16, 16, 4), Image.fromarray(noise(16, 16, 3)).quantize(16)
GREY = noise(16, 16)
MODES = {  # an image, how it is saved, its pixels
    "grey, in all three colours": (Image.fromarray(GREY), {}, np.stack([GREY] * 3, axis=2)),
    "RGBA, converted to RGB": (Image.fromarray(RGBA), {}, RGBA[:, :, :3]),
    "P, converted to RGB": (
        PALETTE,
        {"transparency": bytes(range(16))},
        np.asarray(PALETTE.convert("RGB")),
    ),
}


@pytest.mark.parametrize("note", MODES)
def test_other_modes_become_three_colours_without_transparency(note: str, tmp_path: Path) -> None:
    image, options, expected = MODES[note]
    pixels, notes = harmless(image, tmp_path, **options)
    assert np.array_equal(pixels, expected)
    assert notes == {note: 1}


def test_16_bit_grey_that_its_higher_byte_does_not_hold_is_refused(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(9, 4096, (16, 16), dtype=np.uint16)
    values[0, 0], values[0, 1] = 9, 4095
    file = io.BytesIO()
    Image.fromarray(values).save(file, "png")
    words = "16-bit grey from 9 to 4095, too dark for the higher 8"
    refused(lambda: decode.decode("a.png", file.getvalue(), None), words)


def test_the_higher_byte_of_16_bit_grey_is_taken(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 65536, (16, 16), dtype=np.uint16)
    pixels, notes = harmless(Image.fromarray(values), tmp_path)
    assert np.array_equal(pixels[:, :, 0], values >> 8)
    assert notes == {"I;16, converted to RGB": 1}


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
def test_an_orientation_is_not_applied_and_said(suffix: str, tmp_path: Path) -> None:
    image = Image.fromarray(np.full((16, 16, 3), 40, dtype=np.uint8))
    image.paste((200, 200, 200), (0, 0, 16, 8))
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    pixels, notes = harmless(image, tmp_path, suffix, exif=exif)
    assert np.abs(pixels.astype(int) - np.asarray(image)).max() < 6
    assert notes == {"EXIF orientation not applied": 1}


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")  # by Pillow
def test_an_orientation_that_changes_nothing_or_is_damaged_is_not_said(tmp_path: Path) -> None:
    image, exif = Image.fromarray(noise(16, 16, 3)), Image.Exif()
    exif[ORIENTATION] = 1
    assert harmless(image, tmp_path / "a", "jpg", exif=exif)[1] == {}
    assert harmless(image, tmp_path / "b", "jpg", exif=b"Exif\0\0MM\0*\0\0\0\xff")[1] == {}


@pytest.mark.parametrize("suffix", ["gif", "webp", "png", "tiff"])
def test_of_several_frames_the_first_is_taken_and_said(suffix: str, tmp_path: Path) -> None:
    levels = (40, 200, 120)
    plain = [np.full((16, 16, 3), level, dtype=np.uint8) for level in levels]
    first, *others = map(Image.fromarray, plain)
    options = {"lossless": True} if suffix == "webp" else {}
    options |= {"save_all": True, "append_images": others}
    pixels, notes = harmless(first, tmp_path, suffix, **options)
    assert np.array_equal(pixels, np.asarray(first))
    assert notes.pop("first of several frames taken") == 1
    assert set(notes) <= {"P, converted to RGB"}


@pytest.mark.parametrize(
    ("kind", "times", "message"),
    [
        (np.float32, 1, r"1\.tiff has pixels of mode F"),
        (np.int32, 1000, r"1\.tiff is damaged \(values of more than 16 bits\)"),
    ],
)
def test_bad_files_are_one_line(kind: type, times: int, message: str, tmp_path: Path) -> None:
    save(folder(tmp_path) / "train/cat/1.tiff", noise(16, 16).astype(kind) * times)
    refused(lambda: read(tmp_path), message)
