"""The hash of the code of losses from outside this package, and their files as records hold them.

With the name and the parameters of the record they can be made again; the hash of their code tells
an edited file from the one that was run.
"""

import hashlib
import inspect
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions, version
from os.path import commonpath
from pathlib import Path
from typing import Any

from contrastbench.errors import UserError
from contrastbench.losses.expression import with_files
from contrastbench.losses.source import Sources

OURS = ("contrastbench.", "torch.", "builtins")  # whose code is not hashed


def code_of(targets: Iterable[Any], packages: Iterable[str], sources: Sources) -> str:
    """Return the sha256 over losses from outside this package; "" for ours and for none.

    It covers the names of their classes, their files and the modules beside these that they import.
    Of packages it covers the classes that a loss is derived from and the methods that it takes
    over, and of a loss of another kind than ours the version of its package too.
    """
    kinds = [kind for target in targets for kind in getattr(target, "__mro__", (target,))]
    own = [kind for kind in kinds if not str(kind.__module__).startswith(OURS)]
    files = {file for kind in own for file in source_files(kind)} - {*map(str, sources.contents)}
    contents = sources.contents | {Path(file): code_of_package(file) for file in files}
    names = [kind.__qualname__.encode() for kind in own]
    code = names + [contents[path] for path in sorted(contents, key=str)]
    used = [f"{name} {release}".encode() for name, release in releases(packages).items()]
    return hashlib.sha256(b"\0".join(code + used)).hexdigest() if own or used else ""


def releases(packages: Iterable[str]) -> dict[str, str]:
    names = {name for package in packages for name in distributions().get(package, [])}
    return {name: version(name) for name in sorted(names)}


distributions = cache(packages_distributions)  # it reads what all packages say of themselves
first_code = cache(Path.read_bytes)  # of a file at the first call of this process


def code_of_package(file: str) -> bytes:
    code = first_code(Path(file))
    if Path(file).read_bytes() != code:
        raise UserError(f"{file} was edited after it was imported: start a new Python process")
    return code


def portable(name: str, sources: Sources) -> tuple[str, dict[str, str]]:
    """Return the name of a user's own loss and its files, by paths within the folder of all.

    Written to another folder they make the same loss: `code_of` sorts them by these paths. The
    loss of a package has no files here, and nor has one whose files are not UTF-8.
    """
    folder = commonpath([path.parent for path in sources.contents]) if sources.contents else ""
    try:
        files = {
            path.relative_to(folder).as_posix(): content.decode()
            for path, content in sources.contents.items()
        }
    except UnicodeDecodeError:
        files = {}

    return with_files(name, lambda path: path.absolute().relative_to(folder).as_posix()), files


def source_files(kind: Any) -> Iterator[str]:
    """The file of a class or function, and those of its methods; none of the standard library's.

    A class may have no methods, and take over those of another file.
    """
    if str(kind.__module__).partition(".")[0] in sys.stdlib_module_names:
        return
    values = vars(kind).values() if hasattr(kind, "__dict__") else ()
    files = [f.__code__.co_filename for f in values if inspect.isfunction(f)]
    for file in [*files, getattr(sys.modules.get(str(kind.__module__)), "__file__", None)]:
        if file and Path(file).is_file():  # what a decorator makes may be from "<string>"
            yield file
