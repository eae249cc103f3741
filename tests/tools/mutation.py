"""Change the code in small ways and count which changes the nearest tests notice: a mutation run.

`python tests/tools/mutation.py ROOM... [--count N] [--seed N] [--only MODULE]` draws N changes in
each room, such as `<` to `<=`, and prints those that no test notices. Each lives in a copied tree.
The tests are those that name the module, the file of its own name first.
"""

import argparse
import ast
import copy
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
ROOMS = ("losses", *(f"benchmarks/{one}" for one in ("comparison", "records", "tables", "running")))
LIBRARY = ("values", "oracles", "limits")  # tests of every loss
FILES = 8  # of tests for each module
SECONDS = 480  # of a processor: a change that takes more is noticed, as an endless loop
WAITING = 1800  # seconds: so is one that waits for ever, which takes no processor
NO_END = "no end"
PAIRS = [
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn)),
    *((ast.Is, ast.IsNot), (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or)),
    *((ast.BitOr, ast.BitAnd), (ast.FloorDiv, ast.Mod), (ast.Pow, ast.Mult), (ast.USub, ast.UAdd)),
]
OTHER = {a: b for one, two in PAIRS for a, b in ((one, two), (two, one))}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "first": "last"}


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in place of a node."""
    for name in ("op", *(["ops"] if isinstance(node, ast.Compare) else ())):
        old = getattr(node, name, None)
        found = old[0] if isinstance(old, list) and len(old) == 1 else old
        if type(found) in OTHER:
            new = OTHER[type(found)]()
            yield changed(node, **{name: [new] if isinstance(old, list) else new})
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        value = not node.value if isinstance(node.value, bool) else node.value + 1
        yield ast.Constant(value)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield changed(node, test=ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield changed(node, ifs=node.ifs[1:])
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield changed(node, id=NAMES[node.id])
    elif isinstance(node, ast.Call):
        for one in node.keywords:
            yield changed(node, keywords=[other for other in node.keywords if other is not one])


def changed(node: ast.AST, **fields: object) -> ast.AST:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Yield each child below a node with where it hangs; annotations and errors stay."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "exc", "decorator_list", "msg"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                yield tree, name, index
                yield from places(child)


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Yield each changed source of a module, with the change in words."""
    tree = ast.parse(source)
    for parent, name, index in places(tree):
        held = getattr(parent, name)
        old = held if index is None else held[index]
        for new in changes(old):
            put(parent, name, index, new)
            line = getattr(old, "lineno", getattr(parent, "lineno", 0))
            words = " -> ".join(ast.unparse(one).partition("\n")[0] for one in (old, new))
            yield ast.unparse(ast.fix_missing_locations(tree)), f"{line}: {words}"
            put(parent, name, index, old)


def put(parent: ast.AST, name: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, name, node)
    else:
        getattr(parent, name)[index] = node


def nearest(module: Path) -> list[str]:
    """Return what pytest is told to run for a module.

    These are its loss's cases for a file of the library. Else they are the test files that import
    the module, the one of its own name first, then those of its room that have its name most often.
    """
    if module.parent.name == "library":
        return [*(f"tests/losses/test_{one}.py" for one in LIBRARY), "-k", module.stem]
    room = re.escape(".".join(("contrastbench", *module.parent.parts)))
    imports = re.compile(rf"{room}(\.| import [^\n]*\b){module.stem}\b")
    word = re.compile(rf"(?<![a-z]){module.stem.rstrip('s')}")
    away = {}
    for file in (HERE / "tests").rglob("test_*.py"):
        text, near = file.read_text(), file.is_relative_to(HERE / "tests" / module.parent)
        named = bool(imports.search(text))
        if named or near:
            own = file.name != f"test_{module.stem}.py"
            away[file] = own, not named, not near, -len(word.findall(text))
    return [str(f.relative_to(HERE)) for f in sorted(away, key=away.__getitem__)][:FILES]


def failed_test(tree: Path, tests: list[str]) -> str | None:
    """Return the first test of a tree that fails; None: none does."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree.parent), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=WAITING,
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_CPU, (SECONDS, SECONDS)),
        )
    except subprocess.TimeoutExpired:
        return NO_END
    if done.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return failed[1] if failed else NO_END


def copied(folder: Path) -> Path:
    tree = folder / "contrastbench"  # whatever the checkout is called
    ignored = shutil.ignore_patterns(".git", ".tox", "*.egg-info")  # compiled files are kept
    shutil.copytree(HERE, tree, ignore=ignored, copy_function=os.link)
    return tree


def noticed_by(tree: Path, file: Path, source: str, green: dict[str, bool]) -> str | None:
    """Return the first test that fails in a tree with a changed file, and passes without.

    What fails anyway, as a test that asks Git may, is left out from then on.
    """
    kept = (tree / file).read_text()
    while True:
        red = [test for test, passes in green.items() if not passes]
        tests = [test for test in nearest(file) if test not in red]
        write_alone(tree / file, source)
        by = failed_test(tree, [*tests, *(f"--deselect={test}" for test in red)])
        write_alone(tree / file, kept)
        if by in (None, NO_END):
            return by
        if by not in green:
            green[by] = failed_test(tree, [by]) is None
        if green[by]:
            return by


def write_alone(file: Path, source: str) -> None:
    file.unlink()  # a link to that of the checkout
    file.write_text(source)


def run_room(room: str, count: int, rng: random.Random, tree: Path, only: str) -> None:
    sources = {f.relative_to(HERE): f.read_text() for f in sorted((HERE / room).rglob("*.py"))}
    some = {f: text for f, text in sources.items() if only in f.stem}
    drawn = [(f, *one) for f, text in some.items() for one in mutants(text)]
    tried, noticed, green = rng.sample(drawn, min(count, len(drawn))), 0, dict[str, bool]()
    for file, source, words in tried:
        by = noticed_by(tree, file, source, green)
        noticed += bool(by)
        print(f"{file}:{words}: {f'by {by}' if by else 'UNNOTICED'}", flush=True)
    print(
        f"{room}: {noticed} of {len(tried)} noticed, of {len(drawn)} possible changes", flush=True
    )


def main() -> None:
    """Run the rooms that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", default=ROOMS)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = copied(Path(folder))
        for room in asked.rooms:
            run_room(room, asked.count, random.Random(f"{asked.seed} {room}"), tree, asked.only)


if __name__ == "__main__":
    main()
