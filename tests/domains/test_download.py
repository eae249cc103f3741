"""Downloads from a hub that runs inside the test."""

import hashlib
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

import senteval
from contrastbench.domains import download
from contrastbench.domains.declaration import Dataset
from contrastbench.domains.registry import fetch_declared
from contrastbench.domains.sentence.datasets import CORPORA, DATASETS
from contrastbench.losses import UserError
from opened import opened


class Hub(BaseHTTPRequestHandler):
    """Answers as the hub does for a large file: its sha256, and where it is stored."""

    files: ClassVar[dict[str, bytes]] = {}
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        name = Path(self.path).name
        body = self.files.get(name, b"")
        if body and not self.path.startswith("/stored/"):
            tag = hashlib.sha256(body).hexdigest()
            return self.reply(
                302, b"", {"X-Linked-ETag": f'"{tag}"', "Location": f"/stored/{name}"}
            )
        self.asked.append(f"{self.command} {name}")
        return self.reply(200 if body else 404, body, {})

    do_HEAD = do_GET

    def reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body if self.command == "GET" else b"")

    def log_message(self, *_: object) -> None:
        """Not on standard error."""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_sets: None) -> Iterator[type[Hub]]:
    """A hub with SentEval's archive and a corpus, at the datasets' addresses; empty cache."""
    senteval.make(tmp_path / "made", [])
    with tarfile.open(tmp_path / "made.tar", "w") as tar:
        tar.add(tmp_path / "made/senteval/downstream", ".")
    corpus = "\n".join(senteval.sentence(i) for i in range(40)).encode()
    kept = {"senteval.tar": (tmp_path / "made.tar").read_bytes(), "wiki1m_for_simcse.txt": corpus}
    monkeypatch.setattr(Hub, "files", kept)
    monkeypatch.setattr(Hub, "asked", [])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setattr(download, "cache_folder", lambda: tmp_path / "cache")
    for known, name in ((DATASETS, "sts"), (DATASETS, "transfer"), (CORPORA, "wiki1m")):
        revision, file = DATASETS["sts"].revision, Path(known[name].url).name
        url = f"http://127.0.0.1:{server.server_port}/datasets/x/resolve/{revision}/{file}"
        monkeypatch.setitem(known, name, replace(known[name], url=url))
    monkeypatch.setitem(
        CORPORA, "wiki1m", replace(CORPORA["wiki1m"], sha256=hashlib.sha256(corpus).hexdigest())
    )
    yield Hub
    server.shutdown()
    server.server_close()


def test_a_file_of_the_hub_is_asked_for_once_and_verified_ever_after(hub: type[Hub]) -> None:
    sts = DATASETS["sts"]
    assert download.file_state(sts)[0] == "not downloaded"
    path = download.fetch_file(sts)
    assert path.read_bytes() == hub.files["senteval.tar"]
    assert download.fetch_file(DATASETS["transfer"]) == path
    assert hub.asked == ["HEAD senteval.tar", "GET senteval.tar"]
    assert download.file_state(sts)[0] == "downloaded, sha256 verified"
    path.write_bytes(hub.files["senteval.tar"][:-1])
    assert download.file_state(sts)[0] == f"DAMAGED: delete {path}"
    assert download.fetch_file(sts).read_bytes() == hub.files["senteval.tar"]


def test_a_set_of_several_files_is_whole_with_the_last(hub: type[Hub], tmp_path: Path) -> None:
    address = DATASETS["sts"].url.rpartition("/")[0]
    files = tuple(
        Dataset(name, "", f"{address}/{name}", hashlib.sha256(body).hexdigest())
        for name, body in hub.files.items()
    )
    known = replace(DATASETS["captions"], files=files)
    first, last = (download.obtain(file, None) for file in known.files)
    assert download.file_state(known)[0] == "downloaded, sha256 verified"
    assert download.whereabouts(known, None).startswith(str(last))
    assert fetch_declared(known, None) == str(first.parent)
    first.write_bytes(b"damaged")
    assert download.file_state(known)[0] == f"DAMAGED: delete {first}"
    last.unlink()
    assert download.whereabouts(known, None) == "not here"
    assert fetch_declared(known, tmp_path / "taken along") == str(tmp_path / "taken along")


def test_a_file_of_the_data_root_is_held_against_the_declared_one(tmp_path: Path) -> None:
    known = replace(DATASETS["sts"], sha256=hashlib.sha256(b"whole").hexdigest())
    assert download.file_state(known, tmp_path)[0] == "not downloaded"
    path = tmp_path / download.cached_file(known).name
    path.write_bytes(b"whole")
    assert download.file_state(known, tmp_path)[0] == "downloaded, sha256 verified"
    path.write_bytes(b"other")
    assert download.file_state(known, tmp_path)[0] == f"DIFFERS from the declared file: {path}"
    path.unlink()
    (path / "below").mkdir(parents=True)
    assert download.whereabouts(known, tmp_path) == "not here", "an empty folder is no data"
    (path / "below/file").touch()
    assert "records hold the hash of what is read" in download.file_state(known, tmp_path)[0]


def test_a_shipped_file_is_verified_and_never_downloaded(tmp_path: Path) -> None:
    path = tmp_path / "package/sts.tar"
    known = replace(DATASETS["sts"], sha256=hashlib.sha256(b"whole").hexdigest(), shipped=path)
    for damage in (None, b"other"):
        if damage:
            path.parent.mkdir()
            path.write_bytes(damage)
        with pytest.raises(UserError, match=rf"sts: DAMAGED: install contrastbench .* {path}"):
            download.local_file(known, tmp_path)
    path.write_bytes(b"whole")
    assert download.fetch_file(known) == download.local_file(known, tmp_path) == path
    assert download.file_state(known, tmp_path) == ("shipped, sha256 verified", False)
    assert download.whereabouts(known, tmp_path) == fetch_declared(known, tmp_path) == "shipped"


def test_a_hub_without_the_file_is_one_line(hub: type[Hub]) -> None:
    hub.files.clear()
    with pytest.raises(UserError, match=r"senteval.tar .*put senteval.tar into a folder and name"):
        download.fetch_file(DATASETS["sts"])
    assert "GET senteval.tar" not in hub.asked


def test_downloaded_sets_are_those_of_the_folder(hub: type[Hub], tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive/senteval.tar").write_bytes(hub.files["senteval.tar"])
    roots = (None, tmp_path / "made", tmp_path / "archive")
    downloaded, *others = (opened("sentence", "sts", root) for root in roots)
    for other in others:
        assert other.scored == downloaded.scored
    assert len(downloaded.corpus[0]) == 40
    assert hub.asked[-1] == "GET wiki1m_for_simcse.txt"
