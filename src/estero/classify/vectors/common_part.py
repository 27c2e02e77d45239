"""The bits of conditions, and what the conditions have in common: where it is rare, the rest costs little."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from estero.classify.column_names import WORD
from estero.classify.vectors.compile import joined
from estero.classify.vectors.conditions import Condition, Constant, Joined

_ALWAYS, _NEVER = Constant(holds=True), Constant(holds=False)


class Factored(NamedTuple):
    """Conditions as ``common AND rest``, with a rest for each of them, None for one that always holds."""

    common: Condition
    rests: tuple[Condition | None, ...]


class Tests(NamedTuple):
    """The bits of each condition, word by word; `unasked` are the words in which none is evaluated."""

    words: list[dict[Condition | None, int]]
    unasked: list[dict[Condition | None, int]]

    @classmethod
    def of(cls, bits: Sequence[Condition | None]) -> Tests:
        """The tests of one bit for each condition, None for one that all rows satisfy after a screen."""
        parts = [bits[first : first + WORD] for first in range(0, max(1, len(bits)), WORD)]
        return cls(list(map(_masks, parts)), [_masks([None] * len(part)) for part in parts])

    @property
    def always(self) -> bool:
        """Whether some condition always holds."""
        return any(_ALWAYS in masks for masks in self.words)


class FewTests(NamedTuple):
    """The tests of rows in which `common` holds, and the columns that they read."""

    common: Condition
    columns: list[str]
    tests: Tests


def factored(conditions: Sequence[Condition | None]) -> Factored | None:
    """The conditions with their common part, None for one that always holds; None if they share none."""
    parts = [() if condition is None else _parts(condition) for condition in conditions]
    asked = [own for own in parts if own != (_NEVER,)]
    common = [part for part in asked[0] if all(part in own for own in asked)] if asked else []
    if not common or common == [_ALWAYS]:
        return None
    rests = ([part for part in own if part not in common] for own in parts)
    return Factored(
        joined(common, some=False), tuple(joined(own, some=False) if own else None for own in rests)
    )


def columns_in(condition: Condition | None) -> Iterator[str]:
    """The columns that a condition reads, with repetitions."""
    if isinstance(condition, Joined):
        for part in condition.parts:
            yield from columns_in(part)
    elif condition is not None and not isinstance(condition, Constant):
        yield from getattr(condition, "columns", ()) or (getattr(condition, "column"),)  # noqa: B009


def _parts(condition: Condition) -> tuple[Condition, ...]:
    """The conditions that a condition joins by AND."""
    return condition.parts if isinstance(condition, Joined) and not condition.some else (condition,)


def _masks(conditions: Iterable[Condition | None]) -> dict[Condition | None, int]:
    """The bits of each distinct condition."""
    masks: dict[Condition | None, int] = {}
    for bit, condition in enumerate(conditions):
        if condition != Constant(holds=False):
            masks[condition] = masks.get(condition, 0) | 1 << bit
    return masks
