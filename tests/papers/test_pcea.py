"""The examples of the paper on PCEA and hierarchical queries."""

from __future__ import annotations

import pyarrow as pa
import pytest

from automata.hierarchical import compact_q_tree, hierarchical_pcea
from automata.run_trees import accepting_runs
from engine.pcea_runs import enumerated
from engine.test_pcea_queries import batch_of, tables_of
from estero.automata.cea import EventPredicate
from estero.automata.joins.gathering import gathering
from estero.automata.joins.parts import parts_of
from estero.automata.joins.q_tree import q_tree, tree_lines
from estero.automata.pcea import PCEA, JoinKey, PceaTransition, Source
from estero.engine.recognizer import Recognizer
from estero.engine.runs.joined.pcea_runs import PceaRuns
from estero.errors import QueryError
from estero.language.check.atoms import NamedAtom, named_atoms
from estero.language.check.conjunctive import check_conjunctive, witness
from estero.language.syntax.parser import parse_conjunctive
from estero.language.tree.expressions import Attribute
from estero.language.tree.schema import Kind, Schema
from estero.queries.texts import query
from estero.reference.conjunctive import evaluate_conjunctive
from estero.reference.queries import ComplexEvent, Event
from reference.notation import stream

S0 = stream("S T R S T R S T", x=[2, 2, 1, 2, 1, 2, 4, 1], y=[11, None, 10, 11, None, 11, 13, None])
"""The running example of section 2: S(2, 11), T(2), R(1, 10), S(2, 11), T(1), R(2, 11), S(4, 13), T(1)."""

X, Y = Attribute("x"), Attribute("y")
TSR = tuple(EventPredicate((name,)) for name in "TSR")
BY_X, BY_BOTH = JoinKey(dict.fromkeys("TSR", (X,))), JoinKey(dict.fromkeys("SR", (X, Y)))
MARK = frozenset("•")

C0 = PCEA(
    ("q0", "q1", "q2"),
    frozenset({2}),
    (
        PceaTransition((), 0, MARK, 0),
        PceaTransition((Source(0, 0, 0),), 1, MARK, 1),
        PceaTransition((Source(1, 1, 1),), 2, MARK, 2),
    ),
    TSR,
    (BY_X, BY_BOTH),
)
"""Example 2.1: T(a), then S(a, b), then R(a, b)."""

P0 = PCEA(
    ("q0", "q1", "q2"),
    frozenset({2}),
    (
        PceaTransition((), 0, MARK, 0),
        PceaTransition((), 1, MARK, 1),
        PceaTransition((Source(0, 0, 0), Source(1, 1, 1)), 2, MARK, 2),
    ),
    TSR,
    (BY_X, BY_BOTH),
)
"""Example 3.3: T(a) and S(a, b) in any order, then R(a, b)."""

Q0 = "Q0(x, y) <- T(x), S(x, y), R(x, y)"
Q1_OF_SECTION_4 = "Q1(x, y) <- T(x), R(x, y), S(2, y), T(x)"
Q1 = "Q1(x, y, z, v, w) <- R(x, y, z), S(x, y, v), T(x, w), U(x, y)"
Q2 = "Q2(x, y, z, v) <- R(x, y, z), R(x, y, v), U(x, y)"


def atoms(text: str) -> tuple[NamedAtom, ...]:
    return named_atoms(parse_conjunctive(text), Schema(shared={}))


def supports(runs: PCEA, end: int) -> set[tuple[int, ...]]:
    found = (run.complex_event() for run in accepting_runs(runs, S0) if run.position == end)
    return {tuple(sorted(each.support)) for each in found}


def without_null(events: list[Event]) -> list[Event]:
    """T has one attribute."""
    return [Event(each.type, {k: v for k, v in each.attributes.items() if v is not None}) for each in events]


def drawing(tree: str) -> str:
    return "\n".join(line.rstrip() for line in tree.strip("\n").splitlines())


def test_c0_finds_one_sequence_at_position_5() -> None:
    assert supports(C0, 5) == {(1, 3, 5)}


def test_p0_finds_both_orders_at_position_5() -> None:
    assert supports(P0, 5) == {(1, 3, 5), (0, 1, 5)}


@pytest.mark.parametrize("capacity", [1, 4096])
@pytest.mark.parametrize("window", [None, 5, 4])
def test_the_engine_finds_the_same_at_position_5(window: int | None, capacity: int) -> None:
    """The earlier of the two of P0 starts at position 0."""
    found = {}
    for name, pcea in (("C0", C0), ("P0", P0)):
        recognizer = Recognizer(PceaRuns(tables_of(pcea), window, capacity=capacity))
        found[name] = [
            (end, tuple(event for event, _ in items))
            for roots in recognizer.push(batch_of(pcea, S0))
            for end, items in enumerated(recognizer, roots)
        ]
    both = [(5, (1, 3, 5)), (5, (0, 1, 5))]
    assert found == {"C0": both[:1], "P0": both[:1] if window == 4 else both}


def test_runs_of_p0_are_simple_and_each_is_another_valuation() -> None:
    runs = accepting_runs(P0, S0)
    assert all(run.is_simple for run in runs)
    assert len({run.complex_event() for run in runs}) == len(runs)


P0_QUERY = (
    "SELECT * WHERE (T AS t ALL S AS s) ; R AS r FILTER t.x = r.x AND s.x = r.x AND s.y = r.y WITHIN 5 EVENTS"
)


def test_p0_is_a_query_and_its_automaton_is_that_of_the_example() -> None:
    kinds = {"x": Kind.INT, "y": Kind.INT}
    pattern = query(P0_QUERY).tree.pattern
    found = gathering(parts_of(pattern, (), Schema(shared=kinds, types=dict.fromkeys("TSR", kinds)))).pcea
    names = ["t", "s", "r"]
    assert list(found.states) == names
    assert [
        ([names[source.state] for source in each.sources], found.predicates[each.predicate].types)
        for each in found.transitions
    ] == [([], ("T",)), ([], ("S",)), (["t", "s"], ("R",))]
    assert str(found).splitlines()[-1].endswith("joining t by x = x; s by (x, y) = (x, y)")


def test_p0_as_a_query_finds_what_its_automaton_finds() -> None:
    events = pa.table(
        {"type": [event.type for event in S0]}
        | {name: [event.attributes[name] for event in S0] for name in "xy"}
    )
    answer = query(P0_QUERY).run(events, type="type")
    found = {(ce.end, tuple(sorted({at for at, *_ in ce.positions.values()}))) for ce in answer}
    assert found == {(5, support) for support in supports(P0, 5)}
    assert "PCEA + heap" in str(query(P0_QUERY).explain(events, type="type"))


def test_q0_finds_both_valuations_at_position_5() -> None:
    found = evaluate_conjunctive(parse_conjunctive(Q0), without_null(S0))
    assert {str(each) for each in found[5]} == {
        "[1, 5] {R: [5], S: [3], T: [1]}",
        "[0, 5] {R: [5], S: [0], T: [1]}",
    }
    assert set(found) == {5}


def test_the_automaton_of_q0_is_that_of_figure_2() -> None:
    lines = str(hierarchical_pcea(atoms(Q0))).replace('"', "").splitlines()
    assert lines == [
        "5 states: T, S, R, y, x; a run accepts in x",
        "begin → T  on T: mark T",
        "begin → S  on S: mark S",
        "begin → R  on R: mark R",
        "R → y  on S: mark S, joining R by (#0, #1) = (#0, #1)",
        "S → y  on R: mark R, joining S by (#0, #1) = (#0, #1)",
        "y → x  on T: mark T, joining y by #0 = #0",
        "T & R → x  on S: mark S, joining T by #0 = #0; R by (#0, #1) = (#0, #1)",
        "T & S → x  on R: mark R, joining T by #0 = #0; S by (#0, #1) = (#0, #1)",
    ]


def test_the_automaton_of_q0_finds_what_q0_means() -> None:
    events = without_null(S0)
    schema = Schema(types={event.type: dict.fromkeys(event.attributes, Kind.INT) for event in events})
    pcea = hierarchical_pcea(named_atoms(parse_conjunctive(Q0), schema))
    found: dict[int, set[ComplexEvent]] = {}
    for run in accepting_runs(pcea, events):
        found.setdefault(run.position, set()).add(run.complex_event())
    assert found == evaluate_conjunctive(parse_conjunctive(Q0), events)


Q0_BY_HAND = PCEA(
    ("T", "S", "R", "y", "x"),
    frozenset({4}),
    (
        *(PceaTransition((), bit, MARK, bit) for bit in range(3)),
        PceaTransition((Source(2, 1, 1),), 1, MARK, 3),
        PceaTransition((Source(1, 1, 1),), 2, MARK, 3),
        PceaTransition((Source(3, 0, 0),), 0, MARK, 4),
        PceaTransition((Source(0, 0, 0), Source(2, 1, 1)), 1, MARK, 4),
        PceaTransition((Source(0, 0, 0), Source(1, 1, 1)), 2, MARK, 4),
    ),
    TSR,
    (BY_X, BY_BOTH),
)
"""Figure 2: T, S and R in any order, with equal values; the last of them joins the others."""


@pytest.mark.parametrize("capacity", [1, 4096])
@pytest.mark.parametrize("window", [None, 5, 4])
def test_the_automaton_of_figure_2_by_hand_finds_what_q0_means(window: int | None, capacity: int) -> None:
    recognizer = Recognizer(PceaRuns(tables_of(Q0_BY_HAND), window, capacity=capacity))
    found = [
        (end, tuple(event for event, _ in items))
        for roots in recognizer.push(batch_of(Q0_BY_HAND, S0))
        for end, items in enumerated(recognizer, roots)
    ]
    meant = evaluate_conjunctive(parse_conjunctive(Q0), without_null(S0))
    supports = {(each.end, tuple(sorted(each.support))) for at in meant.values() for each in at}
    assert len(found) == len(set(found))
    assert set(found) == {each for each in supports if window is None or each[0] - each[1][0] <= window}


def test_q1_of_section_4_is_not_hierarchical() -> None:
    query = parse_conjunctive(Q1_OF_SECTION_4)
    found = witness([atom.variables() for atom in query.atoms])
    assert found is not None
    assert found[:2] == ("x", "y")
    assert [str(query.atoms[number]) for number in found[2:]] == ["R(x, y)", "T(x)", "S(2, y)"]
    assert [type(error) for error in check_conjunctive(query)] == [QueryError]
    with pytest.raises(ValueError, match="no variable is in all of them"):
        hierarchical_pcea(atoms(Q1_OF_SECTION_4))


def test_the_q_tree_of_q0() -> None:
    assert "\n".join(tree_lines(compact_q_tree(atoms(Q0)), "TSR")) == drawing("""
x
├─ T
└─ y
   ├─ S
   └─ R
""")


def test_the_q_tree_of_q1_is_that_of_figure_3() -> None:
    tree = q_tree([atom.variables for atom in atoms(Q1)])
    assert "\n".join(tree_lines(tree, "RSTU")) == drawing("""
x
├─ y
│  ├─ z
│  │  └─ R
│  ├─ v
│  │  └─ S
│  └─ U
└─ w
   └─ T
""")


def test_the_compact_q_tree_of_q1_is_that_of_figure_4() -> None:
    assert "\n".join(tree_lines(compact_q_tree(atoms(Q1)), "RSTU")) == drawing("""
x
├─ y
│  ├─ R
│  ├─ S
│  └─ U
└─ T
""")


def test_a_q_tree_of_q2_is_that_of_figure_3() -> None:
    tree = q_tree([atom.variables for atom in atoms(Q2)])
    assert "\n".join(tree_lines(tree, ["Rxyz", "Rxyv", "Uxy"])) == drawing("""
x
└─ y
   ├─ z
   │  └─ Rxyz
   ├─ v
   │  └─ Rxyv
   └─ Uxy
""")


def test_the_compact_q_tree_of_q2_has_one_variable() -> None:
    assert "\n".join(tree_lines(compact_q_tree(atoms(Q2)), ["Rxyz", "Rxyv", "Uxy"])) == drawing("""
y
├─ Rxyz
├─ Rxyv
└─ Uxy
""")
