"""Comparisons between variables that a run can check as it goes (algorithms.md, "The planner").

A *register* is one integer that a run remembers of the events it has marked. Runs in the same state with
the same registers have the same futures, so compact sets are split by them and nothing that has violated
a comparison survives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from estero.automata.cea import CEA, LabelSet, Transition
from estero.automata.residual import ALL_MARKED, Hidden, HiddenSet, Key
from estero.language.tree.expressions import Node


class Action(IntEnum):
    """What marking an event does with a register, in the order in which they are done.

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
    STORE = 8
    """Remember the value."""
    STORE_LARGEST = 9
    """Remember the largest value so far; spoilt stays spoilt."""
    STORE_SMALLEST = 10
    STORE_SAME = 11
    """Remember the value if unset; a different one spoils it."""


@dataclass(frozen=True, slots=True)
class Value:
    """An int64 column of the classified events: `expression` of one event of `types`, order kept; or NULL."""

    expression: Node
    types: tuple[str, ...]
    hashed: int | None = None
    """For strings, which compare by equality only: number 0 or 1 of two independent 64-bit hashes."""


@dataclass(frozen=True, slots=True)
class Step:
    """On marking an event with `key`: `action` on register number `register` with value column `value`."""

    key: Key
    action: Action
    register: int
    value: int


@dataclass(frozen=True, slots=True)
class RegisterProgram:
    """Registers 0 … `registers` - 1, and the steps; steps of one event are done in the order of Action.

    An event belongs to a step if it carries the label `key`; to `ALL_MARKED` if it carries any label of
    the answer. RESET has no value and NOT_NULL no register; theirs are 0.
    """

    registers: int
    values: tuple[Value, ...]
    steps: tuple[Step, ...]


CHECKS = range(Action.LESS, Action.STORE)
"""The actions that compare an event with a register."""


def carries(labels: LabelSet, hidden: HiddenSet, key: Key) -> bool:
    """Whether an event that is marked so belongs to `key`."""
    if isinstance(key, Hidden):
        return key in hidden
    return bool(labels) if key == ALL_MARKED else key in labels


def tables(
    program: RegisterProgram, label_sets: Sequence[LabelSet], hidden_sets: Sequence[HiddenSet]
) -> list[list[tuple[int, int, int]]]:
    """For each mark id the steps (action, register, value), each once and in the order of Action.

    `label_sets[id]` and `hidden_sets[id]` are the labels behind an id, as a `LazyAutomaton` has them.
    """
    return [
        sorted(
            {
                (int(step.action), step.register, step.value)
                for step in program.steps
                if carries(labels, hidden, step.key)
            }
        )
        for labels, hidden in zip(label_sets, hidden_sets, strict=True)
    ]


class LiveRegisters:
    """In which states of an automaton what a register holds can still matter.

    A register is dead where no CHECK of it can be reached before it is unset or stored anew. Two runs in
    the same state that differ in dead registers only are the same run from there on.
    """

    def __init__(self, automaton: CEA, program: RegisterProgram) -> None:
        self._registers = program.registers
        self._live: list[set[int]] = [set() for _ in range(automaton.states)]
        into: list[list[int]] = [[] for _ in range(automaton.states)]
        kept: list[frozenset[int]] = []
        for number, transition in enumerate(automaton.transitions):
            into[transition.target].append(number)
            asked, ended = _uses(program, transition)
            self._live[transition.source] |= asked
            kept.append(frozenset(range(program.registers)) - ended)
        todo = [state for state, live in enumerate(self._live) if live]
        while todo:
            target = todo.pop()
            for number in into[target]:
                source = automaton.transitions[number].source
                new = (self._live[target] & kept[number]) - self._live[source]
                if new:
                    self._live[source] |= new
                    todo.append(source)

    def of(self, states: Iterable[int]) -> list[bool]:
        """For each register whether it is live in one of these states (one of `LazyAutomaton.subsets`)."""
        live = set().union(*(self._live[state] for state in states))
        return [register in live for register in range(self._registers)]


def _uses(program: RegisterProgram, transition: Transition) -> tuple[set[int], set[int]]:
    """The registers whose content a transition asks for, and those whose content ends there."""
    steps = [step for step in program.steps if carries(transition.labels, transition.hidden, step.key)]
    unset = {step.register for step in steps if step.action == Action.RESET}
    asked = {step.register for step in steps if step.action in CHECKS} - unset
    stored = {step.register for step in steps if step.action == Action.STORE}
    return asked, unset | stored
