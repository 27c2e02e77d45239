"""What waits in an ED-index as a few dense arrays, and back (`snapshot`).

Without a window all runs that wait are kept, except those that were forgotten.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from estero.engine.snapshots.columns import ED_ENTRIES, EVENTS, RUN_NODES, Arrays
from estero.engine.snapshots.snapshot import Snapshot, distinct
from estero.engine.snapshots.snapshot_pcea import entry_rows
from estero.engine.snapshots.sound import check_entries, need
from estero.engine.store.arena import NONE
from estero.engine.store.ed_index import EdEntries, Sequences, drop_entries, grown_entries, new_entries
from estero.engine.store.hash_index import HashIndex
from estero.engine.store.run_nodes import RunNodes, drop_run_nodes, grown_run_nodes, new_run_nodes
from estero.engine.walk.list_counts import Lists


def chain_snapshot(lists: Lists, index: HashIndex, oldest: int) -> Snapshot:
    """The runs of events from `oldest` on; nothing changes in what is read."""
    nodes, entries, sequences, place_width = lists
    used, used_entries = int(nodes.size[0]), int(entries.size[0])
    first = int(np.searchsorted(nodes.event[:used], oldest))
    first_entry = int(np.searchsorted(entries.node[:used_entries], first))
    nodes, entries = grown_run_nodes(nodes, used), grown_entries(entries, used_entries, sequences)
    if first > 0:
        drop_entries(entries, first_entry, first)
        drop_run_nodes(nodes, first, first_entry)
    count, size = used - first, used_entries - first_entry
    events = distinct(nodes.event[:count])
    arrays = RUN_NODES.written(nodes, count, events) | ED_ENTRIES.written(entries, size, events)
    widths = np.append(place_width, 0)  # place NONE, where runs begin, has none
    of_node, of_entry = widths[arrays["node_place"]], widths[arrays["entry_place"]]
    for values, width in (("node_values", of_node), ("entry_values", of_entry)):
        _blank(arrays[values], width, 0)
    _blank(arrays["entry_skips"], sequences.upto[of_entry] - 1, NONE)
    moved = np.arange(-first_entry, size, dtype=np.int32)
    arrays["entries"] = entry_rows(index, oldest, moved, events)
    return Snapshot(events, np.empty(0, np.int32), arrays)


def _blank(column: NDArray[Any], widths: NDArray[Any], value: int) -> None:
    """Fills what was never written, from number widths[i] on in row i."""
    column[np.arange(column.shape[1]) >= widths[:, None]] = value


def chain_pools(arrays: Arrays, sequences: Sequences, room: int) -> tuple[RunNodes, EdEntries]:
    """The nodes and the entries, with room for more."""
    count, size = RUN_NODES.count(arrays), ED_ENTRIES.count(arrays)
    nodes = RUN_NODES.put(arrays, new_run_nodes(max(room, 2 * count), sequences.child.shape[1]))
    nodes.size[0] = count
    entries = ED_ENTRIES.put(arrays, new_entries(max(room, 2 * size), sequences))
    entries.size[0] = size
    return nodes, entries


def check_chain(arrays: Arrays, lists: Lists, events: int, marks: int) -> None:
    """Raises ValueError unless nodes and entries refer to those before them alone; see `sound`."""
    sequences = lists.sequences
    count, attributes = sequences.child.shape
    nodes, entries = RUN_NODES.count(arrays), ED_ENTRIES.count(arrays)
    sizes = {EVENTS: events, "marks": marks, "places": lists.widths.size, "run nodes": nodes}
    sizes |= {"entries": entries, "attributes": attributes, "skips": count - 1}
    event, _, node_place, top, head, _ = RUN_NODES.check(arrays, sizes)
    node, place, _, skips, before = ED_ENTRIES.check(arrays, sizes)
    need(event[1:] >= event[:-1], "nodes are in the order of their events")
    need(node[1:] >= node[:-1], "entries are in the order of their nodes")
    for earlier in (skips, before[:, None]):
        need(earlier < np.arange(entries)[:, None], "entries refer to those before them")
    for referred in (top, head):
        need(np.append(node, NONE)[referred] < np.arange(nodes), "a node refers to those before it")
        need(np.append(place, NONE)[referred] == node_place, "a run goes on where one has waited")
    check_entries(arrays, "entries", entries, events)
