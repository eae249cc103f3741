"""The pages of losses that the build of the docs makes say what the code and the records say."""

import csv
import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

from contrastbench.benchmarks.tables.load import load_table
from contrastbench.losses import get_loss
from contrastbench.losses.registry import ALIASES, FAMILIES, LIBRARY, OURS, describe, load

ROOT = Path(__file__).parents[2]
PAGES: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "loss_pages.py"))


@pytest.mark.parametrize("name", OURS)
def test_a_page_has_the_losss_facts(name: str) -> None:
    text, about = PAGES["page"](name), describe(name)
    assert re.findall(r"^(.*)\n=+$", text, re.MULTILINE) == [name], "the one title"
    assert f"{LIBRARY}.{name}.{load(name).__name__}(" in text
    for key, values in about.ranges.items():
        assert f"``{key}``\n     - ``{about.params[key]}``\n     - {values}" in text
    for limit in about.limits:
        assert f"becomes :doc:`{limit.to}`: ``{name} is {limit}``" in text
        back = f":doc:`{name}` becomes it: ``{name} is {limit}``"
        assert limit.to == name or back in PAGES["page"](limit.to)
    for alias, meant in ALIASES.items():
        assert (f"``{alias}``" in text) == (meant.loss == name)


def test_each_released_code_is_on_its_page_with_its_version() -> None:
    groups = json.loads((ROOT / "tests" / "losses" / "golden.json").read_text())["released"]
    for group in groups:
        found = [row for row in PAGES["codes"](group["loss"]) if row[2] == group["place"]]
        assert found, group["place"]
        for version in filter(None, (group.get("release"), group.get("commit", "")[:10])):
            assert version in found[0][1]


def test_the_rows_of_the_standing_comparison_are_those_of_its_file() -> None:
    suite = load_table("standard").name
    path, lines = ROOT / "results" / f"{suite}.csv", []
    if path.exists():  # a draft has none
        with path.open() as file:
            lines = [line for line in csv.DictReader(file) if line["method"] == "infonce"]
    expected = [(suite, line["column"], f"{float(line['ours_mean']):.2f}") for line in lines]
    found = [(*row[:2], row[2].split()[0]) for row in PAGES["standing"]("infonce")]
    assert found == expected
    assert list(PAGES["standing"]("proxy_anchor")) == []
    assert "Standing comparison" not in PAGES["page"]("proxy_anchor")


def test_weights_are_the_gradients() -> None:
    scores, weights = PAGES["gradient_weights"](get_loss("infonce", temperature=0.2))
    expected = (scores / 0.2).exp()
    torch.testing.assert_close(weights, expected / expected.mean())
    assert f"{weights[-1]:.2f}" != f"{weights[0]:.2f}"


def test_the_overview_links_every_page_by_family() -> None:
    text = PAGES["overview"]()
    for family, members in FAMILIES.items():
        (line,) = [line for line in text.splitlines() if line.startswith(f"| {family} |")]
        assert [name for name in OURS if f"`{name} <losses/{name}>`" in line] == list(members)
