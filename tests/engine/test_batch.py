"""How kernels read batches: bit by bit, and in one kind of memory."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from estero.engine.batch import BITS_IN_WORD, constant, next_bit
from estero.engine.jit import kernel


@kernel
def bits_of(words, place, first, bits, found):  # type: ignore[no-untyped-def]
    """Fills found int64[bits] with the bits from `first` on; returns how many there are."""
    count = 0
    bit = next_bit(words, place, first, bits)
    while bit < bits:
        found[count] = bit
        count += 1
        bit = next_bit(words, place, bit + 1, bits)
    return count


@given(
    set_bits=st.sets(st.integers(0, 3 * BITS_IN_WORD - 1)),
    first=st.integers(0, 3 * BITS_IN_WORD),
    bits=st.integers(0, 3 * BITS_IN_WORD),
)
def test_bits_are_found_in_order_across_words(set_bits: set[int], first: int, bits: int) -> None:
    words = np.zeros((2, 3), np.uint64)
    for bit in set_bits:
        words[1, bit // BITS_IN_WORD] |= np.uint64(1 << bit % BITS_IN_WORD)
    found = np.zeros(3 * BITS_IN_WORD, np.int64)
    with np.errstate(over="ignore"):  # the search multiplies words, which wrap around
        count = bits_of(words, 1, first, bits, found)
    assert found[:count].tolist() == [bit for bit in sorted(set_bits) if first <= bit < bits]


def test_what_is_constant_is_copied_only_if_it_must_be() -> None:
    numbers = np.arange(6, dtype=np.int64)
    as_it_is, every_second = constant(numbers, np.int64), constant(numbers[::2], np.int64)
    assert np.shares_memory(as_it_is, numbers)
    assert not as_it_is.flags.writeable
    assert numbers.flags.writeable
    assert every_second.tolist() == [0, 2, 4]
    assert every_second.flags.c_contiguous
