"""Describe exported encoders, and find them by the record of their cell, which holds no weights."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contrastbench.benchmarks.records import reading, store
from contrastbench.benchmarks.records.store import Fields
from contrastbench.domains.reading import contents
from contrastbench.domains.reading import reading as one_line
from contrastbench.domains.registry import declaration, make_recipe
from contrastbench.errors import UserError
from contrastbench.losses.registry import is_registered
from contrastbench.losses.spec import LossSpec

CELL_FILE = "cell.json"  # in an export: what it is of
MODEL_CARD = "README.md"  # beside it: the model card
DEPTH = 5  # folders of a record: of its loss, dataset and domain, runs/, and that of the results
EXPORTS_FOLDER = "encoders"  # beside runs/: where the exports of records are looked for
EXPORT_IDENTITY = ("domain", "dataset", "loss", "loss_code", "protocol", "data_hash", "seed")


def note_cell(folder: Path, identity: Fields) -> None:
    """Write into an export which cell it comes from."""
    (folder / CELL_FILE).write_text(store.canonical(identity) + "\n", encoding="utf-8")


def write_model_card(folder: Path, record: Fields) -> None:
    """Write a model card into an export, made from the record of its cell, unless it has one."""
    if (folder / MODEL_CARD).exists():
        return
    about = declaration(record["domain"])
    metrics = [f"| {name} | {value:.2f} |" for name, value in record["metrics"].items()]
    text = CARD_TEMPLATE.format(
        **{key: record[key] for key in ("domain", "dataset", "loss", "seed")},
        metrics="\n".join(metrics),
        facts="\n".join(f"| {name} | {in_cell(value)} |" for name, value in facts(record)),
        command=export_command(record, Path(folder.name)),
        use=about.opening.format(name=folder.name, samples=about.samples),
        library=about.library,
        key=record["key"][:16],
    )
    (folder / MODEL_CARD).write_text(text, encoding="utf-8")


def in_cell(text: str) -> str:
    """Return a text that ends no cell of a table.

    >>> in_cell("csv:a|b.csv")
    'csv:a&#124;b.csv'
    """
    return text.replace("|", "&#124;")


def facts(record: Fields) -> Iterator[tuple[str, str]]:
    """Yield what trained an encoder, for its card."""
    about = record["environment"]
    known = declaration(record["domain"]).datasets.get(record["dataset"])
    params = ", ".join(f"{name}={value}" for name, value in record["params"].items())
    yield "loss", f"{record['loss']}({params})"
    yield "protocol", record["protocol"]
    yield "data", f"{record['dataset']}, sha256 {record['data_hash'][:16]}"
    yield "licence of the data", known.licence if known else "unknown: data of the user's own"
    yield "code", f"contrastbench {about['versions'].get('contrastbench')}, {about['commit']}"
    yield "device", str(about["device"])


CARD_TEMPLATE = """\
---
library_name: {library}
tags:
- contrastive-learning
- contrastbench
---

# {domain} encoder: {loss} on {dataset}

contrastbench trained this encoder with the loss `{loss}` on `{dataset}`, seed {seed}.

| metric | value |
| --- | --- |
{metrics}

| trained with | |
| --- | --- |
{facts}

```python
{use}
```

Its record is `{key}-seed{seed}`, and this command trains it again. `cell.json` has all
settings and the hash of the data.

```bash
{command}
```
"""


def folder_of(encoder: str) -> str:
    """Return the folder of an encoder, which a record may stand for."""
    return str(of_record(Path(encoder))) if encoder.endswith(".json") else encoder


def dataset_of(folder: str) -> str | None:
    """Return the data set that an encoder was trained on, if its export says so."""
    cell = Path(folder) / CELL_FILE
    if not cell.is_file():
        return None
    with one_line(cell, "export it again"):
        return str(json.loads(contents(cell))["dataset"])


def of_record(path: Path) -> Path:
    """Return the export of a record, which is in the folder `encoders` beside `runs`.

    Raises:
        UserError: there is no such record, or no export of its cell.
    """
    whole = path.absolute()
    if len(whole.parents) < DEPTH or (record := reading.find_record(whole)) is None:
        raise UserError(f"the record {path} does not exist: give a path that bench run has printed")
    folder = whole.parents[DEPTH - 1] / EXPORTS_FOLDER
    for cell in sorted(folder.glob(f"*/{CELL_FILE}")):
        if holds(cell.parent, record):
            return cell.parent
    name = f"{record['key'][:16]}-seed{record['seed']}"
    raise UserError(f"{path} holds no weights: {export_command(record, folder / name)}")


def holds(folder: Path, record: Fields) -> bool:
    """Return whether the folder is an export of the record's cell."""
    cell = folder / CELL_FILE
    if not cell.is_file():
        return False
    with one_line(cell, "export it again"):
        return same_cell(json.loads(contents(cell)), record)


def same_cell(found: Fields, record: Fields) -> bool:
    """Return whether both are of one cell; a key that only one has stands for its default."""
    if any(found[key] != record[key] for key in EXPORT_IDENTITY):
        return False
    return all(
        {**default, **found[key]} == {**default, **record[key]}
        for key, default in defaults(record).items()
    )


def defaults(record: Fields) -> dict[str, dict[str, Any]]:
    """Return the default parameters and recipe; a user's own loss has no known parameters."""
    ours = not record["loss_code"] and is_registered(record["loss"])
    params = LossSpec(record["loss"]).complete.params if ours else {}
    return {"params": params, "recipe": make_recipe(record["domain"], {}).model_dump(mode="json")}


def export_command(record: Fields, folder: Path) -> str:
    """Return the command that makes the export in another folder of results."""
    own = record.get("own_loss", {}).get("name") or f"FILE.py:{record['loss']}"
    loss = own if record["loss_code"] else record["loss"]
    words = ["bench", "run", "--domain", record["domain"], "--dataset", record["dataset"]]
    words += ["--loss", loss, "--seeds", str(record["seed"])]
    for (key, default), option in zip(defaults(record).items(), ("--set", "--recipe"), strict=True):
        for name, value in record[key].items():
            if name not in default or value != default[name]:
                text = value if isinstance(value, str) else json.dumps(value)
                words += [option, f"{name}={text}"]
    return shlex.join([*words, "--results", "ELSEWHERE", "--export", str(folder)])
