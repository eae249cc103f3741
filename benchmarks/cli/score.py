"""The command `bench score`: score any encoder by a protocol of its domain."""

from pkgutil import resolve_name
from typing import Annotated

from typer import Option

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.output import print_json
from contrastbench.benchmarks.records import experiment
from contrastbench.benchmarks.records.seeds import SEED_LIMIT
from contrastbench.benchmarks.running.options import check_data_root
from contrastbench.domains import exported
from contrastbench.domains.registry import check_dataset, check_needs, declaration
from contrastbench.errors import UserError, check_known


def score(
    encoder: opt.Required,
    by: opt.Required,
    dataset: str | None = None,
    seed: Annotated[int | None, Option(min=0, max=SEED_LIMIT - 1)] = None,
    target: str | None = None,
    data_root: opt.DataRoot = None,
    device: str = "auto",
) -> None:
    """Score an encoder on a data set, and print the result as JSON.

    The encoder is yours, torchvision:NAME, or pretrainedmodels:bn_inception. The default seed is
    the seed of its training, whose test part it has not seen. Every protocol needs classes; rows
    without a class are left out.

    The protocols of a domain: bench list domains.

    Args:
        dataset: Data set; default: the one of its training.
        by: Protocol of the domain, such as transfer for images.
        seed: Seed of drawn parts, folds and episodes; default: the training's.

    Example: bench score --encoder torchvision:resnet50 --dataset CUB --by retrieval
    """
    check_data_root(data_root)
    domain = exported.domain_of(encoder)
    dataset = dataset or experiment.dataset_of(encoder)
    about = declaration(domain)
    if not about.protocols:
        own = " --loss none --recipe encoder=FOLDER" * ("encoder" in about.recipe.model_fields)
        raise UserError(f"domain {domain} cannot score other encoders: use bench run{own}")
    check_known("protocol", by, about.protocols)
    check_dataset(domain, dataset or "")
    if target is not None and "target" not in about.recipe.model_fields:
        raise UserError(f"domain {domain} has no target column: leave --target out")
    check_needs(domain)
    if dataset is None:
        raise UserError(f"{encoder} does not say what it was trained on: give --dataset")
    from contrastbench.benchmarks.running.devices import open_device

    scorer = resolve_name(about.scorer)
    seed = exported.seed_of(encoder) if seed is None else seed
    further = {} if target is None else {"target": target}
    metrics = scorer(encoder, dataset, by, seed, data_root, open_device(device), **further)
    about_it = {"domain": domain, "encoder": encoder, "dataset": dataset, "by": by, "seed": seed}
    print_json({**about_it, "metrics": metrics})
