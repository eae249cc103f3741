"""An encoder reads data without classes as `--dataset` names them, and what a folder says of it."""

from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("PIL")
pytest.importorskip("torch_geometric")
pytest.importorskip("transformers")
pytest.importorskip("pandas")
import contrastbench as cb
import made_images
from contrastbench.benchmarks.api.encoders import Encoder
from contrastbench.domains.registry import declaration, domain_class, make_recipe


def export(folder: Path, domain: str, dataset: str, **changes: object) -> Encoder:
    recipe = make_recipe(domain, {**declaration(domain).tiny, **changes})
    opened = domain_class(domain)(dataset, recipe, 0, None, torch.device("cpu"))
    opened.export(opened.model(), folder)
    return cb.encoder(folder)


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
        encoder = export(tmp_path / domain, domain, dataset)
        samples = encoder.read(source)
        assert list(samples.names) == names
        assert np.array_equal(encoder.embed(samples.data), encoder.embed(data))


def test_files_of_an_export_have_the_modes_of_others(tmp_path: Path, bench) -> None:
    code, _, err = bench("run", "--domain", "tabular", "--loss", "none", "--tiny", "--export", "e")
    assert code == 0, err
    modes = {(Path("e") / name).stat().st_mode for name in ("model.safetensors", "config.json")}
    assert len(modes) == 1, "whoever reads one reads the other"


def molecules(folder: Path, *graphs: str) -> None:
    """A file for each path of nodes with these labels, such as "CNO"."""
    networkx = pytest.importorskip("networkx")
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
    encoder = export(tmp_path / "e", "graph", "folder:mine")
    mine, new = (encoder.embed(encoder.read(f"folder:{name}").data) for name in ("mine", "new"))
    said = f"folder:new: node labels that {tmp_path / 'e'} does not know: S\n"
    assert said in capsys.readouterr().err
    assert (len(mine), len(new)) == (24, 2)
    assert new[0] == pytest.approx(mine[3], rel=1e-5), "nitrogen alone, in both folders"
