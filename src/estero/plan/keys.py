"""Join keys of events, made of values that the classification computes."""

from __future__ import annotations

from dataclasses import dataclass

from estero.language.tree.expressions import ComparisonOperator


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One value of a join key: of numbers `values` of the classification those that are not NULL.

    Each has one value column, or two for strings (their two hashes); an event has at most one of them. With
    `null` an event without any has a value all the same, which equals that of all such events. `listed` names
    an attribute that is a list; each of its elements is a value, and there are no value columns then.
    """

    values: tuple[tuple[int, ...], ...]
    null: bool = False
    listed: str | None = None


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """How a join key is put together; `exact` where its values fit into 128 bits as they are.

    `null` is as in `JoinKey`.
    """

    parts: tuple[KeyPart, ...]
    exact: bool
    null: int | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """Value column `left` of the event before compares by `operator` with column `right` of that at hand.

    Where it is in a range, that is the lower end, and it compares by the second of `upper` with the first.
    """

    operator: ComparisonOperator
    left: int
    right: int
    upper: tuple[int, ComparisonOperator] | None = None
