"""What a pattern is read as that a joining automaton may serve, wherever filters stand, and what is not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings

import estero
from estero.automata.joins.gathering import gathering
from estero.automata.joins.parts import NotJoinedError, Parts, parts_of
from estero.automata.joins.q_tree import tree_lines
from estero.language.tree.schema import Kind, Schema
from estero.plan.automaton import AutomatonPlan
from estero.plan.draft import Draft
from estero.plan.joins import JoinPlan
from estero.plan.joins import joined as plan_joined
from estero.plan.plan import Layout
from estero.plan.rules import NotServedError, plan_of
from estero.reference.queries import Event, evaluate_query
from laws.evaluators import in_process
from strategies.patterns import SCHEMA as TYPED
from strategies.patterns import TICK, streams

KINDS = {"k": Kind.INT, "m": Kind.INT, "p": Kind.FLOAT, "s": Kind.STRING, "many": Kind.OPAQUE}
SCHEMA = Schema(shared=KINDS, types=dict.fromkeys("ABCD", KINDS), closed=True)


def parts(where: str, schema: Schema = SCHEMA) -> Parts:
    return parts_of(estero.query(f"SELECT * WHERE {where}").tree.pattern, (), schema)


def joined(where: str, clauses: str = "", strategy: str = "") -> JoinPlan | str:
    tree = estero.query(f"SELECT {strategy} * WHERE {where} {clauses}").tree
    return plan_joined(Draft(tree, Layout(SCHEMA, "type")))


def terms(read: Parts) -> list[Mapping[str, str]]:
    """For each event its attributes with their classes, which are numbered."""
    return [
        {name: str(number) for number, names in event.values.items() for name in names}
        for event in read.events
    ]


def test_each_class_of_equal_values_is_a_variable() -> None:
    read = parts("A AS x ALL B AS y ALL C AS z FILTER x.k = y.m AND z.k = y.m AND x.s = y.s")
    assert terms(read) == [{"k": "0", "s": "1"}, {"m": "0", "s": "1"}, {"k": "0"}]
    assert [sorted(event.labels) for event in read.events] == [["A", "x"], ["B", "y"], ["C", "z"]]
    tree = gathering(read).tree
    assert tree is not None
    assert list(tree_lines(tree.tree, tree.atoms)) == [
        "x.k = y.m = z.k",
        "├─ x.s = y.s",
        "│  ├─ A AS x",
        "│  └─ B AS y",
        "└─ C AS z",
    ]


@pytest.mark.parametrize(
    "where",
    [
        "A AS x ALL B AS y FILTER x.k = y.k AND x[p > 3]",
        "A ALL B FILTER A.k = B.k AND A.p > 3",
        "(A AS x FILTER x[p > 3]) ALL B AS y FILTER y.k = x.k",
        "(A AS x ALL B AS y FILTER x.k = y.k) FILTER A[p > 3]",
        "(A AS x FILTER x.k = B.k AND x[p > 3]) ALL B",
        "(A ALL B) AS w PARTITION BY [w.k] FILTER A[p > 3]",
        "((A AS x FILTER A[p > 3]) ALL B PARTITION BY [k]) AS w",
        "A AS x ALL B AS y PARTITION BY [x.k, y.k] FILTER x[p > 3]",
        "A AS x ALL B AS y FILTER x.k = y.k AND NOT x[NOT p > 3]",
        "A AS x ; B AS y FILTER x.k = y.k AND x[p > 3]",
        "(A AS x FILTER x.k = B.k) ; B FILTER A[p > 3]",
        "(A+ AS x ; B)+ PARTITION BY [k] FILTER x[p > 3]",
    ],
)
def test_however_it_is_written(where: str) -> None:
    # The clause would take what stands behind a pattern without parentheses.
    read = parts(f"({where})")
    assert terms(read) == [{"k": "0"}, {"k": "0"}]
    first, second = read.events
    assert [str(each).replace("NOT NOT ", "") for each in first.conditions] == ["p > 3"]
    assert second.conditions == ()


def test_a_variable_of_several_events_is_equal_in_all_of_them() -> None:
    read = parts("A AS x ALL (B ALL C) AS both ALL D FILTER both.k = x.k AND D.m = C.m AND D.k = B.k")
    assert terms(read) == [{"k": "0"}, {"k": "0"}, {"k": "0", "m": "1"}, {"k": "0", "m": "1"}]
    assert [sorted(event.labels) for event in read.events][1:3] == [["B", "both"], ["C", "both"]]


def test_a_value_that_equals_itself_is_there() -> None:
    first, second, _ = parts("A AS x ALL B AS y ALL C AS z FILTER x.m = A.m AND y.k = z.k").events
    assert [str(each) for each in first.conditions] == ["m IS NOT NULL"]
    assert second.conditions == ()
    (alone,) = parts("(A+ PARTITION BY [k])").events
    assert [str(each) for each in alone.conditions] == ["k IS NOT NULL"]


def test_equalities_are_one_class_only_where_what_they_share_is_never_missing() -> None:
    always, missing = "A AS x ; B AS y ; C AS z", "A AS x ; (B AS y)? ; C AS z"
    same = "FILTER x.k = y.k AND y.k = z.k"
    assert len(parts(f"{always} {same}").classes) == 1
    assert len(parts(f"{missing} {same}").classes) == 2
    assert len(parts(f"({always} FILTER x.k = y.k)+ FILTER y.k = z.k").classes) == 2


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("A AS x ALL (B : C) AS y FILTER x.k = y.k", "B : C is more than events joined by ALL, ;, OR and +"),
        ("A AS x ALL (B:+) AS y FILTER x.k = y.k", "B :+ is more than events joined by ALL, ;, OR and +"),
        ("A ALL (B ; NOT(A) ; C)", "B ; NOT(A) ; C is more than events joined by ALL, ;, OR and +"),
        (
            "A AS x ALL B AS y FILTER x.k = y.k AND (x[p > 1] OR y[p > 1])",
            "x[p > 1] OR y[p > 1] is about several events, and not an equality",
        ),
        (
            "A+ AS x ALL B AS y FILTER x[p > 1] OR x[p < 0]",
            "x[p > 1] OR x[p < 0] is about several events, and not an equality",
        ),
        (
            "A AS x ALL A FILTER x.k = A.k",
            (
                "its event number 2, A, has no label of its own, so two choices of events can be one "
                "complex event"
            ),
        ),
        (
            "(A ; A) ALL B FILTER A.k = B.k",
            (
                "its event number 1, A, has no label of its own, so two choices of events can be one "
                "complex event"
            ),
        ),
        (
            "(A+ AS x ; (B AS y)?) ALL C FILTER x.k = y.k",
            "x.k = y.k requires nothing of several events if others are missing",
        ),
        ("A ALL B FILTER A.many = B.many", "values of many are not all of one comparable kind"),
    ],
)
def test_what_is_not_read_and_why(where: str, reason: str) -> None:
    with pytest.raises(NotJoinedError) as caught:
        parts(where)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("where", "strategy", "clauses", "reason"),
    [
        ("A ALL B FILTER A.m = B.m", "MAX", "", "the strategy MAX chooses among complex events"),
        ("A ALL B", "", "", "no equality joins parts of an ALL"),
        (
            "A AS x ALL B AS y FILTER x.k = y.k AND x.p < y.p",
            "",
            "",
            "it would leave x.p < y.p to a filter; registers drop runs that violate it",
        ),
        (
            "A AS x ALL A AS y FILTER x.k = y.k AND x.p + y.p > 3",
            "",
            "",
            "x.p + y.p > 3 is not an equality, and one event may be two of its parts",
        ),
        (
            "((A AS x ALL B AS y FILTER x.k = y.k AND x.p + y.p > 3) ; C)+",
            "",
            "",
            "x.p + y.p > 3 is not an equality of two attributes",
        ),
        (
            "A AS x ALL B AS y FILTER x.k = y.k AND x.p + y.p > 3",
            "",
            "",
            "equalities define partitions, in which no more is compared",
        ),
        ("A ; B FILTER A.k = B.k", "", "", "no equality joins parts of an ALL"),
        ("(A ; B) ALL C", "", "", "no events are compared with each other"),
        (
            "(A ; B) ALL C FILTER A.k = B.k AND B.k = C.k",
            "",
            "",
            "equalities define partitions, in which nothing else is compared",
        ),
        (
            "A ; (B ALL C) FILTER A.k = B.k AND A.m = C.k AND B.m = A.m AND B.k = C.k AND B.s = C.s",
            "",
            "WITHIN 9 EVENTS",
            "each event is compared only with the one before it",
        ),
        (
            "(A ; B) ALL (C ; D) FILTER A.k = C.k",
            "",
            "",
            "some events that join runs do not have the value of A.k = C.k",
        ),
    ],
)
def test_queries_that_stay_with_other_plans(where: str, strategy: str, clauses: str, reason: str) -> None:
    assert joined(where, clauses, strategy) == reason


def test_one_name_for_two_kinds_is_left_to_the_other_plan() -> None:
    schema = Schema(types={"A": {"k": Kind.INT}, "B": {"k": Kind.INT}, "C": {"k": Kind.STRING}}, closed=True)
    with pytest.raises(NotJoinedError, match="values of k are not all of one comparable kind"):
        parts("A ALL B FILTER A.k = B.k", schema)
    floats = Schema(types={"A": {"k": Kind.INT}, "B": {"k": Kind.FLOAT}}, closed=True)
    assert len(parts("A ALL B FILTER A.k = B.k", floats).classes) == 1


def test_a_plan_can_be_asked_for() -> None:
    tree = estero.query("SELECT * WHERE A ALL B ALL C FILTER A.k = B.k AND B.k = C.k AND A.m = B.m").tree
    layout = Layout(SCHEMA, "type")
    assert isinstance(plan_of(tree, layout), JoinPlan)
    assert isinstance(plan_of(tree, layout, only="PCEA"), JoinPlan)
    assert isinstance(plan_of(tree, layout, only="CEA"), AutomatonPlan)
    other = estero.query("SELECT * WHERE A ALL (B : C) FILTER A.p < B.p").tree
    reason = "B : C is more than events joined by ALL, ;, OR and +"
    with pytest.raises(NotServedError, match=r"not served by PCEA \+ heap: B : C is more than events"):
        plan_of(other, layout, only="PCEA")
    with pytest.raises(NotServedError, match="not served by a CEA in partitions"):
        plan_of(other, layout, only="partitions")
    plan = plan_of(other, layout)
    assert isinstance(plan, AutomatonPlan)
    assert plan.refused[0] == ("PCEA + heap", reason)


def test_what_is_one_partition_is_joined_and_can_be_partitioned() -> None:
    layout = Layout(SCHEMA, "type")
    for where in ("A ALL B FILTER A.k = B.k", "A AS x ALL B FILTER A.k = B.k AND x.m = B.m"):
        tree = estero.query(f"SELECT * WHERE {where}").tree
        assert isinstance(plan_of(tree, layout), JoinPlan)
        plan = plan_of(tree, layout, only="partitions")
        assert isinstance(plan, AutomatonPlan)
        assert plan.keyed
        alone = plan_of(tree, layout, only="CEA")
        assert isinstance(alone, AutomatonPlan)
        assert not alone.keyed


def test_many_parts_that_nothing_joins_are_joined_by_no_key() -> None:
    few, many = (" ALL ".join(f"A AS x{number}" for number in range(count)) for count in (10, 11))
    assert joined(few) == "no equality joins parts of an ALL"
    assert isinstance(joined(many), JoinPlan)
    thirty = estero.query(f"SELECT * WHERE {' ALL '.join(f'T{number}' for number in range(30))}")
    plan = plan_of(thirty.tree, Layout(Schema(shared={})))
    assert isinstance(plan, JoinPlan)
    assert len(plan.automaton.transitions) == 60
    assert joined(many, strategy="NEXT") == "the strategy NEXT chooses among complex events"


@pytest.mark.parametrize("where", ["A ALL B ALL C", "A AS x ALL A AS y ALL (B FILTER B[n > 0])"])
@given(events=streams(max_size=7))
@settings(max_examples=20)
def test_parts_that_nothing_joins_are_found(where: str, events: list[Event]) -> None:
    tree = estero.query(f"SELECT * WHERE {where} WITHIN 3 EVENTS").tree
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("estero.plan.joins.MOST_APART", 1)
        assert isinstance(plan_joined(Draft(tree, Layout(TYPED))), JoinPlan)
        found = in_process(tree, events)
    assert found == evaluate_query(tree, events, tick=TICK)


def test_too_many_transitions_are_a_reason_not_an_error() -> None:
    same = " AND ".join(f"x{number}.k = x{number + 1}.k" for number in range(14))
    reason = joined(f"{' ALL '.join(f'A AS x{number}' for number in range(15))} FILTER {same}")
    assert isinstance(reason, str)
    assert reason.startswith("this query needs an automaton of more than 20,000 transitions")
