"""The conditions of DEFINE, divided into those decided by rows and those decided by the match so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from estero.language.row_patterns.slots import Expression
from estero.recognize.row_patterns.conditions import divided
from estero.recognize.row_patterns.search import MOST_STEPS, remembers_pairs


@dataclass(frozen=True)
class Conditions:
    """The conditions of DEFINE: on rows, by variable, and on the match so far."""

    near: Mapping[str, Expression]
    far: Mapping[str, Expression]

    @property
    def strategy(self) -> str:
        """The one of three strategies that finds the matches, and its cost."""
        if not self.far:
            return (
                "linear: a backward pass marks the possible matches, and a forward pass takes the preferred"
            )
        if remembers_pairs(self.far.values()):
            return (
                "backtracking that remembers the states that failed at each row: rows × states for each start"
            )
        return (
            "backtracking that remembers what failed, because DEFINE refers to the match so far; "
            f"it ends with an error after {MOST_STEPS:,} steps from one start"
        )


def conditions_of(conditions: Mapping[str, Expression]) -> Conditions:
    """The conditions in their two parts."""
    parts = {variable: divided(condition) for variable, condition in conditions.items()}
    return Conditions(
        {variable: part.near for variable, part in parts.items() if part.near is not None},
        {variable: part.far for variable, part in parts.items() if part.far is not None},
    )
