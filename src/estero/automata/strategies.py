"""The strategy MAX as an automaton: the state of a run, together with the states of its rivals.

MAX keeps a complex event unless another one with the same end marks all of its positions and more. The
*rivals* of a run are the runs that have marked all positions that it has marked. Runs in the same state with
rivals in the same states have the same futures, so a state of the automaton is such a pair. Rivals begin in
the same window: `engine.runs.run_spans` separates windows where that makes a difference (docs/papers.md,
"Beyond the papers").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from estero.automata.cea import LabelSet
from estero.automata.determinize import DEAD, DEFAULT_STATE_CAP, LazyAutomaton, Row
from estero.automata.growth import what_grows
from estero.automata.residual import HiddenSet
from estero.automata.simulation import Simulation, ending_together
from estero.errors import LimitExceeded

MOST_PAIRS: Final = 3_000
"""The largest number of pairs of a run's state and its rivals, which take less than a second."""

Rival = tuple[int, bool]
"""The state of a rival, and whether it has marked more than the run."""
_UNBORN: Final[Rival] = 0, False
"""The runs that begin at later events: rivals of exactly the runs that have marked nothing."""


@dataclass(slots=True)
class MaxAutomaton:
    """The automaton of the runs of `automaton` with their rivals, which accepts maximal complex events only.

    A state is a pair: the state of a run in `automaton`, and its rivals. Rows account for the rivals that a
    run has, and for runs that begin with it; `beside` accounts for a rival that has begun before. A run is
    dropped as soon as a rival has marked more and simulates it (`Simulation`). A rival is dropped if another
    one simulates it, or if it cannot end together with the run.

    Raises ValueError if there are hidden labels, which are marks that MAX does not compare, and
    `LimitExceeded`, during exploration, if there are more than `state_cap` pairs.
    """

    automaton: LazyAutomaton
    state_cap: int = DEFAULT_STATE_CAP
    pairs: list[tuple[int, frozenset[Rival]]] = field(default_factory=list)
    rows: dict[tuple[int, int], Row] = field(default_factory=dict)
    _numbers: dict[tuple[int, frozenset[Rival]], int] = field(default_factory=dict)
    _ending: dict[tuple[int, int], bool] = field(default_factory=dict)
    _simulation: Simulation = field(init=False)
    _together: set[tuple[int, int]] | None = field(init=False)

    def __post_init__(self) -> None:
        if any(self.automaton.hidden_sets):
            raise ValueError("hidden labels are marks that MAX does not compare")
        self.state_cap = min(self.state_cap, MOST_PAIRS)
        self._simulation = Simulation(self.automaton.cea)
        self._together = ending_together(self.automaton.cea)
        self._number(0, frozenset({_UNBORN}))

    @property
    def label_sets(self) -> list[LabelSet]:
        """The labels of each mark, as in `automaton`."""
        return self.automaton.label_sets

    @property
    def hidden_sets(self) -> list[HiddenSet]:
        """The hidden labels of each mark: none."""
        return self.automaton.hidden_sets

    def class_of(self, bits: int) -> int:
        """The class of events with these bits (bit k is predicate k)."""
        return self.automaton.class_of(bits)

    def row(self, state: int, event_class: int) -> Row:
        """The row of (state, class), computed at its first use."""
        key = (state, event_class)
        if key not in self.rows:
            self.rows[key] = self._work_out(state, event_class)
        return self.rows[key]

    def accepts(self, state: int) -> bool:
        """Whether a run that has just entered `state` has found a complex event that no rival contains."""
        own, rivals = self.pairs[state]
        if not self.automaton.accepts(own):
            return False
        return not any(more and self.automaton.accepts(rival) for rival, more in rivals)

    def continues(self, state: int) -> bool:
        """Whether `state` can still lead to further complex events."""
        return self.automaton.continues(self.pairs[state][0])

    def own(self, state: int) -> int:
        """The state of the run in `automaton`."""
        return self.pairs[state][0]

    def empty(self, state: int) -> bool:
        """Whether the run has marked nothing so far."""
        return _UNBORN in self.pairs[state][1]

    def beside(self, state: int, rival: int, *, more: bool) -> int:
        """The state of a run in `state` with one more rival, which began before it; or DEAD.

        `rival` is the rival's state in `automaton`.
        """
        own, rivals = self.pairs[state]
        return self._reached(own, rivals | {(rival, more)})

    def behind(self, state: int) -> frozenset[int]:
        """The states of the CEA that the run in `state` is in."""
        return self.automaton.behind(self.pairs[state][0])

    def described(self, state: int) -> tuple[int, ...]:
        """A description of `state` that does not depend on its number.

        It has for the run, and then for each rival, whether it has marked more, the number of its states of
        the CEA, and these states.
        """
        own, rivals = self.pairs[state]
        parts = sorted((int(more), *self.automaton.described(rival)) for rival, more in rivals)
        runs = [(0, *self.automaton.described(own)), *parts]
        return tuple(number for more, *states in runs for number in (more, len(states), *states))

    def met(self, description: Sequence[int]) -> int:
        """The number of the state with this description, possibly of another automaton of the same CEA.

        Raises ValueError if there is no such state.
        """
        runs: list[Rival] = []
        place = 0
        while place < len(description):
            more, size = description[place : place + 2]
            if not 0 <= size <= len(description) - place - 2:
                raise ValueError("a description of states is cut off")
            states = description[place + 2 : place + 2 + size]
            runs.append((self.automaton.met(states), bool(more)))
            place += 2 + size
        return self._number(runs[0][0], frozenset(runs[1:]))

    def _work_out(self, state: int, event_class: int) -> Row:
        own, others = self.pairs[state]
        row = self.automaton.row(own, event_class)
        marking: set[Rival] = set()
        unmarked: set[Rival] = {_UNBORN} & others
        for rival, more in {*others, (own, False)}:
            moves = self.automaton.row(rival, event_class)
            marking.update((target, more) for _, target in moves.edges)
            unmarked.update((target, True) for _, target in moves.edges)
            if moves.skip != DEAD:
                unmarked.add((moves.skip, more))
        skip = DEAD if row.skip == DEAD else self._reached(row.skip, unmarked)
        edges = [(marks, self._reached(target, marking)) for marks, target in row.edges]
        return Row(skip, tuple((marks, target) for marks, target in edges if target != DEAD))

    def _reached(self, own: int, rivals: Iterable[Rival]) -> int:
        """The number of a pair; DEAD if a rival has marked more and simulates `own`."""
        kept: list[Rival] = []
        for state, more in sorted(set(rivals) - {_UNBORN}, key=lambda rival: (not rival[1], rival[0])):
            if more and self._can_all(state, own):
                return DEAD
            # A rival that has marked no more is beaten if the run itself simulates it.
            beaten = not more and (not self.automaton.continues(state) or self._can_all(own, state))
            beaten = beaten or not self._may_end_together(own, state)
            if not beaten and not any(self._can_all(other, state) for other, _ in kept):
                kept = [rival for rival in kept if rival[1] > more or not self._can_all(state, rival[0])]
                kept.append((state, more))
        if _UNBORN in rivals:
            kept.append(_UNBORN)
        return self._number(own, frozenset(kept))

    def _may_end_together(self, own: int, rival: int) -> bool:
        """Whether a rival may end together with a run in `own` and contain its complex event."""
        together = self._together
        if together is None:
            return True
        pair = own, rival
        if pair not in self._ending:
            ours, theirs = self.automaton.subsets[own], self.automaton.subsets[rival]
            self._ending[pair] = any((one, two) in together for one in ours for two in theirs)
        return self._ending[pair]

    def _can_all(self, stronger: int, weaker: int) -> bool:
        """Whether the state `stronger` simulates the state `weaker`."""
        subsets = self.automaton.subsets
        return stronger == weaker or self._simulation.of_sets(subsets[stronger], subsets[weaker])

    def _number(self, own: int, rivals: frozenset[Rival]) -> int:
        pair = (own, rivals)
        if pair not in self._numbers:
            if len(self.pairs) >= self.state_cap:
                raise LimitExceeded(
                    f"MAX needs more than {self.state_cap:,} states to compare complex events"
                    f"{what_grows(self.automaton.cea, [self._states(*other) for other in self.pairs])}: "
                    "repeat fewer of its parts, make its predicates exclude one another, or ask for ALL"
                )
            self._numbers[pair] = len(self.pairs)
            self.pairs.append(pair)
        return self._numbers[pair]

    def _states(self, own: int, rivals: Iterable[Rival]) -> frozenset[int]:
        """The states of the CEA that a pair contains."""
        subsets = self.automaton.subsets
        return subsets[own].union(*(subsets[rival] for rival, _ in rivals))
