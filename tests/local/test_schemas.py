"""The columns of a stream."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import estero
from estero import DataError
from estero.local.schemas import schema_of
from local.streams import QUERY, events, expected, put, read_lines, stream, told

EVENTS = events(60)


def test_a_schema_is_what_sql_says() -> None:

    assert schema_of(
        "a STRING, b BIGINT, c DOUBLE, d BOOLEAN, e TIMESTAMP, f TIMESTAMP_NTZ, g DATE"
    ) == pa.schema(
        [
            ("a", pa.string()),
            ("b", pa.int64()),
            ("c", pa.float64()),
            ("d", pa.bool_()),
            ("e", pa.timestamp("us", "UTC")),
            ("f", pa.timestamp("us")),
            ("g", pa.date32()),
        ]
    )
    for text in ("", "a", "a ARRAY<INT>", "a INT) ; DROP TABLE b --"):
        with pytest.raises(DataError, match="schema"):
            schema_of(text)


def test_columns_that_nobody_names_are_those_of_the_first_events(tmp_path: Path) -> None:
    put(tmp_path / "in", 0, EVENTS)
    query = estero.query(QUERY)
    with stream(tmp_path, query, schema=None) as running:
        running.run(until_caught_up=True)
    assert told(read_lines(tmp_path / "out")) == expected(query, EVENTS)
