"""Inclusion of automata by merging equivalent sets of states, the algorithm of Hopcroft and Karp.

Both automata are determinized on the fly, and sets of states that must be equivalent are merged into classes;
a pair of sets in the same class is pruned (Bonchi and Pous, "Checking NFA equivalence with bisimulations up
to congruence", POPL 2013, section 2). The first automaton is included in the second if their union is
equivalent to the second. Words are explored in the order of their lengths, and no pruned pair has a shorter
counterexample than the pairs before it, so the first counterexample is a shortest one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from estero.automata.cea import CEA, FIRST, LabelSet
from estero.automata.exploration import leaving
from estero.errors import LimitExceeded
from estero.theory.words import Letter, MarkedLetter, Word


class _Reached(NamedTuple):
    """The sets of states after a word, as bits: of the union of both automata, and of the second one."""

    both: int
    other: int
    word: Word = Word()


def difference_by_classes(
    ours: CEA,
    theirs: CEA,
    letters: Sequence[Letter],
    *,
    first: bool,
    longest: int | None,
    limit: int,
) -> tuple[MarkedLetter, ...] | None:
    """A shortest word that `ours` accepts and `theirs` does not; None if there is none.

    Words are over `letters`. They have at most `longest` events, and with `first` their first event is the
    first of the stream. Raises `LimitExceeded` if more than `limit` pairs of sets would be compared.
    """
    sides = _Side(ours, 0), _Side(theirs, ours.states)
    final = sides[0].final | sides[1].final
    start = _Reached(sides[0].initial | sides[1].initial, sides[1].initial)
    classes = _Classes()
    if not first:
        classes.joined(start.both, start.other)
    queue = deque([start])
    compared = 0
    while queue:
        here = queue.popleft()
        if longest is not None and here.word.length >= longest:
            continue
        for number, bits in enumerate(letters):
            at_start = first and here.word.length == 0
            moves = [side.moves(here.both, own, at_start) for side, own in zip(sides, bits, strict=True)]
            alone = sides[1].moves(here.other, bits[1], at_start)
            for labels in moves[0]:
                both, other = moves[0][labels] | moves[1].get(labels, 0), alone.get(labels, 0)
                if both == other or not classes.joined(both, other):
                    continue
                word = here.word.with_letter(number, labels)
                if both & final and not other & final:
                    return word.letters()
                compared += 1
                if compared > limit:
                    raise LimitExceeded(
                        f"comparing the two patterns takes more than {limit:,} steps: bound the iterations "
                        "of the patterns, compare parts of them, or give a larger limit="
                    )
                queue.append(_Reached(both, other, word))
    return None


@dataclass(slots=True)
class _Side:
    """The transitions of an automaton whose states are bits from `shift` on."""

    cea: CEA
    shift: int
    initial: int = field(init=False)
    final: int = field(init=False)
    _mask: int = field(init=False)
    _first: int = 0
    _steps: dict[tuple[int, int], list[tuple[LabelSet, int]]] = field(default_factory=dict)
    _moves: dict[tuple[int, int], dict[LabelSet, int]] = field(default_factory=dict)
    _leaving: list[list[tuple[int, int, LabelSet, int]]] = field(init=False)

    def __post_init__(self) -> None:
        cea = self.cea
        useful = cea.leading_to(cea.final, lambda _: True)
        self.initial = sum(1 << self.shift + state for state in cea.initial)
        self.final = sum(1 << self.shift + state for state in cea.final)
        self._mask = (1 << cea.states) - 1 << self.shift
        if cea.predicates[-1:] == (FIRST,):
            self._first = 1 << len(cea.predicates) - 1
        after = leaving(transition for transition in cea.transitions if transition.target in useful)
        self._leaving = [
            [
                (
                    _word(transition.guard.present),
                    _word(transition.guard.absent),
                    transition.labels,
                    1 << self.shift + transition.target,
                )
                for transition in after[state]
            ]
            for state in range(cea.states)
        ]

    def moves(self, states: int, bits: int, at_start: bool) -> dict[LabelSet, int]:
        """The successors of `states`, by the labels of the event."""
        bits |= self._first if at_start else 0
        key = states & self._mask, bits
        if key not in self._moves:
            numbers: dict[LabelSet, int] = {}
            for state in _bits(key[0] >> self.shift):
                for labels, target in self._of(state, bits):
                    numbers[labels] = numbers.get(labels, 0) | target
            self._moves[key] = numbers
        return self._moves[key]

    def _of(self, state: int, bits: int) -> list[tuple[LabelSet, int]]:
        if (state, bits) not in self._steps:
            self._steps[state, bits] = [
                (labels, target)
                for present, absent, labels, target in self._leaving[state]
                if bits & present == present and not bits & absent
            ]
        return self._steps[state, bits]


class _Classes:
    """A union-find structure of sets of states that must be equivalent."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}

    def joined(self, one: int, other: int) -> bool:
        """Merges the classes of two sets; returns whether they were different."""
        one, other = self._class_of(one), self._class_of(other)
        if one != other:
            self._above[one] = other
        return one != other

    def _class_of(self, states: int) -> int:
        top = states
        while (above := self._above.get(top, top)) != top:
            top = above
        while states != top:
            self._above[states], states = top, self._above[states]
        return top


def _word(bits: frozenset[int]) -> int:
    return sum(1 << bit for bit in bits)


def _bits(word: int) -> Iterator[int]:
    while word:
        lowest = word & -word
        yield lowest.bit_length() - 1
        word ^= lowest
