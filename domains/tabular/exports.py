"""Trained encoders of tables as folders, with the statistics of their columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from contrastbench.domains import exported, own
from contrastbench.domains.declaration import TestPart
from contrastbench.domains.exported import EXPORT_FIX, Listed
from contrastbench.domains.reading import reading
from contrastbench.domains.samples import Array
from contrastbench.domains.tabular import DATASETS, SOURCES, TabularRecipe, preprocessing
from contrastbench.domains.tabular.data import NO_TABLE, load_rows
from contrastbench.domains.tabular.domain import probe_evaluation
from contrastbench.domains.tabular.encoder import TabularModel, embed_rows
from contrastbench.domains.tabular.preprocessing import Categories, Columns
from contrastbench.domains.tabular.table import Roles
from contrastbench.errors import UserError, plural, tell

MAX_SHOWN_CATEGORIES = 3  # of the unseen categories in a line


@dataclass(frozen=True)
class Encoder:
    """A frozen network, and the columns that become its inputs."""

    name: str
    network: nn.Module
    columns: Columns
    recipe: TabularRecipe
    device: torch.device

    def embed(self, data: Any) -> Tensor:
        """(rows, d) float32 on the CPU.

        Args:
            data: a data frame or what pandas makes one of, or the path of a CSV or Parquet file.
        """
        x = torch.from_numpy(self.inputs(self.table(data), "the table"))
        return embed_rows(self.network, x.to(self.device)).cpu()

    def inputs(self, table: Mapping[str, Array], what: str) -> Array:
        """(rows, inputs) of a table by column; categories that are new are named."""
        try:
            x = self.columns.encode(table)
        except UserError as error:
            raise UserError(f"{what} does not fit {self.name}: {error}") from None
        unseen = self.columns.unseen({name: table[name] for name in self.columns.used})
        for name, words in unseen.items():
            shown = ", ".join(map(repr, list(dict.fromkeys(words))[:MAX_SHOWN_CATEGORIES]))
            rows = f"{len(words)} row{plural(len(words))}"
            tell(f"{what}: column {name} has unknown categories in {rows}: {shown}")
        return x

    def table(self, data: Any) -> Mapping[str, Array]:
        with reading("the table", fault=NO_TABLE, extra="tabular"):
            from contrastbench.domains.tabular.own import columns_of, frame_of  # needs pandas

            return columns_of(frame_of(data, self.words), self.columns.by_name, self.words)

    @property
    def words(self) -> tuple[str, ...]:
        columns = self.columns.by_name.items()
        return tuple(name for name, column in columns if isinstance(column, Categories))

    def read(self, dataset: str, data_root: Path | None) -> Listed:
        parsed = own.parse_source(dataset, SOURCES)
        if parsed is None:
            return Listed(load_rows(dataset, None, data_root)[0].columns)
        source, what = parsed
        with reading(dataset, fault=NO_TABLE, extra=source.extra):
            from contrastbench.domains.tabular.own import all_rows

            return Listed(all_rows(source.kind, what, data_root, self.words))


def open_encoder(name: str, data_root: Path | None, device: torch.device) -> Encoder:
    weights, config = exported.read_export(Path(name), "tabular")
    with reading(name, EXPORT_FIX):
        recipe, columns = TabularRecipe(**config["recipe"]), Columns.of_json(config["columns"])
        network = TabularModel(columns.width, recipe, 0).encoder
        network.load_state_dict(weights)
    return Encoder(name, network.to(device).eval(), columns, recipe, device)


def score(
    encoder: str,
    dataset: str,
    by: str,
    seed: int,
    data_root: Path | None,
    device: torch.device,
    target: str | None = None,
) -> dict[str, float]:
    """Return the metrics of an exported encoder by that classifier.

    A declared set has its own classes and parts, whatever the encoder's table had; another table
    of one's own has that one's, or names its column of classes.
    """
    opened = open_encoder(encoder, data_root, device)
    target = target or (None if dataset in DATASETS else opened.recipe.target)
    roles = {} if dataset in DATASETS else opened.recipe.model_dump(include={*Roles._fields})
    table, _ = load_rows(dataset, data_root=data_root, lenient=True, **{**roles, "target": target})
    rows = preprocessing.split_rows(table, seed)
    x = opened.inputs(table.columns, dataset)
    labelled = preprocessing.labelled_parts(x, table, rows).items()
    parts = {name: part.to(device) for name, part in labelled}
    test_part: TestPart = "redrawn" if table.starts is None else "fixed"
    return probe_evaluation(opened.network, parts, by, seed, test_part).metrics
