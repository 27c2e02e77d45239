"""Whether complex events with one start and end always have a greatest one, which marks all their events.

Then NEXT chooses this one, and it is the only one for which conditions that stay true as more events are
marked (`growing`) have to be checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from estero.automata.cea import CEA, Transition
from estero.automata.exploration import leaving, reached
from estero.automata.residual import Key
from estero.automata.simulation import Simulation

MOST_TESTS: Final = 500_000
"""The most pairs of states that are compared; beyond them the answer is that there is no greatest one."""

_At = tuple[frozenset[int], frozenset[int]]
"""The states of all runs with one start, and of those that have marked all events that any has marked."""


def has_greatest(automaton: CEA, classes: Sequence[int], keys: frozenset[Key]) -> bool:
    """Whether some run marks all that others do from its start to its end, with all of their `keys`.

    This is checked event by event: some transitions mark all that any transition marks, and lead to states
    that simulate the targets of the others. The check is sound and not complete: it may miss a greatest
    complex event. `classes` are the bits that events can have.
    """
    search = _Search(automaton, classes, keys)
    try:
        for _ in reached([(automaton.initial, automaton.initial)], search.after):
            pass
    except _NoneError:
        return False
    return True


class _NoneError(Exception):
    """A signal that no transition marks all that the others mark."""


class _Search:
    def __init__(self, automaton: CEA, classes: Sequence[int], keys: frozenset[Key]) -> None:
        useful = automaton.leading_to(automaton.final, lambda _: True)
        self._leaving = leaving(
            transition for transition in automaton.transitions if transition.target in useful
        )
        self._final, self._classes, self._keys = automaton.final, classes, keys
        self._simulation = Simulation(automaton, keys)
        self._tests = 0

    def after(self, at: _At) -> list[_At]:
        """The pairs of sets of states after an event of each class, without the runs that end there."""
        successors: dict[_At, None] = {}
        for bits in self._classes:
            steps, own = (self._steps(states, bits) for states in at)
            self._largest(*(_into(self._final, taken, True) for taken in (steps, own)))
            following = self._largest(*(_into(self._final, taken, False) for taken in (steps, own)))
            if following[0]:
                successors[following] = None
        return list(successors)

    def _steps(self, states: Iterable[int], bits: int) -> list[Transition]:
        return [
            transition
            for state in states
            for transition in self._leaving[state]
            if transition.guard.allows(bits)
        ]

    def _largest(self, steps: Sequence[Transition], own: Sequence[Transition]) -> _At:
        """The targets of `steps`, and of those of `own` that mark all that any of `steps` marks."""
        targets = frozenset(step.target for step in steps)
        marked = any(step.labels for step in steps)
        asked = [key for key in self._keys if any(step.carries(key) for step in steps)]
        largest = frozenset(
            step.target for step in own if bool(step.labels) >= marked and all(map(step.carries, asked))
        )
        self._tests += len(targets) * len(largest)
        if self._tests > MOST_TESTS or not self._simulation.of_sets(largest, targets):
            raise _NoneError
        return targets, largest


def _into(final: frozenset[int], steps: Sequence[Transition], ends: bool) -> list[Transition]:
    """The steps to final states if `ends`, else the steps to other states."""
    return [step for step in steps if (step.target in final) == ends]
