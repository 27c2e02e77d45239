"""Look-ups of texts among a few known ones, row by row, in one pass (docs/architecture.md)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT32S, column, inlined, kernel, pool

_UINT8S = column(np.uint8)
_LEAST_SLOTS: Final = 64
_WORD: Final = 8
_MASK64, _POSITIVE = (1 << 64) - 1, (1 << 63) - 1
_OF_LENGTH, _OF_FINISH, _FACTOR = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB & _POSITIVE
_TRIES: Final = 64


class _Key(NamedTuple):
    """The first eight bytes of a text, the last eight where it is longer (else 0), and its length."""

    begin: int
    finish: int
    length: int

    @classmethod
    def of(cls, text: bytes) -> _Key:
        finish = text[-_WORD:] if len(text) > _WORD else b""
        return cls(int.from_bytes(text[:_WORD], "little"), int.from_bytes(finish, "little"), len(text))


@pool
class TextTable(NamedTuple):
    """Known texts in a hash table, whose slots tell apart texts with another beginning, end or length.

    A slot has the code of the last known text there, its beginning and end (`_Key`), and its length, -1 for
    none. Text `code` is ``letters[ends[code] : ends[code + 1]]``; `following` is the previous known text with
    the same key. `other` stands for none, also in the additional slot of `codes`, which is read if a text is
    not known: this avoids a branch.
    """

    codes: NDArray[np.int64]
    begins: NDArray[np.uint64]
    finishes: NDArray[np.uint64]
    lengths: NDArray[np.int64]
    following: NDArray[np.int64]
    ends: NDArray[np.int64]
    letters: NDArray[np.uint8]
    factor: int
    other: int


class KnownTexts:
    """Known texts, each with its place as its code; all other texts have the code after the last.

    A text of at most 16 bytes is recognized by one comparison, without a branch for the processor to predict.
    Measured a row, a fifth of them known: 2 ns for texts of one byte (7 when bytes were compared one by one).
    """

    def __init__(self, texts: Sequence[bytes]) -> None:
        keys = list(map(_Key.of, texts))
        slots, factor = _apart(set(keys))
        other = len(texts)
        table = self.table = TextTable(
            codes=np.full(slots + 1, other, np.int64),
            begins=np.zeros(slots, np.uint64),
            finishes=np.zeros(slots, np.uint64),
            lengths=np.full(slots, -1, np.int64),
            following=np.full(max(1, other), other, np.int64),
            ends=np.cumsum([0, *map(len, texts)], dtype=np.int64),
            letters=np.frombuffer(b"".join(texts) or b"\0", np.uint8),
            factor=factor,
            other=other,
        )
        for place, key in enumerate(keys):
            slot = _slot(key, factor, slots)
            table.following[place], table.codes[slot] = table.codes[slot], place
            table.begins[slot], table.finishes[slot], table.lengths[slot] = key

    def codes(self, ends: NDArray[np.int32], letters: NDArray[np.uint8]) -> NDArray[np.int32]:
        """The code of each text: text k is ``letters[ends[k] : ends[k + 1]]`` (not checked)."""
        codes = np.empty(ends.size - 1, np.int32)
        _look_up(self.table, ends, letters, codes)
        return codes


def _slot(key: _Key, factor: int, slots: int) -> int:
    """`slot_of` with Python integers."""
    mixed = (key.begin ^ key.finish * _OF_FINISH ^ key.length * _OF_LENGTH) & _MASK64
    mixed ^= mixed >> 32
    return (mixed * factor & _MASK64) >> 32 & slots - 1


def _apart(keys: set[_Key]) -> tuple[int, int]:
    """The number of slots, a power of two, and a factor by which the hashes of all keys differ."""
    slots = _LEAST_SLOTS
    while slots < 4 * len(keys):
        slots *= 2
    factor = _FACTOR
    for attempt in count(1):
        if len({_slot(key, factor, slots) for key in keys}) == len(keys):
            break
        factor = (factor * _OF_LENGTH + 2 * attempt) & _POSITIVE | 1
        if attempt % _TRIES == 0:
            slots *= 2
    return slots, factor


@inlined
def slot_of(begin, finish, length, factor, last_slot):  # type: ignore[no-untyped-def]
    """The slot of a text with such a key."""
    mixed = begin ^ finish * np.uint64(_OF_FINISH) ^ np.uint64(length) * np.uint64(_OF_LENGTH)
    mixed ^= mixed >> np.uint64(32)  # a product's high bits depend on all bits, its low ones do not
    return np.int64((mixed * np.uint64(factor)) >> np.uint64(32) & np.uint64(last_slot))


@inlined
def eight_bytes(letters, start):  # type: ignore[no-untyped-def]
    """The eight bytes from a place on as one number, in one load."""
    word = np.uint64(letters[start])
    for place in range(1, _WORD):
        word |= np.uint64(letters[start + place]) << np.uint64(8 * place)
    return word


@inlined
def few_bytes(letters, start, length):  # type: ignore[no-untyped-def]
    """The first bytes of a text, at most eight, as one number, if the bytes after it may not be read."""
    word = np.uint64(0)
    for place in range(min(length, _WORD)):
        word |= np.uint64(letters[start + place]) << np.uint64(8 * place)
    return word


@inlined
def code_in_chain(table, letters, start, length, code):  # type: ignore[no-untyped-def]
    """The known text of a chain with the same bytes between the first eight and the last eight."""
    while code != table.other:
        begin = table.ends[code]
        place = np.int64(_WORD)
        while place < length - _WORD and table.letters[begin + place] == letters[start + place]:
            place += 1
        if place >= length - _WORD:
            break
        code = table.following[code]
    return code


@inlined
def code_of(table, letters, start, length):  # type: ignore[no-untyped-def]
    """The code of the text from a place on."""
    last_slot = table.lengths.size - 1
    finish = np.uint64(0)
    if length > _WORD:
        begin = eight_bytes(letters, start)
        finish = eight_bytes(letters, start + length - _WORD)
    elif start + _WORD <= letters.size and length > 0:
        rest = np.uint64(8 * (_WORD - length))
        begin = eight_bytes(letters, start) << rest >> rest
    else:
        begin = few_bytes(letters, start, length)
    slot = slot_of(begin, finish, length, table.factor, last_slot)
    unlike = (table.begins[slot] ^ begin) | (table.finishes[slot] ^ finish)
    unlike |= np.uint64(table.lengths[slot] ^ length)
    code = table.codes[slot if unlike == np.uint64(0) else last_slot + 1]
    if length > 2 * _WORD and code != table.other:
        code = code_in_chain(table, letters, start, length, code)
    return code


@kernel(TextTable, INT32S, _UINT8S, INT32S)
def _look_up(table, ends, letters, codes):  # type: ignore[no-untyped-def]
    """Looks up the texts of `ends` int32[rows + 1] and `letters`; fills codes int32[rows]."""
    for row in range(codes.size):
        start = np.int64(ends[row])
        codes[row] = code_of(table, letters, start, np.int64(ends[row + 1]) - start)
    return 0
