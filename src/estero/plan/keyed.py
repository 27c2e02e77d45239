"""The common part of plans whose runs wait in indexes by join keys: automata that join, and chains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from estero.language.tree.words import named
from estero.plan.keys import KeyColumn
from estero.plan.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedPlan(Plan):
    """How a query is evaluated where events wait in indexes by join keys.

    `columns` are the join keys of the automaton, in its order.
    """

    columns: tuple[KeyColumn, ...]

    checked_by: ClassVar[str]
    """The name of the structure that checks comparisons as events arrive."""

    def key_lines(self) -> Iterator[str]:
        """The keys by which events are joined."""
        if self.shown_keys:
            keys = ", ".join(f"[{', '.join(map(named, bracket))}]" for bracket in self.shown_keys)
            yield f"partitions: by {keys}, which is part of every join key"
        known = self.classification.schema
        if not known.types and not known.shared:
            return
        exact = not self.shown_keys and all(column.exact for column in self.columns)
        keys = "stored as they are" if exact else "stored as two independent 64-bit hashes"
        yield f"join keys: computed by the classification, {keys}"

    def filter_lines(self) -> Iterator[str]:
        """Where each comparison of several events is checked, unless all are checked as events arrive."""
        if not self.residuals:
            return
        yield f"by {self.checked_by}, as each event arrives:"
        yield from (f"  {self.said(residual)}" for residual in self.pushed)
        yield from self.residual_lines()

    def heap_guarantee(self, update: str) -> str:
        """The cost of `update` per event as a function of the number of events, in words."""
        if self.window is None:
            return f"{update.format('n')} per event with n events read"
        return f"{update.format('w')} per event with w events in the window"
