"""The automaton of a query as a value: it says all that runs, or why it cannot."""

from __future__ import annotations

import pyarrow as pa
import pytest

import estero
from estero.queries.automaton_value import Automaton

EVENTS = pa.table(
    {
        "kind": ["A", "B", "A", "B", "C", "C", "A", "B"],
        "k": [0, None, 1, 1, 2, 1, 3, 3],
        "m": [0, 0, 5, 5, 1, 2, None, 7],
        "t": [0, 1, 2, 5, 6, 7, 8, 20],
    }
)
Marks = list[tuple[int, int, dict[str, tuple[int, ...]]]]


def marks(query: estero.Query) -> Marks:
    found = query.run(EVENTS, type="kind", time="t")
    return sorted(
        ((each.start, each.end, {k: v for k, v in each.positions.items() if v}) for each in found), key=str
    )


def automaton(query: estero.Query) -> Automaton:
    return query.automaton(EVENTS, type="kind", time="t")


@pytest.mark.parametrize(
    "text",
    [
        "A AS a ; B AS b FILTER a.k = b.k",
        "A AS a ; B AS b FILTER a.k = b.k OR a.m = b.m",
        "A AS a ; B AS b FILTER NOT (a.k = b.k AND a.m = b.m)",
        "A AS a ; B AS b FILTER NOT (a.k = b.k AND a.m = b.m) WITHIN 9 EVENTS",
        "A AS a ; B AS b ; C AS c FILTER a.k + b.k < c.m + 9",
        "A AS a ; B AS b FILTER a.k = b.k AND duration <= 3",
        "START(A) ; B",
        "START(A) OR (A : NOT(C) : A)",
        "A UNLESS START(A)",
        "A AS a ;[<= 3 [t]] B AS b",
        "A AS a ;[>= 1 EVENTS, <= 3 [t]] B AS b ;[<= 2 EVENTS] C",
        "A AS a ALL B AS b FILTER a.k = b.k WITHIN 9 EVENTS",
        "A AS a ALL C AS c FILTER a.k = c.m WITHIN 9 EVENTS",
        "A AS a ; (B OR C) AS x FILTER a.k = x.k PARTITION BY [k] CONSUME BY PARTITION LIMIT 1",
        "(A OR B) AS x+ FILTER x[m > 4] WITHIN 9 [t] LIMIT 1 PER 4 [t]",
    ],
)
def test_given_back_with_its_clauses_it_has_the_same_answers(text: str) -> None:
    query = estero.query(f"SELECT * WHERE {text}")
    value = automaton(query)
    again = estero.automaton(value.transitions, **value.clauses)
    assert marks(again) == marks(query) != []
    assert sorted(automaton(again).clauses) == sorted(value.clauses)


@pytest.mark.parametrize("strategy", ["MAX", "NEXT", "LAST", "STRICT", "LONGEST", "SHORTEST DISJOINT"])
def test_the_strategy_is_a_clause(strategy: str) -> None:
    query = estero.query(f"SELECT {strategy} * WHERE (A OR B)+ AS x ; C WITHIN 6 EVENTS")
    value = automaton(query)
    assert value.clauses["select"] == f"{strategy} *"
    assert f"strategy: {strategy}" in str(value)
    assert marks(estero.automaton(value.transitions, **value.clauses)) == marks(query) != []


def test_that_marks_alone_tell_apart_is_a_clause() -> None:
    query = estero.automaton([(0, "*", (), 0), (0, "B", "b", 1)], initial=0, final=1, distinct="marks")
    value = automaton(query)
    again = estero.automaton(value.transitions, **value.clauses)
    assert [each[2] for each in marks(again)] == [{"b": (1,)}, {"b": (3,)}, {"b": (7,)}]


def test_keys_that_events_of_two_types_have_in_different_attributes() -> None:
    query = estero.conjunctive("Q(x, y) <- C(x, y), A(y, x) WITHIN 9 EVENTS")
    events = pa.table({"kind": ["A", "C", "C", "A"], "k": [2, 1, 3, 2], "m": [1, 2, 3, 1]})
    value = query.automaton(events, type="kind")
    again = estero.automaton(value.transitions, **value.clauses)
    assert query.run(events, type="kind").count() == again.run(events, type="kind").count() == 2


def test_a_state_that_types_enter_with_keys_of_their_own_is_several() -> None:
    query = estero.conjunctive("Q(x, y) <- A(x, y), B(y, x), C(x, y) WITHIN 9 EVENTS")
    events = pa.table({"kind": list("ABCCBAB"), "k": [1, 2, 1, 1, 2, 1, 1], "m": [2, 1, 2, 2, 1, 2, 2]})
    value = query.automaton(events, type="kind")
    again = estero.automaton(value.transitions, **value.clauses)
    assert query.run(events, type="kind").count() == again.run(events, type="kind").count() > 0


def test_what_stands_beside_the_transitions_is_printed() -> None:
    query = estero.query(
        "SELECT NEXT a WHERE A AS a ; B AS b FILTER a.k = b.k AND a.m < b.m "
        "WITHIN 9 EVENTS CONSUME BY ANY LIMIT 3"
    )
    value = automaton(query)
    assert str(value).splitlines()[-7:] == [
        "b1: B",
        "filter: a.m < b.m",
        "strategy: NEXT",
        "partition by: [k]",
        "within: 9 EVENTS",
        "consume by: ANY",
        "limit: 3 PER END",
    ]
    assert value.clauses == {
        "initial": ("0",),
        "final": ("2",),
        "select": "NEXT a",
        "partition_by": (("k",),),
        "within": "9 EVENTS",
        "consume_by": "ANY",
        "limit": "3 PER END",
        "filter": "a.m < b.m",
    }


def test_streams_are_a_clause() -> None:
    query = estero.query("SELECT * FROM S WHERE S AS a : S AS b")
    value = query.automaton(EVENTS)
    again = estero.automaton(value.transitions, **value.clauses)
    assert again.run(EVENTS).count() == query.run(EVENTS).count() == 7


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(A AS a ; B AS b ; C AS c FILTER a.m + c.m < b.m)+", "in each instance of its part"),
        ("A AS a ; B AS b FILTER a.m + 1 < b.m KEEP [b]", "no labels identify the events"),
        ("A AS a ; NOT(C) FOR 3 [t]", "transitions cannot express the absence of events"),
        ("A AS a ; NOT(C AS c FILTER c.k = a.k) ; B", "not: c.k = a.k"),
    ],
)
def test_what_cannot_be_said_is_an_error_with_the_reason(text: str, reason: str) -> None:
    value = automaton(estero.query(f"SELECT * WHERE {text}"))
    for name in ("transitions", "clauses"):
        with pytest.raises(ValueError, match="transitions cannot say all that this automaton does") as caught:
            getattr(value, name)
        assert reason in str(caught.value)
    assert reason in str(value)


def test_values_that_the_text_of_a_condition_does_not_have_are_an_error() -> None:
    query = estero.query("SELECT * WHERE A AS a FILTER a[k IN $keys]").bind(keys=list(range(3000)))
    with pytest.raises(ValueError, match=r"k IN \$keys has values that its text does not say"):
        _ = automaton(query).transitions


def test_attributes_by_place_have_names_where_the_events_are_given() -> None:
    """`"#0" = "#1"` asks for columns that no events have."""
    query = estero.conjunctive("Q(x, y) <- C(x, y), A(y, x)")
    stream = pa.table({"type": ["C", "A", "A"], "k": [1, 2, 1], "m": [2, 1, 2]})
    with pytest.raises(ValueError, match=r"the attributes of C\(x, y\) are known only with events"):
        _ = query.automaton().transitions
    value = query.automaton(stream, type="type")
    again = estero.automaton(value.transitions, **value.clauses)
    assert again.run(stream, type="type").count() == query.run(stream, type="type").count() == 1
    named = estero.conjunctive("Q(x) <- C(k: x), A(m: x)").automaton()
    assert estero.automaton(named.transitions, **named.clauses).run(stream, type="type").count() == 1


# ------------------------------------------------------------------- what automata given directly can say


def test_the_first_event_of_the_stream() -> None:
    query = estero.automaton(
        [(0, "A AND START()", "a", 1), (0, "A AND NOT START()", "b", 1)], initial=0, final=1
    )
    assert [each[2] for each in marks(query)] == [{"a": (0,)}, {"b": (2,)}, {"b": (6,)}]
    assert str(query) == "SELECT * WHERE START(A AS a) OR A AS b UNLESS START(A) KEEP [a, b]"


def test_an_event_that_is_not_marked_may_be_of_any_type() -> None:
    query = estero.automaton([(0, "A", "a", 1), (1, "NOT B", (), 2), (2, "B", "b", 3)], initial=0, final=3)
    events = pa.table({"kind": list("AXBABBACB")})
    found = [(each.start, each.end) for each in query.run(events, type="kind")]
    assert found == [(0, 2), (6, 8)]
    assert "reads events of any type" in str(query)


def test_distances_are_from_the_event_marked_before() -> None:
    steps = [(0, "A", "a", 1), (1, "*", (), 1), (1, "B", "b", 2, "[<= 3 [t]]")]
    query = estero.automaton(steps, initial=0, final=2, within="9 EVENTS")
    assert [each[2] for each in marks(query)] == [{"a": (0,), "b": (1,)}, {"a": (2,), "b": (3,)}]
    assert str(query).splitlines() == [
        "-- the transitions of this automaton ask for distances, which patterns do between their parts",
        "-- 3 states; a run begins in 0 and accepts in 2",
        "-- 0 → 1  on b0: mark a",
        "-- 1 → 1  on any event: pass over",
        "-- 1 → 2  on b1: mark b (#0)",
        "-- (#0): the required distance from the event marked before: [<= 3 [t]]",
        "-- WITHIN 9 EVENTS",
    ]


def test_a_filter_is_asked_of_complex_events() -> None:
    steps = [([], "A", "a", "q"), (["q"], "B", "b", "r", "before.k = k")]
    assert [each[2] for each in marks(estero.automaton(steps, final="r"))] == [
        {"a": (2,), "b": (3,)},
        {"a": (6,), "b": (7,)},
    ]
    query = estero.automaton(steps, final="r", filter="a.m = b.m")
    assert [each[2] for each in marks(query)] == [{"a": (2,), "b": (3,)}]
    assert "a.m = b.m" in str(query)
    with pytest.raises(estero.QueryError, match="no event is marked z"):
        estero.automaton(steps, final="r", filter="a.m = z.m")


def test_comparisons_may_be_unknown_or_about_the_event_before_alone() -> None:
    steps = [
        ([], "A", "a", "q"),
        (["q"], "B", "b", "r", "coalesce(before.k != k, TRUE) AND before.m IS NULL"),
    ]
    assert [each[2] for each in marks(estero.automaton(steps, final="r"))] == []
    steps[1] = (["q"], "B", "b", "r", "coalesce(before.k != k, TRUE) AND before.m = 0")
    found = marks(estero.automaton(steps, final="r"))
    assert [each[2]["b"] for each in found] == [(1,), (3,), (7,)]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([(0, "A", "a", 1, "[<= 3 [t]]")], "a run may have marked none there"),
        ([(0, "A", "a", 1), (1, "B", "b", 2, "[NOT C]")], "which is not a distance: write"),
        ([(0, "A", "a", 1), (1, "B", "b", 2, "[3")], "which is not a distance: write"),
        ([(0, "A", "a", 1), (1, "NOT B", (), 2, "[<= 3 [t]]")], "say with types="),
        ([([], "A AND START()", "a", 1), ([1], "A", "a", 1)], "take anchored=True instead"),
    ],
)
def test_mistakes_are_said(steps: list[tuple[object, ...]], message: str) -> None:
    initial = None if steps[0][0] == [] else 0
    with pytest.raises(ValueError, match=message):
        estero.automaton(steps, initial=initial, final=steps[-1][3])


def test_a_filter_on_what_nothing_is_marked_as_is_said() -> None:
    query = estero.query("SELECT * WHERE (A OR B) AND A FILTER NOT increasing(B.n)")
    table = pa.table({"type": ["A"], "n": [1]})
    value = query.automaton(table, type="type", types=("A", "B"))
    with pytest.raises(ValueError, match="no transition marks an event as B"):
        value.transitions  # noqa: B018 - a property that raises
