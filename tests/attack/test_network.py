"""A server that is out to harm: each answer of its is one line, and leaves nothing behind.

A run on what is kept already asks no server at all.
"""

import gzip
import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pooch
import pytest
import requests

import hostile
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.running.runner import run_cell
from contrastbench.domains import download
from contrastbench.domains.declaration import Dataset
from contrastbench.domains.graph import DATASETS
from contrastbench.losses import UserError
from contrastbench.losses.spec import LossSpec
from counts import dice

BODY = dice("body").randbytes(50_000)
OTHER = dice("other").randbytes(50_000)
OK = b"HTTP/1.1 200 OK\r\n"
Answer = Callable[["Server"], None]


class Server(BaseHTTPRequestHandler):
    """Says what it is told to, byte for byte."""

    def __init__(self, answer: list[Answer], patience: Event, *args: Any) -> None:
        self.answer, self.patience = answer, patience
        super().__init__(*args)

    def do_GET(self) -> None:
        with suppress(OSError):  # who was lied to has gone
            self.answer[0](self)
        self.close_connection = True

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        """Not on standard error."""

    @property
    def here(self) -> str:
        host, port = self.server.server_address[:2]
        return f"http://{host!s}:{port}"

    def stall(self) -> None:
        """Say nothing more until the test ends."""
        self.patience.wait()


def say(*parts: bytes, stall: bool = False) -> Answer:
    """These bytes, and then the end or nothing."""

    def answer(server: Server) -> None:
        for part in parts:
            server.wfile.write(part)
        if stall:
            server.stall()

    return answer


def of(body: bytes, length: object = None, more: bytes = b"") -> bytes:
    """A whole answer, which may lie about its length."""
    size = len(body) if length is None else length
    return OK + f"Content-Length: {size}\r\n".encode() + more + b"\r\n" + body


def to(place: str) -> Answer:
    """A redirection; {here} is the server itself."""

    def answer(server: Server) -> None:
        where = place.format(here=server.here, path=server.path)
        server.wfile.write(f"HTTP/1.1 302 Found\r\nLocation: {where}\r\n\r\n".encode())

    return answer


def endless(server: Server) -> None:
    """Right at first, and never done."""
    server.wfile.write(OK + b"\r\n")
    while True:
        server.wfile.write(BODY)


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
ANSWERS: dict[str, Answer] = {
    "hangs up at once": say(),
    "hangs up in its first line": say(b"HTTP/1."),
    "hangs up in its headers": say(OK, b"Content-Len"),
    "hangs up in the middle": say(of(BODY[:20_000], len(BODY))),
    "hangs up before the last byte": say(of(BODY[:-1], len(BODY))),
    "hangs up in a chunk": say(CHUNKED, b"c350\r\n", BODY[:20_000]),
    "says nothing": say(stall=True),
    "stalls in its headers": say(OK, stall=True),
    "stalls in the middle": say(of(BODY[:20_000], len(BODY)), stall=True),
    "says less than it sends": say(of(BODY, 100)),
    "says more than it sends": say(of(BODY, 10**15)),
    "says less than nothing": say(of(BODY, -5)),
    "says no number": say(of(BODY, "many")),
    "says two lengths": say(of(BODY, 7, b"Content-Length: 9\r\n")),
    "chunks of less than nothing": say(CHUNKED, b"-1\r\n", BODY),
    "chunks of no size": say(CHUNKED, b"many\r\n", BODY),
    "other bytes": say(of(OTHER)),
    "one bit is another": say(of(BODY[:-1] + bytes([BODY[-1] ^ 1]))),
    "one byte more": say(of(BODY + b"\0")),
    "nothing at all": say(of(b"")),
    "no end": endless,
    "a page": say(of(b"<html>Sign in to go on</html>", more=b"Content-Type: text/html\r\n")),
    "a bomb": say(of(gzip.compress(hostile.BOMB), more=b"Content-Encoding: gzip\r\n")),
    "torn compression": say(of(gzip.compress(BODY)[:99], more=b"Content-Encoding: gzip\r\n")),
    "a program's output": say(b"\x7fELF" + BODY),
    "very many headers": say(OK, *(b"X-%d: x\r\n" % k for k in range(500)), b"\r\n"),
    "a header without end": say(OK, b"X: " + b"x" * 100_000),
    "it is gone": say(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
    "it is out of order": say(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"),
    "a part of it": say(b"HTTP/1.1 206 Partial Content\r\nContent-Length: 9\r\n\r\n", BODY[:9]),
    "nothing new": say(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
    "a round": to("{here}{path}"),
    "a longer round": to("{here}/again{path}"),
    "a file of this machine": to("file://{{secret}}"),
    "another protocol": to("ftp://127.0.0.1:9/x"),
    "no address": to("http://[::"),
    "a port that nobody has": to("http://127.0.0.1:99999/x"),
    "a host that nobody is": to("http://nobody.invalid/x"),
}
# a lie about the length that not every client believes: whoever reads on has the right bytes
RIGHT = ("says less than nothing", "says no number", "says two lengths", "says more than it sends")


class Hostile:
    """A server, what it answers, and a dataset that it is asked for."""

    def __init__(self, url: str) -> None:
        self.answer: list[Answer] = [say(of(BODY))]
        sha256 = hashlib.sha256(BODY).hexdigest()
        self.dataset = Dataset("mine", "a set", f"{url}/mine.zip", sha256)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hostile]:
    (tmp_path / "secret").write_bytes(BODY)  # the right bytes, from where nobody may take them
    monkeypatch.setattr(download, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(pooch.downloaders, "DEFAULT_TIMEOUT", 0.3)
    monkeypatch.setattr(download, "MAX_DOWNLOAD_BYTES", 20 * len(BODY))
    made, patience = Hostile(""), Event()
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, made.answer, patience))
    made.dataset = replace(made.dataset, url=f"http://127.0.0.1:{http.server_port}/mine.zip")
    Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    yield made
    patience.set()
    http.shutdown()
    http.server_close()


def left(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file()]


def test_every_answer(
    server: Hostile,
    tmp_path: Path,
    found: Callable[[str], None],
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name, answer in ANSWERS.items():
        server.answer[0] = to(f"file://{tmp_path}/secret") if "this machine" in name else answer
        said = ""
        try:
            assert download.fetch_file(server.dataset).read_bytes() == BODY
            assert name in RIGHT
            (tmp_path / "cache/mine.zip").unlink()
        except UserError as error:
            said = str(error)
        assert name in RIGHT or re.match(r"cannot download http://127.*/mine\.zip", said), name
        assert len(said.splitlines()) <= 1, name
        assert left(tmp_path / "cache") == [], name
    assert "Traceback" not in capfd.readouterr().err + caplog.text
    server.answer[0] = say(of(BODY))
    assert download.fetch_file(server.dataset).read_bytes() == BODY
    found(f"data: {len(ANSWERS)} hostile answers of a server: one line each, nothing left")


@pytest.mark.parametrize(("size", "ends"), [(1, True), (999, True), (1000, False), (1001, False)])
def test_a_server_that_is_too_slow(size: int, ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many bytes come each second: below the least rate that ends."""
    monkeypatch.setattr(download, "RATE_SECONDS", 0.01)
    enough, asked = Event(), 0

    def came() -> int:
        nonlocal asked
        asked += 1
        if asked == 20:
            enough.set()
        return (asked + 1) // 2 * size // 100  # it is asked twice each time

    with pytest.raises(download.TooSlow) if ends else nullcontext():
        assert download.hurried(enough.wait, came)
    enough.set()


def dripping(server: Server) -> None:
    """Send a header without end, a byte at a time."""
    server.wfile.write(OK + b"X: ")
    while not server.patience.wait(0.01):
        server.wfile.write(b"x")


@pytest.mark.parametrize("revision", ["", "0" * 40])
def test_headers_that_never_end(
    revision: str, server: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No byte is so late that the client gives up by itself."""
    monkeypatch.setattr(download, "RATE_SECONDS", 0.5)
    monkeypatch.setattr(pooch.downloaders, "DEFAULT_TIMEOUT", 60)
    server.answer[0] = dripping
    wanted = replace(server.dataset, sha256="" if revision else "0" * 64, revision=revision)
    with pytest.raises(UserError, match=r"cannot download .*mine\.zip \(TooSlow\)"):
        download.fetch_file(wanted)
    assert left(tmp_path / "cache") == []


@pytest.mark.parametrize("place", ["{here}/elsewhere", "//localhost:{here}/x"])
def test_the_right_bytes_may_come_from_elsewhere(
    place: str, server: Hostile, tmp_path: Path
) -> None:
    """Another path or host: the sha256 decides. The body of the redirection has no end."""

    def answer(asked: Server) -> None:
        port = asked.here.rpartition(":")[2]
        where = place.format(here=port if "localhost" in place else asked.here)
        (to(where) if asked.path == "/mine.zip" else say(of(BODY)))(asked)
        while asked.path == "/mine.zip":
            asked.wfile.write(BODY)

    server.answer[0] = answer
    assert download.fetch_file(server.dataset).read_bytes() == BODY
    assert left(tmp_path / "cache") == [tmp_path / "cache/mine.zip"]


TAGS = ("", "0" * 64, "../../x", "z" * 64, "a" * 40, "0" * 63, '"', "\xff" * 64)


@pytest.mark.parametrize("tag", TAGS)
def test_a_hub_that_lies(tag: str, server: Hostile, tmp_path: Path) -> None:
    """A hub's announced hash that is no sha256, or another file's, is refused."""
    of_hub = replace(server.dataset, sha256="", revision="0" * 40)
    server.answer[0] = say(of(BODY, more=f'X-Linked-ETag: "{tag}"\r\n'.encode("latin1")))
    with pytest.raises(UserError, match=r"cannot download .*mine\.zip"):
        download.fetch_file(of_hub)
    kept = [path.name for path in left(tmp_path / "cache")]
    assert kept == ["mine.zip.sha256"] * (tag == "0" * 64), "what is no sha256 is not kept as one"


def test_a_cached_run_opens_no_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Callable[[str], None]
) -> None:
    """A run on a downloaded set opens no socket, from reading to the record."""
    text = {"A": "", "graph_indicator": "", "graph_labels": "", "node_labels": ""}
    for graph in range(60):
        first = 3 * graph + 1
        pairs = [(first, first + 1), (first + 1, first + 2), (first, first + 2)][: 2 + graph % 2]
        text["A"] += "".join(f"{a}, {b}\n{b}, {a}\n" for a, b in pairs)
        text["graph_indicator"] += f"{graph + 1}\n" * 3
        text["graph_labels"] += f"{graph % 2}\n"
        text["node_labels"] += "0\n1\n0\n"
    cache = tmp_path / "cache"
    cache.mkdir()
    files = {f"MUTAG/MUTAG_{key}.txt": value.encode() for key, value in text.items()}
    (cache / "MUTAG.zip").write_bytes(hostile.zipped(files))
    known = replace(DATASETS["MUTAG"], sha256=download.file_sha256(cache / "MUTAG.zip"), sizes=())
    monkeypatch.setitem(DATASETS, "MUTAG", known)
    monkeypatch.setattr(download, "cache_folder", lambda: cache)
    work = Experiment("graph", "MUTAG", LossSpec("infonce"), {"epochs": 1, "folds": 3})
    with hostile.watched(tmp_path / "nothing", only="socket.") as touched:
        record, _ = run_cell(work, 0, Options(tmp_path / "results", device="cpu"))
    assert record["status"] == "ok"
    assert touched == []
    with hostile.watched(tmp_path / "nothing", only="socket.") as touched, suppress(OSError):
        requests.get("http://127.0.0.1:9/", timeout=1)
    assert touched, "a socket is seen"
    found("data: a run on a cached set: 0 sockets")
