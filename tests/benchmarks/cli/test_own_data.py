"""Data of users' own from the command line: the page that documents it is run."""

import json
import shlex
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import pytest

import made_images
from contrastbench.domains.own import find_path
from contrastbench.errors import UserError

PAGE = (Path(__file__).parents[3] / "docs" / "own-data.md").read_text()
BLOCKS = [block.split("```")[0] for block in PAGE.split("```bash\n")[1:]]
HERE = [block for block in BLOCKS if not block.startswith("# where there is a network")]
LINES = [line for block in HERE for line in block.splitlines()]
COMMANDS = [line for line in LINES if line.startswith("bench run")]
ROWS = [(3 * k, k % 7, "ab"[k % 2]) for k in range(200)]


def table(header: str, rows: list[tuple[object, ...]], between: str = ",") -> str:
    lines = [header.replace(",", between)] + [between.join(map(str, row)) for row in rows]
    return "\n".join(lines) + "\n"


def tables(root: Path) -> None:
    (root / "mine.csv").write_text(table("x,y,kind", ROWS))
    (root / "train.csv").write_text(table("x,y,kind", ROWS[:150]))
    (root / "test.csv").write_text(table("x,y,kind", ROWS[150:]))
    german = [(f"C{k}", f"2020-12-{k % 28 + 1:02d}", f"word {k}", f"{x},5", y) for k, x, y in ROWS]
    (root / "german.csv").write_text(table("id,day,note,x,kind", german, ";"), "utf-8-sig")
    parts = [(*row, "train" if row[0] < 450 else "test") for row in ROWS]
    (root / "parts.tsv").write_text(table("x,y,kind,part", parts, "\t"))
    frame = pd.read_csv(root / "mine.csv")
    frame.to_parquet(root / "mine.parquet")
    datasets.Dataset.from_pandas(frame).save_to_disk(root / "saved")


def images(root: Path) -> None:
    files = {f"pictures/{'ab'[k % 2]}/{k}.jpg": made_images.jpeg(k) for k in range(80)}
    made_images.as_folder(root, files)
    pixels = np.random.default_rng(0).integers(256, size=(80, 8, 8)).astype(np.uint8)
    np.savez(root / "mine.npz", images=pixels, labels=np.arange(80) % 2)


def sentences(root: Path) -> None:
    rows = [(f"sentence {k}", f"sentence {k + k % 3}", k % 6) for k in range(40)]
    for name in ("mine.tsv", "dev.tsv", "test.tsv"):
        (root / name).write_text(table("sentence1,sentence2,score", rows, "\t"))
    (root / "lines.txt").write_text("".join(f"a line of words {k}\n" for k in range(100)))


def graphs(root: Path) -> None:
    code = PAGE.split("```python\n")[1].split("```")[0]
    (root / "my_graphs.py").write_text(code)
    for folder in ("TOY", "molecules"):
        (root / folder).mkdir()
    pairs = "".join(f"{2 * k + 1}, {2 * k + 2}\n{2 * k + 2}, {2 * k + 1}\n" for k in range(60))
    (root / "TOY" / "TOY_A.txt").write_text(pairs)
    indicator = "".join(f"{k + 1}\n{k + 1}\n" for k in range(60))
    (root / "TOY" / "TOY_graph_indicator.txt").write_text(indicator)
    (root / "TOY" / "TOY_graph_labels.txt").write_text("1\n2\n" * 30)
    for k in range(30):
        edges = "".join(f"{a} {a + 1}\n" for a in range(3 + k % 4))
        (root / "molecules" / f"{k}.edges").write_text(edges)
    labels = table("file,class", [(f"{k}.edges", k % 2) for k in range(30)])
    (root / "molecules" / "labels.csv").write_text(labels)


MAKE = {"tabular": tables, "image": images, "sentence": sentences, "graph": graphs}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page_runs(command: str, bench, tmp_path: Path) -> None:
    words = shlex.split(command, comments=True)
    domain = words[words.index("--domain") + 1]
    MAKE[domain](tmp_path)
    code, out, err = bench(*words[1:], "--tiny", "--json")
    assert code == 0, err
    record = json.loads(out)
    assert (record["status"], record["dataset"]) == ("ok", words[words.index("--dataset") + 1])
    assert len(record["data_hash"]) == 64


@pytest.mark.parametrize("command", [line for line in LINES if line not in COMMANDS])
def test_what_the_page_checks_has_no_fault(command: str, bench, tmp_path: Path) -> None:
    tables(tmp_path)
    code, out, err = bench(*shlex.split(command, comments=True)[1:])
    assert code == 0, err
    assert "200" in out + err


def test_the_page_has_every_kind() -> None:
    from contrastbench.domains.registry import loaded_declarations

    for about in loaded_declarations().values():
        for source in about.sources:
            assert f"`{source.kind}:" in PAGE, source.usage


def test_a_file_of_the_home_folder_is_found(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.csv").write_text("a,kind\n")
    assert find_path("~/mine.csv", None) == tmp_path / "mine.csv"
    with pytest.raises(UserError, match=r"no file ~nobody-of-this-name/mine\.csv here"):
        find_path("~nobody-of-this-name/mine.csv", None)


SWEEP = """seeds: 0-1
domains:
  graph: {datasets: [motifs, "folder:TOY"]}
  tabular: {datasets: [CoverType, "csv:mine.csv"]}
losses: [infonce, none]
"""


def test_all_of_a_sweep_is_fetched(
    bench, tmp_path: Path, offline: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my.yaml").write_text(SWEEP)
    (tmp_path / "TOY").mkdir()

    def retrieve(url: str, known_hash: str, fname: str, path: Path, downloader: object) -> str:
        (path / fname).write_bytes(b"1")
        return str(path / fname)

    monkeypatch.setattr("pooch.retrieve", retrieve)
    root = tmp_path / "root"
    code, out, _ = bench("data", "fetch", "my.yaml", "--data-root", str(root))
    assert code == 0
    assert out.splitlines() == [
        "motifs: embedded",
        "folder:TOY: your own, take it along",
        f"CoverType: {root / 'covtype.data.gz'}",
        "csv:mine.csv: your own, take it along",
    ]
    out = bench("data", "list", "--data-root", str(root))[1]
    assert any(
        "CoverType" in x and f"{root / 'covtype.data.gz'}, 0 KiB" in x for x in out.split("\n")
    )
    assert any("csv:FILE[,TEST]" in line for line in out.splitlines())


def test_what_cannot_be_fetched_is_named_and_stops_no_other(
    bench, tmp_path: Path, offline: None
) -> None:
    (tmp_path / "my.yaml").write_text(SWEEP.replace(', "csv:mine.csv"', ""))
    code, out, _ = bench("data", "fetch", "my.yaml", "--data-root", "root")
    assert code == 1
    assert "motifs: embedded" in out
    assert "MISSING cannot download" in out
    assert bench("data", "list", "my.yaml")[0] == 2
