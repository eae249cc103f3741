"""A fifth domain is one folder and one entry point: the audio package runs wherever ours do."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from contrastbench.benchmarks.sweeps import process
from warm import python

Bench = Callable[..., tuple[int, str, str]]
PROJECT = Path(__file__).parent / "audio/pyproject.toml"
PAGE = (Path(__file__).parents[2] / "docs/own-domain.md").read_text()
SWEEP = """
seeds: [0, 1]
domains:
  audio: {recipe: {epochs: 1, limit: 64, width: 4}}
  graph: {recipe: {epochs: 1, limit: 90, folds: 3}}
losses: [infonce, adnce]
"""


def test_the_package_announces_one_domain() -> None:
    entry_points = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]
    assert entry_points == {"contrastbench.domains": {"audio": "contrastbench_audio:DECLARATION"}}


def test_the_page_shows_every_file() -> None:
    files = [path for path in PROJECT.parent.rglob("*") if path.suffix in (".py", ".toml")]
    assert len(files) == 3
    for path in files:
        shown = f"```{{literalinclude}} ../tests/plugins/{path.relative_to(PROJECT.parents[1])}\n"
        whole = f"```toml\n{path.read_text()}```"
        assert shown in PAGE or whole in PAGE, f"copy {path.name} into the page"


@pytest.mark.parametrize("line", re.findall("^bench run .*$", PAGE, re.MULTILINE))
def test_a_run_of_the_page_runs(line: str, audio: None, bench: Bench) -> None:
    code, _, err = bench(*line.split()[1:], "--tiny")
    assert code == 0, err


def test_it_is_listed(audio: None, bench: Bench) -> None:
    _, domains, _ = bench("list", "domains")
    assert [line.split()[0] for line in domains.splitlines()] == [
        "graph", "image", "sentence", "tabular", "audio",
    ]  # fmt: skip
    assert "a 1-D CNN on synthetic tones, nearest neighbours; embedded: tones" in domains
    _, datasets, _ = bench("list", "datasets")
    assert "tones audio embedded: 400 tones of 4 timbres" in " ".join(datasets.split())


def test_it_is_run(audio: None, bench: Bench) -> None:
    code, out, err = bench("run", "--domain", "audio", "--loss", "infonce", "--tiny")
    assert code == 0, err
    assert "tones" in out
    assert list(Path("results/runs/audio/tones/infonce").glob("*-seed0.json"))
    code, _, err = bench("run", "--domain", "audio", "--loss", "none", "--recipe", "nois=1")
    assert code == 2
    assert "unknown recipe key of domain audio 'nois': did you mean 'noise'?" in err
    code, _, err = bench("run", "--domain", "audio", "--loss", "none", "--dataset", "tone")
    assert code == 2
    assert "unknown audio dataset 'tone': did you mean 'tones'?" in err


def test_training_helps(audio: None) -> None:
    import torch

    from contrastbench.benchmarks.running.training import train
    from contrastbench.domains.registry import domain_class, make_recipe
    from contrastbench.losses import get_loss

    recipe = make_recipe("audio", {})
    domain = domain_class("audio")("tones", recipe, 0, None, torch.device("cpu"))
    trained, _ = train(domain, get_loss("infonce", temperature=0.2))
    scores = [domain.evaluate(model).metrics["accuracy"] for model in (domain.model(), trained)]
    assert scores[1] > scores[0] + 5


def test_it_is_swept_beside_graphs_and_compared(
    audio: None, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sweeps run their cells in processes of their own, which must see the package too."""
    monkeypatch.setattr(process, "COMMAND", [python(), *process.COMMAND[1:]])
    Path("mine.yaml").write_text(SWEEP)
    code, out, err = bench("sweep", "mine.yaml")
    assert code == 0, out + err
    assert "8 cells: 0 done before, 8 now" in out
    _, table, _ = bench("table", "mine.yaml")
    assert "tones" in table
    assert "label-pairs" in table
    assert table.count("(n=2)") == 4 or table.count("(2)") == 4, table
    _, comparison, _ = bench("compare", "mine.yaml")
    assert "tones" in comparison
    assert "adnce" in comparison


def test_it_is_lawful(audio: None, bench: Bench) -> None:
    code, out, err = bench("check-domain", "audio")
    assert code == 0, out + err
    assert out.splitlines()[-1] == "8 of 8 checks passed"
