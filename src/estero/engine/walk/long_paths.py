"""Numbers of paths below some roots that words do not hold, and the course of a path there.

The numbers of w nodes have up to w bits each, too much to be held at once. But at any time newer nodes refer
to the few older ones that the lists of runs held then. So the nodes are cut, oldest first, into about √w
pieces of √w; numbers are added up in words of one table, in place if the old number is no longer read, and
only what passes from one piece to the next is kept.

A path goes downwards, through each piece once. Its turns there are decided by the leading bits: the numbers
that enter a piece are cut off far below the lowest bit that √w additions can affect. If that leaves a turn
open, the piece is computed with whole numbers. What the path has passed on its way is a sum of the numbers
that enter the piece, each with a factor: so a piece takes a few products, whatever its length.
"""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT, INT32S, INT64S, inlined, kernel, pool
from estero.engine.store.arena import NONE, UNION, Arena
from estero.engine.walk.choices import PathCounts, resolved
from estero.engine.walk.counter import FITS, known

_SHORTEST = 1 << 9
"""The least number of nodes in a piece."""
_SPARE = 192
"""The number of leading bits that are read in addition to those that a piece can affect: 63 may be leading
zeros.
"""


@pool
class Unions(NamedTuple):
    """The unions below some roots whose numbers are long, ascending, and both sides of each.

    node int32; left, right int32: the place of such a union, the first one below that side, or NONE where
    left_word, right_word uint64 are the number of that side.
    """

    node: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    left_word: NDArray[np.uint64]
    right_word: NDArray[np.uint64]


class Turns(NamedTuple):
    """The turns of a path: right bool[unions] by place, for those that it passes.

    `last` is the last node of these; after it the path has the number `rest`, which is a word.
    """

    right: NDArray[np.bool_]
    last: int
    rest: int


class _Way(NamedTuple):
    """A path in a piece: the places of its unions, and whether it turns right there.

    It leads to the union at `place`, or to none, below which it has the number `rest`.
    """

    places: NDArray[np.int64]
    right: NDArray[np.bool_]
    rest: int
    place: int


@pool
class Sums(NamedTuple):
    """Numbers that will still be read, in words; each has a row.

    digits uint64[rows × width]: number i is in digits[i × width …], the lowest word first, length int32[rows]
    of them. Rows 0 and 1 are for words on the sides of the union at hand. free int32[rows]: rows not in use,
    the first free_rows int64[1] of them. row int32[unions]: the row of the number of a union, now or before;
    words int32[unions]: its length.
    """

    digits: NDArray[np.uint64]
    length: NDArray[np.int32]
    free: NDArray[np.int32]
    free_rows: NDArray[np.int64]
    row: NDArray[np.int32]
    words: NDArray[np.int32]


@kernel(Arena, PathCounts, INT, INT)
@inlined
def union_below(arena, counts, node, oldest):  # type: ignore[no-untyped-def]
    """The first union with two sides below a resolved long node, to which there is only one way."""
    while arena.kind[node] != UNION or arena.start[arena.right[node]] < oldest:
        node = resolved(arena, counts, arena.left[node], oldest)
    return node


@kernel(Arena, PathCounts, INT32S, INT, INT32S, INT64S)
def mark_long(arena, counts, roots, oldest, place, marked):  # type: ignore[no-untyped-def]
    """Sets `place` int32[nodes] to 1 at the unions below some long roots that are long, too, and 0 before.

    Fills marked int64[2] with the number of these, and the first one. Children have smaller numbers than
    their parents.
    """
    waiting = np.int64(0)
    node = 0
    for number in range(roots.size):
        root = union_below(arena, counts, resolved(arena, counts, roots[number], oldest), oldest)
        node = max(node, root)
        waiting += 1 - place[root]
        place[root] = 1
    size = 0
    while True:
        if place[node] == 1:
            size += 1
            waiting -= 1
            for side in range(2):
                child = resolved(arena, counts, arena.left[node] if side == 0 else arena.right[node], oldest)
                _, rough = known(counts.of_nodes, child, arena.start[child], oldest)
                if not rough < FITS:
                    child = union_below(arena, counts, child, oldest)
                    waiting += 1 - place[child]
                    place[child] = 1
            if waiting == 0:
                marked[0] = size
                marked[1] = node
                return
        node -= 1


@kernel(Arena, PathCounts, INT, INT32S, INT, Unions)
def list_long(arena, counts, oldest, place, first, unions):  # type: ignore[no-untyped-def]
    """Fills `unions` with the marked nodes, from the node `first` on, and `place` with their places there."""
    node = first
    for number in range(unions.node.size):
        while place[node] == 0:
            node += 1
        unions.node[number] = node
        place[node] = number
        for side in range(2):
            child = resolved(arena, counts, arena.left[node] if side == 0 else arena.right[node], oldest)
            exact, rough = known(counts.of_nodes, child, arena.start[child], oldest)
            where = NONE if rough < FITS else place[union_below(arena, counts, child, oldest)]
            if side == 0:
                unions.left[number] = where
                unions.left_word[number] = exact
            else:
                unions.right[number] = where
                unions.right_word[number] = exact
        node += 1


@inlined
def side_row(sums, side, word, spare):  # type: ignore[no-untyped-def]
    """The row of a side of a union: that of the union below, or the spare one, which gets the word."""
    if side != NONE:
        return np.int64(sums.row[side])
    sums.digits[spare * (sums.digits.size // sums.length.size)] = word
    sums.length[spare] = 1
    return np.int64(spare)


@inlined
def add_rows(sums, one, two, target):  # type: ignore[no-untyped-def]
    """Puts the sum of two rows into a row, which may be one of them; returns its number of words."""
    if sums.length[one] < sums.length[two]:
        one, two = two, one
    digits = sums.digits
    width = digits.size // sums.length.size
    shorter = sums.length[two]
    length = sums.length[one]
    first = one * width
    second = two * width
    third = target * width
    carry = np.uint64(0)
    for place in range(shorter):
        digit = digits[first + place]
        part = digit + digits[second + place]
        total = part + carry
        carry = np.uint64(part < digit) | np.uint64(total < part)
        digits[third + place] = total
    for place in range(shorter, length):
        digit = digits[first + place]
        total = digit + carry
        carry = np.uint64(total < digit)
        digits[third + place] = total
    if carry:
        digits[third + length] = carry
        length += 1
    sums.length[target] = length
    return length


@kernel(Unions, INT64S, INT, INT, Sums)
def add_up(unions, until, first, last, sums):  # type: ignore[no-untyped-def]
    """Computes the numbers of the unions at the places first … last - 1; those before are done.

    until int64[unions] is the last place that reads a number; its row is free from there on.
    """
    for place in range(first, last):
        left = unions.left[place]
        right = unions.right[place]
        one = side_row(sums, left, unions.left_word[place], 0)
        two = side_row(sums, right, unions.right_word[place], 1)
        count = sums.free_rows[0]
        if left != NONE and until[left] == place:
            sums.free[count] = one
            count += 1
        if right != NONE and until[right] == place and right != left:
            sums.free[count] = two
            count += 1
        count -= 1
        target = np.int64(sums.free[count])
        sums.free_rows[0] = count
        sums.row[place] = target
        sums.words[place] = add_rows(sums, one, two, target)


class LongPaths:
    """The numbers of paths inside the window from `oldest` on, below roots that have more than words hold.

    The rims below the roots must be done.
    """

    oldest: int
    place: NDArray[np.int32]

    def __init__(self, arena: Arena, counts: PathCounts, roots: NDArray[np.int32], oldest: int) -> None:
        place = np.zeros(int(roots.max()) + 1, np.int32)
        marked = np.empty(2, np.int64)
        mark_long(arena, counts, roots, oldest, place, marked)
        size, first = marked.tolist()
        node, left, right = np.empty((3, size), np.int32)
        self.unions: Unions = Unions(node, left, right, *np.empty((2, size), np.uint64))
        list_long(arena, counts, oldest, place, first, self.unions)
        self.oldest, self.place = oldest, place
        self._length = max(_SHORTEST, isqrt(size))
        tops = [
            union_below(arena, counts, resolved(arena, counts, root, oldest), oldest)
            for root in roots.tolist()
        ]
        self._top: dict[int, int] = dict(zip(roots.tolist(), place[tops].tolist(), strict=True))
        until = _last_readers(self.unions)
        until[list(self._top.values())] = size
        sums = _new_sums(until)
        self._words = sums.words
        self._carried: list[dict[int, int]] = [{}]
        for low in range(0, size, self._length):
            high = min(low + self._length, size)
            sums = _widened(sums, high - low)
            with np.errstate(over="ignore"):  # words wrap around, and are carried
                add_up(self.unions, until, low, high, sums)
            carried = {where: number for where, number in self._carried[-1].items() if until[where] >= high}
            fresh = (low + np.flatnonzero(until[low:high] >= high)).tolist()
            self._carried.append(carried | {where: _number(sums, where) for where in fresh})
        self.totals: dict[int, int] = {root: self._carried[-1][top] for root, top in self._top.items()}
        """By root."""

    def turns(self, root: int, index: int) -> Turns:
        """The turns of the path number `index` below a root."""
        right = np.zeros(self.unions.node.size, np.bool_)
        last = place = self._top[root]
        while place != NONE:
            shift = max(0, 64 * int(self._words[place]) - 2 * self._length - _SPARE)
            way = self._way(place, index, shift) or self._way(place, index, 0)
            if way is None:
                raise RuntimeError("whole numbers tell where a path turns")
            right[way.places] = way.right
            last, index, place = int(way.places[-1]), way.rest, way.place
        return Turns(right, int(self.unions.node[last]), index)

    def _way(self, top: int, index: int, shift: int) -> _Way | None:
        """The way through a piece from place `top` on, determined without the last `shift` bits.

        None if these bits are needed.

        A number in the piece is a sum of at most 2 ** (its place in the piece + 1) numbers that were cut off,
        and so exceeds what is left of it by less than that. The path subtracts numbers of different places.
        """
        low = top - top % self._length
        carried = self._carried[low // self._length]
        columns = [column[low : top + 1].tolist() for column in self.unions[1:]]
        cut = {where: number >> shift for where, number in carried.items()}
        befores: list[int] = []
        numbers: list[int] = []
        for left, right, left_word, right_word in zip(*columns, strict=True):
            one = left_word >> shift if left < 0 else numbers[left - low] if left >= low else cut[left]
            two = right_word >> shift if right < 0 else numbers[right - low] if right >= low else cut[right]
            befores.append(one)
            numbers.append(one + two)
        margin = 1 << (top - low + 1) if shift else 0
        rest, place = index >> shift, top
        places, turned = [], [False] * len(numbers)
        while place >= low:
            offset = place - low
            places.append(offset)
            after = rest - befores[offset]
            if 0 <= after < margin:
                return None
            if after >= 0:
                rest = after
                turned[offset] = True
            place = columns[after >= 0][offset]
        rest = index - _passed(low, columns, carried, turned)
        return _Way(np.array(places) + low, np.array(turned)[places], rest, place)


def _passed(low: int, columns: list[list[int]], carried: dict[int, int], turned: list[bool]) -> int:
    """The sum of the numbers on the left of the unions in a piece where a path turns to the right.

    From the newest union downwards, the factor of its number in the sum is known, and so those of its sides.
    """
    times, times_carried = [0] * len(turned), dict.fromkeys(carried, 0)
    passed, offset = 0, len(turned)
    rows = zip(*(column[::-1] for column in columns), turned[::-1], strict=True)
    for left, right, left_word, right_word, turns in rows:
        offset -= 1
        number = times[offset]
        for side, word, here in ((left, left_word, number + turns), (right, right_word, number)):
            if not here:
                continue
            if side < 0:
                passed += here * word
            elif side < low:
                times_carried[side] += here
            else:
                times[side - low] += here
    return passed + sum(number * carried[where] for where, number in times_carried.items() if number)


def _last_readers(unions: Unions) -> NDArray[np.int64]:
    """For each union, the place of the last one that has it on a side, int64; 0 if there is none."""
    places = np.arange(unions.node.size)
    last = np.zeros((2, unions.node.size), np.int64)
    for row, side in zip(last, (unions.left, unions.right), strict=True):
        row[side[side >= 0]] = places[side >= 0]  # places ascend, and the last one is kept
    latest: NDArray[np.int64] = np.maximum(*last)
    return latest


def _new_sums(until: NDArray[np.int64]) -> Sums:
    """Arrays for the numbers that are read at the same time; `until` is that of `add_up`."""
    size = until.size
    rows = 2 + int((np.arange(1, size + 1) - np.cumsum(np.bincount(until, minlength=size)[:size])).max())
    free = np.arange(rows - 1, -1, -1, dtype=np.int32)
    row, words = np.zeros((2, size), np.int32)
    return Sums(np.zeros(rows, np.uint64), np.ones(rows, np.int32), free, np.array([rows - 2]), row, words)


def _widened(sums: Sums, additions: int) -> Sums:
    """The sums, wide enough for `additions` additions: each adds a bit at most."""
    rows = sums.length.size
    width, needed = sums.digits.size // rows, int(sums.length.max()) + additions // 64 + 2
    if needed <= width:
        return sums
    digits = np.zeros((rows, 2 * needed), np.uint64)
    digits[:, :width] = sums.digits.reshape(rows, width)
    return sums._replace(digits=digits.ravel())


def _number(sums: Sums, place: int) -> int:
    """The number of a union whose row has not been reused."""
    first = int(sums.row[place]) * (sums.digits.size // sums.length.size)
    words = sums.digits[first : first + int(sums.words[place])]
    return int.from_bytes(words.astype("<u8").tobytes(), "little")
