"""Times that dicts have as texts, ``"2026-01-01T00:00:00Z"``, as JSON writes them."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from estero.events.inputs import Input

_TYPES: Final = tuple(pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in ("UTC", None))


def with_written_times(events: Input, time: str | None) -> Input:
    """An input of dicts with its time column as timestamps, if all of its texts are times of ISO 8601.

    Times with a zone are instants in UTC. Anything else stays unchanged.
    """
    table = events.table
    if not events.of_dicts or table is None or time is None or time not in table.column_names:
        return events
    place = table.column_names.index(time)
    if not pa.types.is_string(table.schema.field(place).type):
        return events
    for kind in _TYPES:
        with contextlib.suppress(pa.ArrowInvalid):
            read = table.set_column(place, time, table.column(place).cast(kind))
            return replace(events, table=read, schema=read.schema)
    return events
