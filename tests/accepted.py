"""Say whether a sweep sees its controls: exit code 0 where each differs from InfoNCE after Holm.

python tests/accepted.py FILE --results FOLDER [--tiny]
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from contrastbench.benchmarks.comparison.compare import Comparison, compare_rows
from contrastbench.benchmarks.comparison.numbers import p_text, signed
from contrastbench.benchmarks.tables.load import load_table
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.benchmarks.tables.table import Table

VERDICTS = {"temperature 5": "worse", "pairs by class": "better"}  # that ask for acceptance


def controls(table: Table, results: Path) -> dict[str, Comparison]:
    """Return the controls that were compared with the baseline, by name."""
    return {one.control: one for one in compare_rows(resolve(table, None, results)) if one.control}


def lines(found: dict[str, Comparison], seeds: int) -> list[str]:
    """Return a line for each control: what was seen of it."""
    shown = []
    for name, verdict in VERDICTS.items():
        one = found.get(name)
        if one is None or one.difference is None:
            shown.append(f"{name}: no records")
            continue
        differs = "differs" if one.verdict == verdict else "does not differ"
        numbers = f"{signed(one.difference, 2)} points, Holm p {p_text(one.holm)}"
        shown.append(f"{name}: {differs} ({numbers}, {len(one.seeds)} of {seeds} seeds)")
    return shown


def main(words: Sequence[str] | None = None) -> int:
    """Print the lines and the verdict, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--tiny", action="store_true", help="the records of a dry run")
    asked = parser.parse_args(words)
    table = load_table(asked.file)
    table = table.as_smoke_test() if asked.tiny else table
    found = controls(table, asked.results)
    accepted = all(name in found and found[name].verdict == v for name, v in VERDICTS.items())
    said = "; ".join(lines(found, len(table.seeds)))
    print(f"{'accepted' if accepted else 'not accepted'}: {said}")
    return 0 if accepted else 1


if __name__ == "__main__":
    sys.exit(main())
