"""The stream of the demo."""

from __future__ import annotations

import pyarrow.compute as pc

from estero import demo


def test_the_stream_is_the_same_every_time_and_in_order_of_time() -> None:
    first, second = demo.events(), demo.events()
    assert first.equals(second)
    assert first.num_rows == len(demo.STATIONS) * 3 * demo.ROUNDS
    times = first["time"].to_pylist()
    assert times == sorted(times)
    assert set(first["station"].to_pylist()) == set(demo.STATIONS)


def test_the_readings_are_plausible() -> None:
    table = demo.events()
    for kind, low, high in (("Temperature", -10, 20), ("Humidity", 20, 100), ("Wind", 0, 20)):
        values = table.filter(pc.field("kind") == kind)["value"].to_pylist()
        assert low <= min(values) <= max(values) <= high
