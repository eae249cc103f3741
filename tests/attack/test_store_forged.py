"""Records whose checksum is right and whose values are not: each is named, the others are read."""

import json
import random
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from contrastbench.benchmarks.cli.main import app
from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.submission import reproduction
from contrastbench.losses import UserError
from contrastbench.losses.spec import LossSpec
from counts import dice, times
from made_records import record_of

SUITE = "seeds: 0-2\ndomains: {graph: {datasets: [MUTAG]}}\nlosses: [infonce, adnce]\n"
DETAILS = {
    **{"folds": [50.0, 50.0], "inner": [60.0, 61.0], "loss_by_epoch": [3.0, 2.0, 1.0]},
    **{"samples": {"total": 188}, "test_part": "folds", "validation": 55.0},
    **{"tasks": {"SST2": [{"accuracy": 50.0}]}, "folds_of": {"accuracy": [50.0, 50.0]}},
    **{"data": {"copy": "a copy"}, "dev_curve": [[1, 2.0]], "error": "none"},
}
ODD = [
    *(None, True, 0, -1, -5, 1000, 0.5, 1e308, -1e308, float("nan"), float("inf"), 2**63, 10**30),
    *("", "text", "1", "NaN", "ok", "a\nb", "\x1b[2J", "é" * 300, [], {}, [None], [[1]], [1, "a"]),
    *({"": 1}, {"a": {"b": []}}, [[[[]]]], {"accuracy": "x"}),
]
PLACE = ("domain", "dataset", "loss", "key", "seed")  # with another one a file is misplaced
COMMANDS = ("table", "compare", "plan", "report", "pack", "merge")


def ways(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value within a value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        yield (key,)
        if isinstance(inner, dict | list):
            yield from ((key, *rest) for rest in ways(inner))


def forged(rng: random.Random, record: store.Record) -> store.Record:
    """Return the record with one or two values that are others, or lack."""
    made = deepcopy(record)
    for _ in range(rng.choice((1, 1, 2))):
        *way, last = rng.choice([way for way in ways(made) if way != ("schema",)])
        inner, odd = made, deepcopy(rng.choice(ODD))
        for key in way:
            inner = inner[key]
        misplaced = not way and last in PLACE and isinstance(odd, type(record[last]))
        if isinstance(inner, dict) and rng.random() < 0.15:
            del inner[last]
        elif not misplaced:
            inner[last] = odd
    with suppress(KeyError, ValueError):
        made["key"] = store.key(made) if made["key"] == record["key"] else made["key"]
    return made


def as_file(record: store.Record) -> bytes:
    shape = {"indent": 1, "sort_keys": True, "ensure_ascii": False}
    text = json.dumps(record | {"sha256": "unknown"}, **shape)
    try:
        checksum = store.json_digest(record)
    except ValueError:  # NaN
        checksum = "none"
    return text.replace('"unknown"', f'"{checksum}"').encode()


def is_whole(data: bytes) -> bool:
    with suppress(UserError):
        return bool(store.parsed(data, ""))
    return False


def write(folder: Path, number: int, rng: random.Random) -> list[Path]:
    """Write good records, and beside them forged ones; these are returned."""
    paths = list[Path]()
    for loss in ("infonce", "adnce"):
        work = Experiment("graph", "MUTAG", LossSpec(loss), {})
        for seed in range(3):
            record = record_of(work, seed, details=DETAILS)
            store.publish_record(record, store.record_path(folder, record))
        for seed in range(100, 100 + number // 2):
            status = rng.choice(("ok", "ok", "ok", "diverged", "failed"))
            base = record_of(work, seed, details=DETAILS, status=status)
            made = next(one for _ in count() if is_whole(as_file(one := forged(rng, base))))
            key = made.get("key") if isinstance(made.get("key"), str) else base["key"]
            suffix = ".failed-1" * (status == "failed")
            path = store.loss_folder(folder, "graph", "MUTAG", loss)
            path /= f"{key[:16]}-seed{seed}{suffix}.json"
            path.write_bytes(as_file(made))
            paths.append(path)
    return paths


def words_of(command: str, results: Path) -> list[str]:
    suite, elsewhere = results.with_name("suite.yaml"), results.with_name("elsewhere")
    suite.write_text(SUITE)
    words = {
        "table": ["table", str(suite)],
        "compare": ["compare", str(suite)],
        "plan": ["plan", str(suite), "--seeds", "0-9"],
        "report": ["report", str(suite), "--single", str(results.with_name("page.html"))],
        "pack": ["pack"],
        "merge": ["merge", str(results), "--results", str(elsewhere)],
    }[command]
    return words if command == "merge" else [*words, "--results", str(results)]


def said(capsys: pytest.CaptureFixture[str], words: list[str]) -> tuple[str, str]:
    """Run a command; what it prints, and what it says is wrong."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        app(words, standalone_mode=False)
    lines = capsys.readouterr().out.splitlines(keepends=True)
    invalid = [line for line in lines if line.startswith("invalid: ")]
    messages = [str(warning.message) for warning in caught] + invalid
    assert all(len(message.splitlines()) == 1 for message in messages)
    return "".join(line for line in lines if line not in invalid), "\n".join(messages)


def without(results: Path, text: str) -> str:
    """Return the text without what differs between folders: their names, sizes and sums."""
    changing = r"packed-\w+|[0-9.]+ MB|, \d+ invalid"
    return re.sub(changing, "", text.replace(str(results.parent), ""))


@pytest.mark.parametrize("command", COMMANDS)
def test_forged_records(
    ram: Path, capsys: pytest.CaptureFixture[str], found: Callable[[str], None], command: str
) -> None:
    """What a command says is what it says without the records that it names."""
    tried, named = 0, 0
    while tried < times(1000):
        results, rng = ram / str(tried) / "results", dice(f"forged {command} {tried}")
        paths = write(results, 100, rng)
        clean = Path(shutil.copytree(results, ram / str(tried) / "clean/results"))
        out, wrong = said(capsys, words_of(command, results))
        for path in paths:
            if str(path) in wrong:
                (clean / path.relative_to(results)).unlink()
                named += 1
        expected, nothing = said(capsys, words_of(command, clean))
        assert (without(results, out), nothing) == (without(clean, expected), "")
        tried += len(paths)
    assert named > tried / 4, "most are invalid"
    found(f"store: {tried} forged records in {command}: {named} named, no traceback, 0 others lost")


FULL = {
    "command": "bench run --domain graph --dataset MUTAG --loss infonce --set temperature=0.5",
    "own_loss": {"name": "mine.py:Mine", "files": {"mine.py": "x"}, "packages": {"torch": "1"}},
    "environment": {
        **{"commit": "0" * 40, "device": "x86_64 CPU", "versions": {"torch": "2"}, "threads": 1},
        **{"deterministic": True, "tf32": False, "variables": {"MKL_CBWR": "1"}},
    },
}
COMMANDS_MADE_UP = (
    *("'", "bench run --set 'a", "--recipe", "--recipe x=" + "[" * 2000, "--set x={a: *b}"),
    *("--set x=!!python/object:os.system", "--recipe =", "\\"),
)
NAMES = ("mine.py", "", "a\0b", "a/" * 2000 + "b", "a\nb")  # of files and packages


def sent(rng: random.Random) -> store.Record:
    """Return a record that somebody has sent, with all that makes its cell again."""
    base = {**record_of(Experiment("graph", "MUTAG", LossSpec("infonce"), {}), 3), **FULL}
    base["details"] = DETAILS
    base["command"] = rng.choice((FULL["command"], *COMMANDS_MADE_UP))
    if rng.random() < 0.1:
        base["loss"] = "+".join(["infonce"] * 200)
    if rng.random() < 0.1:
        base["environment"] = {**base["environment"], "devices": ["cuda", "cuda"]}
    if rng.random() < 0.5:
        base["loss_code"] = "0" * 64
        more = {"packages": {rng.choice(NAMES): "1"}} if rng.random() < 0.5 else {}
        base["own_loss"] = {"name": "mine.py:Mine", "files": {rng.choice(NAMES): "x"}, **more}
    else:
        del base["own_loss"]
    return {**base, "key": store.key(base)}


def test_forged_records_in_reproduce_and_verify(ram: Path, found: Callable[[str], None]) -> None:
    """Whatever a record says, both commands answer in one line, or run what they may."""
    rng, lines, tries, compared = dice("reproduce"), list[str](), times(500), 0
    for trial in range(tries):
        base, path = sent(rng), ram / "sent.json"
        path.write_bytes(as_file(forged(rng, base) if trial % 4 else base))
        try:
            record = reproduction.named_record(str(path), [])
            reproduction.check_trust(record, True)
            reproduction.experiment_of(record, ram / str(trial))
        except UserError as error:
            lines.append(str(error))
        name = store.record_path(Path(), base).as_posix()
        with suppress(UserError):
            claimed = store.checked_record(path.read_bytes(), Path(name), name)
            outcome = reproduction.Outcome(claimed, base, reproduction.Spread({}, 0))
            compared += outcome.within in (True, False)
    assert all(len(line.splitlines()) == 1 for line in lines)
    assert tries / 10 < len(lines) < tries
    assert compared > tries / 10
    found(f"store: {tries} forged records in reproduce and verify: {len(lines)} refused in a line")
