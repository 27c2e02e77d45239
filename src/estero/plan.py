"""From a checked query to a plan: what is classified, which automaton runs, what is reported."""

from __future__ import annotations

from dataclasses import dataclass

from estero.automata.cea import EventPredicate
from estero.language.schema import Schema


@dataclass(frozen=True, slots=True)
class Classification:
    """What the classify stage computes for each event (algorithms.md, "Three stages").

    Bit k says whether `predicates[k]` is true of the event. `keys` holds, for each bracket of
    PARTITION BY, the alternatives in order. `keep_all` keeps events with no bit set as well, because
    an operator has to see them. `order` breaks ties of time; `payload` names the attributes that the
    report shows. Without `type_column` every event is of type `only_type`.
    """

    predicates: tuple[EventPredicate, ...]
    schema: Schema
    type_column: str | None = None
    only_type: str = "Event"
    keys: tuple[tuple[str, ...], ...] = ()
    keep_all: bool = False
    order: tuple[str, ...] = ()
    payload: tuple[str, ...] = ()
