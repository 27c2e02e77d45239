"""Tables of answers → pandas frames, with times in the events as pandas has them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from estero.errors import EnvironmentProblem

if TYPE_CHECKING:
    import pandas as pd


def pandas_of(table: pa.Table) -> pd.DataFrame:
    """The table as a pandas frame; lists of events are arrays of dicts.

    Raises `EnvironmentProblem` without pandas.

    Arrow makes nanoseconds inside of lists integers. Here they are Timestamps, as in a column of their own.
    """
    if find_spec("pandas") is None:
        raise EnvironmentProblem("to_pandas() needs pandas: pip install pandas")
    frame = table.to_pandas()
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type):
            for name in [each.name for each in field.type.value_type if _has_nanoseconds(each.type)]:
                values = _values(table.column(place), name)
                for event in (event for events in frame.iloc[:, place] for event in events):
                    event[name] = next(values)
    return frame


def _values(lists: pa.ChunkedArray, name: str) -> Iterator[Any]:
    """The values of one attribute of all events.

    Those of 600,000 events take 1 s through pandas; 4 s one by one, as nested ones have to be.
    """
    for chunk in lists.chunks:
        values = chunk.flatten().field(name)
        if pa.types.is_timestamp(values.type):
            known = values.is_valid().to_pylist()
            times = values.to_pandas().astype(object)
            yield from (time if valid else None for time, valid in zip(times, known, strict=True))
        else:
            yield from values.to_pylist()


def _has_nanoseconds(data_type: pa.DataType) -> bool:
    """Whether there are nanoseconds in values of this type."""
    if pa.types.is_nested(data_type):
        return any(_has_nanoseconds(data_type.field(place).type) for place in range(data_type.num_fields))
    return (
        bool(pa.types.is_timestamp(data_type) or pa.types.is_duration(data_type)) and data_type.unit == "ns"
    )
