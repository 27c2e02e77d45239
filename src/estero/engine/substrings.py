"""Search for thousands of known strings in texts, in one pass over their letters.

Each string is known by its rarest *gram*, a row of four bytes (fewer where it is shorter). A text is searched
for grams, which a bitmap nearly always rules out; whole strings are compared only where a gram is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT32S, INT64S, column, inlined, kernel, pool

_UINT8S = column(np.uint8)
_GRAM: Final = 4
_FACTOR: Final = 0x9E3779B97F4A7C15
_BITS_A_GRAM: Final = 16
_LEAST_BITS: Final = 12
_FIRST_PAIRS: Final = 1 << 10

AT_BEGIN, AT_END = 1, 2
"""The required place of a string: at the beginning of a text, or at its end; their sum for the whole text."""

Letters = NDArray[np.uint8]


@pool
class GramTable(NamedTuple):
    """The grams of one length in a hash table, and the strings known by each.

    `bitmap` has a bit for the hash of each gram, and `slots` the gram and its number, -1 where there is none.
    Gram k is that of the strings ``strings[firsts[k] : firsts[k + 1]]``, at their byte `offsets`. String s is
    ``letters[ends[s] : ends[s + 1]]``, and `where` says where it has to stand. `length` is that of the grams;
    `shift` keeps as many bits of a hash as the bitmap needs.
    """

    bitmap: NDArray[np.uint64]
    grams: NDArray[np.uint64]
    slots: NDArray[np.int64]
    firsts: NDArray[np.int64]
    strings: NDArray[np.int64]
    offsets: NDArray[np.int64]
    where: NDArray[np.int64]
    ends: NDArray[np.int64]
    letters: Letters
    length: int
    shift: int


class KnownSubstrings:
    """The strings to look for in texts: none is empty, and `where` gives the place of each (0: anywhere).

    Measured with 18,000 strings in texts of 100 bytes that have 28 of them: 1.4 to 2.7 µs a text, a fifth of
    the time of two libraries for Aho-Corasick, including Python objects for all pairs.
    """

    def __init__(self, strings: Sequence[bytes], where: Sequence[int]) -> None:
        self._number = len(strings)
        lengths = np.array(list(map(len, strings)), np.int64)
        if not lengths.all():
            raise ValueError("an empty string is everywhere")
        ends = np.concatenate([[0], lengths.cumsum()]).astype(np.int64)
        letters = np.frombuffer(b"".join(strings) or b"\0", np.uint8)
        places = np.array(where, np.int64)
        self._tables = [
            _table(np.flatnonzero(np.minimum(lengths, _GRAM) == length), ends, letters, places, length)
            for length in np.unique(np.minimum(lengths, _GRAM)).tolist()
        ]

    def occurrences(
        self, ends: NDArray[np.int32], letters: Letters
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The distinct pairs of a text and a string that occurs in it, int64[pairs] both.

        Text k is ``letters[ends[k] : ends[k + 1]]`` (not checked).
        """
        parts = [part for table in self._tables for part in self._of(table, ends, letters)]
        nothing = np.empty(0, np.int64)
        texts, strings = zip(*parts, strict=True) if parts else ((), ())
        return np.concatenate([nothing, *texts]), np.concatenate([nothing, *strings])

    def _of(
        self, table: GramTable, ends: NDArray[np.int32], letters: Letters
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        size, begin = _FIRST_PAIRS, 0
        last = np.full(self._number, -1, np.int64)
        while begin < ends.size - 1:
            texts, strings = np.empty(size, np.int64), np.empty(size, np.int64)
            reached = np.array([begin, 0], np.int64)
            _occurrences(table, ends, letters, last, texts, strings, reached)
            following, number = reached.tolist()
            yield texts[:number], strings[:number]
            last.fill(-1)  # some strings of the next text were found, but have no pair yet
            begin, size = following, 2 * size


def _table(
    own: NDArray[np.int64], ends: NDArray[np.int64], letters: Letters, where: NDArray[np.int64], length: int
) -> GramTable:
    """The table of the strings `own`, which are looked up by grams of a length."""
    rarest, offsets = _rarest(own, ends, letters, length)
    order = np.argsort(rarest, kind="stable")
    grams, firsts = np.unique(rarest[order], return_index=True)
    bits = max(_LEAST_BITS, int(grams.size * _BITS_A_GRAM).bit_length())
    bitmap = np.zeros(1 << bits - 6, np.uint64)
    mask = (1 << bits) - 1
    slots = np.full(mask + 1, -1, np.int64)
    hashes = (grams * np.uint64(_FACTOR)) >> np.uint64(64 - bits)
    np.bitwise_or.at(bitmap, hashes >> np.uint64(6), np.uint64(1) << (hashes & np.uint64(63)))
    for place, hashed in enumerate(hashes.tolist()):
        slot = hashed
        while slots[slot] >= 0:
            slot = slot + 1 & mask
        slots[slot] = place
    return GramTable(
        bitmap=bitmap,
        grams=grams,
        slots=slots,
        firsts=np.append(firsts, own.size).astype(np.int64),
        strings=own[order],
        offsets=offsets[order],
        where=where,
        ends=ends,
        letters=letters,
        length=length,
        shift=64 - bits,
    )


def _rarest(
    own: NDArray[np.int64], ends: NDArray[np.int64], letters: Letters, length: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The rarest gram of each string among all of them, and its place in the string."""
    numbers = ends[own + 1] - ends[own] - length + 1
    begins = np.concatenate([[0], numbers.cumsum()])
    within = np.arange(begins[-1]) - np.repeat(begins[:-1], numbers)
    starts = np.repeat(ends[own], numbers) + within
    grams = np.zeros(starts.size, np.uint64)
    for place in range(length):
        grams |= letters[starts + place].astype(np.uint64) << np.uint64(8 * (length - 1 - place))
    _, kinds, counts = np.unique(grams, return_inverse=True, return_counts=True)
    often = counts[kinds]
    fewest = np.minimum.reduceat(often, begins[:-1])
    rare = np.flatnonzero(often == np.repeat(fewest, numbers))
    of_strings = np.repeat(np.arange(own.size), numbers)[rare]
    first = rare[np.unique(of_strings, return_index=True)[1]]
    return grams[first], within[first]


@inlined
def is_at(table, string, begin, end, letters, first, last):  # type: ignore[no-untyped-def]
    """Whether a string occurs between two places of the letters of a text, which has `first` to `last`."""
    where = table.where[string]
    if (
        begin < first
        or end > last
        or (where & AT_BEGIN and begin != first)
        or (where & AT_END and end != last)
    ):
        return False
    own = table.ends[string]
    place = 0
    while place < end - begin and table.letters[own + place] == letters[begin + place]:
        place += 1
    return place == end - begin


@kernel(GramTable, INT32S, _UINT8S, INT64S, INT64S, INT64S, INT64S)
def _occurrences(table, ends, letters, last, texts, strings, reached):  # type: ignore[no-untyped-def]
    """Fills the pairs from text ``reached[0]`` on; sets `reached` to the next text and the pairs so far.

    `last` has for each string the text in which it was last found. It stops at the text whose pairs lack
    space.
    """
    text, number = reached[0], np.int64(0)
    size = table.length
    wanted = (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
    mask = table.slots.size - 1
    while text < ends.size - 1:
        first, end = np.int64(ends[text]), np.int64(ends[text + 1])
        before = number
        word = np.uint64(0)
        for place in range(first, end):
            word = (word << np.uint64(8)) | np.uint64(letters[place])
            if place - first + 1 < size:
                continue
            gram = word & wanted
            hashed = (gram * np.uint64(_FACTOR)) >> np.uint64(table.shift)
            if (table.bitmap[hashed >> np.uint64(6)] >> (hashed & np.uint64(63))) & np.uint64(1) == np.uint64(
                0
            ):
                continue
            slot = np.int64(hashed)
            while table.slots[slot] >= 0 and table.grams[table.slots[slot]] != gram:
                slot = slot + 1 & mask
            known = table.slots[slot]
            if known < 0:
                continue
            for candidate in range(table.firsts[known], table.firsts[known + 1]):
                string = table.strings[candidate]
                if last[string] == text:
                    continue
                begin = place - size + 1 - table.offsets[candidate]
                behind = begin + table.ends[string + 1] - table.ends[string]
                if is_at(table, string, begin, behind, letters, first, end):
                    if number == texts.size:
                        reached[0], reached[1] = text, before
                        return 0
                    last[string] = text
                    texts[number], strings[number] = text, string
                    number += 1
        text += 1
    reached[0], reached[1] = text, number
    return 0
