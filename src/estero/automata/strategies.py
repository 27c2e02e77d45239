"""The strategy MAX, as far as an automaton can decide it (algorithms.md, "Automata", 3).

Two runs that begin at the same event and are in the same deterministic state have the same futures. So a
run can be dropped as soon as another one stands where it stands and has marked all that it has marked and
more. Complex events with the same end and another start are compared later, when both are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from estero.automata.cea import LabelSet
from estero.automata.determinize import DEAD, DEFAULT_STATE_CAP, LazyAutomaton, Row
from estero.automata.growth import what_grows
from estero.automata.residual import HiddenSet
from estero.errors import LimitExceeded

Rivals = frozenset[tuple[int, bool]]
"""States of runs with our start that have marked all that ours has, and whether they have marked more."""


@dataclass(slots=True)
class MaxAutomaton:
    """The runs of `automaton` whose marked positions no run with the same start and end strictly contains.

    A state is a pair: the state of a run in `automaton`, and the states of its rivals. It is a drop-in
    for `automaton` where the strategy is MAX: of the complex events with one start and one end it finds
    those with a maximal set of positions, each once. It needs an automaton whose every marked event is
    shown (no hidden labels) and whose runs are told apart by their states alone (no registers).

    Raises `LimitExceeded` on the way where there are more than `state_cap` pairs.
    """

    automaton: LazyAutomaton
    state_cap: int = DEFAULT_STATE_CAP
    pairs: list[tuple[int, Rivals]] = field(default_factory=list)
    rows: dict[tuple[int, int], Row] = field(default_factory=dict)
    _numbers: dict[tuple[int, Rivals], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(self.automaton.hidden_sets):
            raise ValueError("hidden labels are marks that MAX does not compare")
        self._number(0, frozenset())

    @property
    def label_sets(self) -> list[LabelSet]:
        """The labels behind each mark, as in `automaton`."""
        return self.automaton.label_sets

    @property
    def hidden_sets(self) -> list[HiddenSet]:
        """The hidden labels behind each mark: none."""
        return self.automaton.hidden_sets

    def class_of(self, bits: int) -> int:
        """The class of events with these bits (bit k is predicate k)."""
        return self.automaton.class_of(bits)

    def row(self, state: int, event_class: int) -> Row:
        """The row of (state, class), worked out the first time it is asked for."""
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

    def described(self, state: int) -> tuple[int, ...]:
        """What `state` stands for, whatever its number.

        For the run and then for each rival: whether it has marked more, how many states of the CEA it is in,
        and these.
        """
        own, rivals = self.pairs[state]
        parts = sorted((int(more), *self.automaton.described(rival)) for rival, more in rivals)
        runs = [(0, *self.automaton.described(own)), *parts]
        return tuple(number for more, *states in runs for number in (more, len(states), *states))

    def met(self, description: Sequence[int]) -> int:
        """The number of the state that is so described, perhaps by another automaton of the same CEA.

        Raises ValueError where that describes no state.
        """
        runs: list[tuple[int, bool]] = []
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
        marking: set[tuple[int, bool]] = set()
        unmarked: set[tuple[int, bool]] = set()
        for rival, more in {*others, (own, False)}:
            there = self.automaton.row(rival, event_class)
            marking.update((target, more) for _, target in there.edges)
            unmarked.update((target, True) for _, target in there.edges)
            if there.skip != DEAD:
                unmarked.add((there.skip, more))
        skip = DEAD if row.skip == DEAD else self._reached(row.skip, unmarked)
        edges = [(marks, self._reached(target, marking)) for marks, target in row.edges]
        return Row(skip, tuple((marks, target) for marks, target in edges if target != DEAD))

    def _reached(self, own: int, rivals: Iterable[tuple[int, bool]]) -> int:
        """The number of a pair, or DEAD where a rival stands in the same state and has marked more."""
        ahead = {rival for rival, more in rivals if more}
        if own in ahead:
            return DEAD
        # A rival that has marked no more is as good as nothing beside itself with more, or as ourselves,
        # or where it ends.
        level = {rival for rival, more in rivals if not more} - ahead - {own}
        kept = [(rival, True) for rival in ahead]
        kept += [(rival, False) for rival in level if self.automaton.continues(rival)]
        return self._number(own, frozenset(kept))

    def _number(self, own: int, rivals: Rivals) -> int:
        pair = (own, rivals)
        if pair not in self._numbers:
            if len(self.pairs) >= self.state_cap:
                raise LimitExceeded(
                    f"MAX needs more than {self.state_cap:,} states to compare complex events with the same "
                    "start"
                    f"{what_grows(self.automaton.cea, [self._together(*each) for each in self.pairs])}: "
                    "bound the iterations of the pattern or make its predicates exclude one another"
                )
            self._numbers[pair] = len(self.pairs)
            self.pairs.append(pair)
        return self._numbers[pair]

    def _together(self, own: int, rivals: Rivals) -> frozenset[int]:
        """The states of the underlying automaton that a pair speaks of."""
        subsets = self.automaton.subsets
        return subsets[own].union(*(subsets[rival] for rival, _ in rivals))
