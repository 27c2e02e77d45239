"""From events classified for all rules to the rules of a group that they concern, with the bits of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.automata.cea import EventPredicate
from estero.classify.column_names import WORD
from estero.plan.plan import Plan

_ROWS: Final = 1 << 14
"""The largest number of rows whose bits are processed at once."""
_NO_NUMBERS: Final = np.empty(0, np.int64)


class Pairs(NamedTuple):
    """Pairs of an event and a rule that it concerns, ordered by row and then rule; int64[pairs] each."""

    rows: NDArray[np.int64]
    rules: NDArray[np.int64]
    bits: NDArray[np.int64]


class AskedBits:
    """The conditions of some rules, by their bits among all conditions.

    - `plans`: the plans of the rules, by their places in the group.
    - `places`: the places of all conditions.
    - `since`: the first era that each rule sees, by its place.
    """

    def __init__(
        self, plans: Mapping[int, Plan], places: Mapping[EventPredicate, int], since: Mapping[int, int]
    ) -> None:
        asked = sorted(
            (places[predicate], rule, bit)
            for rule, plan in plans.items()
            for bit, predicate in enumerate(plan.classification.predicates)
        )
        table = np.array(asked, np.int64).reshape(-1, 3)
        bits, self._rules, self._own = np.ascontiguousarray(table.T)
        self._first = np.searchsorted(bits, np.arange(len(places) + 1))
        self._masks: dict[int, int] = {}
        for place in dict.fromkeys(bits.tolist()):
            word, bit = divmod(place, WORD)
            self._masks[word] = self._masks.get(word, 0) | 1 << bit
        self._number = 1 + max(plans, default=0)
        self._since = np.zeros(self._number, np.int64)
        self._since[list(since)] = list(since.values())

    def pairs(self, words: Sequence[NDArray[np.int64]], eras: NDArray[np.int64] | None = None) -> Pairs:
        """The pairs of events with these words of bits, int64[rows]; `eras` are the eras of the events."""
        parts = [
            self._of_word(words[word] & mask, word, first)
            for word, mask in self._masks.items()
            for first in range(0, words[word].size, _ROWS)
        ]
        rows = np.concatenate([_NO_NUMBERS, *(rows for rows, _ in parts)])
        asked = np.concatenate([_NO_NUMBERS, *(asked for _, asked in parts)])
        if eras is not None and self._since.any():
            seen = eras[rows] >= self._since[self._rules[asked]]
            rows, asked = rows[seen], asked[seen]
        return self._together(rows, asked)

    def _of_word(self, word: NDArray[np.int64], number: int, first: int) -> tuple[NDArray[np.int64], ...]:
        """The rows from `first` on that concern some rule, with the place of their bits in the table."""
        rows = first + np.flatnonzero(word[first : first + _ROWS])
        if not rows.size:
            return _NO_NUMBERS, _NO_NUMBERS
        which, bits = np.nonzero((word[rows, None] >> np.arange(WORD)) & 1)
        places = number * WORD + bits
        begin, end = self._first[places], self._first[places + 1]
        sizes = end - begin
        before = np.repeat(sizes.cumsum() - sizes, sizes)
        return np.repeat(rows[which], sizes), np.repeat(begin, sizes) + np.arange(sizes.sum()) - before

    def _together(self, rows: NDArray[np.int64], asked: NDArray[np.int64]) -> Pairs:
        """The pairs with the bits of each pair of a row and a rule combined."""
        if not rows.size:
            return Pairs(_NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS)
        keys = rows * self._number + self._rules[asked]
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        bits = np.bitwise_or.reduceat(np.int64(1) << self._own[asked[order]], starts)
        rows, rules = np.divmod(keys[starts], self._number)
        return Pairs(rows, rules, bits)
