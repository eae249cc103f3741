"""Tables of the Penn Machine Learning Benchmarks, pinned by commit and sha256."""

from collections.abc import Iterator
from pathlib import Path

from contrastbench.domains.declaration import declared_rows
from contrastbench.domains.tabular.dataset import TabularDataset

URL = "https://github.com/EpistasisLab/pmlb/raw/aeb924dcdc2b74c31fb87c2013c839e9ad3e77db/datasets/classification/{0}/{0}.tsv.gz"
SHIPPED = Path(__file__).with_name("shipped")
CITATION = (
    "Olson et al., PMLB: a large benchmark suite for machine learning evaluation and comparison, "
    "BioData Mining 10:36, 2017"
)


def pmlb_tables() -> Iterator[TabularDataset]:
    """Yield the tables of the collection that `pmlb.csv` has; categories are numbers there.

    The column `equal` is the percent of test rows that equal a training row, from 1 on.
    """
    for row in declared_rows(Path(__file__).with_name("pmlb.csv")):
        name, rows, features = row["name"], int(row["rows"]), int(row["features"])
        shipped = SHIPPED / f"{name}.tsv.gz"
        yield TabularDataset(
            name,
            f"{rows:,} rows, {features} features, {row['classes']} classes (PMLB)",
            URL.format(name),
            row["sha256"],
            citation=CITATION,
            licence="MIT",
            sizes=(rows, features + 1),
            folder="pmlb",
            shipped=shipped if shipped.is_file() else None,
            reader="data:read_tabbed",
            target="target",
            equal=float(row["equal"] or 0),
        )
