"""Events written as a short text or as a small table, for tests and examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

import pyarrow as pa
from lark import Lark, Token, Transformer, UnexpectedInput, v_args

from estero.arguments import checked
from estero.errors import DataError
from estero.language.tree.durations import TimeUnit, unit_of

GRAMMAR: Final = r"""
stream: event*
event: WORD attributes? time?
attributes: "(" (attribute ("," attribute)*)? ")"
attribute: WORD "=" WORD
time: "@" WORD

WORD: /'(?:[^']|'')*'|[^\s,()=@']+/
%ignore /\s+/
"""
_PARSER: Final = Lark(GRAMMAR, start="stream", parser="lalr")
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?[^\W\d]+)+")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)([^\W\d]+)")
_INTEGER: Final = re.compile(r"-?\d+")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_WORDS: Final = {"true": True, "false": False, "null": None}
_FORM: Final = "an event is written A(k=1, name='x')@5s"
_TIMES: Final = (
    "a time is written 90s or 1m30s since the beginning, or 2026-03-02T12:00:05, or as a number of ticks"
)
_BEGIN: Final = datetime(1970, 1, 1)  # noqa: DTZ001  (these times have no zone)

Value = bool | int | float | str | None
Time = int | datetime | None


@dataclass(frozen=True, slots=True)
class _Event:
    """An event as it is written; the text of its time is empty if it has none."""

    type: str
    attributes: Mapping[str, Value] = field(default_factory=dict)
    time: str = ""


@checked
def events(text: str, *, type: str = "type", time: str = "time") -> pa.Table:
    """A table of the events that `text` describes, in the order in which they are written.

    In the short form an event is ``A(k=1, name='x')@5s``: its type, its attributes, its time. After the
    ``@`` comes a duration since the beginning (``90s``, ``1m30s``), a time (``2026-03-02T12:00:05``) or a
    number of ticks (``17``). Values are numbers, strings (in single quotes, or one word without), ``true``,
    ``false`` and ``null``. An attribute that an event does not name is NULL.

    A text with ``|`` is a table: a row with the names of its columns, then one for each event. Those called
    `type` and `time` are the type and the time; an empty cell is NULL.

    The columns are `type` (string), `time` if the events have one (timestamp[us] without a zone, beginning
    with 1970-01-01, or int64), then the attributes in the order of their first use (bool, int64, float64 or
    string).

    Raises `DataError`, with the number of the event, for what cannot be read, and for times that go back.

    >>> events("A(k=1)@0s B(k=1, v=2.5)@1m30s").to_pylist()[1]
    {'type': 'B', 'time': datetime.datetime(1970, 1, 1, 0, 1, 30), 'k': 1, 'v': 2.5}
    """
    for string in (text, type, time):
        if not string.isprintable() and any("\ud800" <= sign <= "\udfff" for sign in string):
            raise DataError(f"half of a surrogate pair is not a character: {string!r}")
    written = list(_rows(text, type, time) if "|" in text else _written(text))
    columns = {type: pa.array([event.type for event in written], pa.string())}
    times = _times(written)
    if any(time_ is not None for time_ in times):
        columns[time] = pa.array(times, pa.int64() if isinstance(times[0], int) else pa.timestamp("us"))
    for name in dict.fromkeys(name for event in written for name in event.attributes):
        if name in (type, time):
            raise DataError(
                f"an attribute has the same name as the {'type' if name == type else 'time'}: {name}"
            )
        columns[name] = _column(name, [event.attributes.get(name) for event in written])
    return pa.table(columns)


# ------------------------------------------------------------------------------------ the two forms


def _written(text: str) -> list[_Event]:
    try:
        return _Reader().transform(_PARSER.parse(text))
    except UnexpectedInput as error:
        where = error.get_context(text).rstrip()
        raise DataError(f"this is not how an event is written:\n{where}", hint=_FORM) from None


@v_args(inline=True)
class _Reader(Transformer[Token, list[_Event]]):
    """Converts the productions of the grammar into events."""

    def stream(self, *events: _Event) -> list[_Event]:
        return list(events)

    def event(self, type: Token, *parts: Mapping[str, Value] | str) -> _Event:
        attributes = next((part for part in parts if not isinstance(part, str)), {})
        return _Event(_text(type), attributes, next((part for part in parts if isinstance(part, str)), ""))

    def attributes(self, *pairs: tuple[str, Value]) -> Mapping[str, Value]:
        return dict(pairs)

    def attribute(self, name: Token, value: Token) -> tuple[str, Value]:
        return _text(name), _value(value)

    def time(self, word: Token) -> str:
        return _text(word)


def _rows(text: str, type: str, time: str) -> Iterator[_Event]:
    lines = [line.strip().strip("|") for line in text.splitlines() if line.strip(" |-:\n")]
    header, *rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    if type not in header:
        raise DataError(f"the first row has no column {type}: {' | '.join(header)}")
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise DataError(
                f"the row has {len(row)} cells, but there are {len(header)} columns: {' | '.join(row)}",
                row=number,
            )
        cells = dict(zip(header, row, strict=True))
        name, when = cells.pop(type), cells.pop(time, "")
        yield _Event(_text(name), {key: _value(cell) for key, cell in cells.items()}, _text(when))


# ------------------------------------------------------------------------------------ values and times


def _text(word: str) -> str:
    """A word unchanged, or without its quotes."""
    return word[1:-1].replace("''", "'") if word.startswith("'") else str(word)


def _value(word: str) -> Value:
    if not word or word in _WORDS:
        return _WORDS.get(word)
    if _INTEGER.fullmatch(word):
        return int(word)
    return float(word) if _NUMBER.fullmatch(word) else _text(word)


def _column(name: str, values: Sequence[Value]) -> pa.Array:
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    try:
        return pa.array(values, pa.string() if not kinds else None)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        said = ", ".join(sorted({repr(value) for value in values if value is not None}))
        raise DataError(f"values of several kinds: {said}", column=name) from None


def _times(written: Sequence[_Event]) -> list[Time]:
    """The times of events: either all of them have one, or none has."""
    times = [_time(event.time, number) for number, event in enumerate(written, 1)]
    for number, (before, later) in enumerate(pairwise(times), 2):
        here, earlier = (written[place].time or "no time" for place in (number - 1, number - 2))
        if type(before) is not type(later):
            raise DataError(
                f"the event has {here}, but the one before it has {earlier}",
                row=number,
                hint="give every event a duration or a time, or all a number of ticks, or none a time",
            )
        if before is not None and later < before:  # type: ignore[operator]  # both are of one type
            hint = "write events in the order of their times"
            raise DataError(
                f"the time {here} is before {earlier}, the time of the event before it", row=number, hint=hint
            )
    return times


def _time(text: str, number: int) -> Time:
    if not text:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        return _BEGIN + duration_in(text) if _DURATION.fullmatch(text) else datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise DataError(f"{text!r} is not a time", row=number, hint=_TIMES) from None


def duration_in(text: str) -> timedelta:
    """A duration such as ``1m30s``; raises ValueError for an unknown unit."""
    text = text.replace(" ", "")
    if not _DURATION.fullmatch(text):
        raise ValueError(text)
    parts = [(float(amount), TimeUnit.__members__.get(unit_of(unit))) for amount, unit in _PART.findall(text)]
    if any(unit is None for _, unit in parts):
        raise ValueError(text)
    return timedelta(microseconds=sum(amount * unit.value / 1000 for amount, unit in parts if unit))
