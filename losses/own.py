"""Losses of a user's own: read from a file, and made such that a record can name them.

With the name and the parameters of the record they can be made again; the hash of their code tells
an edited file from the one that was run.
"""

import ast
import hashlib
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from os.path import commonpath, isfile
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from contrastbench.errors import UserError, unknown, users_code
from contrastbench.losses.expression import file_and_class, with_terms
from contrastbench.losses.source import Sources

if TYPE_CHECKING:
    from contrastbench.losses.base import Loss


def class_in_file(path: Path, attribute: str, sources: Sources) -> Any:
    """A user's own loss class, from a file."""
    if not (sources.has(path) or isfile(path)):  # noqa: PTH113 - too long a name is none
        raise no_file(path)
    with users_code(f"import {path}", str(path.absolute())):
        module = sources.run(path)
    if not hasattr(module, attribute):
        raise unknown(
            f"class in {path}",
            attribute,
            [kind.__name__ for kind in own_classes(module)],
        )
    return checked_class(getattr(module, attribute), f"{attribute} in {path}")


def own_classes(module: ModuleType) -> list[type]:
    """Return the classes that a module defines, without those that it imports."""
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type)]
    return [kind for kind in kinds if kind.__module__ == module.__name__]


def lacks_class(path: Path) -> UserError:
    """Return the error for a file of which no class is named; its code is not run."""
    if not isfile(path):  # noqa: PTH113 - too long a name is none
        return no_file(path)
    with users_code(f"read {path}"):
        tree = ast.parse(path.read_bytes())
    names = [f"{path}:{node.name}" for node in tree.body if isinstance(node, ast.ClassDef)]
    if not names:
        return UserError(f"{path} has no class: write the loss as one, and give {path}:CLASS")
    return UserError(f"{path} names no class: did you mean {' or '.join(names)}?")


def no_file(path: Path) -> UserError:
    """Return the error for the file of a loss that is not there."""
    return UserError(f"no file {path}: give --loss as path/to/file.py:Class")


def checked_class(candidate: Any, title: str) -> Any:
    """The candidate, if it is a class of losses."""
    from contrastbench.losses.base import Loss

    if not (isinstance(candidate, type) and issubclass(candidate, Loss)):
        raise UserError(
            f"{title} is no loss: derive it from contrastbench.losses.ScoreLoss, ViewLoss (a loss "
            "of two views) or Loss"
        )
    return candidate


def make_own_loss(name: str, factory: Any, params: Mapping[str, Any]) -> "Loss":
    """The loss, such that a record can name it.

    Raises:
        UserError: it cannot be made, or not be made again from its `params`.
    """
    from contrastbench.losses.base import Loss
    from contrastbench.losses.settings import keep_settings

    file = getattr(sys.modules.get(factory.__module__), "__file__", None)
    with users_code(f"make {name}", file or ""):
        with keep_settings(name):
            loss = factory(**params)
        if not isinstance(loss, Loss):
            raise UserError(
                f"{name} makes a {type(loss).__name__}, which is no loss: name a class of losses"
            )
        if "_modules" not in vars(loss):
            raise UserError(f"{name} is not set up: call super().__init__() first in its __init__")
        if type(loss).params is Loss.params:
            check_attributes(name, loss)
        for key, value in loss.params.items():
            if not is_plain(value):
                shown = textwrap.shorten(repr(value), 80, placeholder="...")
                fix = "take a finite number, a text or a list"
                raise UserError(f"{name}: a record cannot hold {key}={shown}: {fix}")
    return loss


def check_attributes(name: str, loss: "Loss") -> None:
    """Raise if an argument of the constructor is not kept under its name."""
    from contrastbench.losses.base import constructor

    for key, argument in constructor(type(loss)).items():
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
            raise UserError(f"{name} takes {argument}: name each argument of the constructor")
        if not hasattr(loss, key):
            fix = f"add self.{key} = {key} to its constructor"
            raise UserError(f"{name} does not keep its argument {key}: {fix}")


def is_plain(value: Any) -> bool:
    """Return whether JSON gives the value back as it is.

    >>> is_plain([1, 0.5, "a", True, None]), is_plain(float("inf")), is_plain((1, 2))
    (True, False, False)
    """
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError):
        return False


def own_code(loss: "Loss | None", sources: Sources) -> str:
    """Sha256 over losses from outside this package; "" for ours and for none.

    It covers the names of their classes, their files and the modules beside these that they import.
    Of packages it covers the classes that a loss is derived from and the methods that it takes
    over, and of a packaged loss the version of its package too.

    Args:
        loss: whose code it is.
        sources: the files that it was made from.

    Raises:
        UserError: a file of a package was edited after this process imported it.
    """
    ours = ("contrastbench.", "torch.", "builtins")
    own = [kind for kind in loss_classes(loss) if not kind.__module__.startswith(ours)]
    files = {file for kind in own for file in source_files(kind)} - sources.names
    contents = sources.contents | {Path(file): code_of_package(file) for file in files}
    names = [kind.__qualname__.encode() for kind in own]
    code = names + [contents[path] for path in sorted(contents, key=str)]
    used = [f"{name} {release}".encode() for name, release in releases(loss).items()]
    return hashlib.sha256(b"\0".join(code + used)).hexdigest() if own or used else ""


def loss_classes(loss: "Loss | None") -> list[Any]:
    """Return the classes of a loss or of its terms, with their bases.

    In place of the adapter of a packaged loss there is the package's own class or function.
    """
    from contrastbench.losses.base import summands
    from contrastbench.losses.packaged import PackageLoss

    terms = [] if loss is None else [term for _, term in summands(loss)]
    own = [term.target if isinstance(term, PackageLoss) else type(term) for term in terms]
    return [kind for one in own for kind in getattr(one, "__mro__", (one,))]


def releases(loss: "Loss | None") -> dict[str, str]:
    """Return the versions of the packages that have a packaged loss or term."""
    from contrastbench.losses.base import summands
    from contrastbench.losses.packaged import PackageLoss, release

    terms = [] if loss is None else [term for _, term in summands(loss)]
    found = [release(term.path) for term in terms if isinstance(term, PackageLoss)]
    return dict(sorted(one for some in found for one in some.items()))


def code_of_package(file: str) -> bytes:
    """Return the contents of a file that Python itself has imported.

    Raises:
        UserError: it was edited since this process asked for the first time.
    """
    code = first_code(file)
    if Path(file).read_bytes() != code:
        raise UserError(f"{file} was edited after it was imported: start a new Python process")
    return code


@cache
def first_code(file: str) -> bytes:
    """Return the contents of a file at the first call of this process."""
    return Path(file).read_bytes()


def portable(name: str, sources: Sources) -> tuple[str, dict[str, str]]:
    """Return the name of a user's own loss and its files, by paths within the folder of all.

    Written to another folder they make the same loss: `own_code` sorts them by these paths. The
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

    def within(term: str) -> str:
        own = file_and_class(term)
        return f"{own[0].absolute().relative_to(folder).as_posix()}:{own[1]}" if own else term

    return with_terms(name, within), files


def source_files(kind: Any) -> Iterator[str]:
    """The file of a class or function, and those of its methods; none of the standard library's.

    A class may have no methods, and take over those of another file.
    """
    if kind.__module__.partition(".")[0] in sys.stdlib_module_names:
        return
    files = [f.__code__.co_filename for f in vars(kind).values() if inspect.isfunction(f)]
    for file in [*files, getattr(sys.modules.get(kind.__module__), "__file__", None)]:
        if file and Path(file).is_file():  # what a decorator makes may be from "<string>"
            yield file
