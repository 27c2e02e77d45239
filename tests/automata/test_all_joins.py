"""Which ALL is a conjunctive query, which is not and why, and what becomes of filters wherever they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings

import estero
from estero.automata.joins.all_joins import joined_all
from estero.automata.joins.hierarchical import compact_q_tree
from estero.automata.joins.q_tree import tree_lines
from estero.language.check.atoms import NamedAtom
from estero.language.tree.schema import Kind, Schema
from estero.plan.automaton import AutomatonPlan
from estero.plan.draft import Draft
from estero.plan.joins import JoinPlan
from estero.plan.joins import joined as plan_joined
from estero.plan.plan import Layout
from estero.plan.rules import NotServedError, plan_of
from estero.reference.queries import Event, evaluate_query
from laws.evaluators import in_process
from strategies import SCHEMA as TYPED
from strategies import TICK, streams

KINDS = {"k": Kind.INT, "m": Kind.INT, "p": Kind.FLOAT, "s": Kind.STRING, "many": Kind.OPAQUE}
SCHEMA = Schema(shared=KINDS, types=dict.fromkeys("ABCD", KINDS), closed=True)


def joined(where: str, schema: Schema = SCHEMA, clauses: str = "", strategy: str = "") -> object:
    return joined_all(estero.query(f"SELECT {strategy} * WHERE {where} {clauses}").tree, schema)


def atoms_of(where: str) -> Sequence[NamedAtom]:
    found = joined(where)
    assert isinstance(found, tuple), found
    return found


def terms(atoms: Sequence[NamedAtom]) -> list[Mapping[str, str]]:
    """For each atom its attributes with their variables, which are numbered in order."""
    numbers: dict[str, str] = {}
    return [
        {name: numbers.setdefault(str(term), str(len(numbers))) for name, term in atom.terms}
        for atom in atoms
    ]


def test_each_class_of_equal_values_is_a_variable() -> None:
    atoms = atoms_of("A AS x ALL B AS y ALL C AS z FILTER x.k = y.m AND z.k = y.m AND x.s = y.s")
    assert terms(atoms) == [{"k": "0", "s": "1"}, {"m": "0", "s": "1"}, {"k": "0"}]
    assert [sorted(atom.labels) for atom in atoms] == [["A", "x"], ["B", "y"], ["C", "z"]]
    assert list(tree_lines(compact_q_tree(atoms), [atom.text for atom in atoms])) == [
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
    ],
)
def test_however_it_is_written(where: str) -> None:
    first, second = atoms_of(where)
    assert terms([first, second]) == [{"k": "0"}, {"k": "0"}]
    assert [str(each).replace("NOT NOT ", "") for each in first.conditions] == ["p > 3"]
    assert second.conditions == ()


def test_a_variable_of_several_parts_is_equal_in_all_of_them() -> None:
    atoms = atoms_of("A AS x ALL (B ALL C) AS both ALL D FILTER both.k = x.k AND D.m = C.m AND D.k = B.k")
    assert terms(atoms) == [{"k": "0"}, {"k": "0"}, {"k": "0", "m": "1"}, {"k": "0", "m": "1"}]
    assert [sorted(atom.labels) for atom in atoms][1:3] == [["B", "both"], ["C", "both"]]


def test_a_value_that_equals_itself_is_there() -> None:
    first, second, _ = atoms_of("A AS x ALL B AS y ALL C AS z FILTER x.m = A.m AND y.k = z.k")
    assert [str(each) for each in first.conditions] == ["m IS NOT NULL"]
    assert second.conditions == ()


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        (
            "A AS x ALL B AS y ALL C AS z FILTER x.k = y.k AND y.m = z.m",
            (
                "it is not hierarchical: y has both x.k = y.k and y.m = z.m, x has x.k = y.k alone, "
                "and z y.m = z.m alone"
            ),
        ),
        ("A AS x ALL (B ; C) AS y FILTER x.k = y.k", "B ; C is not a single event"),
        ("A AS x ALL (B+) AS y FILTER x.k = y.k", "B+ is not a single event"),
        (
            "A AS x ALL B AS y FILTER x.k = y.k AND x.p < y.p",
            "x.p < y.p is not an equality of two attributes",
        ),
        ("A AS x ALL B AS y FILTER x.k = y.k + 1", "x.k = y.k + 1 is not an equality of two attributes"),
        (
            "A AS x ALL B AS y FILTER x.k = y.k AND (x[p > 1] OR y[p > 1])",
            "x[p > 1] OR y[p > 1] is about several events, and not an equality",
        ),
        (
            "A AS x ALL A FILTER x.k = A.k",
            (
                "its part number 2, A, has no label of its own, so two choices of events can be one "
                "complex event"
            ),
        ),
        ("A ALL B FILTER A.many = B.many", "values of many are not all of one comparable kind"),
        ("A ALL B", ""),
        ("A ; B FILTER A.k = B.k", ""),
    ],
)
def test_what_is_not_joined_and_why(where: str, reason: str) -> None:
    assert joined(where) == reason


@pytest.mark.parametrize(
    ("strategy", "clauses", "reason"),
    [
        ("MAX", "", "the strategy MAX chooses among complex events"),
        ("", "CONSUME BY ANY", "CONSUME BY forgets partial matches"),
        ("", "PARTITION BY [k]", "the query has PARTITION BY"),
    ],
)
def test_clauses_that_stay_with_the_other_plan(strategy: str, clauses: str, reason: str) -> None:
    assert joined("A ALL B FILTER A.m = B.m", clauses=clauses, strategy=strategy) == reason


def test_one_name_for_two_kinds_is_left_to_the_other_plan() -> None:
    schema = Schema(types={"A": {"k": Kind.INT}, "B": {"k": Kind.INT}, "C": {"k": Kind.STRING}}, closed=True)
    assert joined("A ALL B FILTER A.k = B.k", schema) == "values of k are not all of one comparable kind"
    floats = Schema(types={"A": {"k": Kind.INT}, "B": {"k": Kind.FLOAT}}, closed=True)
    assert isinstance(joined("A ALL B FILTER A.k = B.k", floats), tuple)


def test_a_plan_can_be_asked_for() -> None:
    tree = estero.query("SELECT * WHERE A ALL B ALL C FILTER A.k = B.k AND B.k = C.k AND A.m = B.m").tree
    layout = Layout(SCHEMA, "type")
    assert isinstance(plan_of(tree, layout), JoinPlan)
    assert isinstance(plan_of(tree, layout, only="PCEA"), JoinPlan)
    assert isinstance(plan_of(tree, layout, only="CEA"), AutomatonPlan)
    other = estero.query("SELECT * WHERE A ALL (B ; C) FILTER A.p < B.p").tree
    with pytest.raises(NotServedError, match=r"not served by PCEA \+ heap: B ; C is not a single event"):
        plan_of(other, layout, only="PCEA")
    with pytest.raises(NotServedError, match="not served by a CEA in partitions"):
        plan_of(other, layout, only="partitions")
    plan = plan_of(other, layout)
    assert isinstance(plan, AutomatonPlan)
    assert plan.refused[0] == ("PCEA + heap", "B ; C is not a single event")


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
    assert joined(few) == ""
    assert len(atoms_of(many)) == 11
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
        patch.setattr("estero.automata.joins.all_joins.MOST_APART", 1)
        assert isinstance(plan_joined(Draft(tree, Layout(TYPED))), JoinPlan)
        found = in_process(tree, events)
    assert found == evaluate_query(tree, events, tick=TICK)


def test_too_many_transitions_are_a_reason_not_an_error() -> None:
    parts = " ALL ".join(f"A AS x{number}" for number in range(15))
    same = " AND ".join(f"x{number}.k = x{number + 1}.k" for number in range(14))
    tree = estero.query(f"SELECT * WHERE {parts} FILTER {same}").tree
    reason = plan_joined(Draft(tree, Layout(SCHEMA, "type")))
    assert isinstance(reason, str)
    assert reason.startswith("this query needs an automaton of more than 20,000 transitions")
