"""The examples of "A Second-Order Approach to Complex Event Recognition" (SO-CEL), on its tables."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

import estero
from estero.reference.queries import ComplexEvent, Event
from papers.conftest import Evaluate, table
from reference.notation import shown, stream

FIGURE_1 = stream("T H H T H T H H T H", value=[-2, 30, 20, -1, 27, 2, 45, 50, -2, 65])
"""Temperatures and humidities on a farm."""

FREEZING = "T ; H+ AS HS ; H AS HH FILTER T[value < 0] AND increasing(HS.value) AND HH[value >= 60]"
"""φ of section 2: after a frost, humidity rises until it is over 60%."""


def at(complex_events: set[ComplexEvent], end: int) -> list[str]:
    return shown(one for one in complex_events if one.end == end)


def test_example_3_1_evaluates_each_filter_by_itself(evaluate: Evaluate) -> None:
    cold = evaluate("T FILTER T[value < 0]", FIGURE_1)
    assert at(cold, 3) == ["[3, 3] {T: [3]}"]
    humid = evaluate("H AS HH FILTER HH[value >= 60]", FIGURE_1)
    assert shown(humid) == ["[9, 9] {H: [9], HH: [9]}"]
    rising = shown(evaluate("H+ AS HS FILTER increasing(HS.value)", FIGURE_1))
    assert {"[4, 7] {H: [4, 6, 7], HS: [4, 6, 7]}", "[2, 4] {H: [2, 4], HS: [2, 4]}"} <= set(rising)
    assert "[1, 4] {H: [1, 4], HS: [1, 4]}" not in rising


def test_example_3_1_finds_the_freezing_plantation(evaluate: Evaluate) -> None:
    answer = at(evaluate(FREEZING, FIGURE_1), 9)
    assert "[3, 9] {H: [4, 6, 7, 9], HH: [9], HS: [4, 6, 7], T: [3]}" in answer
    assert "[0, 9] {H: [2, 4, 6, 7, 9], HH: [9], HS: [2, 4, 6, 7], T: [0]}" in answer


def test_the_freezing_plantation_has_these_answers_and_no_others(evaluate: Evaluate) -> None:
    humidity = {1: 30, 2: 20, 4: 27, 6: 45, 7: 50}
    expected = {
        (cold, rising)
        for cold in (0, 3, 8)
        for size in range(1, len(humidity) + 1)
        for rising in combinations(humidity, size)
        if rising[0] > cold and all(humidity[one] < humidity[next_] for one, next_ in pairwise(rising))
    }
    answer = evaluate(FREEZING, FIGURE_1)
    labels = [dict(one.labels) for one in answer]
    assert {(min(each["T"]), tuple(sorted(each["HS"]))) for each in labels} == expected
    assert len(answer) == len(expected) == 26
    assert {one.end for one in answer} == {9}


def test_example_3_2_renames_instead_of_adding_labels(evaluate: Evaluate) -> None:
    renamed = (
        "T ; (H+)[H -> HS] ; H[H -> HH] FILTER T[value < 0] AND increasing(HS.value) AND HH[value >= 60]"
    )
    answer = evaluate(renamed, FIGURE_1)
    assert "[3, 9] {HH: [9], HS: [4, 6, 7], T: [3]}" in shown(answer)
    assert len(answer) == 26


FARM = stream(
    "H T T T H H T H",
    id=["p", "p", "q", "p", "q", "p", "p", "p"],
    hum=[25, None, None, None, 70, 65, None, 61],
)
"""Humidities and temperatures at two places, p and q."""

FIRST_ORDER = (
    "H AS x ; (T AS y FILTER y.id = x.id)+ ; H AS z FILTER x.hum < 30 AND z.hum > 60 AND x.id = z.id"
)
SECOND_ORDER = "H AS X ; T+ AS Y ; H AS Z FILTER X.hum < 30 AND Z.hum > 60 AND X.id = Y.id AND X.id = Z.id"


@pytest.mark.parametrize("text", [FIRST_ORDER, SECOND_ORDER], ids=["4.1", "4.2"])
def test_examples_4_1_and_4_2_follow_the_temperature_at_one_place(evaluate: Evaluate, text: str) -> None:
    answer = evaluate(text, FARM)
    temperatures = {5: [1, 3], 7: [1, 3, 6]}
    expected = {
        frozenset({0, *chosen, end})
        for end, positions in temperatures.items()
        for size in range(1, len(positions) + 1)
        for chosen in combinations(positions, size)
    }
    assert {one.support for one in answer} == expected
    assert len(answer) == len(expected) == 10


def test_section_6_contiguous_iteration_is_contiguous_between_rounds_only(evaluate: Evaluate) -> None:
    rounds = "(R ; S):+"
    two = "[0, 4] {R: [0, 3], S: [2, 4]}"
    assert two in shown(evaluate(rounds, stream("R X S R S")))
    assert "[0, 5] {R: [0, 4], S: [2, 5]}" not in shown(evaluate(rounds, stream("R X S X R S")))
    assert shown(evaluate("R : T", stream("R X T R T"))) == ["[3, 4] {R: [3], T: [4]}"]


COLD = "((H AS X FILTER X[value < 40]) OR (T FILTER T[value < 0])):+ : (H AS Y FILTER Y[value > 45]) KEEP [H]"
COLD_PERIODS = stream("H T H T H H", value=[30, -1, 35, -2, 50, 60])


def test_example_6_1_projects_to_the_humidities_of_an_unbroken_cold_period(evaluate: Evaluate) -> None:
    assert shown(evaluate(COLD, COLD_PERIODS)) == [
        "[0, 4] {H: [0, 2, 4]}",
        "[1, 4] {H: [2, 4]}",
        "[2, 4] {H: [2, 4]}",
        "[3, 4] {H: [4]}",
    ]


def test_outputs_of_example_6_1_are_told_apart_by_their_marks() -> None:
    """The paper's complex events have no start: its four runs make three outputs."""
    answer = estero.query(f"SELECT * WHERE {COLD}").run(table(COLD_PERIODS), type="type", distinct="marks")
    found = [(each.start, each.end, each.positions["H"]) for each in answer]
    assert sorted(found) == [(0, 4, (0, 2, 4)), (2, 4, (2, 4)), (4, 4, (4,))]
    assert answer.count() == 3


def test_the_automaton_of_figure_2_has_an_output_for_each_set_of_marks() -> None:
    """Its runs read the stream from the beginning; begun anywhere, they mark the same again and again."""
    steps = [
        ("q1", "*", (), "q1"),
        ("q1", "H", "H", "q2"),
        ("q2", "*", (), "q2"),
        ("q2", "T", (), "q3"),
    ]
    found = {}
    for how in ({}, {"anchored": True}, {"distinct": "marks"}):
        query = estero.automaton(steps, initial="q1", final="q3", types=["H", "T"], **how)
        answer = query.run(table(FIGURE_1), type="type")
        found[str(how)] = (answer.count(), {(each.end, each.positions["H"]) for each in answer})
    assert [number for number, _ in found.values()] == [40, 10, 10]
    assert len({frozenset(outputs) for _, outputs in found.values()}) == 1


def test_theorem_4_4_compares_all_pairs_of_two_sets(evaluate: Evaluate) -> None:
    """Of each R with each T, which no formula with variables for single events says."""
    events = stream("R R T T", v=[1, 2, 2, 3])
    text = "(R+ AS x ; T+ AS y) FILTER x.v != y.v"
    supports = {tuple(sorted(one.support)) for one in evaluate(text, events)}
    assert supports == {(0, 2), (0, 3), (0, 2, 3), (1, 3), (0, 1, 3)}


ROUNDS = "((A AS x ; E AS y) FILTER x.a = y.a)"
"""The formula of Theorem 6.5, without its iteration."""


def test_theorem_6_5_contiguous_rounds_may_have_events_inside_that_strict_forbids(evaluate: Evaluate) -> None:
    events = stream("A L E A L E A L E", a=[1, 1, 1, 2, 2, 2, 3, 3, 3])
    rounds = {tuple(sorted(one.support)) for one in evaluate(f"{ROUNDS}:+", events)}
    assert {(0, 2), (0, 2, 3, 5), (0, 2, 3, 5, 6, 8)} <= rounds
    assert (0, 2, 6, 8) not in rounds
    assert (0, 2, 6, 8) in {tuple(sorted(one.support)) for one in evaluate(f"{ROUNDS}+", events)}
    assert evaluate(f"STRICT({ROUNDS}+)", events) == set()


def test_theorem_6_5_strict_says_what_strict_sequencing_says(evaluate: Evaluate) -> None:
    events = stream("R X T R T", v=[1, 1, 1, 2, 2])
    same = ("R AS x : T AS y FILTER x.v = y.v", "STRICT(R AS x ; T AS y) FILTER x.v = y.v")
    assert evaluate(same[0], events) == evaluate(same[1], events) != set()


SUMS = stream("R S T S T S T", v=[5, 2, 3, 1, 4, 4, 4])
"""One total, and pairs of which some sum to it."""


def test_theorem_4_6_compares_each_round_with_a_variable_from_outside(evaluate: Evaluate) -> None:
    """FO-CEL's ``x = y + z``: no formula of SO-CEL with universal extensions of such predicates says it."""
    rebound = "R AS x ; (S AS y ; T AS z FILTER x.v = y.v + z.v)+"
    supports = {tuple(sorted(one.support)) for one in evaluate(rebound, SUMS)}
    assert supports == {(0, 1, 2), (0, 3, 4), (0, 3, 6), (0, 1, 2, 3, 4), (0, 1, 2, 3, 6)}


def test_theorem_4_6_outside_of_the_iteration_all_pairs_have_to_sum(evaluate: Evaluate) -> None:
    at_once = "R AS x ; (S AS y ; T AS z)+ FILTER x.v = y.v + z.v"
    supports = {tuple(sorted(one.support)) for one in evaluate(at_once, SUMS)}
    assert supports == {(0, 1, 2), (0, 3, 4), (0, 3, 6)}


def test_the_star_property_of_so_cel(evaluate: Evaluate) -> None:
    """Section 5: events that no label marks may be changed, added or removed."""
    one = "[3, 9] {H: [4, 6, 7, 9], HH: [9], HS: [4, 6, 7], T: [3]}"
    changed = [
        event if position in {3, 4, 6, 7, 9} else Event("X", {}) for position, event in enumerate(FIGURE_1)
    ]
    assert one in shown(evaluate(FREEZING, FIGURE_1))
    assert one in shown(evaluate(FREEZING, changed))


def test_what_the_paper_means_otherwise(evaluate: Evaluate) -> None:
    """docs/semantics.md, "Where the papers and engines differ": found here, and not there."""
    events = stream("B A C B", v=[None, 1, None, 2])
    assert shown(evaluate("A ; C UNLESS B", events)) == ["[1, 2] {A: [1], C: [2]}"]
    assert shown(evaluate("(A ; C KEEP [A]) : B", events)) == ["[1, 3] {A: [1], B: [3]}"]
    assert shown(evaluate("A ; START(C)", events)) == []
    assert shown(evaluate("A ; C FILTER A.v != C.v", events)) == []
