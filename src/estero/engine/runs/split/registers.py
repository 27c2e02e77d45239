"""The effect of marking an event on the registers of a run (docs/architecture.md).

A register is one integer that a run remembers of the events it has marked. It is unset, set or spoilt;
the value of one that is not set is 0, so that registers are equal where all their numbers are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import Grid, inlined, pool

RESET, NOT_NULL = 0, 1
LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL, EQUAL, NOT_EQUAL = range(2, 8)
NEAR, FAR = 8, 9
STORE, STORE_LARGEST, STORE_SMALLEST, STORE_SAME = range(10, 14)
"""The actions, in the order in which the steps of one event are taken.

RESET unsets. A check (value LESS than register, …) of an unset register passes; of a spoilt one, or of one
that is set while the event's value is NULL, it fails. Storing NULL spoils. STORE overwrites; the others leave
a spoilt register spoilt, and STORE_SAME spoils one that holds a different value. NEAR and FAR are for
ascending values: the register is less than a length below, or it is not.
"""

UNSET, SET, SPOILT = 0, 1, 2


class RegisterTables(NamedTuple):
    """The steps of each label set: number l has first[l] … first[l + 1] - 1, sorted by action; int32.

    `value` is a column of `EventBatch.values`; RESET has none (any number), NOT_NULL has no register.
    length int64: that of NEAR and FAR.
    """

    registers: int
    first: NDArray[np.int32]
    action: NDArray[np.int32]
    register: NDArray[np.int32]
    value: NDArray[np.int32]
    length: NDArray[np.int64]


@pool
class Program(NamedTuple):
    """`RegisterTables` for kernels, int32 but for the lengths.

    joins [J]: registers that some label set checks for equality. columns [labels, J]: the column that label
    set l compares with register joins[j], -1 where it does not. clock [R]: the column that NEAR compares with
    a register, -1 where there is none, or several. nearest: larger registers are better, as NEAR is their
    only check.
    """

    first: NDArray[np.int32]
    action: NDArray[np.int32]
    register: NDArray[np.int32]
    value: NDArray[np.int32]
    length: NDArray[np.int64]
    joins: NDArray[np.int32]
    columns: Grid[np.int32]
    clock: NDArray[np.int32]
    nearest: bool


def program_of(tables: RegisterTables | None) -> Program:
    """The tables in the form for kernels; None means no registers and no steps."""
    if tables is None:
        empty = np.zeros(0, np.int32)
        lengths, columns = np.zeros(0, np.int64), np.zeros((0, 0), np.int32)
        return Program(empty, empty, empty, empty, lengths, empty, columns, empty, nearest=False)
    first, action, register, value = (np.array(column, np.int32) for column in tables[1:5])
    length = np.array(tables.length, np.int64)
    for label in range(first.size - 1):
        if (np.diff(action[first[label] : first[label + 1]]) < 0).any():
            raise ValueError(f"the steps of label set {label} are not in the order of their actions")
    joins = np.unique(register[action == EQUAL]).astype(np.int32)
    columns = np.full((first.size - 1, joins.size), -1, np.int32)
    for label in range(first.size - 1):
        steps = range(first[label], first[label + 1])
        unset = {int(register[step]) for step in steps if action[step] == RESET}
        for step in steps:
            if action[step] == EQUAL and int(register[step]) not in unset:
                columns[label, np.searchsorted(joins, register[step])] = value[step]
    clock = np.full(tables.registers, -1, np.int32)
    for near in np.unique(register[action == NEAR]).tolist():
        compared = np.unique(value[(action == NEAR) & (register == near)])
        clock[near] = compared[0] if compared.size == 1 else -1
    nearest = bool(np.isin(action, (NEAR, STORE)).all())
    return Program(first, action, register, value, length, joins, columns, clock, nearest)


@inlined
def passes(action, value, register, length):  # type: ignore[no-untyped-def]
    """Whether a value passes a check against a register."""
    if action == NEAR:
        return np.uint64(value) - np.uint64(register) < np.uint64(length)
    if action == FAR:
        return np.uint64(value) - np.uint64(register) >= np.uint64(length)
    if action == EQUAL:
        return value == register
    if action == NOT_EQUAL:
        return value != register
    if action == LESS:
        return value < register
    if action == LESS_OR_EQUAL:
        return value <= register
    if action == GREATER:
        return value > register
    return value >= register


@inlined
def take_steps(program, mark, values, valid, place, unseen, registers, status, row):  # type: ignore[no-untyped-def]
    """Takes the steps of label set `mark` on row `row` of registers and status; whether all checks pass.

    values int64, valid bool: row `place` is that of the event; with `unseen` all its values are NULL.
    registers int64, status int8.
    """
    for step in range(program.first[mark], program.first[mark + 1]):
        action = program.action[step]
        register = program.register[step]
        if action == RESET:
            registers[row, register] = 0
            status[row, register] = UNSET
            continue
        column = program.value[step]
        known = valid[place, column] and not unseen
        if action == NOT_NULL:
            if not known:
                return False
            continue
        held = status[row, register]
        value = values[place, column]
        if action < STORE:
            if held != UNSET and (
                held == SPOILT
                or not known
                or not passes(action, value, registers[row, register], program.length[step])
            ):
                return False
            continue
        if action == STORE:
            held = UNSET
        if held == SPOILT or not known:
            registers[row, register] = 0
            status[row, register] = SPOILT
        elif held == UNSET:
            registers[row, register] = value
            status[row, register] = SET
        elif action == STORE_LARGEST:
            registers[row, register] = max(registers[row, register], value)
        elif action == STORE_SMALLEST:
            registers[row, register] = min(registers[row, register], value)
        elif registers[row, register] != value:
            registers[row, register] = 0
            status[row, register] = SPOILT
    return True
