"""A second reading of the pattern table: whether a given complex event belongs to a pattern, by trying.

The reference builds complex events; this takes one apart, so that the two share as little as possible. It
covers the patterns of `strategies.patterns`: nothing is projected away, so start and end are marked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, product

from estero.language.tree.expressions import And, EventFilter, Node, Not, Or
from estero.language.tree.pattern import (
    As,
    Disjunction,
    EventType,
    Filter,
    Iteration,
    Link,
    Optional,
    Pattern,
)
from estero.language.tree.pattern import Sequence as SequencePattern
from estero.reference.queries import Event, evaluate_predicate

Marks = frozenset[tuple[str, int]]
LOOSE = Link()


def belongs(marks: Marks, pattern: Pattern, events: Sequence[Event]) -> bool:
    """Whether these (label, position) pairs are a complex event of `pattern`."""
    match pattern:
        case EventType(name):
            ((label, position),) = marks if len(marks) == 1 else {("", 0)}
            return label == name == events[position].type
        case As(inner, variable):
            return any(belongs(each, inner, events) for each in _before_as(marks, variable))
        case Filter(inner, condition):
            return belongs(marks, inner, events) and _is(True, condition, marks, events)
        case Disjunction(parts):
            return any(belongs(marks, part, events) for part in parts)
        case Iteration(inner, contiguous, minimum, maximum):
            most = len(_support(marks)) if maximum is None else maximum
            link = Link(contiguous=contiguous)
            counts = range(minimum, most + 1)
            return any(_in_turn(marks, [inner] * n, [link] * (n - 1), events) for n in counts)
        case SequencePattern(parts, links):
            return any(_in_turn(marks, some, between, events) for some, between in _spelled_out(parts, links))
        case _:
            raise TypeError(f"not drawn by the strategies: {pattern!r}")


def _before_as(marks: Marks, variable: str) -> Iterator[Marks]:
    """What may have been marked before ``AS variable``: some of the variable's marks are new."""
    own = [mark for mark in marks if mark[0] == variable]
    if {position for _, position in own} == _support(marks):
        for size in range(len(own) + 1):
            for new in combinations(own, size):
                before = marks - set(new)
                if _support(before) == _support(marks):
                    yield before


def _spelled_out(
    parts: Sequence[Pattern], links: Sequence[Link]
) -> Iterator[tuple[list[Pattern], list[Link]]]:
    """The sequences without ``?`` that it stands for; a part left out takes the link before it along."""
    choices = [(True, False) if isinstance(part, Optional) else (True,) for part in parts]
    for chosen in product(*choices):
        kept = [
            (part.pattern if isinstance(part, Optional) else part, link)
            for part, link, here in zip(parts, (LOOSE, *links), chosen, strict=True)
            if here
        ]
        yield [part for part, _ in kept], [link for _, link in kept[1:]]


def _in_turn(marks: Marks, parts: list[Pattern], links: list[Link], events: Sequence[Event]) -> bool:
    """Whether the marks can be cut into one piece for each part, one after the other."""
    positions = sorted(_support(marks))
    for cuts in combinations(range(1, len(positions)), len(parts) - 1):
        pieces = [positions[low:high] for low, high in pairwise((0, *cuts, len(positions)))]
        if all(
            belongs(frozenset(mark for mark in marks if mark[1] in piece), part, events)
            for piece, part in zip(pieces, parts, strict=True)
        ) and all(
            not link.contiguous or later[0] == earlier[-1] + 1
            for (earlier, later), link in zip(pairwise(pieces), links, strict=True)
        ):
            return True
    return False


def _is(wanted: bool, condition: Node, marks: Marks, events: Sequence[Event]) -> bool:
    """Whether the filter is definitely true, or definitely false."""
    match condition:
        case Not(part):
            return _is(not wanted, part, marks, events)
        case And(parts):
            return (all if wanted else any)(_is(wanted, part, marks, events) for part in parts)
        case Or(parts):
            return (any if wanted else all)(_is(wanted, part, marks, events) for part in parts)
        case EventFilter(variable, predicate):
            truths = [evaluate_predicate(predicate, events[at]) for label, at in marks if label == variable]
            return all(truths) if wanted else False in truths
        case _:
            raise TypeError(f"not drawn by the strategies: {condition!r}")


def _support(marks: Marks) -> set[int]:
    return {position for _, position in marks}
