"""Growth curves: what is counted is what was made, answers are right, and points tell their shape."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks import growth
from benchmarks.growth import Watched, among_others, classified, counted, in_use, pieces, recognized
from benchmarks.growth_page import PLANS, fitted, page, picture, shape_of
from benchmarks.growth_rows import PROMISED, ROWS, Row, check

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
SETS = Row("A ; B+ ; C WITHIN w EVENTS")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_answers_of_a_row_are_right(row: Row) -> None:
    check(row)


def test_rows_are_named_once() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) >= 30


RISING = Row("A AS a ; B AS b FILTER a.m < b.m WITHIN w EVENTS", types="AB")


@pytest.mark.parametrize("row", [SETS, RISING], ids=lambda row: row.name)
def test_what_was_dropped_is_counted(row: Row) -> None:
    window, count = 20, 60_000
    plan, events = classified(row, count, window)
    watched = Watched(plan, events)
    made = 0
    for piece in pieces(events, 0, count):
        before = watched.made
        for _ in watched.push([piece]):
            pass
        assert watched.made >= before
        made = watched.made
    assert made > 2 * in_use(watched.runs)


def test_a_window_of_any_length_costs_the_same_in_nodes_of_sets() -> None:
    few, many = recognized(SETS, 100), recognized(SETS, 3_000)
    assert few.nodes == pytest.approx(many.nodes, rel=0.01)
    assert few.most == many.most
    assert few.steps is not None
    assert many.steps is not None
    assert max(few.steps, many.steps) < 3


def test_what_limits_count_and_what_registers_tell_apart_grows_with_the_window() -> None:
    for row in ROWS:
        if row.shape == "n" or (row.shape is None and "LONGEST" in row.select and "a.m < b.m" in row.pattern):
            few, many = recognized(row, 100), recognized(row, 300)
            assert many.nodes == pytest.approx(3 * few.nodes, rel=0.1)


def test_the_rows_have_every_kind_of_plan() -> None:
    kinds = {classified(row, 10, 10)[0].kernels for row in ROWS}
    assert kinds == set(PROMISED) == set(PLANS)


def test_events_that_do_not_matter_are_refused() -> None:
    with pytest.raises(ValueError, match="some events do not matter"):
        recognized(Row("A ; B WITHIN w EVENTS"), 100)


def test_longer_numbers_have_more_words() -> None:
    row = Row("A ; B+ ; C WITHIN w EVENTS", asked="count")
    words, longer = counted(row, 100), counted(row, 3_000)
    assert 1 <= words.nodes < longer.nodes


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        ([3.0] * 5, "flat"),
        ([2 + 0.5 * math.log2(size) for size in SIZES], "log n"),
        ([1 + 0.2 * math.log2(size) ** 2 for size in SIZES], "log² n"),
        ([5 + 0.6 * size for size in SIZES], "n"),
        ([size**0.5 for size in SIZES], "steeper"),
    ],
)
def test_a_shape_is_told_by_its_points(values: list[float], shape: str) -> None:
    assert shape_of(SIZES, values) == shape


def test_what_falls_is_flat() -> None:
    assert fitted(SIZES, [5.0, 4.9, 4.8, 4.7, 4.6], "log n").factor == 0


def test_the_page_says_whether_a_promise_is_kept() -> None:
    def curve(shape: str) -> dict[str, object]:
        points = [
            {"size": size, "nodes": math.log2(size), "most": 9, "steps": None, "ns": 5.0} for size in SIZES
        ]
        of_plan = {"name": "A ; B", "kernels": "cea", "asked": "recognize", "over": "n", "rate": 1_000}
        return {**of_plan, "shape": shape, "points": points}

    figures = {"setting": {"machine": "m"}, "curves": [curve("flat"), curve("log² n")]}
    said = page(figures)
    assert "| `A ; B` | CEA + tECS | flat | log n | **no** | 6.64 | 9.97 |" in said
    assert "| `A ; B` | CEA + tECS | log² n | log n | yes | 6.64 |" in said
    assert picture(figures).svg().startswith("<?xml")


def test_rows_measured_anew_take_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = {"machine": "m", "versions": "numpy 2", "took": "600 s"}
    curves = [{"name": name, "rate": 1} for name in ("A", "B", "C")]
    file = tmp_path / "growth.json"
    file.write_text(json.dumps({"setting": setting, "curves": curves}), encoding="utf-8")
    monkeypatch.setattr(growth, "FIGURES", file)
    again = setting | {"took": "5 s", "times": "alone"}
    figures = among_others([{"name": "B", "rate": 2}], again, "B")
    assert [(curve["name"], curve["rate"]) for curve in figures["curves"]] == [("A", 1), ("B", 2), ("C", 1)]
    assert figures["setting"] == setting | {"measured anew": "rows with `B`; 5 s; alone"}
    with pytest.raises(SystemExit, match=r"no place among those of growth\.json: D"):
        among_others([{"name": "D", "rate": 2}], again, "D")
    with pytest.raises(SystemExit, match="another machine or other versions"):
        among_others([], again | {"versions": "numpy 3"}, "B")
