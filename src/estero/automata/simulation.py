"""Simulation between states of an automaton, by the events that their runs mark, and joint ends of runs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from estero.automata.cea import CEA, Guard, Transition
from estero.automata.exploration import leaving
from estero.automata.residual import Key

MOST_PAIRS = 100_000
"""The most pairs of states that are explored; beyond them the answer is no."""

MOST_STEPS = 200_000
"""The most pairs of transitions that `ending_together` explores."""

_Pair = tuple[int, int]


def ending_together(cea: CEA) -> set[_Pair] | None:
    """The pairs (x, y) of states where a run from y can end with one from x and mark all that it marks.

    The result may have other pairs, too, as guards are compared by bits and types. None if they are too many.
    """
    entering: defaultdict[int, list[Transition]] = defaultdict(list)
    for transition in cea.transitions:
        entering[transition.target].append(transition)
    meeting: dict[tuple[Guard, Guard], bool] = {}

    def meet(one: Guard, two: Guard) -> bool:
        if (one, two) not in meeting:
            both = one.meet(two)
            meeting[one, two] = both is not None and cea.types_of(both) != ()
        return meeting[one, two]

    steps = 0
    pairs = [(one, two) for one in sorted(cea.final) for two in sorted(cea.final)]
    seen = set(pairs)
    for one, two in pairs:  # the loop appends to it
        steps += len(entering[one]) * len(entering[two])
        if steps > MOST_STEPS:
            return None
        before = {
            (step.source, other.source)
            for step in entering[one]
            for other in entering[two]
            if (other.labels or not step.labels) and meet(step.guard, other.guard)
        }
        pairs += before - seen
        seen |= before
    return seen


@dataclass(slots=True)
class Simulation:
    """The simulation relation between states of `cea`, computed on demand.

    State y simulates x if y accepts where x does, and each transition of x is matched by one of y that passes
    all of its events, marks them if it does, and leads to a state that simulates its target. Then for each
    run from x there is one from y with the same end that marks at least the same events, with at least the
    same `keys`. Guards are compared by their bits alone.
    """

    cea: CEA
    keys: frozenset[Key] = frozenset()
    _leaving: dict[int, list[Transition]] = field(default_factory=dict)
    _known: dict[_Pair, bool] = field(default_factory=dict)
    _of_sets: dict[tuple[frozenset[int], frozenset[int]], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._leaving = leaving(self.cea.transitions)

    def of_sets(self, stronger: frozenset[int], weaker: frozenset[int]) -> bool:
        """Whether each state of `weaker` is simulated by one of `stronger`."""
        pair = stronger, weaker
        if pair not in self._of_sets:
            self._of_sets[pair] = all(
                state in stronger or any(self._simulates(other, state) for other in stronger)
                for state in weaker
            )
        return self._of_sets[pair]

    def _simulates(self, stronger: int, weaker: int) -> bool:
        pair = stronger, weaker
        if pair not in self._known:
            self._explore(pair)
        return self._known.get(pair, False)

    def _explore(self, asked: _Pair) -> None:
        """Decides a pair and all pairs that it depends on, by the greatest fixed point."""
        needs: dict[_Pair, list[list[_Pair]]] = {}
        users: defaultdict[_Pair, set[_Pair]] = defaultdict(set)
        fresh = [asked]
        while fresh:
            pair = fresh.pop()
            if pair in needs or pair in self._known or pair[0] == pair[1]:
                continue
            if len(self._known) + len(needs) > MOST_PAIRS:
                self._known[asked] = False
                return
            needs[pair] = self._ways(*pair)
            for needed in {other for way in needs[pair] for other in way}:
                users[needed].add(pair)
                fresh.append(needed)
        false = {pair for pair in needs if not self._may(pair)}
        false |= {pair for pair in users if self._known.get(pair) is False}
        unsettled = list(false) + [pair for pair, ways in needs.items() if not all(ways)]
        false.update(pair for pair, ways in needs.items() if not all(ways))
        while unsettled:
            for user in users[unsettled.pop()]:
                if user not in false and not all(
                    any(needed not in false for needed in way) for way in needs[user]
                ):
                    false.add(user)
                    unsettled.append(user)
        self._known.update((pair, pair not in false) for pair in needs)

    def _may(self, pair: _Pair) -> bool:
        stronger, weaker = pair
        return weaker not in self.cea.final or stronger in self.cea.final

    def _ways(self, stronger: int, weaker: int) -> list[list[_Pair]]:
        """The pairs of targets for each transition of `weaker`; one of each must be in the simulation."""
        return [
            [
                (other.target, step.target)
                for other in self._leaving[stronger]
                if other.guard.present <= step.guard.present
                and other.guard.absent <= step.guard.absent
                and (other.labels or not step.labels)
                and all(other.carries(key) for key in self.keys if step.carries(key))
            ]
            for step in self._leaving[weaker]
        ]
