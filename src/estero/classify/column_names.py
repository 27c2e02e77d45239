"""Names of columns: those that Estero adds, and those of the events beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from estero.errors import DataError
from estero.language.tree.paths import JOINT, is_path

# Classified events. A name that several columns share is written without the number that ends each of them.
POSITION: Final = "__position"
"""The position of an event in the whole stream, from 0."""
TIME: Final = "__time"
"""The time of an event in ticks."""
PLACE: Final = "__place"
"""The position of a row among all rows, if an event has one row for each of its keys."""
ORDINAL: Final = "__ordinal"
"""The position of an event in the stream of its partition, if contiguity needs it."""
KEYS: Final = ("__key0", "__key1")
"""The halves of the partition key."""
BITS: Final = "__bits"
"""The words of bits: which predicates are true."""
WORD: Final = 63
"""Predicates per word: the sign bit stays free."""
VALUES: Final = "__value"
"""The values that registers and joins compare."""
SCREENED: Final = "__screen"
"""The words of bits of the predicates that the strings of an event do not rule out (screening.py)."""
ARRIVAL: Final = "__arrival"
"""The position of an event before sorting."""
MAPPED_TYPE: Final = "__type"
"""The type of an event if each type has its own table; late events show it."""

# Starts and how far they come (levels.py).
BEGAN: Final = "__began"
"""The time of a start in ticks."""
REACHED: Final = "__reached"
"""The times at which levels were first reached."""

# Events that wait in the reorder buffer have these as well.
HELD: Final = "__held_"
"""The prefix of their names."""
HELD_TIME: Final = "__held_time"
HELD_ARRIVAL: Final = "__held_arrival"
HELD_ORDER: Final = "__held_order"
HELD_RELEVANT: Final = "__held_relevant"
HELD_ERA: Final = "__held_era"
"""The number of times the rules of a set had changed when an event came."""

# Rows of a relation that numbers them have these as well (relations.py).
RELATION_UNSURE: Final = "__relation_unsure"
"""Whether a row is not known to follow the previous one."""
RELATION_LAST: Final = "__relation_last"
"""Whether a row is the last one."""

# Spark only. Columns of events are referred to by index there, so that no SQL contains a user's names
# (frames.py).
COLUMN: Final = "__column"
"""The columns of events while Spark computes."""
PAYLOAD: Final = "__payload"
"""The shown attributes of events on the way to Python: PySpark stumbles over names with dots."""
EVENT: Final = "__event"
"""Whole events on the way to Python."""
ORDER: Final = "__order"
"""The sort key of the stream."""
RELEVANT: Final = "__relevant"
"""Whether an event is relevant, in tables that also hold irrelevant ones."""
KEYED: Final = "__keyed"
"""Whether an event has a partition key, in tables that also hold events without one."""
CLOCK: Final = "__clock"
"""The times added by Estero that Spark follows as the watermark."""
HOME: Final = "__home"
"""The range of time that contains an event."""
TASK: Final = "__task"
"""The range whose task gets an event: its own, or one with the event in its halo."""
SHARE: Final = "__share"
"""The number of a task's share, if tasks share an enumeration."""

_WORKING: Final = (
    "__(position|place|time|arrival|ordinal|began|(held|relation)_[a-z]+"
    "|(key|bits|screen|value|held_order|reached)[0-9]+)"
)
_NOT_KEPT: Final = re.compile("__(key|bits|value)[0-9]+")
_STANDING_IN: Final = "__own"
_INSIDE: Final = "__inside"
_JOINT: Final = "\x1f"
"""The stand-in for the joint of a path in a column name: DuckDB cannot read a NUL."""
# DuckDB has no empty names, and takes names that differ in case only for one.
_STOOD_IN_FOR: Final = re.compile(f"|({_STANDING_IN}|{_INSIDE}).*|{_WORKING}", re.IGNORECASE | re.DOTALL)


def bits_name(word: int) -> str:
    """The name of the column that holds predicates ``63 * word …``."""
    return f"{BITS}{word}"


def word_names(predicates: int) -> list[str]:
    """The names of the columns with the words of bits for a number of predicates; at least one."""
    return list(map(bits_name, range(max(1, -(-predicates // WORD)))))


def screen_name(word: int) -> str:
    """The name of the column that holds the screened parts of predicates ``63 * word …``."""
    return f"{SCREENED}{word}"


def value_name(number: int) -> str:
    """The name of the column that holds value number `number`."""
    return f"{VALUES}{number}"


def payload_name(place: int) -> str:
    """The transfer name of an attribute of the payload; PySpark stumbles over names with dots."""
    return f"{PAYLOAD}{place}"


def event_column(name: str) -> str:
    """The name of a column of events in tables with working columns: its own if it is free.

    >>> event_column("price"), event_column("__Time"), event_column("")
    ('price', '__own__Time', '__own')
    """
    if is_path(name):
        return f"{_INSIDE}{name.replace(JOINT, _JOINT)}"
    return f"{_STANDING_IN}{name}" if _STOOD_IN_FOR.fullmatch(name) else name


def attribute_in(column: str) -> str:
    """The attribute in a column of a table with working columns: the inverse of `event_column`."""
    if column.startswith(_INSIDE):
        return column.removeprefix(_INSIDE).replace(_JOINT, JOINT)
    return column.removeprefix(_STANDING_IN)


def is_working(name: str) -> bool:
    """Whether a column of a classified table is made by Estero."""
    return re.fullmatch(_WORKING, name) is not None


def place_column(names: Iterable[str]) -> str:
    """The column whose numbers identify the rows of a classified table, ascending in stream order."""
    return PLACE if PLACE in names else POSITION


def is_kept(name: str) -> bool:
    """Whether a column of classified events is kept until it is shown: all but keys, bits and values."""
    return _NOT_KEPT.fullmatch(name) is None


def numbered(prefix: str, names: Iterable[str]) -> list[str]:
    """The names that consist of the prefix and a number, in numeric order."""
    return [name for name in names if name.startswith(prefix) and name[len(prefix) :].isdecimal()]


def free_name(name: str, taken: Iterable[str]) -> str:
    """The name, with underscores added until no column has it in any case."""
    lower = {name.lower() for name in taken}
    while name.lower() in lower:
        name += "_"
    return name


def check_names(names: Sequence[str], file: str | None) -> None:
    """Raises `DataError` for no columns, and for names that engines cannot distinguish or read.

    They ignore case, and DuckDB reads a name up to a NUL.
    """
    if not names:
        raise DataError("the events have no columns", file=file)
    known: dict[str, str] = {}
    for name in names:
        other = known.get(name.lower())
        if other == name:
            raise DataError(f"two columns are named {name!r}", file=file)
        if other is not None:
            raise alike(other, name, file)
        known[name.lower()] = name
        if JOINT in name:
            raise DataError(
                f"the column name {name!r} holds a NUL character", file=file, hint="rename the column"
            )


def check_names_together(tables: Mapping[str, Iterable[str]]) -> None:
    """Raises `DataError` if tables of several types have names that differ only in case."""
    known: dict[str, tuple[str, str]] = {}
    for table, names in tables.items():
        for name in names:
            other, where = known.setdefault(name.lower(), (name, table))
            if other != name:
                raise DataError(
                    f"the columns {other!r} in the table of {where} and {name!r} in that of {table} "
                    "differ in case only",
                    hint="give them one name, or two that differ in more",
                )


class AlikeNamesError(DataError):
    """The error for two columns whose names engines cannot distinguish."""


def alike(one: str, other: str, file: str | None) -> AlikeNamesError:
    """The error for two columns whose names engines cannot distinguish."""
    return AlikeNamesError(
        f"the columns {one!r} and {other!r} differ in case only", file=file, hint="rename one of them"
    )
