"""Register programs: comparisons between variables that a run checks as it goes.

A *register* is an integer that a run remembers of the events that it has marked, as in register automata.
Runs in the same state with the same registers have the same futures, so compact sets are split by registers,
and runs that violate a comparison end at once (docs/papers.md, "Beyond the papers").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from estero.automata.cea import CEA, LabelSet, Transition, with_hidden
from estero.automata.residual import (
    ALL_MARKED,
    NO_HIDDEN,
    Hidden,
    HiddenSet,
    Key,
    Residual,
    carries,
    needed_hidden,
)
from estero.language.tree.expressions import Node


class Action(IntEnum):
    """The actions of a marked event on a register, in the order in which they are executed.

    A register is unset, set, or spoilt. A CHECK of an unset register passes, of a spoilt one fails, and
    fails where the event's value is NULL and the register is not unset. Storing NULL spoils a register.
    """

    RESET = 0
    """Unset it (no value)."""
    NOT_NULL = 1
    """The value is not NULL (no register)."""
    LESS = 2
    """value < register; likewise the next five."""
    LESS_OR_EQUAL = 3
    GREATER = 4
    GREATER_OR_EQUAL = 5
    EQUAL = 6
    NOT_EQUAL = 7
    NEAR = 8
    """value - register < length, where values do not fall."""
    FAR = 9
    """value - register >= length."""
    STORE = 10
    """Remember the value."""
    STORE_LARGEST = 11
    """Remember the largest value so far; spoilt stays spoilt."""
    STORE_SMALLEST = 12
    STORE_SAME = 13
    """Remember the value if unset; a different one spoils it."""


@dataclass(frozen=True, slots=True)
class Value:
    """An int64 column of classified events, an order-preserving code of `expression` for `types`, or NULL."""

    expression: Node
    types: tuple[str, ...]
    hashed: int | None = None
    """The number of one of two independent 64-bit hashes of a string, which is compared by equality only."""


@dataclass(frozen=True, slots=True)
class Step:
    """An `action` on a register with a value column, both by number, for each event marked with `key`.

    `length` is the length of NEAR and FAR.
    """

    key: Key
    action: Action
    register: int
    value: int
    length: int = 0


@dataclass(frozen=True, slots=True)
class RegisterProgram:
    """A number of registers, and steps; the steps of one event are executed in the order of `Action`.

    An event belongs to a step if it carries the label `key`; to `ALL_MARKED` if it carries any label of
    the answer. RESET has no value and NOT_NULL no register; these numbers are 0. After the `values` comes a
    column for each of `clocks`: the position of the event in the whole stream if it is true, else its time in
    ticks.
    """

    registers: int
    values: tuple[Value, ...]
    steps: tuple[Step, ...]
    clocks: tuple[bool, ...] = ()


CHECKS = range(Action.LESS, Action.STORE)
"""The actions that compare an event with a register."""


def tables(
    program: RegisterProgram, label_sets: Sequence[LabelSet], hidden_sets: Sequence[HiddenSet]
) -> list[list[tuple[int, int, int, int]]]:
    """The distinct steps (action, register, value, length) of each mark id, in the order of `Action`.

    `label_sets[id]` and `hidden_sets[id]` are the labels behind an id, as a `LazyAutomaton` has them.
    """
    return [
        sorted(
            {
                (int(step.action), step.register, step.value, step.length)
                for step in program.steps
                if carries(labels, hidden, step.key)
            }
        )
        for labels, hidden in zip(label_sets, hidden_sets, strict=True)
    ]


def live_registers(automaton: CEA, program: RegisterProgram) -> list[set[int]]:
    """The states in which the value of each register can still matter.

    From other states no CHECK of it can be reached before it is unset or stored anew. Two runs in the same
    state that differ in dead registers only are the same run from there on.
    """
    return [_live(automaton, program, register) for register in range(program.registers)]


def _live(automaton: CEA, program: RegisterProgram, register: int) -> set[int]:
    steps = [step for step in program.steps if step.register == register]

    def does(transition: Transition, *actions: int) -> bool:
        return any(step.action in actions and transition.carries(step.key) for step in steps)

    asking = [
        transition
        for transition in automaton.transitions
        if does(transition, *CHECKS) and not does(transition, Action.RESET)
    ]
    return automaton.leading_to(
        (transition.source for transition in asking),
        lambda transition: not does(transition, Action.RESET, Action.STORE),
    )


def register_reaches(automaton: CEA, program: RegisterProgram) -> list[list[int | None]]:
    """For each state and register the lag at which a run can no longer accept; None if there is none.

    A run whose register is less, by that much or more, than the value that NEAR compares it with can neither
    mark an event nor accept any more, as values do not fall.
    """
    return [_reaches(automaton, program, register) for register in range(program.registers)]


def _reaches(automaton: CEA, program: RegisterProgram, register: int) -> list[int | None]:
    steps = [step for step in program.steps if step.register == register]
    near = [step for step in steps if step.action is Action.NEAR]
    if len({step.value for step in near}) != 1:
        return [None] * automaton.states

    def nearest(transition: Transition) -> int | None:
        if any(step.action is Action.RESET and transition.carries(step.key) for step in steps):
            return None
        return min((step.length for step in near if transition.carries(step.key)), default=None)

    reach: list[int | None] = [0] * automaton.states
    waiting = True
    while waiting:
        waiting = False
        for transition in automaton.transitions:
            passes = (
                not transition.labels and not transition.hidden and transition.target not in automaton.final
            )
            least = reach[transition.target] if passes else nearest(transition)
            here = reach[transition.source]
            if here is not None and (least is None or least > here):
                reach[transition.source] = least
                waiting = True
    return reach


def drop_hidden(
    automaton: CEA,
    program: RegisterProgram | None,
    residuals: Iterable[Residual] = (),
    kept: HiddenSet = NO_HIDDEN,
) -> tuple[CEA, RegisterProgram | None]:
    """Drops hidden labels that neither `program` nor `residuals` need, and adapts the program.

    The labels of `residuals` and those in `kept` stay. Registers use a label of the answer instead of a
    hidden label if both are on the same transitions. Without hidden labels every complex event is found once,
    and no duplicates have to be removed.
    """
    needed = needed_hidden(residuals) | kept
    if program is not None:
        hidden = {step.key for step in program.steps if isinstance(step.key, Hidden)} - needed
        shown: dict[Key, Key] = {key: _shown(automaton, key) for key in hidden}
        steps = [replace(step, key=shown.get(step.key, step.key)) for step in program.steps]
        program = replace(program, steps=tuple(dict.fromkeys(steps)))
        needed |= {step.key for step in program.steps if isinstance(step.key, Hidden)}
    return with_hidden(automaton, frozenset(needed)), program


def _shown(automaton: CEA, hidden: Hidden) -> Key:
    """A label of the answer on the same transitions as `hidden`, or else `hidden` itself."""
    labels = sorted({label for transition in automaton.transitions for label in transition.labels})
    for label in (*labels, ALL_MARKED):
        if all(
            transition.carries(label) == transition.carries(hidden) for transition in automaton.transitions
        ):
            return label
    return hidden
