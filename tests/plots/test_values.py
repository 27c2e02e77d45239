"""An attribute along the stream: its lines, the marks on them, and what is said of bad names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import estero
from estero import demo
from estero.answers.answer import Answer
from estero.plots import Picture
from estero.plots import values as plots_values
from estero.testing import events

NINE = datetime(2024, 5, 1, 9, tzinfo=UTC)
PRICES = [5.0, 7.0, 6.0, 4.0, 3.0, 4.0, 6.0, 8.0, 7.0]
V_SHAPE = """SELECT down, up FROM Tick WHERE Tick:{3,} AS down : Tick:{3,} AS up
    FILTER decreasing(down.price) AND increasing(up.price)"""


def ticks(prices: list[float | None], **more: Any) -> pa.Table:
    times = [NINE + timedelta(minutes=number) for number in range(len(prices))]
    return pa.table({"time": times, "price": pa.array(prices, pa.float64()), **more})


def v_shapes(prices: list[float | None] = PRICES) -> Answer:  # type: ignore[assignment]
    return estero.query(V_SHAPE).run(ticks(prices), time="time")


def points(picture: Picture, label: str) -> list[tuple[float, float]]:
    """The marks of a label in all panels: their places and values."""
    lines = (line for axes in picture.figure.axes for line in axes.get_lines() if line.get_label() == label)
    return [point for line in lines for point in zip(*map(np.asarray, line.get_data()), strict=True)]


def stream_line(picture: Picture) -> list[float]:
    return [float(y) for y in np.asarray(picture.figure.axes[0].get_lines()[0].get_ydata())]


def test_the_stream_is_a_line_and_marks_are_on_it() -> None:
    picture = v_shapes().plot(y="price", title="V")
    assert stream_line(picture) == PRICES
    days = NINE.timestamp() / 86_400
    assert {(round((x - days) * 1440), y) for x, y in points(picture, "down")} == {
        (1, 7),
        (2, 6),
        (3, 4),
        (4, 3),
    }
    assert {y for _, y in points(picture, "up")} == {3, 4, 6, 8}
    (axes,) = picture.figure.axes
    assert axes.get_ylabel() == "price"
    assert "complex event" in axes.get_title(loc="left")
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["down", "up"]
    assert picture.svg() == v_shapes().plot(y="price", title="V").svg()


def test_each_partition_has_a_panel() -> None:
    answer = estero.query(demo.QUERY).run(demo.events(), type="kind", time="time", order=["id"])
    picture = answer.plot(y="value", limit=200)
    panels = [axes.get_ylabel() for axes in picture.figure.axes]
    stations = {each.partition["station"] for each in answer}
    assert sorted(panels) == sorted(f"value, {station}" for station in stations)
    assert len(points(picture, "frost")) == answer.count()


def test_no_more_partitions_are_drawn_than_are_said() -> None:
    keys = [number // 2 for number in range(20)]
    stream = pa.table({"t": range(20), "k": keys, "v": range(20)})
    query = "SELECT a, b WHERE Event AS a ; Event AS b PARTITION BY [k]"
    picture = estero.query(query).run(stream, time="t").plot(y="v")
    assert len(picture.figure.axes) == 6
    assert picture.figure.axes[0].get_title(loc="left") == "The first 6 complex events; 4 more not shown"


def test_missing_values_and_types_without_the_attribute_are_left_out() -> None:
    tables = {"A": pa.table({"t": [1, 3, 5], "v": [1.0, None, 3.0]}), "B": pa.table({"t": [6]})}
    picture = estero.query("SELECT a, B WHERE A AS a ; B").run(tables, time="t").plot(y="v")
    assert {y for _, y in points(picture, "a")} == {1.0, 3.0}
    assert points(picture, "B") == []
    assert stream_line(picture) == [1.0, 3.0]


def test_without_a_time_the_axis_has_positions() -> None:
    picture = (
        estero.query("SELECT a WHERE A AS a").run(events("A(v=5) B(v=1) A(v=7)"), type="type").plot(y="v")
    )
    assert points(picture, "a") == [(0, 5), (2, 7)]
    assert picture.figure.axes[0].get_xlabel() == "position"


def test_long_lines_are_thinned_and_keep_their_extremes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots_values, "_POINTS", 20)
    prices = [float(number % 10) for number in range(500)]
    answer = estero.query("SELECT a WHERE Event AS a FILTER a[price = 9]").run(
        ticks(list(prices)), time="time"
    )
    line = answer.plot(y="price", limit=50).figure.axes[0].get_lines()[0]
    drawn = np.asarray(line.get_ydata())
    assert len(drawn) <= 20
    assert (drawn.min(), drawn.max()) == (0, 9)


def test_an_answer_without_complex_events_is_said_to_have_none() -> None:
    picture = v_shapes([1.0, 2.0]).plot(y="price")
    assert picture.figure.axes[0].get_title(loc="left") == "No complex events"


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ("prise", "no event of the query has an attribute prise: did you mean price?"),
        ("zzz", "no event of the query has an attribute zzz: there are time and price"),
        ("time", "y is an attribute of numbers, and time is not one; those of numbers are price"),
    ],
)
def test_a_bad_attribute_is_named(y: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("?", r"\?")):
        v_shapes().plot(y=y)


def test_a_recognizer_keeps_no_stream_to_draw() -> None:
    recognizer = estero.query("SELECT a WHERE Event AS a").recognizer(ticks([1.0]), time="time")
    with pytest.raises(ValueError, match="the events of a recognizer are not kept"):
        recognizer.push(ticks([1.0, 2.0, 3.0])).plot(y="price")
