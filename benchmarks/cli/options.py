"""Options that several commands share, each declared and explained once.

Args:
    domain: Domain: graph, image, sentence, tabular or a plugin's.
    encoder: Folder that --export wrote, or a name such as torchvision:resnet50.
    dataset: Data set; default: the domain's embedded one.
    set_: Parameter of the loss as KEY=VALUE, such as mu=0.7.
    recipe: Setting of the training as KEY=VALUE, such as epochs=20.
    tiny: Run a smoke test on a tiny subset.
    results: Folder that holds runs/ with the records.
    target: Column of the classes in a table of your own.
    data_root: Folder that already holds the data files.
    device: Device: cpu, cuda, cuda:1, ... or auto, which prefers CUDA.
    threads: Number of CPU threads; default: what suits the domain.
    deterministic: Make a GPU repeat its numbers, or allow its fastest kernels.
    tf32: Let a GPU multiply float32 as TensorFloat-32: faster, coarser.
    compile_: Compile encoders; on CUDA, make steps of one shape graphs.
    log: Logger of each step: csv, tensorboard, wandb or mlflow; may repeat.
    trust: Run Python that the record holds or names.
    name: Table (bench list tables) or YAML file.
    what: Table (bench list tables), standard, smoke, or path of a YAML file.
    only: Restrict to KEY=VALUE of row, column, domain, dataset or loss; may repeat.
    seeds: Seeds, such as 0-4 or 0,2,5; default: the file's.
    shard: Part i/n of the cells, such as 0/3: for machines without a shared disk.
    metric: Metric of the records to show; default: the table's own.
    selection: Parameters: paper, as published; validation, chosen, which is the default with tune.
    loss: Loss such as mine.py:Mine that joins the rows; may repeat.
    quick: Take the quick part that a suite declares, in minutes.
    record: Record (its file or KEY-seedN), or folder that --export wrote.
    data: Data set, such as csv:new.csv; it needs no classes.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from contrastbench.benchmarks.running.options import Options
from contrastbench.errors import UserError

if TYPE_CHECKING:  # lists and help, which read no values, take half the time without it
    from contrastbench.losses.spec import LossSpec


def examples(lines: Sequence[str]) -> str:
    """Return the end of a help text: examples, each on a line of its own however long."""
    title = "Examples:" if len(lines) > 1 else "Example:"
    return "\n".join(["\b", title, *(f"  {line}" for line in lines)])


Required = Annotated[str, Option()]
Set = Annotated[list[str] | None, Option("--set")]
Tiny = Annotated[bool, Option("--tiny")]
DataRoot = Annotated[Path | None, Option(envvar="CONTRASTBENCH_DATA")]
Trust = Annotated[bool, Option("--trust")]
Seeds = Annotated[str | None, Option("--seeds", "--seed")]
Quick = Annotated[bool, Option("--quick")]


def meanings(text: str | None) -> dict[str, str]:
    r"""Return what a docstring says of arguments, by their names.

    >>> meanings("Do this.\n\nArgs:\n    first: One.\n    other: Two\n        lines.\n")
    {'first': 'One.', 'other': 'Two lines.'}
    """
    said = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", text or "", re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in said}


@dataclass(frozen=True)
class Cells:
    """A question for the cells of a table or a sweep."""

    what: str
    loss: list[str] | None = None
    quick: Quick = False
    only: list[str] | None = None
    seeds: Seeds = None
    tiny: Tiny = False
    selection: str | None = None
    shard: str | None = None
    results: Path = Path("results")


@dataclass(frozen=True)
class Numbers:
    """A question for the numbers of a table."""

    loss: list[str] | None = None
    quick: Quick = False
    metric: str | None = None
    selection: str | None = None
    results: Path = Path("results")


@dataclass(frozen=True)
class Machine:
    """What computes a training, where its data lie, and what logs it."""

    data_root: DataRoot = None
    device: str = "auto"
    # 100,000 exhausted a process's memory
    threads: Annotated[int | None, Option(min=1, max=1024)] = None
    deterministic: bool = True
    tf32: Annotated[bool, Option("--tf32")] = False
    compile_: Annotated[bool, Option("--compile")] = False
    log: list[str] | None = None

    def options(self, results: Path, **others: Any) -> Options:
        given = {name.rstrip("_"): value for name, value in vars(self).items()}
        return Options(results, **given, **others)


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Let the fields of arguments that are dataclasses be options of the command."""
    arguments = inspect.signature(command).parameters.values()
    kinds: dict[str, Any] = {each.name: each.annotation for each in arguments}
    fields = {
        name: inspect.signature(kind).parameters
        for name, kind in kinds.items()
        if is_dataclass(kinds[name])
    }

    @wraps(command)
    def asked(**given: Any) -> None:
        for name, own in fields.items():
            given[name] = kinds[name](**{field: given.pop(field) for field in own})
        command(**given)

    options = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in arguments
        for option in (fields[each.name].values() if each.name in fields else [each])
    ]
    vars(asked)["__signature__"] = inspect.Signature(options)
    return asked


def parse_pairs(option: str, pairs: Iterable[str] | None) -> dict[str, Any]:
    """Read KEY=VALUE pairs; values are numbers in any notation.

    >>> parse_pairs("--recipe", ["lr=1e-3", "features=degree"])
    {'lr': 0.001, 'features': 'degree'}
    """
    from contrastbench.benchmarks.records.command import parse_value

    values: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise UserError(f"{option} {pair!r}: give KEY=VALUE")
        if key.strip() in values:
            raise UserError(f"{option} {key.strip()} is given twice")
        values[key.strip()] = parse_value(text.strip())
    return values


def parse_losses(texts: Iterable[str] | None) -> "list[LossSpec]":
    """Read losses with their parameters.

    >>> [loss.label for loss in parse_losses(["infonce(temperature=0.2)", "adnce"])]
    ['infonce(temperature=0.2)', 'adnce']
    """
    losses = [parse_loss(text) for text in texts or ()]
    for loss in losses:
        _ = loss.complete  # an unknown name is one here
    if any(loss in losses[:i] for i, loss in enumerate(losses)):
        raise UserError(
            "a loss is given twice: give each once, or with other parameters: "
            "infonce(temperature=0.2)"
        )
    return losses


def parse_loss(text: str, option: str = "--loss") -> "LossSpec":
    """Read a loss as the command line writes it.

    >>> parse_loss("infonce(temperature=0.2)")
    LossSpec(name='infonce', params={'temperature': 0.2})
    >>> parse_loss("a (1)/mine.py:Mine(margin=0.2)").name
    'a (1)/mine.py:Mine'
    """
    from contrastbench.losses.spec import LossSpec

    match = re.fullmatch(r"(.+\.py:\w+|[^()]+)(?:\(([^()]*)\))?", text.strip())
    if not match:
        raise UserError(f"{option} {text!r}: give a loss or loss(KEY=VALUE, ...)")
    return LossSpec(match[1].strip(), parse_pairs(option, match[2] and match[2].split(",")))
