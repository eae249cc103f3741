"""Data that users bring themselves, `KIND:WHAT`: which kind it is, and where it lies.

Brings no numerics: lists, plans and mistakes need only the declarations.
"""

import hashlib
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os.path import expanduser
from pathlib import Path
from typing import Any, Generic, TypeVar

from contrastbench.domains.declaration import Source
from contrastbench.domains.reading import reading, refuse
from contrastbench.errors import UserError, check_known, unknown

Read = TypeVar("Read")
PYTHON = "FILE.py"  # the kind of a function in a file: the file is a part of what it names
PARTS = ("train", "validation", "test")
PART_NAMES = {  # as people write them
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}


def part_name(text: str) -> str | None:
    """The part of the data that is meant; None: no known one.

    >>> part_name(" Val"), part_name("unsupervised")
    ('validation', None)
    """
    return PART_NAMES.get(text.strip().lower())


def parse_source(name: str, sources: Iterable[Source]) -> tuple[Source, str] | None:
    """The kind of a user's own data to score, and what it names; None: it is a dataset's name."""
    kind, colon, what = name.partition(":")
    known = {source.kind: source for source in sources}
    if not colon or not known:
        return None
    if kind.endswith(".py") and PYTHON in known:
        kind, what = PYTHON, name * bool(what)
    check_known("kind of data", kind, known)
    fix = f"give it as --recipe corpus={name}"
    refuse(name, (known[kind].corpus, f" is training text and cannot be scored: {fix}"))
    refuse(name, (not what, f" has nothing after the colon: give {known[kind].usage}"))
    return known[kind], what


def unknown_dataset(
    domain: str,
    name: str,
    known: Iterable[str],
    sources: Sequence[Source],
    data_root: Path | None = None,
    hint: str = "",
) -> UserError:
    """The error for what is no dataset, of any domain by ""; a file may lack its kind."""
    what = f"{domain} dataset".strip()
    meant = [f"{one.kind}:{name}" for one in sources if looks_like(one, name, data_root)]
    if meant:
        shown = " or ".join(dict.fromkeys(meant))
        return UserError(f"unknown {what} {name!r}: did you mean {shown}?")
    own = ", ".join(dict.fromkeys(source.usage for source in sources if not source.corpus))
    return unknown(what, name, known, hint + (f"; your own: {own}" if own else ""))


def looks_like(source: Source, name: str, data_root: Path | None) -> bool:
    paths = list(candidate_paths(name, data_root))
    if source.folder and any(path.is_dir() for path in paths):
        return True
    return name.lower().endswith(source.suffixes) and any(path.is_file() for path in paths)


@lru_cache(maxsize=1)
def read_unchanged(
    read: Callable[..., Read], source: Source, fault: str, asked: tuple[Any, ...], state: str
) -> Read:
    """Read a user's own data, once for a state of the files; what is raised becomes one line."""
    with reading(f"{source.kind}:{asked[0]}", fault=fault, extra=source.extra):
        return read(source.kind, *asked)


@dataclass(frozen=True)
class Adapter(Generic[Read]):
    """The one way in for the data of a domain: sets that it declares, and those that users bring.

    `own` is called with a kind, what is behind its colon, the data root and the options, `declared`
    with a name in place of the first two.
    """

    domain: str
    datasets: Mapping[str, Any]  # that it declares
    sources: Sequence[Source]  # kinds of data that users bring
    own: Callable[..., Read]  # reads these
    declared: Callable[..., Read]  # reads a declared set
    fault: str = "cannot be read"  # what to say of a user's data that cannot be read
    others: bool = False  # whether `declared` reads other sets of a data root too

    def read(self, name: str, data_root: Path | None, *options: Hashable) -> Read:
        """Read a set; a user's own from memory if it has not changed since the last seed."""
        if parsed := parse_source(name, self.sources):
            source, what = parsed
            if source.runs_code:  # it may import what was edited, or draw at random
                with reading(what, fault=self.fault):
                    return self.own(source.kind, what, data_root, *options)
            asked, state = (what, data_root, *options), source_state(what, data_root)
            kept: Read = read_unchanged(self.own, source, self.fault, asked, state)
            return kept
        if name not in self.datasets and not self.others:
            raise unknown_dataset(self.domain, name, self.datasets, self.sources, data_root)
        return self.declared(name, data_root, *options)


def candidate_paths(name: str, data_root: Path | None) -> Iterator[Path]:
    """Return where a file or folder of that name may be: here, then in the data root.

    A shell leaves the `~` of `csv:~/mine.csv` as it is.
    """
    yield Path(expanduser(name))  # noqa: PTH111 - no error where there is no such user
    if data_root:
        yield data_root / name


def find_path(
    name: str, data_root: Path | None, there: Callable[[Path], bool] = Path.is_file
) -> Path:
    """The file of that name, here or in the data root; or the folder, by `Path.is_dir`."""
    for path in candidate_paths(name, data_root):
        if there(path):
            return path
    kind = "folder" if there is Path.is_dir else "file"
    elsewhere = f", nor in {data_root}" if data_root else ": --data-root names another folder"
    raise UserError(f"no {kind} {name} here{elsewhere}")


def comma_files(what: str, data_root: Path | None) -> list[Path]:
    # its name may have a comma
    if any(path.is_file() for path in candidate_paths(what, data_root)):
        return [find_path(what, data_root)]
    files = [find_path(name.strip(), data_root) for name in what.split(",")]
    refuse(what, (len(files) > 2, f" names {len(files)} files: give at most 2"))
    return files


def source_state(what: str, data_root: Path | None) -> str:
    """Equal as long as the files or the folder that are named do not change; "" of others."""
    whole = any(path.exists() for path in candidate_paths(what, data_root))
    names = [what] if whole else what.split(",")
    paths = [path for name in names for path in candidate_paths(name, data_root) if path.exists()]
    return "".join(map(fingerprint, paths))


def fingerprint(root: Path) -> str:
    digest = hashlib.sha256()
    for name in files_below(root) if root.is_dir() else [""]:
        with reading(root / name, "remove or replace it"):  # a link may lead nowhere
            known = (root / name).stat()
        digest.update(f"{name}\0{known.st_size}\0{known.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def files_below(root: Path) -> list[str]:
    """Sorted names of all files in a folder and its folders, linked ones too, but no hidden ones.

    A link may not lead back to a folder that holds it, and a name has to be UTF-8.
    """
    names = []
    for folder, folders, here in os.walk(root, followlinks=True):
        check_link(Path(folder))
        folders[:] = [name for name in folders if not name.startswith(".")]
        below = Path(folder).relative_to(root)
        names += [(below / name).as_posix() for name in here if not name.startswith(".")]
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            wrong = f"{root}: the name of a file is no UTF-8 ({name!a}): rename it"
            raise UserError(wrong) from None
    return sorted(names)


def check_link(folder: Path) -> None:
    """Raise if a folder is a link to one that holds it, whose files would have no end."""
    if folder.is_symlink():
        target = folder.resolve()
        circle = any(place.resolve().is_relative_to(target) for place in folder.parents)
        refuse(folder, (circle, " is a link to a folder that holds it: remove it"))
