"""Losses by name: sums, aliases, descriptions, and what the registry does not import."""

import ast
import re
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from contrastbench.benchmarks.cli.loss_list import families, loss_lines
from contrastbench.losses import LOSSES, LossSpec, UserError, get_loss, registry
from contrastbench.losses.ranges import check_ranges
from contrastbench.losses.registry import describe, give_note

Announce = Callable[[str, str], None]
TWO = """
from contrastbench.losses.base import ScoreLoss

class A(ScoreLoss):
    'The first of two.'

    def __init__(self, margin: float = 0.1, power: int = 2) -> None:
        super().__init__()
        self.margin, self.power = margin, power

    def terms(self, scores):
        return self.margin - scores.mean_pos(scores.pos)

class B(A):
    def __init__(self, margin: float = 0.2) -> None:
        super().__init__(margin)
"""


@pytest.mark.parametrize("name", LOSSES)
def test_description_is_what_the_class_takes(name: str) -> None:
    about = describe(name)
    assert about.params == get_loss(name).params
    assert list(about.ranges) == list(about.params), "each parameter is declared"
    check_ranges(about.ranges, about.params)
    assert about == registry.describe_class(registry.load(name)), "with or without torch"
    assert len(about.summary) > 20


def test_a_slip_in_a_declaration_is_a_line_and_leaves_the_other_losses_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "class Gor:\n    ranges = declare(\n        a=Number(),\n        b=Range(0, 1),\n    )"
    (slip,), known = ast.parse(text).body, registry.source_class
    monkeypatch.setattr(
        registry, "source_class", lambda name: slip if name == "gor" else known(name)
    )
    registry.describe_source.cache_clear()
    lines = [*loss_lines()]
    assert len(lines) > len(LOSSES)
    (wrong,) = [line for line in lines if "gor.py" in line]
    assert re.match(r"gor\(\)\n    losses/library/gor.py:4: .*: write Number\(low=0\)", wrong)
    registry.describe_source.cache_clear()


def test_an_alias_may_be_a_setting_of_its_loss() -> None:
    byol = registry.terms_of("byol")[""]
    assert byol.describe().params["weight"] == 0
    assert LossSpec("byol").complete == LossSpec("align_uniform", {"weight": 0.0}).complete
    give_note.cache_clear()
    with pytest.warns(UserWarning, match="needs the recipe's pairing=query_key"):
        assert get_loss("infonce + 2*simsiam").losses[1].weight == 0
    assert LossSpec("byol", {"weight": 0.5}).complete.params["weight"] == 0.5


def test_every_loss_has_the_name_of_its_module() -> None:
    other = {name: get_loss(name).name for name in LOSSES if get_loss(name).name != name}
    assert other == {}, "rename the module, or the entry in FAMILIES"


def test_every_module_of_the_library_is_a_loss_of_one_family() -> None:
    files = Path(registry.__file__).with_name("library").glob("[!_]*.py")
    listed = [name for names in registry.FAMILIES.values() for name in names]
    assert sorted(path.stem for path in files) == sorted(listed)


def test_sum_hands_a_plain_name_to_every_term_that_has_it() -> None:
    loss = get_loss(
        "infonce + 0.5*hcl + 2*dar",
        temperature=0.2,
        beta=2.0,
        **{"hcl.temperature": 0.3, "form": "star"},
    )
    assert loss.name == "infonce + 0.5*hcl + 2*dar"
    assert loss.params == {
        "infonce.temperature": 0.2,
        "hcl.temperature": 0.3,
        "hcl.tau_plus": 0.1,
        "hcl.beta": 2.0,
        "dar.form": "star",
        "dar.reduction": "mean",
    }


def test_alias_says_once_what_it_is() -> None:
    give_note.cache_clear()
    with pytest.warns(UserWarning, match="lightly's DCL is 'decoupled'") as notes:
        names = [get_loss("dcl").name, get_loss("dcl", tau_plus=0.2).name]
    assert names == ["debiased", "debiased"]
    assert len(notes) == 1
    assert describe("dcl") == describe("debiased")
    give_note.cache_clear()
    with pytest.warns(UserWarning, match="lightly's DCL is 'decoupled'"):
        assert get_loss("dcl + 0.5*dar").name == "debiased + 0.5*dar"


def test_a_users_file_in_a_folder_that_looks_like_a_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in (Path("c++/mine.py"), Path("mine.py")):
        file.parent.mkdir(exist_ok=True)
        file.write_text(TWO)
    assert LossSpec("c++/mine.py:B").complete == LossSpec("mine", {"margin": 0.2})
    assert get_loss("infonce+2*mine.py:B").name == "infonce + 2*mine"
    with pytest.raises(UserError, match="unknown loss 'xxx"):
        get_loss("x" * 300 + " + mine.py:B")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(TWO)
    return tmp_path


@pytest.mark.parametrize(
    ("expression", "name", "params"),
    [
        ("mine.py:A", "mine", {"margin": 0.1, "power": 2}),
        (
            "mine.py:A + 0.5*dar",
            "mine + 0.5*dar",
            {"mine.margin": 0.1, "mine.power": 2, "dar.form": "chain", "dar.reduction": "mean"},
        ),
        (
            "0.5*mine.py:A+2 * mine.py:B",
            "0.5*mine.A + 2*mine.B",
            {"mine.A.margin": 0.1, "mine.A.power": 2, "mine.B.margin": 0.2},
        ),
        (
            "my losses/mine.py:B + mine.py:B",
            "mine.B.1 + mine.B.2",
            {"mine.B.1.margin": 0.2, "mine.B.2.margin": 0.2},
        ),
    ],
)
def test_terms_are_told_apart(
    folder: Path, expression: str, name: str, params: dict[str, object]
) -> None:
    (folder / "my losses").mkdir()
    (folder / "my losses" / "mine.py").write_text(TWO)
    loss = get_loss(expression)
    assert (
        LossSpec(loss.name, loss.params) == LossSpec(expression).complete == LossSpec(name, params)
    )
    assert describe(expression).params == params


def test_a_plain_name_goes_to_both_losses_of_a_file(folder: Path) -> None:
    both = "mine.py:A + mine.py:B"
    assert get_loss(both, margin=3.0).params["mine.A.margin"] == 3.0
    given = {"margin": 3.0, "mine.B.margin": 4.0}
    assert LossSpec(both, given).complete.params == get_loss(both, **given).params
    margins = {"mine.A.margin": 3.0, "mine.A.power": 2, "mine.B.margin": 4.0}
    assert get_loss(both, **given).params == margins
    with pytest.raises(UserError, match=r"unknown parameter of .* 'mine.margin': did you mean"):
        get_loss(both, **{"mine.margin": 1.0})


def test_a_spec_is_what_a_record_names(folder: Path) -> None:
    spec = LossSpec("mine.py:A + 0.5*dar", {"margin": 3.0})
    assert spec.complete.params == spec.make().params
    assert spec.complete.name == spec.make().name
    assert spec.files == {"name": spec.name, "files": {"mine.py": TWO}}
    assert len(spec.code) == 64
    assert spec.label == "mine.py:A + 0.5*dar(margin=3.0)"
    ours = LossSpec("dcl", {"tau_plus": 0.2})
    assert ours.complete == LossSpec("debiased", {"temperature": 0.5, "tau_plus": 0.2})
    assert ours.code == ""


def test_modules_beside_a_file_are_a_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import random, helper, torch" + TWO + "    margin = helper.M"
    )
    (tmp_path / "helper.py").write_text("M = 0.1")
    for taken in ("random", "torch"):  # of Python, and of an installed package
        (tmp_path / f"{taken}.py").write_text("1 / 0")
    name = f"{tmp_path}/mine.py:B"
    before = LossSpec(name)
    assert before.code == LossSpec(name).code
    (tmp_path / "helper.py").write_text("M = 0.2")
    (tmp_path / "other.py").write_text("M = 0.2")
    assert before.code != LossSpec(name).code
    assert (type(before.make()).margin, type(get_loss(name)).margin) == (0.1, 0.2)
    assert "helper" not in sys.modules
    (tmp_path / "helper.py").unlink()
    assert type(before.make()).margin == 0.1
    with pytest.raises(UserError, match=r"cannot import .* No module named 'helper'"):
        LossSpec(name).make()


def test_a_package_that_was_edited_after_its_import_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, announce: Announce
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "a_package_of_losses" / "__init__.py"
    package.parent.mkdir()
    package.write_text(TWO)
    announce("theirs", "a_package_of_losses:A")
    code = LossSpec("theirs").code
    assert code == LossSpec("theirs").code
    package.write_text(TWO.replace("0.1", "0.3"))
    with pytest.raises(UserError, match=r"__init__.py was edited after it was imported: start a"):
        _ = LossSpec("theirs").code


@pytest.fixture
def announce(monkeypatch: pytest.MonkeyPatch) -> Announce:
    def call(name: str, value: str) -> None:
        theirs = EntryPoint(name, value, "contrastbench.losses")
        monkeypatch.setattr(registry, "entry_points", lambda group: [theirs])

    return call


def test_none_is_a_spec_without_a_loss() -> None:
    none = LossSpec("none")
    none.check()
    assert (none.complete, none.code, none.make(), none.label) == (none, "", None, "none")
    with pytest.raises(
        UserError, match="none is the untrained encoder and has no parameters, got mu"
    ):
        LossSpec("none", {"mu": 1}).check()


def test_losses_of_packages_come_after_ours(announce: Announce) -> None:
    announce("theirs", "package.module:Loss")
    assert list(registry.losses()) == [*registry.OURS, "theirs"]
    assert "theirs\n    Of a package: package.module:Loss" in loss_lines()
    assert list(families())[-1].split() == ["theirs", "package.module:Loss"]
    assert registry.losses()["dar"] == "contrastbench.losses.library.dar"


@pytest.mark.parametrize("value", ["", ":", "[x]"])
def test_an_entry_point_of_nothing_is_no_loss(value: str, announce: Announce) -> None:
    announce("theirs", value)
    assert "infonce" in registry.losses()
    with pytest.raises(UserError):
        get_loss("theirs")


@pytest.mark.parametrize(
    ("name", "other"),
    [("hcl", "contrastbench.losses.library.hcl"), ("dcl", "a word of"), ("none", "a word of")],
)
def test_a_package_cannot_take_a_name_of_ours(announce: Announce, name: str, other: str) -> None:
    announce(name, "package.module:Loss")
    with pytest.raises(UserError, match=f"two losses are named {name}: {other}.* uninstall one"):
        registry.losses()
    assert get_loss("hcl").name == "hcl"  # ours can be used all the same


def test_sigterm_is_no_mistake_of_the_users(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit(143)")
    with pytest.raises(SystemExit):
        get_loss(f"{tmp_path}/mine.py:Mine")


def test_every_registered_loss_names_its_paper() -> None:
    folder = Path(registry.__file__).with_name("library")
    for name in registry.OURS:
        assert "https://" in (folder / f"{name}.py").read_text()
