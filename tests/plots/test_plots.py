"""Pictures: what is drawn, how much of it, and that the same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from matplotlib.figure import Figure

from estero.automata.cea import CEA, EventPredicate, Guard, Transition
from estero.automata.residual import Hidden
from estero.plots import Picture, plot_answer
from estero.plots.automaton import drawn_alone
from estero.plots.layout import columns, layout

NINE = datetime(2024, 5, 1, 9, tzinfo=UTC)


class Marked:
    """A complex event as pictures read it: a at the first position, b at the others; all of them are R."""

    labels = ("R", "a", "b")

    def __init__(
        self, positions: list[int], *, key: str = "", timed: bool = True, shows_time: bool = True
    ) -> None:
        self.start, self.end = positions[0], positions[-1]
        self.partition = {"name": key} if key else {}
        self._timed = timed
        self._shows_time = shows_time
        self._positions = positions

    def _time(self, position: int) -> datetime:
        return NINE + timedelta(minutes=position)

    @property
    def start_time(self) -> datetime | None:
        return self._time(self.start) if self._timed else None

    @property
    def end_time(self) -> datetime | None:
        return self._time(self.end) if self._timed else None

    @property
    def positions(self) -> dict[str, list[int]]:
        return {"R": self._positions, "a": self._positions[:1], "b": self._positions[1:]}

    def __getitem__(self, label: str) -> list[dict[str, Any]]:
        time = {"ts": self._time} if self._shows_time else {}
        return [
            {name: of(p) for name, of in time.items()} | {"price": 0.5, "position": p}
            for p in self.positions[label]
        ]


class Some(list[Marked]):
    def count(self, *_: object) -> int:
        return len(self)


def many(n: int, **options: Any) -> Some:
    return Some(Marked([10 * i, 10 * i + 3, 10 * i + 14], **options) for i in range(n))


def drawn(figure: Figure) -> dict[str, list[tuple[float, float]]]:
    """The points of each label, by the legend's names; bars are under the empty name."""
    points: dict[str, list[tuple[float, float]]] = {}
    for line in figure.axes[0].get_lines():
        name = str(line.get_label())
        shown = "" if name.startswith("_") else name
        points.setdefault(shown, []).extend(map(tuple, line.get_xydata().tolist()))  # type: ignore[union-attr]
    return points


def caption(picture: Picture) -> str:
    return picture.figure.axes[0].get_title(loc="left")


def lines(automaton: CEA) -> list[ET.Element]:
    return list(ET.fromstring(drawn_alone(automaton)).iter("{http://www.w3.org/2000/svg}text"))


def texts(automaton: CEA) -> set[str]:
    return {line.text or "" for line in lines(automaton)}


def test_each_complex_event_is_a_bar_with_its_events_under_the_most_specific_label() -> None:
    points = drawn(plot_answer(many(2), axis="position").figure)
    assert points == {
        "": [(0, 0), (14, 0), (10, 1), (24, 1)],
        "a": [(0, 0), (10, 1)],
        "b": [(3, 0), (14, 0), (13, 1), (24, 1)],
    }


def test_complex_events_that_do_not_overlap_share_a_lane() -> None:
    answer = Some([Marked([0, 5]), Marked([20, 25]), Marked([3, 22])])
    assert drawn(plot_answer(answer, axis="position").figure)["a"] == [(0, 0), (3, 1), (20, 0)]


def test_each_partition_has_lanes_of_its_own_and_its_name_beside_them() -> None:
    figure = plot_answer(Some([Marked([0, 5], key="INTC"), Marked([20, 25], key="QQQ")])).figure
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["INTC", "QQQ"]
    assert [y for _, y in drawn(figure)["a"]] == [0, 1]


def test_time_is_the_axis_where_every_event_has_one() -> None:
    day = NINE.timestamp() / 86400
    assert drawn(plot_answer(many(1)).figure)["b"][0][0] == pytest.approx(day + 3 / 1440)
    only_ends = Some([Marked([0, 5], shows_time=False)])
    assert drawn(plot_answer(only_ends).figure)["b"][0][0] == pytest.approx(day + 5 / 1440)


@pytest.mark.parametrize("options", [{"timed": False}, {"shows_time": False}])
def test_without_all_times_the_axis_is_the_position(options: dict[str, bool]) -> None:
    picture = plot_answer(many(3, **options))
    assert picture.figure.axes[0].get_xlabel() == "position"
    with pytest.raises(ValueError, match="the time of some events is not known: select the time column"):
        plot_answer(many(3, **options), axis="time")


def test_an_unknown_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="axis is 'time' or 'position', not 'x'"):
        plot_answer(many(1), axis="x")


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (0, "No complex events"),
        (1, "1 complex event"),
        (200, "200 complex events"),
        (1234, "The first 200 complex events; 1,034 more not shown"),
    ],
)
def test_the_caption_says_how_many_are_drawn_and_how_many_are_not(n: int, said: str) -> None:
    assert caption(plot_answer(many(n))) == said
    assert caption(plot_answer(many(n), title="Trades")) == f"Trades\n{said}"


def test_a_complex_event_of_one_event_is_drawn() -> None:
    picture = plot_answer(Some([Marked([7])]), axis="position")
    assert drawn(picture.figure)["a"] == [(7, 0)]
    assert picture.svg().startswith("<?xml")


EVENTS = tuple(EventPredicate((name,)) for name in ("SELL", "BUY", "a_type_with_a_name_that_is_too_long"))


def cea(*arcs: tuple[int, Iterable[int], Iterable[str], int], states: int) -> CEA:
    transitions = tuple(
        Transition(source, Guard(frozenset(present)), frozenset(labels), target)
        for source, present, labels, target in arcs
    )
    return CEA(states, frozenset({0}), frozenset({states - 1}), transitions, EVENTS)


SELL_BUY = cea((0, [0], ["SELL", "a"], 1), (1, [], [], 1), (1, [1], ["BUY", "b"], 2), states=3)


def test_arcs_show_what_an_event_must_be_and_its_labels() -> None:
    assert texts(SELL_BUY) == {
        "0",
        "1",
        "2",
        "SELL",
        "• SELL, a",
        "any event",
        "BUY",
        "• BUY, b",
    }


def test_an_arc_of_several_predicates_joins_them() -> None:
    both = Transition(0, Guard(frozenset({0}), frozenset({1})), frozenset(), 1)
    shown = texts(CEA(2, frozenset({0}), frozenset({1}), (both,), EVENTS))
    assert "SELL ∧ ¬ BUY" in shown


def test_a_type_is_not_shown_again_under_the_name_of_its_stream() -> None:
    arc = Transition(0, Guard(frozenset({0})), frozenset({"SELL"}), 1)
    predicates = (EventPredicate(("SELL", "S>SELL", "S>BUY")),)
    shown = texts(CEA(2, frozenset({0}), frozenset({1}), (arc,), predicates))
    assert "SELL | S>BUY" in shown


def test_a_long_predicate_is_named_on_the_arc_and_spelled_out_below() -> None:
    shown = texts(cea((0, [2], ["x"], 1), states=2))
    assert {"p2", "p2  a_type_with_a_name_that_is_too_long"} <= shown


def test_the_same_input_gives_the_same_svg_without_a_date() -> None:
    first = plot_answer(many(30)).svg()
    assert first == plot_answer(many(30)).svg() == plot_answer(many(30))._repr_svg_()
    assert "<dc:date>" not in first
    assert drawn_alone(SELL_BUY) == drawn_alone(SELL_BUY)


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_a_picture_is_saved_by_its_suffix(tmp_path: Path, suffix: str) -> None:
    plot_answer(many(2)).save(tmp_path / f"x.{suffix}")
    assert (tmp_path / f"x.{suffix}").stat().st_size > 1000


def test_columns_follow_the_longest_way_and_arcs_back_do_not_count() -> None:
    arcs = [(0, 1), (1, 2), (0, 2), (2, 1), (2, 3), (1, 1), (3, 0)]
    assert columns(4, [0], arcs) == [0, 1, 2, 3]


def test_arcs_over_several_columns_go_around_the_states_between() -> None:
    arcs = [(0, 1), (1, 2), (2, 3), (0, 2), (0, 3), (3, 0)]
    places = layout([0, 1, 2, 3], arcs, [0, 2, 4, 6])
    for (source, target), way in places.ways.items():
        assert (way[0], way[-1]) == (places.states[source], places.states[target])
        assert all(abs(x1 - x0) == 2 for (x0, _), (x1, _) in pairwise(way))
        for bend in way[1:-1]:
            assert all(x != bend[0] or abs(y - bend[1]) > 1 for x, y in places.states.values())


def test_states_of_one_column_stand_apart_and_parallel_arcs_do_not_cross() -> None:
    places = layout([0, 1, 1, 1, 2, 2, 2], [(0, 1), (0, 2), (0, 3), (1, 6), (2, 5), (3, 4)], [0, 2, 4])
    heights = [places.states[state][1] for state in range(7)]
    assert sorted([1, 2, 3], key=heights.__getitem__) == sorted(
        [1, 2, 3], key=lambda state: heights[7 - state]
    )
    for column in ([1, 2, 3], [4, 5, 6]):
        ordered = sorted(heights[state] for state in column)
        assert all(b - a >= 1.4 - 1e-9 for a, b in pairwise(ordered))


def test_labels_of_an_automaton_do_not_cover_each_other() -> None:
    a, b = frozenset({"SELL", "a"}), frozenset({"BUY", "b"})
    steps = (
        Transition(0, Guard(frozenset({0})), a, 1),
        Transition(1, Guard(frozenset({1})), b, 2),
        Transition(2, Guard(frozenset({0})), a, 1),
        Transition(2, Guard(), frozenset(), 2),
        Transition(1, Guard(frozenset({1})), b, 3),
        Transition(3, Guard(frozenset({0})), a, 4),
    )
    automaton = CEA(
        5,
        frozenset({0}),
        frozenset({4}),
        steps,
        (EventPredicate(("SELL",)), EventPredicate(("BUY",))),
    )
    boxes = [
        (float(line.attrib["x"]), float(line.attrib["y"]), len(line.text or ""))
        for line in lines(automaton)
        if not (line.text or "").isdigit()
    ]
    assert len(boxes) == 11
    for number, (x, y, letters) in enumerate(boxes):
        for other_x, other_y, others in boxes[:number]:
            assert abs(x - other_x) >= 6 * (letters + others) / 2 or abs(y - other_y) >= 12


def test_hidden_labels_are_left_out_with_a_note() -> None:
    hidden = frozenset({Hidden(0), Hidden(0, "a")})
    step = Transition(0, Guard(frozenset({0})), frozenset({"A"}), 1)
    steps = (replace(step, hidden=hidden), step)
    automaton = CEA(2, frozenset({0}), frozenset({1}), steps, (EventPredicate(("A",)),))
    note = "Hidden labels, which group events for filters, are not drawn."
    assert texts(automaton) == {"0", "1", "A", "• A", note}
