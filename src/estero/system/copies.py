"""Copies of frozen dataclasses in which some fields are others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

Copied = TypeVar("Copied")


def copied(value: Copied, **others: Any) -> Copied:
    """The value with other fields, without what its class does or checks when one is made.

    It is for fields on which nothing else depends, of thousands of values: `dataclasses.replace` asks each
    field what it is and takes ten times as long.
    """
    kind: Any = type(value)
    made: Copied = object.__new__(kind)
    slots = _slots(kind)
    for put, get in slots.values():
        put(made, get(value))
    for name, other in others.items():
        slots[name][0](made, other)
    return made


@cache
def _slots(kind: Any) -> dict[str, tuple[Callable[[Any, Any], None], Callable[[Any], Any]]]:
    """The fields of a class with slots, by name: how they are put and how they are read."""
    slots = ((field.name, getattr(kind, field.name)) for field in fields(kind))
    return {name: (slot.__set__, slot.__get__) for name, slot in slots}
