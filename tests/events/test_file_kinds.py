"""Files of several formats in one list, and directories that name columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import estero
from estero.errors import DataError
from estero.events.files.partitions import partitions_of
from events.file_kinds import KINDS, LAYOUT, PARTS, partitioned, rows_of_parts, several_files, written

QUERY = estero.query("SELECT x, y WHERE A AS x ; B AS y")

NO_TYPE = """\
there is no type column 'kind' in the table of {place}/b.parquet
  hint: the columns are typ, t"""

OF_TWO_KINDS = """\
column 't': 't' is an integer in the table of {place}/a.csv and a string in that of {place}/b.parquet
  hint: rename one of the two columns, or convert it"""


def events_of(found: estero.Answer) -> list[dict[str, Any]]:
    """The events of the answer to a query of single events, in order."""
    return [{k: v for k, v in ce["x"][0].items() if k != "position"} for ce in found]


# ------------------------------------------------------------------------------------ several formats


def test_files_of_several_formats_are_one_stream(tmp_path: Path) -> None:
    files = several_files(tmp_path)
    answer = estero.query("SELECT x WHERE (A OR B) AS x").run(files, **LAYOUT)
    rows = events_of(answer)
    assert [row["t"] for row in rows] == [0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32]
    assert rows[0] == {"kind": "A", "t": 0, "parquet": None, "csv": None, "jsonl": None, "arrow": "x"}
    assert rows[-1] == {"kind": "A", "t": 32, "parquet": "z", "csv": None, "jsonl": None, "arrow": None}


def test_without_a_time_events_come_in_the_order_of_the_list(tmp_path: Path) -> None:
    answer = estero.query("SELECT x WHERE (A OR B) AS x").run(several_files(tmp_path), type="kind")
    assert [row["t"] for row in events_of(answer)] == [30, 31, 32, 20, 21, 22, 10, 11, 12, 0, 1, 2]


def test_paths_and_tables_may_be_in_one_list(tmp_path: Path) -> None:
    here = written(pa.table({"kind": ["A"], "t": [1]}), tmp_path / "a.csv")
    events = [here, pa.table({"kind": ["B"], "t": [3]}), pd.DataFrame({"kind": ["B"], "t": [2]})]
    assert [ce.end_time for ce in QUERY.run(events, **LAYOUT)] == [2, 3]


def test_a_mapping_has_lists_and_frames(tmp_path: Path) -> None:
    parts = [pa.table({"t": [1], "n": [1]}), pa.table({"t": [5], "n": [2.5]})]
    files = [written(parts[0], tmp_path / "a.csv"), written(parts[1], tmp_path / "b.parquet")]
    events = {"A": files, "B": pd.DataFrame({"t": [3, 6]})}
    found = QUERY.run(events, time="t").to_arrow().to_pylist()
    assert [(row["start_time"], row["x"][0]["n"], row["end_time"]) for row in found] == [
        (1, 1.0, 3),
        (5, 2.5, 6),
        (1, 1.0, 6),
    ]


def test_what_passes_once_is_sorted_among_others(tmp_path: Path) -> None:
    def once(times: list[int], *kinds: str) -> Iterator[pa.RecordBatch]:
        return iter(pa.table({"t": times} | ({"kind": kinds} if kinds else {})).to_batches())

    here = written(pa.table({"kind": ["A", "B"], "t": [1, 2]}), tmp_path / "a.csv")
    answer = QUERY.run([here, once([0], "A")], **LAYOUT)
    for _ in range(2):
        assert [(ce.start_time, ce.end_time) for ce in answer] == [(1, 2), (0, 2)]
    several = QUERY.run({"A": once([3, 4]), "B": once([1, 5])}, time="t")
    assert [(ce.start_time, ce.end_time) for ce in several] == [(4, 5), (3, 5)]
    beside = QUERY.run({"B": pa.table({"t": [1, 5]}), "A": once([0, 3])}, time="t")
    assert [(ce.start_time, ce.end_time) for ce in beside] == [(0, 1), (3, 5), (0, 5)]


def test_a_list_of_one_file_is_that_file(tmp_path: Path) -> None:
    (first, *_) = several_files(tmp_path)
    assert QUERY.run([first], **LAYOUT).count() == QUERY.run(first, **LAYOUT).count() == 1


def test_csv_options_are_for_the_csv_files_of_a_list(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("kind|t\nA|1\n")
    other = written(pa.table({"kind": ["B"], "t": [2]}), tmp_path / "b.jsonl")
    answer = QUERY.run([tmp_path / "a.csv", other], csv_options={"delim": "|"}, **LAYOUT)
    assert answer.count() == 1
    with pytest.raises(DataError, match="csv_options are for CSV files, but there are none in the list"):
        QUERY.run([other], csv_options={"delim": "|"}, **LAYOUT)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"kind": ["B"], "u": [2]},
            "there is no time column 't' in the table of {place}/b.parquet\n  hint: the columns are kind, u",
        ),
        (
            {"typ": ["B"], "t": [2]},
            NO_TYPE,
        ),
        (
            {"kind": ["B"], "t": ["soon"]},
            OF_TWO_KINDS,
        ),
    ],
)
def test_files_that_do_not_go_together(tmp_path: Path, table: dict[str, Any], message: str) -> None:
    files = [
        written(pa.table({"kind": ["A"], "t": [1]}), tmp_path / "a.csv"),
        written(pa.table(table), tmp_path / "b.parquet"),
    ]
    with pytest.raises(DataError) as caught:
        QUERY.run(files, **LAYOUT)
    assert str(caught.value) == message.format(place=tmp_path)


def test_a_list_of_files_stands_for_events_alone(tmp_path: Path) -> None:
    files = several_files(tmp_path)
    for wrong in (lambda: QUERY.run([files[0], files], **LAYOUT), lambda: QUERY.recognizer(files, **LAYOUT)):
        with pytest.raises(DataError, match="a list of files cannot be read here: run, check"):
            wrong()
    with pytest.raises(DataError, match="the list of events is empty, so it has no columns"):
        QUERY.run([], **LAYOUT)


def test_a_directory_of_several_formats_asks_for_a_list(tmp_path: Path) -> None:
    several_files(tmp_path)
    with pytest.raises(DataError, match="to read them all, name them in a list"):
        QUERY.run(tmp_path, **LAYOUT)
    globs = [str(tmp_path / f"*.{form}") for form in KINDS]
    assert QUERY.run(globs, **LAYOUT).count() == QUERY.run(several_files(tmp_path), **LAYOUT).count()


# --------------------------------------------------------------------------- directories name columns


@pytest.mark.parametrize("form", KINDS)
def test_directories_name_columns(tmp_path: Path, form: str) -> None:
    every = estero.query("SELECT x WHERE (A OR B) AS x")
    place = partitioned(tmp_path, form)
    assert events_of(every.run(place, **LAYOUT)) == rows_of_parts()
    assert events_of(every.run(f"{place}/*/*/*/part.*", **LAYOUT)) == rows_of_parts()


@pytest.mark.parametrize("form", KINDS)
def test_the_column_of_a_directory_is_an_attribute_a_key_and_a_type(tmp_path: Path, form: str) -> None:
    place = partitioned(tmp_path, form)
    query = estero.query(
        "SELECT x, y WHERE A AS x ; B AS y FILTER x[year > 2023] AND x.day <= y.day PARTITION BY [station]"
    )
    assert [(ce.start_time, ce.end_time) for ce in query.run(place, **LAYOUT)] == [(3, 5), (2, 6)]
    by_station = estero.query("SELECT x, y WHERE n AS x ; `s t` AS y")
    found = by_station.run(place, type="station", time="t")
    assert [(ce.start_time, ce.end_time) for ce in found] == [(2, 3), (1, 3), (4, 5), (2, 5), (1, 5)]


def test_only_directories_below_the_path_name_columns(tmp_path: Path) -> None:
    place = partitioned(tmp_path / "run=7", "csv")
    year = place / "year=2024"
    found = estero.query("SELECT x WHERE A AS x").run(year, **LAYOUT).limit(1).to_arrow()
    assert set(found.column("x")[0].as_py()[0]) == {"kind", "t", "day", "station", "position"}
    file = next(place.rglob("*.csv"))
    assert set(events_of(estero.query("SELECT x WHERE A AS x").run(file, **LAYOUT))[0]) == {"kind", "t"}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "02", "-3"], "BIGINT"),
        (["1", "1.5"], "VARCHAR"),
        (["2024-02-29", "2023-01-01"], "DATE"),
        (["2023-02-29"], "VARCHAR"),
        (["__HIVE_DEFAULT_PARTITION__"], "VARCHAR"),
        (["__HIVE_DEFAULT_PARTITION__", "4"], "BIGINT"),
        (["99999999999999999999"], "VARCHAR"),
        ([""], "VARCHAR"),
    ],
)
def test_the_type_of_a_column_fits_all_directories(values: list[str], kind: str) -> None:
    found = partitions_of("d", [f"d/v={value}/f.csv" for value in values])
    assert found is not None
    assert [column.type for column in found.columns] == [kind]


@pytest.mark.parametrize("files", [["d/v=1/f.csv", "d/f.csv"], ["d/v=1/f.csv", "d/w=1/f.csv"], ["d/f.csv"]])
def test_directories_that_do_not_all_name_the_same_columns_name_none(files: list[str]) -> None:
    assert partitions_of("d", files) is None


def test_a_parquet_column_gives_way_to_its_directory(tmp_path: Path) -> None:
    table = pa.table({"kind": ["A"], "Year": [1], "t": [1]})
    written(table, tmp_path / "Year=2024" / "a.parquet")
    (row,) = events_of(estero.query("SELECT x WHERE A AS x").run(tmp_path, **LAYOUT))
    assert row == {"kind": "A", "t": 1, "Year": 2024}


def test_a_text_column_beside_its_directory_is_an_error(tmp_path: Path) -> None:
    file = written(pa.table({"kind": ["A"], "year": [1], "t": [1]}), tmp_path / "year=2024" / "a.csv")
    with pytest.raises(DataError) as caught:
        QUERY.run(tmp_path, **LAYOUT)
    assert str(caught.value).startswith(
        f"{file}, column 'year': the column is in the files and in the names of their directories"
    )


def test_parquet_files_without_rows_have_the_columns_of_directories(tmp_path: Path) -> None:
    nothing = pa.schema([("kind", pa.string()), ("t", pa.int64())]).empty_table()
    for name in PARTS:
        written(nothing, tmp_path / name / "a.parquet")
    assert estero.query("SELECT x WHERE A AS x FILTER x[year > 3]").run(tmp_path, **LAYOUT).count() == 0
