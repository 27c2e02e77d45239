"""Values of single events in Python: for each Arrow type, the values that it accepts unchanged.

A row has them as expressions read them: timestamps and dates are integers, in the unit of the column. Other
values that Arrow accepts (a NumPy scalar, a pandas timestamp) are converted by Arrow.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from estero.classify.rows.typed import AskSqlError
from estero.events.tables.shown_types import plain_type
from estero.language.tree.literals import timestamp_value

Change = Callable[[Any], Any]

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - a clock in UTC
_UTC_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EXACT: Final = 2**53
_FURTHEST: Final = 2**61
"""The bound for ticks beyond which SQL is used: some are infinite, others overflow when multiplied."""
_MICROSECOND: Final = timedelta(microseconds=1)
_FINER: Final = re.compile(r"(.+\.[0-9]{6})([0-9]{1,3})(\D.*)?", re.ASCII)
"""The text of a moment in two parts, with the digits beyond microseconds between them."""


@dataclass(frozen=True, slots=True)
class RowType:
    """A type of Arrow: `takes` says for each Python type how its values are checked and read.

    `stored` is the type of the integers that represent its values; None if these represent themselves.
    """

    arrow: pa.DataType
    takes: Mapping[type, Change]
    stored: pa.DataType | None = None

    def by_arrow(self, value: Any) -> Any:
        """A value of any other type, if Arrow accepts it; raises `AskSqlError` if it does not."""
        try:
            return self.of_scalar(pa.array([value], self.arrow)[0])
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise AskSqlError from error

    def of_scalar(self, scalar: pa.Scalar) -> Any:
        """An Arrow value of this type in the form of a row; `AskSqlError` for one that is not accepted."""
        if isinstance(scalar, pa.DictionaryScalar):
            scalar = scalar.value
        if not scalar.is_valid:
            return None
        try:
            value = scalar.as_py() if self.stored is None else scalar.value
        except UnicodeDecodeError as error:
            raise AskSqlError from error
        if self.stored is not None:
            return _within(value, _FURTHEST)
        check = self.takes.get(type(value))
        if check is None:
            raise AskSqlError
        return check(value)

    def array(self, values: Sequence[Any]) -> pa.Array:
        """Values of rows as an array of Arrow."""
        if self.stored is None:
            return pa.array(values, self.arrow)
        return pa.array(values, self.stored).view(self.arrow)


def row_type(declared: pa.DataType) -> RowType | None:
    """How values of a type are read from rows; None if only Arrow and SQL do that."""
    kind = plain_type(declared)
    if pa.types.is_integer(kind) and kind != pa.uint64():
        bits = kind.bit_width
        signed = pa.types.is_signed_integer(kind)
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        return RowType(kind, {int: _integer(low, high)})
    if pa.types.is_timestamp(kind):
        per_second = _PER_SECOND[kind.unit]
        return RowType(kind, {datetime: _ticks(per_second), str: _ticks_in(per_second)}, pa.int64())
    return _PLAIN.get(kind)


def same(value: Any) -> Any:
    """The value unchanged."""
    return value


def _integer(low: int, high: int) -> Change:
    def checked(value: int) -> int:
        if not low <= value <= high:
            raise AskSqlError
        return value

    return checked


def _float(value: int) -> float:
    return float(_within(value, _EXACT))


def _short_float(value: float) -> float:
    """The nearest float of 32 bits."""
    try:
        (nearest,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError as error:
        raise AskSqlError from error
    return float(nearest)


def _within(value: int, most: int) -> int:
    if not -most <= value <= most:
        raise AskSqlError
    return value


def _text(value: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise AskSqlError from error
    return value


def _ticks(per_second: int) -> Change:
    """The ticks of a moment; one without a zone is in UTC."""

    def ticks(moment: datetime) -> int:
        since = moment - (_EPOCH if moment.tzinfo is None else _UTC_EPOCH)
        micros = since // _MICROSECOND
        number, beyond = divmod(micros * per_second, 10**6)
        if beyond:
            raise AskSqlError
        return _within(number, _FURTHEST)

    return ticks


def _ticks_in(per_second: int) -> Change:
    """The ticks of a moment in ISO 8601 text; one without a zone is in UTC."""

    def ticks(text: str) -> int:
        finer = _FINER.fullmatch(text)
        plain, beyond = (text, 0) if finer is None else (finer[1] + (finer[3] or ""), int(f"{finer[2]:0<3}"))
        try:
            micros = (timestamp_value(plain) - _UTC_EPOCH) // _MICROSECOND
        except ValueError as error:
            raise AskSqlError from error
        number, left = divmod((micros * 1000 + beyond) * per_second, 10**9)
        if left:
            raise AskSqlError
        return _within(number, _FURTHEST)

    return ticks


def _days_in(text: str) -> int:
    try:
        return _days(date.fromisoformat(text))
    except ValueError as error:
        raise AskSqlError from error


def without_texts(values: Sequence[Any], declared: pa.DataType) -> Sequence[Any]:
    """Values for a column of a type, with texts of moments and days converted.

    Raises ValueError for a text that is none, or that is finer than the column.
    """
    known = row_type(declared)
    if known is None or known.stored is None or not any(type(value) is str for value in values):
        return values
    return [_moment(value, known) if type(value) is str else value for value in values]


def _moment(text: str, of: RowType) -> pa.Scalar:
    try:
        return of.array([of.takes[str](text)])[0]
    except AskSqlError:
        example = "2024-01-31" if of.arrow == pa.date32() else "2024-01-31T12:00:00, no finer than the column"
        raise ValueError(f"{text!r} is none; write it as {example}") from None


def _days(day: date) -> int:
    return day.toordinal() - _FIRST_DAY


_PLAIN: Final[Mapping[pa.DataType, RowType]] = {
    plain.arrow: plain
    for plain in (
        RowType(pa.null(), {}),
        RowType(pa.bool_(), {bool: same}),
        RowType(pa.float64(), {float: same, int: _float}),
        RowType(pa.float32(), {float: _short_float}),
        RowType(pa.string(), {str: _text}),
        RowType(pa.large_string(), {str: _text}),
        RowType(pa.date32(), {date: _days, str: _days_in}, pa.int32()),
    )
}
