"""Views on an accelerator: the CPU's, without a wait for the device."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from contrastbench.domains.image.data.images import Images
from contrastbench.domains.image.preprocessing import Preprocessing
from contrastbench.domains.image.views import colour, draws, policies, randaugment
from contrastbench.domains.image.views import transforms as views
from contrastbench.domains.random import generator, on_host
from made_images import CPU, N, picture, rng
from opened import opened
from shadow import Counts, counting, shadow

shadow()  # before torch's first backward pass, which asks what devices there are

FILL = (0.485, 0.456, 0.406)


def test_jitter_in_six_passes_is_jitter_by_turns() -> None:
    images = picture().float() / 255 * 1.001  # resampling leaves some a little above 1
    factors, order = draws.draw_jitter(
        N, policies.Policy(32, jitter=0.8, strength=(0.8, 0.8, 0.8, 0.4)), rng()
    )
    factors[::5, colour.HUE] = 0
    expected = colour.jitter(images.clone(), factors, order)
    found = colour.jitter(images.to(shadow()), factors.to(shadow()), order.to(shadow()))
    assert torch.equal(found.cpu(), expected)


def view(policy: policies.Policy, device: torch.device, images: Tensor) -> tuple[Tensor, Counts]:
    images, draws = images.to(device), generator(device, 0)
    with counting() as counts:
        x = views.normalise(views.augment(images, policy, draws), FILL, FILL)
        x = views.erase_some(x, policy, draws) if policy.erasing else x
    return x.cpu(), counts


POLICIES = {
    "none": policies.policy("none", 32),
    "base": replace(policies.policy("base", 32), blur=0.5, solarise=0.2),
    "warp": replace(policies.policy("base", 32), warp="reflection", rotation=0.2),
    "hard without erasing": replace(policies.policy("hard", 32), erasing=0.0),
    "hard": policies.policy("hard", 32),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("shape", [(32, 32), (40, 56)])
def test_views_are_the_cpus_without_a_wait(name: str, shape: tuple[int, int]) -> None:
    policy, images = POLICIES[name], picture(*shape)
    found, _ = view(policy, shadow(), images)
    again, counts = view(policy, shadow(), images)
    copies = 2 * bool(policy.randaugment)  # the host groups images by their operations
    assert (counts.host_reads, counts.copies) == (0, copies), (counts.read_at, counts.copied_at)
    assert torch.equal(found, again)
    # erased boxes have other noise: how many there are is not asked
    if not (policy.erasing or policy.randaugment):
        assert torch.equal(found, view(policy, torch.device("cpu"), images)[0])


def test_operations_are_the_cpus_and_each_view_has_its_own() -> None:
    images, device = picture().float(), generator(shadow(), 0)
    draws = [randaugment.draw_operations(3, N, 5.0, on_host(device)) for _ in range(2)]
    assert not torch.equal(draws[0].operation, draws[1].operation)
    there = randaugment.apply(images.to(shadow()), draws[0], FILL)
    assert torch.equal(there.cpu(), randaugment.apply(images, draws[0], FILL))


@pytest.mark.parametrize(("kind", "launches"), [("none", 48), ("base", 159)])
def test_equal_views_are_one_batch(kind: policies.PolicyKind, launches: int) -> None:
    """What two views of a step need, made together."""
    images, labels = picture().to(shadow()), torch.zeros(N, dtype=torch.long).to(shadow())
    policy = policies.policy(kind, 32)
    for _ in range(2):  # constants are there from the first time on
        with counting() as counts:
            one, other = Preprocessing(FILL, FILL, 32).views(
                Images(images, labels), [policy] * 2, generator(shadow(), 0)
            )
    assert counts.launches <= launches, counts.launched
    assert (counts.host_reads, counts.copies) == (0, 0)
    assert one.shape == other.shape == (N, 3, 32, 32)
    assert not torch.equal(one.cpu(), other.cpu())


def test_the_fast_presets_run_on_a_device() -> None:
    values = {"epochs": 1, "limit": 200, "batch_size": 32, "width": 0.125, "projection": (16, 8)}
    values["size"] = 16
    for preset in ("photographs", "drawings"):
        values["preset"] = preset
        here, there = (
            opened("image", "digits", device=device, **values) for device in (CPU, shadow())
        )
        (contrast,) = there.contrasts(there.model(), next(iter(there.batches(0))))
        assert contrast.anchor.device.type == "shadow"
        scores = [domain.evaluate(domain.model()).metrics for domain in (here, there)]
        assert scores[0] == pytest.approx(scores[1])
