"""Join keys of events, made of values that the classification computes."""

from __future__ import annotations

from dataclasses import dataclass

from estero.language.tree.expressions import ComparisonOperator


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One value of a join key: the non-NULL one among the values of the classification numbered `values`.

    Each has one value column, or two for strings (their two hashes); at most one of them is not NULL in an
    event. With `null` an event without a value gets one that equals that of all such events. `listed` names
    an attribute that is a list: each of its elements is a value, and there are no value columns then.
    """

    values: tuple[tuple[int, ...], ...]
    null: bool = False
    listed: str | None = None


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """The composition of a join key; `exact` if its values fit into 128 bits as they are.

    `null` is as in `JoinKey`.
    """

    parts: tuple[KeyPart, ...]
    exact: bool
    null: int | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """Compares by `operator` value column `left` of the earlier event with `right` of the current one.

    For a range, this is its lower end, and `upper` is the right column and the operator of the upper end.
    """

    operator: ComparisonOperator
    left: int
    right: int
    upper: tuple[int, ComparisonOperator] | None = None
