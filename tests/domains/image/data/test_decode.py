"""Image files and splits of them: what they hold, how they are kept, and what is refused."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import functional as F

from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data.decode import ORIENTATION
from contrastbench.domains.image.data.images import ImageFiles, Images
from contrastbench.domains.image.data.own import load_images
from contrastbench.domains.image.views.draws import draw_crops
from contrastbench.domains.image.views.policies import Policy
from made_images import CPU, folder, noise, read, refused, rng, save


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
DEEP = np.random.default_rng(0).integers(0, 65536, (16, 16), dtype=np.uint16)  # by its higher byte
MODES = {  # an image, how it is saved, its pixels
    "grey, in all three colours": (Image.fromarray(GREY), {}, np.stack([GREY] * 3, axis=2)),
    "I;16, converted to RGB": (Image.fromarray(DEEP), {}, np.stack([DEEP >> 8] * 3, axis=2)),
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


def test_16_bit_grey_that_its_higher_byte_does_not_hold_is_refused() -> None:
    values = np.random.default_rng(0).integers(9, 4096, (16, 16), dtype=np.uint16)
    values[0, 0], values[0, 1] = 9, 4095
    file = io.BytesIO()
    Image.fromarray(values).save(file, "png")
    words = "16-bit grey from 9 to 4095, too dark for the higher 8"
    refused(lambda: decode.decode("a.png", file.getvalue(), None), words)


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


def digest(root: Path) -> str:
    return load_images(f"folder:{root}", 16, None, CPU)[1]


def test_the_hash_is_that_of_names_and_bytes(tmp_path: Path) -> None:
    first = digest(folder(tmp_path / "a"))
    assert digest(folder(tmp_path / "b")) == first
    assert load_images(f"folder:{tmp_path / 'a'}", 32, None, CPU)[1] == first, (
        "however they are stored"
    )
    save(tmp_path / "b/train/cat/0.png", noise(16, 16, 3, seed=77))
    changed = digest(tmp_path / "b")
    assert changed != first
    (tmp_path / "b/train/cat/0.png").rename(tmp_path / "b/train/dog/9.png")
    assert digest(tmp_path / "b") not in (first, changed)


def test_images_of_several_sizes_are_stored_in_one(tmp_path: Path) -> None:
    root = folder(tmp_path)
    save(root / "train/cat/0.png", noise(40, 60, 3))
    save(root / "train/cat/1.png", noise(10, 12, 3))
    images = read(root)
    assert isinstance(images.train, Images)
    assert images.train.pixels.shape == (6, 3, 16, 16)
    assert images.notes == {"enlarged to 16 x 16": 1, "reduced or cut to 16 x 16": 1}
    large = Image.open(root / "train/cat/0.png").resize((24, 16), Image.Resampling.BILINEAR)
    found = images.train.pixels[0].permute(1, 2, 0)
    assert np.array_equal(found.numpy(), np.asarray(large)[:, 4:20])


def test_large_images_of_one_size_are_reduced_and_small_ones_kept(tmp_path: Path) -> None:
    large = read(folder(tmp_path / "large", side=120), 64).train
    small = read(folder(tmp_path / "small", side=90), 64).train
    assert [part.batch(torch.tensor([0])).shape[-1] for part in (large, small)] == [64, 90]


def pictures(root: Path) -> tuple[Path, list[Image.Image]]:
    """A folder with training pictures of several shapes, and these in order."""
    shapes = [(40, 60), (90, 30), (33, 33), (200, 50), (16, 16), (50, 51)]
    for k, shape in enumerate(shapes):
        name = f"train/{'cat' if k < 3 else 'dog'}/{k % 3}.png"
        save(folder(root) / name, noise(*shape, 3, seed=k))
    names = sorted((root / "train").rglob("*.png"))
    return root, [Image.open(name).convert("RGB") for name in names]


def whole(root: Path) -> ImageFiles:
    train = read(root, whole=True).train
    assert isinstance(train, ImageFiles)
    return train


def test_crops_of_whole_pictures_are_torchvisions(tmp_path: Path) -> None:
    """RandomResizedCrop on the picture as it is, of other sides each, and a flip."""
    root, originals = pictures(tmp_path)
    train, rows = whole(root), torch.tensor([4, 0, 3, 1, 2, 5, 3])
    whole_view, local = Policy(16, flip=0.0), Policy(24, scale=(0.05, 0.2), flip=1.0)
    policies = [whole_view, local, local]
    one, two = train.select(rows).crops([(whole_view, 1), (local, 2)], rng())
    found = [one, *two.chunk(2)]
    draw, sides = rng(), torch.tensor([originals[k].size[::-1] for k in rows.tolist()]).float()
    boxes = [draw_crops(len(rows), *sides.T, p, draw) for p in policies]
    for crops, policy, places in zip(found, policies, boxes, strict=True):
        for crop, k, (t, left, h, w) in zip(
            crops, rows.tolist(), places.int().tolist(), strict=True
        ):
            assert t + h <= originals[k].height
            assert left + w <= originals[k].width
            part = F.resized_crop(originals[k], t, left, h, w, [policy.size] * 2)
            part = F.hflip(part) if policy.flip else part
            assert torch.equal(crop, F.pil_to_tensor(part).float() / 255)


def test_crops_reach_what_a_square_middle_leaves_out(tmp_path: Path) -> None:
    """Pictures that are white at their ends and black in the middle."""
    wide = noise(30, 90, 3) * 0
    wide[:, :20], wide[:, 70:] = 255, 255
    folder(tmp_path)
    for k in range(3):
        save(tmp_path / f"train/cat/{k}.png", wide)
    train, cats = whole(tmp_path), torch.arange(3).repeat(20)
    (crops,) = train.select(cats).crops([(Policy(16), 1)], rng())
    assert crops.max() == 1
    assert not train.batch(cats).any(), "but scored is the middle"
    (square,) = read(tmp_path).train.select(cats).crops([(Policy(16), 1)], rng())
    assert square.max() == 0


def test_a_picture_is_decoded_once_for_all_its_crops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, opened = whole(pictures(tmp_path)[0]), []
    once = decode.open_image
    monkeypatch.setattr(decode, "open_image", lambda *args: opened.append(args[0]) or once(*args))
    list(train.crops([(Policy(16), 8)], rng()))
    assert sorted(opened) == sorted(train.names)


def test_small_pictures_of_one_size_are_whole_in_memory(tmp_path: Path) -> None:
    images = read(folder(tmp_path), whole=True)
    assert isinstance(images.train, Images)
    assert isinstance(images.test, Images)
