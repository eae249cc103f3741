"""A record run again, and how its numbers compare; imports torch only to run.

On another machine sums are rounded otherwise, and a training makes much of a rounding: two machines
differ at most as two seeds do. So the limit of a difference is ISO 5725's for two results, 2.8
standard deviations: those over seeds, in the median of the cells of the same dataset.
"""

import os
import re
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median, stdev
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from yaml import YAMLError

from contrastbench.benchmarks.records import experiment, reading, schema, store
from contrastbench.benchmarks.records.command import parse_value
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.records.store import Fields, Record
from contrastbench.benchmarks.running.options import Options
from contrastbench.benchmarks.submission.loss_files import write_loss_files
from contrastbench.domains.own import parse_source
from contrastbench.domains.recipe import laid_over
from contrastbench.domains.registry import DOMAINS, declaration
from contrastbench.errors import UserError, tell
from contrastbench.losses.expression import with_files
from contrastbench.losses.registry import is_registered
from contrastbench.losses.spec import NONE, LossSpec

FACTOR = 2.8  # 1.96 times the square root of 2: 95 % of two results differ by less
MIN_SEEDS = 3  # seeds of a cell whose deviation counts
FACTS = ("samples", "rows", "images", "test_part", "scored_data", "report")  # of any machine
CIRCUMSTANCES = (  # equal numbers are promised where they are the same
    *("commit", "versions", "device", "devices", "device_memory_gib", "cpu", "threads"),
    *("deterministic", "tf32", "compiled", "variables"),
)
MOST_THREADS = 64  # of a record, where the machine has fewer cores: libraries end where many start


class Spread(NamedTuple):
    """The limits of differences by metric, and how many cells they are from."""

    limits: dict[str, float]
    cells: int


class ValueDifference(NamedTuple):
    """A value that differs; None: one of the two has none."""

    name: str
    recorded: Any
    again: Any
    limit: float | None = None

    @property
    def within(self) -> bool:
        """Whether two machines may differ by as much."""
        pair = (self.recorded, self.again)
        if self.limit is None or not all(isinstance(value, float | int) for value in pair):
            return False
        return abs(self.recorded - self.again) <= self.limit


@dataclass(frozen=True)
class Outcome:
    """A record and the one that it was run again to."""

    record: Record
    again: Record
    spread: Spread

    @property
    def values(self) -> list[ValueDifference]:
        """What the record has that differs, or was not found again."""
        but = (*reading.INCIDENTAL, "key")  # which new settings change, at their defaults too
        record: Any = {k: v for k, v in self.record.items() if k not in but}
        again: Any = dict(self.again)
        early = dict.fromkeys(("rows", "images"), again["details"].get("samples"))  # until 0.1
        for part in {"metrics", "details"} & record.keys():
            again[part] = dict.fromkeys(record[part]) | early | again.get(part, {})
        limits = {f"metrics.{name}": limit for name, limit in self.spread.limits.items()}
        found = reading.unequal_values(record, again)
        return [ValueDifference(*one, limits.get(one[0])) for one in found]

    @property
    def circumstances(self) -> list[ValueDifference]:
        """What the two were made with, where it differs."""
        recorded, other = surroundings(self.record), surroundings(self.again)
        names = [name for name in {**recorded, **other} if recorded.get(name) != other.get(name)]
        return [ValueDifference(name, recorded.get(name), other.get(name)) for name in names]

    @property
    def promised(self) -> bool:
        """Whether the two must be equal: nothing differs that may change a number."""
        repeatable: bool = self.again["environment"].get("deterministic", True)
        return not self.circumstances and repeatable

    @property
    def equal(self) -> bool:
        """Whether all that was found is the same to the bit."""
        return not self.values

    @property
    def within(self) -> bool:
        """Whether the metrics differ by no more than two machines may, and no fact does."""
        parts = [(value, value.name.split(".")) for value in self.values]
        told = [value for value, part in parts if part[0] != "details" or part[1] in FACTS]
        return not self.promised and all(value.within for value in told)


def surroundings(record: Record) -> dict[str, Any]:
    """Return the circumstances of a record by name, each version by its own."""
    about: Fields = record["environment"]
    values = {name: about[name] for name in CIRCUMSTANCES if name in about}
    for part in ("versions", "variables"):
        values |= {f"{part}.{name}": item for name, item in values.pop(part, {}).items()}
    if commit := values.get("commit"):  # an installed package knows nine digits of it
        values["commit"] = re.sub("(?<=^[0-9a-f]{9})[0-9a-f]+", "", commit)
    return values


def named_record(name: str, places: Sequence[Path]) -> Record:
    """Return the record of a file, or of KEY-seedN as files are named."""
    record = of_file(Path(name)) if name.endswith(".json") else None
    if record is None:
        record = by_name(name.removesuffix(".json"), places)
    if record["status"] not in store.FINAL_STATUSES:
        raise UserError(f"{name} is {record['status']} and has no numbers: run its cell again")
    return record


def of_file(path: Path) -> Record | None:
    """Return the record of a file, which may lie anywhere, or in a pack; None: there is none."""
    if not path.is_file():
        return reading.find_record(path)
    record = store.read_record(path)
    schema.check_fields(record, path)
    store.check_key(record, path)
    return record


def by_name(name: str, places: Sequence[Path]) -> Record:
    """Return the record of that name, of a whole key or its first digits, from the first place."""
    key, _, seed = name.partition("-")
    file = f"{key[:16]}-{seed}.json"
    for results in places:
        for dataset in reading.dataset_folders(results):
            for stored in reading.stored_of(dataset):
                if stored.name == file:
                    return stored.record()
    where = " or ".join(str(place) for place in places)
    raise UserError(f"no record {name} in {where}: give its file, or KEY-seedN as files are named")


def experiment_of(record: Record, folder: Path) -> Experiment:
    """Return the experiment of a record, which `check_trust` has let pass.

    Args:
        folder: an empty one, for the files of a user's own loss.
    """
    try:
        words = shlex.split(record.get("command", ""))
        given = {name: option_values(words, f"--{name}") for name in ("recipe", "set")}
    except (ValueError, RecursionError, YAMLError):
        raise UserError("the record's command is none that bench run takes") from None
    recipe = laid_over(record["recipe"], given["recipe"])  # a record has hashes for paths
    if own := record.get("own_loss"):
        check_packages(own.get("packages", {}))
        write_loss_files(own["files"], folder)
        loss = LossSpec(with_files(own["name"], folder.joinpath), given["set"])
    else:
        loss = LossSpec(record["loss"], {} if record["loss"] == NONE else record["params"])
    work = Experiment(record["domain"], record["dataset"], loss, recipe)
    if work.matches(record):
        return work
    here, fault = work.full_recipe.protocol, "this version makes another experiment of the record"
    if here != record["protocol"]:
        fault = f"the record is of protocol {record['protocol']}, this version has {here}"
    commit = record["environment"].get("commit") or "of its time"
    raise UserError(f"{fault}: run it at commit {commit}")


def run_again(
    record: Record, data_root: Path | None, device: str | None, export: Path | None = None
) -> Record:
    """Run a record's experiment in a temporary folder, in its circumstances where it can be.

    Args:
        device: cpu, cuda, ...; None: cpu for a record of a CPU.
        export: a folder for the encoder.
    """
    about = record["environment"]
    threads = about.get("threads")
    with TemporaryDirectory(prefix="contrastbench-") as name:
        (Path(name) / "loss").mkdir()
        work = experiment_of(record, Path(name) / "loss")
        from contrastbench.benchmarks.running.opening import OtherData
        from contrastbench.benchmarks.running.runner import run_cell

        options = Options(
            Path(name),
            data_root=data_root,
            device=device or ("cpu" if "CPU" in (about.get("device") or "CPU") else "auto"),
            threads=threads and min(threads, max(MOST_THREADS, os.cpu_count() or 1)),
            deterministic=about.get("deterministic", True),
            tf32=about.get("tf32", False),
            compile=bool(about.get("compiled")),
            export=export,
        )
        try:
            return run_cell(work, record["seed"], options, data_hash=record["data_hash"])[0]
        except OtherData:
            fault = f"is not the data of the record ({record['data_hash'][:16]})"
            fix = "name the folder that holds it with --data-root"
            raise UserError(f"{record['dataset']} here {fault}: {fix}") from None


def is_record(name: str) -> bool:
    """Return whether this is the name of a record, or of its file.

    >>> is_record("results/runs/graph/motifs/adnce/0a1b-seed3.json"), is_record("my-encoder")
    (True, False)
    """
    return re.fullmatch(r"(.*/)?[0-9a-f]+-seed[0-9]+(\.json)?", name) is not None


def encoder_of(
    record: Record, results: Path, data_root: Path | None, device: str | None, trusted: bool
) -> Path:
    """Return the folder of a record's encoder, which is trained again where it is not there."""
    folder = results / "encoders" / f"{record['key'][:16]}-seed{record['seed']}"
    if not experiment.holds(folder, record):
        check_trust(record, trusted)
        tell(f"{folder} gets the encoder of the record, which is trained again")
        again = run_again(record, data_root, device, folder)
        if again["status"] != "ok":
            raise UserError(f"the training is {again['status']}: {again['details'].get('error')}")
    return folder


def check_trust(record: Record, trusted: bool) -> None:
    """Raise if a record needs Python of its own that is not trusted, or that it does not hold."""
    if record["loss_code"] and "own_loss" not in record:
        raise UserError(f"the loss {record['loss']} is somebody's own, and the record has no file")
    if (what := named_python(record)) is not None and not trusted:
        raise UserError(f"the record runs Python of its own, {what!r}: read it, then give --trust")
    if several := record["environment"].get("devices"):
        raise UserError(f"it was trained on {len(several)} devices at once: run its command")


def named_python(record: Record) -> str | None:
    """Return what a record brings or names that is no code of this package; None for nothing.

    A loss or a domain of an installed package is such a thing too, and so is data that code makes.
    """
    if own := record.get("own_loss"):
        return str(own["name"])
    if not (record["loss"] == NONE or is_registered(record["loss"])):
        return str(record["loss"])
    if record["domain"] not in DOMAINS:
        return f"the domain {record['domain']}"
    sources = declaration(record["domain"]).sources
    for value in (record["dataset"], *record["recipe"].values()):
        for name in value if isinstance(value, list) else [value]:  # as `score_on` names sets
            with suppress(UserError):  # it is no data of one's own
                if (kind := parse_source(str(name), sources)) and kind[0].runs_code:
                    return str(name)
    return None


def check_packages(wanted: Mapping[str, str]) -> None:
    """Raise unless the packages of a record's loss are installed in its versions."""
    lines = [f"{name}=={release}" for name, release in wanted.items()]
    here = dict.fromkeys(wanted, "")
    for name in wanted:
        with suppress(PackageNotFoundError):
            here[name] = version(name)
    if here != wanted:
        raise UserError(
            f"the record says that its loss is of {', '.join(lines)}, and here is another release: "
            "find out whether you trust these packages, then install them"
        )


def option_values(words: Sequence[str], option: str) -> dict[str, Any]:
    pairs = [words[i + 1].partition("=") for i, word in enumerate(words[:-1]) if word == option]
    return {key: parse_value(text) for key, _, text in pairs}


def spread_of(record: Record, places: Sequence[Path], factor: float = FACTOR) -> Spread:
    """Return the limits by the deviations over seeds of cells of the same dataset, times a factor.

    Trained cells count for a trained one, untrained ones for another.
    """
    cells: dict[str, dict[int, dict[str, float]]] = defaultdict(dict)
    for results in places:
        loss = store.loss_folder(results, record["domain"], record["dataset"], record["loss"])
        folders = reading.loss_folders(loss.parent)
        for other in (x for folder in folders for _, x in reading.list_records(folder)):
            if other["status"] == "ok" and (other["loss"] == NONE) == (record["loss"] == NONE):
                cells[other["key"]][other["seed"]] = other["metrics"]
    repeated = [list(by_seed.values()) for by_seed in cells.values() if len(by_seed) >= MIN_SEEDS]
    limits = {}
    for name in record.get("metrics", {}):
        deviations = [
            stdev(metrics[name] for metrics in cell)
            for cell in repeated
            if all(name in metrics for metrics in cell)
        ]
        if deviations:
            limits[name] = factor * median(deviations)
    return Spread(limits, len(repeated))
