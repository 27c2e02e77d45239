"""The identity of a plan as a short text, equal in every process: a state is valid only for its own plan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Final, Protocol

from estero.language.check.set_predicates import RegisteredPredicate

APART: Final = {"part of states": False}
"""The metadata of a field on which states do not depend, although plans are compared by it."""
STATE_VERSION = 7
"""The version of states, to be raised whenever a state of the same plan gets another meaning."""


class Columns(Protocol):
    """The columns of classified events, as a `pyarrow.Schema` has them."""

    @property
    def names(self) -> list[str]:
        """The names, in order."""

    @property
    def types(self) -> Iterable[object]:
        """The types, in order; each prints as a description of itself."""


def digest(parts: Iterable[object]) -> str:
    """A digest of 32 hexadecimal digits of these parts, in this order and for this version."""
    text = "\n".join(_canonical([STATE_VERSION, *parts]))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _canonical(value: object) -> Iterator[str]:
    """A value as lines; sets and mappings are in the order of their printed elements."""
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
