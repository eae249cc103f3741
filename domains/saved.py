"""Data in the format of Hugging Face's `datasets`: `hf:PATH`, or `hf:NAME` of its hub.

The path is a folder that `save_to_disk` wrote or a Parquet file, here or in the data root. What is
of neither name is asked of the hub, whose revision is noted.
"""

import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrastbench.domains import own
from contrastbench.domains.declaration import Source
from contrastbench.domains.reading import check_doubles, contents, doubles, reading, refuse

if TYPE_CHECKING:
    import datasets
    from pyarrow import Schema

MAX_NUMBERS = 2**31  # of a file or a part: 16 GiB
MAX_TEXT = 2**32  # bytes of all texts of a file
MAX_BYTES = 8 * MAX_NUMBERS  # of a saved set, once it is unpacked
MAX_JSON = 2**24  # bytes of what a saved set says of itself
SAVING = "name a folder that save_to_disk of datasets wrote"


def source(summary: str) -> Source:
    return Source("hf", "PATH", summary, "hf", (".parquet",), True)


def saved_parts(
    what: str, data_root: Path | None
) -> "tuple[dict[str, datasets.Dataset], dict[str, Any]]":
    """Training, validation and test part, as far as there are such splits; "": the only one.

    Where no split is a test part, that of validation is, as in GLUE. Notes have the hub's revision.
    """
    here = next(filter(Path.exists, own.candidate_paths(what, data_root)), None)
    data, notes = (load_saved(here), {}) if here else hub_set(what, data_root)
    splits = {"": data} if not isinstance(data, dict) else data
    if len(splits) == 1:
        return {"": next(iter(splits.values()))}, notes
    double = doubles(filter(None, map(own.part_name, splits)))
    refuse(f"hf:{what}", (double, " has several splits for the {} part: remove all but one"))
    by_part = {own.part_name(name): split for name, split in splits.items()}
    if "test" not in by_part and "validation" in by_part:
        by_part["test"] = by_part.pop("validation")
    lacking, names = {"train", "test"} - by_part.keys(), ", ".join(splits)
    fault = f" has the splits {names}: it needs one to train and one to test"
    refuse(f"hf:{what}", (lacking, fault))
    return {part: by_part[part] for part in own.PARTS if part in by_part}, notes


def load_saved(path: Path) -> "datasets.DatasetDict | datasets.Dataset":
    import datasets

    refuse(path, (not (path.is_dir() or path.is_file()), " is no file: replace it"))
    if path.is_dir():
        check_arrow_batches(path)
        return datasets.load_from_disk(str(path))
    from pyarrow import parquet

    schema_of(path)
    return datasets.Dataset(parquet.read_table(path))


def hub_set(what: str, data_root: Path | None) -> "tuple[datasets.DatasetDict, dict[str, Any]]":
    """Load a set of the hub, NAME[:PART][@REVISION]; one at a commit may be in the cache alone."""
    import datasets
    from huggingface_hub import HfApi

    name, _, revision = what.partition("@")
    name, _, part = name.partition(":")
    # which `datasets` would take for the hub's: a path, or a reader of the current folder's files
    reader = name.isidentifier() and find_spec(f"datasets.packaged_modules.{name}")
    fault = " is of files here, which have no part or revision: give their path alone"
    refuse(f"hf:{what}", (reader or Path(name).exists(), fault))
    elsewhere = f", nor in {data_root}" * bool(data_root)
    fix = "datasets.load_dataset(NAME).save_to_disk(FOLDER) writes one where there is a network"
    with reading(f"no folder or file {what}{elsewhere}", fix, "and the hub gives no such set"):
        if not re.fullmatch("[0-9a-f]{40}", revision):
            revision = str(HfApi().dataset_info(name, revision=revision or None).sha)
            fault = " is at no commit of the hub: ask for another revision"
            refuse(f"hf:{what}", (not re.fullmatch("[0-9a-f]{40}", revision), fault))
        data = datasets.load_dataset(name, part or None, revision=revision)
        return data, {"hub revision": revision}


def schema_of(path: Path) -> "Schema":
    """Return the columns of a Parquet file: few bytes may stand for any number of equal rows."""
    from pyarrow import parquet

    kept = parquet.read_metadata(path)
    schema = kept.schema.to_arrow_schema()
    groups = [kept.row_group(group) for group in range(kept.num_row_groups)]
    values = sum(one.column(k).num_values for one in groups for k in range(one.num_columns))
    rows = sum(one.num_rows for one in groups)  # are read, whatever the file says of all its rows
    leaves = [kept.schema.column(k) for k in range(kept.num_columns)]
    lists = [leaf.path.split(".")[0] for leaf in leaves if leaf.max_repetition_level]
    size = f"{rows} rows of {kept.num_columns} columns"
    large = max(values, rows * kept.num_columns) > MAX_NUMBERS
    refuse(
        path,
        (lists, ": column {} holds lists, which may have any length: leave it out"),
        (large, f" is too large ({size}): leave rows or columns out"),
    )
    check_doubles(path, schema.names)
    refuse(path, (text_bytes(path, schema) > MAX_TEXT, f" is too large ({size}): shorten texts"))
    return schema


def text_bytes(path: Path, schema: "Schema") -> int:
    """Return the bytes of all texts of a Parquet file, of which it keeps equal ones once."""
    from pyarrow import compute, parquet, types

    kinds = {field.name: getattr(field.type, "value_type", field.type) for field in schema}
    flat = {field.name for field in schema if not types.is_nested(field.type)}
    tests = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    names = [name for name in kinds if name in flat and any(test(kinds[name]) for test in tests)]
    total = 0
    with parquet.ParquetFile(path, read_dictionary=names) as file:
        for batch in file.iter_batches(columns=names) if names else ():
            for column in batch.columns:
                lengths = compute.binary_length(column.dictionary).take(column.indices)
                total += compute.sum(lengths.cast("int64")).as_py() or 0
            if total > MAX_TEXT:
                break
    return total


def check_arrow_batches(folder: Path) -> None:
    """Raise where an Arrow file is damaged: `datasets` maps it into memory, trusts it, and dies.

    Few bytes may stand for many: they may be compressed, and nulls take none.
    """
    import pyarrow

    with reading(folder, SAVING, "is no saved set"):
        paths = [*mapped_files(folder)]
    values = size = 0
    for path in paths:
        refuse(path, (not path.is_file(), " is no file: replace it"))  # a pipe might never end
        with (
            reading(path, "repair or replace it"),
            pyarrow.OSFile(str(path)) as file,
            pyarrow.ipc.open_stream(file) as batches,
        ):
            for batch in batches:
                values += batch.num_rows * batch.num_columns
                size += batch.nbytes
                large = values > MAX_NUMBERS or size > MAX_BYTES
                refuse(folder, (large, " is too large: leave rows or columns out"))
                batch.validate(full=True)


def mapped_files(folder: Path) -> Iterator[Path]:
    """Yield the files that `datasets` maps, whose names and places the folder says."""

    def said(name: Path) -> dict[str, Any]:
        return dict(json.loads(contents(folder / name, MAX_JSON, SAVING)))

    whole = (folder / "state.json").is_file()
    for part in [""] if whole else said(Path("dataset_dict.json"))["splits"]:
        files = said(Path(part, "state.json"))["_data_files"]
        yield from (folder / part / file["filename"] for file in files)
