"""What several conditions have in common, which is evaluated first: the rest concerns few rows then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from estero.classify.vectors.compile import joined
from estero.classify.vectors.conditions import Condition, Constant, Joined

_ALWAYS, _NEVER = Constant(holds=True), Constant(holds=False)


class Factored(NamedTuple):
    """Conditions as ``common AND rest``, with a rest for each of them, None for one that always holds."""

    common: Condition
    rests: tuple[Condition | None, ...]


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
