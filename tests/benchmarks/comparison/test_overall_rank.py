"""How methods stand over several domains."""

from pathlib import Path
from statistics import fmean

import pytest

from contrastbench.benchmarks.comparison.ranks import Ranks, standings
from contrastbench.benchmarks.comparison.statistics import rank
from contrastbench.benchmarks.tables.resolved import resolve
from contrastbench.benchmarks.tables.table import Table

EMPTY = Path("no", "such", "results")
TABLE = Table(
    title="t",
    source="s",
    decimals=1,
    domain="graph",
    columns={
        **{name: {"dataset": "MUTAG"} for name in ("A", "B", "C")},
        "T": {"dataset": "wine", "domain": "tabular"},
    },
    rows=[
        {"name": "raw", "loss": "none", "recipe": {"encoder": "raw"}},
        {"name": "untrained", "loss": "none"},
        {"name": "new", "loss": "adnce"},
    ],
)
SCORES = [[50.0, 60.0, 70.0], [50.0, 70.0, 60.0], [50.0, 60.0, 80.0], [90.0, 80.0, 70.0]]
PLACED = Ranks(["raw", "untrained", "new"], ["A", "B", "C", "T"], [], [], rank(SCORES), SCORES)


def test_each_set_counts_once_as_in_the_test_of_the_ranks() -> None:
    found = {one.row: one for one in standings(resolve(TABLE, None, EMPTY), PLACED)}
    assert found["raw"].by_domain == {"graph": 3.0, "tabular": 1.0}
    assert found["raw"].rank == 2.5
    assert found["new"].by_domain == {"graph": pytest.approx(4 / 3), "tabular": 3.0}
    assert [one.rank for one in found.values()] == sorted(rank(SCORES).ranks)


def test_the_interval_is_over_draws_of_sets() -> None:
    """Fewer than six sets have none: of two, a bootstrap draws one alone every second time."""
    found = {one.row: one for one in standings(resolve(TABLE, None, EMPTY), PLACED)}
    assert found["raw"].interval is None
    scores = [*SCORES[:1] * 5, SCORES[3]]
    six = Ranks(PLACED.rows, [*"AAAAAT"], [], [], rank(scores), scores)
    found = {one.row: one for one in standings(resolve(TABLE, None, EMPTY), six)}
    assert found["raw"].interval == (2.0, 3.0), "of six draws one in 16 has three tables"


def test_gains_are_over_the_untrained_encoder_not_over_raw_features() -> None:
    found = {one.row: one for one in standings(resolve(TABLE, None, EMPTY), PLACED)}
    assert found["untrained"].gain == 0.0
    assert found["new"].gain == pytest.approx(fmean([10, -10, 20, -10]))
    alone = TABLE.model_copy(update={"rows": [TABLE.rows[0], *TABLE.rows[2:]]})
    scores = [[a, c] for a, _, c in SCORES]
    without = Ranks(["raw", "new"], PLACED.columns, [], [], PLACED.ranking, scores)
    assert standings(resolve(alone, None, EMPTY), without)[0].gain is None


def test_what_counts_nodes_and_edges_is_not_the_untrained_encoder_either() -> None:
    columns = {name: {"dataset": "MUTAG"} for name in PLACED.columns}
    sizes = {"name": "raw", "loss": "none", "recipe": {"encoder": "sizes"}}
    table = Table.model_validate(
        {
            **TABLE.model_dump(include={"title", "source", "decimals", "domain"}),
            "columns": columns,
            "rows": [sizes, *(row.model_dump() for row in TABLE.rows[1:])],
        }
    )
    assert {one.row: one.gain for one in standings(resolve(table, None, EMPTY), PLACED)}[
        "untrained"
    ] == 0.0


def test_without_ranks_there_is_no_standing() -> None:
    assert standings(resolve(TABLE, None, EMPTY), Ranks([], [], [], [], None, [], "too few")) == []
