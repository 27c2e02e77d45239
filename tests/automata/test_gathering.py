"""Patterns with ALL as automata that gather runs: equal to the reference, each complex event by one run."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings

import estero
from automata.run_trees import accepting_runs
from estero.automata.joins.gathering import gathering
from estero.automata.joins.parts import NotJoinedError, parts_of
from estero.automata.pcea import PCEA
from estero.errors import LimitExceeded
from estero.language.check.queries import check_query
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import Kind, Schema
from estero.reference.queries import Event, evaluate_query
from strategies.gathered import dense_streams, gathered_queries
from strategies.patterns import SCHEMA, TICK

KINDS = {"k": Kind.INT, "m": Kind.INT}
OPEN = Schema(shared=KINDS, types=dict.fromkeys("ABCDE", KINDS), closed=True)


def automaton(where: str) -> PCEA:
    return gathering(parts_of(estero.query(f"SELECT * WHERE ({where})").tree.pattern, (), OPEN)).pcea


def lines(where: str) -> list[str]:
    return str(automaton(where)).splitlines()


@given(gathered_queries(clauses=False), dense_streams(most=8))
@settings(max_examples=300)
def test_the_automaton_finds_the_complex_events_each_by_one_run(tree: QueryTree, events: list[Event]) -> None:
    assume(not check_query(tree, SCHEMA))
    try:
        parts = parts_of(tree.pattern, (), SCHEMA)
        pcea = gathering(parts).pcea
    except NotJoinedError:
        return
    assume(not parts.left)
    found = [run.complex_event() for run in accepting_runs(pcea, events)]
    assert len(found) == len(set(found))
    expected = evaluate_query(tree, events, tick=TICK)
    assert set(found) == {each for at_end in expected.values() for each in at_end}


def test_what_is_behind_an_all_gathers_its_parts() -> None:
    assert lines("(A AS t ALL B AS s) ; C AS r FILTER t.k = r.k AND s.k = r.k AND s.m = r.m") == [
        "3 states: t, s, r; a run accepts in r",
        "begin → t  on A: mark A, t",
        "begin → s  on B: mark B, s",
        "t & s → r  on C: mark C, r, joining t by k = k; s by (k, m) = (k, m)",
    ]


def test_the_last_event_of_a_part_gathers_the_other_parts() -> None:
    assert lines("(A ; B PARTITION BY [k]) ALL C") == [
        "4 states: A, B, C, *; a run accepts in *",
        "begin → A  on A: mark A",
        "A → B  on B: mark B, joining A by k = k",
        "begin → C  on C: mark C",
        "A & C → *  on B: mark B, joining A by k = k; any C",
        "B → *  on C: mark C, joining any B",
    ]


def test_parts_that_an_equality_joins_are_joined_before_what_is_behind_them() -> None:
    assert lines("(A ALL B PARTITION BY [k]) ; C")[-1] == "A.k = B.k → C  on C: mark C, joining any A.k = B.k"


def test_what_is_behind_joins_parts_that_have_nothing_in_common() -> None:
    found = lines("((A ; B PARTITION BY [k]) ALL (C ; D)) ; E FILTER B.k = E.k AND D.m = E.m")
    assert found[-1] == "B & D → E  on E: mark E, joining B by k = k; D by m = m"


def test_a_second_round_goes_on_from_the_first() -> None:
    assert lines("((A ALL B PARTITION BY [k]) ; C)+")[5:] == [
        "A.k = B.k → C  on C: mark C, joining any A.k = B.k",
        "C → A 2  on A: mark A, joining any C",
        "C → B 2  on B: mark B, joining any C",
        "A 2 → B 3  on B: mark B, joining A 2 by k = k",
        "B 2 → A 3  on A: mark A, joining B 2 by k = k",
        "B 3 → C  on C: mark C, joining any B 3",
        "A 3 → C  on C: mark C, joining any A 3",
    ]


def test_a_value_reaches_later_events_by_those_that_have_it() -> None:
    found = lines("(A ALL B) ; C ; D FILTER A.k = C.m AND C.m = D.k")
    assert found[-2:] == [
        "A & B → C  on C: mark C, joining A by k = m; any B",
        "C → D  on D: mark D, joining C by m = k",
    ]


def test_one_event_may_complete_two_parts_at_once() -> None:
    found = lines("(A AS x ; B AS y) ALL (A AS v ; B AS w) FILTER x.k = y.k AND v.k = w.k")
    assert found[-1] == "x & v → *  on B: mark B, w, y, joining x by k = k; v by k = k"


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        (
            "(A ; B) ALL (C ; D) FILTER A.k = C.k",
            "some events that join runs do not have the value of A.k = C.k",
        ),
        (
            "A ; (B ALL C) FILTER A.k = B.k AND A.m = C.m",
            "some events that join runs do not have the value of A.m = C.m",
        ),
        (
            "(A ALL B) ; C FILTER A.k = B.k AND B.m = C.m",
            "some events that join runs do not have the value of B.m = C.m",
        ),
        (
            "A ALL (B ; D) ALL C FILTER A.k = D.k AND D.m = C.m",
            (
                "it is not hierarchical: B ; D has both A.k = D.k and D.m = C.m, A has A.k = D.k alone, and "
                "C D.m = C.m alone"
            ),
        ),
        (
            "(A+ AS x ALL B){1,2}",
            "x may begin a round or continue one, so a complex event could be found twice",
        ),
        (
            "((A+ PARTITION BY [k]))+ ALL B",
            "A may begin a round or continue one, so a complex event could be found twice",
        ),
    ],
)
def test_what_no_run_tree_can_say(where: str, reason: str) -> None:
    with pytest.raises(NotJoinedError) as caught:
        automaton(where)
    assert str(caught.value) == reason


def test_sequences_in_any_order_take_as_many_states_as_events() -> None:
    pcea = automaton(" ALL ".join(f"(T{number} ; U{number})" for number in range(12)))
    assert len(pcea.states) == 25
    assert len(pcea.transitions) == 36
    assert len(automaton(f"({' ; '.join(f'T{number}' for number in range(200))}) ALL B").states) == 202


@pytest.mark.parametrize(
    "inside",
    [
        " ALL ".join(f"(T{number} ; U{number})" for number in range(12)),
        " ALL ".join(f"T{number}" for number in range(200)),
        " ALL ".join(f"A AS x{number}" for number in range(20)),
    ],
)
def test_too_many_orders_behind_an_event_name_the_part_that_grows(inside: str) -> None:
    with pytest.raises(LimitExceeded) as caught:
        automaton(f"X ; ({inside})")
    assert str(caught.value).startswith(
        "the pattern needs a joining automaton of more than 1,000 states; what grows is "
    )
    assert inside.split(" ALL ", maxsplit=1)[0].strip("()") in str(caught.value)


def test_too_many_parts_that_one_event_may_complete_name_its_type() -> None:
    with pytest.raises(LimitExceeded, match="one event of type A may serve any of 20 atoms at once"):
        automaton(" ALL ".join(f"(U{number} ; A AS x{number})" for number in range(20)))
