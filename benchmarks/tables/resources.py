"""Classes of cells that need like devices, memory and time, as a file gives them.

    resources:
      light: {domain: [graph, tabular], hours: 1, memory: 4G}
      card: {hours: 12, memory: 32G, devices: 1, jobs: 8}
      large: {hours: 48, memory: 64G, devices: 1, slurm: {partition: long}}

Classes stand from small to large. A cell is in the first class that has its domain and recipe and
whose hours its forecast fits in. Brings no torch.
"""

import re
from math import ceil
from pathlib import Path
from typing import Any

from pydantic import Field

from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.domains import strict_yaml
from contrastbench.domains.registry import DOMAINS, check_domain_name, declaration
from contrastbench.domains.strict import Strict
from contrastbench.domains.strict_yaml import Document
from contrastbench.errors import UserError, unknown


class Resources(Strict):
    """The cells of a class, and what each of its jobs has."""

    domain: str | list[str] = Field([], description="default: every domain")
    recipe: dict[str, Any] = Field({}, description="values that cells have, each or one of a list")
    hours: float | None = Field(None, gt=0, description="time limit, which forecasts must fit in")
    memory: str | None = Field(None, pattern="^[0-9]+[KMGT]?$", description="such as 32G")
    devices: int | None = Field(
        None, ge=0, description="number of GPUs of a job, and of a training"
    )
    jobs: int | None = Field(None, ge=1, description="size of the array; default: 1")
    slurm: dict[str, str | int] = Field({}, description="further options of sbatch")

    @property
    def domains(self) -> list[str]:
        """Return the domains of its cells; none: all."""
        return [self.domain] if isinstance(self.domain, str) else self.domain

    @property
    def ranks(self) -> int:
        """Return the number of devices of each of its trainings."""
        return self.devices or 1

    def takes(self, experiment: Experiment) -> bool:
        """Return whether it has the domain and the recipe of a cell."""
        if self.domains and experiment.domain not in self.domains:
            return False
        recipe = experiment.full_recipe.model_dump(mode="json")
        return all(
            recipe.get(key) in (value if isinstance(value, list) else [value])
            for key, value in self.recipe.items()
        )

    @property
    def options(self) -> dict[str, str]:
        """Return its settings as options of sbatch.

        >>> Resources(hours=1.5, memory="4G", devices=2).options
        {'time': '90', 'mem': '4G', 'gpus-per-node': '2'}
        """
        minutes = ceil(60 * self.hours) if self.hours else None
        named = {"time": minutes, "mem": self.memory, "gpus-per-node": self.devices or None}
        given = {"jobs": self.jobs, **named, **self.slurm}
        return {key: str(value) for key, value in given.items() if value is not None}


ResourceClasses = dict[str, Resources]


class ResourceFile(Strict):
    """The keys of a file of resources."""

    resources: ResourceClasses = Field(min_length=1)


def read_resources(path: Path) -> ResourceClasses:
    """Return the classes of a file, by name.

    Raises:
        UserError: the file is wrong, in one line that names the line of the file.
    """
    document = strict_yaml.read_yaml(path)
    found = document.as_model(ResourceFile).resources
    check_resources(found, document)
    return found


def check_resources(classes: ResourceClasses, document: Document) -> None:
    """Raise unless domains, keys of recipes and names of classes are right.

    Raises:
        UserError: one is not, with its line.
    """
    for name, one in classes.items():
        with document.at("resources", name):
            if not re.fullmatch("[a-z][a-z0-9-]*", name):
                raise UserError(f"class {name!r}: give a name of small letters and digits")
        with document.at("resources", name, "domain"):
            for domain in one.domains:
                check_domain_name(domain)
        known = {
            key
            for domain in one.domains or DOMAINS
            for key in declaration(domain).recipe.model_fields
        }
        for key in one.recipe:
            with document.at("resources", name, "recipe", key):
                if key not in known:
                    raise unknown("key of a recipe", key, known)
