"""The ED-index: runs that wait with a key and with values that all differ from given ones.

Section 6 of "Towards streaming evaluation of queries with correlation"; look-ups take constant time.
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import Cube, Grid, inlined, pool, step
from estero.engine.store.arena import NONE
from estero.engine.store.hash_index import FREE, START, claim, find, heap_of, put
from estero.engine.store.schema import counters, data, earlier, ref

MOST_ATTRIBUTES = 6
"""The most disequalities of one transition: an entry has 1,956 skip pointers then."""


@pool
class Sequences(NamedTuple):
    """All sequences of distinct attributes, numbered from 0, the empty one, prefixes first.

    child int32[n, d]: the sequence with an attribute more; parent, last int32[n]: without its last one, and
    that one (NONE for the empty one); upto int32[d + 1]: sequences over the first k attributes are the first
    upto[k].
    """

    child: Grid[np.int32]
    parent: NDArray[np.int32]
    last: NDArray[np.int32]
    upto: NDArray[np.int32]


@pool
class EdEntries(NamedTuple):
    """Entries of all lists, in order of insertion; `node.size` is the capacity.

    ======= ====== ================ =================================================================
    array   dtype  shape            meaning for entry i
    ======= ====== ================ =================================================================
    node    int32  [rows]           the run node that waits
    place   int32  [rows]           where it waits
    values  uint64 [rows, d, 2]     its attributes, 128 bits each
    skips   int32  [rows, n - 1]    skip pointer of sequence k + 1 (NONE: to before the list)
    before  int32  [rows]           the previous one in its list, or NONE
    size    int64  [1]              entries in use
    looked  int64  [1]              the number of comparisons of entries so far
    ======= ====== ================ =================================================================
    """

    node: NDArray[np.int32] = ref("nodes")
    place: NDArray[np.int32] = ref("places")
    values: Cube[np.uint64] = data(axes=("attributes", 2))
    skips: Grid[np.int32] = earlier(axes=("pointers",))
    before: NDArray[np.int32] = earlier()
    size: NDArray[np.int64] = counters()
    looked: NDArray[np.int64] = counters("looked")


def sequences_of(attributes: int) -> Sequences:
    """The sequences of a number of attributes, at most `MOST_ATTRIBUTES`."""
    if attributes > MOST_ATTRIBUTES:
        raise ValueError(f"{attributes} disequalities of one transition are more than {MOST_ATTRIBUTES}")
    sequences = [
        drawn for length in range(attributes + 1) for drawn in permutations(range(attributes), length)
    ]
    sequences.sort(key=lambda sequence: (max(sequence, default=NONE), len(sequence), sequence))
    place = {sequence: place for place, sequence in enumerate(sequences)}
    child = [[place.get((*sequence, last), NONE) for last in range(attributes)] for sequence in sequences]
    upto = [
        sum(max(sequence, default=NONE) < most for sequence in sequences) for most in range(attributes + 1)
    ]
    return Sequences(
        np.array(child, np.int32).reshape(len(sequences), attributes),
        np.array([place[sequence[:-1]] if sequence else NONE for sequence in sequences], np.int32),
        np.array([sequence[-1] if sequence else NONE for sequence in sequences], np.int32),
        np.array(upto, np.int32),
    )


@step
def first_unequal(entries, sequences, entry, mask, wanted, row):  # type: ignore[no-untyped-def]
    """The first entry from `entry` on that differs from wanted[row] in all attributes of `mask`, or NONE.

    wanted uint64[rows, d, 2]. Loop invariant: `at` is the last entry that differs in the attributes of
    `sequence`, which have left `mask`; all entries before it agree in one of them. So `mask` is empty after
    d steps.
    """
    at = entry
    sequence = 0
    while at != NONE:
        entries.looked[0] += 1
        agrees = NONE
        for attribute in range(wanted.shape[1]):
            if (
                (mask >> attribute) & 1 == 1
                and entries.values[at, attribute, 0] == wanted[row, attribute, 0]
                and entries.values[at, attribute, 1] == wanted[row, attribute, 1]
            ):
                agrees = attribute
                break
        if agrees == NONE:
            break
        mask &= ~(1 << agrees)
        sequence = sequences.child[sequence, agrees]
        at = entries.skips[entry, sequence - 1]
    return at


@inlined
def find_next(entries, sequences, entry, width, wanted, row):  # type: ignore[no-untyped-def]
    """The next entry after `entry` that differs from wanted[row] in the first `width` attributes, or NONE."""
    before = entries.before[entry]
    if width == 0 or before == NONE:
        return before
    return first_unequal(entries, sequences, before, (1 << width) - 1, wanted, row)


@inlined
def newest(index, place, one, two, forgotten):  # type: ignore[no-untyped-def]
    """The newest entry at (place, key), or NONE."""
    slot = find(index, place, one, two)
    if slot == FREE or index.entries[slot, START] < forgotten:
        return NONE
    return heap_of(index, slot)


@inlined
def insert(entries, sequences, index, place, width, one, two, wanted, row, node, event, oldest, since):  # type: ignore[no-untyped-def]
    """Puts a run node on top of the list of (place, key), with the first `width` attributes of wanted[row].

    Needs a free row in `entries` and a free place in `index`. Entries of events before `since` do not count
    for this key, and those before `oldest` for no key. Returns the entry. wanted[0] is scratch, so that `row`
    is another one.
    """
    entry = entries.size[0]
    entries.size[0] = entry + 1
    entries.node[entry] = node
    entries.place[entry] = place
    for attribute in range(width):
        entries.values[entry, attribute, 0] = wanted[row, attribute, 0]
        entries.values[entry, attribute, 1] = wanted[row, attribute, 1]
    slot = claim(index, place, one, two, oldest)
    entries.before[entry] = heap_of(index, slot) if index.entries[slot, START] >= since else NONE
    put(index, slot, place, entry, event)
    for sequence in range(1, sequences.upto[width]):
        entries.skips[entry, sequence - 1] = _skip(entries, sequences, entry, sequence, wanted)
    return entry


@inlined
def _skip(entries, sequences, entry, sequence, scratch):  # type: ignore[no-untyped-def]
    """The skip pointer of a sequence, given those of its prefixes; overwrites scratch[0].

    It leads to the last earlier entry that differs from this one in the first attribute of the sequence, from
    there along that one's pointer to the second, and so on.
    """
    mask = 0
    longer = sequence
    while longer != 0:
        prefix = sequences.parent[longer]
        holder = entry if prefix == 0 else entries.skips[entry, prefix - 1]
        if holder == NONE:
            return NONE
        attribute = sequences.last[longer]
        scratch[0, attribute, 0] = entries.values[holder, attribute, 0]
        scratch[0, attribute, 1] = entries.values[holder, attribute, 1]
        mask |= 1 << attribute
        longer = prefix
    return first_unequal(entries, sequences, entries.before[entry], mask, scratch, 0)
