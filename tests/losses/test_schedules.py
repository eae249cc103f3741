"""Parameters that follow a schedule, and temperatures that are learned."""

import copy
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from torch import Tensor

from contrastbench.losses import LOSSES, LossSpec, UserError, both_views, get_loss
from contrastbench.losses.base import Loss
from contrastbench.losses.laws import check_loss
from contrastbench.losses.laws.assertions import configured
from contrastbench.losses.laws.random_contrasts import numbered_samples, random_views
from contrastbench.losses.ranges import Choice, Given, Number
from contrastbench.losses.registry import SUPERVISED, describe
from contrastbench.losses.schedules import Schedule

OURS = [*LOSSES, *SUPERVISED]
LEARNING = {"clip", "siglip"}  # learn their temperature themselves
DETACHED = {"alpha_cl"}  # its weights, where the temperature stands, are constants
LEARNABLE = [
    name
    for name in OURS
    if "temperature" in describe(name).params
    and not describe(name).ranges["temperature"].fixed
    and name not in LEARNING | DETACHED
]
NUMBERS = [
    (name, key, numbers)
    for name in OURS
    for key, range_ in describe(name).ranges.items()
    if not isinstance(range_, Choice)
    for numbers in [range_.ranges["gaussian"] if isinstance(range_, Given) else range_]
]
ONCE = {
    ("clip", "temperature"),
    ("isogclr", "temperature"),
    ("sogclr", "temperature"),
    ("siglip", "temperature"),
    ("siglip", "bias"),
    ("proxy_anchor", "lr"),
}


def prepared(loss: Loss) -> Loss:
    torch.manual_seed(0)
    loss.prepare(100, 8)
    loss.prepare_samples(100)
    return loss.double().train(not loss.needs_samples)  # two calls are to have one value


def value_and_slope(loss: Loss, options: dict[str, int] | None = None) -> tuple[Tensor, Tensor]:
    views = random_views(0, 40, grad=True)
    value = configured(loss, options or {})(numbered_samples(both_views(*views[:2])))
    return value.detach(), torch.autograd.grad(value, views[0])[0]


@pytest.mark.parametrize("shape", ["linear", "cosine"])
def test_a_schedule_begins_and_ends_exactly_and_stays_between(shape: str) -> None:
    for start, end in ((0.1, 1.0), (1.0, 0.1), (0.3, 0.7), (0.7, 0.7)):
        schedule = Schedule(shape, start, end)
        values = [schedule.at(step / 99) for step in range(100)]
        assert (values[0], values[-1]) == (start, end)
        assert sorted(values, reverse=start > end) == values
    assert Schedule("linear", 0, 1).at(0.25) == 0.25
    assert Schedule("cosine", 0, 1).at(0.25) == pytest.approx((1 - math.sqrt(0.5)) / 2)


@pytest.mark.parametrize(("name", "key", "numbers"), NUMBERS)
def test_each_number_of_each_loss_follows_a_schedule(name: str, key: str, numbers: Number) -> None:
    """After a share of the steps the loss is the loss with the value there."""
    assert numbers.tune
    middle = sum(numbers.tune) / 2
    text = f"linear({numbers.tune[0]}, {middle})"
    if (name, key) in ONCE:
        with pytest.raises(UserError, match=f"^{key} must be a number|cannot change {key}"):
            get_loss(name, **{key: text})
        return
    loss = prepared(get_loss(name, **{key: text}))
    assert isinstance(getattr(loss, key), float)
    assert getattr(loss, key) == numbers.tune[0]
    loss.advance(1.0)
    expected = value_and_slope(prepared(get_loss(name, **{key: middle})))
    assert all(map(torch.equal, value_and_slope(loss), expected))


def test_a_sum_passes_a_schedule_to_its_terms() -> None:
    loss = get_loss(
        "infonce + 0.5*hcl", temperature="linear(0.1,1)", **{"hcl.beta": "cosine(0, 2)"}
    )
    loss.advance(0.5)
    infonce, hcl = loss.losses
    assert (infonce.temperature, hcl.temperature) == (0.55, 0.55)
    assert hcl.beta == pytest.approx(1)
    assert loss.params == {
        "infonce.temperature": "linear(0.1, 1.0)",
        "hcl.temperature": "linear(0.1, 1.0)",
        "hcl.tau_plus": 0.1,
        "hcl.beta": "cosine(0.0, 2.0)",
    }


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("cosine(.1,1)", "cosine(0.1, 1.0)"),
        (" linear( 1e-1 , 2 ) ", "linear(0.1, 2.0)"),
        ("learned", "learned(0.5)"),
        ("learned()", "learned(0.5)"),
        ("learned(1e-1)", "learned(0.1)"),
        ("learned(0.1,lr = 1e-2)", "learned(0.1, lr=0.01)"),
        ("learned(lr=0.01)", "learned(0.5, lr=0.01)"),
    ],
)
def test_a_record_has_one_text_for_each_course(given: str, canonical: str) -> None:
    spec = LossSpec("infonce", {"temperature": given})
    spec.check()
    assert spec.complete == LossSpec("infonce", {"temperature": canonical})
    assert spec.make().params == {"temperature": canonical}
    assert repr(copy.deepcopy(spec.make())) == f"InfoNCE(temperature={canonical!r})"


FORM = "temperature must be a number, or a schedule"
WRONG = [
    ("infonce temperature=cosine(0.1, -1)", "temperature must be a finite number > 0, got -1"),
    ("infonce temperature=cosine(0, 1)", "temperature must be a finite number > 0, got 0"),
    ("infonce temperature=cosine(0.1)", FORM),
    ("infonce temperature=cosine", FORM),
    ("infonce temperature=step(0.1, 1)", FORM),
    ("infonce temperature=linear(0.1, nan)", FORM),
    ("infonce temperature=learned(0.1, 0.2)", FORM),
    ("infonce temperature=learned(0.1,lr=0)", FORM),
    ("infonce temperature=learned(-1)", "temperature must start >= 0.01"),
    ("infonce temperature=learned(0.009)", "temperature must start >= 0.01 to be learned"),
    ("renyi gamma=linear(0.5, 2)", "gamma must not pass 1"),
    ("hcl beta=learned(1)", "only a temperature is learned"),
    ("adnce weight=gamma mu=linear(0, 1)", "mu must be a finite number > 0"),
    ("adnce variant=linear(0, 1)", "variant must be one of"),
    ("alpha_cl temperature=learned(0.1)", "alpha_cl has no gradient by temperature"),
    ("clip temperature=learned(0.1)", "clip has no gradient by temperature"),
    ("clip temperature=linear(0.1, 1)", "its constructor computes something from it"),
    ("infonce learn=temperature", r"learned by temperature=learned\(0.1\)"),
    ("infonce 1.0)=None", "within braces write a schedule in quotes"),  # YAML's split
]


@pytest.mark.parametrize("make", [LossSpec.check, LossSpec.make])
@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_wrong_course_is_refused(
    make: Callable[[LossSpec], object], text: str, message: str
) -> None:
    name, *pairs = re.split(r" (?=[\w.)]+=)", text)
    params = dict(pair.split("=", 1) for pair in pairs)
    with pytest.raises(UserError, match=message):
        make(LossSpec(name, params))


@pytest.mark.parametrize("options", [{}, {"block_elements": 300}, {"tile": 16}])
@pytest.mark.parametrize("name", LEARNABLE)
def test_a_learned_temperature_begins_as_a_fixed_one_and_has_its_gradient(
    name: str, options: dict[str, int]
) -> None:
    loss = prepared(get_loss(name, temperature="learned(0.3)"))
    fixed = value_and_slope(prepared(get_loss(name, temperature=0.3)), options)
    for found, expected in zip(value_and_slope(loss, options), fixed, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    configured(loss, options)(numbered_samples(both_views(*random_views(0, 40)[:2]))).backward()
    start, step = loss.temperature.item(), 1e-5
    low, high = (
        value_and_slope(prepared(get_loss(name, temperature=start * math.exp(by))))[0].item()
        for by in (-step, step)
    )
    assert loss.log_temperature.grad != 0
    if name == "macl":
        return  # its weights are constants in the gradient, and the difference has them too
    # the difference's error is its step squared, and rounding over the step
    slope = (high - low) / (2 * step)
    assert loss.log_temperature.grad.item() == pytest.approx(slope, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("name", ["hcl", "jsd"])
def test_a_loss_with_a_learned_temperature_passes_the_battery(name: str) -> None:
    results = check_loss(name, seeds=[0], temperature="learned(0.4)")
    assert [result for result in results if not result.passed] == []


def test_a_learned_temperature_stays_in_its_range_and_has_its_own_rate(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "from contrastbench.losses.library.infonce import InfoNCE\n"
        "from contrastbench.losses.ranges import Number, declare\n"
        "class Own(InfoNCE):\n"
        "    ranges = declare(temperature=Number(low=0.2, high=0.8, closed=True))\n"
    )
    for own_rate, moved, bound in ((1e3, 1, 0.2), (1e3, -1, 0.8)):
        loss = get_loss(f"{tmp_path}/own.py:Own", temperature=f"learned(0.3, lr={own_rate})")
        (group,) = loss.parameter_groups()
        assert group["lr"] == own_rate
        group["params"][0].grad = torch.tensor(float(moved))
        torch.optim.SGD([group], lr=1.0).step()
        loss(both_views(*random_views(0, 6, dtype=torch.float32)[:2]))
        assert loss.temperature.item() == pytest.approx(bound)


OWN = """
from contrastbench.losses.library.infonce import InfoNCE

class Once(InfoNCE):
    def __init__(self, temperature: float = 0.5) -> None:
        super().__init__(temperature)
        self.scale = 1 / temperature

    def terms(self, scores):
        return -scores.mean_pos(scores.log_share(scores.pos * self.scale, scores.neg * self.scale))
"""


def test_what_a_constructor_computes_follows_no_schedule(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    with pytest.raises(UserError, match=r"Once cannot change temperature .* give a number"):
        get_loss(f"{tmp_path}/own.py:Once", temperature="linear(0.1, 1)")


def test_the_page_shows_courses_that_losses_take() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "losses.md"
    text = page.read_text(encoding="utf-8")
    given = re.findall(r'--loss (\w+) --set "(\w+)=([^"]+)"', text)
    assert len(given) == 3
    for name, key, value in given:
        LossSpec(name, {key: value}).check()
    (listed,) = re.findall(r"^  - (\{hcl: .*\})$", text, re.MULTILINE)
    LossSpec("hcl", yaml.safe_load(listed)["hcl"]).check()
