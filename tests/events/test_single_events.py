"""Single events in Python have the bits, keys, times and values that DuckDB gives them in a batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estero.automata.cea import EventPredicate
from estero.automata.registers import Value
from estero.classify.rows.texts import regex_test
from estero.classify.rows.typed import AskSqlError, NotInPythonError
from estero.classify.vectors.arrow_types import value_type
from estero.events.streams.batch_classifier import Classifier
from estero.events.streams.single_events import SingleEvents
from estero.events.streams.stream_layout import StreamLayout
from estero.language.syntax.parser import parse_condition
from estero.language.tree.expressions import Comparison, EventFilter, Matches, Node
from estero.language.tree.schema import EventLayout
from estero.plan.plan import Classification
from estero.reference.queries import Event
from strategies.patterns import predicates, streams, to_table

COLUMNS = pa.schema(
    [
        ("type", pa.string()),
        ("b", pa.bool_()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("s", pa.string()),
        ("r", pa.large_string()),
        ("d", pa.date32()),
        ("n", pa.null()),
        ("e", pa.dictionary(pa.int32(), pa.string())),
        ("ed", pa.dictionary(pa.int8(), pa.date32())),
        ("et", pa.dictionary(pa.int32(), pa.timestamp("ms"))),
        *((f"i{bits}", pa.type_for_alias(f"int{bits}")) for bits in (8, 16, 32, 64)),
        *((f"u{bits}", pa.type_for_alias(f"uint{bits}")) for bits in (8, 16, 32)),
        *((f"t{unit}", pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")),
        *((f"z{unit}", pa.timestamp(unit, "Asia/Tokyo")) for unit in ("s", "ms", "us", "ns")),
    ]
)


def condition(text: str) -> Node:
    """A predicate over one event."""
    node = parse_condition(f"x[{text}]")
    assert isinstance(node, EventFilter)
    return node.predicate


def value(text: str, hashed: int | None = None) -> Value:
    """What is compared with other events."""
    node = condition(f"{text} = 0")
    assert isinstance(node, Comparison)
    return Value(node.left, ("A", "B"), hashed)


class Both:
    """A stream that is classified in batches and by single events."""

    def __init__(
        self, schema: pa.Schema, asked: Sequence[EventPredicate], *, time: str | None = None, **more: Any
    ) -> None:
        layout = StreamLayout({"": schema}, EventLayout.of("type", time))
        source = layout.source()
        more.setdefault("payload", tuple(schema.names))
        classification = Classification(tuple(asked), source.schema, type_column="type", **more)
        self.batches = Classifier(layout, source, classification)
        self.single = SingleEvents(layout, source, classification, self.batches.schema, self.batches.ask)

    def alone(self, events: Sequence[Any]) -> pa.RecordBatch:
        """The relevant events, classified one by one, as a batch."""
        found = []
        for position, event in enumerate(events):
            row = self.single.row(event)
            assert row is not None
            classified = self.single.classified(row, self.single.time(row))
            if classified is not None:
                found.append((position, classified))
        return self.single.batch(found)

    def assert_same(self, table: pa.Table) -> None:
        """Rows as dicts, as tuples and as batches give what the table gives."""
        expected = self.batches.classified(*self.batches.opened(table)).classified
        dicts = rows_of(table)
        tuples = [tuple(row.values()) for row in dicts]
        batches = [table.slice(row, 1).combine_chunks() for row in range(table.num_rows)]
        for events in (dicts, tuples, batches, [batch.to_batches()[0] for batch in batches]):
            found = self.alone(events)
            assert found.schema.equals(expected.schema)
            assert same_values(found, expected), f"{found.to_pydict()}\n{expected.to_pydict()}"


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def same_values(one: pa.RecordBatch, other: pa.RecordBatch) -> bool:
    """Equal, and NaN to NaN."""
    return all(
        a.equals(b) or (pa.types.is_floating(a.type) and str(a.to_pylist()) == str(b.to_pylist()))
        for a, b in zip(one.columns, other.columns, strict=True)
    )


# ------------------------------------------------------------------------------------- every type

MOMENT = datetime(2024, 2, 29, 23, 59, 58, tzinfo=UTC)


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows in the columns of every type; Arrow itself makes no dictionaries of times."""
    plain = pa.schema([(field.name, value_type(field.type)) for field in COLUMNS])
    table = pa.Table.from_pylist(rows, schema=plain)
    for place, field in enumerate(COLUMNS):
        if pa.types.is_dictionary(field.type):
            encoded = table.column(place).dictionary_encode().cast(field.type)
            table = table.set_column(place, field, encoded)
    return table


def of_every_type() -> pa.Table:
    """A row of values in the middle, one at the edges, one of NULLs, and the first again."""
    times = [field.name for field in COLUMNS if pa.types.is_timestamp(field.type)]
    middle: dict[str, Any] = {
        "type": "A",
        "b": True,
        "f": 1.5,
        "g": 0.1,
        "s": "é\U0001d11e",
        "r": "",
        "e": "x",
    }
    middle |= {f"i{bits}": -7 for bits in (8, 16, 32, 64)} | {f"u{bits}": 7 for bits in (8, 16, 32)}
    middle |= {"d": MOMENT.date(), "n": None, "ed": MOMENT.date(), "et": MOMENT} | dict.fromkeys(
        times, MOMENT
    )
    edge = middle | {"f": math.nan, "g": -math.inf, "d": date(1, 1, 1), "b": False, "s": "a\0b"}
    edge |= {f"i{bits}": -(2 ** (bits - 1)) for bits in (8, 16, 32, 64)}
    edge |= {f"u{bits}": 2**bits - 1 for bits in (8, 16, 32)}
    edge |= {"tus": datetime(1, 1, 1, tzinfo=UTC), "ts": datetime(9999, 12, 31, tzinfo=UTC)}
    return table_of([middle, edge, {"type": "B"}, middle])


@pytest.mark.parametrize("key", [None, *(name for name in COLUMNS.names if name != "n")])
def test_values_of_every_type_come_out_as_from_a_batch(key: str | None) -> None:
    keys = () if key is None else ((key,),)
    asked = (EventPredicate(("A", "B")), EventPredicate(("A",), condition("i64 < 0")))
    Both(COLUMNS, asked, keys=keys).assert_same(of_every_type())


@pytest.mark.parametrize(
    "keys", [(("s",), ("i8",)), (("f",), ("tus",), ("b",)), (("d",), ("g",)), (("missing",),)]
)
def test_keys_of_several_values_are_hashed_alike(keys: tuple[tuple[str, ...], ...]) -> None:
    floats = [0.0, -0.0, math.nan, -math.nan, 1e300, 0.1, math.inf, None]
    others = {"type": "A", "s": "k", "i8": 1, "b": True, "tus": MOMENT, "d": MOMENT.date()}
    rows = [others | {"f": number, "g": number} for number in floats]
    both = Both(COLUMNS, (EventPredicate(("A",)),), keys=keys)
    both.assert_same(table_of(rows * 2))


def test_what_is_compared_with_other_events_is_alike() -> None:
    texts = ("i64", "f", "g", "tus", "b", "f * 2.0", "length(s)", "NULL", "missing", "d", "tms")
    values = [value(text) for text in texts]
    values += [value(name, which) for name in ("s", "r", "e") for which in (0, 1)]
    asked = (EventPredicate(("A", "B", "C")),)
    Both(COLUMNS, asked, values=tuple(values)).assert_same(of_every_type())
    nanos = (*values, value("tns"))
    Both(COLUMNS, asked, values=nanos).assert_same(of_every_type().slice(2))


@pytest.mark.parametrize("time", ["i64", "tus", "ts", "tms", "tns", "zus", "d"])
def test_times_are_ticks_as_in_a_batch(time: str) -> None:
    Both(COLUMNS, (EventPredicate(("A",)),), time=time).assert_same(of_every_type().slice(3))


CONDITIONS = (
    "d = TIMESTAMP '2024-02-29 00:00:00'",
    "tus = tns",
    "ts <= tus AND zms = tms",
    "tms >= TIMESTAMP '2024-02-29 23:59:58'",
    "day(d) = 29 AND hour(tus) = 23 AND second(tns) = 58",
    "u32 > i64 OR g > 0.1",
    "g = 0.1",
    "b AND NOT i8 = 0",
    "e IN {'x', 'y'}",
    "coalesce(n, i16, u8) = -7",
    "coalesce(f, u8) = 1.5",
    "r = '' OR r IS NULL",
    "s LIKE 'é%'",
)


@pytest.mark.parametrize("text", CONDITIONS)
def test_conditions_read_every_type(text: str) -> None:
    asked = (EventPredicate(("A", "B"), condition(text)), EventPredicate(("A",)))
    Both(COLUMNS, asked).assert_same(of_every_type())


# ------------------------------------------------------------------------------------ random ones


@settings(max_examples=60)
@given(
    st.lists(
        st.builds(
            EventPredicate,
            st.lists(st.sampled_from("ABC"), min_size=1, max_size=2, unique=True).map(tuple),
            st.one_of(st.none(), predicates()),
        ),
        min_size=1,
        max_size=6,
    ),
    streams(min_size=1),
    st.sampled_from([(), (("k",),), (("s",),), (("x",),), (("k",), ("s",)), (("x",), ("n",))]),
    st.booleans(),
)
def test_random_events_are_classified_alike(
    asked: list[EventPredicate], events: list[Event], keys: tuple[tuple[str, ...], ...], keep_all: bool
) -> None:
    table = to_table(events)
    asked = [each for each in asked if each.condition is None or not is_left_to_sql(each.condition)]
    Both(table.schema, asked, time="time", keys=keys, keep_all=keep_all).assert_same(table)


def is_left_to_sql(node: Node) -> bool:
    """Whether a regular expression takes too long in Python."""
    return any(isinstance(each, Matches) and regex_test(each.regex) is None for each in node.walk())


def test_many_predicates_fill_several_words() -> None:
    asked = [EventPredicate(("A",), condition(f"i64 = {number}")) for number in range(130)]
    rows = [{"type": "A", "i64": number} for number in (0, 62, 63, 64, 129, 130)]
    Both(COLUMNS, asked, payload=("i64",)).assert_same(table_of(rows))


# -------------------------------------------------------------------------- what users have for values

PLAIN = pa.schema([("type", pa.string()), ("i", pa.int32()), ("f", pa.float64()), ("t", pa.timestamp("ms"))])
BERLIN = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    "given",
    [
        {"i": np.int64(3), "f": np.float32(0.5), "t": np.datetime64("2024-01-01T01:00:00", "ms")},
        {"i": 3, "f": 2, "t": pd.Timestamp("2024-01-01 01:00")},
        {"i": 3.0, "f": np.int8(2), "t": datetime(2024, 1, 1, 2, tzinfo=BERLIN)},
        {"type": np.str_("A"), "i": np.uint8(3), "t": pd.Timestamp("2024-01-01 02:00", tz="Europe/Berlin")},
        {"t": 1_704_070_800_000},
        {},
    ],
)
def test_what_arrow_takes_for_a_value_is_one(given: Mapping[str, Any]) -> None:
    both = Both(PLAIN, (EventPredicate(("A",)),))
    event = {"type": "A", **given}
    expected = both.batches.classified(*both.batches.opened(event)).classified
    found = both.alone([event])
    assert found.equals(expected), (found.to_pydict(), expected.to_pydict())


@pytest.mark.parametrize(
    "event",
    [
        {"type": 7},
        {"type": "\ud800"},
        {"i": 2**31},
        {"i": "3"},
        {"i": True},
        {"f": 2**53 + 1},
        {"t": date(2024, 1, 1)},
        {"f": "x"},
        {"f": Decimal("1.5")},
        {"t": datetime(2024, 1, 1, microsecond=1, tzinfo=UTC)},
        {"t": 2**62},
        {"t": "soon"},
    ],
)
def test_what_is_not_sure_is_left_to_sql(event: dict[str, Any]) -> None:
    single = Both(PLAIN, (EventPredicate(("A",)),)).single
    with pytest.raises(AskSqlError):
        single.row({"type": "A"} | event)


def test_an_event_is_a_mapping_a_tuple_or_one_row() -> None:
    single = Both(PLAIN, (EventPredicate(("A",)),)).single
    row = ("A", 1, 2.0, None)
    assert single.row(row) == single.row({"type": "A", "i": 1, "f": 2, "more": 3}) == row
    table = pa.Table.from_pylist([{"type": "A", "i": 1, "f": 2.0}], schema=PLAIN)
    assert single.row(table) == single.row(table.to_batches()[0]) == row
    two = pa.concat_tables([table] * 2)
    others: list[Any] = [table.slice(1), two, table.select(["i"]), row[:3], [row], 17]
    assert [single.row(other) for other in others] == [None] * len(others)


# ------------------------------------------------------------------------------------- what goes by SQL


TYPED = pa.schema([("type", pa.string())])


@pytest.mark.parametrize(
    ("schema", "more", "reason"),
    [
        (TYPED.append(pa.field("l", pa.list_(pa.int64()))), {}, "the column 'l' holds list<item: int64>"),
        (TYPED.append(pa.field("m", pa.decimal128(5, 2))), {}, "the column 'm' holds decimal128(5, 2)"),
        (TYPED.append(pa.field("u", pa.uint64())), {}, "the column 'u' holds uint64"),
        (
            pa.schema([("type", pa.string()), ("i", pa.int64()), ("s", pa.string())]),
            {"keys": (("i", "s"),)},
            "the alternatives of the key [i, s] differ in kind",
        ),
        (
            pa.schema([("type", pa.string()), ("s", pa.string())]),
            {"asked": (EventPredicate(("A",), condition("s ~ '(a|ab)*c'")),)},
            "the regular expression '(a|ab)*c' is only matched in SQL, in linear time",
        ),
        (
            pa.schema([("type", pa.string()), ("t", pa.timestamp("us")), ("u", pa.timestamp("ns"))]),
            {"asked": (EventPredicate(("A",), condition("coalesce(t, u) IS NULL")),)},
            "coalesce takes values of several kinds",
        ),
    ],
)
def test_streams_that_go_by_sql_say_why(schema: pa.Schema, more: dict[str, Any], reason: str) -> None:
    asked = more.pop("asked", (EventPredicate(("A",)),))
    with pytest.raises(NotInPythonError) as caught:
        Both(schema, asked, **more)
    assert str(caught.value) == reason


def test_layouts_that_go_by_sql_say_why() -> None:
    reasons = []
    for schemas, columns, lateness in (
        ({"A": PLAIN}, EventLayout.of(None, "t"), 0),
        ({"": PLAIN}, EventLayout.of("type", "t", order="i"), 0),
        ({"": PLAIN}, EventLayout.of("type", "t"), 5),
    ):
        layout = StreamLayout(schemas, columns, lateness)
        source = layout.source()
        classification = Classification((), source.schema, type_column=source.type_column)
        batches = Classifier(layout, source, classification)
        with pytest.raises(NotInPythonError) as caught:
            SingleEvents(layout, source, classification, batches.schema, batches.ask)
        reasons.append(str(caught.value))
    assert reasons == [
        "types have tables of their own",
        "columns break ties of time",
        "events are held back for late ones",
    ]


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("i + 1 > 0", {"i": 2**63 - 1}),
        ("i * i > 0 OR s = 'x'", {"i": 2**40, "s": "x"}),
        ("year(t) = 1", {"t": -(2**60)}),
        ("s ~ 'a.*b'", {"s": "a" * 201}),
    ],
)
def test_values_of_which_only_sql_says_what_they_mean_go_by_it(text: str, event: dict[str, Any]) -> None:
    schema = pa.schema(
        [("type", pa.string()), ("i", pa.int64()), ("s", pa.string()), ("t", pa.timestamp("us"))]
    )
    single = Both(schema, (EventPredicate(("A",), condition(text)),)).single
    row = single.row({"type": "A"} | event)
    assert row is not None
    with pytest.raises(AskSqlError):
        single.classified(row, 0)
