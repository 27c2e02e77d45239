"""Filters that one-event predicates cannot express, as what has to be checked of a run's marks.

A filter inside a repetition holds for each round alone, and a variable bound around it for the round
that is around (FO-CEL; semantics.md, "The pattern"). Runs therefore carry *hidden* labels: where an
instance of a place of the pattern begins, and which events a variable has there. Answers do not show them.
"""

from __future__ import annotations

from dataclasses import dataclass

from estero.language.tree.expressions import Node
from estero.language.tree.pattern import PartitionKey

ALL_MARKED = "*"
"""Stands for a variable of all events that a pattern marks; no variable is called so."""


@dataclass(frozen=True, slots=True, order=True)
class Hidden:
    """A label for place number `place` of the pattern: the events of `variable` there.

    With an empty `variable` it is the first event of each instance of that place; an instance reaches to
    before the next one's first event.
    """

    place: int
    variable: str = ""

    def __str__(self) -> str:
        return f"#{self.place}.{self.variable}" if self.variable else f"#{self.place}"


HiddenSet = frozenset[Hidden]
NO_HIDDEN: HiddenSet = frozenset()
Key = str | Hidden
"""What says that an event belongs to a variable: a label of the answer, or a hidden one."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """``PARTITION BY [X.a, …]`` in a pattern: all values are equal and none is NULL."""

    keys: tuple[PartitionKey, ...]


@dataclass(frozen=True, slots=True)
class Residual:
    """A condition on the marks of a run.

    `bindings` gives the label behind each variable of `condition` (`ALL_MARKED` for the keys of an
    `Agreement` without variable). Without `place` the condition holds for the complex event as a whole,
    and all bindings are labels of the answer or hidden ones of the whole. With `place` it must be true
    of each instance of that place; a binding to another place means that place's instance around it.
    `refuted`: it must not be true (``NOT(…)`` in a sequence).
    """

    condition: Node | Agreement
    bindings: tuple[tuple[str, Key], ...]
    place: int | None = None
    refuted: bool = False
