"""Hierarchical queries as PCEA: equal to the reference, unambiguous, small; others are refused."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings

from automata.hierarchical import compact_q_tree, hierarchical_pcea
from automata.run_trees import accepting_runs
from estero.automata.joins.q_tree import Inner, Leaf, Node, leaves, nodes, q_tree, tree_lines
from estero.automata.pcea import PCEA
from estero.errors import LimitExceeded
from estero.language.check.atoms import named_atoms
from estero.language.check.conjunctive import check_conjunctive, witness
from estero.language.syntax.parser import parse_conjunctive
from estero.language.tree.conjunctive import ConjunctiveTree
from estero.language.tree.schema import Schema
from estero.reference.conjunctive import evaluate_conjunctive
from estero.reference.queries import Event
from strategies.conjunctive import SCHEMA, any_queries, hierarchical_queries, streams


def automaton_of(query: ConjunctiveTree, schema: Schema = SCHEMA) -> PCEA:
    return hierarchical_pcea(named_atoms(query, schema))


def automaton(text: str) -> PCEA:
    return automaton_of(parse_conjunctive(text), Schema(shared={}))


def size_of(query: ConjunctiveTree) -> int:
    """The terms of a query, and for each atom its type and the variable that is on top of all."""
    return sum(2 + len(atom.arguments) for atom in query.atoms)


@given(hierarchical_queries(), streams())
@settings(max_examples=150)
def test_the_automaton_finds_the_valuations_each_by_one_run(
    query: ConjunctiveTree, events: list[Event]
) -> None:
    assert check_conjunctive(query, SCHEMA) == []
    runs = accepting_runs(automaton_of(query), events)
    assert all(run.is_simple for run in runs)
    found = [run.complex_event() for run in runs]
    assert len(found) == len(set(found))
    if query.window is not None:
        found = [each for each in found if each.end - each.start <= query.window.events]  # type: ignore[union-attr]
    expected = evaluate_conjunctive(query, events)
    assert set(found) == {each for at_end in expected.values() for each in at_end}


@given(hierarchical_queries(most=12, self_joins=False))
def test_without_self_joins_the_automaton_is_of_quadratic_size(query: ConjunctiveTree) -> None:
    pcea = automaton_of(query, Schema(shared={}))
    count = len(query.atoms)
    tree = compact_q_tree(named_atoms(query, Schema(shared={})))
    above = sum(len(leaves(node)) for node in nodes(tree) if isinstance(node, Inner))
    assert len(pcea.states) <= 2 * count - 1
    assert len(pcea.transitions) == count + above
    assert pcea.size <= size_of(query) ** 2


@given(any_queries())
@settings(max_examples=150)
def test_a_query_that_is_not_hierarchical_is_refused_with_a_true_witness(query: ConjunctiveTree) -> None:
    having = {
        name: {number for number, atom in enumerate(query.atoms) if name in atom.variables()}
        for name in query.variables()
    }
    is_hierarchical = all(a <= b or b <= a or not a & b for a, b in combinations(having.values(), 2))
    found = witness([atom.variables() for atom in query.atoms])
    messages = [error.message for error in check_conjunctive(query)]
    assert (found is None) == is_hierarchical
    assert any("is not hierarchical" in message for message in messages) == (not is_hierarchical)
    if found is None:
        assert isinstance(q_tree([atom.variables() for atom in query.atoms]), Inner | Leaf)
        return
    first, second, *numbers = found
    both, one, other = (query.atoms[number] for number in numbers)
    assert {first, second} <= set(both.variables())
    assert first in one.variables()
    assert second not in one.variables()
    assert second in other.variables()
    assert first not in other.variables()
    with pytest.raises(ValueError, match="no variable is in all of them"):
        q_tree([atom.variables() for atom in query.atoms])


@given(hierarchical_queries())
def test_the_path_to_an_atom_holds_its_variables(query: ConjunctiveTree) -> None:
    paths: dict[int, set[str]] = {}

    def walk(node: Node, above: tuple[str, ...]) -> None:
        if isinstance(node, Leaf):
            paths[node.atom] = set(above) - {"*"}
            return
        for child in node.children:
            walk(child, (*above, node.variable))

    walk(q_tree([atom.variables() for atom in query.atoms]), ())
    assert paths == {number: set(atom.variables()) for number, atom in enumerate(query.atoms)}
    compact = compact_q_tree(named_atoms(query, SCHEMA))
    assert all(len(node.children) > 1 for node in nodes(compact) if isinstance(node, Inner))


def test_a_query_of_one_atom_is_one_state() -> None:
    assert str(automaton("Q(x) <- T(x, 5)")) == (
        '1 state: T; a run accepts in T\nbegin → T  on T["#1" = 5]: mark T'
    )


def test_parts_that_share_nothing_are_joined_by_nothing() -> None:
    pcea = automaton("Q(x, y) <- T(x), S(y)")
    assert str(pcea) == (
        "3 states: T, S, *; a run accepts in *\n"
        "begin → T  on T: mark T\n"
        "begin → S  on S: mark S\n"
        "S → *  on T: mark T, joining any S\n"
        "T → *  on S: mark S, joining any T"
    )
    assert [key.width for key in pcea.keys] == [0]


def test_constants_and_repeated_variables_are_asked_of_one_event() -> None:
    predicates = automaton("Q(x) <- T(x, x, 'a'), S(x, 1.5, x)").predicates
    assert [str(each).replace('"', "") for each in predicates] == [
        "T[#2 = 'a' AND #0 = #1]",
        "S[#1 = 1.5 AND #0 = #2]",
    ]


def test_one_event_that_serves_two_atoms_is_marked_with_both() -> None:
    pcea = automaton("Q(x, y, z) <- T(x, y), T(x, z)")
    assert str(pcea).splitlines()[1:] == [
        "begin → 0  on T: mark 0",
        "begin → 1  on T: mark 1",
        '1 → x  on T: mark 0, joining 1 by "#0" = "#0"',
        '0 → x  on T: mark 1, joining 0 by "#0" = "#0"',
        'begin → x  on T["#0" IS NOT NULL]: mark 0, 1',
    ]


def test_atoms_that_no_event_can_serve_together_have_no_transition_for_it() -> None:
    pcea = automaton("Q(x) <- T(x, 1), T(x, 2)")
    assert all(len(transition.labels) == 1 for transition in pcea.transitions)


def test_a_variable_has_a_state_for_each_way_to_join_it() -> None:
    pcea = automaton("Q(x, y, z) <- T(x, y), T(y, x), S(x)")
    assert pcea.states == ("0", "1", "y by 0 or 0 + 1", "y by 1", "S", "x")


def test_an_automaton_that_grows_too_large_says_why() -> None:
    query = parse_conjunctive(f"Q(x) <- {', '.join(['T(x, _)'] * 9)}")
    with pytest.raises(LimitExceeded, match=r"more than 100 transitions, because one event of type "):
        hierarchical_pcea(named_atoms(query, Schema(shared={})), cap=100)


def test_a_q_tree_prints_as_a_tree() -> None:
    tree = q_tree([["x", "y", "z"], ["x", "y"], ["v"]])
    assert "\n".join(tree_lines(tree, ["R(x, y, z)", "U(x, y)", "V(v)"])) == (
        "*\n├─ x\n│  └─ y\n│     ├─ z\n│     │  └─ R(x, y, z)\n│     └─ U(x, y)\n└─ v\n   └─ V(v)"
    )
