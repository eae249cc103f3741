"""Validation parts, and the images that share a batch."""

import pytest

pytest.importorskip("PIL")

from contrastbench.domains.image.data.images import Images
from contrastbench.domains.image.sampling import held_out_split
from made_images import grey_levels as images


def rows(part: Images, whole: Images) -> list[int]:
    """The numbers of a part's images in the whole."""
    return [int((whole.pixels == image).flatten(1).all(dim=1).nonzero()) for image in part.pixels]


def test_the_validation_part_has_its_share_of_each_class_and_the_rest_is_training() -> None:
    whole = images()
    train, validation = held_out_split(whole, 0.2, 0)
    assert validation.labels.bincount().tolist() == [2, 2, 2, 2]
    assert sorted(rows(train, whole) + rows(validation, whole)) == list(range(40))
    assert rows(held_out_split(whole, 0.2, 0)[1], whole) == rows(validation, whole)
    assert rows(held_out_split(whole, 0.2, 1)[1], whole) != rows(validation, whole)


def test_without_a_share_there_is_no_validation_part_and_a_limit_keeps_so_many() -> None:
    train, validation = held_out_split(images(), 0.0, 0, 10)
    assert (len(train), validation) == (10, None)
    train, validation = held_out_split(images(), 0.5, 0, 20)
    assert len(train) + len(validation) == 20
