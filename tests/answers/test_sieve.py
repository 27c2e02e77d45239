"""What the sieve leaves of complex events, compared with the reference semantics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers.sifting import (
    LABELS,
    Made,
    Marks,
    complex_events,
    conditions_on,
    expected,
    left_by,
    matches_of,
    sifted,
    store_of,
    visible,
)
from estero.answers.sieve import conditions
from estero.answers.sieve.duplicates import Seen
from estero.answers.sieve.sieve import Sieve
from estero.automata.residual import ALL_MARKED, Agreement, Hidden, Key, Residual, columns_read, key_choices
from estero.engine.walk.matches import Matches
from estero.errors import DataError, LimitExceeded, QueryError
from estero.language.syntax.parser import parse_condition
from estero.language.tree.expressions import Node
from estero.language.tree.pattern import PartitionKey
from estero.language.tree.query import Strategy
from estero.language.tree.schema import Kind, Schema
from estero.plan.plan import Classification
from strategies.patterns import SCHEMA, streams

ALL_LABELS = visible("u", "v", "w", "u v", "v w", "u v w")
HIDDEN = (Hidden(0, "c"), Hidden(1), Hidden(1, "a"), Hidden(2), Hidden(2, "b"), Hidden(2, ALL_MARKED))
STRATEGIES = (Strategy.ALL, Strategy.STRICT, Strategy.MAX, Strategy.NEXT, Strategy.LAST)
LABEL_SETS = st.sets(st.sampled_from(LABELS), max_size=2).map(frozenset)


def about(condition: Node | Agreement | str, **bindings: Key) -> Residual:
    """A condition on a complex event as a whole; by default variables are labels."""
    node = parse_condition(condition) if isinstance(condition, str) else condition
    keys = bindings or {each: each for each in (*LABELS, ALL_MARKED)}
    return Residual(node, tuple(keys.items()))


@st.composite
def hiding(draw: st.DrawFn) -> Marks:
    """Mark ids of random labels, visible and hidden ones."""
    sets = st.tuples(LABEL_SETS, st.sets(st.sampled_from(HIDDEN), max_size=3).map(frozenset))
    labels, hidden = zip(*draw(st.lists(sets, min_size=1, max_size=6, unique=True)), strict=True)
    return Marks(labels, hidden)


# -------------------------------------------------------------------------------- against the reference


@given(st.data())
def test_filters_mean_what_the_reference_says(data: st.DataObject) -> None:
    events = data.draw(streams(min_size=3, max_size=10))
    made = data.draw(complex_events(ALL_LABELS, len(events)))
    residuals = [about(data.draw(conditions_on(LABELS))) for _ in range(data.draw(st.integers(1, 2)))]
    assert sifted(residuals, ALL_LABELS, made, events) == expected(residuals, ALL_LABELS, made, events)


@given(st.data())
def test_each_instance_of_a_place_is_asked(data: st.DataObject) -> None:
    marks = data.draw(hiding())
    events = data.draw(streams(min_size=3, max_size=10))
    made = data.draw(complex_events(marks, len(events)))
    keys: list[Key] = ["u", Hidden(1, "a"), Hidden(2, "b"), Hidden(0, "c")]
    names = ("x", "y", "z")
    bindings = tuple((name, data.draw(st.sampled_from(keys))) for name in names)
    residual = Residual(
        data.draw(conditions_on(names)),
        bindings,
        place=data.draw(st.sampled_from([None, 1, 2])),
        refuted=data.draw(st.booleans()),
    )
    assert sifted([residual], marks, made, events) == expected([residual], marks, made, events)


@given(st.data())
def test_keys_agree_where_all_values_are_equal_and_known(data: st.DataObject) -> None:
    marks = data.draw(hiding())
    events = data.draw(streams(min_size=3, max_size=10))
    made = data.draw(complex_events(marks, len(events)))
    numbers, variables = st.sampled_from(["n", "x", "k"]), st.sampled_from(["u", "v", None])
    keys = st.lists(st.builds(PartitionKey, numbers, variables), min_size=1, max_size=3)
    strings = st.just([PartitionKey("s", "u"), PartitionKey("s")])
    agreement = Agreement(tuple(data.draw(st.one_of(keys, strings))))
    keys_of_all: list[Key] = [ALL_MARKED, Hidden(2, ALL_MARKED)]
    everything = data.draw(st.sampled_from(keys_of_all))
    place = data.draw(st.sampled_from([None, 2]))
    residual = Residual(agreement, (("u", "u"), ("v", Hidden(2, "b")), (ALL_MARKED, everything)), place)
    assert sifted([residual], marks, made, events) == expected([residual], marks, made, events)


@given(st.data())
def test_duplicates_strategies_and_chunks(data: st.DataObject) -> None:
    marks = data.draw(hiding())
    events = data.draw(streams(min_size=3, max_size=8))
    made = data.draw(complex_events(marks, len(events), most=20))
    strategy = data.draw(st.sampled_from(STRATEGIES))
    residuals = data.draw(st.sampled_from([[], [about("count(u) > 0 OR u.n < 2")]]))
    cuts = data.draw(st.lists(st.integers(0, len(made)), max_size=4))
    left = expected(residuals, marks, made, events, strategy)
    assert sifted(residuals, marks, made, events, strategy=strategy, cuts=cuts) == left
    limit = data.draw(st.integers(1, 3))
    first = [each for i, each in enumerate(left) if [old.end for old in left[:i]].count(each.end) < limit]
    assert sifted(residuals, marks, made, events, strategy=strategy, limit=limit, cuts=cuts) == first


@given(st.data())
def test_tuples_are_looked_at_in_blocks(data: st.DataObject) -> None:
    events = data.draw(streams(min_size=4, max_size=8))
    made = data.draw(complex_events(ALL_LABELS, len(events)))
    residual = about("u.n <= v.k + w.n AND u.x != w.x")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditions, "BLOCK", data.draw(st.integers(1, 9)))
        found = sifted([residual], ALL_LABELS, made, events)
    assert found == expected([residual], ALL_LABELS, made, events)


# ------------------------------------------------------------------------------------- kinds of values


NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def passing(condition: str | Agreement, columns: dict[str, pa.Array], first: int, second: int) -> bool:
    """Whether a complex event passes that marks event 0 … `first` - 1 with u and the next `second` with v."""
    table = pa.table(columns)
    kinds = dict.fromkeys(columns, Kind.INT)
    marks = visible("u", "v")
    sieve = Sieve(
        [about(condition)],
        marks.labels,
        marks.hidden,
        classification=Classification((), Schema(shared=kinds), type_column="type"),
    )
    items = tuple((event, int(event >= first)) for event in range(first + second))
    return len(left_by(sieve, [matches_of([Made(0, first + second - 1, items)])], store_of(table))) == 1


@pytest.mark.parametrize(
    ("condition", "values", "holds"),
    [
        ("u.a < v.a", pa.array([2**53 + 1, 2**53 + 2], pa.int64()), True),
        ("u.a < v.a", pa.array([1, 2], pa.uint8()), True),
        ("u.a + v.a = 257", pa.array([255, 2], pa.uint8()), True),
        ("u.a = v.a", pa.array([0.0, -0.0]), True),
        ("u.a = v.a", pa.array([float("nan")] * 2), True),
        ("u.a < v.a", pa.array([float("inf"), float("nan")], pa.float32()), True),
        ("u.a < v.a", pa.array([Decimal("1.10"), Decimal("1.20")]), True),
        ("u.a < v.a", pa.array(["Z", "a"]).dictionary_encode(), True),
        ("u.a < v.a", pa.array(["\uffff", "\U0001f600"], pa.large_string()), True),
        ("u.a != v.a", pa.array([True, False]), True),
        ("u.a < v.a", pa.array([date(2024, 5, 1), date(2024, 5, 2)]), True),
        ("u.a < v.a", pa.array([NOON, NOON + timedelta(microseconds=1)]), True),
        ("u.a < v.a", pa.array([1, 2], pa.timestamp("ns")), True),
        ("u.a < v.a", pa.array([None, 2], pa.int64()), False),
        ("u.a IS NULL OR v.a > 5", pa.nulls(2), True),
        ("u.missing IS NULL", pa.array([1, 2]), True),
        ("max(u.a) < min(v.a)", pa.array(["a", "b"]), True),
        ("max(u.a) < min(v.a)", pa.array([NOON, NOON + timedelta(hours=1)], pa.timestamp("us", "UTC")), True),
        ("max(u.a) < min(v.a)", pa.array([1, 2], pa.timestamp("ns")), True),
        ("max(u.a) < min(v.a)", pa.array([False, True]), True),
        ("max(u.a) = 1.1 AND last(v.a) > 1.1", pa.array([Decimal("1.1"), Decimal("1.2")]), True),
        ("sum(u.a) = 250 AND sum(v.a) + avg(u.a) = 260", pa.array([250, 10], pa.uint8()), True),
        ("sum(u.a) < sum(v.a)", pa.array([Decimal("1.1"), Decimal("1.2")]), True),
        ("count(u.a) = 0 AND count(v) = 1", pa.nulls(2), True),
        ("sum(u.a) > 0", pa.nulls(2), False),
    ],
)
def test_values_of_every_kind_are_compared(condition: str, values: pa.Array, holds: bool) -> None:
    assert passing(condition, {"a": values}, 1, 1) is holds


@pytest.mark.parametrize(
    ("left", "right", "agree"),
    [
        (pa.array([1, 1]), pa.array([0.0, 1.0]), True),
        (pa.array([2**53 + 1] * 2), pa.array([2.0**53] * 2), False),
        (pa.array([2**63 - 1] * 2), pa.array([2.0**63] * 2), False),
        (pa.array([-(2**63)] * 2), pa.array([-(2.0**63)] * 2), True),
        (pa.array([1, 1], pa.int8()), pa.array([Decimal("1.0")] * 2), True),
        (pa.array([float("nan")] * 2), pa.array([-float("nan")] * 2), True),
        (pa.array([1000] * 2, pa.timestamp("ns")), pa.array([1] * 2, pa.timestamp("us", "UTC")), True),
        (pa.array([1001] * 2, pa.timestamp("ns")), pa.array([1] * 2, pa.timestamp("us")), False),
        (pa.array([date(2024, 5, 1)] * 2), pa.array([datetime(2024, 5, 1, tzinfo=UTC)] * 2), True),
        (pa.array(["1", "1"]), pa.array([1, 1]), False),
        (pa.array(["é"] * 2).dictionary_encode(), pa.array(["é"] * 2, pa.large_string()), True),
        (pa.array([True] * 2), pa.array([True] * 2), True),
        (pa.array([1, 1]), pa.array([1, None]), False),
        (pa.array([1, 1]), pa.nulls(2), False),
    ],
)
def test_keys_agree_across_kinds_as_numbers_and_instants_do(
    left: pa.Array, right: pa.Array, agree: bool
) -> None:
    agreement = Agreement((PartitionKey("a", "u"), PartitionKey("b", "v")))
    assert passing(agreement, {"a": left, "b": right}, 1, 1) is agree


@pytest.mark.parametrize(
    ("numbers", "condition"),
    [
        ([2**62, 2**62], "sum(u.a) > 0"),
        ([2**62, 2**62, -(2**62)], "sum(u.a) > 0"),
        ([2**63 - 1, 1], "u.a + u.a > 0"),
        ([2**63 - 1, 1], "last(u.a) + first(u.a) > 0"),
    ],
)
def test_an_overflow_is_an_error(numbers: list[int], condition: str) -> None:
    with pytest.raises(DataError, match="64"):
        passing(condition, {"a": pa.array(numbers)}, len(numbers), 0)


def test_a_sum_that_is_too_large_says_how_to_add_floats() -> None:
    numbers = {"a": pa.array([2**62, 2**62])}
    with pytest.raises(DataError) as caught:
        passing("sum(u.a) > 0", numbers, 2, 0)
    assert str(caught.value) == (
        "a sum of integers comes to 9223372036854775808, which does not fit into 64 bits\n"
        "  hint: add up floats: sum(CAST(X.a AS FLOAT))"
    )
    assert passing("sum(CAST(u.a AS FLOAT)) > 0", numbers, 2, 0)


@pytest.mark.parametrize("condition", ["u.a > 0", "sum(u.a) > 0", "max(u.a) > 0"])
def test_an_unsigned_integer_that_is_too_large_is_an_error_where_it_is_read(condition: str) -> None:
    values = pa.array([1, 2**63], pa.uint64())
    with pytest.raises(DataError, match=r"^a number in a filter does not fit into 64 bits$"):
        passing(condition, {"a": values}, 2, 0)
    assert passing(condition, {"a": values}, 1, 1)


def test_a_sum_is_exact_up_to_the_bounds() -> None:
    assert passing("sum(u.a) = 9223372036854775807", {"a": pa.array([2**62, 2**62 - 1])}, 2, 0)
    assert passing("sum(u.a) = -9223372036854775808", {"a": pa.array([-(2**62), -(2**62)])}, 2, 0)


def test_far_too_many_tuples_are_refused() -> None:
    sizes = [np.array([3_000_000])] * 3
    message = "a filter has about 2.7e+19 combinations of events to check: compare fewer variables"
    with pytest.raises(LimitExceeded, match=f"^{re.escape(message)}"):
        next(conditions.tuples(sizes, 1))


def test_a_predicate_that_is_not_given() -> None:
    with pytest.raises(QueryError, match=r"^no predicate steady over sets of events is registered"):
        passing("steady(u.a)", {"a": pa.array([1])}, 1, 0)


# ------------------------------------------------------------------------------- types, keys, columns


TWO_TABLES = Schema(
    {"A": {"id": Kind.INT, "n": Kind.INT}, "B": {"number": Kind.INT, "id": Kind.INT, "n": Kind.INT}},
    closed=True,
)


def test_alternatives_of_a_key_go_by_the_type_of_the_event() -> None:
    table = pa.table(
        {"type": ["A", "B", "B"], "id": [1, 9, 1], "number": [7, 1, None], "n": [0, 0, 0]},
    )
    keys = (PartitionKey("number"), PartitionKey("id"))
    marks = visible("u")
    sieve = Sieve(
        [about(Agreement(keys))],
        marks.labels,
        marks.hidden,
        classification=Classification((), TWO_TABLES, type_column="type"),
    )
    made = [Made(0, 1, ((0, 0), (1, 0))), Made(0, 2, ((0, 0), (2, 0)))]
    assert left_by(sieve, [matches_of(made)], store_of(table)) == made[:1]
    assert columns_read([about(Agreement(keys))], TWO_TABLES, "type") == ("id", "type", "number")


def test_the_columns_that_are_read() -> None:
    def read(condition: str) -> tuple[str, ...]:
        return columns_read([about(condition)], SCHEMA, "type")

    assert read("u.n < v.x AND increasing(w.s)") == ("n", "x", "s")
    assert read("u[k = 1] AND avg(v.x) > 2 AND count(w) = 1 AND u.nothing = 1") == ("k", "x")
    assert read("near(u, 1)") == tuple(SCHEMA.types["A"])
    assert columns_read([about(Agreement((PartitionKey("k"), PartitionKey("n", "u"))))], SCHEMA, "type") == (
        "n",
        "k",
    )
    assert key_choices(["z", "k", "n"], Schema(shared=SCHEMA.shared), "type") == [("k", None)]


# ------------------------------------------------------------------------------- chunks and duplicates


class Chunks:
    """Complex events of one end in chunks of one, until they are told to stop."""

    def __init__(self, made: list[Made]) -> None:
        self.made = made
        self.read = 0
        self.skipped: list[int] = []

    def __iter__(self) -> Iterator[Matches]:
        for each in self.made:
            if each.end not in self.skipped:
                self.read += 1
                yield matches_of([each])

    def skip_end(self, end: int) -> None:
        self.skipped.append(end)


def test_an_end_that_is_full_is_not_read_further(table: pa.Table) -> None:
    made = [Made(0, end, ((place, 0),)) for end in (3, 4) for place in range(4)]
    chunks = Chunks(made)
    marks = visible("u")
    sieve = Sieve([], marks.labels, marks.hidden, classification=Classification((), SCHEMA), limit=2)
    found = left_by(sieve, chunks, store_of(table))
    assert found == [*made[:2], *made[4:6]]
    assert chunks.skipped == [3, 4]
    assert chunks.read == 4


@pytest.fixture
def table() -> pa.Table:
    return pa.table({"type": ["A"] * 5, "n": [1, 2, 3, 4, 5]})


def test_nothing_at_all_is_sifted(table: pa.Table) -> None:
    marks = visible("u")
    sieve = Sieve([about("u.n < 3")], marks.labels, marks.hidden, classification=Classification((), SCHEMA))
    assert left_by(sieve, [matches_of([])], store_of(table)) == []
    assert list(sieve.sift_all([], store_of(table))) == []


def test_items_that_are_hidden_are_asked_and_not_shown(table: pa.Table) -> None:
    hidden = frozenset({Hidden(0, "c")})
    marks = Marks((frozenset({"u"}), frozenset(), frozenset({"u"})), (frozenset(), hidden, hidden))
    residual = about("c.n < 3", c=Hidden(0, "c"))
    made = [
        Made(0, 4, ((1, 1), (2, 0))),
        Made(0, 4, ((1, 2), (2, 1))),
        Made(0, 4, ((1, 2), (2, 0))),
        Made(0, 4, ((2, 0),)),
    ]
    sieve = Sieve([residual], marks.labels, marks.hidden, classification=Classification((), SCHEMA))
    left = left_by(sieve, [matches_of(made)], store_of(table))
    assert left == [Made(0, 4, ((2, 0),)), Made(0, 4, ((1, 0), (2, 0)))]


def test_hashes_that_agree_by_halves_are_told_apart() -> None:
    seen = Seen()
    hashes = np.array([[5, 5, 5, 7], [3, 1, 2, 1]], np.uint64)
    seen.add(hashes[:, :2])
    seen.add(hashes[:, 3:])
    asked = np.array([[5, 5, 5, 7, 7, 9], [1, 2, 3, 1, 3, 1]], np.uint64)
    assert seen.has(asked).tolist() == [True, False, True, True, False, False]
    seen.add(hashes[:, 2:3])
    assert seen.has(asked).tolist() == [True, True, True, True, False, False]
