"""Data in the format of Hugging Face's `datasets`: `hf:NAME[:CONFIG]@REVISION`, or a path.

A path is a folder that `save_to_disk` wrote or a Parquet file, here or in the data root. What comes
from the hub is pinned by its commit, downloaded whole, and kept as such a folder, in the data root
or the cache: nothing is streamed, and a kept folder needs no network. No code of a data set is run.
"""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from contrastbench.domains import download, own
from contrastbench.domains.declaration import Source
from contrastbench.domains.reading import cause, check_doubles, reading
from contrastbench.errors import UserError

if TYPE_CHECKING:
    import datasets
    from pyarrow import Schema

MAX_NUMBERS = 2**31  # of a file or a part: 16 GiB


class Unreachable(UserError):
    """The hub cannot be reached."""


def source(summary: str) -> Source:
    """The kind, as every domain declares it."""
    fetcher = "contrastbench.domains.hub:fetch_hub"
    return Source("hf", "NAME@REVISION", summary, "hf", (".parquet",), True, fetch=fetcher)


def hub_parts(what: str, data_root: Path | None) -> "dict[str, datasets.Dataset]":
    """Training, validation and test part, as far as there are such splits; "": the only one.

    Where no split is a test part, that of validation is, as in GLUE.

    Raises:
        UserError: there is no such folder or file, or the hub cannot be reached.
    """
    found = load_saved(locate_data(what, data_root))
    splits = {"": found} if not isinstance(found, dict) else found
    if len(splits) == 1:
        return {"": next(iter(splits.values()))}
    by_part = {own.part_name(name): split for name, split in splits.items()}
    if "test" not in by_part and "validation" in by_part:
        by_part["test"] = by_part.pop("validation")
    if not {"train", "test"} <= by_part.keys():
        names = ", ".join(splits)
        raise UserError(f"hf:{what} has the splits {names}: it needs one to train and one to test")
    return {part: by_part[part] for part in own.PARTS if part in by_part}


def load_saved(path: Path) -> "datasets.DatasetDict | datasets.Dataset":
    """Load a folder of `save_to_disk` or a Parquet file."""
    import datasets

    if path.is_dir():
        check_whole(path)
        check_arrow_batches(path)
        return datasets.load_from_disk(str(path))
    from pyarrow import parquet

    schema_of(path)
    return datasets.Dataset(parquet.read_table(path))


def schema_of(path: Path) -> "Schema":
    """Return the columns of a Parquet file, whose few bytes may stand for any number of equal rows.

    Raises:
        UserError: it is too large, or two columns have one name.
    """
    from pyarrow import parquet

    kept = parquet.read_metadata(path)
    if kept.num_rows * kept.num_columns > MAX_NUMBERS:
        size = f"{kept.num_rows} rows of {kept.num_columns} columns"
        raise UserError(f"{path} is too large ({size}): leave rows or columns out")
    schema = kept.schema.to_arrow_schema()
    check_doubles(path, schema.names)
    return schema


def check_whole(folder: Path) -> None:
    """Raise where files of `save_to_disk` are missing, as after a copy that was cut off."""
    splits = [folder]
    if (folder / "dataset_dict.json").is_file():
        named = json.loads((folder / "dataset_dict.json").read_text())["splits"]
        splits = [folder / name for name in named]
    for split in splits:
        for name in ("dataset_info.json", "state.json", *shards(split / "state.json")):
            if not (split / name).is_file():
                raise FileNotFoundError(f"{split / name} is missing")


def shards(state: Path) -> list[str]:
    """Return the names of a split's Arrow files."""
    if not state.is_file():
        return []
    return [file["filename"] for file in json.loads(state.read_text())["_data_files"]]


def check_arrow_batches(folder: Path) -> None:
    """Raise where an Arrow file is damaged: `datasets` maps it into memory, trusts it, and dies."""
    import pyarrow

    for path in sorted(folder.rglob("*.arrow")):
        with (
            reading(path, "repair or replace it"),
            pyarrow.OSFile(str(path)) as file,
            pyarrow.ipc.open_stream(file) as batches,
        ):
            for batch in batches:
                batch.validate(full=True)


def locate_data(what: str, data_root: Path | None) -> Path:
    """The folder or file, fetched from the hub into the cache if need be."""
    kept, cache = local_copy(what), download.cache_folder()
    paths = [*own.candidate_paths(what, data_root), *own.candidate_paths(str(kept), data_root)]
    if found := next((path for path in paths if path.exists()), None):
        return found
    if what.startswith((".", "/", "~")):
        raise UserError(f"no folder or file {what}" + (f", nor in {data_root}" * bool(data_root)))
    if (cache / kept).exists():
        return cache / kept
    try:
        return fetch_hub(what, cache)
    except Unreachable as error:
        looked = " or ".join(str(root / kept) for root in (data_root, cache) if root)
        raise UserError(f"hf:{what} is not in {looked}, and {error}") from None


def local_copy(what: str) -> Path:
    """Return where it is kept in a data root or the cache.

    >>> local_copy("nyu-mll/glue:stsb@abc").as_posix()
    'hf/nyu-mll_glue_stsb@abc'
    """
    return Path("hf") / re.sub("[^A-Za-z0-9.@-]", "_", what)


def fetch_hub(what: str, folder: Path) -> Path:
    """The hub's data set, whole, as a folder that needs no network.

    Raises:
        UserError: no revision is named, or the hub cannot be reached or has no such data set.
    """
    import datasets

    match = re.fullmatch(r"((?:[\w.-]+/)?[\w.-]+?)(?::([\w.-]+))?(?:@([0-9a-f]{40}))?", what)
    if not match:
        raise UserError(f"hf:{what} is no dataset name on the hub: give hf:NAME[:CONFIG]@REVISION")
    name, config, revision = match.groups()
    newest = on_the_hub(name, revision)
    if not revision:
        raise UserError(f"hf:{what} names no revision: give hf:{what}@{newest}, its newest")
    builder = datasets.load_dataset_builder(name, config, revision=revision)
    if builder.hash != revision:
        raise UserError(f"hf:{what}: the hub answered with another revision, {builder.hash}")
    builder.download_and_prepare()
    with download.in_place(folder / local_copy(what)) as temporary:
        builder.as_dataset().save_to_disk(str(temporary))
    return folder / local_copy(what)


def on_the_hub(name: str, revision: str | None) -> str:
    """The commit of that revision; asked for once, since a download would try for minutes.

    Raises:
        UserError: the hub cannot be reached, or has no such data set.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        return str(HfApi().dataset_info(name, revision=revision, timeout=20).sha)
    except (HfHubHTTPError, HFValidationError) as error:
        raise UserError(f"hf:{name} cannot be loaded: {cause(error).split('. ')[0]}") from None
    except Exception as error:  # a network library's, whichever the hub's version uses
        command = f"bench data fetch hf:{name}@{revision or 'REVISION'} --data-root DIR"
        raise Unreachable(
            f"the hub cannot be reached ({type(error).__name__}): "
            f"where there is a network, {command}"
        ) from None
