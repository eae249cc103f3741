"""What words on the command line mean: folders, seeds, values by key, losses with their parameters."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from contrastbench.losses.errors import UserError, unknown
from contrastbench.losses.registry import complete

Results = Annotated[Path, typer.Option(help="The folder that holds runs/ with the records.")]
DataRoot = Annotated[
    Path | None,
    typer.Option(envvar="CONTRASTBENCH_DATA", help="A folder that already holds the data files."),
]

SEEDS = 2**32  # scikit-learn, which draws folds and splits, takes no larger one
MOST_SEEDS = 10_000  # more are a slip of the hand


def check_data_root(data_root: Path | None) -> None:
    """Raise unless it is a folder."""
    if data_root is not None and not data_root.is_dir():
        raise UserError(
            f"data root {data_root} does not exist: name a folder that holds the data files"
        )


def parse_seeds(text: str) -> list[int]:
    """Seeds of a list of numbers and ranges.

    Raises:
        UserError: neither, a seed twice, one that is too large, or too many of them.

    >>> parse_seeds("0-2,7")
    [0, 1, 2, 7]
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,10})(?:-([0-9]{1,10}))?", part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last < SEEDS:
            raise wrong_seeds(text)
        if len(seeds) + last - first >= MOST_SEEDS:
            raise UserError(f"--seeds {shortened(text)}: give at most {MOST_SEEDS:,} seeds")
        seeds += range(first, last + 1)
    if len(set(seeds)) < len(seeds):
        raise wrong_seeds(text)
    return seeds


def wrong_seeds(text: str) -> UserError:
    """The error for what are no seeds."""
    return UserError(
        f"--seeds {shortened(text)}: give distinct numbers from 0 on, below 2**32, such as 0-4 or 0,2,5"
    )


def shortened(text: str) -> str:
    """A text as it was given, but of one line's length."""
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


def parse_pairs(option: str, pairs: Iterable[str] | None) -> dict[str, Any]:
    """Values by key; numbers in any notation.

    >>> parse_pairs("--recipe", ["lr=1e-3", "features=degree"])
    {'lr': 0.001, 'features': 'degree'}
    """
    values: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise UserError(f"{option} {pair!r}: give KEY=VALUE")
        if key.strip() in values:
            raise UserError(f"{option} {key.strip()} is given twice")
        values[key.strip()] = parse_value(text.strip())
    return values


def parse_value(text: str) -> Any:
    """A number in any notation, else what YAML makes of it."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def parse_list(option: str, text: str) -> list[Any]:
    """Distinct values between commas.

    >>> parse_list("--grid d_pos", "1, 2.5")
    [1, 2.5]
    """
    values = [parse_value(part.strip()) for part in text.split(",")]
    if "" in values or None in values or twice(values):
        raise UserError(f"{option} {text!r}: give distinct values between commas, such as 0.1,0.2")
    return values


def twice(values: Sequence[Any]) -> bool:
    """Whether one is there twice, perhaps in another notation.

    >>> twice([1, 2, 1.0]), twice([1, "1"]), twice([1, 2])
    (True, True, False)
    """
    return any(value in values[:i] for i, value in enumerate(values)) or len(
        set(map(str, values))
    ) < len(values)


def parse_numbers(option: str, text: str, high: float = float("inf")) -> list[float]:
    """Distinct numbers from 0 to `high` between commas.

    >>> parse_numbers("--kept", "0,0.5", high=1)
    [0.0, 0.5]
    """
    values = parse_list(option, text)
    if not all(type(value) in (int, float) and 0 <= value <= high for value in values):
        raise UserError(
            f"{option} {text!r}: give numbers between commas, from 0"
            + (f" to {high:g}" * (high < 1e9))
        )
    return [float(value) for value in values]


def parse_grid(pairs: Iterable[str]) -> dict[str, list[Any]]:
    """Values by key.

    >>> parse_grid(["d_pos=1,2", "d_neg=1"])
    {'d_pos': [1, 2], 'd_neg': [1]}
    """
    grid: dict[str, list[Any]] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip() or key.strip() in grid:
            raise UserError(f"--grid {pair!r}: give KEY=V1,V2,... with another key each time")
        grid[key.strip()] = parse_list(f"--grid {key.strip()}", text)
    return grid


def parse_losses(texts: Sequence[str], shared: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Losses with their own parameters, and those shared ones that they have.

    >>> parse_losses(["infonce(temperature=0.2)", "adnce"], {"mu": 0.6})
    [('infonce', {'temperature': 0.2}), ('adnce', {'mu': 0.6})]
    """
    losses, used = [], set()
    for text in texts:
        match = re.fullmatch(r"([^()]+)(?:\((.*)\))?", text.strip())
        if not match:
            raise UserError(f"--loss {text!r}: give a loss or loss(KEY=VALUE, ...)")
        name, own = (
            match[1].strip(),
            parse_pairs("--loss", match[2].split(",") if match[2] else None),
        )
        known = complete(name, own)[1]
        mine = {
            key: value
            for key, value in shared.items()
            if any(k == key or k.endswith(f".{key}") for k in known)
        }
        used |= set(mine)
        losses.append((name, {**mine, **own}))
    for key in shared:
        if key not in used:
            raise unknown(
                f"parameter of {', '.join(texts)}",
                key,
                [k for n, _ in losses for k in complete(n, {})[1]],
            )
    if any(loss in losses[:i] for i, loss in enumerate(losses)):
        raise UserError(
            "a loss is given twice: give each once, or with other parameters: infonce(temperature=0.2)"
        )
    return losses
