"""Patterns whose deterministic automaton gets too big: an error that names the part that grows, soon."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import estero
from estero.automata.compile.compile_pattern import compile_pattern
from estero.automata.compile.fragment import Part, Workshop
from estero.automata.compile.symbolic_guard import SymbolicGuard
from estero.automata.determinize import DEAD, LazyAutomaton
from estero.automata.given.user_automaton import automaton_of
from estero.automata.growth import growing_part
from estero.language.syntax.parser import parse_pattern


def explored(automaton: LazyAutomaton) -> None:
    """Asks for every row."""
    classes = [automaton.class_of(bits) for bits in range(1 << len(automaton.cea.predicates))]
    state = 0
    while state < len(automaton.subsets):
        for each in classes:
            row = automaton.row(state, each)
            assert row.skip == DEAD or row.skip < len(automaton.subsets)
        state += 1


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("(A OR B):+ : A : (A OR B):{12}", "(A OR B) :{12}"),
        ("(A OR B)+ ; A ; (A OR B){12}", "(A OR B){12}"),
        ("C ; ((A OR B):+ : A : (A OR B):{12}) AS x ; C OR A ; B", "(A OR B) :{12}"),
        ("(A OR B)+ ; A ; (A OR B){12} ; B FILTER A[n > 3]", "(A OR B){12}"),
    ],
)
def test_the_part_that_grows_is_named(text: str, part: str) -> None:
    automaton = LazyAutomaton(compile_pattern(parse_pattern(text)).automaton, state_cap=1000)
    with pytest.raises(estero.LimitExceeded) as caught:
        explored(automaton)
    assert str(caught.value) == (
        f"the pattern needs more than 1,000 automaton states; what grows is {part}: "
        "bound its iterations or make its predicates exclude one another"
    )


TRANSITIONS = "200,000 automaton transitions; what grows is "
STATES_OF_AND = (
    "50,000 automaton states; what grows is A{17}+ AND A{19}+ AND A{23}+ AND A{29}+: join fewer parts by AND"
)


@pytest.mark.parametrize(
    ("text", "grows"),
    [
        (
            "B ; ((A{1000}){1000} OR C)",
            "50,000 automaton states; what grows is A{1000}{1000}: give its iterations smaller bounds",
        ),
        (
            "B : (A" + " ; B?" * 1_000 + ")",
            TRANSITIONS + ("A" + " ; B?" * 24)[:120] + " …: make fewer of its parts optional",
        ),
        (
            "C ; (" + " ALL ".join(f"(A{i} ; B)" for i in range(20)) + ")",
            TRANSITIONS
            + " ALL ".join(f"A{i} ; B" for i in range(20))[:120]
            + " …: join fewer parts by ALL, or write those whose order is known as a sequence, with ;",
        ),
        ("A{17}+ AND A{19}+ AND A{23}+ AND A{29}+ OR B", STATES_OF_AND),
    ],
)
def test_a_pattern_that_is_too_large_written_out_is_refused(text: str, grows: str) -> None:
    with pytest.raises(estero.LimitExceeded) as caught:
        compile_pattern(parse_pattern(text))
    assert str(caught.value) == f"the pattern needs more than {grows}"


def test_a_long_iteration_is_written_out_in_time_linear_in_its_length() -> None:
    assert compile_pattern(parse_pattern("A{20000}")).automaton.states == 20_001


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("A" + "+" * 90, "A+"),
        ("A" + " :+" * 90, "A :+"),
        ("A" + "+ :+" * 45, "A+"),
        ("A" + "{1}" * 90, "A"),
        ("A{3,}{2,}+", "A{6,}"),
        ("A :{3,} :{2,}", "A :{6,}"),
        ("A+ AS x+", "(A AS x)+"),
        (" ALL ".join(["A"] * 40), "A{1,40}"),
    ],
)
def test_what_says_the_same_is_the_same_automaton(text: str, plain: str) -> None:
    assert compile_pattern(parse_pattern(text)).automaton == compile_pattern(parse_pattern(plain)).automaton


@pytest.mark.parametrize(("text", "less"), [("A :{2,}+", "A{2,}"), ("A{2,} :{2,}", "A{4,}")])
def test_what_says_more_is_not_made_less(text: str, less: str) -> None:
    assert compile_pattern(parse_pattern(text)).automaton != compile_pattern(parse_pattern(less)).automaton


def test_parts_that_are_optional_add_one_state_each() -> None:
    few, many = (compile_pattern(parse_pattern("A" + " ; B?" * n)).automaton for n in (30, 60))
    assert (few.states, many.states) == (32, 62)
    assert len(many.transitions) <= 4 * len(few.transitions)


def test_the_construction_of_a_long_sequence_is_linear() -> None:
    """Each atom, and each of them once more as a part of the sequence."""
    shop = Workshop()
    parts = [Part(shop.atom(SymbolicGuard(("A",)), frozenset("A"))) for _ in range(5_000)]
    shop.sequence(parts)
    assert shop.arcs == 5_000


def test_a_part_that_is_too_large_leaves_the_workshop_as_it_was() -> None:
    shop, outer, inner = Workshop(), parse_pattern("A ; B"), parse_pattern("A")
    with pytest.raises(estero.LimitExceeded), shop.making(outer), shop.making(inner):
        shop.reserve(1_000_000)
    with pytest.raises(estero.LimitExceeded, match="what grows is A ; B"), shop.making(outer):
        shop.reserve(1_000_000)
    assert shop.origins[shop.state()] == ()


def test_an_automaton_without_a_pattern_has_no_part_to_name() -> None:
    steps = [
        *[("s", name, name, "s") for name in "AB"],
        ("s", "A", "A", 0),
        *[(i, name, name, i + 1) for i in range(12) for name in "AB"],
    ]
    given = automaton_of(steps, "s", 12, None).automaton
    automaton = LazyAutomaton(given, state_cap=1000)
    with pytest.raises(
        estero.LimitExceeded, match=r"^the pattern needs more than 1,000 automaton states: bound"
    ):
        explored(automaton)
    assert growing_part(given, automaton.subsets) is None


def test_every_state_of_a_compiled_automaton_knows_its_part() -> None:
    pattern = parse_pattern("A ; (B ; C)+ UNLESS D")
    automaton = compile_pattern(pattern).automaton
    assert len(automaton.origins) == automaton.states
    assert {origin[0] for origin in automaton.origins} == {pattern}
    small = compile_pattern(parse_pattern("A ; B+")).automaton
    assert [str(origin[-1]) for origin in small.origins] == ["A", "B+", "B+", "B+"]


@pytest.mark.slow
def test_the_default_cap_is_reached_in_seconds() -> None:
    draw = random.Random(1)
    events = pa.table({"kind": [draw.choice("AB") for _ in range(200_000)]})
    answer = estero.query("SELECT * WHERE (A OR B):+ : A : (A OR B):{20}").run(events, type="kind")
    with pytest.raises(
        estero.LimitExceeded, match=r"more than 100,000 automaton states; what grows is \(A OR B\) :\{20}: "
    ):
        answer.count()
