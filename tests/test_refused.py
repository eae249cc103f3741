"""What each reader and command refuses, by the table `refused.yaml`, is one line that says why."""

import gzip
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import made_images
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.domains.graph import data as graphs
from contrastbench.domains.graph.own import load_own_graphs
from contrastbench.domains.image.data import decode
from contrastbench.domains.image.data import own as data
from contrastbench.domains.image.data.own import load_images
from contrastbench.domains.own import read_unchanged
from contrastbench.domains.sentence.data import read_corpus
from contrastbench.domains.sentence.own import read_any
from contrastbench.domains.strict_yaml import read_yaml
from contrastbench.domains.tabular import data as tables
from contrastbench.domains.tabular import separated
from contrastbench.domains.tabular.data import load_rows
from contrastbench.losses import UserError, get_loss
from opened import opened

Bench = Callable[..., tuple[int, str, str]]
READ: dict[str, Callable[..., Any]] = {
    "tabular": lambda name, root, drop=(), **options: load_rows(
        name, data_root=root, drop=tuple(drop), **options
    ),
    "image": lambda name, root: load_images(name, 16, root, made_images.CPU),
    "sentence": read_any,
    "corpus": read_corpus,
    "graph": load_own_graphs,
    "recipe": lambda name, root, **values: opened(*name.split(), root, **values),
    "table": lambda name, root, **options: load_table(name, **options),
    "YAML": lambda name, root: read_yaml(Path(name)),
    "loss": lambda name, root, expression, **params: get_loss(expression, **params),
    "bench": lambda bench, root, command: refused_by(bench, command),
}
TABLE = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text("utf-8"))


def refused_by(bench: Bench, command: str) -> None:
    code, said, complaint = bench(*shlex.split(command))
    assert (code, said, complaint.count("\n")) == (2, "", 1)
    assert not list(Path().rglob("*-seed*.json")), "a record"
    raise UserError(complaint.removesuffix("\n"))


def cases() -> Iterator[Any]:
    """Yield what is read, the files before their change, the words, the change and the options."""
    for group in TABLE:
        for words, changes, *options in group["cases"]:
            asked = group.get("options", {}) | (options[0] if options else {})
            read = (group["read"], group.get("base", {}), words, changes, asked)
            yield pytest.param(*read, id=f"{group['read']} {words[:40]}")


def column(about: dict[str, Any]) -> str:
    """Return a table with a column that is made by a pattern."""
    lines = [f"{about.get('name', 'v')},w,y"]
    for k in range(about.get("rows", 40)):
        pattern = about["then"] if k >= about.get("from", 10**6) else about["column"]
        made = pattern.format(k=k, b=k % 2, t=10 + k % 20, h=100 + k, x=f"{k:02X}", u="kKM"[k % 3])
        lines.append(f'"{about.get("at", {}).get(k, made)}",{k % 3},{"no" if k % 2 else "yes"}')
    return "\n".join(lines)


def change(root: Path, base: dict[str, str] | str, changes: dict[str, Any]) -> None:
    files: dict[str, Any] = {} if base == "pictures" else dict(base)
    if base == "pictures":
        made_images.folder(root)
    if "column" in changes:
        files, changes = {"t.csv": column(changes)}, {}
    for name, new in changes.items():
        if isinstance(new, dict):
            for old, other in new.items():
                assert old in files[name], f"{old!r} is there to be replaced"
                files[name] = files[name].replace(old, other)
        elif name != "shell":
            files[name] = new
    for name, text in files.items():
        if text is not None:
            (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    subprocess.run(changes.get("shell", ":"), shell=True, cwd=root, check=True)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("read", "base", "words", "changes", "options"), [*cases()])
def test_what_is_refused_is_one_line(
    read: str,
    base: Any,
    words: str,
    changes: Any,
    options: Any,
    tmp_path: Path,
    offline: None,
    bench: Bench,
) -> None:
    change(tmp_path, base, changes)
    read_unchanged.cache_clear()
    graphs.load_graphs.cache_clear()
    reader, _, name = read.partition(" ")
    with pytest.raises(UserError, match=words):
        READ[reader](name or bench, tmp_path, **options)


SAID = yaml.safe_load(Path(__file__).with_name("said.yaml").read_text("utf-8"))


@pytest.mark.parametrize("name", SAID)
def test_what_was_once_taken_wrongly_is_said(
    name: str, shared: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shared("cases", name))
    words = shlex.split(Path("COMMAND.txt").read_text("utf-8"))
    given = dict(pairwise(words))
    pairs = [words[k + 1].partition("=") for k, word in enumerate(words) if word == "--recipe"]
    values = {key: yaml.safe_load(value) for key, _, value in pairs}
    values |= {"target": given["--target"]} if "--target" in given else {}
    domain, dataset, trained = given["--domain"], given["--dataset"], given["--loss"] != "none"
    try:
        report = opened(domain, dataset, **values).report(trained)
        said = "\n".join(report.lines(dataset, 1000))
    except UserError as error:
        said = str(error)
    assert SAID[name] in said


def table(name: str) -> str:
    read_unchanged.cache_clear()
    return tables.load_rows(name, "y")[1]


def test_a_packed_csv_of_too_many_bytes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(("a,y\n" + "1,2\n" * 10_000).encode()))
    monkeypatch.setattr(separated, "UNPACKED", 40_000)
    monkeypatch.setattr(pd, "read_csv", lambda *_, **__: pytest.fail("it is not read"))
    with pytest.raises(UserError, match=r"bomb\.csv\.gz unpacks to more than"):
        table(f"csv:{path}")


def folder(root: Path) -> str:
    read_unchanged.cache_clear()
    return data.load_images(f"folder:{root}", 16, None, made_images.CPU)[1]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_a_pipe_and_a_link_to_nowhere_are_named(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    root = made_images.folder(tmp_path)
    make(root / "train/cat/odd.png")
    made_images.refused(lambda: folder(root), r"train/cat/odd\.png")
    made_images.refused(lambda: decode.folder_reader(root)("train/cat/odd.png"), "cannot")
