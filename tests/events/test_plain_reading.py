"""Plain conditions are classified by vector code as by SQL: bits, columns, types and errors."""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from estero.automata.cea import EventPredicate
from estero.automata.registers import Value
from estero.classify.column_names import BITS
from estero.classify.column_names import VALUES as VALUE
from estero.errors import DataError
from estero.events import small_tables
from estero.events.scan import Scan
from estero.events.sources import Source, open_source
from estero.events.streams.batch_classifier import Classifier
from estero.events.streams.stream_layout import layout_of
from estero.events.tables.shown_types import plain_schema
from estero.language.tree.expressions import (
    And,
    Attribute,
    Between,
    Comparison,
    In,
    InList,
    IsNull,
    ListOf,
    Literal,
    Node,
    Not,
    Or,
    Range,
)
from estero.language.tree.schema import EventLayout
from estero.plan.plan import Classification

TYPES = ("A", "B", "C")
TEXTS = ("", "a", "ab", "b", "é", "twelve bytes", "more than twelve bytes", "more than twelve letters")
SIGNS = ("=", "!=", "<", "<=", ">", ">=")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400 * 10**6

STRINGS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.uint16(), pa.large_string()),
    pa.dictionary(pa.int32(), pa.string_view()),
]
SIGNED = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float32(), pa.float64()]
INSTANTS = [
    *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    pa.timestamp("s", "UTC"),
    pa.timestamp("us", "Europe/Berlin"),
    pa.timestamp("ns", "Asia/Tokyo"),
    pa.date32(),
]
DECIMALS = [pa.decimal128(6, 2)]

INTEGERS = st.sampled_from(
    [-(2**63), -(2**31), -129, -128, -1, 0, 1, 2, 127, 128, 255, 2**31, 2**53 + 1, 2**63 - 1]
)
NUMBERS = st.sampled_from([-math.inf, -1.5, -1.0, -0.0, 0.5, 1.0, 127.5, 2.0**53, 2.0**63, 1e300, math.inf])
MICROS = st.sampled_from([-DAY, -1, 0, 1, 999, 10**6, 1_500_000, DAY, 2 * DAY])

INSTANT = MICROS.map(lambda micros: EPOCH + timedelta(microseconds=micros))


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, rarely some that SQL alone understands."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_integer(kind):
        least, most = (0, 2**kind.bit_width - 1) if kind in UNSIGNED else (-(2 ** (kind.bit_width - 1)), 0)
        most = most or 2 ** (kind.bit_width - 1) - 1
        small = st.integers(max(least, -3), 3)
        return st.one_of(small, small, small, st.sampled_from([least, most, min(most, 2**63)]))
    if pa.types.is_floating(kind):
        return st.one_of(NUMBERS.filter(lambda number: abs(number) != 1e300), st.just(math.nan))
    if pa.types.is_decimal(kind):
        return st.just(None)
    if pa.types.is_timestamp(kind):
        per_tick = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 1}[kind.unit]
        usual = MICROS.map(lambda micros: micros // per_tick * (1000 if kind.unit == "ns" else 1))
        return st.one_of(usual, usual, usual, usual, st.sampled_from([2**63 - 1, -(2**63) + 1, 2**62]))
    if pa.types.is_date(kind):
        return st.one_of(st.integers(-2, 2), st.integers(-2, 2), st.sampled_from([2**31 - 1, 10**9]))
    return st.sampled_from(TEXTS)


def array_of_type(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The values as an array of any of these types; instants are given as they are stored."""
    if pa.types.is_dictionary(kind):
        plain = pa.array(
            values, kind.value_type if not pa.types.is_string_view(kind.value_type) else pa.string()
        )
        encoded = plain.dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            encoded.indices.cast(kind.index_type), encoded.dictionary.cast(kind.value_type)
        )
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, pa.int32()).cast(kind) if pa.types.is_date(kind) else pa.array(values, kind)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Columns of all these types and a time in order, in chunks."""
    rows = draw(st.integers(0, 12))
    types = {
        "type": draw(st.sampled_from(STRINGS)),
        "s": draw(st.sampled_from(STRINGS)),
        "n": draw(st.sampled_from(SIGNED + UNSIGNED)),
        "x": draw(st.sampled_from(FLOATS)),
        "b": pa.bool_(),
        "t": draw(st.sampled_from(INSTANTS)),
        "d": draw(st.sampled_from(DECIMALS)),
    }
    columns = {}
    for name, kind in types.items():
        value = st.sampled_from([*TYPES, "D"]) if name == "type" else values_of(kind)
        known = draw(st.booleans())
        cells = draw(st.lists(value if known else st.one_of(value, st.none()), min_size=rows, max_size=rows))
        columns[name] = array_of_type(cells, kind)
    kind = draw(st.sampled_from([pa.int16(), pa.int64(), pa.uint64(), *INSTANTS]))
    steps = draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows))
    columns["time"] = array_of_type([sum(steps[:place]) for place in range(rows)], kind)
    table = pa.table(columns)
    skipped = draw(st.integers(0, min(2, rows)))
    return pa.Table.from_batches(table.slice(skipped).to_batches(draw(st.integers(1, 12))), table.schema)


def literal_for(name: str) -> st.SearchStrategy[Literal]:
    """Constants that a column can be compared with, NULL among them."""
    known: dict[str, st.SearchStrategy[Any]] = {
        "s": st.sampled_from(TEXTS),
        "n": st.one_of(INTEGERS, NUMBERS),
        "x": st.one_of(NUMBERS, st.integers(-2, 130), st.just(2**53 + 1)),
        "b": st.booleans(),
        "t": INSTANT,
    }
    return st.one_of(known[name], known[name], known[name], st.none()).map(Literal)


def leaves() -> st.SearchStrategy[Node]:
    """Conditions on one column."""

    def of(name: str) -> st.SearchStrategy[Node]:
        column, constants = st.just(Attribute(name)), literal_for(name)
        known = constants.filter(lambda literal: literal.value is not None)
        kinds: dict[str, list[st.SearchStrategy[Any]]] = {
            "s": [st.sampled_from(TEXTS)],
            "n": [INTEGERS, NUMBERS],
            "x": [NUMBERS, INTEGERS],
            "t": [INSTANT],
        }
        every = [
            st.builds(Comparison, st.sampled_from(SIGNS), column, constants),
            st.builds(Comparison, st.sampled_from(SIGNS), constants, column),
            st.builds(Between, column, constants, constants),
            st.builds(IsNull, column),
            st.builds(In, column, st.lists(constants, min_size=1, max_size=4).map(tuple)),
        ]
        if name in "nxt":
            ranges = st.builds(Range, known, known)
            every.append(st.builds(In, column, st.lists(ranges, min_size=1, max_size=2).map(tuple)))
        every += [
            st.builds(InList, column, st.lists(values, max_size=4).map(listed))
            for values in kinds.get(name, [])
        ]
        return st.one_of(every)

    return st.one_of(*map(of, "snxbt"), st.just(Attribute("b")), st.booleans().map(Literal))


def listed(values: Sequence[Any]) -> ListOf:
    """A bound list of these values, each once."""
    values = tuple(dict.fromkeys(values))
    return ListOf("list", repr(values), values=values)


CONDITIONS = st.recursive(
    leaves(),
    lambda parts: st.one_of(
        st.builds(Not, parts),
        st.lists(parts, min_size=2, max_size=3).map(tuple).map(And),
        st.lists(parts, min_size=2, max_size=3).map(tuple).map(Or),
    ),
    max_leaves=5,
)
PREDICATES = st.builds(
    EventPredicate,
    st.lists(st.sampled_from(TYPES), max_size=2, unique=True).map(tuple),
    st.one_of(st.none(), CONDITIONS),
)


def with_condition(predicate: EventPredicate, condition: Node) -> EventPredicate:
    """The predicate with another condition joined by AND."""
    own = () if predicate.condition is None else (predicate.condition,)
    return EventPredicate(predicate.types, And((condition, *own)) if own else condition)


SOME_TYPES = st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True).map(tuple)
VALUES = st.one_of(
    st.builds(Value, st.sampled_from([Attribute(name) for name in ("n", "x", "b", "t", "none")]), SOME_TYPES),
    st.builds(Value, st.just(Attribute("s")), SOME_TYPES, st.sampled_from([0, 1])),
)


def classified(source: Source, classification: Classification) -> tuple[pa.Schema, list[str]] | str:
    """The classified table as rows of text, for which NaN is NaN, and its columns; or the error."""
    try:
        schema = source.classified_schema(classification)
        batches = list(source.read(classification))
    except DataError as error:
        return str(error)
    assert all(batch.schema.equals(schema) and batch.num_rows for batch in batches)
    for batch in batches:
        batch.validate(full=True)
    return plain_schema(schema), [row for batch in batches for row in rows_of(batch)]


def rows_of(batch: pa.RecordBatch) -> list[str]:
    """The rows as text, instants as integers: Python knows not all of them."""
    stored = [
        column.view(pa.int64() if column.type.bit_width == 64 else pa.int32())
        if pa.types.is_temporal(column.type)
        else column
        for column in batch.columns
    ]
    rows = []
    for cells in zip(*(column.to_pylist() for column in stored), strict=True):
        row = dict(zip(batch.schema.names, cells, strict=True))
        if not any(row[name] for name in row if name.startswith(BITS)):
            # Nobody reads the values of an event that no condition wants, and SQL leaves them out.
            row |= dict.fromkeys((name for name in row if name.startswith(VALUE)), None)
        rows.append(repr(tuple(row.values())))
    return rows


def both(
    events: Any, layout: EventLayout, parts: dict[str, Any]
) -> tuple[tuple[pa.Schema, list[str]] | str, tuple[pa.Schema, list[str]] | str]:
    """What is read without SQL, where that is plain, and with it."""
    found = []
    for way in ("plain", "sql"):
        source = open_source(events() if callable(events) else events, layout)
        classification = Classification(
            schema=source.schema, type_column=source.type_column, only_type="A", **parts
        )
        with pytest.MonkeyPatch.context() as patch:
            if way == "sql":
                patch.setattr("estero.events.sources.plain_classifier", lambda *_: None)
                patch.setattr("estero.events.sources.plain_schema", lambda *_: None)
            found.append(classified(source, classification))
    plain, sql = found
    return plain, sql


@given(
    table=tables(),
    predicates=st.lists(PREDICATES, max_size=6).map(tuple),
    more=st.fixed_dictionaries(
        {
            "keys": st.sampled_from(
                [
                    (),
                    *((("n",),), (("b",),), (("t",),), (("s",),), (("x",),), (("d",),)),
                    *((("none", "n"),), (("none", "s"),), (("s", "n"),)),
                    *((("s",), ("n",)), (("type",), ("x",)), (("b",), ("s",), ("t",))),
                ]
            ),
            "encoded": st.booleans(),
            "keep_all": st.booleans(),
            "payload": st.lists(st.sampled_from(["s", "n", "x", "b", "t", "d", "type"]), unique=True).map(
                tuple
            ),
            "values": st.lists(VALUES, max_size=3, unique=True).map(tuple),
        }
    ),
    layout=st.sampled_from(
        [EventLayout.of("type", "time"), EventLayout.of("type"), EventLayout.of(time="time", only_type="A")]
    ),
    common=st.one_of(st.none(), leaves()),
    small=st.booleans(),
)
def test_vectors_give_what_sql_gives(
    table: pa.Table,
    predicates: tuple[EventPredicate, ...],
    more: dict[str, Any],
    layout: EventLayout,
    common: Node | None,
    small: bool,
) -> None:
    if common is not None:
        predicates = tuple(with_condition(predicate, common) for predicate in predicates)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_tables, "MOST_ROWS", 1 << 16 if small else -1)
        plain, sql = both(table, layout, {"predicates": predicates, **more})
    event("an error" if isinstance(sql, str) else "rows" if sql[1] else "no row")
    assert plain == sql


def test_lists_are_compared_with_floats_as_doubles() -> None:
    table = pa.table({"type": ["A"] * 4, "x": pa.array([0.1, 0.5, math.inf, 1e30], pa.float32())})
    listed = ListOf("list", "0.1, 0.5, 1e300", values=(0.1, 0.5, 1e300))
    predicates = (EventPredicate(("A",), InList(Attribute("x"), listed)),)
    plain, sql = both(table, EventLayout.of("type"), {"predicates": predicates})
    assert plain == sql
    assert plain[1] == ["(1, 1, 1)"]


def test_values_that_may_overflow_stand_beside_lists() -> None:
    """DuckDB takes no name of a column with a subquery in the same SELECT."""
    table = pa.table({"type": ["A", "A"], "s": ["x", "y"], "n": pa.array([1, 2], pa.uint64())})
    listed = InList(Attribute("s"), ListOf("list", "x", values=("x",)))
    parts = {"predicates": (EventPredicate(("A",), listed),), "values": (Value(Attribute("n"), ("A",)),)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_tables, "MOST_ROWS", -1)
        plain, sql = both(table, EventLayout.of("type"), parts)
    assert plain == sql
    assert plain[1] == ["(0, 0, 1, 1)"]


def without_views(table: pa.Table) -> pa.Table:
    """The same events in columns that the writer of Parquet takes."""
    for place, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string_view(kind):
            texts = pa.array(table.column(place).to_pylist(), pa.string())
            table = table.set_column(place, field.name, [texts])
    return table


SOME = st.lists(PREDICATES, min_size=1, max_size=3).map(tuple)


@given(table=tables(), predicates=SOME, keep_all=st.booleans())
def test_streams_and_files_give_what_sql_gives(
    table: pa.Table, predicates: tuple[EventPredicate, ...], keep_all: bool
) -> None:
    table = table.set_column(7, "time", pa.array(range(table.num_rows), pa.int32()))
    parts = {"predicates": predicates, "keep_all": keep_all, "payload": ("type", "s", "x", "t")}
    layout = EventLayout.of("type", "time")
    plain, sql = both(lambda: iter(table.to_batches()), layout, parts) if table.num_rows else ("", "")
    assert plain == sql
    written = without_views(table)
    with tempfile.TemporaryDirectory() as folder:
        arrow, parquet = Path(folder, "events.arrow"), Path(folder, "events.parquet")
        with pa.OSFile(str(arrow), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        paths = [arrow]
        with suppress(pa.ArrowInvalid):  # of a time that Parquet does not have
            pq.write_table(written, parquet, row_group_size=5)
            paths.append(parquet)
        for path in paths:
            plain, sql = both(str(path), layout, parts)
            assert plain == sql


@pytest.mark.parametrize("statistics", [True, False])
def test_columns_without_a_value_in_a_row_group_are_null_there(tmp_path: Path, *, statistics: bool) -> None:
    texts = [None] * 4 + ["a", None] + [None] * 2
    table = pa.table(
        {
            "s": pa.array(texts, pa.string()),
            "t": pa.array(texts, pa.string()),
            "n": pa.array([None] * 6 + [1, 2], pa.int32()),
        }
    )
    path = tmp_path / "events.parquet"
    pq.write_table(table, path, row_group_size=2, write_statistics=statistics)
    source = open_source(str(path))
    reader = next(iter(source._inputs.values())).reader(["n", "s"])
    assert reader.read_all().to_pylist() == table.select(["n", "s"]).to_pylist()
    parts = {"predicates": (EventPredicate(("Event",)),), "payload": ("s", "t", "n")}
    plain, sql = both(str(path), EventLayout(), parts)
    assert plain == sql


@given(
    table=tables(),
    predicates=SOME,
    keys=st.sampled_from([(("b",),), (("s",),), (("s",), ("n",)), (("none", "s"),)]),
    values=st.lists(VALUES, max_size=2, unique=True).map(tuple),
    encoded=st.booleans(),
)
def test_pushed_batches_are_classified_as_by_sql(
    table: pa.Table,
    predicates: tuple[EventPredicate, ...],
    keys: tuple[tuple[str, ...], ...],
    values: tuple[Value, ...],
    encoded: bool,
) -> None:
    layout = layout_of(Scan(table.schema, EventLayout.of("type", "time")))
    source = layout.source()
    classification = Classification(
        predicates,
        source.schema,
        source.type_column,
        payload=("s", "n", "t"),
        keys=keys,
        values=values,
        encoded=encoded,
    )
    found: list[object] = []
    for way in ("plain", "sql"):
        with pytest.MonkeyPatch.context() as patch:
            if way == "sql":
                patch.setattr("estero.events.streams.batch_classifier.plain_classifier", lambda *_: None)
            classifier = Classifier(layout, source, classification)
            try:
                incoming = classifier.classified(*classifier.opened(table))
                found.append(
                    (incoming.classified.schema, rows_of(incoming.classified), incoming.times.tolist())
                )
            except DataError as error:
                found.append(str(error))
            classifier.close()
    assert found[0] == found[1]


@pytest.mark.parametrize("strings", STRINGS, ids=str)
@pytest.mark.parametrize("times", [[1, None, 3], [3, 2, 1]], ids=["NULL", "not in order"])
@pytest.mark.parametrize("form", ["table", "stream", "arrow", "parquet"])
def test_errors_are_those_of_sql(
    strings: pa.DataType, times: list[int | None], form: str, tmp_path: Path
) -> None:
    table = pa.table({"type": array_of_type(["A", "B", "A"], strings), "time": times})
    events: Any = table
    if form == "stream":
        events = lambda: iter(table.to_batches(1))  # noqa: E731
    elif form != "table":
        events = str(tmp_path / f"events.{form}")
        if form == "arrow":
            with pa.OSFile(events, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
        else:
            pq.write_table(without_views(table), events)
    plain, sql = both(events, EventLayout.of("type", "time"), {"predicates": (EventPredicate(("A",)),)})
    assert plain == sql
    assert isinstance(sql, str) == (None in times or form == "stream")


def test_plain_queries_load_neither_duckdb_nor_what_writes_sql(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table({"type": ["A", "B"], "n": [1, 2], "time": [1, 2]}), path)
    program = f"""
import sys
import pyarrow.parquet
import estero
query = estero.query("SELECT * WHERE A ; B FILTER A[n > 0] AND B[NOT n = 3 OR n IS NULL]")
for events in ({str(path)!r}, pyarrow.parquet.read_table({str(path)!r})):
    assert query.run(events, type="type", time="time").count() == 1
recognizer = query.recognizer(pyarrow.parquet.read_schema({str(path)!r}), type="type", time="time")
assert len(list(recognizer.push(pyarrow.parquet.read_table({str(path)!r})))) == 1
print([name for name in ("duckdb", "sqlglot") if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize("strings", STRINGS, ids=str)
def test_types_that_occur_are_known_of_all_strings(strings: pa.DataType) -> None:
    table = pa.table({"type": array_of_type(["B", "A", None, "B"], strings)})
    for events in (table, table.slice(0, 0), pa.RecordBatchReader.from_batches(table.schema, [])):
        source = open_source(events, EventLayout.of("type"))
        there = table is events
        assert (source.has_type("A"), source.has_type("C")) == (there or source.one_shot, source.one_shot)
        assert source.type_names() == (("A", "B") if there else ())
