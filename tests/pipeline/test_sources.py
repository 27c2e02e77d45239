"""Whatever users have becomes a stream in order, or a clear answer why not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from estero.automata.cea import EventPredicate
from estero.errors import DataError
from estero.language.expressions import Arithmetic, Attribute, Comparison, Literal
from estero.language.query import TimeUnit
from estero.language.schema import Kind
from estero.pipeline.sources import MAPPED_TYPE, Source, open_source
from estero.plan import Classification

TRADES = pa.table(
    {
        "kind": ["SELL", "BUY", "SELL", "BUY"],
        "name": ["INTC", "RIMM", "QQQ", "INTC"],
        "volume": [10, 20, 30, 40],
        "price": [1.5, 2.5, None, 4.5],
        "at": [0, 10, 10, 30],
    }
)


def everything(source: Source, *payload: str, **more: Any) -> Classification:
    """A classification that keeps all events of all types."""
    settings = {"type_column": source.type_column, "only_type": source.only_type, "order": source.order}
    return Classification((), source.schema, keep_all=True, payload=payload, **(settings | more))


def rows(source: Source, *payload: str) -> list[dict[str, Any]]:
    """The classified events as dicts, without their bits."""
    batches = list(source.read(everything(source, *payload)))
    return [{k: v for k, v in row.items() if k != "__bits0"} for b in batches for row in b.to_pylist()]


def column(source: Source, name: str) -> list[Any]:
    return [row[name] for row in rows(source, name)]


def write_csv(path: Path, *lines: str) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


# ------------------------------------------------------------------------------ the same, however given


def stored(form: str, directory: Path) -> Any:
    """TRADES in one of the forms that users have them in."""
    path = str(directory / f"trades.{form}")
    match form:
        case "parquet":
            pq.write_table(TRADES, path)
        case "csv":
            TRADES.to_pandas().to_csv(path, index=False)
        case "tsv":
            TRADES.to_pandas().to_csv(path, index=False, sep=";")
        case "csv.gz" | "jsonl":
            frame = TRADES.to_pandas()
            frame.to_csv(path, index=False) if form == "csv.gz" else frame.to_json(
                path, orient="records", lines=True
            )
        case "feather":
            pyarrow.feather.write_feather(TRADES, path)
        case "arrows":
            with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, TRADES.schema) as writer:
                writer.write_table(TRADES, max_chunksize=3)
        case _:
            return in_memory(form)
    return path


def in_memory(form: str) -> Any:
    match form:
        case "table":
            return TRADES
        case "dictionaries":
            return TRADES.set_column(0, "kind", TRADES["kind"].dictionary_encode())
        case "reader":
            return TRADES.to_reader(max_chunksize=2)
        case "iterator":
            return iter(TRADES.to_batches(max_chunksize=2))
        case "list":
            return TRADES.to_batches(max_chunksize=2)
        case "pandas":
            return TRADES.to_pandas()
        case "polars":
            return pl.DataFrame(TRADES)
        case "duckdb":
            return duckdb.connect().from_arrow(TRADES)
    raise AssertionError(form)


FORMS = [
    *("parquet", "csv", "tsv", "csv.gz", "jsonl", "feather", "arrows"),
    *("table", "dictionaries", "reader", "iterator", "list", "pandas", "polars", "duckdb"),
]


@pytest.mark.parametrize("form", FORMS)
def test_events_are_the_same_however_they_are_given(form: str, tmp_path: Path) -> None:
    source = open_source(stored(form, tmp_path), type="kind", time="at", time_unit="s")
    assert source.schema.shared == {
        "kind": Kind.STRING,
        "name": Kind.STRING,
        "volume": Kind.INT,
        "price": Kind.FLOAT,
        "at": Kind.INT,
    }
    assert (source.schema.time, source.schema.time_unit) == ("at", TimeUnit.SECONDS)
    found = rows(source, "kind", "volume", "price")
    assert [tuple(row.values()) for row in found] == [
        (0, 0, "SELL", 10, 1.5),
        (1, 10, "BUY", 20, 2.5),
        (2, 10, "SELL", 30, None),
        (3, 30, "BUY", 40, 4.5),
    ]


@pytest.mark.parametrize("form", [form for form in FORMS if form not in {"reader", "iterator"}])
def test_all_but_iterators_can_be_read_again(form: str, tmp_path: Path) -> None:
    source = open_source(stored(form, tmp_path), type="kind", time="at")
    assert rows(source, "name") == rows(source, "name")
    assert source.type_names() == ("BUY", "SELL")
    assert source.has_type("BUY")
    assert not source.has_type("HOLD")


@pytest.mark.parametrize("form", ["reader", "iterator"])
def test_an_iterator_passes_once(form: str, tmp_path: Path) -> None:
    source = open_source(stored(form, tmp_path), type="kind", time="at")
    assert len(rows(source)) == 4
    assert source.one_shot
    assert source.has_type("anything")
    assert source.type_names() == ()
    with pytest.raises(DataError, match="come from an iterator, and it has been read already"):
        rows(source)


def test_several_files_follow_each_other_by_name(tmp_path: Path) -> None:
    for number in (2, 1, 3):
        pq.write_table(pa.table({"n": [number, -number]}), tmp_path / f"part-{number}.parquet")
    assert column(open_source(str(tmp_path / "part-*.parquet")), "n") == [1, -1, 2, -2, 3, -3]
    assert column(open_source(tmp_path), "n") == [1, -1, 2, -2, 3, -3]


def test_options_say_how_a_csv_file_is_read(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "bars.csv", "AAPL|200802010900|1,5", "AMZN|200802010901|2,5")
    options = {
        "header": False,
        "names": ["name", "minute", "price"],
        "delim": "|",
        "decimal_separator": ",",
        "types": {"minute": "TIMESTAMP"},
        "timestampformat": "%Y%m%d%H%M",
    }
    source = open_source(path, time="minute", csv_options=options)
    assert source.schema.types["Event"] == {
        "name": Kind.STRING,
        "minute": Kind.TIMESTAMP,
        "price": Kind.FLOAT,
    }
    first = datetime(2008, 2, 1, 9, 0, tzinfo=UTC)
    assert rows(source, "price")[0] == {
        "__position": 0,
        "__time": int(first.timestamp()) * 1_000_000,
        "price": 1.5,
    }


def test_without_a_type_column_all_events_are_of_one_type() -> None:
    source = open_source(TRADES, only_type="Trade")
    assert list(source.schema.types) == ["Trade"]
    assert source.schema.closed
    assert source.type_names() == ("Trade",)
    assert source.has_type("Trade")
    assert not source.has_type("Event")
    assert [row["__time"] for row in rows(source)] == [0, 1, 2, 3]


# ------------------------------------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1], pa.int8()), Kind.INT),
        (pa.array([1], pa.uint32()), Kind.INT),
        (pa.array([2**63 - 1], pa.uint64()), Kind.INT),
        (pa.array([1.5], pa.float16()), Kind.FLOAT),
        (pa.array([1.5], pa.float32()), Kind.FLOAT),
        (pa.array([1.5]).cast(pa.decimal128(10, 2)), Kind.FLOAT),
        (pa.array([True]), Kind.BOOL),
        (pa.array(["x"], pa.large_string()), Kind.STRING),
        (pa.array(["x"], pa.string_view()), Kind.STRING),
        (pa.array(["x"]).dictionary_encode(), Kind.STRING),
        (pa.array([date(2020, 1, 1)]), Kind.TIMESTAMP),
        (pa.array([1], pa.timestamp("ns", "Asia/Tokyo")), Kind.TIMESTAMP),
        (pa.array([b"x"]), Kind.OPAQUE),
        (pa.array([[1]]), Kind.OPAQUE),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_a_column_has_a_kind_and_can_be_shown(values: pa.Array, kind: Kind) -> None:
    source = open_source(pa.table({"a": values}))
    assert source.schema.types["Event"]["a"] is kind
    assert column(source, "a") == values.to_pylist()


@pytest.mark.parametrize(
    ("unit", "zone", "ticks", "tick"),
    [
        ("s", None, 1_600_000_000_000_000, 1000),
        ("ms", None, 1_600_000_000_000_000, 1000),
        ("us", "Europe/Madrid", 1_600_000_000_000_000, 1000),
        ("ns", None, 1_600_000_000_000_000_000, 1),
        ("ns", "Asia/Tokyo", 1_600_000_000_000_000_000, 1),
    ],
)
def test_times_are_instants_in_ticks(unit: str, zone: str | None, ticks: int, tick: int) -> None:
    seconds = pa.array([1_600_000_000], pa.timestamp("s", "UTC"))
    source = open_source(
        pa.table({"t": seconds.cast(pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit, zone))}), time="t"
    )
    assert [row["__time"] for row in rows(source)] == [ticks]
    assert source.time_tick_ns == tick


def test_dates_and_integers_are_times() -> None:
    dates = open_source(pa.table({"t": [date(1970, 1, 2)]}), time="t")
    assert [row["__time"] for row in rows(dates)] == [86_400_000_000]
    integers = open_source(TRADES, time="at", time_unit="ms")
    assert [row["__time"] for row in rows(integers)] == [0, 10, 10, 30]
    assert integers.time_tick_ns == 1_000_000
    assert open_source(TRADES, time="at").time_tick_ns is None


# ------------------------------------------------------------------------------------------- order


def test_a_sorted_stream_is_not_sorted_again() -> None:
    assert open_source(TRADES, time="at").is_sorted()
    assert not open_source(TRADES, time="at", order=["name"]).is_sorted()
    assert open_source(TRADES).is_sorted()


@pytest.mark.parametrize("form", ["table", "parquet"])
def test_an_unsorted_stream_is_sorted_by_time_and_ties_keep_arrival(form: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    times = rng.integers(0, 50, 5000)
    table = pa.table({"t": times, "arrival": np.arange(5000)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=700)
    source = open_source(table if form == "table" else tmp_path / "t.parquet", time="t")
    assert not source.is_sorted()
    found = rows(source, "arrival")
    assert [row["__position"] for row in found] == list(range(5000))
    assert [row["arrival"] for row in found] == np.argsort(times, kind="stable").tolist()


@pytest.mark.parametrize("form", ["table", "parquet"])
def test_order_breaks_ties_of_the_time(form: str, tmp_path: Path) -> None:
    table = pa.table({"t": [1, 1, 0, 1], "id": ["c", "a", "z", "b"], "n": [0, 1, 2, 3]})
    pq.write_table(table, tmp_path / "t.parquet")
    source = open_source(table if form == "table" else tmp_path / "t.parquet", time="t", order=["id"])
    assert column(source, "n") == [2, 1, 3, 0]


def test_an_unsorted_iterator_is_refused_where_it_goes_back() -> None:
    table = pa.table({"t": [1, 2, 3, 1]})
    source = open_source(iter(table.to_batches(max_chunksize=3)), time="t")
    with pytest.raises(DataError, match=r"row 4: the event is earlier than the one before it") as error:
        rows(source)
    assert "collect it into a table first" in str(error.value)


def test_positions_count_the_stream_across_batches_and_threads() -> None:
    size = 700_000
    batches = (
        pa.record_batch({"n": np.arange(start, min(start + 1000, size))}) for start in range(0, size, 1000)
    )
    source = open_source(batches)
    predicate = EventPredicate(
        ("Event",), Comparison("!=", Arithmetic("%", Attribute("n"), Literal(3)), Literal(0))
    )
    found = list(source.read(Classification((predicate,), source.schema, payload=("n",))))
    positions = np.concatenate([batch.column(0).to_numpy() for batch in found])
    numbers = np.concatenate([batch.column("n").to_numpy() for batch in found])
    assert (positions == numbers).all()
    assert (positions == np.flatnonzero(np.arange(size) % 3)).all()


# ---------------------------------------------------------------------------------- one table a type


def test_each_type_may_have_its_own_table(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [2, 4], "x": [1, 2], "s": ["a", "b"]}), tmp_path / "a.parquet")
    tables = {"A": tmp_path / "a.parquet", "B": pl.DataFrame({"t": [1, 3], "x": [0.5, 1.5]})}
    source = open_source(tables, time="t")
    assert source.type_column == MAPPED_TYPE
    assert source.schema.types == {
        "A": {"t": Kind.INT, "x": Kind.FLOAT, "s": Kind.STRING},
        "B": {"t": Kind.INT, "x": Kind.FLOAT},
    }
    assert source.schema.closed
    assert source.columns == ("t", "x", "s")
    assert source.type_names() == ("A", "B")
    assert source.has_type("A")
    assert not source.has_type("C")
    found = rows(source, MAPPED_TYPE, "x", "s")
    assert [tuple(row.values()) for row in found] == [
        (0, 1, "B", 0.5, None),
        (1, 2, "A", 1.0, "a"),
        (2, 3, "B", 1.5, None),
        (3, 4, "A", 2.0, "b"),
    ]


def test_an_attribute_of_two_kinds_in_two_tables_is_refused() -> None:
    tables = {"A": pa.table({"x": [1]}), "B": pa.table({"x": ["one"]})}
    with pytest.raises(DataError, match="'x' is an integer in the table of A and a string in that of B"):
        open_source(tables)


def test_the_time_must_be_in_every_table() -> None:
    tables = {"A": pa.table({"t": [1]}), "B": pa.table({"ts": [1]})}
    with pytest.raises(DataError, match="there is no time column 't' in the table of B") as error:
        open_source(tables, time="t")
    assert "did you mean ts?" in str(error.value)


def test_instants_of_several_resolutions_meet() -> None:
    tables = {
        "A": pa.table({"t": pa.array([2_000_000_001], pa.timestamp("ns", "Asia/Tokyo"))}),
        "B": pa.table({"t": pa.array([2], pa.timestamp("s"))}),
        "C": pa.table({"t": pa.array([2000], pa.timestamp("ms", "UTC"))}),
    }
    source = open_source(tables, time="t")
    assert [(row[MAPPED_TYPE], row["__time"]) for row in rows(source, MAPPED_TYPE)] == [
        ("B", 2_000_000_000),
        ("C", 2_000_000_000),
        ("A", 2_000_000_001),
    ]


# ------------------------------------------------------------------------------------------ refusals


def test_what_is_no_stream_of_events_is_refused() -> None:
    with pytest.raises(DataError, match="events of type int cannot be read\n  hint: pass a path or glob"):
        open_source(3)
    with pytest.raises(DataError, match="the iterator yields dict, not record batches"):
        open_source(iter([{"a": 1}]))
    with pytest.raises(DataError, match="a list of dict is not a stream of events"):
        open_source([{"a": 1}])
    with pytest.raises(DataError, match="the iterator of record batches is empty"):
        open_source(iter([]))
    with pytest.raises(DataError, match="the mapping of types to their events is empty"):
        open_source({})
    with pytest.raises(DataError, match=r"a lazy frame is not read here\n  hint: call .collect\(\) first"):
        open_source(pl.LazyFrame({"a": [1]}))
    with pytest.raises(DataError, match="a mapping gives each type its own table"):
        open_source({"A": TRADES}, type="kind")
    with pytest.raises(DataError, match="csv_options are for CSV files, and these events are no file"):
        open_source(TRADES, csv_options={"delim": ","})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere.csv: there is no such file"):
        open_source(str(tmp_path / "nowhere.csv"))
    with pytest.raises(DataError, match=r"\*.parquet: no file matches this pattern"):
        open_source(str(tmp_path / "*.parquet"))
    with pytest.raises(DataError, match="the directory holds no files"):
        open_source(tmp_path)


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.parquet"
    path.write_text("this is no Parquet file at all", encoding="utf-8")
    with pytest.raises(DataError, match=r"broken.parquet: cannot read the events: .*[Pp]arquet"):
        open_source(path)
    unknown = tmp_path / "events.dat"
    unknown.write_text("?", encoding="utf-8")
    with pytest.raises(DataError, match=r"events.dat: the name does not say what this file is"):
        open_source(unknown)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_forbidden_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "secret.csv"
    path.write_text("a\n1\n", encoding="utf-8")
    path.chmod(0)
    with pytest.raises(DataError, match=r"secret.csv: the file cannot be read: permission denied"):
        open_source(path)


def test_a_file_without_even_a_header_is_refused(tmp_path: Path) -> None:
    for name in ("empty.csv", "empty.jsonl", "empty.parquet", "blank.csv"):
        (tmp_path / name).write_text("\n\n" if name == "blank.csv" else "", encoding="utf-8")
        with pytest.raises(DataError, match=f"{name}: the file is empty: it has not even a header"):
            open_source(tmp_path / name)


def test_no_events_are_a_stream_too(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "none.csv", "kind,at")
    assert rows(open_source(path, type="kind")) == []
    assert rows(open_source(TRADES.slice(0, 0), type="kind", time="at")) == []
    assert (
        rows(
            open_source(
                iter(TRADES.slice(0, 0).to_batches() or [TRADES.to_batches()[0].slice(0, 0)]), time="at"
            )
        )
        == []
    )


def test_a_missing_column_is_answered_with_the_nearest() -> None:
    with pytest.raises(DataError, match=r"there is no time column 'att'\n  hint: did you mean at\?"):
        open_source(TRADES, time="att")
    with pytest.raises(DataError, match=r"there is no type column 'KIND'\n  hint: did you mean kind\?"):
        open_source(TRADES, type="KIND")
    with pytest.raises(DataError, match="no order column 'q'\n  hint: the columns are kind, name, volume"):
        open_source(TRADES, order=["q"])


def test_time_and_type_have_their_kinds() -> None:
    with pytest.raises(DataError, match="column 'price': the time column holds a float; it must hold"):
        open_source(TRADES, time="price")
    with pytest.raises(DataError, match="column 'volume': the type column holds an integer, not strings"):
        open_source(TRADES, type="volume")
    with pytest.raises(DataError, match="'fortnight' is not a unit of time\n  hint: it is one of ns, us"):
        open_source(TRADES, time="at", time_unit="fortnight")
    with pytest.raises(DataError, match="time_unit is for integer time columns"):
        open_source(pa.table({"t": [datetime(2020, 1, 1, tzinfo=UTC)]}), time="t", time_unit="s")


@pytest.mark.parametrize("form", ["table", "parquet", "iterator"])
def test_an_event_without_a_time_is_named_by_its_row(form: str, tmp_path: Path) -> None:
    table = pa.table({"t": [1, 2, None, 3]})
    pq.write_table(table, tmp_path / "t.parquet")
    events = {
        "table": table,
        "parquet": tmp_path / "t.parquet",
        "iterator": iter(table.to_batches(max_chunksize=2)),
    }
    source = open_source(events[form], time="t")
    with pytest.raises(DataError, match=r"row 3, column 't': the time is NULL"):
        rows(source)


def test_a_malformed_row_of_csv_is_named_by_file_line_and_column(tmp_path: Path) -> None:
    good = [f"{n},{n}.5,x" for n in range(30_000)]
    path = write_csv(tmp_path / "bad.csv", "a,b,c", *good, "oops,1,x")
    with pytest.raises(DataError) as error:
        rows(open_source(path), "a")
    assert (error.value.file, error.value.line, error.value.column) == (path, 30_002, "a")
    assert str(error.value).startswith(
        f"{path}, line 30002, column 'a': Could not convert string \"oops\" to 'BIGINT'\n  hint: mend"
    )
    path = write_csv(tmp_path / "wide.csv", "a,b,c", *good, "1,2,y,z")
    with pytest.raises(DataError, match=r"wide.csv, line 30002: the row has 4 columns, not 3"):
        rows(open_source(path))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a,b", "1,2", "3", "4,5"], "line 3: the row has 1 columns, not 2"),
        (["a;b;c", "1;2;3", "1;2;3;4"], "line 3: the row has 4 columns, not 3"),
        (["a,b", '"x,2', "3,4"], "line 2: a value begins with a quote and does not end with one"),
    ],
)
def test_a_malformed_row_among_the_first_is_no_other_dialect(
    lines: list[str], message: str, tmp_path: Path
) -> None:
    path = write_csv(tmp_path / "bad.csv", *lines)
    with pytest.raises(DataError, match=f"bad.csv, {message}"):
        open_source(path)


def test_the_first_string_that_is_no_time_is_named(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "bad.csv", "t,x", "2020-01-01 00:00:00,1", "noon,2")
    with pytest.raises(DataError, match=r"bad.csv, row 2, column 't': 'noon' is not a timestamp") as error:
        open_source(path, time="t")
    assert "csv_options={'timestampformat': …} says how times are written" in str(error.value)
    with pytest.raises(DataError, match="column 'kind': 'SELL' is not a timestamp"):
        open_source(TRADES, time="kind")


def test_a_json_file_may_be_one_array(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    path.write_text('[{"a": 1},\n {"a": 2}]', encoding="utf-8")
    assert column(open_source(path), "a") == [1, 2]


def test_an_option_that_csv_files_do_not_have_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", "a,b", "1,2")
    with pytest.raises(DataError, match=r'a.csv: cannot read the events: Invalid named parameter "nonsense"'):
        open_source(path, csv_options={"nonsense": 1})
    with pytest.raises(DataError, match="'a b' is not an option for CSV files"):
        open_source(path, csv_options={"a b": 1})
    with pytest.raises(DataError, match="the option delim of CSV files cannot be None"):
        open_source(path, csv_options={"delim": None})


def test_batches_of_an_iterator_have_the_same_columns() -> None:
    batches = [pa.record_batch({"a": [1]}), pa.record_batch({"b": [1]})]
    with pytest.raises(
        DataError, match="batch 2 has other columns than the first one: b int64 beside a int64"
    ):
        rows(open_source(iter(batches)))


def test_names_of_columns_are_their_own() -> None:
    with pytest.raises(DataError, match="two columns are named 'a'"):
        open_source(pa.table([[1], [2]], names=["a", "a"]))
    with pytest.raises(DataError, match="the column name '__bits0' is used by Estero itself"):
        open_source(pa.table({"__bits0": [1]}))
    odd = open_source(pa.table({'a"b': [1], "select": [2]}))
    assert rows(odd, 'a"b', "select") == [{"__position": 0, "__time": 0, 'a"b': 1, "select": 2}]


def test_a_malformed_line_of_json_is_named(tmp_path: Path) -> None:
    lines = [f'{{"a": {n}}}' for n in range(30_000)]
    path = write_csv(tmp_path / "bad.jsonl", *lines, '{"a": }', '{"a": 1}')
    with pytest.raises(
        DataError, match=r"bad.jsonl, line 30001: this is not a line of JSON that fits"
    ) as error:
        rows(open_source(path))
    assert error.value.file == path


def test_an_overflow_names_the_predicate() -> None:
    source = open_source(pa.table({"n": [1, 2**63 - 1]}))
    fine = EventPredicate(("Event",), Comparison(">", Attribute("n"), Literal(0)))
    over = EventPredicate(
        ("Event",), Comparison(">", Arithmetic("+", Attribute("n"), Literal(1)), Literal(0))
    )
    classification = Classification((fine, over), source.schema)
    with pytest.raises(DataError, match=r"a number does not fit into 64 bits: Overflow .*, in Event\["):
        list(source.read(classification))


def test_an_overflow_in_events_of_another_type_is_none() -> None:
    source = open_source(pa.table({"kind": ["A", "B"], "n": [1, 2**63 - 1]}), type="kind")
    predicate = EventPredicate(
        ("A",), Comparison(">", Arithmetic("+", Attribute("n"), Literal(1)), Literal(0))
    )
    found = list(source.read(Classification((predicate,), source.schema, type_column="kind")))
    assert [row["__position"] for batch in found for row in batch.to_pylist()] == [0]


def test_a_failure_of_the_iterator_itself_is_passed_on() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield TRADES.to_batches()[0]
        raise ZeroDivisionError("the feed broke")

    with pytest.raises(ZeroDivisionError, match="the feed broke"):
        rows(open_source(batches()))


def test_the_interrupt_key_ends_a_long_query() -> None:
    program = """
import os, signal, sys, threading
import pyarrow as pa
from estero.automata.cea import EventPredicate
from estero.language.expressions import Attribute, Comparison, Literal
from estero.pipeline.sources import open_source
from estero.plan import Classification
def batches():
    batch = pa.record_batch({"n": [0] * 100_000})
    yield batch
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    while True:
        yield batch
source = open_source(batches())
never = EventPredicate(("Event",), Comparison("=", Attribute("n"), Literal(1)))
try:
    list(source.read(Classification((never,), source.schema)))
except KeyboardInterrupt:
    sys.exit(7)
"""
    finished = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert finished.returncode == 7


def test_a_reading_can_be_given_up(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": np.arange(1_000_000)}), tmp_path / "n.parquet")
    source = open_source(tmp_path / "n.parquet")
    reading = source.read(everything(source, "n"))
    assert next(iter(reading)).num_rows > 0
    reading.close()  # type: ignore[attr-defined]
    assert len(rows(source)) == 1_000_000
