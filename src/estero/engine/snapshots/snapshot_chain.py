"""The runs that wait in an ED-index as a few dense arrays, and back (`snapshot`).

Without a window all runs that wait are kept, except those that were forgotten.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from estero.engine.snapshots.snapshot import Snapshot, distinct
from estero.engine.snapshots.snapshot_pcea import index_rows
from estero.engine.snapshots.sound import check_index
from estero.engine.store.arena import NONE
from estero.engine.store.checks import Arrays, need
from estero.engine.store.ed_index import EdEntries
from estero.engine.store.hash_index import HashIndex
from estero.engine.store.run_nodes import RunNodes
from estero.engine.store.schema import EVENTS, check, count_written, drop_first, grown, written
from estero.engine.walk.list_counts import Lists


def chain_snapshot(lists: Lists, index: HashIndex, oldest: int) -> Snapshot:
    """The runs of events from `oldest` on; nothing that is read changes."""
    nodes, entries, sequences, place_width = lists
    used, used_entries = int(nodes.size[0]), int(entries.size[0])
    nodes, entries = grown(nodes, rows=used), grown(entries, rows=used_entries)
    first = int(np.searchsorted(nodes.event, oldest))
    first_entry = int(np.searchsorted(entries.node, first))
    drop_before(nodes, entries, first, first_entry)
    events = distinct(nodes.event[: used - first])
    arrays = written(nodes, "nodes", events) | written(entries, "entries", events)
    widths = np.append(place_width, 0)  # place NONE, where runs begin, has no width
    of_node, of_entry = widths[arrays["nodes.place"]], widths[arrays["entries.place"]]
    _blank(arrays["nodes.values"], of_node, 0)
    _blank(arrays["entries.values"], of_entry, 0)
    _blank(arrays["entries.skips"], sequences.upto[of_entry] - 1, NONE)
    moved = np.arange(-first_entry, used_entries - first_entry, dtype=np.int32)
    arrays["index"] = index_rows(index, oldest, moved, events)
    return Snapshot(events, np.empty(0, np.int32), arrays)


def drop_before(nodes: RunNodes, entries: EdEntries, first: int, first_entry: int) -> None:
    """Drops the nodes before `first` and the entries before `first_entry`, to which no others refer."""
    if first > 0:
        dropped = {"nodes": first, "entries": first_entry}
        drop_first(nodes, dropped, "nodes")
        drop_first(entries, dropped, "entries")


def _blank(column: NDArray[Any], widths: NDArray[Any], value: int) -> None:
    """Clears values that were never written, from number widths[i] on in row i."""
    column[np.arange(column.shape[1]) >= widths[:, None]] = value


def check_chain(arrays: Arrays, lists: Lists, events: int, marks: int) -> None:
    """Raises ValueError unless nodes and entries refer only to earlier ones; see `sound`."""
    sequences, attributes = lists.sequences.child.shape
    count, size = count_written(RunNodes, "nodes", arrays), count_written(EdEntries, "entries", arrays)
    sizes = {EVENTS: events, "marks": marks, "places": lists.widths.size, "nodes": count, "entries": size}
    sizes |= {"attributes": attributes, "pointers": sequences - 1}
    nodes, entries = check(RunNodes, "nodes", arrays, sizes), check(EdEntries, "entries", arrays, sizes)
    need(nodes.event[1:] >= nodes.event[:-1], "nodes are in the order of their events")
    need(entries.node[1:] >= entries.node[:-1], "entries are in the order of their nodes")
    for referred in (nodes.top, nodes.head):
        need(np.append(entries.node, NONE)[referred] < np.arange(count), "nodes refer to those before them")
        need(np.append(entries.place, NONE)[referred] == nodes.place, "runs continue where one has waited")
    check_index(arrays, "index", size, events)
