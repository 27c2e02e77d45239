"""The number of steps of its sequence that a run has done, known from its state or from its last marks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from estero.automata.cea import CEA
from estero.automata.exploration import leaving
from estero.language.tree.levels import inside_tails, levels_of
from estero.language.tree.pattern import Pattern, Sequence
from estero.language.tree.selection import label_types


def labels_of_steps(pattern: Pattern) -> tuple[frozenset[str], ...]:
    """The labels of each step of a pattern: of each level, where it is a sequence, else all of one step.

    >>> from estero.language.syntax.parser import parse_pattern
    >>> [sorted(labels) for labels in labels_of_steps(parse_pattern("a ; b? ; c AS x"))]
    [['a'], ['b', 'c', 'x']]
    """
    inside, levels = inside_tails(pattern), levels_of(pattern)
    if not isinstance(inside, Sequence) or not levels:
        return (frozenset(label_types(pattern)),)
    steps = []
    first = 0
    for last in levels:
        steps.append(frozenset(label for part in inside.parts[first:last] for label in label_types(part)))
        first = last
    return tuple(steps)


def step_behind(labels: Iterable[str], steps: tuple[frozenset[str], ...], done: int) -> int:
    """The step that an event with these labels belongs to, after `done` steps."""
    marked = frozenset(labels)
    later = (number for number, step in enumerate(steps, 1) if number >= done and step & marked)
    return next(later, done)


def steps_of_states(automaton: CEA, steps: tuple[frozenset[str], ...]) -> tuple[int, ...]:
    """The number of steps that a run in each state of an automaton has done; 0 for unreachable states."""
    done = dict.fromkeys(automaton.initial, 0)
    waiting = deque(sorted(automaton.initial))
    leaves = leaving(automaton.transitions)
    while waiting:
        state = waiting.popleft()
        for transition in leaves[state]:
            if transition.target not in done:
                done[transition.target] = step_behind(transition.labels, steps, done[state])
                waiting.append(transition.target)
    return tuple(done.get(state, 0) for state in range(automaton.states))
