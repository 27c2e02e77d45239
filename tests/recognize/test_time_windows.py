"""WITHIN: up to which row matches may reach, for times of all types."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import estero
from estero.engine.row_patterns.windows import ends_of

PARTS = st.lists(
    st.lists(st.tuples(st.integers(-3, 9), st.integers(-5, 9)), min_size=1, max_size=6), max_size=4
)


@given(PARTS, st.booleans())
def test_ends_are_those_of_a_look_at_all_rows(parts: Sequence[list[tuple[int, int]]], rising: bool) -> None:
    expected: list[int] = []
    times: list[int] = []
    latest: list[int] = []
    for part in parts:
        own = sorted(time for time, _ in part)
        deadlines = [at + 2 for at in own] if rising else [deadline for _, deadline in part]
        expected += [len(times) + sum(at <= deadline for at in own) for deadline in deadlines]
        times += own
        latest += deadlines
    first = np.cumsum([0, *map(len, parts)])
    assert ends_of(np.array(times, np.int64), np.array(latest, np.int64), first).tolist() == expected


def groups(values: pa.Array, within: str, order: str = "") -> list[list[Any]]:
    """The times of rows in runs that a window holds."""
    text = f"""SELECT * FROM t MATCH_RECOGNIZE (ORDER BY t {order} MEASURES array_agg(t) AS ts
        PATTERN (a+) WITHIN {within} DEFINE a AS TRUE)"""
    found: list[list[Any]] = estero.sql(text, t=pa.table({"t": values})).to_arrow()["ts"].to_pylist()
    return found


DAY = datetime(2024, 5, 1)  # noqa: DTZ001 - a time without a zone


@pytest.mark.parametrize(
    ("values", "kind", "within"),
    [
        ([1, 2, 9], pa.int8(), "1"),
        ([2**60 + 1, 2**60 + 2, 2**60 + 9], pa.int64(), "2"),
        ([1, 2, 9], pa.uint64(), "1"),
        ([1, 2, 9], pa.int64(), "1.5"),
        ([1.5, 2.5, 9.5], pa.float32(), "1"),
        ([-0.5, 0.5, 9.0], pa.float64(), "1"),
        ([Decimal("9007199254740993.1"), Decimal("9007199254740994.1"), Decimal("9007199254740994.2")],
         pa.decimal128(20, 1), "1"),
        ([date(2024, 5, 1), date(2024, 5, 2), date(2024, 5, 9)], pa.date32(), "3"),
        ([date(2024, 5, 1), date(2024, 5, 2), date(2024, 5, 9)], pa.date32(), "INTERVAL 1 DAY"),
        ([time(1), time(2), time(9)], pa.time64("us"), "INTERVAL 1 HOUR"),
        ([DAY, DAY + timedelta(days=1), DAY + timedelta(days=9)], pa.timestamp("us"), "INTERVAL 1 DAY"),
    ],
)  # fmt: skip
def test_windows_are_exact_for_all_types(values: list[Any], kind: pa.DataType, within: str) -> None:
    column = pa.array(values, kind)
    first, second, third = column.to_pylist()
    assert groups(column, within) == [[first, second], [third]]
    assert groups(column, within, "DESC") in ([[third], [second, first]], [[third, second], [first]])
    assert groups(pa.array([third, None, first, None, second], kind), within) == [
        [first, second],
        [third],
        [None, None],
    ]


def test_nan_is_the_largest_and_infinity_is_not_null() -> None:
    nan, infinite = float("nan"), float("inf")
    assert str(groups(pa.array([nan, 1.0, 2.0]), "1")) == "[[1.0, 2.0], [nan]]"
    assert str(groups(pa.array([nan, 1.0, 2.0]), "1", "DESC")) == "[[nan], [2.0, 1.0]]"
    assert groups(pa.array([infinite, None, 1.0]), "1") == [[1.0], [infinite], [None]]
    assert groups(pa.array([-infinite, None, 1.0]), "1", "NULLS FIRST") == [[None], [-infinite], [1.0]]
