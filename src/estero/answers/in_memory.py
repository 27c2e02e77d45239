"""Answers held in memory if they fit, which is decided before it is full; frames of pandas and Polars."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from estero.answers.shown_values import held_by_python
from estero.errors import DataError, EnvironmentProblem, LimitExceeded
from estero.events.tables.shown_types import has_within

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

OBJECTS_TO_ARROW = 12
"""The bytes of events as Python dicts for each byte in Arrow: 13 with two attributes, 10 with six."""
_UNASKED = 256 << 20
"""The bytes fetched before complex events are counted: about a second's work, to which counting adds."""
_LITTLE = 1 << 20
"""The bytes that are always held: finding out how much memory there is takes longer than fetching them."""
_UNKNOWN = 8 << 30
"""The memory assumed for a machine that does not report it."""
_OF_A_CONTAINER = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_limit() -> int:
    """The bytes that one answer may take: half of the memory of the machine, or of the container."""
    return min([_memory_of_the_machine(), *_limits_of_the_container()]) // 2


def within(
    batches: Iterable[pa.RecordBatch],
    count: Callable[[], int] | None,
    *,
    asked: str,
    factor: int = 1,
    seen: Callable[[pa.RecordBatch], int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The batches, as long as memory holds `factor` times the size of all of them.

    Once many have come, `count` gives the number of all complex events; without it (counting would take as
    long as fetching) they come until the memory is full. A row is a complex event, unless `seen` gives the
    number of complex events up to the end of a batch. `asked` is the method that holds them. Raises
    `LimitExceeded`, which names the number.
    """
    limit = rows = size = 0
    for batch in batches:
        rows = rows + batch.num_rows if seen is None else seen(batch)
        size += batch.nbytes
        if size > _LITTLE:
            limit = limit or memory_limit() // factor
            if count is not None and size > min(_UNASKED, limit // 2):
                total = count()
                if total * (size / rows) > limit:
                    raise _too_much(f"{total:,} complex events", total * size // rows, limit, asked)
                count = None
            if size > limit:
                raise _too_much(f"more than {rows:,} complex events", size, limit, asked)
        yield batch


def _too_much(number: str, size: int, limit: int, asked: str) -> LimitExceeded:
    return LimitExceeded(
        f"the answer has {number}, which take {_in_words(size)} or more in memory, and {asked} may take "
        f"at most {_in_words(limit)} here: count() counts them, limit(n) and sample(k) take some, "
        "write(path) writes them to a file; an answer with a limit is held at any size"
    )


def _in_words(size: int) -> str:
    return f"{size / (1 << 30):,.1f} GB"


def _memory_of_the_machine() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN


def _limits_of_the_container() -> Iterator[int]:
    for file in _OF_A_CONTAINER:
        try:
            yield int(file.read_text())
        except (OSError, ValueError):  # there is no such file, or it says "max"
            continue


def pandas_of(table: pa.Table) -> pd.DataFrame:
    """The table as a pandas frame; lists of events are arrays of dicts.

    Raises `EnvironmentProblem` without pandas.

    Arrow turns nanoseconds inside lists into integers. Here they are Timestamps, as in a column of their own.
    """
    if find_spec("pandas") is None:
        raise EnvironmentProblem("to_pandas() needs pandas: pip install pandas")
    with held_by_python("a value of this answer"):
        return _frame(table)


def _frame(table: pa.Table) -> pd.DataFrame:
    frame = table.to_pandas()
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type):
            for name in [
                member.name for member in field.type.value_type if has_within(member.type, _nanoseconds)
            ]:
                values = _values(table.column(place), name)
                for event in (event for events in frame.iloc[:, place] for event in events):
                    event[name] = next(values)
    return frame


def _values(lists: pa.ChunkedArray, name: str) -> Iterator[Any]:
    """The values of one attribute of all events.

    Converting 600,000 events takes 1 s through pandas, and 4 s one by one, which nested values need.
    """
    for chunk in lists.chunks:
        values = chunk.flatten().field(name)
        if pa.types.is_timestamp(values.type):
            known = values.is_valid().to_pylist()
            times = values.to_pandas().astype(object)
            yield from (time if valid else None for time, valid in zip(times, known, strict=True))
        else:
            yield from values.to_pylist()


def _nanoseconds(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns"


def check_polars(schema: pa.Schema) -> None:
    """Raises `EnvironmentProblem` without Polars, `DataError` for intervals of months, which it lacks."""
    if find_spec("polars") is None:
        raise EnvironmentProblem("to_polars() needs Polars: pip install 'estero[polars]'")
    for column in schema:
        if has_within(column.type, pa.types.is_interval):
            raise DataError(
                "holds intervals of months, days and nanoseconds, which Polars does not have",
                column=column.name,
                hint="name the attributes to show, such as x[a, b], or use to_arrow()",
            )


def polars_of(table: pa.Table) -> pl.DataFrame:
    """The table as a Polars frame."""
    import polars as pl

    with held_by_python("a value of this answer"):
        table.validate(full=True)  # Polars itself would not check this, and would crash the process later
    return pl.DataFrame(table)
