"""Rows of columns, taken as Arrow's own `take` has them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from estero.classify.vectors.taking import column_taken

COLUMNS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [1, -2, 3, 4]),
    (pa.uint16(), [1, 65_535, 3, 4]),
    (pa.float32(), [0.5, float("inf"), -0.0, 2.0]),
    (pa.int64(), [1, -(2**63), 3, 4]),
    (pa.bool_(), [True, False, True, True]),
    (pa.timestamp("us", "UTC"), [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4)]),
    (pa.date32(), [date(2026, 1, day) for day in (1, 2, 3, 4)]),
    (pa.time64("us"), [time(hour) for hour in (1, 2, 3, 4)]),
    (pa.duration("ms"), [timedelta(days=days) for days in (1, 2, 3, 4)]),
    (pa.decimal128(9, 2), [Decimal("1.25"), Decimal("-2.50"), Decimal(3), Decimal(4)]),
    (pa.string(), ["a", "", "of more than eight", "é"]),
    (pa.string_view(), ["a", "", "of more than sixteen letters", "é"]),
    (pa.large_string(), ["a", "", "of more than eight", "é"]),
    (pa.list_(pa.int64()), [[1], [], [2, 3], [4]]),
]


@pytest.mark.parametrize(("kind", "values"), COLUMNS, ids=[str(kind) for kind, _ in COLUMNS])
@pytest.mark.parametrize("missing", [None, 2])
@pytest.mark.parametrize("first", [0, 1])
def test_rows_are_those_that_arrow_takes(
    kind: pa.DataType, values: list[Any], missing: int | None, first: int
) -> None:
    column = pa.array([None if place == missing else value for place, value in enumerate(values)], kind)
    column = column.slice(first)
    for rows in ([2, 0, 0, 1], [1, 1, 1], []):
        taken = column_taken(column, np.array(rows, np.int64))
        taken.validate(full=True)
        assert taken.type == kind
        assert taken.to_pylist() == [column[row].as_py() for row in rows]


def test_rows_of_an_empty_column_are_none() -> None:
    for kind, _ in COLUMNS:
        assert len(column_taken(pa.array([], kind), np.empty(0, np.int64))) == 0
