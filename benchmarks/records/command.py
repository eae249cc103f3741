"""The command that makes a record again; imports no torch."""

import shlex
from collections.abc import Sequence
from typing import Any

import yaml

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.domains.strict_yaml import SafeLoader
from contrastbench.losses.expression import absolute

UNBROKEN = float("inf")  # YAML never breaks the line


def parse_value(text: str) -> Any:
    """Return a number in any notation, else what YAML makes of the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    try:
        return SafeLoader(text).get_single_data()
    except (yaml.YAMLError, RecursionError):
        return text


def as_yaml(value: Any) -> str:
    """Return the text that `parse_value` reads as this value.

    >>> as_yaml(0.001), as_yaml("cosine"), as_yaml("1e3"), as_yaml([10, 20]), as_yaml(None)
    ('0.001', 'cosine', '"1e3"', '[10, 20]', 'null')
    """
    plain = dumped(value, None)
    return plain if repr(parse_value(plain)) == repr(value) else dumped(value, '"')


def dumped(value: Any, style: str | None) -> str:
    """Return a value as YAML in one line, its texts in that style of quotes."""
    text = yaml.safe_dump([value], default_flow_style=True, default_style=style, width=UNBROKEN)
    return text.strip()[1:-1]


def run_command(experiment: Experiment, seed: int, options: Sequence[str] = ()) -> str:
    """Return the line for a shell that runs one seed of an experiment again.

    It names every value, so that later defaults change nothing. The parameters of a user's own
    loss are those that were given: its file, whose path is absolute, has the others.
    """
    loss = experiment.loss
    words = ["--domain", experiment.domain, "--dataset", experiment.dataset]
    words += ["--loss", absolute(loss.name)]
    for name, value in (loss.params if loss.code else loss.complete.params).items():
        words += ["--set", f"{name}={as_yaml(value)}"]
    for name, value in experiment.full_recipe.model_dump(mode="json").items():
        words += ["--recipe", f"{name}={as_yaml(value)}"]
    line = shlex.join(["bench", "run", *words, "--seeds", str(seed), *options])
    return line.encode(errors="backslashreplace").decode()  # of paths that are no text
