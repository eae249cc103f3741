"""The image domain as the runner uses it."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.benchmarks.running.training import train
from contrastbench.benchmarks.tables.table import ON_TEST
from contrastbench.domains.image import domain as image
from contrastbench.domains.image.data.images import CIFAR_MEAN, CIFAR_STD, Images, on_device
from contrastbench.domains.image.domain import BEST_ON_TEST, ImageDomain
from contrastbench.domains.image.preprocessing import policies
from contrastbench.domains.image.recipe import PROBES
from contrastbench.domains.image.sampling import with_unlabelled
from contrastbench.domains.image.views import transforms
from contrastbench.domains.image.views.transforms import normalise
from contrastbench.domains.registry import make_recipe
from contrastbench.domains.scoring.metrics import class_metrics
from contrastbench.losses import UserError, get_loss
from contrastbench.losses.registry import ALIASES
from contrastbench.losses.spec import LossSpec
from made_images import CPU, refused
from opened import tiny

domain = partial(tiny, "image", dataset="digits", precision="float32")


def contrasts(d: ImageDomain):
    return d.contrasts(d.model(), next(iter(d.batches(0))))


def test_every_epoch_shuffles_the_images_anew_into_full_batches() -> None:
    d = domain()
    first, second = ([batch.rows.tolist() for batch in d.batches(epoch)] for epoch in (0, 1))
    assert [len(rows) for rows in first] == [32] * d.steps() == [32] * 5
    assert len({row for rows in first for row in rows}) == 160
    assert first != second


def test_parts_are_disjoint_and_validation_comes_from_training() -> None:
    d = domain(limit=None)
    assert d.counts == {"train": 1295, "validation": 143, "test": 359}
    seen = [{image.numpy().tobytes() for image in part.pixels} for part in d.splits.values()]
    assert not seen[0] & seen[2]
    assert len(d.pool) == 1295
    other = domain(seed=1, limit=None).splits["validation"]
    assert not torch.equal(d.splits["validation"].pixels, other.pixels), "the seed draws it"


@pytest.mark.parametrize(
    ("recipe", "anchors", "positives", "keys"),
    [
        ({}, 64, 1, 64),
        ({"positives": 4}, 64, 4, 64),
        ({"pairing": "query_key"}, 32, 1, 32),
        ({"pairing": "query_key", "local_crops": 2, "local_size": 8}, 96, 1, 32),
    ],
)
def test_pairings(recipe: dict, anchors: int, positives: int, keys: int) -> None:
    found = contrasts(domain(**recipe))
    assert len(found) == (2 if "pairing" in recipe else 1)
    for contrast in found:
        assert contrast.anchor.shape == (anchors, 16)
        assert contrast.positive.shape == (anchors, positives, 16)
        assert contrast.keys.shape == (keys, 16)
        assert contrast.keys.requires_grad == ("pairing" not in recipe)
        assert contrast.anchor.requires_grad


def test_views_are_by_the_recipes_policies_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, sizes = [], {"size": 32, "local_size": 16, "batch_size": 32}
    d = domain(preset="renyicl-imagenet", local_crops=2, **sizes)
    monkeypatch.setattr(transforms, "recolour", lambda x, kind, rng: seen.append(kind) or x)
    views = d.views(d.splits["train"].select(torch.arange(2)), torch.Generator())
    expected = [replace(kind, fill=CIFAR_MEAN) for kind in policies(d.recipe)]
    assert seen == expected, "RandAugment moves in the mean colour"
    assert [view.shape[-1] for view in views] == [32, 32, 16, 16]


def test_boxes_are_erased_behind_the_normalisation() -> None:
    """With normal noise, as timm does it: normalised colours of these images are below 3.1."""
    d = domain(views="hard", randaugment=(0, 0.0), size=32)
    noisy = torch.cat(d.views(d.splits["train"], torch.Generator().manual_seed(0)))
    assert noisy.max() > 3.5
    plain = [replace(kind, erasing=0.0) for kind in policies(d.recipe)]
    rng = torch.Generator().manual_seed(0)
    calm = torch.cat(d.preprocessing.views(d.splits["train"], plain, rng))
    assert calm.max() < 3.1
    same = (noisy == calm).flatten(1).all(1).float().mean().item()
    assert same < 0.9, "one view in five has a box"


def test_multi_crop_meets_the_keys_of_the_other_view_and_its_own_instance() -> None:
    """Written out: queries of all views but one, against the target's keys of that one."""
    d = domain(pairing="query_key", local_crops=1, local_size=8)
    net, batch = d.model().eval(), next(iter(d.batches(0)))
    state = batch.rng.get_state()
    found = d.contrasts(net, batch)
    batch.rng.set_state(state)
    views = d.views(d.pool.select(batch.rows), batch.rng)
    unit = torch.nn.functional.normalize
    for own, (contrast, others) in enumerate(zip(found, ((1, 2), (0, 2)), strict=True)):
        key = unit(net.target(views[own]))
        assert torch.allclose(contrast.keys, key, atol=1e-5)
        expected = unit(torch.cat([net(views[other]) for other in others]))
        assert torch.allclose(contrast.anchor, expected, atol=1e-5)
        assert torch.allclose(contrast.positive[:, 0], key.repeat(2, 1), atol=1e-5)


def test_supervised_positives_are_the_class_and_labels_of_validation_are_not_seen() -> None:
    d = domain(pairing="supervised")
    (contrast,) = contrasts(d)
    labels = d.splits["train"].labels[next(iter(d.batches(0))).rows].repeat(2)
    assert torch.equal(contrast.anchor_id, labels)
    assert (~contrast.padding).sum(dim=1).tolist() == [
        int((labels == label).sum()) - 1 for label in labels
    ]


def test_a_supervised_batch_of_one_class_is_said() -> None:
    d = domain(pairing="supervised")
    d.splits["train"].labels.fill_(3)
    refused(lambda: contrasts(d), "all 32 images of a batch have one class: give .* batch_size=64$")


def test_unlabelled_images_are_trained_on_beside_the_training_part() -> None:
    first, second = (
        Images(torch.full((n, 1, 1, 1), n, dtype=torch.uint8), torch.full((n,), n)) for n in (3, 5)
    )
    pool = with_unlabelled(first, second)
    assert pool.labels.tolist() == [3, 3, 3, 5, 5, 5, 5, 5]
    assert pool.pixels.flatten().tolist() == pool.labels.tolist()
    assert with_unlabelled(first, None) is first


@pytest.mark.parametrize(("name", "ema"), [("byol", 0.996), ("simsiam", 0.0)])
def test_byol_and_simsiam_are_their_papers(name: str, ema: float) -> None:
    """SimSiam's Algorithm 1 and BYOL's equation 2: distances of predictions to targets, both ways.

    The target's gradient is stopped. SimSiam's is the network itself, BYOL's its average.
    """
    made = get_loss("align_uniform", **ALIASES[name].settings)
    recipe = {"pairing": "query_key", "ema": ema, "predictor_width": 8, "projection": (24, 24, 16)}
    d = domain(**recipe)
    net = d.model().double()
    with torch.no_grad():  # so that network and target differ
        [p.mul_(1.5).add_(0.01) for p in net.projector.parameters()]
    rows = next(iter(d.batches(0)))
    views = d.views(d.pool.select(rows.rows), next(iter(d.batches(0))).rng)
    d.views = lambda *_: [view.double() for view in views]
    with torch.no_grad():
        mixed = [
            ema * t + (1 - ema) * o
            for t, o in zip(net.target.parameters(), net.online.parameters(), strict=True)
        ]
    loss = sum(made(contrast) for contrast in d.contrasts(net, rows))
    for target, wanted in zip(net.target.parameters(), mixed, strict=True):
        assert torch.allclose(target, wanted)
    z = [net.target(view.double()).detach() for view in views]
    p = [net.predictor(net.projector(net.encoder(view.double()))) for view in views]
    unit = torch.nn.functional.normalize
    expected = sum((unit(p[a]) - unit(z[1 - a])).square().sum(dim=1).mean() for a in (0, 1))
    weights = [*net.predictor.parameters(), net.projector[0].weight, net.encoder[0].weight]
    ours, theirs = (torch.autograd.grad(x, weights) for x in (loss, expected))
    assert loss.item() == pytest.approx(expected.item(), abs=1e-9)
    for a, b in zip(ours, theirs, strict=True):
        assert torch.allclose(a, b, rtol=1e-6, atol=1e-9)
    assert bool(ours[-1].any())


BESIDE = class_metrics(np.arange(2), np.arange(2), np.eye(2)).keys()


def test_evaluation_says_what_it_measured() -> None:
    d = domain(probe="knn")
    evaluation = d.evaluate(d.model())
    assert set(evaluation.metrics) == {"accuracy", "lbfgs", "knn"} | BESIDE
    assert evaluation.metrics["accuracy"] == evaluation.metrics["knn"]
    assert evaluation.samples == {"train": 181, "validation": 19, "test": 200}
    assert evaluation.test_part == "fixed"
    details = evaluation.details
    assert evaluation.validation == details["validation_accuracy"]["knn"]
    assert details["classifiers"]["knn"] == {"k": 20}
    assert set(details["validation_accuracy"]) == {"lbfgs", "knn"}
    assert 10 <= details["largest_class"] < 20


def test_a_trained_probe_stands_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last epoch is the score; AttentionNCE's and RényiCL's code report the best on the test
    set (`max(acc)` in linear.py, `best_acc1` in main_lincls.py), which stands apart.
    """
    monkeypatch.setitem(PROBES, "strict", replace(PROBES["strict"], epochs=9))
    d = domain(probe="strict")
    evaluation = d.evaluate(d.model())
    assert set(evaluation.metrics) == {"accuracy", "lbfgs", "knn", "strict", BEST_ON_TEST} | BESIDE
    assert set(evaluation.details["validation_accuracy"]) == {"lbfgs", "knn", "strict"}
    assert evaluation.metrics["accuracy"] == evaluation.metrics["strict"]
    curves = evaluation.details["probe_accuracy_by_epoch"]
    assert {name: len(curve) for name, curve in curves.items()} == {"validation": 9, "test": 9}
    assert curves["test"][-1] == evaluation.metrics["strict"]
    assert max(curves["test"]) == evaluation.metrics[BEST_ON_TEST]
    assert curves["validation"][-1] == evaluation.validation
    assert ON_TEST in BEST_ON_TEST, "tables know it by that"


def test_test_images_may_be_larger_than_the_crops_of_the_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """STL-10 as released: crops for encoder and probe, whole images for kNN and score."""
    whole = {
        name: torch.randint(0, 256, (n, 3, 96, 96), dtype=torch.uint8)
        for name, n in (("train", 12), ("test", 8))
    }
    parts = {name: (x, torch.arange(len(x)) % 2) for name, x in whole.items()}
    stl, _ = on_device(parts, ["cat", "dog"], CPU)
    monkeypatch.setattr(type(image.ADAPTER), "read", lambda *_: (stl, "made"))
    monkeypatch.setitem(PROBES, "paper", replace(PROBES["paper"], epochs=2, batch=6))
    values = {"preset": "adnce", "test_size": 96, "batch_size": 4, "encoder": "resnet18"}
    d, seen = domain(dataset="STL-10", **values, width=0.0625), []
    assert "preset=cpu" not in capsys.readouterr().err, "these crops are what the recipe wants"
    net = d.model()
    net.encoder.register_forward_pre_hook(lambda _, x: seen.append((x[0].shape[0], x[0].shape[-1])))
    d.contrasts(net, next(iter(d.batches(0))))
    assert seen == [(4, 32)] * 2
    seen.clear()
    metrics = d.evaluate(net).metrics
    assert set(metrics) == {"accuracy", "top_5", "lbfgs", "knn", "paper", BEST_ON_TEST} | BESIDE
    assert seen == [(12, 96), (8, 96), *[(6, 32), (6, 32), (8, 96)] * 2]
    wanted = normalise(d.splits["test"].pixels / 255, CIFAR_MEAN, CIFAR_STD)
    with torch.no_grad():
        assert torch.allclose(d.embeddings(net).x, net.eval().encoder(wanted), atol=1e-4)


def test_pixels_are_a_reference() -> None:
    raw = domain(encoder="raw", limit=None)
    assert raw.evaluate(raw.model()).metrics["lbfgs"] > 93
    with pytest.raises(UserError, match="no weights to train: give --loss none"):
        run_cell(Experiment("image", "digits", LossSpec("adnce"), {"encoder": "raw"}), 0, Options())


def test_test_images_change_no_number_but_the_score() -> None:
    """The test part is spoiled, and training and choosing must not notice."""
    clean, spoiled = domain(epochs=1, eval_every=2), domain(epochs=1, eval_every=2)
    spoiled.splits["test"].pixels.random_(0, 256)
    seen = []
    for d in (clean, spoiled):
        model, history = train(d, get_loss("infonce"))
        seen.append((history, d.evaluate(model)))
    (one, first), (two, second) = seen
    assert one == two
    assert first.details["classifiers"] == second.details["classifiers"]
    assert first.details["validation_accuracy"] == second.details["validation_accuracy"]
    assert first.metrics != second.metrics


def test_the_first_five_classes_are_scored_too_where_a_paper_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(PROBES, "paper", replace(PROBES["paper"], epochs=2))
    d = domain(probe="paper", epochs=0)
    found = d.evaluate(d.model())
    assert found.metrics["accuracy"] < found.metrics["top_5"] <= 100
    by_epoch = found.details["probe_accuracy_by_epoch"]
    assert found.metrics["top_5"] == by_epoch["top_5"][-1]
    assert found.metrics["accuracy_best_epoch_on_test"] == max(by_epoch["test"])
    monkeypatch.setitem(PROBES, "strict", replace(PROBES["strict"], epochs=1))
    d = domain(probe="strict", epochs=0)
    assert "top_5" not in d.evaluate(d.model()).metrics


def test_the_quick_probe_chooses_on_a_fifth_of_the_training_images() -> None:
    d = domain(preset="photographs", size=8)
    found = d.evaluate(d.model())
    assert found.metrics.keys() == {"accuracy", "quick"} | BESIDE
    assert found.validation == max(found.details["classifiers"]["quick"]["validation_by_C"])
    held_out = domain(preset="photographs", size=8, validation=0.2)
    assert "validation" in held_out.evaluate(held_out.model()).samples


def test_the_named_layer_is_scored() -> None:
    for pairing in ({}, {"pairing": "balanced", "positives": 3}):
        shapes = [
            d.embeddings(d.model()).x.shape[1]
            for d in (domain(**pairing, scored=layer) for layer in ("features", "embedding", None))
        ]
        assert shapes == [64, 16, 16 if pairing else 64]


def test_recall_alone_pairs_by_class_in_balanced_batches() -> None:
    values = {"preset": "drawings", "epochs": 2, "batch_size": 16, "limit": 200, "size": 8}
    values["validation"] = 0.0
    by_class = make_recipe("image", values).by_class
    plain, balanced = domain(**values), domain(**{**values, **by_class})
    assert balanced.recipe.epochs * balanced.steps() == 2 * plain.steps()
    found = balanced.evaluate(balanced.model())
    assert (found.main, found.metrics.keys()) == ("recall_at_1", {"recall_at_1"})


def test_fewer_images_than_a_batch_are_one_batch() -> None:
    few = domain(batch_size=300, knn_k=200)
    assert [len(batch.rows) for batch in few.batches(0)] == [181]
    note = "samples of a batch, all there are in place of batch_size=300"
    neighbours = "neighbours that vote, all in place of knn_k=200"
    assert few.report(trained=True).notes == {note: 181, neighbours: 181}
