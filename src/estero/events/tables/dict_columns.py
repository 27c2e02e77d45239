"""Dicts as a table: a column for each key, with values of several kinds as texts, as in JSON files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

_SCALARS: Final = (str, bool, int, float)
_FAILURES: Final = (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError)


def table_of_dicts(events: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A row for each dict; missing keys are NULL.

    A column, or a field inside one, whose values are texts next to numbers or truth values, truth values next
    to numbers, or integers beyond 64 bits, has the texts of all of them. Raises errors of Arrow for values
    that have no common type.
    """
    names = dict.fromkeys(name for event in events for name in event)
    return pa.table({name: _array([event.get(name) for event in events]) for name in names})


def _array(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except _FAILURES:
        return pa.array(_alike(values))


def _alike(values: list[Any]) -> list[Any]:
    """The values with texts in place of those that have no common type."""
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, Mapping) for value in known):
        names = dict.fromkeys(name for value in known for name in value)
        columns = {name: iter(_alike([value.get(name) for value in known])) for name in names}
        return [None if value is None else {name: next(columns[name]) for name in names} for value in values]
    if known and all(isinstance(value, list | tuple) for value in known):
        items = iter(_alike([item for value in known for item in value]))
        return [None if value is None else [next(items) for _ in value] for value in values]
    if not all(isinstance(value, _SCALARS) for value in known):
        return values
    kinds = {
        bool if isinstance(value, bool) else float if isinstance(value, int) else type(value)
        for value in known
    }
    large = any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in known)
    return [_text(value) for value in values] if len(kinds) > 1 or large else values


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
