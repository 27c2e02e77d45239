"""The events that one transition of an automaton reads: their types, with a condition for each type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from estero.automata.cea import CEA, FIRST, Guard, LabelSet
from estero.language.tree import pattern as p
from estero.language.tree.conditions import conjoined, conjuncts
from estero.language.tree.expressions import Call, Literal, Node, Not


class NoTypesError(ValueError):
    """An error: a transition reads events of any type, and the types of the stream are not given."""


@dataclass(frozen=True, slots=True)
class Read:
    """An event of a type in `cases` that satisfies the condition of its type (None: no condition).

    It must be the first of its stream if `first` is true, and must not be if it is false; None: either.
    """

    cases: tuple[tuple[str, Node | None], ...]
    labels: LabelSet
    first: bool | None = None


def read_of(guard: Guard, labels: LabelSet, cea: CEA, types: Sequence[str] | None) -> Read | None:
    """The events that pass `guard`, or None if there are none; `types` are all types of the stream.

    Raises `NoTypesError` if the guard names no type and `types` is None.
    """
    present, absent = (
        [cea.predicates[bit] for bit in sorted(bits)] for bits in (guard.present, guard.absent)
    )
    first = True if FIRST in present else False if FIRST in absent else None
    names = cea.types_of(guard)
    if names is None and types is None:
        raise NoTypesError(
            "a transition reads events of any type, and a pattern names the types it reads: "
            "say with types=[…] which there are"
        )
    asked = [part for predicate in present for part in conjuncts(predicate.condition)]
    cases = []
    for name in names if names is not None else dict.fromkeys(types or ()):
        refuted = [predicate.condition for predicate in absent if name in predicate.types]
        if None not in refuted:
            cases.append((name, conjoined([*asked, *map(not_true, filter(None, refuted))])))
    return Read(tuple(cases), labels, first) if cases else None


def not_true(condition: Node) -> Node:
    """A condition that is true if `condition` is false or unknown, unlike NOT, which is unknown then."""
    return Not(Call("coalesce", (condition, Literal(False))))


def event_type(name: str) -> p.EventType:
    """The atom that reads events of exactly this type in a query that names no stream."""
    stream, sign, local = name.partition(">")
    return p.EventType(local, stream) if sign and stream and local else p.EventType(name)
