"""Trained encoders of tables as folders, with the statistics of their columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from contrastbench.domains import exported
from contrastbench.domains import own as owned
from contrastbench.domains.declaration import TestPart
from contrastbench.domains.exported import EXPORT_FIX, Listed
from contrastbench.domains.reading import reading, refuse
from contrastbench.domains.samples import Array
from contrastbench.domains.tabular import DATASETS, SOURCES, TabularRecipe, own
from contrastbench.domains.tabular.columns import Categories, Columns
from contrastbench.domains.tabular.data import NO_TABLE, load_rows
from contrastbench.domains.tabular.dates import with_days
from contrastbench.domains.tabular.domain import probe_evaluation
from contrastbench.domains.tabular.encoder import TabularModel, embed_rows
from contrastbench.domains.tabular.preprocessing import labelled_parts, split_rows
from contrastbench.domains.tabular.separated import read_csv, with_columns
from contrastbench.domains.tabular.table import column_array
from contrastbench.errors import UserError, plural, tell

if TYPE_CHECKING:
    import pandas

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
        import pandas as pd

        if isinstance(data, str | Path):
            data = self.of_file(Path(data), Path(data).suffix == ".parquet")
        return self.of_frame(pd.DataFrame(data))

    def of_file(self, path: Path, parquet: bool) -> "pandas.DataFrame":
        with reading(path, fault=NO_TABLE, extra="tabular"):
            fix = "give the path of a CSV or Parquet file"
            refuse("no file", (not path.is_file(), f" {path}: {fix}"))
            return own.read_parquet(path) if parquet else read_csv(path, self.words)

    @property
    def words(self) -> tuple[str, ...]:
        columns = self.columns.by_name.items()
        return tuple(name for name, column in columns if isinstance(column, Categories))

    def of_frame(self, frame: "pandas.DataFrame") -> dict[str, Array]:
        named = frame.rename(columns=str)
        frame = named[[name for name in self.columns.by_name if name in named.columns]]
        numbers = frame[[name for name in frame.columns if name not in self.words]]
        frame = with_columns(frame, with_days("the table", numbers, but="")[0])
        return {str(name): column_array(frame[name]) for name in frame.columns}

    def read(self, dataset: str, data_root: Path | None) -> Listed:
        parsed = owned.parse_source(dataset, SOURCES)
        if parsed is None:
            return Listed(load_rows(dataset, None, data_root)[0].columns)
        source, what = parsed
        with reading(dataset, fault=NO_TABLE, extra=source.extra):
            import pandas as pd

            if source.kind in ("csv", "parquet"):
                parquet = source.kind == "parquet"
                parts = [self.of_file(path, parquet) for path in owned.comma_files(what, data_root)]
            else:
                parts = list(own.READERS[source.kind](what, data_root).parts.values())
            return Listed(pd.concat(parts, ignore_index=True))


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
    roles = {} if dataset in DATASETS else opened.recipe.model_dump(include={*own.Roles._fields})
    table, _ = load_rows(dataset, data_root=data_root, lenient=True, **{**roles, "target": target})
    rows = split_rows(table, seed)
    x = opened.inputs(table.columns, dataset)
    parts = {
        name: part.to(device)
        for name, part in zip(rows._fields, labelled_parts(x, table, rows), strict=True)
    }
    test_part: TestPart = "redrawn" if table.starts is None else "fixed"
    return probe_evaluation(opened.network, parts, by, seed, test_part).metrics
