"""Which events many conditions hold for, against the reference of each condition and event alone."""

from __future__ import annotations

import math
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from estero.automata.cea import EventPredicate
from estero.classify.column_names import bits_name, event_column
from estero.classify.columns import ColumnType
from estero.events.streams.few_events import FewEvents
from estero.language.tree import expressions as e
from estero.language.tree.paths import field_of
from estero.language.tree.schema import Kind
from estero.recognize.rules.conditions import asked_columns, bounded_columns
from estero.recognize.rules.conditions.asked_columns import FEW_ROWS
from estero.recognize.rules.conditions.bounded_columns import FEWEST_BOUNDS
from estero.recognize.rules.conditions.dispatch import Dispatcher
from estero.recognize.rules.conditions.plain_conditions import plain_conditions
from estero.reference.values import Event, evaluate_expression

INSIDE = field_of("event", "data")
KINDS = {"s": Kind.STRING, INSIDE: Kind.STRING, "n": Kind.INT, "x": Kind.FLOAT, "b": Kind.BOOL}
TYPES = ["A", "B", "C"]

texts = st.sampled_from(["", "a", "A", "ab", "aB", "ba", "%", "a_b", "É", "é"])
numbers = st.integers(-1, 2)
strings = st.sampled_from(["s", INSIDE, "gone"]).map(e.Attribute)
lowered = strings.map(lambda attribute: e.Call("lower", (attribute,)))
signs = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
patterns = st.sampled_from(["a%", "%b", "%a%", "a_b", "%", "", "_", "A%B", "a\\%", "%é%"])
string_tests = st.one_of(
    st.builds(e.Comparison, signs, strings, texts.map(e.Literal)),
    st.builds(e.Comparison, st.sampled_from(["=", "!="]), lowered, texts.map(e.Literal)),
    st.builds(e.Comparison, st.sampled_from(["=", "!="]), strings, strings),
    st.builds(e.Comparison, st.sampled_from(["=", "!="]), lowered, lowered),
    st.builds(e.In, strings | lowered, st.lists(texts.map(e.Literal), min_size=1, max_size=3).map(tuple)),
    st.builds(e.Like, strings | lowered, patterns),
    st.builds(e.Ilike, strings, patterns),
    st.builds(e.Matches, strings, st.sampled_from(["^a", "b$", "(?i)a.", "^$"])),
    st.builds(
        e.Call,
        st.sampled_from(["starts_with", "ends_with", "contains"]),
        st.tuples(strings | lowered, texts.map(e.Literal))
        | st.tuples(strings, strings)
        | st.tuples(lowered, lowered),
    ),
)
number_tests = st.one_of(
    st.builds(e.Comparison, signs, st.just(e.Attribute("n")), numbers.map(e.Literal)),
    st.builds(e.Comparison, signs, st.just(e.Attribute("x")), st.sampled_from([0.5, 1.0]).map(e.Literal)),
    st.builds(
        e.In, st.just(e.Attribute("n")), st.lists(numbers.map(e.Literal), min_size=1, max_size=3).map(tuple)
    ),
)
element = e.Element("t")
element_tests = st.one_of(
    st.builds(e.Comparison, st.just("="), st.just(element), texts.map(e.Literal)),
    st.builds(e.Ilike, st.just(element), patterns.filter(lambda pattern: pattern.strip("%"))),
    st.builds(e.In, st.just(element), st.lists(texts.map(e.Literal), min_size=1, max_size=3).map(tuple)),
)
some_elements = st.builds(
    e.SomeElement,
    st.just(e.Attribute("tags")),
    st.just("t"),
    element_tests | st.builds(e.Or, st.lists(element_tests, min_size=2, max_size=3).map(tuple)),
)
leaves = (
    string_tests
    | some_elements
    | number_tests
    | st.just(e.Attribute("b"))
    | st.builds(e.IsNull, st.sampled_from(list(KINDS)).map(e.Attribute))
)
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(e.And, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(e.Or, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(e.Not, inner),
        inner.map(lambda part: e.Call("coalesce", (part, e.Literal(False)))),
    ),
    max_leaves=6,
)
predicates = st.builds(
    EventPredicate,
    st.lists(st.sampled_from(TYPES), min_size=1, unique=True).map(tuple),
    st.none() | conditions,
)
rows = st.fixed_dictionaries(
    {
        "type": st.sampled_from(TYPES),
        "s": st.none() | texts,
        INSIDE: st.none() | texts,
        "n": st.none() | numbers,
        "x": st.none() | st.sampled_from([0.0, 0.5, 1.0, math.nan]),
        "b": st.none() | st.booleans(),
        "tags": st.none() | st.lists(st.none() | texts, max_size=3),
    }
)
ARROW = {
    "s": pa.string(),
    INSIDE: pa.string(),
    "n": pa.int32(),
    "x": pa.float64(),
    "b": pa.bool_(),
    "tags": pa.list_(pa.string()),
}
ENCODED = pa.dictionary(pa.int32(), pa.string())


def dispatcher_of(asked: list[EventPredicate], schema: pa.Schema, first: int) -> Dispatcher:
    """The conditions of predicates, the `first` of which are added before the others."""
    columns = {name: ColumnType(kind) for name, kind in KINDS.items() if name != INSIDE}
    columns["tags"] = ColumnType(Kind.OPAQUE, element=ColumnType(Kind.STRING))
    columns["event"] = ColumnType(Kind.OPAQUE, fields=(("data", ColumnType(Kind.STRING)),))
    conditions = plain_conditions(asked, columns, schema)
    assert list(conditions) == asked
    dispatcher = Dispatcher(TYPES)
    for some in (asked[:first], asked):
        dispatcher.add({one: conditions[one] for one in some})
    return dispatcher


def holds(predicate: EventPredicate, row: dict[str, object]) -> bool:
    """Whether a predicate holds for an event, by the reference."""
    kind, condition = str(row["type"]), predicate.condition
    if kind not in predicate.types:
        return False
    return condition is None or evaluate_expression(condition, Event(kind, row)) is True


@given(
    st.lists(predicates, min_size=1, max_size=12, unique=True),
    st.lists(st.lists(rows, max_size=8), min_size=1, max_size=4),
    st.lists(st.booleans(), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from([1, 2, FEWEST_BOUNDS]),
    st.sampled_from([0, 4, FEW_ROWS]),
    st.integers(0, 10),
)
def test_conditions_hold_where_the_reference_says(
    asked: list[EventPredicate],
    batches: list[list[dict[str, object]]],
    wants: list[bool],
    encoded: bool,
    bounds: int,
    few: int,
    first: int,
) -> None:
    """Whichever conditions somebody wants to know of each batch, looked up one by one or all at once.

    The `first` of them are there before the others.
    """
    kinds = {**ARROW, **({"s": ENCODED} if encoded else {})}
    schema = pa.schema([(event_column(name), kind) for name, kind in kinds.items()])
    with patch.object(bounded_columns, "FEWEST_BOUNDS", bounds):
        dispatcher = dispatcher_of(asked, schema, first)
    classified = schema.append(pa.field(bits_name(0), pa.int64()))
    for turn, batch in enumerate(batches):
        arrays = [
            pa.array([row[name] for row in batch], ARROW[name]).cast(kind) for name, kind in kinds.items()
        ]
        arrays.append(pa.array([1 << TYPES.index(str(row["type"])) for row in batch], pa.int64()))
        with patch.object(asked_columns, "FEW_ROWS", few):
            held = dispatcher.held(pa.RecordBatch.from_arrays(arrays, schema=classified))
        if held is None:
            assert not batch
            continue
        for place, predicate in enumerate(asked):
            if not wants[(turn + place) % len(wants)]:
                continue
            wanted = [number for number, row in enumerate(batch) if holds(predicate, row)]
            assert held.may_hold[place] or not wanted, predicate
            assert sorted(held.of(place).tolist()) == wanted, predicate


def few(batch: list[dict[str, object]], names: list[str]) -> FewEvents:
    """Events as values of Python, in these columns."""
    schema = pa.schema([(event_column(name), ARROW[name]) for name in names])
    return FewEvents(schema, [[row[name] for row in batch] for name in names], len(batch))


@given(
    st.lists(predicates, min_size=1, max_size=3, unique=True),
    st.lists(rows, min_size=1, max_size=3),
    st.integers(0, 3),
)
def test_events_for_which_a_condition_holds_may_be_wanted(
    asked: list[EventPredicate], batch: list[dict[str, object]], first: int
) -> None:
    schema = pa.schema([(event_column(name), kind) for name, kind in ARROW.items()])
    events = few(batch, ["s", "n", "x", "b", "tags"])
    assert dispatcher_of(asked, schema, first).may_want(events) or not any(
        holds(predicate, row) for predicate in asked for row in batch
    )


def test_events_without_a_required_value_are_not_wanted() -> None:
    schema = pa.schema([(event_column(name), kind) for name, kind in ARROW.items()])
    named = e.Comparison("=", e.Attribute("s"), e.Literal("a"))
    numbered = e.In(e.Attribute("n"), (e.Literal(1), e.Literal(2)))
    greater = e.Comparison(">", e.Attribute("x"), e.Literal(0.5))
    asked = [
        EventPredicate(("A",), condition) for condition in (e.And((greater, named)), e.Or((numbered, named)))
    ]
    row: dict[str, object] = {"s": "b", "n": None, "x": 1.0}
    by = dispatcher_of(asked, schema, 1)
    assert not by.may_want(few([row, row], ["s", "n", "x"]))
    assert by.may_want(few([row, row | {"n": 2}], ["s", "n", "x"]))
    assert by.may_want(few([row | {"s": "a"}, row], ["s", "n", "x"]))
    assert by.may_want(few([row], ["s", "x"]))
    assert dispatcher_of([EventPredicate(("A",), greater)], schema, 0).may_want(few([row], ["s", "n", "x"]))
