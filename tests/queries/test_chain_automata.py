"""Automata given directly whose transitions compare events, or gather runs."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import estero
from estero.automata.chain import Chain
from estero.automata.pcea import PCEA
from estero.queries.automaton_statement import AutomatonStatement

EVENTS = pa.table(
    {
        "kind": ["A", "B", "A", "B", "C", "C"],
        "k": [1, 2, 2, 1, 1, 2],
        "m": [5, 5, 7, 8, 8, 5],
    }
)
CHAIN = [
    ("q0", "A", "a", "q1"),
    ("q1", "B", "b", "q2", "before.k = k"),
    ("q2", "C[m > 6]", "c", "q3", "before.k = k AND before.m = m"),
]
LOOP = [("q0", "A OR B OR C", "x", "q1"), ("q1", "A OR B OR C", "x", "q1", "before.k = k AND before.m < m")]

JOINED = [
    ([], "A", "a", "q1"),
    ([], "B", "b", "q2"),
    (["q1", "q2"], "C", "c", "q3", "q1.k = k AND q2.k = k"),
]


def positions(query: estero.Query, events: pa.Table = EVENTS) -> list[dict[str, tuple[int, ...]]]:
    found = query.run(events, type="kind")
    return sorted(({name: at for name, at in each.positions.items() if at} for each in found), key=str)


def test_a_transition_compares_with_the_event_marked_before() -> None:
    query = estero.automaton(CHAIN, initial="q0", final="q3")
    assert positions(query) == [{"a": (0,), "b": (3,), "c": (4,)}]


def test_it_prints_as_a_query_that_finds_the_same() -> None:
    query = estero.automaton(CHAIN, initial="q0", final="q3", within="5 EVENTS")
    assert positions(estero.query(str(query))) == positions(query)
    assert "WITHIN 5 EVENTS" in str(query)


def test_a_loop_runs_and_prints_as_its_transitions() -> None:
    query = estero.automaton(LOOP, initial="q0", final="q1")
    found = [each["x"] for each in positions(query)]
    assert (0, 3) in found
    assert (1, 2) in found
    assert (2, 5) not in found
    assert "a loop that compares events" in str(query)


def test_the_automaton_of_a_query_is_a_value_that_can_be_given_back() -> None:
    query = estero.query("SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k AND b.m > a.m")
    value = query.automaton(EVENTS, type="kind")
    assert value.kind == "chain-CEA"
    again = estero.automaton(value.transitions, final=value.final, select="a, b")
    found = [{name: each[name] for name in "ab"} for each in positions(query)]
    assert [{name: each[name] for name in "ab"} for each in positions(again)] == found
    assert again.automaton(EVENTS, type="kind") == value


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [
        ("A ; B+", "CEA"),
        ("A AS a ; B AS b FILTER a.k = b.k AND a.m != b.m", "chain-CEA"),
        ("A AS a ALL B AS b FILTER a.k = b.k", "PCEA"),
    ],
)
def test_values_print_and_draw(pattern: str, kind: str) -> None:
    value = estero.query(f"SELECT * WHERE {pattern}").automaton(EVENTS, type="kind")
    assert value.kind == kind
    assert str(value).splitlines()[0].split()[0] == str(len(value.states))
    assert value.svg().startswith("<?xml")
    assert pickle.loads(pickle.dumps(value)) == value


def test_the_cea_of_a_pattern_can_be_given_back() -> None:
    query = estero.query("SELECT * WHERE A AS a ; (B OR C)+ AS b FILTER b[m > 5]")
    value = query.automaton()
    again = estero.automaton(
        value.transitions, initial=value.initial, final=value.final, types=["A", "B", "C"]
    )
    assert positions(again) == positions(query)


def test_filters_that_the_automaton_leaves_are_said() -> None:
    value = estero.query("SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a.k + b.k = c.k").automaton()
    assert value.filters == ("a.k + b.k = c.k",)
    assert "filter: a.k + b.k = c.k" in str(value)


# -------------------------------------------------------------------------------------- made deterministic


def plan(query: estero.Query, events: pa.Table = EVENTS) -> str:
    return dict(query.explain(events, type="kind").sections())["Plan"]


def test_what_two_runs_mark_alike_is_found_once() -> None:
    transitions = [
        ("q0", "A", "a", "q1"),
        ("q1", "B", "b", "q2", "before.k = k"),
        ("q1", "B", "b", "q3", "before.m <= m"),
    ]
    query = estero.automaton(transitions, initial="q0", final=["q2", "q3"])
    both = {(0, 1), (0, 3), (2, 3)}
    assert {(each["a"][0], each["b"][0]) for each in positions(query)} == both
    assert len(positions(query)) == len(both)
    assert "equal keys" not in plan(query)
    by_keys = [*transitions[:2], ("q1", "B", "b", "q3", "before.m != m")]
    assert "constant time per event, output-linear delay" in plan(
        estero.automaton(by_keys, initial="q0", final=["q2", "q3"])
    )


def test_a_loop_that_marks_alike_in_two_ways_is_found_once() -> None:
    transitions = [
        ("q0", "A", "x", "q1"),
        ("q1", "B OR A", "x", "q1", "before.k = k"),
        ("q1", "B OR A", "x", "q1", "before.m = m"),
    ]
    found = [each["x"] for each in positions(estero.automaton(transitions, initial="q0", final="q1"))]
    assert len(found) == len(set(found))
    assert set(found) == {(0,), (0, 1), (0, 1, 2), (0, 3), (2,)}


DIFFERENT = [("q0", "A", "x", "q1"), ("q1", "A OR B", "x", "q1", "before.k != k AND before.m != m")]


@pytest.mark.parametrize("more", ["", " AND before.m < m"])
@pytest.mark.parametrize("within", [None, "3 EVENTS"])
def test_several_disequalities_and_orders_stand_beside_a_window(within: str | None, more: str) -> None:
    transitions = [DIFFERENT[0], (*DIFFERENT[1][:4], DIFFERENT[1][4] + more)]
    query = estero.automaton(transitions, initial="q0", final="q1", within=within)
    assert {each["x"] for each in positions(query)} == {(0,), (0, 2), (0, 2, 3), (2,), (2, 3)}


@pytest.mark.parametrize(("count", "waits"), [(4, "ED-index"), (6, "ED-index"), (7, "registers")])
def test_any_number_of_disequalities_is_served(count: int, waits: str) -> None:
    names = [f"v{number}" for number in range(count)]
    rows = {name: [0, 1, 2, 0] for name in names} | {names[-1]: [0, 1, 1, 5]}
    events = pa.table({"kind": ["A"] * 4, **rows})
    asked = " AND ".join(f"before.{name} != {name}" for name in names)
    query = estero.automaton(
        [("q0", "A", "x", "q1"), ("q1", "A", "x", "q1", asked)], initial="q0", final="q1"
    )
    assert waits in plan(query, events)
    found = {each["x"] for each in positions(query, events)}
    assert found == {(0,), (1,), (2,), (3,), (0, 1), (0, 2), (1, 3), (2, 3), (0, 1, 3), (0, 2, 3)}


@pytest.mark.parametrize("within", [None, "3 EVENTS"])
@pytest.mark.parametrize(
    ("asked", "right"),
    [
        ("before.s < s", [(0, 1)]),
        ("before.s != s", [(0, 1), (0, 3), (2, 3)]),
        ("before.i < f", [(0, 3), (2, 3)]),
        ("before.f <= i", [(0, 1), (0, 3)]),
    ],
)
def test_strings_and_numbers_of_two_kinds_are_compared_as_they_are(
    within: str | None, asked: str, right: list[tuple[int, int]]
) -> None:
    events = pa.table(
        {
            "kind": ["A", "B", "A", "B"],
            "s": ["b", "c", "c", "a"],
            "i": [1, 2, 3, 4],
            "f": [1.5, 1.0, 5.0, 3.5],
        }
    )
    transitions = [
        ("q0", "A", "a", "q1"),
        ("q1", "B", "b", "q2", asked),
        ("q2", "A", "a", "q1", "before.i > i"),
    ]
    query = estero.automaton(transitions, initial="q0", final="q2", within=within)
    assert [(each["a"][0], each["b"][0]) for each in positions(query, events)] == right


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("before.i < f", "it compares an integer with a float"),
        ("before.i != f", "no index serves an integer and a float that must differ, with a window"),
        ("before.s < s", "it orders strings or decimals"),
    ],
)
def test_the_plan_says_what_no_index_compares(asked: str, why: str) -> None:
    events = pa.table({"kind": ["A", "B"], "s": ["b", "c"], "i": [1, 2], "f": [1.5, 1.0]})
    transitions = [("q0", "A", "a", "q1"), ("q1", "B", "b", "q2", asked)]
    query = estero.automaton(transitions, initial="q0", final="q2", within="3 EVENTS")
    assert why in plan(query, events)


@pytest.mark.parametrize("strategy", ["MAX", "NEXT", "LAST", "STRICT", "LONGEST", "SHORTEST"])
def test_a_strategy_chooses_among_what_a_chain_finds(strategy: str) -> None:
    transitions = [("q0", "A", "x", "q1"), ("q1", "A OR B OR C", "y", "q2", "before.k <= k")]
    query = estero.automaton(transitions, initial="q0", final="q2", select=f"{strategy} *")
    assert positions(query) == positions(estero.query(str(query)))
    assert f"the strategy {strategy} compares whole complex events" in plan(query)


def test_an_anchored_chain_begins_at_the_first_event() -> None:
    query = estero.automaton(LOOP, initial="q0", final="q1", anchored=True)
    assert {each["x"] for each in positions(query)} == {(0,), (0, 3), (0, 4)}
    assert "a run begins at the first event of the stream only" in str(query)
    one = estero.automaton(CHAIN[:2], initial="q0", final="q2", anchored=True)
    assert "START(A AS e1 AS a ; B AS e2 AS b)" in str(one)
    assert positions(one) == positions(estero.query(str(one))) == [{"a": (0,), "b": (3,)}]


def test_runs_that_gather_have_no_one_beginning() -> None:
    with pytest.raises(ValueError, match="anchored=True is for runs with one beginning"):
        estero.automaton(JOINED, final="q3", anchored=True)


def test_runs_that_exclude_one_another_are_not_refused() -> None:
    transitions = [
        ("q0", "A", "a", "q1"),
        ("q1", "B", "b", "q2", "before.k = k"),
        ("q1", "B", "b", "q3", "before.k != k AND before.m = m"),
    ]
    query = estero.automaton(transitions, initial="q0", final=["q2", "q3"])
    assert positions(query) == [{"a": (0,), "b": (1,)}, {"a": (0,), "b": (3,)}]


# -------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("transitions", "message"),
    [
        ([("q0", "A", "a", "q1"), ("q1", "B", (), "q2", "before.k = k")], "marks nothing"),
        ([("q0", "A", "a", "q1", "before.k = k")], "compares the first event of a run"),
        ([("q0", "A", "a", "q1"), ("q1", "B", "b", "q2", 3)], "compares by a text"),
        ([("q0", "A", "a", "q1"), ("q1", "B", "b", "q2", "q9.k = k")], "q9 is not a state"),
        ([("q0", "A", "a", "q1"), ("q1", "B", "b", "q2", "k = m")], "one side must refer"),
        ([("q0", "A", "a", "q1"), ("q1", "B", "b", "q2", "before.k")], "does not compare two events"),
        ([("q0", "A", "a", "q1"), ("q7", "B", "b", "q2", "before.k = k")], "no transition enters"),
        ([("q0", "A", "a", "q1"), ("q1", "NOT A", "b", "q2", "before.k = k")], "types="),
        ([("q0", "A", "a", "q1"), (["q0", "q1"], "B", "b", "q2")], "gathers the initial state"),
        (
            [([], "A", "a", "q1"), ([], "B", "b", "q2"), (["q1", "q2"], "C", "c", "q3", "q1.k < k")],
            "joined by =",
        ),
    ],
)
def test_mistakes_are_said_with_the_names_of_the_states(
    transitions: list[tuple[object, ...]], message: str
) -> None:
    begins = [each for each in transitions if each[0] == "q0"]
    with pytest.raises((ValueError, estero.QueryError), match=message):
        estero.automaton(transitions, initial="q0" if begins else None, final=transitions[-1][3])


def given(query: estero.Query) -> object:
    assert isinstance(query.statement, AutomatonStatement)
    return query.statement.automaton


def test_machines_are_of_their_kinds() -> None:
    assert isinstance(given(estero.automaton(CHAIN, initial="q0", final="q3")), Chain)
    assert isinstance(given(estero.automaton(JOINED, final="q3")), PCEA)


def test_a_transition_gathers_runs() -> None:
    query = estero.automaton(JOINED, final="q3", within="4 EVENTS")
    assert positions(query) == [{"a": (0,), "b": (3,), "c": (4,)}, {"a": (2,), "b": (1,), "c": (5,)}]
    assert "gathers runs" in str(query)


def test_one_run_that_marks_an_event_twice_is_refused() -> None:
    transitions = [
        ([], "A", "a", "q1"),
        ([], "A", "a", "q2"),
        (["q1", "q2"], "C", "c", "q3"),
    ]
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        estero.automaton(transitions, final="q3")
    assert str(caught.value) == (
        "one run of this automaton marks an event twice, for instance on A() C(): runs that it gathers have "
        "that event in common; give it different labels in them, or let their events differ"
    )


def test_two_runs_that_gather_the_same_are_refused() -> None:
    transitions = [
        ([], "A", "a", "q1"),
        ([], "B", "b", "q2"),
        (["q1", "q2"], "C", "c", "q3", "q1.k = k AND q2.k = k"),
        (["q1", "q2"], "C", "c", "q4", "q1.m = m"),
    ]
    with pytest.raises(ValueError, match="two runs of this automaton mark the same events alike") as caught:
        estero.automaton(transitions, final=["q3", "q4"])
    assert "A(k=1, m=1) B(k=1) C(k=1, m=1)" in str(caught.value)


def test_a_condition_may_compare_what_runs_are_joined_by() -> None:
    transitions = [
        ([], "A", "a", "p"),
        ([], "B[k = m]", "b", "q"),
        (["p", "q"], "C", "c", "r", "p.k = k AND q.k = k"),
    ]
    query = estero.automaton(transitions, final="r")
    events = pa.table({"kind": ["B", "A", "B", "C"], "k": [1, 1, 1, 1], "m": [2, 1, 1, 0]})
    assert positions(query, events) == [{"a": (1,), "b": (2,), "c": (3,)}]


@pytest.mark.parametrize(
    "transitions",
    [
        [
            ([], "A", "a", "q1"),
            (["q1"], "A", "a", "q3", "before.zz = k"),
            (["q3"], "A", "a", "q3", "before.k = k"),
        ],
        [
            ([], "A", "a", "q1"),
            ([], "B", "b", "q2"),
            (["q1", "q2"], "C", "c", "q3", "q1.k = k AND q2.zz = k"),
        ],
    ],
)
def test_an_attribute_that_there_is_not_is_an_error(transitions: list[tuple[object, ...]]) -> None:
    query = estero.automaton(transitions, final="q3")
    with pytest.raises(estero.QueryError, match="has no attribute zz"):
        query.run(EVENTS, type="kind")


@pytest.mark.parametrize(
    "transitions",
    [
        [([], "A", "a", "q3"), (["q3"], "A OR B", "a", "q3", "before.s = k")],
        [([], "A", "a", "q1"), ([], "B", "b", "q2"), (["q1", "q2"], "C", "c", "q3", "q1.s = k AND q2.k = k")],
    ],
    ids=["loop", "gathering"],
)
def test_values_that_cannot_be_compared_are_an_error(transitions: list[tuple[object, ...]]) -> None:
    events = EVENTS.append_column("s", pa.array(list("abcdef")))
    with pytest.raises(estero.QueryError) as caught:
        estero.automaton(transitions, final="q3").run(events, type="kind")
    assert str(caught.value) == (
        "transitions compare before.s = here.k: a string cannot be compared with an integer\n"
        "  expected: two values of one kind, or numbers; before.s is a string\n"
        "  hint: compare it with a value of its own kind"
    )
