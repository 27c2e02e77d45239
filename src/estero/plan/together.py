"""Several plans over one classified stream: what is asked of events for all of them, and what each reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from estero.language.tree.paths import is_path
from estero.plan.plan import Classification

T = TypeVar("T")


def together(classifications: Sequence[Classification]) -> Classification:
    """What all of these ask; keys and order are those of the first, the schema has the paths that any reads.

    Its own predicates come first, and so keep their bits. Raises ValueError where others have other keys.
    """
    first = classifications[0]
    if any(classification.keys not in ((), first.keys) for classification in classifications):
        raise ValueError("plans with several partition keys cannot read one stream")
    paths = {path for known in classifications for path in known.schema.column_kinds if is_path(path)}
    return replace(
        first,
        schema=first.schema.reading(paths) if paths else first.schema,
        predicates=_all(classification.predicates for classification in classifications),
        values=_all(classification.values for classification in classifications),
        payload=_all(classification.payload for classification in classifications),
        keep_all=any(classification.keep_all for classification in classifications),
    )


def reading_of(known: Classification) -> tuple[object, ...]:
    """What classifications have in common that can be asked `together`.

    Values that are compared by their hashes are the same whatever else is compared; others are not: they are
    in nanoseconds where some time is.
    """
    numbers = tuple(value for value in known.values if value.hashed is None)
    return known.keys, numbers, known.type_column, known.only_type


def _all(lists: Iterable[Sequence[T]]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(lists)))
