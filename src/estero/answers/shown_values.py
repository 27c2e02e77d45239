"""Arrow values as Python values; those that Python cannot hold become text, or an error that says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from estero.classify.remembered import Remembered
from estero.errors import DataError

_TICKS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_DAY = 86_400_000_000_000
_MICROSECONDS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_EPOCHS: Final = {None: datetime(1970, 1, 1), "UTC": datetime(1970, 1, 1, tzinfo=UTC)}  # noqa: DTZ001
"""When ticks begin, by zone."""

BEYOND_PYTHON = (ValueError, OverflowError, pa.ArrowException)
"""The errors of Arrow for times that Python lacks, and for strings that are not UTF-8."""


@contextmanager
def held_by_python(what: str) -> Iterator[None]:
    """Raises `DataError` if Arrow meets a value in the block that Python cannot hold."""
    try:
        yield
    except BEYOND_PYTHON as error:
        raise not_held(what, error) from error


def not_held(what: str, error: Exception) -> DataError:
    """The `DataError` for one of `BEYOND_PYTHON`; `what` is what the value is part of.

    Any other error of Arrow is raised as it is.
    """
    if isinstance(error, pa.ArrowException) and type(error) not in (pa.ArrowException, pa.ArrowInvalid):
        raise error
    why = "a time is outside the years 1 to 9999"
    if "nanoseconds" in str(error):
        why = "a time of day has nanoseconds"
    elif isinstance(error, UnicodeDecodeError | pa.ArrowException):
        why = "a string is not UTF-8"
    return DataError(
        f"{what} cannot be a Python value: {why}",
        hint="count(), to_arrow() and write() keep such values as they are",
    )


def shown_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch as values to be shown or written as text (`shown_values`)."""
    columns = [shown_values(column) for column in batch.columns]
    for row in zip(*columns, strict=True):
        yield dict(zip(batch.schema.names, row, strict=True))


class ShownDuration(str):
    """The text of a duration, which stands without quotes among other values.

    >>> ShownDuration.of(81_670_000_000), ShownDuration.of(-93_784_000_000_000)
    (0:01:21.67, -1 day, 2:03:04)
    """

    __slots__ = ()

    @staticmethod
    def of(nanoseconds: int) -> ShownDuration:
        """The duration in days, hours, minutes and seconds, with as many decimals as it has."""
        days, rest = divmod(abs(nanoseconds), _DAY)
        seconds, fraction = divmod(rest, 1_000_000_000)
        text = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        text += f".{fraction:09}".rstrip("0") if fraction else ""
        text = f"{days} day{'s' * (days > 1)}, {text}" if days else text
        return ShownDuration(f"-{text}" if nanoseconds < 0 else text)

    def __repr__(self) -> str:
        return str(self)


def shown_values(array: pa.Array) -> list[Any]:
    """The values of an array; durations are texts, and so are times and bytes that Python cannot represent.

    Bytes that are not UTF-8 are escaped as in file names (surrogateescape), so that nothing is lost.
    """
    if _has_durations(array.type):
        return _one_by_one(array)
    try:
        values: list[Any] = array.to_pylist()
    except BEYOND_PYTHON:
        return _one_by_one(array)
    return values


def json_values(array: pa.Array) -> list[Any]:
    """As `shown_values`, with the texts that JSON has for times: Arrow takes long for objects with a zone."""
    kind = array.type
    if pa.types.is_timestamp(kind) and kind.tz in _EPOCHS and kind.unit in _MICROSECONDS:
        epoch, length = _EPOCHS[kind.tz], _MICROSECONDS[kind.unit]
        try:
            return [
                None if tick is None else (epoch + timedelta(microseconds=tick * length)).isoformat()
                for tick in array.view(pa.int64()).to_pylist()
            ]
        except OverflowError:  # a time is outside the years of Python
            pass
    return shown_values(array)


def _has_durations(kind: pa.DataType) -> bool:
    """Whether values of a type hold durations, which Arrow makes objects of pandas where it can."""
    if not pa.types.is_nested(kind):
        return bool(pa.types.is_duration(kind))
    return _nested.of(kind, lambda: _hold_durations(kind))


_nested: Final = Remembered[bool]()
"""Whether values of the latest nested types hold durations: small batches ask again and again."""


def _hold_durations(kind: pa.DataType) -> bool:
    return any(_has_durations(kind.field(i).type) for i in range(kind.num_fields))


def _one_by_one(array: pa.Array) -> list[Any]:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _one_by_one(array.dictionary_decode())
    known = array.is_valid().to_pylist()
    if pa.types.is_duration(kind):
        length = _TICKS[kind.unit]
        ticks = array.cast(pa.int64()).to_pylist()
        return [None if tick is None else ShownDuration.of(tick * length) for tick in ticks]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        items = iter(shown_values(array.flatten()))
        lengths = array.value_lengths().to_pylist()
        return [[next(items) for _ in range(length)] if length is not None else None for length in lengths]
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        rows = zip(*map(shown_values, array.flatten()), strict=True)
        return [
            dict(zip(names, row, strict=True)) if there else None
            for row, there in zip(rows, known, strict=True)
        ]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        encoded = array.cast(pa.binary()).to_pylist()
        return [None if text is None else text.decode(errors="surrogateescape") for text in encoded]
    return [_one(value) for value in array]


def _one(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except BEYOND_PYTHON:
        text = str(value.cast(pa.string()))  # such as 10000-01-01 00:00:00.000000Z
        if text.startswith("<"):  # Arrow itself has no date for it
            return f"{value.value} {value.type.unit} since 1970"
        return (
            text.removesuffix(".000000").replace(".000000Z", "Z").replace("Z", "+00:00").replace(" ", "T", 1)
        )
