"""Pools as their columns are declared: made, grown, written, read and checked."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from estero.engine.kernels import Grid, pool
from estero.engine.store import schema
from estero.engine.store.lists import check_lists, linked, listed, references
from estero.engine.store.schema import (
    EVENTS,
    NONE,
    check,
    counters,
    data,
    derived,
    drop_first,
    earlier,
    free_rows,
    grown,
    heads,
    new,
    own,
    picked,
    read,
    ref,
    scratch,
    sizes_of,
    with_free,
    with_sizes,
    written,
)


@pool
class Nodes(NamedTuple):
    event: NDArray[np.int64] = ref(EVENTS)
    left: NDArray[np.int32] = earlier()
    first: NDArray[np.int32] = schema.offsets("items")
    item: NDArray[np.int32] = ref("nodes", length="items")
    size: NDArray[np.int64] = counters(schema.ROWS, "items")


@pool
class Cells(NamedTuple):
    node: NDArray[np.int32] = ref("nodes", live="event")
    next: NDArray[np.int32] = own()
    free: NDArray[np.int64] = free_rows()


@pool
class Entries(NamedTuple):
    state: NDArray[np.int32] = ref("states", once=True)
    head: NDArray[np.int32] = heads("cells")
    length: NDArray[np.int32] = derived(counts="cells")
    clock: Grid[np.int64] = data(7, axes=("clocks",))
    where: NDArray[np.int32] = scratch(NONE, length="states")
    next: NDArray[np.int32] = own()
    free: NDArray[np.int64] = free_rows()


@pool
class Store(NamedTuple):
    nodes: Nodes
    cells: Cells
    entries: Entries


def store_of(partitions: list[list[list[int]]]) -> tuple[Store, NDArray[np.int32]]:
    """Lists of cells, by entries, by partitions; a cell is the event of its node."""
    store = new(Store, 2, nodes=16, items=0, states=3, clocks=2)
    store.nodes.event[:] = np.arange(16)
    first = np.full(len(partitions), NONE, np.int32)
    for number, entries in enumerate(partitions):
        for state, cells in reversed(list(enumerate(entries))):
            store = store._replace(entries=with_free(store.entries, 1))
            entry = put_row(store.entries, int(first[number]))
            first[number] = entry
            store.entries.state[entry], store.entries.head[entry] = state, NONE
            for event in sorted(cells):
                store = store._replace(cells=with_free(store.cells, 1))
                cell = put_row(store.cells, int(store.entries.head[entry]))
                store.cells.node[cell], store.entries.head[entry] = event, cell
    return store, first


def put_row(rows: Any, following: int) -> int:
    row = int(rows.free[0])
    rows.free[0] = rows.next[row]
    rows.free[1] -= 1
    rows.next[row] = following
    return row


PARTITIONS = st.lists(st.lists(st.lists(st.integers(0, 15), max_size=4), max_size=3), max_size=4)


@given(PARTITIONS, st.integers(0, 16))
def test_lists_are_as_they_were_without_what_has_left_the_window(
    partitions: list[list[list[int]]], oldest: int
) -> None:
    store, first = store_of(partitions)
    arrays, lengths = listed(store, "entries", first, oldest)
    live = [
        [
            (state, sorted(cells, reverse=True))
            for state, cells in enumerate(entries)
            if max(cells, default=-1) >= oldest
        ]
        for entries in partitions
    ]
    assert lengths.tolist() == list(map(len, live))
    assert arrays["entries.state"].tolist() == [state for entries in live for state, _ in entries]
    expected = [[event for event in cells if event >= oldest] for entries in live for _, cells in entries]
    assert arrays["cells.node"].tolist() == [event for cells in expected for event in cells]
    assert arrays["cells.count"].tolist() == list(map(len, expected))
    check_lists(
        Store,
        "entries",
        {**arrays, "nodes.event": np.arange(16)},
        lengths,
        {"nodes": 16, "states": 3, "clocks": 2},
    )
    again, heads_again = linked(store, "entries", arrays, lengths)
    assert again.entries.length[: len(expected)].tolist() == list(map(len, expected))
    for name, array in listed(again, "entries", heads_again, oldest)[0].items():
        np.testing.assert_array_equal(array, arrays[name])


def test_references_are_those_of_lists_and_of_lists_below() -> None:
    assert references(Store, "entries", "nodes") == ["cells.node"]
    assert references(Store, "entries", "states") == ["entries.state"]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("entries.state", [1, 1]),
        ("entries.state", [0, 3]),
        ("cells.node", [3, 5, 9]),
        ("cells.node", [5, 3, 16]),
        ("cells.count", [3, 0]),
        ("cells.count", [2, 2]),
        ("entries.clock", [7, 7]),
    ],
)
def test_lists_that_are_not_as_declared_are_refused(name: str, wrong: list[int]) -> None:
    store, first = store_of([[[3, 5], [9]]])
    arrays, lengths = listed(store, "entries", first, 0)
    sizes = {"nodes": 16, "states": 3, "clocks": 2}
    check_lists(Store, "entries", {**arrays, "nodes.event": np.arange(16)}, lengths, sizes)
    changed = {**arrays, "nodes.event": np.arange(16), name: np.array(wrong, arrays[name].dtype)}
    with pytest.raises(ValueError, match="invalid snapshot: "):
        check_lists(Store, "entries", changed, lengths, sizes)


def nodes_of() -> Nodes:
    nodes = new(Nodes, 4, items=4)
    nodes.event[:3], nodes.left[:3] = (2, 5, 5), (NONE, 0, 1)
    nodes.first[1:4], nodes.item[:2] = (0, 1, 2), (0, 1)
    nodes.size[:] = 3, 2
    return nodes


def test_what_is_in_use_is_written_and_read() -> None:
    arrays = written(nodes_of(), "nodes", np.array([2, 5]))
    assert {name: array.tolist() for name, array in arrays.items()} == {
        "nodes.event": [0, 1, 1],
        "nodes.left": [NONE, 0, 1],
        "nodes.first": [0, 0, 1, 2],
        "nodes.item": [0, 1],
    }
    again = read(Nodes, "nodes", arrays, 5)
    assert (sizes_of(again), again.size.tolist()) == ({"rows": 6, "items": 5}, [3, 2])
    assert again.left[:3].tolist() == [NONE, 0, 1]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("nodes.event", [0, 1, 2]),
        ("nodes.event", [0, 1]),
        ("nodes.left", [NONE, 1, 1]),
        ("nodes.left", [-2, 0, 1]),
        ("nodes.first", [0, 1, 0, 2]),
        ("nodes.first", [0, 0, 1, 1]),
        ("nodes.item", [0, 3]),
    ],
)
def test_columns_that_are_not_as_declared_are_refused(name: str, wrong: list[int]) -> None:
    arrays, sizes = written(nodes_of(), "nodes", np.array([2, 5])), {"nodes": 3, EVENTS: 2}
    check(Nodes, "nodes", arrays, sizes)
    with pytest.raises(ValueError, match="invalid snapshot: "):
        check(Nodes, "nodes", {**arrays, name: np.array(wrong, arrays[name].dtype)}, sizes)


def test_a_pool_grows_with_what_is_in_use() -> None:
    bigger = grown(nodes_of(), rows=9, items=7)
    assert (sizes_of(bigger), bigger.size.tolist()) == ({"rows": 9, "items": 7}, [3, 2])
    assert (bigger.first[:4].tolist(), bigger.item[:2].tolist()) == ([0, 0, 1, 2], [0, 1])


def test_sizes_that_are_too_small_are_doubled_and_scratch_is_new() -> None:
    entries = new(Entries, 2, states=2, clocks=1)
    assert with_sizes(entries, states=2, clocks=1) is entries
    entries.where[0], entries.clock[1] = 5, 3
    wider = with_sizes(entries, states=3, clocks=1)
    assert wider.where.tolist() == [NONE] * 6
    assert wider.clock[:, 0].tolist() == [7, 3]


def test_rows_that_are_picked_come_first() -> None:
    chosen = picked(Tracks(np.array([4, 5, 6])), np.array([2, 0]), 4)
    assert chosen.ordinal.tolist() == [6, 4, -1, -1]


@pool
class Tracks(NamedTuple):
    ordinal: NDArray[np.int64] = data(-1)


def test_rows_that_are_dropped_are_renumbered_where_others_refer_to_them() -> None:
    nodes = nodes_of()
    drop_first(nodes, {"nodes": 1}, "nodes")
    assert (int(nodes.size[0]), nodes.event[:2].tolist(), nodes.left[:2].tolist()) == (2, [5, 5], [NONE, 0])
