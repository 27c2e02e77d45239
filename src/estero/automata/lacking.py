"""The absence of an event within some distance before or after another one, as a condition on the latter.

To the automaton it is a predicate of one event like any other; as no column has its value, the reader of the
stream computes it (engine/deadlines.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from estero.automata.cea import EventPredicate
from estero.language.tree.conditions import conjoined, conjuncts
from estero.language.tree.distances import Distance
from estero.language.tree.expressions import Node


@dataclass(frozen=True, slots=True)
class Lacking(Node):
    """A condition on an event: no `forbidden` event of its partition is near it, before or (`ahead`) after.

    `apart` is the distance that such an event must have; `said` is the text in the query. If the forbidden
    event is `compared` with other events, a residual filter checks those nearby.
    """

    forbidden: EventPredicate
    apart: Distance
    ahead: bool
    said: str
    compared: bool = False

    def __str__(self) -> str:
        return f"{self.said} {'after' if self.ahead else 'before'} it"


def lacking(predicate: EventPredicate) -> Iterator[Lacking]:
    """The conditions of a predicate on other events."""
    return (conjunct for conjunct in conjuncts(predicate.condition) if isinstance(conjunct, Lacking))


def of_one_event(predicate: EventPredicate) -> EventPredicate:
    """The predicate with its conditions on the event itself alone."""
    asked = [conjunct for conjunct in conjuncts(predicate.condition) if not isinstance(conjunct, Lacking)]
    return replace(predicate, condition=conjoined(asked))
