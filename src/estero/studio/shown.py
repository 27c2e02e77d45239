"""Values, events and complex events as JSON that a page shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

from estero.answers.complex_event import ComplexEvent
from estero.errors import legible

EXACT: Final = 1 << 53
"""The number from which JavaScript's numbers do not represent all integers."""
_MOST_EVENTS: Final = 12
"""The largest number of events of a label that a row shows in full."""
_MOST_MARKS: Final = 2_000
"""The largest number of marks of a complex event that are drawn."""


def shown(value: object) -> Any:
    """A value as JSON: numbers that it can hold, texts without control characters, lists, objects.

    Times are ISO texts; large integers and what is not a number are texts, too.

    >>> shown(2**60), shown(float("nan")), shown({"a": (1, None)})
    ('1152921504606846976', 'nan', {'a': [1, None]})
    """
    match value:
        case None | bool():
            return value
        case int():
            return value if abs(value) < EXACT else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime():
            return value.isoformat(" ")
        case date():
            return value.isoformat()
        case Mapping():
            return {legible(str(name)): shown(inner) for name, inner in value.items()}
        case str():
            return legible(value)
        case bytes():
            return value.hex()
        case Sequence():
            return [shown(inner) for inner in value]
        case _:
            return legible(str(value))


def row_of(number: int, complex_event: ComplexEvent) -> dict[str, Any]:
    """A complex event as a row, whose number in the answer may be longer than JavaScript's numbers."""
    places = dict(complex_event.places_shown())
    labels = []
    for label, positions in complex_event.positions.items():
        events = complex_event.events_shown(label)[:_MOST_EVENTS]
        labels.append(
            {
                "label": label,
                "count": len(positions),
                "positions": list(positions[:_MOST_MARKS]),
                "events": [
                    {name: shown(value) for name, value in event.items() if name != "position"}
                    for event in events
                ],
            }
        )
    return {
        "number": str(number),
        "start": complex_event.start,
        "end": complex_event.end,
        "values": {legible(name): shown(value) for name, value in places.items()},
        "partition": {name: shown(value) for name, value in complex_event.partition.items()},
        "labels": labels,
        "steps": complex_event.steps,
    }
