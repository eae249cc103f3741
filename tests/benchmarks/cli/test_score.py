"""Encoders that were written, and anybody's, scored by every protocol."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch

import made_images
from contrastbench.domains.base import Exports
from contrastbench.domains.image import DECLARATION
from contrastbench.domains.image.domain import ImageDomain
from contrastbench.domains.image.networks.exports import open_encoder
from contrastbench.domains.image.sampling import held_out_split
from contrastbench.domains.image.scoring import linear_probe, protocols
from contrastbench.domains.registry import declaration
from contrastbench.domains.scoring.few_shot import few_shot
from contrastbench.losses import UserError
from made_images import CPU
from opened import opened, tiny


def exported(folder: Path, **recipe: object) -> ImageDomain:
    d = tiny("image", dataset="digits", **recipe)
    assert isinstance(d, Exports)
    d.check_export()
    d.export(d.model(), folder)
    return d


def test_every_protocol_scores(tmp_path: Path, bench, monkeypatch: pytest.MonkeyPatch) -> None:
    exported(tmp_path / "encoder")
    monkeypatch.setattr(protocols, "few_shot", partial(few_shot, episodes=5))
    monkeypatch.setattr(linear_probe, "EPOCHS", 2)
    assert [*protocols.PROTOCOLS, protocols.FINE_TUNED] == list(DECLARATION.protocols)
    monkeypatch.setattr("contrastbench.domains.scoring.logistic.TRANSFER_GRID", (0.01, 1.0))
    for by in DECLARATION.protocols:
        encoder = ("--encoder", str(tmp_path / "encoder"), "--dataset", "digits")
        code, out, err = bench("score", *encoder, "--by", by)
        assert code == 0, err
        metrics = json.loads(out)["metrics"]
        assert all(0 <= value <= 100 for value in metrics.values())
        shots = dict.fromkeys(("few-shot", "few-shot-all"), "5-way_1-shot")
        mains = {**shots, "retrieval": "recall_at_1"}
        assert ("--by few-shot-all" in err) == (by == "few-shot"), "the digits have no test part"
        assert ("the knn of a record is another" in err) == (by == "knn")
        main = mains.get(by, "10%_top-5" if by == protocols.FINE_TUNED else "accuracy")
        assert metrics[main] > 30, "ten digits, an untrained encoder"


@pytest.mark.parametrize(
    ("domain", "dataset", "other"), [("graph", "motifs", "MUTAG"), ("tabular", "wine", "iris")]
)
def test_an_encoder_scores_again_as_its_record_says(
    domain: str, dataset: str, other: str, tmp_path: Path, bench
) -> None:
    about = declaration(domain)
    small = {k: v for k, v in about.tiny.items() if k != "limit"} | {"epochs": 1}
    words = [w for k, v in small.items() for w in ("--recipe", f"{k}={json.dumps(v)}")]
    words += ["--domain", domain, "--dataset", dataset, "--loss", "infonce", "--seeds", "1"]
    folder = str(tmp_path / "encoder")
    code, out, err = bench("run", *words, "--results", str(tmp_path), "--json", "--export", folder)
    assert code == 0, err
    record = json.loads(out)
    again = ("score", "--encoder", folder, "--dataset", dataset)
    code, out, err = bench(*again, "--by", about.protocols[0])
    assert code == 0, err
    assert json.loads(out)["metrics"] == record["metrics"]
    assert json.loads(out)["seed"] == 1, "the training's"
    code, out, err = bench("score", "--encoder", folder, "--by", about.protocols[0])
    assert code == 0, err
    assert json.loads(out)["dataset"] == dataset, "the training's"
    assert json.loads(out)["metrics"] == record["metrics"]
    if domain == "tabular":
        code, _, err = bench(*again[:-1], other, "--by", "linear")
        assert (code, "iris does not fit " in err) == (2, True), err
        assert "it lacks 13 columns (alcohol, malic_acid, ash, " in err
        code, out, err = bench(*again, "--by", about.protocols[0], "--seed", "0")
        assert (code, json.loads(out)["seed"]) == (0, 0), err


def test_an_encoder_of_ones_own_table_scores_it_under_another_name(tmp_path: Path, bench) -> None:
    rows = [f"{k % 7},{k % 5},{'xy'[k % 2]}" for k in range(60)]
    (tmp_path / "own.csv").write_text("\n".join(["a,b,kind", *rows]))
    (tmp_path / "named.csv").write_text("\n".join(["a,b,class", *rows]))
    turned = [f"{k % 5},{k % 7},{'xy'[k % 2]}" for k in range(60)]
    (tmp_path / "turned.csv").write_text("\n".join(["b,a,kind", *turned]))
    folder = str(tmp_path / "encoder")
    words = ("run", "--domain", "tabular", "--dataset", f"csv:{tmp_path}/own.csv", "--tiny")
    words += ("--target", "kind", "--loss", "infonce", "--results", str(tmp_path))
    code, _, err = bench(*words, "--recipe", "batch_size=16", "--export", folder)
    assert code == 0, err
    again = ("score", "--encoder", folder, "--by", "linear", "--dataset")
    code, one, err = bench(*again, f"csv:{tmp_path}/own.csv")
    assert code == 0, err
    code, other, err = bench(*again, f"csv:{tmp_path}/named.csv", "--target", "class")
    assert code == 0, err
    assert json.loads(one)["metrics"] == json.loads(other)["metrics"]
    code, turned, err = bench(*again, f"csv:{tmp_path}/turned.csv")
    assert code == 0, err
    assert json.loads(turned)["metrics"] == json.loads(one)["metrics"]
    code, _, err = bench("score", "--encoder", "torchvision:x", "--by", "knn", "--target", "kind")
    assert (code, "domain image has no target column" in err) == (2, True)
    scaled = [f"{k % 7 * 12},{k % 5},{'xy'[k % 2]}" for k in range(60)]
    (tmp_path / "own.csv").write_text("\n".join(["a,b,kind", *scaled]))
    code, months, err = bench(*again, f"csv:{tmp_path}/own.csv")
    assert code == 0, err
    assert json.loads(months)["metrics"] != json.loads(one)["metrics"], "another unit"


def test_fine_tuning_trains_encoder_and_head_at_their_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    d = exported(tmp_path / "encoder")
    opened = open_encoder(str(tmp_path / "encoder"), None, CPU)
    train, test = d.splits["train"], d.splits["test"]
    before = {k: v.clone() for k, v in opened.network.state_dict().items()}
    steps: list[list[float]] = []

    class Watched(torch.optim.SGD):
        def step(self, closure=None):
            steps.append([group["lr"] for group in self.param_groups])
            return super().step(closure)

    monkeypatch.setattr(torch.optim, "SGD", Watched)
    rates = linear_probe.Rates(0.1, 0.08, 0.03)
    part = linear_probe.labelled_part(train, 0.1, 0)
    _, held_out = held_out_split(train, 0.1, 0)
    assert held_out is not None
    shared = (part.pixels[:, None] == held_out.pixels).flatten(2).all(2).any(1)
    assert 0 < shared.sum() < len(part) / 2, "a tenth is what chance gives"
    counts, whole = (x.labels.bincount() for x in (part, train))
    assert counts.tolist() == [max(1, round(0.1 * n)) for n in whole.tolist()]
    scores, y = linear_probe.tuned(opened, part, test, 10, rates, 0)
    assert steps == [
        pytest.approx([0.16, 0.06] if epoch < 16 else [0.032, 0.012]) for epoch in range(20)
    ], "a batch holds the part: one step an epoch"
    assert (scores.shape, torch.equal(y, test.labels)) == ((len(test), 10), True)
    assert all(torch.equal(v, before[k]) for k, v in opened.network.state_dict().items())
    frozen, _ = linear_probe.tuned(opened, part, test, 10, linear_probe.Rates(0.1, 0.0, 0.03), 0)
    assert not torch.equal(scores, frozen), "the encoder learns too"


def test_the_fix_of_an_error_is_an_option_that_scoring_has(tmp_path: Path, bench) -> None:
    """Scoring has no recipe, so it may not name one."""
    exported(tmp_path / "image")
    few = made_images.folder(tmp_path / "few", count=2, side=8)
    graphs = "import torch\nfrom torch_geometric.data import Data\n\ndef few():\n    "
    graphs += "edge = torch.tensor([[0], [1]])\n    "
    graphs += "return [Data(edge_index=edge, y=k % 2, num_nodes=2) for k in range(12)]\n"
    (tmp_path / "few.py").write_text(graphs)
    graph = opened("graph", "motifs")
    graph.export(graph.model(), tmp_path / "graph")
    for folder, by, dataset, message in (
        ("image", "linear", f"folder:{few}", "leaves classes empty: use more images"),
        ("graph", "svm", "few.py:few", "class 0 has 6 members, fewer than the 10 folds; use more"),
    ):
        words = ("--encoder", str(tmp_path / folder), "--by", by, "--dataset", dataset)
        code, _, err = bench("score", *words)
        assert (code, message in err, "--recipe" in err) == (2, True, False), err


def test_what_cannot_be_scored_is_one_line(tmp_path: Path, bench) -> None:
    folder = tmp_path / "encoder"
    exported(folder)
    for words, message in (
        (("--by", "knm"), "unknown protocol 'knm': did you mean 'knn'"),
        (("--by", "knn"), "does not say what it was trained on: give --dataset"),
    ):
        code, _, err = bench("score", "--encoder", str(folder), *words)
        assert (code, message in err) == (2, True), err
    words = ("--encoder", str(folder), "--seed", str(2**32), "--by", "linear")
    code, _, err = bench("score", *words)
    assert (code, "--seed" in err, "Traceback" in err) == (2, True, False), err
    raw = opened("image", "digits", encoder="raw")
    with pytest.raises(UserError, match="encoder=raw has no weights to export"):
        raw.check_export()
