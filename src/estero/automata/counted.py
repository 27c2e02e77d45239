"""Conditions on how many events a variable has, such as ``count(x) <= 3``, counted by the states of runs.

A state then says how many events a run has marked so far, up to the largest number that the condition names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from estero.automata.cea import CEA, Transition
from estero.automata.exploration import explore, leaving
from estero.automata.residual import Residual
from estero.language.tree import expressions as e

MOST_STATES: Final = 2_000
"""The most states that an automaton may get by counting."""


class Counted(NamedTuple):
    """An automaton that counts, and the residuals that are left."""

    automaton: CEA
    residuals: tuple[Residual, ...]


def with_counts(automaton: CEA, residuals: Iterable[Residual]) -> Counted:
    """The automaton that counts the events of labels, and the residuals that are not conditions on counts."""
    left = []
    for residual in residuals:
        most = largest_count(residual)
        if most is None or automaton.states * (most + 2) > MOST_STATES:
            left.append(residual)
        else:
            automaton = _counting(automaton, residual, most)
    return Counted(automaton, tuple(left))


def largest_count(residual: Residual) -> int | None:
    """The largest number with which a residual compares a count; None if it is not a condition on a count."""
    condition = residual.condition
    plain = residual.place is None and residual.nearby is None and not residual.refuted
    if not plain or not isinstance(condition, e.Node) or len(residual.bindings) != 1:
        return None
    numbers: list[int] = []
    for part in e.joined_by_logic(condition):
        compared = list(part.children())
        if not isinstance(part, e.Comparison | e.Between) or sum(map(_is_count, compared)) != 1:
            return None
        constants = [operand.value for operand in compared if isinstance(operand, e.Literal)]
        known = [constant for constant in constants if isinstance(constant, int)]
        if len(known) != len(compared) - 1:
            return None
        numbers += known
    return max(0, *numbers)


def _counting(automaton: CEA, residual: Residual, most: int) -> CEA:
    """The automaton whose states are pairs of a state and a count, which stops at `most` + 1."""
    ((_, key),) = residual.bindings
    steps = leaving(automaton.transitions)

    def after(pair: tuple[int, int]) -> list[tuple[Transition, tuple[int, int]]]:
        state, count = pair
        counted = [(step, min(most + 1, count + step.carries(key))) for step in steps[state]]
        return [
            (step, (step.target, number))
            for step, number in counted
            if step.target not in automaton.final or _holds(residual.condition, number)
        ]

    begun = [(state, 0) for state in sorted(automaton.initial)]
    moves = list(explore(begun, after))
    pairs = dict.fromkeys([*begun, *(target for _, _, target in moves)])
    numbers = {pair: number for number, pair in enumerate(pairs)}
    return replace(
        automaton,
        states=len(numbers),
        initial=frozenset(numbers[pair] for pair in begun),
        final=frozenset(number for (state, _), number in numbers.items() if state in automaton.final),
        transitions=tuple(
            replace(step, source=numbers[source], target=numbers[target]) for source, step, target in moves
        ),
        origins=tuple(automaton.origins[state] for state, _ in numbers) if automaton.origins else (),
    )


def _is_count(node: e.Node) -> bool:
    return isinstance(node, e.Aggregate) and node.function == "count" and node.operand is None


def _holds(condition: object, count: int) -> bool:
    match condition:
        case e.And(parts):
            return all(_holds(part, count) for part in parts)
        case e.Or(parts):
            return any(_holds(part, count) for part in parts)
        case e.Not(part):
            return not _holds(part, count)
        case e.Comparison(operator, left, right):
            return bool(e.COMPARED[operator](_number(left, count), _number(right, count)))
        case e.Between(operand, low, high):
            return _number(low, count) <= _number(operand, count) <= _number(high, count)
        case _:
            raise ValueError(f"{condition} does not count")


def _number(node: e.Node, count: int) -> int:
    return node.value if isinstance(node, e.Literal) and isinstance(node.value, int) else count
