"""The modules that others stand on import downward alone, within functions too."""

import ast
from pathlib import Path

import pytest

from contrastbench.losses import LOSSES, registry

FOLDER = Path(registry.__file__).parent
ORDER = [
    "errors",
    "settings",
    "source",
    "blocks",
    "distributed",
    "contrast",
    "pairing",
    "schedules",
]
ORDER += ["ranges", "limits", "expression", "base", "views", "packaged", "own", "changing"]
ORDER += ["registry", "spec", "reduction"]
FORMULAS = {path.stem for path in FOLDER.glob("*.py")} - {*ORDER, "__init__"}


def imports(module: str) -> set[str]:
    """Modules of the losses that one imports."""
    names = set()
    for node in ast.walk(ast.parse((FOLDER / f"{module}.py").read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "contrastbench.losses":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module.removeprefix("contrastbench.losses.").split(".")[0]}
    return names & {*ORDER, *FORMULAS}


@pytest.mark.parametrize("module", ORDER)
def test_nothing_imports_upward(module: str) -> None:
    assert imports(module) <= set(ORDER[: ORDER.index(module)])


@pytest.mark.parametrize("module", sorted(FORMULAS))
def test_a_formula_needs_no_registry(module: str) -> None:
    assert imports(module) <= FORMULAS | set(ORDER[: ORDER.index("own")])


def test_every_registered_loss_names_its_paper() -> None:
    for target in LOSSES.values():
        assert "https://" in (FOLDER / f"{target.split(':')[0]}.py").read_text()
