"""`estero.scan`: events with their columns named once, taken wherever events are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import estero
from estero.testing import assert_matches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERY = "SELECT a, b WHERE SELL AS a ; BUY AS b FILTER b[price > 10] WITHIN 5 SECONDS"
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
TRADES = pa.table(
    {
        "id": [0, 1, 2, 3, 4],
        "kind": ["SELL", "BUY", "SELL", "BUY", "BUY"],
        "ts": [FIRST + timedelta(seconds=second) for second in (0, 1, 2, 3, 30)],
        "price": [9.0, 11.0, 12.0, 13.0, 14.0],
    }
)
LAYOUT: dict[str, Any] = {"type": "kind", "time": "ts", "order": ["id"]}
MATCHES = [{"a": (0,), "b": (1,)}, {"a": (0,), "b": (3,)}, {"a": (2,), "b": (3,)}]


def _parquet(directory: Path) -> str:
    pq.write_table(TRADES, directory / "trades.parquet")
    return str(directory / "trades.parquet")


FORMS: dict[str, Callable[[Path], object]] = {
    "arrow": lambda _: TRADES,
    "batches": lambda _: iter(TRADES.to_batches(max_chunksize=2)),
    "duckdb": lambda _: duckdb.connect().from_arrow(TRADES),  # a connection of its own
    "pandas": lambda _: TRADES.to_pandas(),
    "path": _parquet,
    "list of paths": lambda directory: [_parquet(directory)],
    "polars": lambda _: pl.from_arrow(TRADES),
    "lazy": lambda _: pl.from_arrow(TRADES).lazy(),  # type: ignore[union-attr]
}


def _matches(answer: Any) -> list[Any]:
    return sorted((match.positions for match in answer), key=lambda marks: (marks["a"], marks["b"]))


@pytest.mark.parametrize("form", FORMS)
def test_a_scan_runs_as_events_with_their_arguments_do(form: str, tmp_path: Path) -> None:
    query = estero.query(QUERY)
    stream = estero.scan(FORMS[form](tmp_path), **LAYOUT)
    assert _matches(query.run(stream)) == MATCHES
    assert _matches(query.run(FORMS[form](tmp_path), **LAYOUT)) == MATCHES


def test_a_mapping_of_types_is_scanned_as_a_whole() -> None:
    kinds = TRADES.column("kind").to_pylist()
    tables = {
        name: TRADES.filter(pa.array([kind == name for kind in kinds])).drop_columns(["kind"])
        for name in ("SELL", "BUY")
    }
    stream = estero.scan(tables, time="ts", order=["id"])
    assert _matches(estero.query(QUERY).run(stream)) == MATCHES
    with pytest.raises(estero.DataError, match="where plain events are expected"):
        estero.query(QUERY).run({name: estero.scan(table) for name, table in tables.items()}, time="ts")


def test_one_scan_serves_all_that_takes_events(tmp_path: Path) -> None:
    query, stream = estero.query(QUERY), estero.scan(TRADES, **LAYOUT)
    assert query.check(stream) == estero.check(QUERY, stream) == []
    wrong = estero.check("SELECT * WHERE SELL AS a FILTER a[prise > 1]", stream)
    assert [error.message for error in wrong] == ["SELL (a) has no attribute prise"]
    assert str(query.explain(stream)) == str(query.explain(TRADES, **LAYOUT))
    assert str(query.automaton(stream)) == str(query.automaton(TRADES, **LAYOUT))
    assert str(query.run(stream).why_not()) == str(query.run(TRADES, **LAYOUT).why_not())
    assert query.run(stream, distinct="marks").count() == 3
    rows = query.run(stream, partials=True).count()
    assert rows == query.run(TRADES, **LAYOUT, partials=True).count()
    built = estero.select(estero.event("SELL").named("a").then(estero.event("BUY").named("b")))
    assert built.run(stream).count() == built.run(TRADES, **LAYOUT).count() == 5
    assert query.run(stream).count() == 3  # nothing of the scan is used up


def test_the_short_form_of_order_is_one_name() -> None:
    assert estero.scan(TRADES, order="id").layout.order == ("id",)


@pytest.mark.parametrize("schema", [TRADES.schema, TRADES, pl.from_arrow(TRADES)])
def test_a_recognizer_takes_a_scan_of_a_schema(schema: object) -> None:
    recognizer = estero.query(QUERY).recognizer(estero.scan(schema, **LAYOUT), lateness="1 second")
    with pytest.raises(estero.DataError, match="push events as they are"):
        recognizer.push(estero.scan(TRADES, **LAYOUT))
    matches = [*recognizer.push(TRADES), *recognizer.close()]
    assert _matches(matches) == MATCHES


def test_a_recognizer_takes_the_schema_of_a_scanned_csv_file(tmp_path: Path) -> None:
    (tmp_path / "trades.csv").write_text("kind;n\nSELL;1\nBUY;2\n")
    stream = estero.scan(tmp_path / "trades.csv", type="kind", csv_options={"delim": ";"})
    recognizer = estero.query("SELECT * WHERE SELL ; BUY FILTER BUY[n > 1]").recognizer(stream)
    recognizer.push({"kind": "SELL", "n": 1})
    assert recognizer.push({"kind": "BUY", "n": 2}).count() == 1


def test_a_scan_has_options_of_csv_and_types_and_a_unit(tmp_path: Path) -> None:
    (tmp_path / "trades.csv").write_text("kind;t\nSELL;1\nBUY;2\n")
    stream = estero.scan(
        tmp_path / "trades.csv", type="kind", time="t", time_unit="ms", csv_options={"delim": ";"}
    )
    query = estero.query("SELECT * WHERE SELL ; BUY WITHIN 5 MILLISECONDS")
    assert query.run(stream).count() == 1
    closed = estero.scan(TRADES, type="kind", types=["SELL", "BUY"])
    errors = estero.query("SELECT * WHERE SELL ; HOLD").check(closed)
    assert len(errors) == 1
    assert "HOLD" in errors[0].message


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ({"type": "kind"}, "type= is given beside a scan: write estero.scan(events, type=…)"),
        (
            {"time": "ts", "order": ["id"]},
            ("time= and order= are given beside a scan: write estero.scan(events, time=…, order=…)"),
        ),
        (
            {"time_unit": "s"},
            "time_unit= is given beside a scan: write estero.scan(events, time_unit=…)",
        ),
    ],
)
@pytest.mark.parametrize("stream", [estero.scan(TRADES), estero.scan(TRADES, **LAYOUT)])
def test_arguments_beside_a_scan_are_refused(stream: estero.Scan, beside: dict[str, Any], said: str) -> None:
    query = estero.query(QUERY)
    doors: list[Callable[..., object]] = [
        query.run,
        query.recognizer,
        query.check,
        query.explain,
        query.automaton,
        lambda events, **beside: estero.check(QUERY, events, **beside),
        estero.scan,
    ]
    for door in doors:
        with pytest.raises(ValueError, match="beside a scan") as error:
            door(stream, **beside)
        assert str(error.value) == said


def test_what_cannot_be_scanned_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"^scan\(\) takes a string or None as type, not 5$"):
        estero.scan(TRADES, type=5)  # type: ignore[arg-type]
    with pytest.raises(estero.DataError, match="'parsec' is not a unit of time"):
        estero.scan(TRADES, time="ts", time_unit="parsec")
    with pytest.raises(estero.DataError, match="there is no time column 'tss'"):
        estero.query(QUERY).run(estero.scan(TRADES, type="kind", time="tss"))


def test_a_scan_of_a_scan_is_the_scan() -> None:
    stream = estero.scan(TRADES, **LAYOUT)
    assert _matches(estero.query(QUERY).run(estero.scan(stream))) == MATCHES


def test_a_scan_prints_what_makes_it() -> None:
    assert repr(estero.scan("trades.csv", type="kind", time="t", time_unit="s", order=["id"])) == (
        "estero.scan('trades.csv', type='kind', time='t', order=['id'], time_unit='s')"
    )
    assert repr(estero.scan(TRADES)) == "estero.scan(a Table)"


def test_assert_matches_takes_a_scan_of_a_text_or_a_table() -> None:
    expected = [{"a": 0, "b": 1}]
    query = "SELECT a, b WHERE A AS a ; B AS b WITHIN 5 SECONDS"
    text = estero.scan("A@0s B@1s B@9s", type="kind", time="at")
    assert_matches(query, text, expected, engines=["process"])
    table = pa.table({"kind": ["A", "B", "B"], "at": [0, 1, 9]})
    stream = estero.scan(table, type="kind", time="at", time_unit="s")
    assert_matches(query, stream, expected, engines=["process"])
    with pytest.raises(AssertionError, match=r"time        0  1  9"):
        assert_matches(query, stream, [], engines=["process"])
    with pytest.raises(ValueError, match="type= is given beside a scan"):
        assert_matches(query, stream, expected, engines=["process"], type="kind")
    with pytest.raises(estero.DataError, match="takes a text or an Arrow table as events, not 5"):
        assert_matches(query, estero.scan(5), expected, engines=["process"])
    with pytest.raises(estero.DataError, match="there is no time column 'att'"):
        assert_matches(query, estero.scan(table, type="kind", time="att"), expected, engines=["process"])


# ------------------------------------------------------------------------------------------ Spark


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(TRADES)


def _rows(matches: Any) -> list[str]:
    return sorted(map(str, matches.collect()))


@pytest.mark.spark
def test_spark_takes_a_scan_of_its_frames(frame: DataFrame) -> None:
    from estero.spark import check, count, explain, recognize, why_not

    stream = estero.scan(frame, **LAYOUT)
    rows = _rows(recognize(frame, QUERY, **LAYOUT))
    assert len(rows) == 3
    assert _rows(recognize(stream, QUERY)) == rows
    assert count(stream, QUERY) == count(frame, QUERY, **LAYOUT) == 3
    assert str(explain(stream, QUERY)) == str(explain(frame, QUERY, **LAYOUT))
    assert str(why_not(stream, QUERY)) == str(why_not(frame, QUERY, **LAYOUT))
    assert check(stream, QUERY) == []
    with pytest.raises(ValueError, match="time= is given beside a scan"):
        recognize(stream, QUERY, time="ts")
    with pytest.raises(ValueError, match="types is for events that are read in this process"):
        recognize(estero.scan(frame, types=["SELL"]), QUERY)
    with pytest.raises(ValueError, match="csv_options is for events that are read in this process"):
        recognize(estero.scan(frame, csv_options={"delim": ";"}), QUERY)
    with pytest.raises(estero.DataError, match="not a Spark DataFrame but a Table of pyarrow"):
        recognize(estero.scan(TRADES, **LAYOUT), QUERY)


@pytest.mark.spark
def test_a_query_runs_on_a_frame_of_spark_as_recognize_does(frame: DataFrame) -> None:
    from estero.spark import explain, recognize

    query, stream = estero.query(QUERY), estero.scan(frame, **LAYOUT)
    rows = _rows(recognize(frame, QUERY, **LAYOUT))
    assert _rows(query.run(stream)) == rows
    assert _rows(query.run(frame, **LAYOUT)) == rows
    assert _rows(query.run(stream, distinct="marks")) == rows
    assert _rows(query.run(stream, partials=True)) == _rows(recognize(stream, QUERY, partials=True))
    assert str(query.explain(stream)) == str(explain(frame, QUERY, **LAYOUT))
    assert query.check(stream) == []
    wrong = "SELECT * WHERE SELL AS a FILTER a[prise > 1]"
    for errors in (estero.query(wrong).check(stream), estero.check(wrong, frame, **LAYOUT)):
        assert [error.message for error in errors] == ["SELL (a) has no attribute prise"]
    with pytest.raises(ValueError, match="progress is for events in this process"):
        query.run(stream, progress=lambda _done, _all: None)
    for ask in (query.recognizer, lambda events: query.run({"SELL": events.events})):
        with pytest.raises(estero.DataError, match="a DataFrame of Spark cannot be read in this process"):
            ask(stream)
