"""Events classified for all rules → which rules of a group want each of them, and with which bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.automata.cea import EventPredicate
from estero.classify.column_names import WORD
from estero.plan.plan import Plan

_ROWS: Final = 1 << 14
"""Rows whose bits are told apart at once."""
_NO_NUMBERS: Final = np.empty(0, np.int64)


class Pairs(NamedTuple):
    """Events and rules that want them, each once: rows ascend, and rules at one row; all are int64[pairs]."""

    rows: NDArray[np.int64]
    rules: NDArray[np.int64]
    bits: NDArray[np.int64]


class AskedBits:
    """The conditions of some rules, by the bits that they have among all conditions.

    `plans` are the rules' plans by their places in the group, `places` those of all conditions, and `since`
    says of rules by their places which eras they see.
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
        """The pairs of events with these words of bits, int64[rows]; `eras` are those in which they came."""
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
        """Rows from `first` on, and for each what is asked there, by its place in the table."""
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
        """What is asked of one row by one rule as one pair."""
        if not rows.size:
            return Pairs(_NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS)
        keys = rows * self._number + self._rules[asked]
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        bits = np.bitwise_or.reduceat(np.int64(1) << self._own[asked[order]], starts)
        rows, rules = np.divmod(keys[starts], self._number)
        return Pairs(rows, rules, bits)
