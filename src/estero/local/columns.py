"""Values of JSON and texts as columns of Arrow, and the values that are not of a type."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from estero.classify.arrays import numbers_as, texts_of
from estero.errors import legible
from estero.events.streams.few_events import Values

_UTC: Final = "UTC"
_REFUSED: Final = (pa.ArrowException, ValueError, TypeError, OverflowError)
"""The errors of Arrow for a value that is not of a type."""


def values_as(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values of JSON as a column of a type; raises ValueError if one is not of it.

    An integer is not a text, and a truth value not a number; times, dates and decimals are texts. Whether a
    value is accepted does not depend on the others.
    """
    classes = set(map(type, values))
    numbers = _NUMBERS.get((kind.id, *classes)) if len(classes) == 1 else None
    if numbers is not None:
        return numbers_as(array(numbers, values), kind)
    if classes == _TEXTS and len(values) <= _FEW:
        if kind.id == _STRING:
            return texts_of(values, kind)
        ticks = _ticks_of(values) if kind.id == _TIMESTAMP and kind.unit == "us" else None
        if ticks is not None:
            return numbers_as(ticks, kind)
    classes.discard(type(None))
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        _check(classes, {str})
        first = next((value for value in values if value is not None), "")
        return texts_as(pa.array(values, pa.string()), kind, has_zone=_ends_with_zone(first))
    _check(classes, _classes(kind))
    return pa.array(values, kind)


_NUMBERS: Final = {(pa.int64().id, int): "q", (pa.float64().id, float): "d"}
"""The formats of arrays in which Python passes numbers to Arrow, three times as fast as in lists."""
_TEXTS: Final = {str}
_STRING, _TIMESTAMP = pa.string().id, pa.timestamp("us").id
_INTEGER, _FLOAT, _BOOLEAN = pa.int64().id, pa.float64().id, pa.bool_().id
_NOTHING: Final = type(None)
_PLAIN: Final[dict[int, set[type]]] = {
    _INTEGER: {int},
    _FLOAT: {float, int},
    _BOOLEAN: {bool},
    _STRING: {str},
    _TIMESTAMP: {str},
}
"""The classes of values of JSON, by the id of a type."""
_EXACT: Final = 2**53
"""The number up to which every integer is a float."""
_FEW: Final = 64
"""The most texts that Python reads faster than Arrow, whose casts take 80 µs if they have not just run."""
_INSTANT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ](?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d{3}|\.\d{6})?(?:Z|[+-][01]\d:[0-5]\d)", re.ASCII
)
"""A time with a zone in the form that Python writes, which Python and Arrow read alike."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def are_plain(kinds: Iterable[pa.DataType]) -> bool:
    """Whether `plain_values` reads values of all these types."""
    return all(kind.id in _PLAIN and (kind.id != _TIMESTAMP or kind.unit == "us") for kind in kinds)


def plain_values(values: Sequence[Any], kind: pa.DataType) -> Values | None:
    """Values of JSON as a column of `FewEvents`; None if one may not be of the type, which is a plain one.

    `values_as` accepts all of them.
    """
    classes = set(map(type, values))
    known = values
    if _NOTHING in classes:
        classes.remove(_NOTHING)
        known = [value for value in values if value is not None]
    if not classes <= _PLAIN[kind.id]:
        return None
    if kind.id == _BOOLEAN:
        return values
    if kind.id == _STRING:
        return values if all(map(str.isascii, known)) or all(map(_is_unicode, known)) else None
    numbers = _ticks_of(known) if kind.id == _TIMESTAMP else _numbers_of(known, kind.id)
    if numbers is None or len(known) == len(values):
        return numbers
    left = iter(numbers)
    return [None if value is None else next(left) for value in values]


def _numbers_of(values: Sequence[int | float], kind: int) -> array[int] | array[float] | None:
    """Numbers in the format of a type by its id; None if one is not of it."""
    if kind == _FLOAT and not all(type(value) is float or abs(value) <= _EXACT for value in values):
        return None
    try:
        return array("d" if kind == _FLOAT else "q", values)
    except OverflowError:
        return None


def _is_unicode(text: str) -> bool:
    """Whether a text has no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _ticks_of(texts: Sequence[str]) -> array[int] | None:
    """The microseconds since 1970 of a few times with zones; None if Arrow has to read them."""
    if not all(map(_INSTANT.fullmatch, texts)):
        return None
    try:
        return array("q", [(datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND for text in texts])
    except ValueError:  # the 30th of February
        return None


def texts_as(texts: pa.Array, kind: pa.DataType, *, has_zone: bool | None = None) -> pa.Array:
    """Texts as a column of a type, ``2026-03-02T12:00:00Z`` for times; raises ArrowInvalid if one is invalid.

    A time without a zone is in UTC. It is faster if the caller knows whether the first text `has_zone`.
    """
    if not pa.types.is_timestamp(kind):
        return texts.cast(kind)
    if has_zone is None:
        has_zone = _ends_with_zone(next((text.as_py() for text in texts[:8] if text.is_valid), ""))
    for zone in (_UTC, None) if has_zone else (None, _UTC):
        try:
            read = pa.timestamp(kind.unit, zone)
            times = texts.cast(read)
            return times if read.equals(kind) else times.cast(kind)
        except pa.ArrowInvalid as error:  # one has a zone, lacks one, or is not a time
            reason = error
    if len(texts) < 2:
        raise reason
    half = len(texts) // 2
    return pa.concat_arrays([texts_as(texts[:half], kind), texts_as(texts[half:], kind)])


def _ends_with_zone(text: str) -> bool:
    """Whether a text seems to be a time with a zone; a failed cast costs a microsecond per text."""
    return text.endswith("Z") or "+" in text[-6:] or "-" in text[-6:]


def wrong_values(values: Sequence[Any], kind: pa.DataType) -> dict[int, str]:
    """The places of values that are not of a type, with the reasons."""
    try:
        values_as(values, kind)
    except _REFUSED:
        if len(values) == 1:
            return {0: f"{_shown(values[0])} is not {_word(kind)}"}
        half = len(values) // 2
        behind = wrong_values(values[half:], kind)
        return wrong_values(values[:half], kind) | {half + place: why for place, why in behind.items()}
    return {}


def wrong_texts(texts: pa.Array, kind: pa.DataType) -> dict[int, str]:
    """The places of texts that are not of a type, with the reasons."""
    try:
        texts_as(texts, kind)
    except _REFUSED:
        if len(texts) == 1:
            return {0: f"{_shown(texts[0].as_py())} is not {_word(kind)}"}
        half = len(texts) // 2
        behind = wrong_texts(texts[half:], kind)
        return wrong_texts(texts[:half], kind) | {half + place: why for place, why in behind.items()}
    return {}


def _check(classes: set[type], allowed: set[type] | None) -> None:
    if allowed is not None and not classes <= allowed:
        raise ValueError("a value is of another type")


def _classes(kind: pa.DataType) -> set[type] | None:
    """The Python types of JSON values of a type; None if Arrow decides."""
    if pa.types.is_boolean(kind):
        return {bool}
    if pa.types.is_integer(kind):
        return {int}
    if pa.types.is_floating(kind):
        return {int, float}
    return {str} if _is_text(kind) else None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _word(kind: pa.DataType) -> str:
    if _is_text(kind):
        return "a text"
    if pa.types.is_boolean(kind):
        return "true or false"
    return f"of the type {kind}"


def _shown(value: object) -> str:
    text = legible(repr(value))
    return text if len(text) <= 60 else f"{text[:57]}…"
