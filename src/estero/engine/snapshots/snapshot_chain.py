"""What waits in an ED-index as a few dense arrays, and back (`snapshot`).

Without a window all runs that wait are kept, except those that were forgotten.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from estero.engine.runs.run_chain import (
    RunNodes,
    drop_run_nodes,
    grown_run_nodes,
    new_run_nodes,
)
from estero.engine.snapshots.snapshot import Arrays, Snapshot, distinct
from estero.engine.snapshots.snapshot_pcea import entry_rows, index_of
from estero.engine.store.arena import NONE
from estero.engine.store.ed_index import EdEntries, Sequences, drop_entries, grown_entries, new_entries
from estero.engine.store.hash_index import HashIndex
from estero.engine.walk.lists import Lists

_NODES = ("mark", "place", "head", "newest", "values")
_ENTRIES = ("node", "place", "values", "skips", "same")


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
    arrays: Arrays = {"event": np.searchsorted(events, nodes.event[:count])}
    arrays |= {f"node_{name}": getattr(nodes, name)[:count] for name in _NODES}
    arrays |= {f"entry_{name}": getattr(entries, name)[:size] for name in _ENTRIES}
    widths = np.append(place_width, 0)  # place NONE, where runs begin, has none
    of_node, of_entry = widths[arrays["node_place"]], widths[arrays["entry_place"]]
    for values, width in (("node_values", of_node), ("entry_values", of_entry)):
        _blank(arrays[values], width, 0)
    _blank(arrays["node_newest"], np.where(arrays["node_place"] == NONE, 0, 1 << of_node), NONE)
    _blank(arrays["entry_same"], 1 << of_entry, NONE)
    _blank(arrays["entry_skips"], sequences.upto[of_entry] - 1, NONE)
    moved = np.arange(-first_entry, size, dtype=np.int32)
    arrays["entries"] = entry_rows(index, oldest, moved, events)
    return Snapshot(events, np.empty(0, np.int32), arrays)


def _blank(column: NDArray[Any], widths: NDArray[Any], value: int) -> None:
    """Fills what was never written, from number widths[i] on in row i."""
    column[np.arange(column.shape[1]) >= widths[:, None]] = value


def chain_pools(arrays: Arrays, sequences: Sequences, room: int) -> tuple[RunNodes, EdEntries, HashIndex]:
    """The nodes, the entries and the look-up table, with room for more."""
    count, size = arrays["event"].size, arrays["entry_node"].size
    nodes = new_run_nodes(max(room, 2 * count), sequences.child.shape[1])
    nodes.event[:count] = arrays["event"]
    for name in _NODES:
        getattr(nodes, name)[:count] = arrays[f"node_{name}"]
    nodes.size[0] = count
    entries = new_entries(max(room, 2 * size), sequences)
    for name in _ENTRIES:
        getattr(entries, name)[:size] = arrays[f"entry_{name}"]
    entries.size[0] = size
    return nodes, entries, index_of(arrays["entries"], room)
