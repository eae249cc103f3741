"""Exported encoders embed what people have: the examples of docs/embedding.md are run."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from torch_geometric.data import Batch, Data

import contrastbench as cb
import made_images
from contrastbench.benchmarks.submission import reproduction
from contrastbench.losses import UserError
from opened import opened

PAGE = (Path(__file__).parents[3] / "docs" / "embedding.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SMALL = {
    "graph": {"layers": 2, "hidden": 8, "limit": 90, "folds": 3},
    "image": {"width": 1.0, "size": 16, "limit": 200, "batch_size": 32, "projection": (8, 8)},
    "sentence": {"limit": 32, "batch_size": 16},
    "tabular": {"widths": (16, 16), "projection": (8, 8), "batch_size": 16, "target": "kind"},
}
METRIC = {"width": 0.125, "pairing": "balanced", "positives": 3, "probe": "retrieval"}
FOLDERS = {
    "graph-encoder": ("graph", "motifs"),
    "image-encoder": ("image", "digits"),
    "sentence-encoder": ("sentence", "graded"),
    "table-encoder": ("tabular", "csv:people.csv"),
}


def people(rows: int = 60) -> Any:
    draw = np.random.default_rng(0)
    age = draw.integers(18, 80, rows).astype(float)
    city = draw.choice(["Bern", "Basel", "Zug"], rows).astype(object)
    age[::9], city[::11] = np.nan, None
    return pd.DataFrame({"age": age, "city": city, "kind": draw.choice(["a", "b"], rows)})


def export(folder: Path, domain: str, dataset: str, **changes: object) -> Any:
    """The domain whose untrained model was exported, with batch norms that have seen something."""
    made = opened(domain, dataset, **{**SMALL[domain], **changes})
    model = made.model()
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.affine:
            with torch.no_grad():
                module.running_mean.uniform_(-0.1, 0.1)
                module.running_var.uniform_(0.5, 1.5)
                module.weight.uniform_(0.5, 1.5)
    made.export(model, folder)
    return made, model


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the examples read."""
    folder = tmp_path_factory.mktemp("reader")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        people().to_csv("people.csv", index=False)
        (folder / "pictures").mkdir()
        for name, side in (("cat", 20), ("dog", 150)):
            pixels = np.random.default_rng(side).integers(256, size=(side, side + 4, 3))
            Image.fromarray(pixels.astype(np.uint8)).save(f"pictures/{name}.png")
        for k in range(16):
            pixels = np.random.default_rng(k).integers(256, size=(100 + k, 120, 3))
            Path(f"photos/{'ab'[k % 2]}").mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.astype(np.uint8)).save(f"photos/{'ab'[k % 2]}/{k}.png")
        for name, (domain, dataset) in FOLDERS.items():
            export(folder / name, domain, dataset)
    return folder


@pytest.fixture(autouse=True)
def here(reader: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(reader)
    return reader


def example(*words: str) -> dict[str, Any]:
    """The names that the example with these words makes."""
    (text,) = (text for text in EXAMPLES if all(word in text for word in words))
    made: dict[str, Any] = {}
    exec(text, made)
    return made


@pytest.mark.parametrize("folder", FOLDERS)
def test_an_example_of_the_page_runs(folder: str) -> None:
    made = example(f'cb.encoder("{folder}")')
    assert made["encoder"].domain == FOLDERS[folder][0]


def test_an_encoder_is_a_transformer_and_a_module() -> None:
    encoder = example("make_pipeline")["model"][0]
    expected = cb.encoder("table-encoder").embed(people())
    found = clone(encoder).set_output(transform="pandas").transform(people())
    assert np.array_equal(found, expected)
    assert list(found) == [f"encoder{k}" for k in range(expected.shape[1])]
    assert isinstance(encoder, torch.nn.Module)
    inputs = torch.from_numpy(encoder.opened.inputs(encoder.opened.table(people()), "it"))
    z = encoder(inputs)
    assert z.detach().numpy() == pytest.approx(expected, abs=1e-5)
    z.sum().backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())


@pytest.mark.parametrize("folder", ["graph-encoder", "image-encoder", "table-encoder"])
def test_new_rows_get_classes_and_embeddings(
    folder: str, bench, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here)
    data = {"graph": "motifs", "image": "folder:pictures", "table": "csv:people.csv"}
    words = [folder, "--data", data[folder.partition("-")[0]], "--device", "cpu", "--output"]
    for command, name in (("embed", "a.parquet"), ("predict", "b.csv")):
        assert bench(command, *words, str(tmp_path / name))[0] == 0
    encoder = cb.encoder(folder)
    samples = encoder.read(words[2])
    rows, said = pd.read_parquet(tmp_path / "a.parquet"), pd.read_csv(tmp_path / "b.csv")
    if samples.names:
        assert list(rows.pop("name")) == list(said["name"]) == samples.names
    assert rows.to_numpy() == pytest.approx(encoder.embed(samples.data), abs=1e-6)
    shares = encoder.predict_proba(samples.data)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert said["probability"].to_numpy() == pytest.approx(shares.max(axis=1))
    assert list(said["class"].astype(str)) == list(encoder.predict(samples.data))
    code, _, complaint = bench("embed", *words, "a.xlsx")
    assert (code, complaint.count("\n"), "ends in .parquet or .csv" in complaint) == (2, 1, True)


def test_the_encoder_of_a_record_is_trained_again_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = {**SMALL["tabular"], "epochs": 1}
    (record,) = cb.run("tabular", "infonce", "csv:people.csv", recipe=recipe, results=tmp_path)
    first = cb.encoder(record, results=tmp_path).embed(people())
    assert "is trained again" in capsys.readouterr().err
    monkeypatch.setattr(reproduction, "run_again", lambda *_: pytest.fail("trained"))
    name = f"{record['key'][:16]}-seed0"
    assert np.array_equal(cb.encoder(name, results=tmp_path).embed(people()), first)
    with pytest.raises(UserError, match=r"runs Python of its own, .* then give --trust"):
        cb.encoder({**record, "loss": "mine.py:Mine", "seed": 1}, results=tmp_path)


def test_torchvision_loads_an_image_encoder() -> None:
    made = example("torchvision.models.resnet18")
    pixels = torch.randint(256, (3, 16, 16, 3), dtype=torch.uint8)
    with torch.no_grad():
        seen = made["normalise"](pixels.permute(0, 3, 1, 2) / 255)
        found = made["network"].eval()(seen)
    expected = cb.encoder("image-encoder").embed(pixels)
    assert found.numpy() == pytest.approx(expected, abs=1e-5)
    assert expected.std() > 0.01


@pytest.mark.parametrize("size", [16, 96])
def test_torchvision_knows_every_weight_of_a_resnet(size: int, tmp_path: Path) -> None:
    from safetensors.torch import load_file
    from torchvision import models

    for name in ("resnet18", "resnet50"):
        export(tmp_path / name, "image", "digits", encoder=name, size=size)
        there = {k: x.shape for k, x in models.get_model(name).state_dict().items()}
        here = {k: x.shape for k, x in load_file(tmp_path / name / "model.safetensors").items()}
        assert here.keys() == there.keys() - {"fc.weight", "fc.bias"}
        assert {k for k in here if here[k] != there[k]} == (
            {"conv1.weight"} if size == 16 else set()
        )


def test_torch_geometric_loads_a_graph_encoder() -> None:
    made = example("from torch_geometric.nn import GIN")
    with torch.no_grad():
        found = made["embed"](graphs())
    expected = cb.encoder("graph-encoder").embed(graphs())
    assert found.numpy() == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert expected.shape == (4, 16)


def graphs() -> list[Data]:
    """A path in one direction, a ring with a loop and a twin, one without edges, a last node."""
    path, ring = [[0, 1], [1, 2]], [[0, 1, 2, 1, 1, 0], [1, 2, 0, 0, 1, 1]]
    edges = [path, ring, [[], []], [[0], [1]]]
    sizes = [3, 3, 2, 5]
    return [
        Data(edge_index=torch.tensor(e, dtype=torch.long), num_nodes=n)
        for e, n in zip(edges, sizes, strict=True)
    ]


def pictures() -> list[Any]:
    return [Image.open("pictures/cat.png"), Image.open("pictures/dog.png")]


ALONE: dict[str, Callable[[], list[Any]]] = {
    "graph-encoder": graphs,
    "image-encoder": pictures,
    "sentence-encoder": lambda: ["kaba", "", "babace kaba ban gugu dida"],
    "table-encoder": lambda: [people().drop(columns="kind").iloc[[k]] for k in range(12)],
}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_sample_alone_has_its_embedding_among_others(folder: str) -> None:
    encoder, samples = cb.encoder(folder), ALONE[folder]()
    frames = folder == "table-encoder"
    together = encoder.embed(pd.concat(samples) if frames else samples)
    assert (together.dtype, len(together)) == (np.float32, len(samples))
    for sample, expected in zip(samples, together, strict=True):
        alone = encoder.embed(sample if frames else [sample])
        assert alone[0] == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert len(np.unique(together.round(4), axis=0)) == len(samples)


@pytest.mark.parametrize(
    ("domain", "dataset", "changes"),
    [
        ("graph", "motifs", {}),
        ("image", "digits", {"width": 0.125}),
        ("image", "digits", METRIC),
        ("image", "folder:photos", {"width": 0.125, "batch_size": 4}),
        ("tabular", "csv:people.csv", {}),
    ],
)
def test_embeddings_are_those_that_are_scored(
    domain: str, dataset: str, changes: dict, tmp_path: Path
) -> None:
    made, model = export(tmp_path / "encoder", domain, dataset, limit=None, **changes)
    expected = made.embeddings(model).x
    encoder = cb.encoder(tmp_path / "encoder")
    found = torch.from_numpy(encoder.embed(encoder.read(dataset).data))
    nearest = torch.cdist(expected, found).min(dim=1).values
    assert nearest.max() < 1e-3 * expected.norm(dim=1).max()
    assert expected.std(dim=0).max() > 0.01


def test_pictures_are_one_in_every_form() -> None:
    encoder = cb.encoder("image-encoder")
    files = encoder.embed("pictures")
    images = encoder.embed(pictures())
    arrays = [np.asarray(image)[None] for image in pictures()]
    assert np.array_equal(files, images)
    for row, array in zip(files, arrays, strict=True):
        assert encoder.embed(array)[0] == pytest.approx(row, abs=1e-5)
    assert np.array_equal(encoder.embed([Path("pictures/cat.png"), "pictures/dog.png"]), files)


def test_tables_are_one_in_every_form(tmp_path: Path) -> None:
    encoder, frame = cb.encoder("table-encoder"), people()
    expected = encoder.embed("people.csv")
    frame.to_parquet(tmp_path / "people.parquet")
    assert np.array_equal(encoder.embed(frame), expected)
    assert np.array_equal(encoder.embed(tmp_path / "people.parquet"), expected)
    assert np.array_equal(encoder.embed(frame[["city", "age"]]), expected)
    lists = {"age": frame.age.tolist(), "city": frame.city.where(frame.city.notna(), None).tolist()}
    assert np.array_equal(encoder.embed(lists), expected)
    assert encoder.embed(frame[:0]).shape == (0, expected.shape[1])
    with pytest.raises(UserError, match=r"it lacks 2 columns \(age, city\) of the training"):
        encoder.embed(np.zeros((2, 2)))


def test_a_batch_of_graphs_and_a_graph_alone_are_taken() -> None:
    encoder = cb.encoder("graph-encoder")
    expected = encoder.embed(graphs())
    assert np.array_equal(encoder.embed(Batch.from_data_list(graphs())), expected)
    assert encoder.embed(graphs()[1])[0] == pytest.approx(expected[1], rel=1e-4)


FAULTS = [
    ("table-encoder", {"age": [1]}, "it lacks the column city of the training"),
    ("table-encoder", {"x": [1]}, r"it lacks 2 columns \(age, city\) of the training"),
    ("table-encoder", {"age": ["old"], "city": ["Bern"]}, "column age has 'old', but the encoder"),
    ("table-encoder", {"age": [np.inf], "city": ["Bern"]}, "column age has infinite values"),
    ("table-encoder", {"age": [1e308], "city": ["Bern"]}, "numbers are too large for float32"),
    ("image-encoder", "no-folder", "no folder no-folder: give that of image files"),
    ("image-encoder", ["no.png"], "cannot read no.png"),
    ("image-encoder", ["people.csv"], "people.csv is no image"),
    ("image-encoder", [None], r"an array of object and shape \(1,\) holds no pictures: give uint8"),
    ("table-encoder", "no.csv", "no file no.csv: give the path of a CSV or Parquet file"),
    ("table-encoder", None, r"it lacks 2 columns \(age, city\) of the training"),
    ("image-encoder", "table-encoder", "table-encoder has no images"),
    ("image-encoder", np.zeros((4, 16, 16), np.uint8), r"\(4, 16, 16\) holds no pictures: give"),
    ("image-encoder", np.full((1, 8, 8, 3), 2.0), "an array of float64 and shape"),
    ("sentence-encoder", "a text", "'a text' is one text: give a list of sentences"),
    ("sentence-encoder", ["a", np.nan], "sentence 1 is nan, no text"),
    ("sentence-encoder", [], "there are no sentences"),
    ("graph-encoder", [], "data has no graphs"),
    ("graph-encoder", [1], "data: graph 0 is no torch_geometric.data.Data"),
    (
        "graph-encoder",
        [Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0], [1]]))],
        "data has 3 features for each node, and graph-encoder was trained on 1",
    ),
    ("nowhere", [], "nowhere holds no exported encoder"),
]


@pytest.mark.parametrize(("folder", "data", "message"), FAULTS)
def test_what_does_not_fit_is_one_line(folder: str, data: Any, message: str) -> None:
    given = pd.DataFrame(data) if isinstance(data, dict) else data
    with pytest.raises(UserError, match=message):
        cb.encoder(folder).embed(given)


@pytest.mark.parametrize(
    ("name", "file", "change"),
    [
        ("graph-encoder", "config.json", {"recipe": {"hidden": 9}}),
        ("graph-encoder", "config.json", {"recipe": {"hidden": "x"}}),
        ("graph-encoder", "config.json", {"labels": 3}),
        ("table-encoder", "config.json", {"columns": []}),
        ("table-encoder", "config.json", {"columns": {"age": 3}}),
        ("table-encoder", "config.json", {"columns": {"age": {"median": "x"}}}),
        ("table-encoder", "config.json", {"columns": {"a": {"median": 0, "mean": 0, "std": 1}}}),
        ("image-encoder", "config.json", {"mean": 3}),
        ("image-encoder", "config.json", {"domain": 3}),
        ("sentence-encoder", "1_Pooling/config.json", []),
    ],
)
def test_a_damaged_folder_is_one_line(
    name: str, file: str, change: Any, tmp_path: Path, here: Path
) -> None:
    folder = shutil.copytree(here / name, tmp_path / name)
    about = json.loads((folder / file).read_text()) | change if change else []
    (folder / file).write_text(json.dumps(about))
    with pytest.raises(UserError, match=r"export it again|unknown domain '3'") as raised:
        cb.encoder(folder)
    assert "validation error" not in str(raised.value), "it says which"


def test_files_are_named_and_embedded_as_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made_images.save(tmp_path / "pictures" / "b.png", made_images.noise(20, 30, 3))
    made_images.save(tmp_path / "pictures" / "more" / "a.png", made_images.noise(8, 8, 3))
    (tmp_path / "lines.txt").write_text("kaba\n\nbabace ban\n")
    lines = ["kaba", "", "babace ban"]
    for domain, dataset, source, data, names in (
        ("image", "digits", "folder:pictures", "pictures", ["b.png", "more/a.png"]),
        ("sentence", "graded", "text:lines.txt", lines, lines),
    ):
        export(tmp_path / domain, domain, dataset)
        encoder = cb.encoder(tmp_path / domain)
        samples = encoder.read(source)
        assert list(samples.names) == names
        assert np.array_equal(encoder.embed(samples.data), encoder.embed(data))


def test_files_of_an_export_have_the_modes_of_others(bench) -> None:
    code, _, err = bench("run", "--domain", "tabular", "--loss", "none", "--tiny", "--export", "e")
    assert code == 0, err
    modes = {path.stat().st_mode for path in Path("e").rglob("*") if path.is_file()}
    assert len(modes) == 1, "whoever reads one reads the other"


def molecules(folder: Path, *graphs: str) -> None:
    """A file for each path of nodes with these labels, such as "CNO"."""
    folder.mkdir()
    for k, labels in enumerate(graphs):
        graph = networkx.path_graph(len(labels))
        networkx.set_node_attributes(graph, dict(enumerate(labels)), "label")
        networkx.write_graphml(graph, folder / f"{k}.graphml")


def test_a_node_label_has_its_column_whatever_labels_a_folder_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["CNO", "CCN", "OOC", "NNN", "CO", "NC"] * 4
    molecules(tmp_path / "mine", *words)
    rows = [f"{k}.graphml,{k % 2}" for k in range(len(words))]
    (tmp_path / "mine" / "labels.csv").write_text("\n".join(rows))
    molecules(tmp_path / "new", "NNN", "CS")
    export(tmp_path / "e", "graph", "folder:mine", limit=None)
    encoder = cb.encoder(tmp_path / "e")
    mine, new = (encoder.embed(encoder.read(f"folder:{name}").data) for name in ("mine", "new"))
    said = f"folder:new: node labels that {tmp_path / 'e'} does not know: S\n"
    assert said in capsys.readouterr().err
    assert (len(mine), len(new)) == (24, 2)
    assert new[0] == pytest.approx(mine[3], rel=1e-5), "nitrogen alone, in both folders"
