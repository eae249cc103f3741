"""The command `bench embed`: rows in the order of the data, in a new file."""

import builtins
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("PIL")
pytest.importorskip("torch_geometric")
pytest.importorskip("transformers")
pytest.importorskip("pandas")
import pandas as pd

import contrastbench as cb
import made_images
from contrastbench.domains.registry import declaration, domain_class, make_recipe

CPU = torch.device("cpu")
GRAPHS = """
import torch
from torch_geometric.data import Data

def unlabelled():
    path = torch.tensor([[0, 1], [1, 2]])
    return [Data(edge_index=path, num_nodes=3 + k) for k in range(3)]
"""


def export(folder: Path, domain: str, dataset: str, **changes: object) -> Path:
    recipe = make_recipe(domain, {**declaration(domain).tiny, **changes})
    opened = domain_class(domain)(dataset, recipe, 0, None, CPU)
    opened.export(opened.model(), folder)
    return folder


def table(rows: int = 60) -> str:
    lines = [f"{'' if k % 9 == 0 else k % 7},{'uvw'[k % 3]},{'xy'[k % 2]}" for k in range(rows)]
    return "\n".join(["a,word,kind", *lines])


def with_data(folder: Path, domain: str) -> tuple[Path, str, object]:
    """An encoder, data without classes as the command names them, and as Python has them."""
    if domain == "graph":
        (folder / "my.py").write_text(GRAPHS)
        made: dict = {}
        exec(GRAPHS, made)
        return export(folder / "e", domain, "motifs"), "my.py:unlabelled", made["unlabelled"]()
    if domain == "image":
        made_images.save(folder / "pictures" / "b.png", made_images.noise(20, 30, 3))
        made_images.save(folder / "pictures" / "more" / "a.png", made_images.noise(8, 8, 3))
        return export(folder / "e", domain, "digits"), "folder:pictures", folder / "pictures"
    if domain == "sentence":
        (folder / "lines.txt").write_text("kaba\n\nbabace ban\n")
        return export(folder / "e", domain, "graded"), "text:lines.txt", ["kaba", "", "babace ban"]
    (folder / "mine.csv").write_text(table())
    (folder / "new.csv").write_text("word,a\nw,3\n,\nu,5\n")
    mine = export(folder / "e", domain, "csv:mine.csv", target="kind", batch_size=16)
    return mine, "csv:new.csv", pd.read_csv("new.csv")


@pytest.mark.parametrize("domain", ["graph", "image", "sentence", "tabular"])
def test_the_file_has_what_python_gives(domain: str, tmp_path: Path, bench) -> None:
    folder, dataset, data = with_data(tmp_path, domain)
    expected = cb.encoder(folder).embed(data)
    for output in ("x.npy", "x.parquet"):
        words = ("--encoder", str(folder), "--dataset", dataset, "--output", output)
        code, out, err = bench("embed", *words)
        assert code == 0, err
        n, d = expected.shape
        assert out == f"{n} embeddings of {d} numbers are in {output}\n"
    assert np.array_equal(np.load("x.npy"), expected)
    frame = pd.read_parquet("x.parquet")
    names = {"image": ["b.png", "more/a.png"], "sentence": data}.get(domain)
    if names:
        assert list(frame.pop("name")) == names
    assert list(frame.columns) == [f"e{k}" for k in range(expected.shape[1])]
    assert np.array_equal(frame.to_numpy(), expected)


def test_the_data_of_the_training_are_the_default(tmp_path: Path, bench) -> None:
    (tmp_path / "mine.csv").write_text(table())
    words = ("run", "--domain", "tabular", "--dataset", "csv:mine.csv", "--target", "kind")
    words += ("--loss", "none", "--tiny", "--recipe", "batch_size=16", "--export", "e")
    code, _, err = bench(*words)
    assert code == 0, err
    code, _, err = bench("embed", "--encoder", "e", "--output", "x.npy")
    assert code == 0, err
    assert np.array_equal(np.load("x.npy"), cb.encoder("e").embed("mine.csv"))
    assert "# tabular encoder: none on csv:mine.csv" in Path("e/README.md").read_text()


def test_the_model_card_of_ones_own_loss_names_its_class(tmp_path: Path, bench) -> None:
    (tmp_path / "mine.py").write_text(
        "from contrastbench.losses.library.infonce import InfoNCE\n\nclass Mine(InfoNCE): ...\n"
    )
    words = ("run", "--domain", "tabular", "--loss", "mine.py:Mine + 0.5*infonce", "--tiny")
    code, _, err = bench(*words, "--recipe", "epochs=1", "--export", "e")
    assert code == 0, err
    assert "--loss 'mine.py:Mine + 0.5*infonce'" in Path("e/README.md").read_text()
    modes = {(Path("e") / name).stat().st_mode for name in ("model.safetensors", "config.json")}
    assert len(modes) == 1, "whoever reads one reads the other"


def test_a_page_of_ones_own_stays(tmp_path: Path) -> None:
    from contrastbench.benchmarks.records import exports

    (tmp_path / "README.md").write_text("mine")
    exports.write_model_card(tmp_path, {})
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_mistake_is_one_line(
    tmp_path: Path, bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, dataset, _ = with_data(tmp_path, "tabular")
    capsys.readouterr()
    (tmp_path / "there.npy").write_text("")
    real = builtins.__import__

    def without(name: str, *rest: object, **more: object) -> object:
        if name == "pyarrow":
            raise ModuleNotFoundError("no pyarrow", name="pyarrow")
        return real(name, *rest, **more)

    for output, words, message in (
        ("there.npy", (), "--output there.npy exists: name a new file"),
        ("x.csv", (), "--output x.csv: give a name that ends in .npy or .parquet"),
        ("no/x.npy", (), "--output no/x.npy: no folder no: make it first"),
        ("x.npy", ("--dataset", "csv:none.csv"), "no file none.csv"),
        ("x.npy", ("--dataset", "tsv:new.csv"), "unknown kind of data 'tsv'"),
        ("x.npy", ("--encoder", "nowhere"), "nowhere holds no exported encoder"),
        (
            "x.parquet",
            (),
            'x.parquet needs pyarrow, which is not installed: pip install "contrastb',
        ),
    ):
        with monkeypatch.context() as patch:
            if output == "x.parquet":
                patch.setattr(builtins, "__import__", without)
            given = {"--encoder": str(folder), "--dataset": dataset, "--output": output}
            given |= dict(zip(words[::2], words[1::2], strict=True))
            code, _, err = bench("embed", *(word for pair in given.items() for word in pair))
        assert (code, message in err, err.count("\n")) == (2, True, 1), err
        assert not Path("x.npy").exists()
    code, _, err = bench("embed", "--encoder", str(folder), "--output", "x.npy")
    assert (code, "does not say what it was trained on: give --dataset" in err) == (2, True)
    code, _, err = bench("embed", "--encoder", "nowhere", "--output", "x.npy")
    assert (code, "nowhere holds no exported encoder" in err) == (2, True), err


def molecules(folder: Path, *graphs: str) -> None:
    """A file for each path of nodes with these labels, such as "CNO"."""
    networkx = pytest.importorskip("networkx")
    folder.mkdir()
    for k, labels in enumerate(graphs):
        graph = networkx.path_graph(len(labels))
        networkx.set_node_attributes(graph, dict(enumerate(labels)), "label")
        networkx.write_graphml(graph, folder / f"{k}.graphml")


def test_a_node_label_has_its_column_whatever_labels_a_folder_has(tmp_path: Path, bench) -> None:
    words = ["CNO", "CCN", "OOC", "NNN", "CO", "NC"] * 4
    molecules(tmp_path / "mine", *words)
    rows = [f"{k}.graphml,{k % 2}" for k in range(len(words))]
    (tmp_path / "mine" / "labels.csv").write_text("\n".join(rows))
    molecules(tmp_path / "new", "NNN", "CS")
    folder = export(tmp_path / "e", "graph", "folder:mine")
    for dataset in ("mine", "new"):
        words = ("--dataset", f"folder:{dataset}", "--output", f"{dataset}.npy")
        code, _, err = bench("embed", "--encoder", str(folder), *words)
        assert code == 0, err
    assert err == f"folder:new: node labels that {folder} does not know: S\n"
    mine, new = np.load("mine.npy"), np.load("new.npy")
    assert (len(mine), len(new)) == (24, 2)
    assert new[0] == pytest.approx(mine[3], rel=1e-5), "nitrogen alone, in both folders"
