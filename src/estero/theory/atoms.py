"""Writes the events that one transition of an automaton reads as a pattern of one event.

They are the atoms of Theorem 6.2 of "A Second-Order Approach to Complex Event Recognition" (docs/papers.md).
In a pattern a type name marks its own events, so labels that a transition does not give are renamed, or
dropped by KEEP at the top. A filter moves to the top if all events of its variable satisfy it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from estero.automata.cea import EventPredicate, Guard, LabelSet
from estero.automata.reads import Read, event_type
from estero.language.tree import pattern as p
from estero.language.tree.expressions import EventFilter, Node


def absent_of(guard: Guard, predicates: Sequence[EventPredicate]) -> p.Link | None:
    """The link ``; NOT(…) ;`` for a guard that only forbids events, or ``;`` if it is empty; else None."""
    if guard.present:
        return None
    absent: list[p.Pattern] = []
    for bit in sorted(guard.absent):
        for name in predicates[bit].types:
            event, condition = event_type(name), predicates[bit].condition
            absent.append(event if condition is None else p.Filter(event, EventFilter(event.name, condition)))
    return p.Link(False, tuple(absent))


@dataclass(frozen=True, slots=True)
class Atoms:
    """A writer of reads as patterns; `wanted` are the labels of the automaton, `top` the top filters."""

    wanted: LabelSet
    dropped: str
    top: Mapping[str, Node]

    def pattern(self, read: Read) -> p.Pattern:
        """The pattern of one event, which has the labels of the read once only `wanted` ones are kept."""
        raised = any(label in self.top for label in read.labels)
        parts: dict[LabelSet, list[p.Pattern]] = {}
        for name, condition in read.cases:
            event = event_type(name)
            one: p.Pattern = event
            if condition is not None and not raised:
                one = p.Filter(event, EventFilter(event.name, condition))
            given = event.name
            if event.name in self.wanted and event.name not in read.labels:
                given = min(read.labels, default=self.dropped)
                one = p.Rename(one, event.name, given)
            parts.setdefault(read.labels - {given}, []).append(one)
        marked = [_named(_either(alternatives), labels) for labels, alternatives in parts.items()]
        whole = _either(marked)
        match read.first:
            case None:
                return whole
            case True:
                return p.Start(whole)
            case False:
                return p.Unless(whole, p.Start(_either([event_type(name) for name, _ in read.cases])))


def atoms_for(reads: Sequence[Read], types: Iterable[str]) -> Atoms:
    """The writer of these reads, with the labels that are wanted and the filters that can stand at the top.

    ``x[p]`` at the top requires p of every event marked x, so it may stand there if every such event needs p.
    """
    conditions: dict[str, set[Node | None]] = {}
    taken = {event_type(name).name for name in types}
    for read in reads:
        taken.update(event_type(name).name for name, _ in read.cases)
        for label in read.labels:
            conditions.setdefault(label, set()).update(condition for _, condition in read.cases)
    alike = {
        label: condition
        for label, asked in conditions.items()
        if len(asked) == 1 and (condition := next(iter(asked))) is not None
    }
    wanted = frozenset(conditions)
    dropped = "_"
    while dropped in wanted or dropped in taken:
        dropped += "_"
    # A variable stands for its event rather than the name of a type.
    speakers = [
        min(candidates, key=lambda label: (label in taken, label))
        for read in reads
        if (candidates := [label for label in read.labels if label in alike])
    ]
    return Atoms(wanted, dropped, {label: alike[label] for label in speakers})


def _named(pattern: p.Pattern, labels: LabelSet) -> p.Pattern:
    for label in sorted(labels):
        pattern = p.As(pattern, label)
    return pattern


def _either(parts: Sequence[p.Pattern]) -> p.Pattern:
    return parts[0] if len(parts) == 1 else p.Disjunction(tuple(parts))
