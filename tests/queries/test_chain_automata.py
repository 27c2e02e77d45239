"""Automata given directly whose transitions compare events, or gather runs."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import estero
from estero.automata.chain import Chain
from estero.automata.pcea import PCEA
from estero.queries.pattern_statement import AutomatonStatement

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


# ---------------------------------------------------------------------------------------- unambiguous


def test_two_runs_that_mark_alike_are_refused_with_a_stream() -> None:
    transitions = [
        ("q0", "A", "a", "q1"),
        ("q1", "B", "b", "q2", "before.k = k"),
        ("q1", "B", "b", "q3", "before.m = m"),
    ]
    with pytest.raises(ValueError, match="two runs of this automaton mark the same events alike") as caught:
        estero.automaton(transitions, initial="q0", final=["q2", "q3"])
    assert "A(k=1, m=1) B(k=1, m=1)" in str(caught.value)


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
        ([("q0", "A", "a", "q1"), ("q1", "B", "b", "q2", "q9.k = k")], "q9 is no state"),
        ([("q0", "A", "a", "q1"), ("q1", "B", "b", "q2", "k = m")], "one side has to be"),
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
    joined = [
        ([], "A", "a", "q1"),
        ([], "B", "b", "q2"),
        (["q1", "q2"], "C", "c", "q3", "q1.k = k AND q2.k = k"),
    ]
    assert isinstance(given(estero.automaton(joined, final="q3")), PCEA)


def test_a_transition_gathers_runs() -> None:
    query = estero.automaton(
        [
            ([], "A", "a", "q1"),
            ([], "B", "b", "q2"),
            (["q1", "q2"], "C", "c", "q3", "q1.k = k AND q2.k = k"),
        ],
        final="q3",
        within="4 EVENTS",
    )
    assert positions(query) == [{"a": (0,), "b": (3,), "c": (4,)}, {"a": (2,), "b": (1,), "c": (5,)}]
    assert "gathers runs" in str(query)


def test_runs_that_gather_the_same_twice_are_refused() -> None:
    transitions = [
        ([], "A", "a", "q1"),
        ([], "A", "a", "q2"),
        (["q1", "q2"], "C", "c", "q3"),
    ]
    with pytest.raises(ValueError, match="two runs of this automaton mark the same events alike"):
        estero.automaton(transitions, final="q3")


@pytest.mark.parametrize(
    "transitions",
    [
        [([], "A", "a", "q1"), (["q1"], "A", "a", "q1", "before.zz = k")],
        [
            ([], "A", "a", "q1"),
            ([], "B", "b", "q2"),
            (["q1", "q2"], "C", "c", "q1", "q1.k = k AND q2.zz = k"),
        ],
    ],
)
def test_an_attribute_that_there_is_not_is_an_error(transitions: list[tuple[object, ...]]) -> None:
    query = estero.automaton(transitions, final="q1")
    with pytest.raises(estero.QueryError, match="has no attribute zz"):
        query.run(EVENTS, type="kind")
