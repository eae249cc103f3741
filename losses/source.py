"""Python files of a user's own: the bytes that are hashed are the bytes that run."""

import hashlib
import inspect
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.metadata import packages_distributions, version
from importlib.util import module_from_spec, spec_from_file_location
from os.path import commonpath
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from contrastbench.errors import UserError
from contrastbench.losses.expression import with_files

IMPORTS = threading.RLock()  # a run of a file changes what the whole process can import
OURS = ("contrastbench.", "torch.", "builtins")  # whose code is not hashed
distributions = cache(packages_distributions)  # it reads what all packages say of themselves
first_code = cache(Path.read_bytes)  # of a file at the first call of this process


class Sources:
    """Files that are read once and may run often; an edit in between changes nothing.

    Modules beside a file (`helper.py` in its folder) are read in the same way when it imports them.
    """

    def __init__(self) -> None:
        self.contents: dict[Path, bytes] = {}  # by absolute path

    def read(self, path: Path) -> bytes:
        """Return the file's bytes as they were when they were first read."""
        path = path.absolute()
        if path not in self.contents:
            self.contents[path] = path.read_bytes()
        return self.contents[path]

    def has(self, path: Path) -> bool:
        """Return whether the file was read: it may be gone since."""
        return path.absolute() in self.contents

    def run(self, path: Path) -> ModuleType:
        """Return a new module of the file, whose code has run and left what others compute by."""
        from contrastbench.losses.settings import keep_settings, keep_variables

        folder = hashlib.sha256(str(path.resolve()).encode()).hexdigest()
        who = str(path)
        with IMPORTS, keep_settings(who), keep_variables(who), self.beside(path.parent):
            spec = self.spec(f"file_{folder}.{path.stem}", path)
            module = module_from_spec(spec)
            sys.modules[spec.name] = module  # inspect and dataclasses look for it there
            assert spec.loader is not None, "it is ours"
            spec.loader.exec_module(module)
        return module

    def spec(self, name: str, path: Path) -> ModuleSpec:
        loader = OnceRead(name, str(path.absolute()), self)
        spec = spec_from_file_location(name, path.absolute(), loader=loader)
        assert spec is not None, "a loader was given"
        return spec

    @contextmanager
    def beside(self, folder: Path) -> Iterator[None]:
        """Import modules of the folder anew within, and forget them afterwards."""
        finder = Beside(folder.absolute(), self)
        before = {name: sys.modules.pop(name) for name in imported_from(finder.folder)}
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            for name in finder.found:
                sys.modules.pop(name, None)
            sys.modules.update(before)


class OnceRead(SourceFileLoader):
    """Compile the bytes of `Sources`.

    No .pyc is read or written: Python tells a stale one by the time and size of the file alone.
    """

    def __init__(self, name: str, path: str, sources: Sources) -> None:
        super().__init__(name, path)
        self.sources = sources

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self.sources.read(Path(self.path)), self.path)
        return code


class Beside(MetaPathFinder):
    """Find plain modules of one folder, unless Python finds another module of that name."""

    def __init__(self, folder: Path, sources: Sources) -> None:
        self.folder, self.sources = folder, sources
        self.found: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = self.folder / f"{name}.py"
        if path is not None or name in sys.stdlib_module_names:
            return None
        if not (self.sources.has(file) or file.is_file()):
            return None
        other = PathFinder.find_spec(name)
        if other and not (other.origin and Path(other.origin).resolve() == file.resolve()):
            return None
        self.found.append(name)
        return self.sources.spec(name, file)


def imported_from(folder: Path) -> list[str]:
    return [
        file.stem
        for file in folder.glob("*.py")
        if getattr(sys.modules.get(file.stem), "__file__", None) == str(file)
    ]


def code_of(targets: Iterable[Any], packages: Iterable[str], sources: Sources) -> str:
    """Return the sha256 over losses from outside this package; "" for ours and for none.

    With the name and the parameters of the record they can be made again; the hash tells an edited
    file from the one that was run.

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
