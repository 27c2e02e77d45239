"""The columns that Estero makes beside those of the events, and how both keep out of each other's way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from estero.errors import DataError

_WORKING = re.compile(
    "__(position|time|arrival|type|ordinal|held_[a-z]+|(key|bits|screen|value)[0-9]+)", re.IGNORECASE
)
_NOT_SHOWN = re.compile("__(key|bits|value)[0-9]+")


def is_working(name: str) -> bool:
    """Whether Estero gives this name to a column of its own, in this case or another."""
    return _WORKING.fullmatch(name) is not None


def is_kept(name: str) -> bool:
    """Whether a column of classified events is kept until it is shown: all but keys, bits and values."""
    return _NOT_SHOWN.fullmatch(name) is None


def numbered(prefix: str, names: Iterable[str]) -> list[str]:
    """Those of the names that are the prefix and a number, in their order."""
    return [name for name in names if name.startswith(prefix) and name[len(prefix) :].isdecimal()]


def check_names(names: Sequence[str], file: str | None) -> None:
    """Raises `DataError` for no columns, and for names that engines take for one another or that Estero uses.

    They take names that differ in case only for one, and DuckDB reads a name up to a NUL.
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
        if is_working(name):
            raise DataError(
                f"the column name {name!r} is used by Estero itself", file=file, hint="rename the column"
            )
        if "\0" in name:
            raise DataError(
                f"the column name {name!r} holds a NUL character", file=file, hint="rename the column"
            )


def check_names_together(tables: Mapping[str, Iterable[str]]) -> None:
    """Raises `DataError` where tables of several types have names that differ in case only."""
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


def alike(one: str, other: str, file: str | None) -> DataError:
    """The error for two columns whose names engines do not tell apart."""
    return DataError(
        f"the columns {one!r} and {other!r} differ in case only", file=file, hint="rename one of them"
    )
