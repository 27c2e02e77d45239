"""Comparisons between variables that a run can check as it goes (algorithms.md, "The planner").

A *register* is one integer that a run remembers of the events it has marked. Runs in the same state with
the same registers have the same futures, so compact sets are split by them and nothing that has violated
a comparison survives.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from estero.automata.residual import Key
from estero.language.expressions import Node


class Action(IntEnum):
    """What marking an event does with a register, in the order in which they are done.

    A register is unset, set, or spoilt. A CHECK of an unset register passes, of a spoilt one fails, and
    fails where the event's value is NULL and the register is not unset. Storing NULL spoils a register.
    """

    RESET = 0
    """Unset it."""
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
    """Registers 0 … `registers` - 1, and the steps; steps of one event are done in the order of Action."""

    registers: int
    values: tuple[Value, ...]
    steps: tuple[Step, ...]
