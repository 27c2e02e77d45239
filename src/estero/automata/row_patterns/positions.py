"""A row pattern as an automaton of positions whose moves are ordered by preference.

A state is an occurrence of a variable in the pattern, with the number of completed iterations of each
repetition around it. It has read a row of its variable. Its moves are the possible continuations, the most
preferred first: further states, or the end, on conditions about the ends of the partition. States are made on
demand, so ``(A{700}){700}`` costs nothing until rows need it.

An iteration that reads no row ends its repetition once the lower bound is reached (ISO 19075-5): it may be
the last one, and no further one follows it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import permutations
from typing import Final, NamedTuple

from estero.errors import LimitExceeded
from estero.language.row_patterns.tree import (
    Anchor,
    Choice,
    Excluded,
    Nothing,
    Permutation,
    Repetition,
    RowPattern,
    Sequence,
    Variable,
    nodes_of,
    parts_of,
)

ACCEPT: Final = -1
"""The target of a move at which the pattern is complete."""
START: Final = 0
"""The state before the first row."""
AT_START, AT_END = 1, 2
"""The conditions of a move on the border between two rows, as bits: the partition starts or ends there."""

_MOST_STEPS: Final = 300_000
_MOST_ORDERS: Final = 5_040


class Move(NamedTuple):
    """A possible continuation: a state or `ACCEPT`, if the border satisfies `asked`."""

    target: int
    asked: int


@dataclass(frozen=True, slots=True)
class State:
    """A state: its variable (a key), and whether its rows are excluded from the output."""

    variable: str
    excluded: bool


Counts = tuple[tuple[int, int], ...]
"""The open repetitions and permutations, by node, with the parts of them that are done."""


class PositionAutomaton:
    """The automaton of a pattern for partitions of at most `longest` rows; state 0 is the start."""

    def __init__(self, pattern: RowPattern, longest: int) -> None:
        self._nodes = _Nodes(_simplified(pattern), longest)
        self.never: bool = self._nodes.least_rows() > longest
        self.states: list[State] = [State("", excluded=False)]
        self._keys: list[tuple[int, Counts]] = [(-1, ())]
        self._numbers: dict[tuple[int, Counts], int] = {(-1, ()): START}
        self._moves: dict[int, tuple[Move, ...]] = {}
        self._steps = 0

    def moves(self, state: int) -> tuple[Move, ...]:
        """The moves from a state, the most preferred first."""
        moves = self._moves.get(state)
        if moves is None:
            moves = self._moves[state] = tuple(self._explored(state))
        return moves

    def explore(self, most: int) -> bool:
        """Makes all states unless there are more than `most`; returns whether it did."""
        waiting = deque([START])
        seen = {START}
        while waiting:
            for move in self.moves(waiting.popleft()):
                if move.target not in seen and move.target != ACCEPT:
                    seen.add(move.target)
                    waiting.append(move.target)
            if len(seen) > most:
                return False
        return True

    def _explored(self, state: int) -> list[Move]:
        """Visits the nodes that read no row, depth first, the most preferred first."""
        nodes = self._nodes
        leaf, counts = self._keys[state]
        # steps: a node, whether it is left, the counts, the repetitions begun in this walk, and the
        # conditions
        first = (
            (0, False, counts, frozenset[int](), 0)
            if state == START
            else (leaf, True, counts, frozenset[int](), 0)
        )
        waiting = [first]
        seen = set()
        moves = _Moves()
        while waiting:
            step = waiting.pop()
            if step in seen:
                continue
            seen.add(step)
            self._steps += 1
            if self._steps > _MOST_STEPS:
                raise LimitExceeded(
                    f"the limit of {_MOST_STEPS:,} steps through PATTERN is reached: it nests too "
                    f"many repetitions of "
                    "parts that may be empty; write A{0,9} in place of (A?){9}"
                )
            node, left, counts, _, asked = step
            if left and nodes.parent[node] < 0:
                moves.add(Move(ACCEPT, asked))
            elif not left and isinstance(nodes.pattern[node], Variable):
                moves.add(Move(self._number(node, counts), asked))
            else:
                further = nodes.leave(*step) if left else nodes.enter(*step)
                waiting += reversed(further)
        return moves.moves

    def _number(self, leaf: int, counts: Counts) -> int:
        key = (leaf, counts)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.states)
            self._keys.append(key)
            variable = self._nodes.pattern[leaf]
            assert isinstance(variable, Variable)  # noqa: S101 - only leaves get here
            self.states.append(State(variable.key, self._nodes.excluded[leaf]))
        return number


class _Moves:
    """Moves in order, without those that are useless after the same move with no more conditions."""

    def __init__(self) -> None:
        self._asked: dict[int, list[int]] = {}
        self.moves: list[Move] = []

    def add(self, move: Move) -> None:
        """Adds a move after the others."""
        earlier = self._asked.setdefault(move.target, [])
        if not any(asked & move.asked == asked for asked in earlier):
            earlier.append(move.asked)
            self.moves.append(move)


_Step = tuple[int, bool, Counts, frozenset[int], int]


class _Nodes:
    """The nodes of a pattern by number, each with its parent and children."""

    def __init__(self, pattern: RowPattern, longest: int) -> None:
        self.pattern: list[RowPattern] = []
        self.parent: list[int] = []
        self.children: list[list[int]] = []
        self.excluded: list[bool] = []
        self.place: list[int] = []
        self._longest = longest
        waiting = deque([(pattern, -1, 0, False)])
        while waiting:
            node, parent, place, excluded = waiting.popleft()
            number = len(self.pattern)
            excluded = excluded or isinstance(node, Excluded)
            self.pattern.append(node)
            self.parent.append(parent)
            self.place.append(place)
            self.excluded.append(excluded)
            self.children.append([])
            if parent >= 0:
                self.children[parent].append(number)
            waiting.extend((part, number, index, excluded) for index, part in enumerate(parts_of(node)))

    def least_rows(self) -> int:
        """The least number of rows of a match."""
        least = [0] * len(self.pattern)
        for number in reversed(range(len(self.pattern))):
            node = self.pattern[number]
            parts = [least[child] for child in self.children[number]]
            match node:
                case Variable():
                    least[number] = 1
                case Choice():
                    least[number] = min(parts)
                case Repetition():
                    least[number] = parts[0] * node.least
                case _:
                    least[number] = sum(parts)
        return least[0]

    def enter(
        self, number: int, _left: bool, counts: Counts, begun: frozenset[int], asked: int
    ) -> list[_Step]:
        """The continuations at the beginning of a node."""
        node, children = self.pattern[number], self.children[number]
        match node:
            case Anchor(at=at):
                return [(number, True, counts, begun, asked | (AT_START if at == "start" else AT_END))]
            case Nothing():
                return [(number, True, counts, begun, asked)]
            case Choice():
                return [(child, False, counts, begun, asked) for child in children]
            case Repetition():
                return self._again(number, 0, counts, begun, asked)
            case Permutation():
                return self._others(number, 0, counts, begun, asked)
        return [(children[0], False, counts, begun, asked)]

    def leave(
        self, number: int, _left: bool, counts: Counts, begun: frozenset[int], asked: int
    ) -> list[_Step]:
        """The continuations at the end of a node, which depend on its parent."""
        parent = self.parent[number]
        node = self.pattern[parent]
        siblings, place = self.children[parent], self.place[number]
        match node:
            case Sequence() if place + 1 < len(siblings):
                return [(siblings[place + 1], False, counts, begun, asked)]
            case Permutation():
                done = counts[-1][1] | 1 << place
                return self._others(parent, done, counts[:-1], begun, asked)
            case Repetition(least=least):
                done = counts[-1][1] + 1
                if parent in begun and done >= least:  # it has read nothing, so that no iteration follows
                    return [(parent, True, counts[:-1], begun - {parent}, asked)]
                return self._again(parent, done, counts[:-1], begun, asked)
        return [(parent, True, counts, begun, asked)]

    def _again(
        self, number: int, done: int, counts: Counts, begun: frozenset[int], asked: int
    ) -> list[_Step]:
        """One more iteration, or the end of a repetition, in order of preference."""
        node = self.pattern[number]
        assert isinstance(node, Repetition)  # noqa: S101 - the callers have seen it
        steps: list[_Step] = []
        if node.most is None or done < node.most:
            counted = done
            if node.most is None or node.most > self._longest:
                counted = min(done, max(node.least - 1, 0))  # larger counts make no difference
            inside = (*counts, (number, counted))
            steps.append((self.children[number][0], False, inside, begun | {number}, asked))
        if done >= node.least:
            steps.append((number, True, counts, begun - {number}, asked))
        return steps if node.greedy else steps[::-1]

    def _others(
        self, number: int, done: int, counts: Counts, begun: frozenset[int], asked: int
    ) -> list[_Step]:
        """The remaining parts of a permutation, or its end."""
        children = self.children[number]
        if done == (1 << len(children)) - 1:
            return [(number, True, counts, begun, asked)]
        inside = (*counts, (number, done))
        return [
            (child, False, inside, begun, asked)
            for place, child in enumerate(children)
            if not done >> place & 1
        ]


def _simplified(pattern: RowPattern) -> RowPattern:
    """The same pattern with permutations that contain choices expanded, and empty parts repeated once."""
    match pattern:
        case Sequence(parts):
            return Sequence(tuple(map(_simplified, parts)))
        case Choice(parts):
            return Choice(tuple(map(_simplified, parts)))
        case Excluded(part):
            return Excluded(_simplified(part))
        case Permutation(parts):
            simple = tuple(map(_simplified, parts))
            if not any(
                isinstance(node, Choice | Repetition | Permutation)
                for part in simple
                for node in nodes_of(part)
            ):
                return Permutation(simple)
            if len(simple) > 7:
                raise LimitExceeded(
                    f"PERMUTE of {len(simple)} parts that leave a choice has more than "
                    f"{_MOST_ORDERS:,} orders, "
                    "the limit; it may have more parts if they are variables alone"
                )
            return Choice(tuple(map(Sequence, permutations(simple))))
        case Repetition(part, least, most, greedy):
            part = _simplified(part)
            if not any(isinstance(node, Variable) for node in nodes_of(part)):
                least, most = min(least, 1), 1
            return _flattened(Repetition(part, least, most, greedy))
    return pattern


def _flattened(repeated: Repetition) -> Repetition:
    """The same pattern with (A{,m}){n} as A{,m·n}, because iterations cannot be told apart by their rows."""
    inner = repeated.part
    if not (isinstance(inner, Repetition) and isinstance(inner.part, Variable) and inner.least == 0):
        return repeated
    if repeated.least != repeated.most and repeated.greedy != inner.greedy:
        return repeated
    endless = inner.most is None or repeated.most is None
    most = None if endless else (inner.most or 0) * (repeated.most or 0)
    return Repetition(inner.part, 0, most, inner.greedy)
