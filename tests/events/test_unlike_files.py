"""Files with types whose columns differ: all of them are read, and no value changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import estero
from estero.errors import DataError

PAIRS = estero.query("SELECT a.v AS one, b.v AS other WHERE A AS a ; B AS b")


def _write_arrow(table: pa.Table, place: Path) -> None:
    feather.write_feather(table, place, compression="uncompressed")


FORMATS: dict[str, Callable[[pa.Table, Path], None]] = {"parquet": pq.write_table, "arrow": _write_arrow}


def _files(folder: Path, form: str, *columns: dict[str, Any]) -> list[str]:
    """A file for each of the events, of the types A, B, A, …"""
    places = []
    for number, given in enumerate(columns):
        place = folder / f"{number}.{form}"
        FORMATS[form](pa.table({"type": ["AB"[number % 2]], **given}), place)
        places.append(str(place))
    return places


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("one", "other", "values"),
    [
        (pa.array([1], pa.int32()), pa.array([2.5]), (1.0, 2.5)),
        (pa.array([2.5]), pa.array([1], pa.int8()), (2.5, 1.0)),
        (pa.array([1], pa.int8()), pa.array([2**40]), (1, 2**40)),
        (pa.array([0.5], pa.float32()), pa.array([1e300]), (0.5, 1e300)),
        (pa.nulls(1, pa.string()), pa.array(["x"]).dictionary_encode(), (None, "x")),
        (pa.nulls(1), pa.array(["x"]), (None, "x")),
        (pa.array([0.5]), pa.nulls(1), (0.5, None)),
    ],
    ids=[
        "short integers, floats",
        "floats, short integers",
        "integers",
        "floats",
        "strings",
        "NULLs, strings",
        "floats, NULLs",
    ],
)
def test_numbers_of_several_types_keep_their_values(
    tmp_path: Path, form: str, one: pa.Array, other: pa.Array, values: tuple[object, object]
) -> None:
    places = _files(tmp_path, form, {"v": one}, {"v": other})
    for events in (str(tmp_path), str(tmp_path / f"*.{form}"), places):
        (match,) = PAIRS.run(events, type="type")
        assert (match["one"], match["other"]) == values


@pytest.mark.parametrize("form", FORMATS)
def test_columns_that_files_lack_are_null_in_their_rows(tmp_path: Path, form: str) -> None:
    _files(tmp_path, form, {"w": [1]}, {"v": [2], "w": [3]}, {"v": [4]}, {"w": [5], "v": [6]})
    found = PAIRS.run(str(tmp_path), type="type")
    assert [(match.start, match.end, match["one"], match["other"]) for match in found] == [
        (0, 1, None, 2),
        (2, 3, 4, 6),
        (0, 3, None, 6),
    ]
    shown = estero.query("SELECT * WHERE A AS a").run(str(tmp_path), type="type")
    assert [match["a"][0]["w"] for match in shown] == [1, None]


@pytest.mark.parametrize("form", FORMATS)
def test_values_of_different_kinds_are_an_error(tmp_path: Path, form: str) -> None:
    places = _files(tmp_path, form, {"v": [1]}, {"v": ["x"]})
    with pytest.raises(DataError) as error:
        PAIRS.run(str(tmp_path), type="type")
    assert str(error.value) == (
        f"column 'v': 'v' is an integer in the table of {places[0]} and a string in that of {places[1]}\n"
        "  hint: rename one of the two columns, or convert it"
    )


@pytest.mark.parametrize("form", FORMATS)
def test_they_are_not_the_schema_of_a_stream(tmp_path: Path, form: str) -> None:
    places = _files(tmp_path, form, {"v": [1]}, {"v": [2.5]})
    with pytest.raises(DataError) as error:
        PAIRS.recognizer(str(tmp_path), type="type")
    assert str(error.value) == (
        f"{places[1]}: the columns or their types are not those of {places[0]}\n"
        "  hint: Query.run reads such files together; here, name files that are alike"
    )


def test_directories_that_are_hidden_are_not_read(tmp_path: Path) -> None:
    for name, kind in (("a/x.csv", "A"), ("_b=1/x.csv", "B"), (".c/x.csv", "B"), ("_d/e/x.csv", "B")):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"type,v\n{kind},{name}\n")
    (match,) = estero.query("SELECT * WHERE B AS b").run(str(tmp_path), type="type")
    assert match["b"][0]["v"] == "_b=1/x.csv"
