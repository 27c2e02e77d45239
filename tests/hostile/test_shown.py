"""Values that a terminal should not get, or Python cannot hold: shown as text, and kept in files."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import estero
from estero.answers.shown_values import held_by_python, shown_values
from estero.cli.terminal import table_of
from estero.errors import legible
from notebooks import shown_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from estero import Answer

YEAR_10000 = 253_402_300_800_000_000
ESCAPE = "\x1b[31mred"
PAIR = "SELECT a, b WHERE A AS a ; B AS b"


def not_utf8(*encoded: bytes) -> pa.Array:
    """Strings of these bytes, whatever they are."""
    column = pa.array(encoded, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(column), column.buffers())


def far_away() -> Answer:
    times = pa.array([0, YEAR_10000], pa.timestamp("us"))
    return estero.query(PAIR).run(pa.table({"kind": ["A", "B"], "t": times}), type="kind", time="t")


def answer_with(values: pa.Array) -> Answer:
    return estero.query(PAIR).run(pa.table({"kind": ["A", "B"], "v": values}), type="kind")


def on_a_terminal(answer: Answer) -> str:
    return "\n".join(table_of(answer, rows=None, positions=False)[0].lines(200))


def lines_of(answer: Answer) -> bytes:
    out = io.BytesIO()
    answer.write(out, format="jsonl")
    return out.getvalue()


def test_ties_may_be_broken_by_times_after_the_year_9999() -> None:
    far = pa.array([YEAR_10000 + 2, YEAR_10000, YEAR_10000 + 1], pa.timestamp("us"))
    events = pa.table({"kind": ["C", "A", "B"], "t": [1, 1, 1], "far": far})
    query = estero.query("SELECT * WHERE A ; B ; C")
    recognizer = query.recognizer(events.schema, type="kind", time="t", order=["far"], lateness=1)
    recognizer.push(events.slice(0, 1))
    recognizer = estero.restore(query, recognizer.snapshot())
    recognizer.push(events.slice(1))
    assert [(found.start, found.end) for found in recognizer.close()] == [(0, 2)]


def test_times_after_the_year_9999_are_counted_kept_written_and_shown() -> None:
    answer = far_away()
    assert answer.count() == 1
    assert answer.to_arrow().column("end_time").cast(pa.int64()).to_pylist() == [YEAR_10000]
    assert repr(answer[0]) == "ComplexEvent(0–1, 1970-01-01 00:00:00 – 10000-01-01T00:00:00, a=[0], b=[1])"
    assert json.loads(lines_of(answer))["end_time"] == "10000-01-01T00:00:00"
    assert "10000-01-01T00:00:00" in on_a_terminal(answer)
    assert "10000-01-01 00:00:00" in shown_by(answer).text
    for kind in ("parquet", "arrow", "csv"):
        answer.write(io.BytesIO(), format=kind)


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda answer: answer[0].end_time, "end_time of the complex event 0–1"),
        (lambda answer: answer[0]["b"], "b of the complex event 0–1"),
        (lambda answer: answer.to_pandas(), "a value of this answer"),
    ],
)
def test_a_time_that_python_cannot_hold_is_said(ask: Callable[[Answer], object], what: str) -> None:
    with pytest.raises(estero.DataError) as error:
        ask(far_away())
    assert str(error.value) == (
        f"{what} cannot be a Python value: a time is outside the years 1 to 9999\n"
        "  hint: count(), to_arrow() and write() keep such values as they are"
    )


def test_strings_that_are_not_utf8_are_shown_and_written_as_they_are() -> None:
    answer = answer_with(not_utf8(b"ok", b"bad\xff"))
    assert answer.count() == 1
    assert "bad\\xff" in on_a_terminal(answer)
    assert "bad\\xff" in answer._repr_html_()
    assert b'"v": "bad\xff"' in lines_of(answer)
    for ask in (answer.to_pandas, answer.to_polars, lambda: answer[0]["b"]):
        with pytest.raises(estero.DataError, match="cannot be a Python value: a string is not UTF-8"):
            ask()


def test_a_time_of_day_that_python_cannot_hold_is_said() -> None:
    answer = answer_with(pa.array([0, 1], pa.int64()).cast(pa.time64("ns")))
    with pytest.raises(estero.DataError, match="cannot be a Python value: a time of day has nanoseconds"):
        answer.to_pandas()


def test_nested_values_and_missing_ones_are_shown() -> None:
    times = pa.array([None, YEAR_10000, 0, 2**62], pa.timestamp("us"))
    events = pa.StructArray.from_arrays([times, not_utf8(b"a", b"\xff", b"b", b"c")], ["t", "v"])
    shown = shown_values(pa.ListArray.from_arrays(pa.array([0, 2, None, 4]), events))
    assert shown[0] == [{"t": None, "v": "a"}, {"t": "10000-01-01T00:00:00", "v": "\udcff"}]
    assert shown[1] is None or shown[1][0]["v"] == "b"
    zoned = pa.array([YEAR_10000 + 1, 2**62], pa.timestamp("us", "UTC"))
    assert shown_values(zoned) == ["10000-01-01T00:00:00.000001+00:00", "17036-07-06T14:00:27.387904+00:00"]
    assert shown_values(times)[3] == f"{2**62} us since 1970"


def test_control_characters_of_data_do_not_reach_a_terminal() -> None:
    answer = answer_with(pa.array(["x", f"{ESCAPE}\n\u202e"]))
    for text in (on_a_terminal(answer), answer._repr_html_()):
        assert "\x1b[31m" not in text
        assert "\\x1b[31mred\\n\\u202e" in text
    assert json.loads(lines_of(answer))["labels"]["b"][0]["v"] == f"{ESCAPE}\n\u202e"
    assert answer.to_arrow().column("b").to_pylist()[0][0]["v"] == f"{ESCAPE}\n\u202e"


def test_control_characters_of_names_do_not_reach_a_terminal() -> None:
    name = f"{ESCAPE}[bold]"
    events = pa.table({"kind": ["A", "B"], name: [1, 1]})
    answer = estero.query(f"{PAIR} PARTITION BY [`{name}`]").run(events, type="kind")
    for text in (repr(answer), repr(answer[0]), on_a_terminal(answer), answer._repr_html_()):
        assert "\x1b[31m" not in text
        assert "[31mred[bold]" in text
    error = estero.DataError(f"the value {ESCAPE}", file=f"/data/{ESCAPE}.csv", hint=f"not {ESCAPE}")
    assert str(error) == ("/data/\\x1b[31mred.csv: the value \\x1b[31mred\n  hint: not \\x1b[31mred")


def test_control_characters_of_a_query_are_pictures_above_the_caret() -> None:
    with pytest.raises(estero.QueryError) as error:
        estero.query(f"SELECT * WHERE A AS a FILTER a[s = '{ESCAPE}'] AND")
    lines = str(error.value).splitlines()
    assert "␛[31mred" in str(error.value)
    assert "\x1b" not in str(error.value)
    assert len(next(line for line in lines if "^" in line)) <= len(lines[1]) + 1


def test_text_without_such_characters_is_as_it_was() -> None:
    text = "ñandú 山 \N{SHAMROCK} e\u0301 \N{NO-BREAK SPACE}"
    assert legible(text) == text
    assert legible("a\nb\tc", lines=True) == "a\nb\\tc"
    assert legible(b"\xff".decode(errors="surrogateescape") + "\x7f\x9b") == "\\xff\\x7f\\x9b"


POSITIONED = pa.table({"kind": ["A", "B"], "t": [1, 2], "position": [70, 80]})
LAYOUT: dict[str, Any] = {"type": "kind", "time": "t"}


def test_an_attribute_called_position_keeps_its_name() -> None:
    answer = estero.query(PAIR).run(POSITIONED, **LAYOUT)
    complex_event = answer[0]
    assert complex_event["b"] == [{"kind": "B", "t": 2, "position": 80, "position_": 1}]
    assert complex_event.positions == {"a": (0,), "b": (1,)}
    assert "B 2 80 @1" in on_a_terminal(answer)
    assert shown_by(answer).rows()[0][-4:] == ["#1", "B", "2", "80"]
    out = io.BytesIO()
    answer.write(out, format="jsonl", positions=True)
    assert json.loads(out.getvalue())["labels"] == {"a": [0], "b": [1]}
    assert answer.plot(axis="position").svg().startswith("<?xml")


@pytest.mark.spark
@pytest.mark.parametrize("positions", [True, False])
def test_on_spark_it_keeps_its_name_too(spark: SparkSession, positions: bool) -> None:
    from estero.spark import collect, recognize

    events = spark.createDataFrame(POSITIONED.to_pandas())
    (row,) = recognize(events, PAIR, **LAYOUT, positions=positions).select("b").collect()
    assert row.b[0].asDict() == {"kind": "B", "t": 2, "position": 80} | (
        {"position_": 1} if positions else {}
    )
    found = collect(recognize(events, PAIR, **LAYOUT, positions=positions))
    shown = "\n".join(table_of(found, rows=None, positions=False)[0].lines(200))
    assert ("B 2 80 @1" if positions else "B 2 80") in shown


def test_what_arrow_cannot_do_is_not_called_a_string() -> None:
    with pytest.raises(pa.ArrowNotImplementedError, match="Unsupported cast"), held_by_python("a value"):
        pa.array([1]).cast(pa.null())


@pytest.mark.parametrize("name", ["parquet", "arrow", "csv", "jsonl"])
def test_values_of_type_null_go_into_every_output(name: str) -> None:
    events = pa.table({"kind": ["A", "B"], "n": pa.nulls(2)})
    query = estero.query(
        "SELECT a.n AS one, min(b.n) AS least, list(a.n) AS all_n, b[n] WHERE A AS a ; B AS b"
    )
    answer = query.run(events, type="kind")
    assert answer.write(io.BytesIO(), format=name) == 1
    assert answer.rows().write(io.BytesIO(), format=name) == 1
    assert answer.to_dicts()[0]["one"] is None
    assert answer.to_pandas()["least"].isna().all()
    assert answer.to_polars()["all_n"].to_list() == [[None]]
    assert next(iter(answer)).measures["one"] is None
