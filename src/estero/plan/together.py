"""Several plans over one classified stream: the common classification, and what each plan reads of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, TypeVar

from estero.language.tree.expressions import Attribute
from estero.language.tree.paths import is_path
from estero.language.tree.schema import Kind
from estero.plan.plan import Classification

T = TypeVar("T")

_NUMBERS: Final = frozenset({Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.NULL})
"""The kinds of columns whose values are compared as they are."""


def together(classifications: Sequence[Classification]) -> Classification:
    """The union of classifications, with the keys and order of the first and a schema of all paths read.

    The predicates of the first come first, and so keep their bits. Raises ValueError if others have other
    keys.
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


def reading_of(known: Classification, checked: Collection[str] | None = None) -> tuple[object, ...]:
    """The part that classifications must have in common to be evaluated `together`.

    Values that are compared by their hashes are the same whatever else is compared, and so are numbers of
    columns, except those in `checked`, because not all of theirs have 64 bits (None: all may be checked).
    Other values are not: times are in nanoseconds if some time is, and values that may overflow are computed
    only for events that matter.
    """
    kinds = known.schema.column_kinds
    own = tuple(
        value
        for value in known.values
        if value.hashed is None
        and not (
            isinstance(value.expression, Attribute)
            and checked is not None
            and value.expression.name not in checked
            and kinds.get(value.expression.name, Kind.NULL) in _NUMBERS
        )
    )
    return known.keys, own, known.type_column, known.only_type


def _all(lists: Iterable[Sequence[T]]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(lists)))
