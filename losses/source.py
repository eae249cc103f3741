"""Python files of a user's own: the bytes that are hashed are the bytes that run."""

import hashlib
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

IMPORTS = threading.RLock()  # a run of a file changes what the whole process can import


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
