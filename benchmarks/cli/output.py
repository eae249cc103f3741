"""Print lines in which no name can control a terminal or end the line."""

import json
import os
import sys
from typing import IO

from contrastbench.errors import tell


def say(line: object) -> None:
    tell(str(line), sys.stdout)


def show(text: str) -> None:
    for line in text.removesuffix("\n").split("\n"):
        say(line)


def width() -> int | None:
    """Return the width of the terminal; None where nothing asks for one, as in a file."""
    if not (os.environ.get("COLUMNS", "").isdecimal() or sys.stdout.isatty()):
        return None
    from rich.console import Console  # takes longer than a list

    return Console().width


def print_json(value: object, stream: IO[str] | None = None) -> None:
    """Print a value as one line of JSON, which a program reads; by default on standard output."""
    text = json.dumps(value).replace("\x7f", r"\u007f")  # all other controls are escaped in JSON
    print(text, file=stream or sys.stdout, flush=True)
