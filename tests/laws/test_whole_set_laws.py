"""What is asked of all complex events together is what listing them gives: by every plan, of every query."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from automata.test_chain import CHAINS
from estero.answers.answer import Answer
from estero.answers.answer_schema import label_of
from estero.answers.rows import RowsLayout
from estero.engine.walk import blocks, circuits
from estero.language.tree.conjunctive import ConjunctiveTree
from estero.language.tree.query import QueryTree
from estero.plan.plan import Plan
from estero.recognize.source_run import SourceRun
from estero.reference.queries import Event
from laws.test_plans_agree import served
from laws.test_restart_laws import picked
from recognize.test_joining import table_of
from strategies.conjunctive import hierarchical_queries
from strategies.conjunctive import streams as conjunctive_streams
from strategies.joined import joined_queries
from strategies.patterns import queries, queries_by_start, streams
from strategies.whole import whole_queries

MOST = settings.default.max_examples if settings.default else 10
NUMBERS = ("n", "c")
"""Attributes that are integers, of the two kinds of streams."""

Row = dict[str, Any]


def check(answer: Answer) -> None:
    """Participation, aggregates and the best, against the rows."""
    table = answer.to_arrow()
    labels = {str(label_of(field)): field.name for field in table.schema if label_of(field) is not None}
    rows = [
        {**row, "labels": {label: row[name] for label, name in labels.items()}} for row in table.to_pylist()
    ]
    check_participation(answer, rows)
    check_partitions(answer, rows)
    check_aggregates(answer, rows, table.schema)
    check_top(answer, rows, table.schema)


def check_participation(answer: Answer, rows: list[Row]) -> None:
    """As many as rows have the event; attributes are those of `rows`."""
    expected: Counter[tuple[str, int]] = Counter()
    for row in rows:
        for label, events in row["labels"].items():
            expected.update((label, event[list(event)[-1]]) for event in events)
    participation = answer.participation()
    found = participation.to_dicts()
    assert {(row["label"], row["position"]): list(row.values())[-1] for row in found} == expected
    assert len(found) == len(expected)
    assert [row["position"] for row in found] == sorted(row["position"] for row in found)
    attributes = {
        (row["label"], row["position"]): list(row.values())[1:]
        for row in answer.rows().to_arrow().to_pylist()
    }
    assert all(
        repr(list(row.values())[:-1]) == repr(attributes[row["label"], row["position"]]) for row in found
    )


def check_partitions(answer: Answer, rows: list[Row]) -> None:
    """Participation and aggregates by partition: what the rows of one partition alone are."""
    names = [answer.schema.field(place).name for place in RowsLayout(answer.schema).keys]
    apart: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        apart.setdefault(tuple(row[name] for name in names), []).append(row)
    in_order = sorted(apart, key=lambda key: [(value is None, value) for value in key])
    participation: list[tuple[Any, ...]] = []
    asked = {"number": "count(*)"}
    for label in dict.fromkeys(label for row in rows for label in row["labels"]):
        asked |= {f"events of {label}": f"count({label})", f"most {label}": f"max(count({label}))"}
    expected = [of_partition(names, key, apart[key], asked) for key in in_order]
    if not names and not rows:
        expected = [{"number": 0}]
    assert answer.aggregate(by_partition=True, **asked).to_dicts() == expected
    for key in in_order:
        counts = Counter(
            (event[list(event)[-1]], label)
            for row in apart[key]
            for label, events in row["labels"].items()
            for event in events
        )
        participation += [(*key, label, position, number) for (position, label), number in counts.items()]
    table = answer.participation(by_partition=True).to_arrow()
    assert table.column_names[: len(names) + 2] == [*names, "label", "position"]
    found = [tuple(row.values()) for row in table.to_pylist()]
    assert Counter((*row[: len(names) + 2], row[-1]) for row in found) == Counter(participation)
    places = [in_order.index(row[: len(names)]) for row in found]
    assert places == sorted(places)


def of_partition(names: list[str], key: tuple[Any, ...], rows: list[Row], asked: dict[str, str]) -> Row:
    """What `asked` is of the complex events of one partition."""
    row: Row = dict(zip(names, key, strict=True)) | {"number": len(rows)}
    for name in asked:
        how, _, label = name.rpartition(" ")
        numbers = [len(one["labels"][label]) for one in rows] if how else []
        if how:
            row[name] = max(numbers) if how == "most" else sum(numbers)
    return row


def check_aggregates(answer: Answer, rows: list[Row], schema: pa.Schema) -> None:
    """Of numbers, events and times."""
    expected: dict[str, Any] = {"count(*)": len(rows)}
    if "start_time" in schema.names:
        expected |= of_times(rows)
    for field in schema:
        label = label_of(field)
        if label is None:
            continue
        marked = [row["labels"][label] for row in rows]
        expected[f"count({label})"] = sum(map(len, marked))
        expected |= of_inner(f"count({label})", [len(events) for events in marked])
        attributes = [attribute.name for attribute in field.type.value_type][:-1]
        for name in attributes:
            values = [[e[name] for e in events if e[name] is not None] for events in marked]
            if name in NUMBERS:
                expected |= of_numbers(f"{label}.{name}", values)
            if name == "x":
                expected[f"sum({label}.x)"] = exact_sum([value for one in values for value in one])
    texts = {f"n{place}": text for place, text in enumerate(expected)}
    found: dict[str, Any] = answer.aggregate(by_partition=False, **texts)
    for (text, wanted), value in zip(expected.items(), found.values(), strict=True):
        assert value == wanted or (repr(value), repr(wanted)) == ("nan", "nan"), text


def of_times(rows: list[Row]) -> dict[str, Any]:
    """What times are."""
    lengths = [row["end_time"] - row["start_time"] for row in rows]
    times = {"start_time": [row["start_time"] for row in rows], "end_time": [row["end_time"] for row in rows]}
    expected = {
        f"{how}({name})": of(values, default=None)
        for name, values in {**times, "duration": lengths}.items()
        for how, of in (("min", min), ("max", max))
    }
    expected["sum(duration)"] = sum(lengths) if lengths else None
    expected["avg(duration)"] = float(Fraction(sum(lengths), len(lengths))) if lengths else None
    return expected


def of_numbers(name: str, values: list[list[int]]) -> dict[str, Any]:
    """What integers are, all together and of each complex event."""
    every = [value for one in values for value in one]
    expected: dict[str, Any] = {
        f"count({name})": len(every),
        f"sum({name})": sum(every) if every else None,
        f"avg({name})": float(Fraction(sum(every), len(every))) if every else None,
        f"min({name})": min(every, default=None),
        f"max({name})": max(every, default=None),
    }
    expected |= of_inner(f"count({name})", [len(one) for one in values])
    for how, of in (("sum", sum), ("min", min), ("max", max)):
        expected |= of_inner(f"{how}({name})", [of(one) for one in values if one])
    return expected


def of_inner(inner: str, values: list[int]) -> dict[str, Any]:
    """What aggregates are of one value for each complex event."""
    expected = {
        f"min({inner})": min(values, default=None),
        f"max({inner})": max(values, default=None),
        f"avg({inner})": float(Fraction(sum(values), len(values))) if values else None,
        f"sum({inner})": sum(values) if values else None,
    }
    if not inner.startswith("count"):
        expected[f"count({inner})"] = len(values)
    return expected


def exact_sum(values: list[float]) -> float | None:
    """The sum of floats, rounded once."""
    beyond = [value for value in values if not math.isfinite(value)]
    if beyond:
        return sum(beyond)
    exact = sum(map(Fraction, values))
    try:
        return float(exact) if values else None
    except OverflowError:
        return math.copysign(math.inf, exact)


def check_top(answer: Answer, rows: list[Row], schema: pa.Schema) -> None:
    """The first of the rows in order of their worth, by each worth best first or least first."""
    worth: dict[str, Callable[[Row], int]] = {}
    if "start_time" in schema.names:
        worth["duration"] = lambda row: row["end_time"] - row["start_time"]
        worth["start_time"] = lambda row: row["start_time"]
        worth["end_time"] = lambda row: row["end_time"]
    for field in schema:
        label = label_of(field)
        if label is not None:
            worth[f"count({label})"] = lambda row, label=label: len(row["labels"][label])  # type: ignore[misc]
            for name in {attribute.name for attribute in field.type.value_type} & {*NUMBERS}:
                worth[f"sum({label}.{name})"] = lambda row, label=label, name=name: sum(  # type: ignore[misc]
                    event[name] or 0 for event in row["labels"][label]
                )
    shown = schema.names
    for place, (text, of) in enumerate(worth.items()):
        ascending = (place + len(rows)) % 2 == 1  # so other examples have the other order
        n = len(rows) + 1 if ascending else 3
        wanted = sorted(rows, key=of, reverse=not ascending)
        top = answer.top(n, by=text, ascending=ascending).to_arrow().to_pylist()
        assert texts(top) == texts({name: row[name] for name in shown} for row in wanted[:n]), text
        ranked = answer.ranked(by=text, ascending=ascending)
        ranked = ranked if ascending else ranked.limit(n)
        assert texts(ranked.to_arrow().to_pylist()) == texts(top), text
        if not ascending:
            check_top_by_partition(answer, wanted, text)


def check_top_by_partition(answer: Answer, best: list[Row], text: str) -> None:
    """Two of each partition, and partitions in order of their keys; `best` are all rows, best first."""
    names = [answer.schema.field(place).name for place in RowsLayout(answer.schema).keys]
    apart: dict[tuple[Any, ...], list[Row]] = {}
    for row in best:
        apart.setdefault(tuple(row[name] for name in names), []).append(row)
    in_order = sorted(apart, key=lambda key: [(value is None, value) for value in key])
    wanted = [row for key in in_order for row in apart[key][:2]]
    top = answer.top(2, by=text, by_partition=True).to_arrow().to_pylist()
    assert texts(top) == texts({name: row[name] for name in answer.schema.names} for row in wanted), text


def texts(rows: Iterable[Row]) -> list[str]:
    """Rows as text: NaN does not equal itself."""
    return [repr({name: value for name, value in row.items() if name != "suppressed"}) for row in rows]


@settings(max_examples=min(20, MOST))
@given(st.one_of(queries(), queries_by_start(), whole_queries()), streams(max_size=9))
def test_the_whole_set_is_what_listing_gives(tree: QueryTree, events: list[Event]) -> None:
    check(Answer(picked(tree, events)))


DENSE = (
    "SELECT * WHERE A AS a ; B AS b ; C AS c",
    "SELECT * WHERE A AS a ; B+ AS b ; C AS c WITHIN 7 EVENTS",
    "SELECT b WHERE A AS a ; (B OR C)+ AS b WITHIN 6 [time]",
    "SELECT NEXT * WHERE A AS a ; B+ AS b ; C AS c WITHIN 8 EVENTS",
    "SELECT MAX * WHERE A+ AS a ; B AS b PARTITION BY [k]",
    "SELECT LONGEST * WHERE A AS a ; (B OR C)+ AS b WITHIN 4 [time]",
    "SELECT * WHERE A+ AS a ; B AS b CONSUME BY ANY",
    "SELECT * WHERE A AS a : (B OR C)+ AS b PARTITION BY [k] LIMIT 2",
    "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a.k = b.k AND b.k = c.k",
    "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a.k = b.k AND b.m != c.m",
    "SELECT * WHERE (A AS a ; B AS b FILTER a.m != b.m)+",
    "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a.m < b.m AND a.k = c.k",
    "SELECT * WHERE (A AS a ALL B AS b ALL C AS c) FILTER a.k = b.k AND b.k = c.k",
    "SELECT * WHERE (A AS a ALL B AS b ALL C AS c) FILTER a.k = b.k AND b.k = c.k WITHIN 6 EVENTS",
    "SELECT * WHERE ((A AS a ALL B AS b) ; C AS c) FILTER a.k = b.k AND b.k = c.k WITHIN 5 [time]",
)
"""Queries that find much in streams of a few types and keys, by plans of all kinds."""


@st.composite
def dense_streams(draw: st.DrawFn) -> pa.Table:
    """Events of three types and two keys, with ties in time, and numbers of which some are missing."""
    kinds = st.tuples(
        st.sampled_from("ABC"), st.integers(0, 2), st.integers(0, 1), st.integers(0, 2), st.integers(-2, 3)
    )
    time, rows = 0, []
    first = [(name, 1, 0, place, place) for place, name in enumerate("ABC")]
    for name, later, k, m, n in first + draw(st.lists(kinds, min_size=4, max_size=7)):
        time += later
        rows.append({"type": name, "time": time, "k": k, "m": m, "n": None if n == 3 else n})
    fields = [("type", pa.string()), *((name, pa.int64()) for name in ("time", "k", "m", "n"))]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


@pytest.mark.parametrize("text", DENSE)
@settings(max_examples=min(3, MOST))
@given(stream=dense_streams())
def test_so_it_is_where_much_is_found(text: str, stream: pa.Table) -> None:
    check(estero.query(text).run(stream, type="type", time="time", time_unit="s"))


@pytest.mark.parametrize("text", [DENSE[1], DENSE[4], DENSE[9], DENSE[13]])
@settings(max_examples=min(2, MOST))
@given(stream=dense_streams())
def test_so_it_is_where_numbers_need_more_than_words(text: str, stream: pa.Table) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(circuits, "FITS", 0.0)
        check(estero.query(text).run(stream, type="type", time="time", time_unit="s"))


LONG_WINDOWS = (
    DENSE[1],
    DENSE[2],
    "SELECT a, b WHERE A AS a ; B AS b WITHIN 3 EVENTS",
    "SELECT * WHERE (A OR B)+ AS a ; C AS c PARTITION BY [k] WITHIN 4 [time]",
    "SELECT a WHERE A AS a ; (B OR C)+ AS b ; A AS c WITHIN 5 EVENTS",
)


@pytest.mark.parametrize("text", LONG_WINDOWS)
@settings(max_examples=min(5, MOST))
@given(stream=dense_streams(), fits=st.booleans())
def test_so_it_is_in_blocks_of_long_windows(text: str, stream: pa.Table, fits: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_LONG", 1)
        if not fits:
            patch.setattr(circuits, "FITS", 0.0)
        check(estero.query(text).run(stream, type="type", time="time", time_unit="s"))


@pytest.mark.parametrize("text", [DENSE[0], DENSE[2], DENSE[4], DENSE[8], DENSE[11], DENSE[12]])
@settings(max_examples=min(2, MOST))
@given(stream=dense_streams(), size=st.integers(1, 4))
def test_so_it_is_of_a_stream_that_is_cut_anywhere(text: str, stream: pa.Table, size: int) -> None:
    whole = SourceRun._batches

    def cut(run: SourceRun, plan: Plan) -> Iterator[pa.RecordBatch]:
        for batch in whole(run, plan):
            yield from (batch.slice(first, size) for first in range(0, batch.num_rows, size))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SourceRun, "_batches", cut)
        patch.setattr(circuits, "_ENOUGH", 1)  # a circuit has one root
        patch.setattr(circuits, "_TIMES", 0)
        check(estero.query(text).run(stream, type="type", time="time", time_unit="s"))


@settings(max_examples=min(3, MOST))
@given(st.one_of(joined_queries(), queries()), streams(max_size=9))
def test_so_it_is_by_every_plan(tree: QueryTree, events: list[Event]) -> None:
    for _, run in served(tree, events):
        check(Answer(run))


@settings(max_examples=min(8, MOST))
@given(
    pattern=st.sampled_from(CHAINS),
    rest=st.sampled_from(["", " WITHIN 5 EVENTS", " WITHIN 3 [time]", " LIMIT 2"]),
    events=streams(max_size=9),
)
def test_so_it_is_where_neighbours_are_compared(pattern: str, rest: str, events: list[Event]) -> None:
    check(Answer(picked(estero.query(f"SELECT * WHERE {pattern}{rest}").tree, events)))


@settings(max_examples=min(8, MOST))
@given(hierarchical_queries(), conjunctive_streams(most=9), st.sampled_from(["", " LIMIT 2"]))
def test_so_it_is_of_conjunctive_queries(tree: ConjunctiveTree, events: list[Event], limit: str) -> None:
    query = estero.conjunctive(f"{tree}{limit}")
    check(query.run(table_of(events), type="type", types=("T", "S", "R")))
