"""Distances of steps, checked by the age of runs: how long ago, or how far back, a run marked its last event.

If the part before a step always ends with the last event that the run has marked when the part after it
begins, the distance between the two parts is the age of the run. Nothing else has to be remembered: a state
of the deterministic automaton is a set of states together with a *phase*, the lengths that the age has
passed, and a run whose age passes the next length changes its state without reading an event, as in a timed
automaton.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from estero.automata.cea import CEA, Transition
from estero.automata.determinize import DEAD, PASSED, Labels, MarkingAutomaton, Row
from estero.automata.exploration import leaving, reached
from estero.automata.registers import Action, RegisterProgram, Step
from estero.automata.residual import Apartness, Hidden, HiddenSet, Residual
from estero.language.tree.distances import Bounds

NEVER: Final = -1
"""The placeholder for a length if the age passes no further one."""


class Bound(NamedTuple):
    """A half-open interval of ages by clock number `clock`: from `low` to below `high` (None: unbounded)."""

    clock: int
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class AgeProgram:
    """The conditions of transitions on the ages of runs.

    Clock number c counts positions of the whole stream if `clocks[c]`, else ticks of time. A transition with
    a hidden label of `bounds` is taken only by runs whose ages are within its bounds.
    """

    clocks: tuple[bool, ...]
    bounds: tuple[tuple[Hidden, tuple[Bound, ...]], ...]


class ByAge(NamedTuple):
    """An automaton whose distances are ages of runs, and the residuals that are left, with the reasons."""

    automaton: CEA
    program: AgeProgram
    residuals: tuple[Residual, ...]
    reasons: Mapping[Residual, str]


def by_age(automaton: CEA, residuals: Sequence[Residual]) -> ByAge | str:
    """Turns the distances among the residuals into ages of runs, or says why none of them is one."""
    steps = [residual for residual in residuals if isinstance(residual.condition, Apartness)]
    if not steps:
        return "no step requires a distance"
    labels = frozenset(label for step in steps for label in _labels(step))
    reasons = {step: why for step in steps if (why := _why_no_age(automaton, step, labels))}
    served = [step for step in steps if step not in reasons]
    if not served:
        return reasons[steps[0]]
    clocks = tuple(sorted({bound.in_positions for step in served for bound in _bounds(step)}))
    bounds = {
        _begun(step): tuple(
            Bound(clocks.index(bound.in_positions), bound.low, bound.high) for bound in _bounds(step)
        )
        for step in served
    }
    dropped = frozenset(_ended(step) for step in served)
    transitions = (
        replace(transition, hidden=transition.hidden - dropped) for transition in automaton.transitions
    )
    return ByAge(
        replace(automaton, transitions=tuple(dict.fromkeys(transitions))),
        AgeProgram(clocks, tuple(sorted(bounds.items()))),
        tuple(residual for residual in residuals if residual not in served),
        reasons,
    )


def with_distances(
    program: RegisterProgram | None, residuals: Sequence[Residual]
) -> tuple[RegisterProgram | None, tuple[Residual, ...]]:
    """Adds the distances among the residuals to a register program, and returns the residuals that are left.

    A register holds when the part before a step ended. This distinguishes more runs than ages do, but serves
    every step, also together with other comparisons.
    """
    steps = [residual for residual in residuals if isinstance(residual.condition, Apartness)]
    if not steps:
        return program, tuple(residuals)
    known = RegisterProgram(0, (), ()) if program is None else program
    clocks = tuple(sorted({bound.in_positions for step in steps for bound in _bounds(step)}))
    registers: dict[tuple[Hidden, bool], int] = {}
    taken: dict[Step, None] = {}
    for step in steps:
        for low, high, in_positions in _bounds(step):
            value = len(known.values) + clocks.index(in_positions)
            register = registers.setdefault((_ended(step), in_positions), known.registers + len(registers))
            taken[Step(_ended(step), Action.STORE, register, value)] = None
            if low > 0:
                taken[Step(_begun(step), Action.FAR, register, value, low)] = None
            if high is not None:
                taken[Step(_begun(step), Action.NEAR, register, value, high)] = None
    count = known.registers + len(registers)
    left = tuple(residual for residual in residuals if residual not in steps)
    return RegisterProgram(count, known.values, (*known.steps, *taken), clocks), left


def _labels(step: Residual) -> tuple[Hidden, Hidden]:
    return _ended(step), _begun(step)


def _ended(step: Residual) -> Hidden:
    (label,) = (key for _, key in step.bindings if isinstance(key, Hidden))
    return label


def _begun(step: Residual) -> Hidden:
    return Hidden(_ended(step).place)


def _bounds(step: Residual) -> list[Bounds]:
    condition = step.condition
    return (
        [distance.bounds(None) for distance in condition.distances]
        if isinstance(condition, Apartness)
        else []
    )


def _why_no_age(automaton: CEA, step: Residual, labels: HiddenSet) -> str:
    """The reason why the distance of a step is not the age of runs, as a phrase; empty if it is.

    `labels` are the hidden labels that only mark where steps end and begin.
    """
    ended, begun = _ended(step), _begun(step)

    def marks(transition: Transition) -> bool:
        return bool(transition.labels or transition.hidden - labels)

    if any(ended in transition.hidden and not marks(transition) for transition in automaton.transitions):
        return "the part before it ends with an event that is not marked"
    asking = [transition for transition in automaton.transitions if begun in transition.hidden]
    if any(not transition.guard.present for transition in asking):
        return "the part after it begins with an event of any type"
    before: defaultdict[int, list[Transition]] = defaultdict(list)
    for transition in automaton.transitions:
        before[transition.target].append(transition)
    sources = {transition.source for transition in asking}
    waiting = reached(
        sources, lambda state: [transition.source for transition in before[state] if not marks(transition)]
    )
    last = [transition for state in waiting for transition in before[state] if marks(transition)]
    if any(ended not in transition.hidden for transition in last):
        return "an event of another part can come between the two"
    return ""


# --------------------------------------------------------------------------------- determinization

Phase = tuple[int, ...]
"""The largest relevant length that the age has passed, for each clock; 0 if it has passed none."""


@dataclass(slots=True)
class AgedAutomaton(MarkingAutomaton):
    """The deterministic automaton of a CEA with conditions on ages, built on demand like `LazyAutomaton`.

    The age of a run is zero when it marks an event. `next_length` is the age at which a run changes its state
    without reading an event, and `later` is the state after that.
    """

    program: AgeProgram = field(kw_only=True)
    phases: list[Phase] = field(default_factory=list)
    _leaving: dict[int, list[tuple[Transition, Labels, tuple[Bound, ...]]]] = field(default_factory=dict)
    _lengths: dict[int, frozenset[tuple[int, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        asked = dict(self.program.bounds)
        for source, transitions in leaving(self.cea.transitions).items():
            self._leaving[source] = []
            for transition in transitions:
                begun = transition.hidden.intersection(asked)
                labels = transition.labels, transition.hidden - begun
                bounds = tuple(bound for label in sorted(begun) for bound in asked[label])
                self._leaving[source].append((transition, labels, bounds))
                self._number_labels(labels)
        for state in range(self.cea.states):
            self._lengths[state] = self._lengths_from(state)
        self._in_phase(self.cea.initial, self._young)
        self.class_of(0)

    @property
    def _young(self) -> Phase:
        return (0,) * len(self.program.clocks)

    @property
    def clocks(self) -> int:
        """The number of clocks."""
        return len(self.program.clocks)

    def next_length(self, state: int, clock: int) -> int:
        """The age by a clock at which runs in `state` change their state; NEVER if they do not."""
        lengths = [
            length for length_clock, length in self._asked(self.subsets[state]) if length_clock == clock
        ]
        return min((length for length in lengths if length > self.phases[state][clock]), default=NEVER)

    def later(self, state: int, clock: int) -> int:
        """The state of runs that have reached that age in `state`; DEAD if there is none."""
        if self.next_length(state, clock) == NEVER:
            return DEAD
        phase = list(self.phases[state])
        phase[clock] = self.next_length(state, clock)
        # Final states accepted when they were entered.
        return self._state(self.subsets[state] - self.cea.final, tuple(phase))

    def described(self, state: int) -> tuple[int, ...]:
        """A description of `state` independent of its number: its phase, and its states of the CEA."""
        return (*self.phases[state], *sorted(self.subsets[state]))

    def met(self, description: Sequence[int]) -> int:
        """The number of the state with this description; raises ValueError if there is no such state."""
        clocks = len(self.program.clocks)
        phase, subset = tuple(description[:clocks]), frozenset(description[clocks:])
        if len(phase) < clocks or not subset or not all(0 <= state < self.cea.states for state in subset):
            raise ValueError(f"{description} is not a state of an automaton with {self.cea.states} states")
        state = self._state(subset, phase)
        if state == DEAD or (self.subsets[state], self.phases[state]) != (subset, phase):
            raise ValueError(f"{description} is not a state that runs can be in")
        return state

    def _work_out(self, state: int, bits: int) -> Row:
        phase = self.phases[state]
        targets: dict[Labels, set[int]] = defaultdict(set)
        for source in self.subsets[state]:
            for transition, labels, bounds in self._leaving.get(source, ()):
                if transition.guard.allows(bits) and all(_holds(bound, phase) for bound in bounds):
                    targets[labels].add(transition.target)
        skip = self._state(frozenset(targets.pop(PASSED)), phase) if PASSED in targets else DEAD
        young = self._young
        edges = sorted((self._label_ids[labels], frozenset(subset)) for labels, subset in targets.items())
        reached_by = [(label, self._state(subset, young)) for label, subset in edges]
        return Row(skip, tuple((label, target) for label, target in reached_by if target != DEAD))

    def _state(self, subset: frozenset[int], phase: Phase) -> int:
        """The number of a state without the states that cannot accept any more; DEAD if none is left."""
        subset = frozenset(state for state in subset if self._is_open(state, phase))
        if not subset:
            return DEAD
        asked = self._asked(subset)
        phase = tuple(
            max(
                (length for length_clock, length in asked if length_clock == clock and length <= passed),
                default=0,
            )
            for clock, passed in enumerate(phase)
        )
        return self._in_phase(subset, phase)

    def _in_phase(self, subset: frozenset[int], phase: Phase) -> int:
        number = self._numbered((subset, phase), subset)
        if number == len(self.phases):
            self.phases.append(phase)
        return number

    def _is_open(self, state: int, phase: Phase) -> bool:
        """Whether a state accepts, or some transition can still lead on from it."""
        return state in self.cea.final or any(
            all(bound.high is None or phase[bound.clock] < bound.high for bound in bounds)
            for transition, labels, bounds in self._leaving.get(state, ())
            if transition.target != state or labels != PASSED
        )

    def _asked(self, subset: Iterable[int]) -> set[tuple[int, int]]:
        """The pairs (clock, length) with which the ages of runs in these states are compared."""
        return set().union(*(self._lengths[state] for state in subset))

    def _lengths_from(self, state: int) -> frozenset[tuple[int, int]]:
        """The pairs (clock, length) of one state, up to the next marked event."""

        def unmarked(source: int) -> list[int]:
            return [
                transition.target
                for transition, labels, _ in self._leaving.get(source, ())
                if labels == PASSED
            ]

        lengths: set[tuple[int, int]] = set()
        for source in reached([state], unmarked):
            for _, _, bounds in self._leaving.get(source, ()):
                for clock, low, high in bounds:
                    lengths |= {
                        (clock, length) for length in (low, high) if length is not None and length > 0
                    }
        return frozenset(lengths)


def _holds(bound: Bound, phase: Phase) -> bool:
    passed = phase[bound.clock]
    return passed >= bound.low and (bound.high is None or passed < bound.high)
