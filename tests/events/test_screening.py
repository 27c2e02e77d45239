"""Screening changes how relevant events are found, not which, nor what is said of them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estero.automata.cea import EventPredicate
from estero.classify import splits
from estero.errors import DataError
from estero.events import screening, small_tables
from estero.events.sources import Source, open_source
from estero.language.tree.expressions import And, Arithmetic, Attribute, Comparison, In, Literal, Node, Or
from estero.language.tree.schema import EventLayout, Schema
from estero.plan.plan import Classification
from estero.reference.queries import Event
from strategies.patterns import STRINGS, TYPES, predicates, streams, to_table

STRING_TYPES = {
    "plain": pa.string(),
    "large": pa.large_string(),
    "encoded": pa.dictionary(pa.int8(), pa.string()),
}


@pytest.fixture(autouse=True, scope="module")
def none_is_small() -> Generator[None]:
    """Small tables would not be screened."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_tables, "MOST_ROWS", -1)
        yield


def source_of(table: pa.Table, strings: str, rows: int = 5) -> Source:
    """The table as a source, its strings in this form, in batches of so many rows."""
    for name in ("type", "s"):
        place = table.schema.get_field_index(name)
        column = table.column(name)
        column = column.dictionary_encode().cast(STRING_TYPES[strings]) if strings == "encoded" else column
        table = table.set_column(place, name, column.cast(STRING_TYPES[strings]))
    return open_source(
        pa.Table.from_batches(table.to_batches(rows)), EventLayout.of(type="type", time="time", time_unit="s")
    )


def found(source: Source, asked: tuple[EventPredicate, ...], **more: Any) -> list[str]:
    """The classified rows as text: NaN equals NaN that way."""
    classification = Classification(asked, source.schema, type_column="type", **more)
    return [repr(row) for batch in source.read(classification) for row in batch.to_pylist()]


def string_tests() -> st.SearchStrategy[Node]:
    texts = STRINGS.map(Literal)
    return st.one_of(
        st.builds(Comparison, st.just("="), st.just(Attribute("s")), texts),
        st.builds(Comparison, st.just("="), texts, st.just(Attribute("s"))),
        st.builds(In, st.just(Attribute("s")), st.lists(texts, min_size=1, max_size=3).map(tuple)),
    )


def event_predicates() -> st.SearchStrategy[EventPredicate]:
    one = st.one_of(string_tests(), string_tests(), predicates(max_depth=1))
    conditions = st.one_of(st.none(), one, st.lists(one, min_size=2, max_size=3).map(tuple).map(And))
    types = st.lists(st.sampled_from(TYPES), min_size=1, max_size=2, unique=True).map(tuple)
    return st.builds(EventPredicate, types, conditions)


@given(
    asked=st.lists(event_predicates(), min_size=1, max_size=70).map(tuple),
    events=streams(min_size=1),
    strings=st.sampled_from(list(STRING_TYPES)),
    keys=st.sampled_from([(), (("k",),), (("s",),), (("k", "n"),), (("n",), ("s",))]),
    keep_all=st.booleans(),
)
def test_screened_events_are_those_of_sql_alone_and_of_prepared_statements(
    asked: tuple[EventPredicate, ...],
    events: list[Event],
    strings: str,
    keys: tuple[tuple[str, ...], ...],
    keep_all: bool,
) -> None:
    more: dict[str, Any] = {"keys": keys, "keep_all": keep_all, "payload": ("x", "s")}
    source = source_of(to_table(events), strings)
    quick = found(source, asked, **more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Source, "_screen", lambda *_: None)
        assert quick == found(source, asked, **more)
        patch.setattr(small_tables, "MOST_ROWS", 1 << 16)
        assert quick == found(source, asked, **more)


@pytest.mark.parametrize("strings", list(STRING_TYPES))
def test_order_and_positions_hold_over_many_batches(strings: str) -> None:
    rng = np.random.default_rng(5)
    size = 400_000
    names = np.array([f"{'x' * (code % 12)}{code}" for code in range(40)])
    table = pa.table(
        {"type": rng.choice(["A", "B"], size), "s": names[rng.integers(0, 40, size)], "time": np.arange(size)}
    )
    wanted = In(Attribute("s"), tuple(Literal(str(name)) for name in names[:30]))
    asked = (
        EventPredicate(("A",), wanted),
        EventPredicate(("B",), Comparison("=", Attribute("s"), Literal("0"))),
    )
    source = source_of(table, strings, rows=90_000)
    classification = Classification(asked, source.schema, type_column="type")
    assert source._screen(classification) is not None
    batches = list(source.read(classification))
    positions = np.concatenate([batch.column(0).to_numpy() for batch in batches])
    of_a = np.isin(np.array(table["s"]), names[:30]) & (np.array(table["type"]) == "A")
    of_b = (np.array(table["s"]) == "0") & (np.array(table["type"]) == "B")
    assert (positions == np.flatnonzero(of_a | of_b)).all()
    bits = np.concatenate([batch.column("__bits0").to_numpy() for batch in batches])
    assert (bits == (of_a + 2 * of_b)[positions]).all()


@pytest.mark.parametrize("strings", list(STRING_TYPES))
def test_null_and_hard_strings_are_told_apart(strings: str) -> None:
    texts = [
        "",
        "a",
        "a\0",
        "abcdefgh",
        "abcdefghi",
        "abcdefgh\0",
        None,
        "é" * 4,
        "é" * 5,
        "\U0001d11e",
        "end",
    ]
    table = pa.table({"type": ["A"] * len(texts), "s": texts, "time": range(len(texts))})
    for place, text in enumerate(texts):
        asked = (EventPredicate(("A",), Comparison("=", Attribute("s"), Literal(text))),)
        source = source_of(table, strings)
        batches = list(source.read(Classification(asked, source.schema, type_column="type")))
        positions = [row["__position"] for batch in batches for row in batch.to_pylist()]
        assert positions == ([] if text is None else [place])


@pytest.mark.parametrize("indices", [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.int64()])
def test_indices_of_any_width_of_slices_and_of_null_are_looked_up(indices: pa.DataType) -> None:
    texts = ["a", None, "b", "c", "a", "b", None, "a"]
    first = pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 2], indices), ["a", "b", "c"])
    second = pa.DictionaryArray.from_arrays(pa.array([2, 1, 0, 2], indices), [None, "b", "a"])
    columns = pa.chunked_array([first, second])
    assert columns.to_pylist() == texts
    types = pa.array(["A"] * 8).dictionary_encode().cast(pa.dictionary(indices, pa.string()))
    table = pa.table({"type": types, "s": columns, "time": range(8)}).slice(1, 7)
    others = tuple(Comparison("=", Attribute("s"), Literal(f"x{number}")) for number in range(70))
    is_a, is_b = (Comparison("=", Attribute("s"), Literal(text)) for text in "ab")
    asked = tuple(EventPredicate(("A",), condition) for condition in (is_a, *others, is_b))
    source = open_source(table, EventLayout.of(type="type", time="time", time_unit="s"))
    classification = Classification(asked, source.schema, type_column="type")
    assert source._screen(classification) is not None
    rows = [row for batch in source.read(classification) for row in batch.to_pylist()]
    seen = [(row["__position"], row["__bits0"], row["__bits1"]) for row in rows]
    assert seen == [(1, 0, 1 << 8), (3, 1, 0), (4, 0, 1 << 8), (6, 1, 0)]


@pytest.mark.parametrize("strings", list(STRING_TYPES))
@pytest.mark.parametrize("first", ["a", "b"])
def test_a_short_first_batch_does_not_decide_whether_many_rows_pass(strings: str, first: str) -> None:
    named_a = EventPredicate(("A",), Comparison("=", Attribute("s"), Literal("a")))
    kind = STRING_TYPES[strings]

    def batch(names: list[str]) -> pa.RecordBatch:
        columns = [pa.array(texts).cast(kind) for texts in (["A"] * len(names), names)]
        return pa.RecordBatch.from_arrays(columns, ["type", "s"])

    short, long = batch([first]), batch(["a", *["b"] * 4_999])
    screen = screening.Screen(Classification((named_a,), Schema(), type_column="type"), short.schema)
    assert sum(passed.num_rows for passed in screen.passed([short])) == (first == "a")
    assert screen.passes_often == (first == "a")
    assert sum(passed.num_rows for passed in screen.passed([long])) == 1
    assert not screen.passes_often


def test_without_a_type_column_a_predicate_on_another_type_is_false() -> None:
    named = Comparison("=", Attribute("s"), Literal("a"))
    table = pa.table({"s": ["a", "b", "a"], "n": [1, 2, 3]})
    source = open_source(table, EventLayout.of(only_type="A"))
    asked = tuple(EventPredicate((name,), named) for name in "AB")
    classification = Classification((*asked, EventPredicate(("B",))), source.schema, only_type="A")
    assert source._screen(classification) is not None
    rows = [row for batch in source.read(classification) for row in batch.to_pylist()]
    assert [(row["__position"], row["__bits0"]) for row in rows] == [(0, 1), (2, 1)]


def test_what_does_not_ask_for_strings_is_left_to_sql() -> None:
    either = Or((Comparison("=", Attribute("s"), Literal("a")), Comparison("=", Attribute("n"), Literal(1))))
    predicate = EventPredicate(("A", "B"), And((Comparison("=", Attribute("s"), Literal("b")), either)))
    assert splits.split(predicate, "type", {"s"}) == splits.Split(
        {"type": frozenset("AB"), "s": frozenset("b")}, either
    )
    assert splits.split(predicate, None, set()) == splits.Split({}, predicate.condition)
    views = pa.schema([("type", pa.string()), ("s", pa.string_view())])
    assert screening.Screen(Classification((predicate,), Schema(), "type", payload=("s",)), views).useful


def test_an_overflow_in_an_event_that_is_screened_away_is_none() -> None:
    table = pa.table(
        {"type": ["A", "B", "A"], "s": ["a", "a", "b"], "n": [1, 2**63 - 1, 2**63 - 1], "time": [1, 2, 3]}
    )
    more = Comparison(">", Arithmetic("+", Attribute("n"), Literal(1)), Literal(0))
    source = source_of(table, "plain")
    named = (EventPredicate(("A",), And((Comparison("=", Attribute("s"), Literal("a")), more))),)
    assert len(found(source, named)) == 1
    with pytest.raises(DataError, match=r"a number does not fit into 64 bits: .*, in A\[n \+ 1 > 0\]"):
        found(source, (EventPredicate(("A",), more),))


def test_queries_after_a_screened_one_have_all_threads_again() -> None:
    table = pa.table({"type": ["A", "B"], "s": ["a", "b"], "n": [1, 2], "time": [1, 2]})
    source = source_of(table, "plain")
    asked = "SELECT current_setting('threads') AS threads"
    default = source._sql.rows(asked)
    one_more = Comparison(">", Arithmetic("+", Attribute("n"), Literal(1)), Literal(0))
    classification = Classification((EventPredicate(("A",), one_more),), source.schema, "type")
    screened = source.read(classification)
    assert isinstance(screened, Generator)
    assert next(screened).num_rows == 1
    assert source._sql.rows(asked) == [(1,)]  # a second query leaves the screened one its only thread
    screened.close()
    assert source._sql.rows(asked) == default


def test_an_iterator_is_screened_and_its_order_checked_all_the_same() -> None:
    table = pa.table({"type": ["A", "B", "B", "A"], "s": ["a", "b", "b", "a"], "time": [1, 5, 4, 6]})
    asked = (EventPredicate(("A",)),)
    source = open_source(iter(table.to_batches(2)), EventLayout.of(type="type", time="time"))
    with pytest.raises(DataError, match="row 3: the event is earlier than the one before it"):
        found(source, asked)
    source = open_source(iter(table.slice(0, 2).to_batches(1)), EventLayout.of(type="type", time="time"))
    assert len(found(source, asked)) == 1
