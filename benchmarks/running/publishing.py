"""Publish the record of a cell."""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import torch

from contrastbench.benchmarks.records import files, reading, store
from contrastbench.benchmarks.records.command import run_command
from contrastbench.benchmarks.records.scored import packed_bits
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.benchmarks.records.writable import NotWritten
from contrastbench.benchmarks.running import ranks
from contrastbench.benchmarks.running.environment import environment
from contrastbench.benchmarks.running.opening import Opened
from contrastbench.benchmarks.running.options import Options
from contrastbench.domains.base import Evaluation
from contrastbench.errors import printable, tell


def publish_result(opened: Opened, place: int, outcome: Fields) -> tuple[Record, Path]:
    """Publish the record and return the one that stands, which may be another runner's.

    Raises:
        NotWritten: it cannot be published; it is on standard error then.
    """
    cell, results = opened.cells[place], opened.options.results
    about = {"schema": store.SCHEMA, **cell.identity, "key": cell.key}
    record = cast(Record, {**about, **outcome, **made_by(opened, place)})
    path = cell.path(results)
    if record["status"] not in store.FINAL_STATUSES:
        path = cell.path(results, f".{record['status']}-{time.time_ns()}")
    try:
        store.publish_record(record, path)
    except OSError as error:
        with suppress(OSError):  # a worker's standard error is a file, perhaps on the same disk
            tell(json.dumps(record))  # the disk may be full: the number is not lost
        free = f"{results} has {files.free_mib(results):.0f} MiB free"
        raise NotWritten(
            f"cannot write {path} ({error.strerror}): the record is printed above; "
            f"{free}, make room and repeat the command",
            record,
        ) from None
    return reading.find_record(path) or record, path


def made_by(opened: Opened, place: int) -> Fields:
    """Return the record's fields that say what made it: command, machine, files of the loss."""
    cell, device = opened.cells[place], opened.domain.device
    return {
        "command": run_command(cell.experiment, cell.seed, device_words(opened.options, device)),
        **({"own_loss": own} if (own := cell.experiment.loss.files) else {}),
        "environment": environment(device, opened.compiled),
    }


def device_words(options: Options, device: torch.device) -> list[str]:
    """Return the words of `bench run` that say what computes.

    Folders of this machine are left out: a record goes to others.
    """
    several = ranks.world_size() > 1
    words = ["--device", device.type if several else str(device)]
    words += ["--threads", str(torch.get_num_threads())]
    words += ["--devices", str(ranks.world_size())] * several
    words += ["--no-deterministic"] * (not options.deterministic)
    return words + ["--tf32"] * options.tf32 + ["--compile"] * options.compile


def in_lines(value: Any) -> Any:
    """Turn a domain's notes into texts of one line, as a record needs them."""
    if isinstance(value, dict):
        return {in_lines(key): in_lines(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [in_lines(item) for item in value]
    return printable(value) if isinstance(value, str) else value


def as_details(evaluation: Evaluation) -> dict[str, Any]:
    """Return the evaluation's details as the record holds them.

    What a domain does not have is left out.
    """
    typed = {
        "validation": evaluation.validation,
        "folds": list(evaluation.folds) or None,
        "inner": list(evaluation.inner) or None,
        "samples": evaluation.samples or None,
        "test_part": evaluation.test_part,
        "right": packed_bits(evaluation.right) or None,
    }
    return {**evaluation.details, **{key: v for key, v in typed.items() if v is not None}}
