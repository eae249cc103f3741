"""Splits of images, in memory and in files."""

from pathlib import Path

import pytest
import torch

pytest.importorskip("PIL")
from PIL import Image
from torchvision.transforms import functional as F

from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data.images import ImageFiles, Images
from contrastbench.domains.image.data.own import load_images
from contrastbench.domains.image.views.draws import draw_crops
from contrastbench.domains.image.views.policies import Policy
from made_images import CPU, folder, noise, read, rng, save


def pictures(root: Path) -> tuple[Path, list[Image.Image]]:
    """A folder with training pictures of several shapes, and these in order."""
    shapes = [(40, 60), (90, 30), (33, 33), (200, 50), (16, 16), (50, 51)]
    for k, shape in enumerate(shapes):
        name = f"train/{'cat' if k < 3 else 'dog'}/{k % 3}.png"
        save(folder(root) / name, noise(*shape, 3, seed=k))
    names = sorted((root / "train").rglob("*.png"))
    return root, [Image.open(name).convert("RGB") for name in names]


def whole(root: Path) -> ImageFiles:
    train = load_images(f"folder:{root}", 16, None, CPU, whole=True)[0].train
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
    boxes = [draw_crops(len(rows), *sides.T, p.scale, p.ratio, draw) for p in policies]
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
    images = load_images(f"folder:{folder(tmp_path)}", 16, None, CPU, whole=True)[0]
    assert isinstance(images.train, Images)
    assert isinstance(images.test, Images)
