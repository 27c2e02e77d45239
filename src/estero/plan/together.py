"""Several plans over one classified stream: what is asked of events for all of them, and what each reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from estero.language.tree.schema import Kind, Schema
from estero.plan.plan import Classification

T = TypeVar("T")


def together(classifications: Sequence[Classification]) -> Classification:
    """What all of these ask; keys and order are those of the first, and the schema has the paths of all.

    Its own predicates come first, and so keep their bits. Raises ValueError where others have other keys.
    """
    first = classifications[0]
    if any(classification.keys not in ((), first.keys) for classification in classifications):
        raise ValueError("plans with several partition keys cannot read one stream")
    return replace(
        first,
        schema=_schema([classification.schema for classification in classifications]),
        predicates=_all(classification.predicates for classification in classifications),
        values=_all(classification.values for classification in classifications),
        payload=_all(classification.payload for classification in classifications),
        keep_all=any(classification.keep_all for classification in classifications),
    )


def _schema(schemas: Sequence[Schema]) -> Schema:
    """The schema of one stream with the fields and elements that any of these has as attributes."""
    first = schemas[0]
    if all(schema is first for schema in schemas):
        return first
    types: dict[str, dict[str, Kind]] = {}
    shared: dict[str, Kind] = {}
    for schema in schemas:
        for name, attributes in schema.types.items():
            types.setdefault(name, {}).update(attributes)
        shared |= schema.shared or {}
    return replace(first, types=types, shared=None if first.shared is None else shared)


def _all(lists: Iterable[Sequence[T]]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(lists)))
