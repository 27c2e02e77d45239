"""Reachability: the breadth-first search that all constructions and analyses share.

States are any hashable values. As they come breadth first, their numbers follow the runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Protocol, TypeVar

State = TypeVar("State", bound=Hashable)
What = TypeVar("What")


def explore(
    start: Iterable[State], step: Callable[[State], Iterable[tuple[What, State]]]
) -> Iterator[tuple[State, What, State]]:
    """All transitions that are reachable from `start`, as (source, what, target).

    `step` gives the pairs (what, target) of a state; it is called once for each state.

    >>> list(explore([3], lambda n: [("down", n - 1)] if n > 1 else []))
    [(3, 'down', 2), (2, 'down', 1)]
    """
    states = list(dict.fromkeys(start))
    seen = set(states)
    for source in states:  # the loop appends to it
        for what, target in step(source):
            if target not in seen:
                seen.add(target)
                states.append(target)
            yield source, what, target


def reached(start: Iterable[State], step: Callable[[State], Iterable[State]]) -> Iterator[State]:
    """The states that are reachable from `start` by `step`, `start` included, breadth first."""
    states = list(dict.fromkeys(start))
    seen = set(states)
    for source in states:
        yield source
        for target in step(source):
            if target not in seen:
                seen.add(target)
                states.append(target)


def between(start: State, end: State, pairs: Iterable[tuple[State, State]]) -> set[State]:
    """The states on paths from `start` to `end`, where `pairs` are the sources and targets of transitions.

    >>> sorted(between(1, 3, [(1, 2), (2, 3), (2, 4), (5, 3)]))
    [1, 2, 3]
    """
    after: defaultdict[State, list[State]] = defaultdict(list)
    before: defaultdict[State, list[State]] = defaultdict(list)
    for source, target in pairs:
        after[source].append(target)
        before[target].append(source)
    return {*reached([start], after.__getitem__)} & {*reached([end], before.__getitem__)}


class HasSource(Protocol):
    """A transition of any kind."""

    @property
    def source(self) -> int:
        """The state that it leaves."""


Leaving = TypeVar("Leaving", bound=HasSource)


def leaving(transitions: Iterable[Leaving]) -> defaultdict[int, list[Leaving]]:
    """The transitions that leave each state, in their order."""
    by_source: defaultdict[int, list[Leaving]] = defaultdict(list)
    for transition in transitions:
        by_source[transition.source].append(transition)
    return by_source


def merged(groups: Iterable[Iterable[State]]) -> list[list[State]]:
    """The finest partition in which each of the groups is inside one block.

    >>> merged([[1, 2], [3], [4, 5], [2, 4]])
    [[3], [1, 2, 4, 5]]
    """
    disjoint: list[dict[State, None]] = []
    for group in groups:
        new = dict.fromkeys(group)
        touched = [members for members in disjoint if not members.keys().isdisjoint(new)]
        disjoint = [members for members in disjoint if members.keys().isdisjoint(new)]
        disjoint.append({element: None for members in (*touched, new) for element in members})
    return list(map(list, disjoint))
