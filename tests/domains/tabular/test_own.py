"""Tables that users bring: files with a test part of their own, the hub's format."""

from decimal import Decimal
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import pyarrow as arrow
import pytest
from pyarrow import parquet
from sklearn.utils import Bunch

from contrastbench.domains.own import read_unchanged
from contrastbench.domains.tabular.data import load_rows
from contrastbench.domains.tabular.preprocessing import split_rows
from contrastbench.domains.tabular.separated import ZEROS_NOTE
from contrastbench.losses import UserError


def frame(rows: int, start: int = 0) -> "pd.DataFrame":
    numbers = range(start, start + rows)
    return pd.DataFrame({"a": numbers, "y": [("no", "yes")[k % 2] for k in numbers]})


def write(path: Path, table: "pd.DataFrame") -> Path:
    table.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


def test_a_second_file_is_the_test_part(tmp_path: Path) -> None:
    write(tmp_path / "train.csv", frame(20))
    write(tmp_path / "test.csv", frame(6, start=20))
    table, digest = load_rows("csv:train.csv,test.csv", "y", tmp_path)
    assert (table.starts, len(table)) == ((None, 20), 26)
    parts = [split_rows(table, seed) for seed in (0, 1)]
    for part in parts:
        assert part.test.tolist() == list(range(20, 26)), "the same for every seed"
        assert sorted([*part.train, *part.validation]) == list(range(20))
        assert len(part.validation) == 5
    assert set(parts[0].train) != set(parts[1].train)
    write(tmp_path / "all.csv", frame(26))
    assert load_rows("csv:all.csv", "y", tmp_path)[1] != digest, "another part of the same rows"


def test_a_comma_may_be_part_of_a_name(tmp_path: Path) -> None:
    write(tmp_path / "a,b.csv", frame(20))
    assert load_rows("csv:a,b.csv", "y", tmp_path)[0].starts is None


@pytest.mark.parametrize("validation", [True, False])
def test_a_column_says_which_row_is_whose(validation: bool, tmp_path: Path) -> None:
    part = [("Train", "dev" if validation else "train", "TEST")[k // 8] for k in range(24)]
    order = np.random.default_rng(0).permutation(24)
    write(tmp_path / "t.tsv", frame(24).assign(part=part).iloc[order])
    table, _ = load_rows("csv:t.tsv", "y", tmp_path, split="part")
    assert table.names == ("a",), "the column is no feature"
    assert table.starts == ((8, 16) if validation else (None, 16))
    assert set(table.numeric[16:, 0]) == set(range(16, 24))
    if validation:
        assert set(table.numeric[8:16, 0]) == set(range(8, 16))


@pytest.mark.parametrize(
    ("files", "column", "starts"),
    [("whole", True, (None, 16)), ("whole", False, None), ("train,test", True, (None, 16))],
)
def test_another_tables_roles_split_by_a_column_where_it_is_needed(
    files: str, column: bool, starts: tuple[int | None, int] | None, tmp_path: Path
) -> None:
    table = frame(24).assign(**{"part": ["train"] * 16 + ["test"] * 8} if column else {})
    for name, rows in (("whole", table), ("train", table[:16]), ("test", table[16:])):
        write(tmp_path / f"{name}.csv", rows)
    what = ",".join(f"{name}.csv" for name in files.split(","))
    of_another = {"split": "part", "drop": ("c",), "groups": "d", "lenient": True}
    assert load_rows(f"csv:{what}", "y", tmp_path, **of_another)[0].starts == starts


def test_rows_without_a_class_move_the_parts(tmp_path: Path) -> None:
    first = frame(20)
    first.loc[3, "y"] = None
    write(tmp_path / "train.csv", first)
    write(tmp_path / "test.csv", frame(6, start=20))
    table, _ = load_rows("csv:train.csv,test.csv", "y", tmp_path)
    assert (table.starts, table.numeric[19, 0]) == ((None, 19), 20)


def test_words_for_what_is_missing_are_words_among_words(tmp_path: Path) -> None:
    kinds = ["None", "null", "n/a", "NA", "?", ""] * 5
    table = frame(30).assign(kind=kinds, b=[*["null", "NaN", "", "1e3", "7", "2.5"] * 5])
    write(tmp_path / "a.csv", table.assign(y=["None", "Apnea", "null", "null", "None"] * 6))
    read, _ = load_rows("csv:a.csv", "y", tmp_path)
    assert (read.classes, len(read), read.notes) == (("Apnea", "None", "null"), 30, {})
    assert read.names == ("a", "b", "kind")
    assert sorted(set(read.categorical[:, 0])) == ["", "None", "n/a", "null"]
    assert np.isnan(read.numeric[:6, 1]).tolist() == [True, True, True, False, False, False]


def test_truth_values_with_a_hole_in_one_file(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", frame(20).assign(b=[True, False] * 10))
    write(tmp_path / "b.csv", frame(6).assign(b=[True, False, None] * 2))
    read, _ = load_rows("csv:a.csv,b.csv", "y", tmp_path)
    assert sorted(set(read.categorical[:, 0])) == ["", "False", "True"]


def test_decimals_and_very_large_numbers_are_numbers(tmp_path: Path) -> None:
    table = frame(20).assign(price=[Decimal(k) / 4 for k in range(20)])
    table.to_parquet(tmp_path / "a.parquet")
    assert load_rows("parquet:a.parquet", "y", tmp_path)[0].names == ("a", "price")
    write(tmp_path / "a.csv", frame(20).assign(b=[10**26 + k * 10**20 for k in range(20)]))
    assert load_rows("csv:a.csv", "y", tmp_path)[0].names == ("a", "b")


def test_a_folder_of_the_datasets_library(tmp_path: Path) -> None:
    parts = {"train": frame(20), "validation": frame(4, 20), "test": frame(6, 24)}
    splits = {name: datasets.Dataset.from_pandas(part) for name, part in parts.items()}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "mine")
    table, _ = load_rows("hf:mine", "y", tmp_path)
    assert (table.starts, table.names, len(table)) == ((20, 24), ("a",), 30)
    splits["train"].to_parquet(tmp_path / "t.parquet")
    whole, digest = load_rows("hf:t.parquet", "y", tmp_path)
    assert (whole.starts, digest) == (None, load_rows("parquet:t.parquet", "y", tmp_path)[1])
    splits["train"].save_to_disk(tmp_path / "kept")
    assert load_rows("hf:kept", "y", tmp_path)[1] == digest
    datasets.Dataset.from_dict({"a": [[1]] * 20, "y": [0, 1] * 10}).save_to_disk(tmp_path / "n")
    with pytest.raises(UserError, match="hf:n is no table: column a is no single value"):
        load_rows("hf:n", "y", tmp_path)


@pytest.mark.parametrize("name", ["parquet:t.parquet", "hf:t.parquet"])
def test_a_doubled_name_is_refused(name: str, tmp_path: Path) -> None:
    columns = [list(range(20)), *[["no", "yes"] * 10] * 2]
    rows = arrow.table(columns, names=["a", "y", "y"])
    parquet.write_table(rows, tmp_path / "t.parquet")
    with pytest.raises(UserError, match="several columns have the name y: rename or remove them"):
        load_rows(name, "y", tmp_path)


def test_a_column_that_tells_the_class_is_named(tmp_path: Path) -> None:
    y = np.array(["no", "yes", "maybe"] * 10)
    table = pd.DataFrame({"a": range(60, 0, -2), "y": y}).assign(
        copy=y,
        number=[7, 3, 1.5] * 10,
        renamed=["n", "y", ""] * 10,
        holes=["", "", *y[2:]],
        numbers_with_holes=[None, *[3, 1.5, 7] * 9, 3, 1.5],
        coarse=["n", "y", "y"] * 10,
        fine=[f"{label}{k % 2}" for k, label in enumerate(y)],
        other=["n", "y", "m"] * 9 + ["n", "y", "y"],
        random=np.random.default_rng(0).permutation(y),
    )
    telling = ["number", "numbers_with_holes", "copy", "renamed", "holes", "fine"]
    doubts = load_rows(f"csv:{write(tmp_path / 't.csv', table)}", "y")[0].doubts
    assert [*doubts.values()] == [telling]


def test_a_row_number_is_not_taken_for_the_class(tmp_path: Path) -> None:
    table, _ = load_rows(f"csv:{write(tmp_path / 't.csv', frame(10))}", "y")
    assert table.doubts == {"columns that number the rows, or sort them by class": ["a"]}


def test_numbers_that_are_no_amounts_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.array(["no", "yes"])[rng.integers(2, size=60)]
    table = pd.DataFrame({"age": rng.integers(18, 90, 60), "weight": rng.normal(70, 9, 60), "y": y})
    table["case id"] = np.arange(60) // 2
    table["key"] = 10**17 + rng.permutation(60) // 2
    table["points"] = rng.integers(90, 100, 60)  # 99 is among them
    table["Postal Code"] = [f"{k:05}" for k in rng.integers(1000, 99999, 60)]
    table["phone"] = [f"+4930{k}" for k in rng.integers(10**6, 10**7, 60)]
    table.loc[:2, "age"], table.loc[5:9, "weight"] = 999, -99
    found, _ = load_rows(f"csv:{write(tmp_path / 't.csv', table)}", "y")
    codes, missing, ids, long = sorted(found.doubts.values())
    assert (codes, ids, long) == (["Postal Code"], ["case id"], ["key"])
    assert missing == ["age 999 (3 times)", "weight -99 (5 times)"]
    assert found.notes[ZEROS_NOTE] == ["Postal Code", "phone"]


def test_a_column_of_parts_that_is_not_split_by_is_named(tmp_path: Path) -> None:
    table = frame(30).assign(part=["Train", "test", "val"] * 10)
    assert [*load_rows(f"csv:{write(tmp_path / 't.csv', table)}", "y")[0].doubts.values()] == [
        ["a"],
        ["part"],
    ]


def test_blanks_without_a_break_are_no_part_of_numbers(tmp_path: Path) -> None:
    rows = [f"\xa0{k}|{k % 3},5|{'no' if k % 2 else 'yes'}" for k in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["a|b|y", *rows]), encoding="utf-8")
    table, _ = load_rows("csv:t.csv", "y", tmp_path)
    assert table.numeric[3].tolist() == [3.0, 0.5]


@pytest.mark.parametrize("start", [0, 100])
def test_row_numbers_of_sorted_rows_are_named(start: int, tmp_path: Path) -> None:
    """Row numbers written by `to_csv` are named, also from a table shuffled afterwards."""
    note = "columns that number the rows, or sort them by class"
    table = frame(30).assign(a=[k % 7 for k in range(30)]).sort_values("y", ignore_index=True)
    table.index += start
    for rows in (table, table.sample(frac=1, random_state=0), table.drop(start + 3)):
        rows.to_csv(tmp_path / "t.csv")
        assert load_rows("csv:t.csv", "y", tmp_path)[0].doubts == {note: ["Unnamed: 0"]}
    table.index = table.index[::-1] // 2
    table.to_csv(tmp_path / "t.csv")
    assert load_rows("csv:t.csv", "y", tmp_path)[0].doubts == {}, "two rows share a number"


def test_rows_that_a_stray_quote_swallows_are_noted(tmp_path: Path) -> None:
    rows = [f"{k},w{k % 3},{'no' if k % 2 else 'yes'}" for k in range(40)]
    rows[10], rows[20] = rows[10].replace("w", '"w'), rows[20].replace("w2", 'w2"')
    (tmp_path / "t.csv").write_text("\n".join(["a,w,y", *rows]))
    table, _ = load_rows("csv:t.csv", "y", tmp_path)
    note = "columns of texts with line breaks, perhaps by a stray quote"
    assert (len(table), table.doubts) == (30, {note: ["w"]})


def test_nested_columns_of_a_parquet_file_are_refused(tmp_path: Path) -> None:
    for value, fault in (([1, 2], "holds lists"), ({"b": 1}, "is no single value")):
        columns = {"a": [value] * 20, "y": ["no", "yes"] * 10}
        parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
        with pytest.raises(UserError, match=rf"t\.parquet.*: column a {fault}"):
            load_rows("parquet:t.parquet", "y", tmp_path)


def test_columns_of_distinct_words_are_refused(tmp_path: Path) -> None:
    """Half of the rows may have words of their own, and so may all rows of a small table."""
    table = frame(60).assign(
        name=[f"n{k}" for k in range(60)],
        note=[f"n{k % 31}" for k in range(60)],
        town=[f"t{k % 30}" for k in range(60)],
        rare=[f"r{k}" if k < 20 else "" for k in range(60)],
    )
    write(tmp_path / "t.csv", table)
    with pytest.raises(UserError) as error:
        load_rows("csv:t.csv", "y", tmp_path)
    assert str(error.value) == (
        "csv:t.csv: most words stand in one row only in name, note: leave out what no rows share "
        "with --recipe 'drop=[name, note]', and write numbers as 12.5"
    )
    assert load_rows("csv:t.csv", "y", tmp_path, drop=("name", "note"))[0].names == (
        "a",
        "town",
        "rare",
    )
    write(tmp_path / "t.csv", frame(20).assign(name=[f"n{k}" for k in range(20)]))
    assert load_rows("csv:t.csv", "y", tmp_path)[0].names == ("a", "name")


def test_columns_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "whole.csv", frame(20).assign(b=1.5, part=["train"] * 14 + ["test"] * 6))
    table, digest = load_rows("csv:whole.csv", "y", tmp_path, split="part", drop=("b",))
    assert table.names == ("a",)
    write(tmp_path / "rest.csv", frame(20).assign(part=["train"] * 14 + ["test"] * 6))
    assert load_rows("csv:rest.csv", "y", tmp_path, split="part")[1] == digest


def test_a_table_of_openml_has_its_own_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    details = {"name": "mine", "version": "2"}
    bunch = Bunch(frame=frame(20), target_names=["y"], details=details)
    monkeypatch.setattr(
        "contrastbench.domains.tabular.own.fetch_openml",
        lambda **asked: asks.append(asked) or bunch,
    )
    asks: list[dict[str, object]] = []
    table, digest = load_rows("openml:61", data_root=tmp_path)
    assert (asks[0]["data_id"], asks[0]["data_home"]) == (61, str(tmp_path))
    assert table.notes == {"table of OpenML": "mine, version 2"}
    write(tmp_path / "t.csv", frame(20))
    assert load_rows("csv:t.csv", "y", tmp_path)[1] == digest


def no_network(*_: object, **__: object) -> None:
    raise ConnectionError("no route")


@pytest.mark.filterwarnings("ignore:Invalid cache")  # of scikit-learn, which asks twice
def test_sets_of_others_need_a_network_or_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", no_network)  # its arguments are checked
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", no_network)
    for name, said in {
        "openml:61": r"openml:61 cannot be had \(no route\): give the number",
        "hf:imdb": r"no folder or file imdb and the hub gives no such set \(no route\): datasets",
    }.items():
        with pytest.raises(UserError, match=said):
            load_rows(name, "y")


def test_a_set_of_the_hub_is_that_of_its_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks: list[tuple[object, ...]] = []

    def info(self: object, name: str, revision: str | None) -> Bunch:
        return Bunch(sha={"abc": "a" * 40, "none": None}.get(revision, "b" * 40))

    def load(name: str, part: str | None, revision: str) -> object:
        asks.append((name, part, revision))
        return datasets.DatasetDict({"train": datasets.Dataset.from_pandas(frame(20))})

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", info)
    monkeypatch.setattr("datasets.load_dataset", load)
    first, digest = load_rows("hf:me/mine", "y", tmp_path)
    assert first.notes == {"hub revision": "b" * 40}
    pinned = load_rows("hf:me/mine:german@abc", "y", tmp_path)
    assert (pinned[0].notes, pinned[1]) == ({"hub revision": "a" * 40}, digest)
    assert asks == [("me/mine", None, "b" * 40), ("me/mine", "german", "a" * 40)]
    (tmp_path / "me/other").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for name in ("csv", "me/other:part", "me/other", ""):  # `datasets` would read files here
        with pytest.raises(UserError, match="is of files here"):
            load_rows(f"hf:{name}@{'0' * 40}", "y", None)
    with pytest.raises(UserError, match="is at no commit of the hub"):
        load_rows("hf:me/mine@none", "y", tmp_path)
    assert len(asks) == 2


DAYS = pd.date_range("2020-01-01", periods=60).astype(str)
NOISE = np.random.default_rng(0).normal(size=60).round(3)
KINDS = np.array(["no", "yes"])[NOISE.argsort().argsort() % 2]


@pytest.mark.parametrize(
    ("column", "named"),
    [
        ([*NOISE[:57], *[9999.9] * 3], "v 9999.9 (3 times)"),
        ([*NOISE[:59], -(2**31)], "v -2147483648 (1 times)"),
        ([*NOISE[:58], *[9999.9] * 2], None),
        ([*NOISE[:57], *[3.1] * 3], None),
        ([*range(43, 99), *[99] * 4], "v 99 (4 times)"),  # a code of nines, beside what it is near
        ([*range(-98, -42), *[-99] * 4], "v -99 (4 times)"),
        ([*range(-47, 9), *[9] * 4], None),
        ([*range(43, 97), *[98] * 3, *[99] * 3], None),  # no oftener than another
        ([*DAYS[57:], *DAYS[:54], *["1900-01-01"] * 3], "v 1900-01-01 (3 times)"),
        (DAYS[:30].repeat(2), "v"),  # in the order of time
        (DAYS[29::-1].repeat(2), None),
        ((KINDS == "no") * 9 + NOISE, "v"),  # whose cut tells the class
        ([f"{kind[0]}{k % 5}" for k, kind in enumerate(KINDS)], "v"),  # each has one class
        ([f"{kind[0]}{k}" for k, kind in enumerate(KINDS)][:20] * 3, None),
        ([None] * 60, None),  # nor is NumPy's warning of it said
    ],
)
def test_a_column_that_is_not_meant_so_is_named(
    column: list[object], named: str | None, tmp_path: Path
) -> None:
    table = pd.DataFrame({"v": column, "w": NOISE[::-1], "y": KINDS})
    doubts = load_rows(f"csv:{write(tmp_path / 't.csv', table)}", "y")[0].doubts
    assert [*doubts.values()] == ([[named]] if named else [])


def test_test_rows_of_another_unit_are_named(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", pd.DataFrame({"v": NOISE, "w": NOISE[::-1], "y": KINDS}))
    write(tmp_path / "b.csv", pd.DataFrame({"v": 1000 * NOISE, "w": NOISE, "y": KINDS}))
    doubts = load_rows("csv:a.csv,b.csv", "y", tmp_path)[0].doubts
    assert [*doubts.values()] == [["v"]]


def test_a_column_may_be_called_self(tmp_path: Path) -> None:
    table = frame(20).assign(day=DAYS[:20]).rename(columns={"day": "self"})
    assert load_rows(f"csv:{write(tmp_path / 't.csv', table)}", "y")[0].names == ("a", "self")


def test_numbers_kept_as_texts_are_named(tmp_path: Path) -> None:
    table = pd.DataFrame({"v": NOISE.astype(str), "y": KINDS})
    table.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(UserError, match="column v has numbers kept as texts: save them"):
        load_rows("parquet:t.parquet", "y", tmp_path)
    table.assign(v=(NOISE.argsort() % 24).astype(str)).to_parquet(tmp_path / "t.parquet")
    read_unchanged.cache_clear()
    assert [*load_rows("parquet:t.parquet", "y", tmp_path)[0].doubts.values()] == [["v"]]


def test_rows_that_are_equal_but_for_noise_are_counted(tmp_path: Path) -> None:
    """Not so where a column is large beside what it varies by, such as a time."""
    table = pd.DataFrame({"v": NOISE + 1e6, "w": NOISE[::-1], "y": KINDS})
    twins = table.assign(v=table.v + 1e-9, w=table.w + 1e-9)
    write(tmp_path / "t.csv", pd.concat([table, twins]))
    read, _ = load_rows("csv:t.csv", "y", tmp_path)
    rows = np.arange(120)
    assert [len({*keys}) for keys in (read.keys(rows), read.near_keys(rows))] == [120, 60]


def test_a_named_index_is_named(tmp_path: Path) -> None:
    frame(20).set_index(DAYS[:20].rename("when")).to_parquet(tmp_path / "t.parquet")
    notes = load_rows("parquet:t.parquet", "y", tmp_path)[0].notes
    assert notes == {"index of pandas, left out": ["when"]}
