"""What the scripts of figures share: arguments, a training that is looked at, and a drawing.

All data are embedded unless they are named.
"""

import argparse
import logging

import matplotlib as mpl
import matplotlib.pyplot as plt
import torch

from contrastbench.benchmarks.cli.options import parse_losses, parse_pairs
from contrastbench.benchmarks.records.experiment import make_experiment
from contrastbench.benchmarks.running.opening import loss_on_device, open_domain
from contrastbench.benchmarks.running.training import train

mpl.use("svg")
mpl.rcParams |= {"svg.hashsalt": "contrastbench", "font.size": 9, "lines.linewidth": 1.2}
logging.getLogger("matplotlib").setLevel(logging.ERROR)


def arguments(text, domain=None, losses=(), further=(), given=None):
    """Return a script's arguments; `further` are its own, (name, default) each."""
    about = argparse.ArgumentParser(description=text.partition("\n")[0])
    about.add_argument("out", metavar="OUT.svg")
    about.add_argument("--tiny", action="store_true", help="a smoke test")
    about.add_argument("--loss", action="append", help="LOSS or LOSS(KEY=VALUE); may repeat")
    if domain:
        about.add_argument("--domain", default=domain)
        for name in ("--dataset", "--data-root"):
            about.add_argument(name)
        about.add_argument("--recipe", action="append", default=[], metavar="KEY=VALUE")
        about.add_argument("--seeds", type=int, default=1, help="number of seeds")
        about.add_argument("--results", default="results/figures", help="folder of records")
    for name, default in further:
        many = isinstance(default, list)
        kind = type(default[0] if many else default)
        about.add_argument(f"--{name}", type=kind, default=default, nargs="+" if many else None)
    args = about.parse_args(given)
    args.losses = parse_losses(args.loss or losses)
    if domain:
        args.recipe = parse_pairs("--recipe", args.recipe)
        args.title = f"{args.domain}, {args.dataset or 'embedded data'}"
    torch.set_num_threads(1)
    return args


def common(args):
    """Return the arguments that each `cb.run` of a script shares."""
    shared = ("dataset", "tiny", "results", "data_root")
    return {"seeds": range(args.seeds)} | {name: getattr(args, name) for name in shared}


def followed(args, loss, measure=None, seed=0, **recipe):
    """Return the domain, the trained model, and what each step's contrasts measure."""
    values = {**args.recipe, **recipe}
    experiment = make_experiment(args.domain, args.dataset, loss, values, args.tiny)
    opened = open_domain(experiment, seed, args.data_root, torch.device("cpu"))
    seen = []

    def look(contrasts, batch):
        with torch.no_grad():
            seen.append(measure and measure(contrasts))
        return contrasts

    torch.manual_seed(seed)
    model, _ = train(opened, loss_on_device(loss.make(), opened), look=look)
    return opened, model, seen


def panels(count, title, columns=3):
    """Return a figure and its axes."""
    rows, columns = -(-count // columns), min(count, columns)
    look = {"figsize": (3.6 * columns + 0.4, 3 * rows + 0.4), "layout": "constrained"}
    drawing, axes = plt.subplots(rows, columns, squeeze=False, **look)
    drawing.suptitle(title, fontsize=10)
    return drawing, axes.flatten()


def save(drawing, out):
    """Write the figure as SVG, the same bytes for the same numbers."""
    drawing.savefig(out, metadata={"Date": None})
    print(out)
