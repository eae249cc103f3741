"""Estimate times on a device without records: operations divided by its throughput."""

from pathlib import Path
from statistics import median
from typing import NamedTuple

from contrastbench.benchmarks.records import device_report
from contrastbench.benchmarks.records.experiment import Experiment
from contrastbench.benchmarks.sweeps.costs import Cost, Costs
from contrastbench.benchmarks.sweeps.operations import operations
from contrastbench.losses.errors import UserError


class Throughput(NamedTuple):
    """Operations a second by precision, of a device of this name, and where they are from."""

    device: str
    rates: dict[str, float]
    source: str


def throughput(name: str, results: Path, tflops: float | None = None) -> Throughput:
    """Return a device's throughput, as the user gave it or as `bench check-device` measured it.

    A training step's rate is taken before that of a large matrix product.

    Args:
        name: of the device's file in the folder devices/ of the results.
        results: the folder.
        tflops: 10^12 operations a second, in place of a measurement.

    Raises:
        UserError: neither is there.
    """
    if tflops is not None:
        rates = dict.fromkeys(("float32", "bf16"), tflops * 1e12)
        return Throughput(name, rates, f"{tflops:g} TFLOP/s, assumed by --tflops")
    path = device_report.place(results, name)
    if not path.exists():
        raise UserError(
            f"no measurement of {name!r} in {path.parent}: take {path.name} there from a machine "
            "that has run bench check-device, or assume --tflops 50"
        )
    report = device_report.read(path)
    found = report.throughput
    rates = {
        precision: found.get(f"step_flops_{precision}") or found.get(f"flops_{precision}", 0.0)
        for precision in ("float32", "bf16")
    }
    if not all(rates.values()):
        raise UserError(f"{path} has no throughput: run bench check-device again")
    shown = ", ".join(f"{rate / 1e12:.3g} in {precision}" for precision, rate in rates.items())
    return Throughput(report.device["name"], rates, f"TFLOP/s {shown}, measured ({path})")


class Estimates(Costs):
    """Seconds of records that the device made; else operations over its throughput."""

    def __init__(self, results: Path, device: Throughput) -> None:
        super().__init__(results)
        self.device = device

    def of(self, experiment: Experiment) -> Cost | None:
        """The cost of one seed; None if there is no such record, nor its size known."""
        measured = [
            record["seconds"]
            for record in experiment.records(self.results)
            if record["status"] == "ok"
            and record["environment"].get("device") == self.device.device
        ]
        if measured:
            return Cost(median(measured), same_recipe=True)
        asked = operations(experiment)
        if asked is None:
            return None
        seconds = asked.all / self.device.rates[asked.precision]
        return Cost(seconds, same_recipe=False, estimated=True)
