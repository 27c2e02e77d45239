"""Inclusion of automata, with a shortest word that one accepts and the other does not.

Their languages consist of marked words: a complex event is the word of the events from its start to its end,
each with its labels. The second automaton is determinized on the fly, and a pair (state of the first, set of
states of the second) is pruned if the same state has been reached with a smaller set: the antichain algorithm
of De Wulf, Doyen, Henzinger and Raskin, "Antichains: a new algorithm for checking universality of finite
automata", CAV 2006. Each pair is compared with all pairs of its state, so for many pairs congruence classes
are used instead (merging.py).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from estero.automata.cea import CEA, FIRST, LabelSet, Transition
from estero.automata.exploration import leaving
from estero.theory.merging import difference_by_classes
from estero.theory.words import Letter, MarkedLetter, Word

PAIR_CAP: Final = 200_000
"""The most pairs of sets of states that are compared, unless a limit is given."""

FEW_COMPARISONS: Final = 100_000
"""The most comparisons of sets by antichains before congruence classes are used instead."""


class _Pair(NamedTuple):
    """The states of both automata after a word."""

    state: int
    others: frozenset[int]
    word: Word = Word()


def difference(
    ours: CEA,
    theirs: CEA,
    letters: Sequence[Letter],
    *,
    first: bool = False,
    longest: int | None = None,
    limit: int = PAIR_CAP,
) -> tuple[MarkedLetter, ...] | None:
    """A shortest word that `ours` accepts and `theirs` does not; None if there is none.

    Words are over `letters`, with at most `longest` events. With `first` their first event is the first of
    the stream. Both automata must be without hidden labels.

    Raises `LimitExceeded` if more than `limit` pairs of sets would be compared.
    """
    try:
        return _by_antichains(ours, theirs, letters, first=first, longest=longest)
    except _ManyError:
        return difference_by_classes(ours, theirs, letters, first=first, longest=longest, limit=limit)


class _ManyError(Exception):
    """A signal that antichains take too many comparisons."""


def _by_antichains(
    ours: CEA, theirs: CEA, letters: Sequence[Letter], *, first: bool, longest: int | None
) -> tuple[MarkedLetter, ...] | None:
    own, other = _Moves(ours), _Moves(theirs)
    queue = deque(_Pair(state, frozenset(theirs.initial)) for state in sorted(ours.initial))
    met: defaultdict[int, list[frozenset[int]]] = defaultdict(list)
    compared = 0
    while queue:
        pair = queue.popleft()
        if longest is not None and pair.word.length >= longest:
            continue
        at_start = first and pair.word.length == 0
        for number, letter in enumerate(letters):
            bits, their_bits = own.bits(letter.ours, at_start), other.bits(letter.theirs, at_start)
            for transition in own.allowed(pair.state, bits):
                others = other.after(pair.others, their_bits, transition.labels)
                word = pair.word.with_letter(number, transition.labels)
                following = _Pair(transition.target, others, word)
                if transition.target in ours.final:
                    if others.isdisjoint(theirs.final):
                        return word.letters()
                    continue
                compared += len(met[transition.target]) + 1
                if compared > FEW_COMPARISONS:
                    raise _ManyError
                if not any(fewer <= others for fewer in met[transition.target]):
                    met[transition.target].append(others)
                    queue.append(following)
    return None


def shortest(cea: CEA, letters: Iterable[int] | None = None) -> int | None:
    """The number of events from the start to the end of a shortest complex event; None if there is none.

    `letters` are the bits of all kinds of events; without them every guard counts as satisfiable.
    """
    kinds = None if letters is None else list(letters)
    first = 1 << len(cea.predicates) - 1 if cea.predicates[-1:] == (FIRST,) else 0

    def passes(transition: Transition) -> bool:
        if kinds is None:
            return True
        begins = first if transition.source in cea.initial else 0
        return any(transition.guard.allows(bits | more) for bits in kinds for more in {0, begins})

    after = leaving(transition for transition in cea.transitions if passes(transition))
    level, seen = set(cea.initial), set(cea.initial)
    for length in range(1, cea.states + 1):
        level = {transition.target for state in level for transition in after[state]}
        if not level.isdisjoint(cea.final):
            return length
        level -= seen
        seen |= level
    return None


@dataclass(slots=True)
class _Moves:
    """The transitions of an automaton by state and bits, cached."""

    cea: CEA
    first: int = 0
    _leaving: defaultdict[int, list[Transition]] = field(init=False)
    _allowed: dict[tuple[int, int], list[Transition]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        useful = self.cea.leading_to(self.cea.final, lambda _: True)
        self._leaving = leaving(
            transition for transition in self.cea.transitions if transition.target in useful
        )
        if self.cea.predicates[-1:] == (FIRST,):
            self.first = 1 << len(self.cea.predicates) - 1

    def bits(self, bits: int, at_start: bool) -> int:
        return bits | self.first if at_start else bits

    def allowed(self, state: int, bits: int) -> list[Transition]:
        key = (state, bits)
        if key not in self._allowed:
            self._allowed[key] = [
                transition for transition in self._leaving[state] if transition.guard.allows(bits)
            ]
        return self._allowed[key]

    def after(self, states: frozenset[int], bits: int, labels: LabelSet) -> frozenset[int]:
        return frozenset(
            transition.target
            for state in states
            for transition in self.allowed(state, bits)
            if transition.labels == labels
        )
