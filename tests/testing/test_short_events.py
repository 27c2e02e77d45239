"""Events as short texts and as tables, and what cannot be read."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from estero.errors import DataError
from estero.testing import events


def test_events_have_types_attributes_and_times() -> None:
    table = events("A(k=1, s='it''s', ok=true)@0s\n B(k=2, s=word, v=-1.5e3)@1m30.5s C@2h")
    assert table.schema == pa.schema(
        [
            ("type", pa.string()),
            ("time", pa.timestamp("us")),
            ("k", pa.int64()),
            ("s", pa.string()),
            ("ok", pa.bool_()),
            ("v", pa.float64()),
        ]
    )
    begin = datetime.fromisoformat("1970-01-01")
    since = [timedelta(), timedelta(seconds=90, milliseconds=500), timedelta(hours=2)]
    assert table["time"].to_pylist() == [begin + each for each in since]
    assert table["s"].to_pylist() == ["it's", "word", None]
    assert table["v"].to_pylist() == [None, -1500.0, None]


def test_times_may_be_dates_or_ticks_or_missing() -> None:
    assert events("A@2026-03-02T12:00:05")["time"].to_pylist() == [
        datetime.fromisoformat("2026-03-02T12:00:05")
    ]
    assert events("A@-3 B@17")["time"].to_pylist() == [-3, 17]
    assert events("A B").column_names == ["type"]


def test_integers_and_floats_are_one_column() -> None:
    assert events("A(v=1) A(v=2.5) A(v=null)")["v"].to_pylist() == [1.0, 2.5, None]


def test_a_table_says_the_same() -> None:
    table = """
        | kind | at | k | name  |
        |------|----|---|-------|
        | A    | 0s | 1 | 'a,b' |
        | B    | 5s |   | c     |
    """
    assert events(table, type="kind", time="at") == events(
        "A(k=1, name='a,b')@0s B(name=c)@5s", type="kind", time="at"
    )


def test_an_empty_text_is_an_empty_stream() -> None:
    assert events("").num_rows == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A(k=)", "this is not how an event is written:\nA(k=)\n    ^"),
        ("A(k=1", "this is not how an event is written"),
        ("A@5s B@3s", "row 2: the time 3s is before 5s"),
        ("A@5s B", "row 2: the event has no time, but the one before it has 5s"),
        ("A@5 B@5s", "row 2: the event has 5s, but the one before it has 5"),
        ("A@5q", "row 1: '5q' is not a time"),
        ("A(k=1) B(k='x')", "column 'k': values of several kinds: 'x', 1"),
        ("A(k=99999999999999999999)", "column 'k'"),
        ("A(type=3)", "an attribute has the same name as the type: type"),
        ("kind | k\nA | 1", "the first row has no column type: kind | k"),
        ("type | k\nA | 1 | 2", "row 1: the row has 3 cells, but there are 2 columns"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, said: str) -> None:
    with pytest.raises(DataError) as error:
        events(text)
    assert said in str(error.value)
