"""Commands `bench embed` and `predict`: what a trained encoder makes of new data."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.output import say, show
from contrastbench.domains.reading import refuse
from contrastbench.errors import plural

if TYPE_CHECKING:
    from contrastbench.benchmarks.api.encoders import Encoder
    from contrastbench.domains.exported import Listed

WRITERS = {".parquet": "to_parquet", ".csv": "to_csv"}  # of a frame, by the suffix of a file


@dataclass(frozen=True)
class Question:
    """A question for what a trained encoder makes of data."""

    record: str
    data: opt.Required
    results: Path = Path("results")
    data_root: opt.DataRoot = None
    device: str = "auto"
    trust: opt.Trust = False


@opt.asking
def embed(asked: Question, output: Annotated[Path, Option()]) -> None:
    """Write the embeddings of new data, a row for each sample.

    The encoder of a record is trained again once, because a record keeps no weights.

    Args:
        output: File to write, .parquet or .csv.

    Example: bench embed FOLDER --data csv:new.csv --output emb.parquet
    """
    check_output(output)
    opened, samples = open_data(asked)
    columns = enumerate(opened.embed(samples.data).T)
    write({f"encoder{k}": column for k, column in columns}, samples, output)


@opt.asking
def predict(asked: Question, output: Path | None = None) -> None:
    """Write the class of each new sample, and its probability.

    They are those of logistic regression on the embeddings of the training rows.

    Args:
        output: File to write, .parquet or .csv; default: standard output.

    Example: bench predict FOLDER --data csv:new.csv
    """
    if output:
        check_output(output)
    opened, samples = open_data(asked)
    shares = opened.predict_proba(samples.data)
    classes = opened.classes_[shares.argmax(axis=1)]
    write({"class": classes, "probability": shares.max(axis=1)}, samples, output)


def open_data(asked: Question) -> "tuple[Encoder, Listed]":
    from contrastbench.benchmarks.api.encoders import encoder

    own = {name: value for name, value in vars(asked).items() if name not in ("record", "data")}
    opened = encoder(asked.record, **own)
    return opened, opened.read(asked.data, asked.data_root)


def check_output(output: Path) -> None:
    refuse(
        f"--output {output}: ",
        (output.suffix not in WRITERS, "give a name that ends in .parquet or .csv"),
        (not output.parent.is_dir(), f"no folder {output.parent}: make it first"),
    )


def write(columns: dict[str, Any], samples: "Listed", output: Path | None) -> None:
    from contrastbench.benchmarks.api.frames import framed

    named = {} if samples.names is None else {"name": samples.names}
    frame = framed({**named, **columns})
    if output is None:
        return show(frame.to_csv(index=False))
    getattr(frame, WRITERS[output.suffix])(output, index=False)
    say(f"{output}: {len(frame)} row{plural(len(frame))} of {len(columns)} columns")
