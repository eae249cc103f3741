"""Check invariances: the order of samples, rotations, padding, and blocks of scores."""

from dataclasses import replace

import torch

from contrastbench.errors import UserError
from contrastbench.losses.contrast import Contrast, both_views, query_key, unit
from contrastbench.losses.laws import assertions
from contrastbench.losses.laws import random_contrasts as drawn
from contrastbench.losses.laws.assertions import Build, check_close, law
from contrastbench.losses.laws.causes import BLOCK_REMEDY


@law(
    "the order of the samples changes the loss",
    "anchors come in any order; set ordered = True if yours may not",
)
def check_permutation(build: Build, seed: int) -> None:
    """The order of the samples does not matter, unless the loss says that it is `ordered`."""
    if build().ordered:
        return
    views, generator = drawn.random_views(seed, 5 + seed % 4), torch.Generator().manual_seed(seed)
    order = torch.randperm(len(views[0]), generator=generator)
    pairing = drawn.some_pairing(seed, without="same_class")  # its classes go by position
    check_close(build()(pairing([v[order] for v in views])), build()(pairing(views)), 1e-10)


@law(
    "a rotation of all embeddings changes the loss",
    "use scores.pos and scores.neg, the cosines, not coordinates",
)
def check_rotation(build: Build, seed: int) -> None:
    """Only angles matter: a rotation of all embeddings changes nothing."""
    views, pairing = drawn.random_views(seed, 2 + seed % 7), drawn.some_pairing(seed)
    generator = torch.Generator().manual_seed(seed)
    rotation = torch.linalg.qr(torch.randn(8, 8, dtype=torch.float64, generator=generator)).Q
    check_close(build()(pairing([v @ rotation for v in views])), build()(pairing(views)), 1e-10)


@law(
    "padding among the positives changes the loss",
    "reduce over positives by scores.mean_pos or log_mean_pos, or leave out scores.padding",
)
def check_padding(build: Build, seed: int) -> None:
    """Rows of padding among the positives change nothing."""
    contrast = drawn.LAW_PAIRINGS["both_views with positives"](drawn.random_views(seed, 4))
    positive = contrast.positives()
    extra = torch.arange(2 * positive.shape[1]) >= positive.shape[1]
    padded = replace(
        contrast,
        positive=torch.cat([positive, torch.zeros_like(positive)], dim=1),
        padding=extra.expand(len(positive), -1),
    )
    check_close(build()(padded), build()(contrast), 1e-12)


@law(
    "keys that are no negatives change the loss",
    "reduce by mean_neg or log_mean_neg: they divide by scores.count, and leave out the holes",
)
def check_holes(build: Build, seed: int) -> None:
    """Keys that are no negatives change nothing."""
    views = drawn.random_views(seed, 9)
    ids = torch.zeros(6, dtype=torch.long)
    rows = unit(views[0][:6]), unit(views[1][:6, None]), unit(views[2][:5])
    few = drawn.numbered_samples(Contrast(*rows, ids, ids[:5] - 1))
    more = replace(few, keys=unit(views[2]), key_id=torch.cat([ids[:5] - 1, ids[:4]]))
    mean = replace(few, positive_in_denominator=False, mean_over_negatives=True)
    for short in (few, mean):
        try:
            expected = build()(short)
        except UserError:  # some need anchors of two samples
            return
        check_close(build()(replace(short, keys=more.keys, key_id=more.key_id)), expected, 1e-12)


@law(
    "the loss grows with the number of positives",
    "take the mean over positives: scores.mean_pos or log_mean_pos",
)
def check_repeated_positives(build: Build, seed: int) -> None:
    """Positives that are repeated change nothing: the loss takes a mean over them."""
    first, *others = drawn.random_views(seed, 4)
    twice, once = (
        drawn.numbered_samples(both_views(first, others[0], positives=more))
        for more in (others * 2, others)
    )
    check_close(build()(twice), build()(once), 1e-12)


@law(
    "the loss grows with the number of anchors",
    f"take the mean over anchors: combine does so unless you write your own; {BLOCK_REMEDY}",
)
def check_repeated_anchors(build: Build, seed: int) -> None:
    """Anchors that are repeated change nothing: the loss takes a mean over them."""
    loss, views = build(), drawn.random_views(seed, 4)
    if loss.ordered:
        return
    once = drawn.LAW_PAIRINGS["query_key"](views)
    twice = drawn.numbered_samples(query_key([*views[:2], *views[:2]], views[2]))
    check_close(loss(twice), loss(once), 1e-12)


@law("the loss depends on the blocks in which rows are taken", BLOCK_REMEDY)
def check_tiles(build: Build, seed: int) -> None:
    """Blocks of rows and tiles, of sizes that leave a rest, give value and gradient too."""
    views = drawn.random_views(seed, 5, grad=True)
    for pairing in drawn.LAW_PAIRINGS.values():
        contrast = pairing(views)
        anchors, keys = len(contrast.anchor), len(contrast.keys)
        expected = assertions.value_and_gradient(build(), contrast, views)
        sizes = [size for size in range(1, anchors) if anchors % size]
        for size in {*sizes[:1], *sizes[-1:]}:
            for options in ({"block_elements": size * keys}, {"tile": size}):
                blocked = assertions.value_and_gradient(
                    assertions.configured(build(), options), contrast, views
                )
                for a, b in zip(blocked, expected, strict=True):
                    check_close(a, b, 1e-12)
