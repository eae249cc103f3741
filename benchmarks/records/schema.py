"""The types and bounds of a record's fields, which are checked whenever a record is read.

A record may be whole and yet hold what no run writes, as where another program has made it. It is
named in one line and left out; the other records are read. Fields that nobody reads are free, and
so are those that early records lack.
"""

import re
import reprlib
import warnings
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NotRequired, get_args

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict  # pydantic reads typing's from Python 3.12 on

from contrastbench.benchmarks.records.seeds import SEED_LIMIT
from contrastbench.domains.declaration import TestPart
from contrastbench.domains.registry import DOMAINS
from contrastbench.errors import UserError

Status = Literal["ok", "diverged", "oom", "failed", "skipped"]  # the best first
STATUSES: tuple[str, ...] = get_args(Status)
CORRELATION = re.compile(r"spearman|avg|STS.*|SICKR")  # may be negative
PERCENT_ROUNDING = 1e-3  # of percents: a mean of float32 may be above 100
MAX_ABS_VALUE = 1e100  # its square is a number, too
LARGEST_INTEGER = 2**63 - 1
FiniteNumber = Annotated[float, Field(ge=-MAX_ABS_VALUE, le=MAX_ABS_VALUE)]
Amount = Annotated[float, Field(ge=0, le=1e10)]  # seconds of three centuries
Count = Annotated[int, Field(ge=0, le=10**12)]
# characters that break a line, a terminal or XML, or turn the numbers beside them around
CONTROL = r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
BROKEN = re.compile(CONTROL + r"|[\ud800-\udfff]")  # halves of letters, which no file can hold
PrintableText = Annotated[str, StringConstraints(pattern=f"^{CONTROL.replace('[', '[^')}*$")]
Name = Annotated[PrintableText, StringConstraints(min_length=1, max_length=255)]
Hash = Annotated[str, StringConstraints(min_length=64, max_length=64, pattern=r"^[0-9a-f]*$")]


class InvalidRecord(UserError):
    """A whole record with a value that no run writes."""


class Environment(TypedDict, total=False):
    """The environment in which a cell was run."""

    commit: PrintableText | None
    device: PrintableText | None
    versions: dict[PrintableText, PrintableText | None]
    variables: dict[PrintableText, PrintableText]  # that decide arithmetic
    threads: Annotated[int, Field(ge=1, le=10**6)] | None
    deterministic: bool
    tf32: bool
    compiled: list[PrintableText]  # encoder, step
    devices: list[PrintableText]  # of several ranks


class TaskFold(TypedDict):
    """One fold of a task that an encoder is scored on."""

    accuracy: FiniteNumber


class Details(TypedDict, total=False):
    """The parts of an evaluation and of a training that tables and reports show."""

    folds: list[FiniteNumber]
    inner: list[FiniteNumber]
    # the bits of the test samples, as `scored.packed_bits` writes them
    right: Annotated[str, Field(pattern="^[1-9a-f][0-9a-f]*$")]
    validation: FiniteNumber | None
    test_part: TestPart
    samples: dict[PrintableText, Count]
    rows: dict[PrintableText, Count]
    images: dict[PrintableText, Count]
    tasks: dict[PrintableText, list[TaskFold]]
    folds_of: dict[PrintableText, list[FiniteNumber]]  # by metric
    data: dict[str, Any] | None
    scored_data: PrintableText | None
    loss_by_epoch: list[FiniteNumber]
    dev_curve: list[Annotated[list[FiniteNumber], Field(min_length=2, max_length=2)]]
    learned: dict[PrintableText, Any]
    health: dict[PrintableText, FiniteNumber]
    chosen: Any  # the parameters of each fold or seed, where these choose
    keys: list[str]  # of the records behind a number that several make
    error: str | None


class OwnLoss(TypedDict):
    """The name of a user's own loss, and the files or packages that it is made from."""

    name: PrintableText
    files: dict[Name, str]
    packages: NotRequired[dict[Name, PrintableText]]  # versions


@with_config(ConfigDict(strict=True, extra="ignore", allow_inf_nan=False, defer_build=True))
class Record(TypedDict):
    """The fields of a record; a field of type Any is read as it stands."""

    schema: NotRequired[Any]
    domain: PrintableText
    dataset: PrintableText
    loss: PrintableText
    loss_code: PrintableText
    params: dict[str, Any]
    recipe: dict[str, Any]
    protocol: PrintableText
    data_hash: PrintableText
    key: Hash
    seed: Annotated[int, Field(ge=0, lt=SEED_LIMIT)]
    status: Status
    metrics: NotRequired[dict[PrintableText, FiniteNumber]]
    main: NotRequired[PrintableText]
    details: Details
    environment: Environment
    command: NotRequired[str]
    own_loss: NotRequired[OwnLoss]
    seconds: NotRequired[Amount]
    peak_memory_mib: NotRequired[Amount | None]


RECORD_ADAPTER = TypeAdapter(Record)


def check_fields(record: Record, where: object) -> None:
    """Raise InvalidRecord, which says where, unless all fields have their types and bounds."""
    try:
        RECORD_ADAPTER.validator.validate_python(record)
        wrong = wrong_together(record)
    except ValidationError as error:
        wrong = first_of(error)
    if wrong:
        raise invalid(where, wrong) from None


def invalid(where: object, wrong: str) -> InvalidRecord:
    return InvalidRecord(f"{where} is an invalid record: {wrong}; delete it and run its cell again")


def check_settings(settings: dict[str, Any]) -> None:
    """Raise UserError if a record could not be read again, because of what a user has set."""
    if wrong := first_unusable(settings):
        raise UserError(f"{wrong}: rename or change it")


def has_text(value: Any) -> bool:
    """Return whether a value of JSON is a text or holds one; keys are none.

    >>> has_text({"a": [1, "b"]}), has_text({"a": [1, None]})
    (True, False)
    """
    inner = value.values() if isinstance(value, dict) else value
    return isinstance(inner, str) or (isinstance(inner, Iterable) and any(map(has_text, inner)))


def wrong_together(record: Record) -> str:
    """Return what is wrong with fields that depend on others; empty if nothing is."""
    settings = {"params": record["params"], "recipe": record["recipe"]}
    if wrong := first_unusable(settings) or wrong_details(record["details"]):
        return wrong
    score_at = record["recipe"].get("score_at", [])
    if not isinstance(score_at, list) or not all(isinstance(epoch, int) for epoch in score_at):
        return f"recipe.score_at is {shown(score_at)} (a list of epochs)"
    if record["status"] != "ok":
        return ""
    if lacking := [name for name in ("metrics", "main", "seconds") if name not in record]:
        return f"it has no {lacking[0]}"
    if record["main"] not in record["metrics"]:
        return f"main is {shown(record['main'])} (one of the metrics)"
    return wrong_metric(record["metrics"]) if record["domain"] in DOMAINS else ""


def wrong_details(details: Mapping[str, Any]) -> str:
    samples = details.get("samples") or details.get("rows") or details.get("images") or {}
    if details.get("test_part") == "redrawn" and not (samples.get("train") and "test" in samples):
        return f"details.samples is {shown(samples)} (train and test, which each seed redraws)"
    return first_unusable({f"details.{name}": details.get(name) for name in ("data", "learned")})


def first_unusable(values: Mapping[str, Any]) -> str:
    for name, value in values.items():
        if (wrong := unstorable(value)) is not None:
            return f"{name} has {shown(wrong)} (a number in bounds, or a text of one line)"
    return ""


def unstorable(value: Any) -> str | float | None:
    """Return the first text or number within a value that cannot be shown or computed with."""
    parts = [value]
    for part in parts:  # which grow on the way
        if isinstance(part, str):  # as most are
            if not part.isprintable() and BROKEN.search(part):
                return part
        elif isinstance(part, float):
            if not abs(part) <= MAX_ABS_VALUE:
                return part
        elif isinstance(part, int):
            if abs(part) > LARGEST_INTEGER:
                return part
        elif isinstance(part, dict):
            parts += [*part, *part.values()]
        elif isinstance(part, list):
            parts += part
    return None


def wrong_metric(metrics: dict[str, float]) -> str:
    """Return what is wrong with metrics of our domains: all are percents."""
    for name, value in metrics.items():
        lowest = -100 if CORRELATION.fullmatch(name.partition("@")[0]) else 0  # @: after an epoch
        if not lowest - PERCENT_ROUNDING <= value <= 100 + PERCENT_ROUNDING:
            return f"metrics.{name} is {shown(value)} (a percentage, from {lowest} to 100)"
    return ""


def first_of(error: ValidationError) -> str:
    """Return the field that is wrong, its value and why, of the first error."""
    about = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(map(str, about["loc"]))
    if about["type"] == "missing":
        return f"it has no {field}"
    why = about["msg"].removeprefix("Input should be ")
    why = "a text of one line" if about["type"] == "string_pattern_mismatch" else why
    return f"{field} is {shown(about['input'])} ({why})"


def shown(value: Any) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a huge number"


def warn(error: InvalidRecord) -> None:
    warnings.warn(f"left out: {error}", stacklevel=2)
