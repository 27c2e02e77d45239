"""Types of Arrow that DuckDB lacks: half floats, decimals of a negative scale and of 256 bits, unions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import dataset, feather

import estero
from estero.answers.complex_event import ComplexEvent
from estero.errors import DataError

RISING = estero.query("SELECT * WHERE Event AS a ; Event AS b FILTER a.v < b.v")
ALL = estero.query("SELECT * WHERE Event AS a")
THOUSANDS = [Decimal("1E+3"), None, Decimal("-12E+3"), Decimal("3E+3")]
COLUMNS = {
    "half": pa.array([1.0, None, float("nan"), 2.5], pa.float16()),
    "half, encoded": pa.array([1.0, None, 0.5, 2.5], pa.float16()).dictionary_encode(),
    "thousands": pa.array(THOUSANDS, pa.decimal128(5, -3)),
    "wide": pa.array([Decimal("1.5"), None, Decimal("-2.5"), Decimal("2.5")], pa.decimal256(38, 1)),
}
NESTED = {
    "struct": pa.array([{"h": 1.5}, None, {"h": None}], pa.struct([("h", pa.float16())])),
    "list": pa.array([[1.5], None, []], pa.list_(pa.float16())),
    "large list": pa.array([[1.5], None, []], pa.large_list(pa.float16())),
    "list of one": pa.array([[1.5], None, [2.5]], pa.list_(pa.float16(), 1)),
    "map": pa.array([[("a", 1.5)], None, []], pa.map_(pa.string(), pa.float16())),
    "struct of thousands": pa.array([{"d": Decimal("2E+3")}], pa.struct([("d", pa.decimal128(5, -3))])),
}


class _Exported:
    """A table of which only the C stream is known."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, schema: Any = None) -> object:
        return self._table.__arrow_c_stream__(schema)


def _in_arrow_file(table: pa.Table, folder: Path) -> str:
    feather.write_feather(table, folder / "events.arrow", compression="uncompressed")
    return str(folder / "events.arrow")


def _batches(table: pa.Table, _: Path) -> Iterator[pa.RecordBatch]:
    return iter(table.to_batches(max_chunksize=1))


FORMS: dict[str, Callable[[pa.Table, Path], object]] = {
    "table": lambda table, _: table,
    "batches": _batches,
    "reader": lambda table, _: table.to_reader(),
    "stream": lambda table, _: _Exported(table),
    "dataset": lambda table, _: dataset.dataset(table),
    "arrow": _in_arrow_file,
}


def _pairs(column: pa.Array) -> list[tuple[int, int]]:
    """The pairs of rows with an increasing value, by Python, sorted; NaN is the largest number."""
    values = [None if value is None else (value != value, value) for value in column.to_pylist()]  # noqa: PLR0124
    return [
        (start, end)
        for start, first in enumerate(values)
        for end, last in enumerate(values)
        if start < end and first is not None and last is not None and first < last
    ]


def _place(match: ComplexEvent) -> tuple[int, int]:
    return match.start, match.end


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", COLUMNS)
def test_they_are_compared_wherever_they_come_from(name: str, form: str, tmp_path: Path) -> None:
    events = pa.table({"v": COLUMNS[name]})
    pairs = _pairs(COLUMNS[name])
    found = sorted(RISING.run(FORMS[form](events, tmp_path)), key=_place)
    assert [(match.start, match.end) for match in found] == pairs
    assert [match["a"][0]["v"] for match in found] == [COLUMNS[name][start].as_py() for start, _ in pairs]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NESTED)
def test_they_are_shown_inside_of_others(name: str, form: str, tmp_path: Path) -> None:
    events = pa.table({"v": NESTED[name]})
    found = ALL.run(FORMS[form](events, tmp_path))
    assert [match["a"][0]["v"] for match in found] == NESTED[name].to_pylist()


@pytest.mark.parametrize("name", COLUMNS)
def test_they_are_pushed(name: str) -> None:
    events = pa.table({"v": COLUMNS[name]})
    recognizer = RISING.recognizer(events.schema)
    pushed = [match for batch in events.to_batches(max_chunksize=2) for match in recognizer.push(batch)]
    assert sorted(map(_place, pushed)) == sorted(_pairs(COLUMNS[name]))
    recognizer = RISING.recognizer(events.schema)
    single = [match for row in events.to_pylist() for match in recognizer.push(row)]
    assert list(map(_place, single)) == list(map(_place, pushed))


@pytest.mark.parametrize("name", NESTED)
def test_they_are_pushed_inside_of_others(name: str) -> None:
    events = pa.table({"v": NESTED[name]})
    found = ALL.recognizer(events.schema).push(events)
    assert [match["a"][0]["v"] for match in found] == NESTED[name].to_pylist()


def test_decimals_with_too_many_digits_are_refused() -> None:
    for kind in (pa.decimal256(39, 0), pa.decimal256(38, -1)):
        events = pa.table({"v": pa.array([], kind)})
        for refused in (lambda: ALL.run(events), lambda: ALL.recognizer(events.schema)):  # noqa: B023
            with pytest.raises(DataError) as error:
                refused()
            assert str(error.value) == (
                f"column 'v': holds {kind}, and decimals have at most 38 digits\n"
                "  hint: cast it: to decimal128 if its values fit, else to float64"
            )


def test_unions_are_shown_but_not_pushed() -> None:
    kinds = pa.array([0, 1], pa.int8())
    events = pa.table({"v": pa.UnionArray.from_sparse(kinds, [pa.array([1, 2]), pa.array(["a", "b"])])})
    assert [match["a"][0]["v"] for match in ALL.run(events)] == [1, "b"]
    with pytest.raises(DataError) as error:
        ALL.recognizer(events.schema)
    assert str(error.value) == (
        "column 'v': holds sparse_union<0: int64=0, 1: string=1>, and unions cannot be pushed\n"
        "  hint: leave the column out, or cast it to the type of its values"
    )
