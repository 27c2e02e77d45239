"""Expected complex events, as users write them, compared with those of an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from estero.answers.answer_columns import AnswerColumns
from estero.answers.shown_values import ShownDuration
from estero.errors import DataError
from estero.language.tree.names import some
from estero.testing.short_events import duration_in
from estero.testing.ways import Marked, Shown

Expected = Mapping[str, Any]
"""A complex event: for each label the positions of its events, or the only one; for other names the value."""

_DIGITS = 12
"""The digits in which floats must agree to be equal, because sums have no fixed order."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The complex events that are expected; `labels` are compared, or only the values of `names`."""

    rows: tuple[Shown, ...]
    labels: bool
    names: frozenset[str]
    durations: frozenset[str]

    @staticmethod
    def of(expected: Iterable[Expected], schema: pa.Schema, events: int) -> Wanted:
        """The complex events expected of an answer with this schema, over this number of events.

        Values that no expectation names are not compared, and if only values are named, marks are not. Raises
        ValueError for an expectation that no answer with these columns can satisfy.
        """
        columns = AnswerColumns.of(schema)
        places = {**columns.partition, **columns.measures}
        given = [dict(row) for row in expected]
        labels = {name for row in given for name in row if name not in places or name in columns.labels}
        for name in sorted(labels - set(columns.labels)):
            raise _not_shown(name, columns)
        names = frozenset(name for row in given for name in row) - labels
        for row in given:
            if missing := sorted(names - set(row)):
                raise ValueError(
                    f"{missing[0]} is expected of one complex event but not of {row}: name it in all"
                )
        types = {name: schema.field(places[name]).type for name in names}
        rows = tuple(
            Shown(
                _marks({name: value for name, value in row.items() if name in labels}, events),
                tuple((name, _value(row[name], types[name])) for name in sorted(names)),
            )
            for row in given
        )
        durations = frozenset(name for name, kind in types.items() if pa.types.is_duration(kind))
        return Wanted(rows, bool(labels) or not names, names, durations)

    def of_shown(self, shown: Iterable[Shown]) -> list[Shown]:
        """The complex events of an answer, reduced to the compared parts."""
        return [
            Shown(
                row.marks if self.labels else (),
                tuple((name, _comparable(value)) for name, value in row.values if name in self.names),
            )
            for row in shown
        ]

    def compared(self, shown: Sequence[Shown]) -> list[tuple[str, Shown]]:
        """The complex events that are missing, unexpected and as expected, each with that word."""
        there, asked = Counter(shown), Counter(self.rows)
        kinds = {"missing": asked - there, "unexpected": there - asked, "as expected": there & asked}
        return [
            (kind, element) for kind, which in kinds.items() for element in sorted(which.elements(), key=repr)
        ]

    def values_shown(self, rows: Sequence[tuple[str, Shown]]) -> str:
        """The values of complex events, one line for each, after its word."""
        width = max((len(word) for word, row in rows if row.values), default=0)
        return "\n".join(f"{word:<{width}}  {self._text(row)}" for word, row in rows if row.values)

    def _text(self, row: Shown) -> str:
        shown = {
            name: ShownDuration.of(value) if name in self.durations and value is not None else value
            for name, value in row.values
        }
        return ", ".join(f"{name} = {value!r}" for name, value in shown.items())


def _not_shown(name: str, columns: AnswerColumns) -> ValueError:
    shown = [*columns.labels, *columns.partition, *columns.measures]
    if not shown:
        return ValueError(
            f"{name} is expected, but the query shows nothing: give the number of complex events instead"
        )
    advice = "" if columns.labels else "; it shows no label, so positions cannot be compared"
    return ValueError(f"{name} is expected, but the query shows {some(shown, word='and')}{advice}")


def _marks(expected: Mapping[str, Any], events: int) -> Marked:
    marked: dict[str, tuple[int, ...]] = {}
    for label, given in expected.items():
        places = (
            (given,) if isinstance(given, int) else tuple(given) if isinstance(given, Iterable) else (None,)
        )
        if not all(type(place) is int for place in places):
            raise ValueError(f"{label} is a label: give the positions of its events, not {given!r}")
        for place in places:
            if not 0 <= place < events:
                raise ValueError(f"{label} is expected at {place}, but positions are 0 to {events - 1}")
        marked[label] = places
    return tuple(
        sorted((label, tuple(sorted(positions))) for label, positions in marked.items() if positions)
    )


def _value(given: Any, kind: pa.DataType) -> Any:
    """An expected value of a column of this type, in the form that answers use."""
    if given is None:
        return None
    try:
        if pa.types.is_duration(kind):
            length = duration_in(given) if isinstance(given, str) else given
            return length // timedelta(microseconds=1) * 1000 if isinstance(length, timedelta) else _refuse()
        if pa.types.is_timestamp(kind) and isinstance(given, str):
            given = datetime.fromisoformat(given)
        if isinstance(given, datetime):
            given = given if given.tzinfo else given.replace(tzinfo=UTC)
            return _comparable(given if kind.tz else given.astimezone(UTC).replace(tzinfo=None))
        if pa.types.is_decimal(kind) and isinstance(given, float):
            return Decimal(repr(given))
        if isinstance(given, int | float | Decimal) != _is_number(kind) and not pa.types.is_nested(kind):
            _refuse()
    except (ValueError, TypeError, AttributeError, DataError):
        raise ValueError(f"{given!r} is not a value for a column of type {kind}") from None
    return _comparable(given)


def _is_number(kind: pa.DataType) -> bool:
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(is_kind(kind) for is_kind in numbers)


def _refuse() -> Any:
    raise ValueError


def _comparable(value: Any) -> Any:
    """A value that compares as people expect: NaN equals itself, and floats agree in their first digits."""
    if isinstance(value, float):
        return "NaN" if value != value else float(f"{value:.{_DIGITS}g}")  # noqa: PLR0124  (NaN)
    if isinstance(value, Decimal):
        return value
    if isinstance(value, list | tuple):
        return tuple(map(_comparable, value))
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if isinstance(value, dict):
        return tuple((name, _comparable(item)) for name, item in value.items())
    return value if isinstance(value, date | str | int | timedelta | bytes) or value is None else str(value)
