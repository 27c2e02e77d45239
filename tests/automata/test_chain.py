"""Chain automata: what is compared between neighbours, what is refused, and the oracle's answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from automata.chain_runs import can_be_checked, chain_runs, found_by
from automata.run_trees import accepting_runs
from estero.automata.cea import CEA, EventPredicate, Guard, Transition
from estero.automata.chain import Chain, ChainTransition, Neighbours, as_pcea, asked_before
from estero.automata.compile.compile_pattern import compile_pattern
from estero.automata.correlated.chain_builder import MIXED
from estero.automata.correlated.compile_chain import MORE_DIFFERENT, SECOND_ORDER, chain_of
from estero.automata.correlated.filter_cases import in_cases, positive
from estero.language.check.ticks import in_ticks
from estero.language.syntax.parser import parse_condition, parse_pattern
from estero.language.tree.expressions import Attribute, Node
from estero.language.tree.pattern import Pattern
from estero.language.tree.schema import Kind, Schema
from estero.reference.queries import Event, evaluate_pattern
from papers.test_part_by import DEBATES, FILTERS, PAIRS, TWITTER
from strategies.correlated import correlated
from strategies.full import full_patterns, is_valid
from strategies.patterns import SCHEMA, streams

TWEETS = Schema(
    types={
        "T": {"id": Kind.INT, "user_id": Kind.INT, "post": Kind.STRING},
        "R": {"id": Kind.INT, "user_id": Kind.INT, "tweet_id": Kind.INT, "reply": Kind.STRING},
    },
    closed=True,
)

CHAINS = (
    "A AS x ; B AS y FILTER x.n = y.k",
    "A AS x ; B+ AS y FILTER x.n = y.n",
    "A+ AS x ; B AS y FILTER x.n = y.n",
    "A+ AS x ; B+ AS y FILTER x.n = y.n",
    "A AS x ; B AS y ; C AS z FILTER x.n = y.n AND x.n = z.n",
    "A AS x ; B AS y ; C AS z FILTER x.n = z.n AND y.n = z.n",
    "A AS x ; B AS y ; C AS z FILTER x.k = y.k AND x.n = y.n AND z.k = x.k AND z.n = y.n",
    "A AS x ; B AS y ; C AS z FILTER x.n = y.n AND x.n < z.n",
    "A AS x ; B AS y ; C AS z FILTER x.n < y.n AND y.n <= z.n AND x.n < z.n",
    "A AS x ; B AS y ; C AS z ; A AS w FILTER x.n = w.n AND y.n = z.n AND z.n = w.n",
    "A AS x ; B AS y FILTER x.n != y.n",
    "A AS x ; B AS y FILTER x.k = y.k AND x.n != y.n AND x.x != y.x",
    "A AS x ; B AS y FILTER x.k = y.k AND x.s != y.s",
    "A AS x ; B AS y FILTER x.n BETWEEN y.n AND y.k",
    "A AS x ; B AS y FILTER x.n > y.n AND x.n < y.k AND x.s = y.s",
    "A AS x ; B AS y FILTER x.n > y.n AND x.n <= y.k AND x.s != y.s",
    "A AS x ; B AS y FILTER x.n > y.n AND x.k < y.k",
    "A AS x ; B AS y FILTER x.n >= y.n AND x.x != y.x AND x.s != y.s",
    "A AS x ; B AS y ; C AS z FILTER x.n < y.n AND x.n < z.n",
    "A AS x ; B AS y ; C AS z FILTER x.n < z.n AND x.k = y.k AND y.s != z.s",
    "A AS x ; B AS y ; C AS z FILTER y.n = z.n AND x.n < z.x",
    "A AS x ; B AS y FILTER x.n = y.n AND x.k * y.k > 0",
    "A AS x ; B AS y FILTER x.n >= y.n AND x.x < y.x AND x.n <= y.k",
    "A AS x ; B AS y FILTER x.s = y.s AND x.n < y.n AND x.x != y.x",
    "A AS x ; B AS y FILTER y.n BETWEEN x.n AND x.k",
    "A AS x ; B AS y FILTER y.x > x.x * 2.0",
    "A+ AS x FILTER increasing(x.x)",
    "(A OR B)+ AS x FILTER decreasing(x.n)",
    "A AS x ; B+ AS y FILTER x.n < y.n AND increasing(y.n)",
    "A+ AS x ; B AS y FILTER increasing(x.n) AND x.n < y.n",
    "A+ AS x ; B+ AS y FILTER decreasing(x.n) AND decreasing(y.n) AND x.n > y.n",
    "(A OR B)+ PARTITION BY [k]",
    "(A AS x ; B+ AS y) PARTITION BY [x.n, y.k]",
    "(A AS x ; (B+ PARTITION BY [s]) AS y ; C AS z) PARTITION BY [x.n, y.n, z.k]",
    "(A AS x ; B AS y FILTER x.n < y.n)+",
    "(A AS x ; B AS y ; C AS z FILTER x.n = z.n AND y.n = z.n)+",
    "((A+ PARTITION BY [k]) ; B)+",
    "(A AS x ; B AS y FILTER x.n = y.n) OR (A AS x ; C AS z FILTER x.n < z.n)",
    "A AS x ; (B AS y)? ; C AS z FILTER x.n = y.n AND x.n = z.n AND y.n = z.n",
    "A+ AS x ; (B AS y)? FILTER x.n = y.n",
    "A{2,4} AS x FILTER increasing(x.n)",
    "A ; A ; B",
    "A+ ; A+",
    "A ALL B",
    "A AS x ; B AS y ; C AS z FILTER x.n = y.n AND count(x) = 1",
    "(A OR (A FILTER A[n > 1])) ; B",
    "(A+ PARTITION BY [k])+",
    "(A+ PARTITION BY [k]) ; (A+ PARTITION BY [n])",
    "((A ; B PARTITION BY [k]) ; C) OR (A ; (B ; C PARTITION BY [k]))",
    "((A+ PARTITION BY [k]) OR (B ; A PARTITION BY [n]))+",
    "(A AS x ; B AS y FILTER x.k = y.k) OR (A AS x ; B AS y FILTER x.n = y.n)",
    "(A AS x ; B AS y FILTER x.k != y.k) OR (A AS x ; B AS y FILTER x.n != y.n)",
    "(A AS x ; B AS y FILTER x.n = y.k) OR (A AS x ; B AS y FILTER x.n = y.n AND x.s != y.s)",
    "A AS x ; B AS y FILTER x.n = y.k + 1",
    "A AS x ; B AS y FILTER x.n / 2 = y.k / 2 AND x.n != y.x",
    "A AS x ; B AS y FILTER x.n = y.x",
    "A AS x ; B AS y FILTER x.n != y.n + 1 AND y.n % 2 != x.k",
)
"""Patterns that are chains."""

REFUSED = {
    "A AS x ; B AS y ; C AS z FILTER x.n = z.n": "y would have to carry the key of x",
    "A AS x ; B AS y ; C AS z FILTER x.n < z.n": "y would have to carry the compared value of x",
    "A AS x ; (B AS y)? ; C AS z FILTER x.n = z.n": "y would have to carry the key of x",
    "A+ AS x ; B AS y FILTER x.n < y.n": "every event of x is compared with later ones, not only the last "
    "before them",
    "A AS u ; (B AS v FILTER v.n > u.n)+": "u and v are compared, and other events come between them",
    "(A AS x OR B AS y)+ FILTER x.n = y.n": "every event of x is compared with later ones, not only the last "
    "before them",
    "A : B": "some events have to follow one another directly",
    "A ; NOT(C) ; B": "it forbids an event in between",
    "A AS u ; NOT(B AS v FILTER v.n > u.n) ; C": "it reads an event without marking it",
    "(A ; B) KEEP [A]": "it reads an event without marking it",
    "START(A ; B)": "it depends on which event is the first of the stream",
    "A AS x ; B AS y FILTER x.n < y.x": "it compares an integer with a float",
    "A AS x ; B AS y FILTER x.s < y.s": "it orders strings",
    "A AS x ; B AS y FILTER max(x.n) < y.n": "an aggregate is known only when all its events are present",
}


ONE = EventPredicate(("A",))
A_EVENT = frozenset({"A"})


def test_a_state_that_is_entered_again_is_no_beginning() -> None:
    again = Transition(0, Guard(frozenset({0})), A_EVENT, 0), Transition(0, Guard(frozenset({0})), A_EVENT, 1)
    automaton = CEA(2, frozenset({0}), frozenset({1}), again, (ONE,))
    assert chain_of(automaton, (), SCHEMA) == "a run can begin in a state that others pass through"


def test_an_event_of_any_type_has_no_attributes_to_compare() -> None:
    automaton = CEA(2, frozenset({0}), frozenset({1}), (Transition(0, Guard(), A_EVENT, 1),), (ONE,))
    assert chain_of(automaton, (), SCHEMA) == "its events can be of any type"


MANY = " ; ".join(f"(A AS x{place})?" for place in range(12))


def test_many_optional_parts_have_a_chain() -> None:
    equal = " AND ".join(f"y.k = x{place}.k" for place in range(12))
    found = chain(f"B AS y ; {MANY} FILTER {equal}")
    assert isinstance(found, Chain)
    assert len(found.states) == 13


def test_too_many_states_are_refused() -> None:
    found = chain("B AS y ; A{1001} AS x FILTER x.k = y.k")
    assert found == "its chain automaton has more than 1,000 states"


def chain(text: str, schema: Schema = SCHEMA) -> Chain | str:
    compiled = compile_pattern(parse_pattern(text))
    return chain_of(compiled.automaton, compiled.residuals, schema)


def chain_for(text: str, schema: Schema = SCHEMA) -> Chain:
    found = chain(text, schema)
    assert isinstance(found, Chain), found
    return found


@pytest.mark.parametrize("text", CHAINS)
@given(events=streams(max_size=8))
def test_a_chain_finds_what_the_reference_says(text: str, events: list[Event]) -> None:
    found = chain_for(text)
    assert found_by(found, events) == evaluate_pattern(parse_pattern(text), events)
    assert set(chain_runs(found, events).values()) <= {1}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_chain_says_why(text: str) -> None:
    assert chain(text) == REFUSED[text]


# --------------------------------------------------------------------------------------- at random


@st.composite
def chained(draw: st.DrawFn) -> str:
    """Sequences of two to four parts, filtered by comparisons that are mostly between neighbours."""
    count = draw(st.integers(2, 4))
    names = "xyzw"[:count]
    shapes = st.sampled_from(["{0} AS {1}", "{0} AS {1}", "{0}+ AS {1}", "(A OR B) AS {1}", "({0} AS {1})?"])
    parts = [draw(shapes).format(draw(st.sampled_from("ABC")), name) for name in names]
    parts[0] = parts[0].replace("?", "")
    filters = []
    for place in range(count - 1):
        far = draw(st.integers(0, 4)) == 0
        other = draw(st.sampled_from(names)) if far else names[place + 1]
        attribute = draw(st.sampled_from(["k", "k", "n", "x", "s"]))
        operators = ["="] if attribute == "s" else ["=", "=", "=", "!=", "<", "<=", ">", ">="]
        chosen = draw(st.lists(st.sampled_from(operators), min_size=1, max_size=2, unique=True))
        filters += [f"{names[place]}.{attribute} {each} {other}.{attribute}" for each in chosen]
    if draw(st.integers(0, 3)) == 0:
        filters.append(f"increasing({draw(st.sampled_from(names))}.n)")
    whole = f"({' ; '.join(parts)}) FILTER {' AND '.join(filters)}"
    around = draw(
        st.sampled_from(["{0}", "{0}", "({0})+", "({0}) OR C", "({0}) PARTITION BY [k]", "C ; ({0})"])
    )
    return around.format(whole)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(text=chained(), events=streams(max_size=7))
def test_random_chains_find_what_the_reference_says(text: str, events: list[Event]) -> None:
    found = chain(text)
    assume(isinstance(found, Chain))
    _agrees(found, parse_pattern(text), events)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(pattern=full_patterns().filter(is_valid), events=streams(max_size=6))
def test_random_patterns_that_are_chains_find_what_the_reference_says(
    pattern: Pattern, events: list[Event]
) -> None:
    compiled = compile_pattern(pattern)
    found = chain_of(compiled.automaton, compiled.residuals, SCHEMA)
    assume(isinstance(found, Chain))
    _agrees(found, pattern, events)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(text=correlated(), windowed=st.booleans(), events=streams(max_size=6))
def test_random_cases_are_told_apart(text: str, windowed: bool, events: list[Event]) -> None:
    pattern = in_ticks(parse_pattern(text), SCHEMA)
    compiled = compile_pattern(in_cases(positive(pattern)))
    found = chain_of(compiled.automaton, compiled.residuals, SCHEMA, windowed=windowed)
    assume(isinstance(found, Chain))
    _agrees(found, pattern, events)


def _agrees(found: Chain | str, pattern: Pattern, events: list[Event]) -> None:
    assert isinstance(found, Chain)
    assert found.repeats or set(chain_runs(found, events).values()) <= {1}
    assume(all(map(can_be_checked, found.residuals)))
    assert found_by(found, events) == evaluate_pattern(pattern, events)


# -------------------------------------------------------------------------------------- the model


def test_a_second_order_between_neighbours_stays_residual() -> None:
    found = chain_for("A AS x ; B AS y FILTER x.k = y.k AND x.x != y.x AND x.n < y.n AND x.x >= y.x")
    last = found.transitions[-1]
    assert (last.left, last.right) == ((Attribute("k"),), (Attribute("k"),))
    assert last.order == Neighbours("<", Attribute("n"), Attribute("n"))
    assert found.reasons == (SECOND_ORDER, SECOND_ORDER)
    conditions = [each.condition for each in found.residuals if isinstance(each.condition, Node)]
    assert list(map(str, conditions)) == ["x.x != y.x", "x.x >= y.x"]


def test_a_range_of_the_event_before_is_one_order() -> None:
    found = chain_for("A AS x ; B AS y FILTER x.n BETWEEN y.n AND y.k AND x.x < y.x")
    last = found.transitions[-1]
    assert last.order == Neighbours(">=", Attribute("n"), Attribute("n"))
    assert last.upper == Neighbours("<=", Attribute("n"), Attribute("k"))
    assert found.reasons == (SECOND_ORDER,)
    assert str(found).endswith("x → y  on B: mark B, y, where before.n >= n and before.n <= k")


def test_the_ends_of_a_range_may_be_outside_of_it() -> None:
    found = chain_for("A AS x ; B AS y FILTER x.n < y.k AND x.x != y.x AND x.n > y.n")
    last = found.transitions[-1]
    assert last.order == Neighbours(">", Attribute("n"), Attribute("n"))
    assert last.upper == Neighbours("<", Attribute("n"), Attribute("k"))
    assert found.reasons == (SECOND_ORDER,)


def cases(text: str, schema: Schema = SCHEMA, *, windowed: bool = False) -> Chain | str:
    compiled = compile_pattern(in_cases(positive(parse_pattern(text))))
    return chain_of(compiled.automaton, compiled.residuals, schema, windowed=windowed)


WIDE = Schema(types={"A": {f"k{number}": Kind.INT for number in range(40)}}, closed=True)


def test_alternatives_of_one_key_need_no_disequality() -> None:
    """Which of several attributes equals it is told apart by the event at hand alone."""
    found = cases("A AS x ; A AS y FILTER " + " OR ".join(f"x.k0 = y.k{each}" for each in range(1, 21)), WIDE)
    assert isinstance(found, Chain)
    assert not found.repeats
    assert len(found.transitions) == 21
    assert not any(each.different for each in found.transitions)


def test_more_disequalities_than_an_index_has_stay_residual() -> None:
    differ = " AND ".join(f"x.k{each} != y.k{each}" for each in range(12))
    found = chain(f"A AS x ; A AS y FILTER {differ}", WIDE)
    assert isinstance(found, Chain)
    assert found.reasons == (MORE_DIFFERENT,) * 8


def test_alternatives_that_no_index_tells_apart_are_found_several_times() -> None:
    keys = [f"x.k{each} = y.k{each}" for each in range(6)]
    found = cases(f"A AS x ; A AS y FILTER {' OR '.join(keys)}", WIDE)
    assert isinstance(found, Chain)
    assert found.repeats == (
        "two runs can mark the same events, because an event A, x can be read in two ways; made "
        "deterministic, its chain automaton compares the same neighbours by 5 disequalities, and an index "
        "has 4 at most"
    )
    under_window = cases(f"A AS x ; A AS y FILTER {' OR '.join(keys[:3])}", WIDE, windowed=True)
    assert isinstance(under_window, Chain)
    assert under_window.repeats.endswith(
        "by 2 disequalities, and an index has 1 at most under a window or beside an order"
    )
    assert isinstance(cases(f"(A AS x ; A AS y FILTER {' OR '.join(keys)})+", WIDE), str)


def test_too_many_cases_name_the_part_that_grows() -> None:
    found = cases(" ; ".join(f"(A+ PARTITION BY [k{each}])" for each in range(10)), WIDE)
    assert isinstance(found, str)
    assert found.startswith(
        "made deterministic, its chain automaton has more than 256 cases; what grows is (A+ PART"
    )
    assert found.endswith(": write fewer alternatives in one query")


def test_an_or_that_makes_too_many_patterns_stays_residual() -> None:
    ors = [f"(x.k{each} = y.k{each} OR x.k{each} = y.k0 OR x.k0 = y.k{each})" for each in range(1, 8)]
    found = cases(f"A AS x ; A AS y FILTER {' AND '.join(ors)}", WIDE)
    assert isinstance(found, Chain)
    assert set(found.reasons) == {"it is more than a comparison of two variables"}


def test_filters_that_exclude_one_another_have_no_chain() -> None:
    assert chain("A AS x ; B AS y FILTER x.k = y.k AND x.k != y.k") == "no events pass all its filters"


def test_an_integer_differs_from_a_float_in_lists_only() -> None:
    text = "A AS x ; B AS y FILTER x.k = y.k AND x.n != y.x"
    assert chain_for(text).transitions[-1].different
    found = cases(text, windowed=True)
    assert isinstance(found, Chain)
    assert found.reasons == (MIXED,)


@pytest.mark.parametrize(
    "text",
    [
        "A AS x ; B AS y ; C FILTER 1 = 1 OR 2 = 1",
        "A AS x ; (B AS y ; C FILTER x.k = 1 OR x.n = 2)",
        "(A AS x)? ; (B AS y ; C FILTER NOT (x.k = 1 AND x.n = 2))",
    ],
)
def test_an_or_that_is_about_no_part_of_a_sequence_is_one_about_the_whole(text: str) -> None:
    cases = in_cases(positive(parse_pattern(text)))
    events = [Event(name, {"k": place % 2, "n": place % 3}) for place, name in enumerate("ABCABC")]
    assert evaluate_pattern(cases, events) == evaluate_pattern(parse_pattern(text), events)


def test_only_the_parts_that_are_compared_become_several() -> None:
    found = in_cases(parse_pattern("A AS x ; B AS y ; B AS z ; C FILTER y.k = z.k OR y.n = z.n"))
    both = "(B AS y ; B AS z FILTER y.k = z.k) OR (B AS y ; B AS z FILTER y.n = z.n)"
    assert str(found) == f"A AS x ; ({both}) ; C"


@pytest.mark.parametrize(
    ("condition", "moved"),
    [
        ("NOT x.k = y.k", "x.k != y.k"),
        ("NOT (x.k < y.k AND NOT x.n = y.n)", "x.k >= y.k OR x.n = y.n"),
        ("NOT (x.k BETWEEN y.k AND y.n)", "x.k < y.k OR x.k > y.n"),
        ("NOT (x.k = y.k OR x[n > 0])", "x.k != y.k AND NOT x[n > 0]"),
        ("NOT z.k = y.k", "NOT z.k = y.k"),
    ],
)
def test_a_negation_becomes_the_opposite_comparison(condition: str, moved: str) -> None:
    """But not that of z, of which there may be several: one that differs is enough."""
    found = positive(parse_pattern(f"A AS x ; B AS y ; C+ AS z FILTER {condition}"))
    assert found == parse_pattern(f"A AS x ; B AS y ; C+ AS z FILTER {moved}")


def test_in_a_window_each_disequality_is_an_order() -> None:
    compiled = compile_pattern(parse_pattern("A AS x ; B AS y FILTER x.s != y.s AND x.n != y.n"))
    found = chain_of(compiled.automaton, compiled.residuals, SCHEMA, windowed=True)
    assert isinstance(found, Chain)
    assert found.transitions[-1].different == (Neighbours("!=", Attribute("s"), Attribute("s")),)
    assert found.reasons == (SECOND_ORDER,)


def test_what_is_not_between_neighbours_stays_residual_beside_what_is() -> None:
    found = chain_for("A AS x ; B AS y ; C AS z FILTER x.n < z.n AND x.k = y.k AND y.k = z.k")
    assert all(each.left for each in found.transitions[1:])
    assert found.reasons == ("y would have to carry the compared value of x",)
    compared = chain_for("A AS x ; B AS y ; C AS z FILTER x.n < y.n AND x.n < z.n")
    assert [each.order is None for each in compared.transitions] == [True, False, True]
    assert compared.reasons == ("x and z are compared, and other events come between them",)


def test_equalities_that_no_event_carries_are_left_out_alone() -> None:
    found = chain_for("A AS x ; B AS y ; C AS z ; A AS w FILTER y.n = w.n AND x.n = y.n AND z.s = w.s")
    assert [each.left for each in found.transitions] == [(), (Attribute("n"),), (), (Attribute("s"),)]
    assert found.reasons == ("z would have to carry the key of y",)


def test_a_range_that_the_event_before_gives_is_two_orders() -> None:
    found = chain_for("A AS x ; B AS y FILTER y.n BETWEEN x.n AND x.k")
    assert found.transitions[-1].upper is None
    assert found.reasons == (SECOND_ORDER,)


def test_disequalities_have_an_index_of_their_own() -> None:
    found = chain_for("A AS x ; B AS y FILTER x.k = y.k AND x.n != y.n AND x.x != y.x")
    assert [str(each.left) for each in found.transitions[-1].different] == [
        str(Attribute("n")),
        str(Attribute("x")),
    ]
    assert not found.residuals
    assert not found.ordered


def test_what_registers_cannot_say_stays_residual() -> None:
    found = chain_for("A AS x ; B+ AS y FILTER x.k = y.k AND max(y.n) > x.n")
    assert found.reasons == ("an aggregate is known only when all its events are present",)


def test_residuals_of_a_place_keep_its_hidden_labels() -> None:
    found = chain_for("((A AS x ; B+ AS y) FILTER x.k = y.k AND max(y.n) > x.n)+")
    (residual,) = found.residuals
    labels = {label for each in found.transitions for label in each.hidden}
    assert {key for _, key in residual.bindings} <= labels
    assert all(not each.hidden for each in chain_for("(A AS x ; B AS y FILTER x.k = y.k)+").transitions)


def test_a_chain_prints_its_states_and_comparisons() -> None:
    found = chain_for("A AS x ; B+ AS y FILTER x.k = y.k AND x.n < y.n AND increasing(y.n)")
    assert str(found) == (
        "2 states: x, y; a run accepts in y\n"
        "begin → x  on A: mark A, x\n"
        "x → y  on B: mark B, y, where before.k = k and before.n < n\n"
        "y → y  on B: mark B, y, where before.k = k and before.n < n"
    )


@pytest.mark.parametrize("text", [each for each in CHAINS if "=" in each or "PARTITION" in each])
@given(events=streams(max_size=6))
def test_equalities_alone_are_a_parallelised_automaton(text: str, events: list[Event]) -> None:
    found = chain_for(text)
    joined = [
        frozenset((label, position) for position, label in run.marks)
        for run in accepting_runs(as_pcea(found), events)
    ]
    unordered = replace(
        found,
        transitions=tuple(replace(each, comparisons=each.by("=")) for each in found.transitions),
    )
    assert Counter(joined) == chain_runs(unordered, events)


N = Attribute("n")
BEGIN = ChainTransition(None, 0, (), frozenset({"A"}), 0)


@pytest.mark.parametrize(
    ("transition", "message"),
    [
        (replace(BEGIN, target=1), "state 1 is not one of 0 to 0, in transition 0"),
        (replace(BEGIN, source=7), "state 7 is not one of 0 to 0, in transition 0"),
        (replace(BEGIN, predicate=1), "bit 1 has no predicate, in transition 0"),
        (replace(BEGIN, labels=frozenset()), "an event is read and not marked, in transition 0"),
        (
            replace(BEGIN, comparisons=(Neighbours("=", N, N),)),
            "the first event is compared with one before it, in transition 0",
        ),
    ],
)
def test_a_chain_is_checked_at_construction(transition: ChainTransition, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Chain(("a",), frozenset({0}), (transition,), (ONE,))


# -------------------------------------------------------------------------------------- the paper


def test_examples_1_and_2_compare_nothing() -> None:
    assert marked(chain_for(PAIRS, TWEETS)) == {(1, 2), (1, 3), (1, 4), (1, 6), (5, 6)}
    debates = chain_for(DEBATES, TWEETS)
    assert not debates.compares
    assert {(1, 2, 4, 8), (1, 3, 4, 6, 8), (5, 6, 8)} <= marked(debates)


def test_example_3_joins_a_reply_with_its_tweet() -> None:
    found = chain_for(f"({PAIRS}) PARTITION BY [X.id, Y.tweet_id]", TWEETS)
    assert marked(found) == {(1, 2), (1, 4), (5, 6)}


def test_example_4_nests_one_partition_in_another() -> None:
    text = (
        f"(T AS X ; (R+ PARTITION BY [user_id]) AS Y ; R AS Z {FILTERS})"
        " PARTITION BY [X.id, Y.tweet_id, Z.tweet_id]"
    )
    assert marked(chain_for(text, TWEETS)) == {(1, 2, 8), (1, 4, 8), (1, 2, 4, 8)}


@pytest.mark.parametrize("text", ["b.k IS NULL", "b.k IS NOT NULL", "coalesce(b.k > 3, FALSE)"])
def test_a_condition_on_the_event_before_is_said_as_it_is(text: str) -> None:
    assert str(asked_before(parse_condition(text)).said("b")) == text


def test_example_6_follows_replies_to_replies() -> None:
    """Figure 2, of its shape: PART-BY cannot say it, a repeated pair of neighbours can."""
    found = chain_for("T AS X ; R AS Y ; R AS Z FILTER X.id = Y.tweet_id AND Y.id = Z.tweet_id", TWEETS)
    assert [(each.left, each.right) for each in found.transitions] == [
        ((), ()),
        ((Attribute("id"),), (Attribute("tweet_id"),)),
        ((Attribute("id"),), (Attribute("tweet_id"),)),
    ]


def marked(found: Chain) -> set[tuple[int, ...]]:
    """The marked events, counted from 1 as the paper does."""
    return {tuple(sorted(at + 1 for at in each.support)) for each in found_by(found, TWITTER)}
