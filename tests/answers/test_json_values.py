"""Values as lines of JSON have them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from estero.answers.shown_values import json_values, shown_values
from estero.answers.writers import json_bytes

_TICKS = [
    0,
    None,
    -1,
    1_767_225_600_123_456,
    253_402_300_799_999_999,
    253_402_300_800_000_000,
    2**62,
    -(2**62),
]


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_are_the_texts_of_the_objects_that_arrow_makes(unit: str, zone: str | None) -> None:
    ticks = pa.array(_TICKS, pa.int64())
    for few in (ticks, ticks[:4], ticks[2:3]):
        times = few.view(pa.timestamp(unit, zone))
        assert json_bytes(json_values(times)) == json_bytes(shown_values(times))
