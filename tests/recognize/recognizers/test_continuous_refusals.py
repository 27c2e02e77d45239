"""A recognizer of a stream without an end: what it refuses, and texts that are times."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

import estero
from estero.recognize.recognizers.continuous import ContinuousRecognizer
from recognize.recognizers.continuous import QUERY, ROWS, SCHEMA, begun, row, spans, table


def message_of(recognizer: ContinuousRecognizer, events: object) -> str:
    """The error of a push, which must not have changed anything."""
    before = recognizer.snapshot()
    with pytest.raises(estero.DataError) as caught:
        recognizer.push(events)
    assert recognizer.snapshot() == before
    return str(caught.value)


def test_batches_of_another_form_are_refused_and_change_nothing() -> None:
    recognizer = begun(lateness=5)
    recognizer.push([row("A", 1), row("A", 3)])
    good = table(*ROWS)
    assert message_of(recognizer, good.drop_columns(["n"])) == (
        "there is no column 'n'\n  hint: the columns are kind, ts, k"
    )
    assert message_of(recognizer, good.set_column(2, "n", pa.array(["1", "2", "3"]))) == (
        "column 'n': holds string, but int64 was declared"
    )
    large = pa.array([1, 2**63, 3], pa.uint64())
    assert message_of(recognizer, good.set_column(2, "n", large)).startswith(
        "column 'n': does not fit into int64: "
    )
    assert message_of(recognizer, [row("A", 1), {"kind": "A", "k": "x"}]) == (
        "row 2, column 'ts': the time is NULL\n"
        "  hint: every event needs a time: drop such rows first, or name another time column"
    )
    assert message_of(recognizer, {"kind": "A", "ts": "soon"}).startswith(
        "column 'ts': not a value of type int64: "
    )
    assert message_of(recognizer, [row("A", 1), row("A", 2) | {"n": "many"}]).startswith(
        "row 2, column 'n': not a value of type int64: "
    )
    assert message_of(recognizer, [row("A", 1), ("A", 2)]) == (
        "row 2: the event has 2 values, but there are 4 columns\n  hint: the columns are kind, ts, n, k"
    )
    assert message_of(recognizer, 17).startswith("events of type int cannot be read\n  hint: pass a path")
    assert spans(recognizer.push(row("B", 8))) == []
    assert spans(recognizer.flush()) == [(0, 2), (1, 2)]


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"kind": "A", "ts": "soon"}, "column 'ts': not a value of type int64: "),
        ({"kind": "A", "k": "x"}, "row 1, column 'ts': the time is NULL\n"),
        (("A", 1, 2**63, "x"), "column 'n': not a value of type int64: "),
        (("A", 1), "row 1: the event has 2 values, but there are 4 columns\n"),
        (("A", 1, 0, "\ud800"), "column 'k': not a value of type string: "),
        (table(row("A", 1)).drop_columns(["n"]), "there is no column 'n'\n"),
    ],
)
def test_a_single_event_of_another_form_is_refused(event: object, message: str) -> None:
    recognizer = begun()
    recognizer.push(row("A", 1))
    assert message_of(recognizer, event).startswith(message)
    assert spans(recognizer.push(row("B", 8))) == [(0, 1)]


def test_an_overflow_in_a_predicate_changes_nothing() -> None:
    recognizer = estero.query("SELECT * WHERE A FILTER A[n + 1 > 0]").recognizer(SCHEMA, type="kind")
    assert message_of(recognizer, row("A", 0, n=2**63 - 1)).startswith("a number does not fit into 64 bits")
    assert recognizer.push(row("A", 0)).count() == 1


def test_files_are_not_pushed(tmp_path: object) -> None:
    path = f"{tmp_path}/events.csv"
    table(*ROWS).to_pandas().to_csv(path, index=False)
    assert message_of(begun(), path) == (
        f"{path}: a file cannot be pushed: read it first, or use Query.run, which reads files"
    )


def test_types_with_tables_of_their_own_are_pushed_by_name() -> None:
    recognizer = QUERY.recognizer({"A": SCHEMA, "B": SCHEMA}, time="ts", time_unit="s")
    assert message_of(recognizer, {"C": table()}) == "there is no type 'C' here, only A, B"
    assert message_of(recognizer, table(*ROWS)) == (
        "each type has its own table here: push a mapping of type name to events, not Table"
    )
    assert message_of(recognizer, {"A": table().drop_columns(["n"])}) == (
        "there is no column 'n' in the events of A\n  hint: the columns are kind, ts, k"
    )


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"lateness": -1}, ValueError, "a lateness cannot be negative: -1"),
        ({"lateness": timedelta(seconds=-1)}, ValueError, "a lateness cannot be negative: -1 day, 23:59:59"),
        ({"lateness": "-5 s"}, ValueError, "a lateness cannot be negative: -5 s"),
        ({"lateness": 2**63}, ValueError, f"a lateness of {2**63} does not fit in 64 bits"),
        (
            {"lateness": "99999999999999999 weeks"},
            ValueError,
            "a lateness of 99999999999999999 weeks does not fit in 64 bits",
        ),
        ({"lateness": "soon"}, ValueError, "a lateness is a duration such as '5 seconds', not 'soon'"),
        (
            {"lateness": "5 parsecs"},
            ValueError,
            "a lateness is a duration such as '5 seconds', not '5 parsecs'",
        ),
        (
            {"lateness": "5 s", "time_unit": None},
            ValueError,
            (
                "the time column has no unit, so '5 s' has no meaning there: "
                "say its time_unit, or give a number of ticks"
            ),
        ),
        (
            {"lateness": 5, "time": None, "time_unit": None},
            estero.DataError,
            "a lateness needs a time column, and none is named",
        ),
        ({"time": "tz"}, estero.DataError, "there is no time column 'tz'\n  hint: did you mean ts?"),
    ],
)
def test_layouts_that_make_no_sense_are_refused(
    options: dict[str, object], error: type[Exception], message: str
) -> None:
    by_events = estero.query("SELECT * WHERE A ; B WITHIN 5 EVENTS")
    layout = {"type": "kind", "time": "ts", "time_unit": "s", **options}
    with pytest.raises(error) as caught:
        by_events.recognizer(SCHEMA, **layout)  # type: ignore[call-overload]
    assert str(caught.value) == message


def test_the_query_must_fit_the_columns() -> None:
    with pytest.raises(estero.QueryError, match="price"):
        estero.query("SELECT * WHERE A FILTER A[price > 1]").recognizer(SCHEMA, type="kind")


def test_a_mapping_of_schemas_has_some() -> None:
    with pytest.raises(estero.DataError) as caught:
        QUERY.recognizer({}, time="ts")
    assert str(caught.value) == "the mapping of types to their schemas is empty"


@pytest.mark.parametrize(
    ("text", "ticks"), [("5s", 5), ("1 minute 30 sec", 90), ("1500 ms", 2), ("2 hours", 7200), ("1d", 86400)]
)
def test_a_lateness_is_a_duration(text: str, ticks: int) -> None:
    recognizer = begun(lateness=text)
    recognizer.push([row("A", 0), row("C", ticks - 1)])
    assert recognizer.position == 0
    recognizer.push(row("C", ticks))
    assert recognizer.position == 1


TEXTS = ["2024-01-01T00:00:00", "2024-01-01 01:00:00.5+01:00", "2024-01-01T00:00:01.25Z"]


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.timestamp("ms")])
@pytest.mark.parametrize("together", [False, True])
def test_times_of_single_events_may_be_texts(kind: pa.DataType, *, together: bool) -> None:
    schema = pa.schema([("type", pa.string()), ("t", kind), ("day", pa.date32())])
    query = estero.query("SELECT x, y WHERE A AS x ; A AS y FILTER y.t - x.t < 1 SECOND")
    rows = [{"type": "A", "t": text, "day": "2024-02-29"} for text in TEXTS]
    recognizer = query.recognizer(schema, type="type", time="t")
    pushes: list[Any] = [rows] if together else rows
    found = [each for push in pushes for each in recognizer.push(push).to_dicts()]
    assert [(each["start"], each["end"]) for each in found] == [(0, 1), (1, 2)]
    assert found[1]["end_time"].isoformat().startswith("2024-01-01T00:00:01.250000")
    assert str(found[0]["x"][0]["day"]) == "2024-02-29"


def test_texts_keep_their_nanoseconds() -> None:
    schema = pa.schema([("type", pa.string()), ("t", pa.timestamp("ns"))])
    recognizer = estero.query("SELECT * WHERE Event").recognizer(schema, time="t")
    for text in ("1970-01-01T00:00:01.000000001", "1970-01-01T01:00:01.00000012+01:00"):
        (time,) = recognizer.push({"t": text}).to_arrow()["end_time"]
        assert time.value == 10**9 + (1 if text.endswith("1") else 120)


@pytest.mark.parametrize(
    "text", ["soon", "2024-01-01T00:00:00.0000001", "2024-02-30", "", "2024-01-01T25:00"]
)
def test_a_text_that_is_no_time_of_the_column_is_refused(text: str) -> None:
    schema = pa.schema([("t", pa.timestamp("us")), ("day", pa.date32())])
    recognizer = estero.query("SELECT * WHERE Event").recognizer(schema, time="t")
    said = f"column 't': not a value of type timestamp[us]: {text!r} is none; write it as 2024-01-31T12:00:00"
    assert message_of(recognizer, {"t": text}).startswith(said)
    assert message_of(recognizer, [{"t": TEXTS[0]}, {"t": text}]).startswith(f"row 2, {said}")
    assert message_of(recognizer, {"t": TEXTS[0], "day": "1.2.24"}) == (
        "column 'day': not a value of type date32[day]: '1.2.24' is none; write it as 2024-01-31"
    )
