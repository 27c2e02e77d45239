"""Dicts as events: values of several kinds are texts, and times may be texts of ISO 8601."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from estero.events.inputs import open_input
from estero.events.tables.dict_columns import table_of_dicts
from estero.events.tables.written_times import with_written_times


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        ([1, "x", None, 2.5, True], pa.string(), ["1", "x", None, "2.5", "true"]),
        ([True, 1], pa.string(), ["true", "1"]),
        ([1, 2.5], pa.float64(), [1.0, 2.5]),
        ([1 << 70, 1], pa.string(), [str(1 << 70), "1"]),
        ([[1, "a"], None, []], pa.list_(pa.string()), [["1", "a"], None, []]),
        (
            [{"k": 1}, {"k": "x", "l": {"m": True}}, None],
            None,
            [{"k": "1", "l": None}, {"k": "x", "l": {"m": True}}, None],
        ),
    ],
)
def test_values_of_several_kinds_are_texts(
    values: list[Any], kind: pa.DataType | None, texts: list[Any]
) -> None:
    column = table_of_dicts([{"v": value} for value in values]).column("v")
    assert kind in (None, column.type)
    assert column.to_pylist() == texts


def test_values_without_a_common_type_are_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        table_of_dicts([{"v": [1]}, {"v": 1}])


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["2026-01-01T00:00:00Z", "2026-01-01 01:00:00+02:00"], pa.timestamp("us", "UTC")),
        (["2026-01-01T00:00:00.123456789Z", None], pa.timestamp("ns", "UTC")),
        (["2026-01-01", "2026-01-01 00:00:01"], pa.timestamp("us")),
        (["2026-01-01T00:00:00Z", "noon"], pa.string()),
    ],
)
def test_texts_of_times_are_times_where_all_are(texts: list[str | None], kind: pa.DataType) -> None:
    events = open_input([{"t": text, "other": text} for text in texts])
    read = with_written_times(events, "t").schema
    assert read is not None
    assert read.field("t").type == kind
    assert read.field("other").type == pa.string()
    assert with_written_times(events, None) is events
