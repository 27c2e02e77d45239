"""Growth curves: what is counted is what was made, answers are right, and points tell their shape."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from estero.engine.recognizer import Recognizer
from estero.engine.runs.joined.pcea_runs import PceaRuns

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks.growth import CountedProducts, Curve, curves, falling, of_sets
from benchmarks.growth_page import fitted, page, picture, shape_of

from benchmarks import parallelised

CURVES = curves()
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: f"{curve.plan}: {curve.name}")
def test_the_answers_of_a_curve_are_right(curve: Curve) -> None:
    curve.check()


def test_nodes_that_were_dropped_are_counted() -> None:
    case, events = parallelised.any_order(1), falling(200, 12)
    counted, roomy = (
        Recognizer(CountedProducts(case.tables, 200, room=64)),
        Recognizer(PceaRuns(case.tables, 200, room=1 << 18)),
    )
    for recognizer in (counted, roomy):
        for _ in recognizer.push(events):
            pass
    assert counted.runs.dropped > 0
    assert (
        abs(counted.runs.made - int(roomy.runs.nodes.size[0])) <= 0.1 * counted.runs.made
    )  # what expired is not copied


def test_a_window_of_any_length_costs_the_same_in_nodes_of_sets() -> None:
    few, many = of_sets(100), of_sets(3_000)
    assert few.nodes == pytest.approx(many.nodes, rel=0.01)
    assert few.most == many.most


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        ([3.0] * 5, "flat"),
        ([2 + 0.5 * math.log2(size) for size in SIZES], "log n"),
        ([1 + 0.2 * math.log2(size) ** 2 for size in SIZES], "log² n"),
        ([size**0.5 for size in SIZES], "steeper"),
    ],
)
def test_a_shape_is_told_by_its_points(values: list[float], shape: str) -> None:
    assert shape_of(SIZES, values) == shape


def test_what_falls_is_flat() -> None:
    assert fitted(SIZES, [5.0, 4.9, 4.8, 4.7, 4.6], "log n").factor == 0


def test_the_page_says_whether_a_promise_is_kept() -> None:
    def line(shape: str) -> dict[str, object]:
        points = [
            {"size": size, "nodes": math.log2(size), "most": 9, "steps": None, "ns": 5.0} for size in SIZES
        ]
        return {"name": "q", "plan": "p", "over": "o", "nodes": "n", "shape": shape, "points": points}

    figures = {"setting": {"machine": "m"}, "curves": [line("flat"), line("log² n")]}
    said = page(figures)
    assert "| p | q | flat | log n | **no** | 3.00 | 1.000 log n + 0.00 |" in said
    assert "| p | q | log² n | log n | yes | 3.00 |" in said
    assert picture(figures).svg().startswith("<?xml")
