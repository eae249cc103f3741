"""Describe exported encoders: the cell that each comes from, and a model card."""

import json
from collections.abc import Iterator
from pathlib import Path

from contrastbench.benchmarks.records import store
from contrastbench.benchmarks.records.store import Fields
from contrastbench.domains.reading import contents
from contrastbench.domains.reading import reading as one_line
from contrastbench.domains.registry import declaration

CELL_FILE = "cell.json"  # in an export: what it is of
MODEL_CARD = "README.md"  # beside it: the model card


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

Its record is `{key}-seed{seed}`; where that is, `bench reproduce` trains it again.
`cell.json` has all settings and the hash of the data.
"""


def dataset_of(folder: str) -> str | None:
    """Return the data set that an encoder was trained on, if its export says so."""
    cell = Path(folder) / CELL_FILE
    if not cell.is_file():
        return None
    with one_line(cell, "export it again"):
        return str(json.loads(contents(cell))["dataset"])


def holds(folder: Path, record: Fields) -> bool:
    """Return whether the folder is an export of the record's cell."""
    cell = folder / CELL_FILE
    if not cell.is_file():
        return False
    with one_line(cell, "export it again"):
        found = json.loads(contents(cell))
        return all(found[name] == record[name] for name in (*store.IDENTITY, "seed"))
