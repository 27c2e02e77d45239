"""What a plan is, as a short text that is equal in every process: a state is only good for its own plan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Final, Protocol

from estero.language.check.set_predicates import RegisteredPredicate

APART: Final = {"part of states": False}
"""The metadata of a field that states do not depend on, although plans are compared by it."""
STATE_VERSION = 7
"""To be raised whenever a state of the same plan means something else than before."""


class Columns(Protocol):
    """The columns of classified events, as a `pyarrow.Schema` has them."""

    @property
    def names(self) -> list[str]:
        """The names, in order."""

    @property
    def types(self) -> Iterable[object]:
        """The types, in order; each prints as something that says what it is."""


def digest(parts: Iterable[object]) -> str:
    """32 hexadecimal digits that tell these parts, in this order and for this version, from any others."""
    text = "\n".join(_canonical([STATE_VERSION, *parts]))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _canonical(value: object) -> Iterator[str]:
    """A value in lines; sets and mappings in order of what they print."""
    match value:
        case None | bool() | int() | float() | str():
            yield f"{type(value).__name__} {value!r}"
        case Enum():
            yield f"{type(value).__name__}.{value.name}"
        case RegisteredPredicate():
            yield f"predicate {value.name} of {value.arguments}"
        case frozenset() | set():
            yield from _block("set", sorted(" ".join(_canonical(item)) for item in value))
        case Mapping():
            items = sorted(" ".join(_canonical(item)) for item in value.items())
            yield from _block("mapping", items)
        case tuple() | list():
            yield from _block("list", (line for item in value for line in _canonical(item)))
        case _ if is_dataclass(value):
            compared = [
                member.name for member in fields(value) if member.compare and member.metadata != APART
            ]
            lines = (line for name in compared for line in _canonical(getattr(value, name)))
            yield from _block(type(value).__name__, lines)
        case _:
            yield f"{type(value).__name__} {value}"


def _block(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{title}("
    yield from lines
    yield ")"
