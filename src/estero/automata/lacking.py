"""What must not happen so long before or after an event, as a condition on that event.

An automaton asks it as it asks any predicate of one event; who reads the stream finds out what is true
(engine/deadlines.py), as no column says it.
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
    """No event of its partition that `forbidden` is true of is before it, or behind it (`ahead`), so near.

    `apart` says how far away such an event has to be; `said` is what the query writes. If it is `compared`
    with other events, that event alone does not tell: a residual filter looks at those nearby.
    """

    forbidden: EventPredicate
    apart: Distance
    ahead: bool
    said: str
    compared: bool = False

    def __str__(self) -> str:
        return f"{self.said} {'after' if self.ahead else 'before'} it"


def lacking(predicate: EventPredicate) -> Iterator[Lacking]:
    """What a predicate asks of other events."""
    return (conjunct for conjunct in conjuncts(predicate.condition) if isinstance(conjunct, Lacking))


def of_one_event(predicate: EventPredicate) -> EventPredicate:
    """What a predicate asks of the event itself."""
    asked = [conjunct for conjunct in conjuncts(predicate.condition) if not isinstance(conjunct, Lacking)]
    return replace(predicate, condition=conjoined(asked))
