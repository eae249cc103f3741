"""The package list, the direction of imports, and names that are printed."""

import ast
import tomllib
from collections.abc import Container
from pathlib import Path

import pytest

from contrastbench.domains.registry import DOMAINS

ROOT = Path(__file__).parents[1]
FOLDERS = ("losses", "domains", "benchmarks")
SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
OUTPUT = "benchmarks/cli/output.py"  # JSON, and lines by `tell`
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def imports(path: Path) -> set[str]:
    """The modules that a file imports, and names of them; ours are without the package's name."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.removeprefix("contrastbench.") for name in names}


def test_the_package_list_is_the_folders() -> None:
    found = {
        ".".join(path.relative_to(ROOT).parent.parts)
        for path in SOURCES
        if path.name == "__init__.py"
    }
    assert {"contrastbench", *(f"contrastbench.{name}" for name in found)} == set(
        PROJECT["tool"]["setuptools"]["packages"]
    )
    assert {path.parent for path in SOURCES} == {
        path.parent for path in SOURCES if path.name == "__init__.py"
    }


def test_the_package_has_every_file_beside_its_modules() -> None:
    packaged = {
        found
        for package, patterns in PROJECT["tool"]["setuptools"]["package-data"].items()
        for pattern in patterns
        for found in ROOT.joinpath(*package.split(".")[1:]).glob(pattern)
    }
    for folder in FOLDERS:
        files = {
            path
            for path in (ROOT / folder).rglob("*.*")
            if path.suffix != ".py" and path.parent.name != "__pycache__"
        }
        assert files <= packaged, f"name these as package data: {files - packaged}"


KINDS = ("graph", "image", "sentence", "tabular")
FORBIDDEN = {  # what modules of a folder, or this one, import nothing of
    **dict.fromkeys(("errors.py", "distributed.py"), FOLDERS),
    "losses": ("domains", "benchmarks", "numpy", "scipy", "sklearn", "pydantic", "torchvision"),
    "domains": ("benchmarks",),
    **{f"domains/{one}": tuple(f"domains.{x}" for x in KINDS if x != one) for one in KINDS},
}
OF_LOSSES = {f"losses.{name}" for name in ("contrast", "pairing", "source")}
MODULES = [*SOURCES, *(ROOT / name for name in FORBIDDEN if name.endswith(".py"))]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    used = {".".join(name.split(".")[:n]) for name in imports(path) for n in (1, 2)}
    for folder, others in FORBIDDEN.items():
        assert not path.is_relative_to(ROOT / folder) or not used & {*others}
    if path.is_relative_to(ROOT / "domains"):
        known = {name for name in used if name.startswith("losses.")}
        assert known <= OF_LOSSES, "a domain knows pairings, never a loss"


FLOORS = {  # rooms and modules of a folder, the lowest first: each imports from those below it
    "losses": (
        *("pairing", "blocks", "settings"),
        *("contrast", "ranges", "limits", "expression", "source", "base"),
        *("exponential", "memory", "library", "views", "loading", "registry"),
        *("stand_ins", "spec", "__init__", "laws"),
    ),
    "domains": (
        *("reading", "strict", "strict_yaml", "random", "progress"),
        *("model", "recipe", "samples", "report"),
        *("declaration", "scoring", "base", "own", "download", "saved", "registry", "exported"),
        "probe",
        *("graph", "image", "sentence", "tabular", "__init__"),
    ),
    "domains/image": (
        *("views", "data", "recipe", "__init__", "preprocessing"),
        *("sampling", "networks", "scoring", "domain"),
    ),
    "benchmarks": (
        *("records", "running", "tables", "sweeps", "comparison", "against", "checks"),
        *("report", "submission", "perf", "api", "cli", "__init__"),
    ),
}


@pytest.mark.parametrize("folder", FLOORS)
def test_each_module_has_a_floor(folder: str) -> None:
    assert {floor_of(folder, module_of(path)) for path in files_of(folder)} == set(FLOORS[folder])


@pytest.mark.parametrize("folder", FLOORS)
def test_no_arrow_points_up(folder: str) -> None:
    modules = {module_of(path): path for path in files_of(folder)}
    for name, path in modules.items():
        above = FLOORS[folder][FLOORS[folder].index(floor_of(folder, name)) + 1 :]
        used = {floor_of(folder, module) for module in arrows_of(path, modules)}
        assert not used & set(above), f"{path} imports from a higher floor of {folder}"


def files_of(folder: str) -> list[Path]:
    return [path for path in SOURCES if path.is_relative_to(ROOT / folder)]


def floor_of(folder: str, module: str) -> str:
    name = module.removeprefix(folder.replace("/", ".")).lstrip(".").partition(".")[0]
    return name or "__init__"


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_two_modules_import_each_other(folder: str) -> None:
    """Not even through others, and not within functions either."""
    modules = {
        module_of(path): path for path in SOURCES if path.relative_to(ROOT).parts[0] == folder
    }
    arrows = {name: arrows_of(path, modules) - {name} for name, path in modules.items()}
    while leaves := {name for name, used in arrows.items() if not used}:
        arrows = {name: used - leaves for name, used in arrows.items() if name not in leaves}
    assert not arrows, f"these stand in circles: {sorted(arrows)}"


def arrows_of(path: Path, modules: Container[str]) -> set[str]:
    """The modules that a file takes something from; a package is none where its module is meant."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("contrastbench."):
            module = str(node.module).removeprefix("contrastbench.")
            for name in (alias.name for alias in node.names):
                found.add(f"{module}.{name}" if f"{module}.{name}" in modules else module)
    return {name for name in found if name in modules}


def module_of(path: Path) -> str:
    """The module's name inside contrastbench; a package's is its folder's."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES_DOMAINS = {  # modules that may: what a domain's declaration names, and an extra of pip
    *(f"benchmarks/perf/{name}.py" for name in DOMAINS),
    "benchmarks/checks/device.py",
    "benchmarks/api/frames.py",  # the extra that brings pandas
}


def test_the_benchmarks_ask_declarations_and_name_no_domain() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in files_of("benchmarks")
        if path.relative_to(ROOT).as_posix() not in NAMES_DOMAINS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in DOMAINS
    ]
    assert found == []


def test_nothing_prints_a_name_raw() -> None:
    """What people read goes through `tell`, and what programs read is JSON."""
    for path in SOURCES:
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or name == OUTPUT:
                continue
            called, first = ast.unparse(node.func), "".join(map(ast.unparse, node.args[:1]))
            assert called not in ("typer.echo", "typer.secho", "click.echo"), (name, node.lineno)
            if called in ("print", "tqdm.write"):
                assert first.startswith(("json.dumps(", "printable(")), (name, node.lineno)


def test_no_text_is_read_or_written_in_the_locale_s_encoding() -> None:
    """Ruff has a rule for it, which does not see a `Path` that a call returns."""
    for path in [*SOURCES, *ROOT.glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                given = len(node.args) + ("encoding" in {word.arg for word in node.keywords})
                least = {"read_text": 1, "write_text": 2}.get(node.func.attr, 0)
                read = ast.unparse(node.func.value)
                metadata = read in ("package", "distribution")  # which importlib reads as UTF-8
                assert given >= least or metadata, (str(path), node.lineno)


BUDGET = {
    "source": 25070,
    "tests": 28075,
}  # lines of code when a round ended: lower them when one ends
SLACK = 1.03  # a loss, a data set or a table fits without a word here


def code_lines(path: Path) -> int:
    """Return the lines of a file that hold code: no blank, no comment, no docstring."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return sum(bool(line.strip()) for line in text.splitlines())
    docs = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(text.splitlines(), start=1)
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in docs
        for number, line in lines
    )


@pytest.mark.parametrize("room", BUDGET)
def test_lines_stay_within_the_budget(room: str) -> None:
    """Formulas are free: losses of the library, and the loops from papers that they are held to."""
    templates = (ROOT / "benchmarks/report/templates").glob("*.*")
    paths = [*SOURCES, *templates] if room == "source" else (ROOT / "tests").rglob("*.py")
    exempt = (ROOT / "losses/library", ROOT / "tests/tools/oracles.py")
    counted = [path for path in paths if not any(path.is_relative_to(free) for free in exempt)]
    lines = sum(map(code_lines, counted))
    assert lines <= SLACK * BUDGET[room], f"{room} has {lines} lines of code: delete some first"
