"""The ED-index: skip pointers by hand and by definition, the next entry in few steps, versions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estero.engine.store.ed_index import (
    EdEntries,
    find_next,
    first_unequal,
    insert,
    newest,
    sequences_of,
)
from estero.engine.store.hash_index import HashIndex, new_index
from estero.engine.store.schema import grown, new

Row = tuple[int, ...]

FIGURE = [(1, 4), (2, 4), (2, 3), (2, 4), (2, 3), (5, 3), (5, 3)]
"""A list s1 … s7 of attributes a, b of which Example 14 is true."""

LONGEST = 40


class Lists:
    """Lists by key, of entries with `attributes` values each; entry k is the k-th insertion from 0."""

    def __init__(self, attributes: int) -> None:
        self.attributes = attributes
        self.sequences = sequences_of(attributes)
        self.entries: EdEntries = new(
            EdEntries, LONGEST, attributes=attributes, pointers=self.sequences.last.size - 1
        )
        self.index: HashIndex = new_index(LONGEST)

    def insert(self, values: Row, key: int = 0, place: int = 0) -> int:
        number = int(self.entries.size[0])
        with np.errstate(over="ignore"):
            entry = insert(
                self.entries,
                self.sequences,
                self.index,
                place,
                self.attributes,
                np.uint64(key),
                np.uint64(key),
                self.wanted(values),
                1,
                number,
                number,
                0,
                0,
            )
        assert entry == number
        return number

    def newest(self, key: int = 0, place: int = 0) -> int:
        with np.errstate(over="ignore"):
            return int(newest(self.index, place, np.uint64(key), np.uint64(key), 0))

    def wanted(self, values: Row) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
        row = np.array(values, np.uint64).reshape(1, self.attributes, 1)
        return np.concatenate((np.zeros_like(row), row)).repeat(2, axis=2)

    def unequal(self, top: int, values: Row) -> list[int]:
        """The entries from `top` on that differ in all attributes, as the index finds them."""
        wanted, mask = self.wanted(values), (1 << self.attributes) - 1
        entry = int(first_unequal(self.entries, self.sequences, top, mask, wanted, 1))
        found = []
        while entry >= 0:
            found.append(entry)
            entry = int(find_next(self.entries, self.sequences, entry, self.attributes, wanted, 1))
        return found

    def pointer(self, entry: int, sequence: Row) -> int:
        number = 0
        for attribute in sequence:
            number = int(self.sequences.child[number, attribute])
        return int(self.entries.skips[entry, number - 1])


def listed(rows: Sequence[Row], attributes: int = 2) -> Lists:
    """One list with these entries."""
    lists = Lists(attributes)
    for row in rows:
        lists.insert(row)
    return lists


def by_definition(rows: Sequence[Row], entry: int, sequence: Row) -> int:
    """s_k[a1 … am]: the last one before that differs in each a_l from s_k[a1 … a_(l-1)]."""
    differs: list[tuple[int, int]] = []
    holder = entry
    for attribute in sequence:
        if holder < 0:
            return -1
        differs.append((attribute, rows[holder][attribute]))
        before = (
            at for at in range(entry - 1, -1, -1) if all(rows[at][one] != value for one, value in differs)
        )
        holder = next(before, -1)
    return holder


def test_example_14_the_pointers_of_the_last_entry() -> None:
    lists = listed(FIGURE)
    a, b = 0, 1
    found = [lists.pointer(6, sequence) + 1 for sequence in ((a,), (a, b), (b,), (b, a))]
    assert found == [5, 4, 4, 1]


def test_example_15_an_insertion_finds_its_pointers_and_changes_no_others() -> None:
    lists = listed(FIGURE)
    before = lists.entries.skips[:7].copy()
    lists.insert((2, 3))
    a, b = 0, 1
    found = [lists.pointer(7, sequence) + 1 for sequence in ((a,), (b,), (a, b), (b, a))]
    assert found == [7, 4, 1, 1]
    assert np.array_equal(lists.entries.skips[:7], before)


def test_what_differs_from_the_example_is_passed_over_as_the_figure_says() -> None:
    assert [entry + 1 for entry in listed(FIGURE).unequal(6, (2, 3))] == [1]
    assert [entry + 1 for entry in listed(FIGURE).unequal(6, (5, 4))] == [5, 3]


ROWS = st.integers(0, 3).flatmap(
    lambda attributes: st.tuples(
        st.just(attributes),
        st.lists(st.tuples(*[st.integers(0, 2)] * attributes), max_size=LONGEST),
        st.tuples(*[st.integers(0, 3)] * attributes),
    )
)


@given(ROWS)
def test_every_pointer_is_that_of_the_definition(drawn: tuple[int, list[Row], Row]) -> None:
    attributes, rows, _ = drawn
    lists = listed(rows, attributes)
    orders = [
        order for length in range(1, attributes + 1) for order in permutations(range(attributes), length)
    ]
    for entry in range(len(rows)):
        for order in orders:
            assert lists.pointer(entry, order) == by_definition(rows, entry, order)


@given(ROWS)
def test_every_version_finds_what_was_there_in_few_steps(drawn: tuple[int, list[Row], Row]) -> None:
    attributes, rows, values = drawn
    lists = listed(rows, attributes)
    for top in range(len(rows)):
        looked = int(lists.entries.looked[0])
        found = lists.unequal(top, values)
        differ = [
            at
            for at in range(top, -1, -1)
            if all(one != other for one, other in zip(rows[at], values, strict=True))
        ]
        assert found == differ
        assert lists.entries.looked[0] - looked <= (attributes + 1) * (len(found) + 1)


@pytest.mark.parametrize("attributes", [1, 2, 3, 4])
def test_an_insertion_looks_at_a_bounded_number_of_entries(attributes: int) -> None:
    rng = np.random.default_rng(attributes)
    lists = Lists(attributes)
    pointers = lists.sequences.parent.size - 1
    for row in rng.integers(0, 2, (LONGEST, attributes)).tolist():
        looked = int(lists.entries.looked[0])
        lists.insert(tuple(row))
        assert lists.entries.looked[0] - looked <= pointers * (attributes + 1)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 2)), max_size=LONGEST))
def test_keys_and_places_have_lists_of_their_own(rows: list[tuple[int, int, int]]) -> None:
    lists = Lists(1)
    for key, place, value in rows:
        lists.insert((value,), key, place)
    for key in range(3):
        for place in range(2):
            mine = [at for at, row in enumerate(rows) if row[:2] == (key, place)]
            assert lists.newest(key, place) == (mine[-1] if mine else -1)
            if mine:
                assert lists.unequal(mine[-1], (1,)) == [at for at in mine[::-1] if rows[at][2] != 1]


def test_a_version_is_not_changed_by_later_insertions_nor_by_growth() -> None:
    lists = listed(FIGURE)
    old, top = lists.entries, lists.newest()
    found = lists.unequal(top, (9, 4))
    for value in range(20):
        lists.insert((9, value))
    assert lists.unequal(top, (9, 4)) == found == [6, 5, 4, 2]
    lists.entries = grown(old, rows=2 * LONGEST)
    lists.insert((5, 5))
    assert lists.unequal(top, (9, 4)) == found
    assert lists.unequal(lists.newest(), (9, 4))[0] == 27


def test_more_disequalities_than_six_are_refused() -> None:
    with pytest.raises(ValueError, match="7 disequalities of one transition are more than 6"):
        sequences_of(7)
