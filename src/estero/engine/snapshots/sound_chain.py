"""What has to hold of the arrays of a snapshot of runs in an ED-index; as `sound`."""

from __future__ import annotations

import numpy as np

from estero.engine.runs.run_chain import ChainTables
from estero.engine.snapshots.snapshot import Arrays
from estero.engine.snapshots.sound import check_entries, need, taken, within
from estero.engine.store.arena import NONE
from estero.engine.store.ed_index import Sequences


def check_chain(arrays: Arrays, tables: ChainTables, sequences: Sequences, events: int, marks: int) -> None:
    """Run nodes, entries and the look-up table; nodes and entries refer to those before them alone."""
    count, attributes = sequences.child.shape
    places = tables.place_width.size
    event = taken(arrays, "event", np.int64, None)
    nodes = event.size
    within(event, 0, events, "events")
    need(event[1:] >= event[:-1], "nodes are in the order of their events")
    within(taken(arrays, "node_mark", np.int32, nodes), 0, marks, "marks")
    node_place = taken(arrays, "node_place", np.int32, nodes)
    within(node_place, NONE, places, "places")
    taken(arrays, "node_values", np.uint64, nodes, attributes, 2)
    node = taken(arrays, "entry_node", np.int32, None)
    entries = node.size
    within(node, 0, nodes, "nodes")
    need(node[1:] >= node[:-1], "entries are in the order of their nodes")
    place = taken(arrays, "entry_place", np.int32, entries)
    within(place, 0, places, "places")
    taken(arrays, "entry_values", np.uint64, entries, attributes, 2)
    own = np.arange(entries)[:, None]
    for name, width in (("entry_skips", count - 1), ("entry_same", 1 << attributes)):
        before = taken(arrays, name, np.int32, entries, width)
        need((before >= NONE) & (before < own), "entries refer to those before them")
    head = taken(arrays, "node_head", np.int32, nodes)
    newest = taken(arrays, "node_newest", np.int32, nodes, 1 << attributes)
    begins = node_place == NONE
    need((head == NONE) == begins, "a run goes on with a run, or begins")
    for referred in (head[:, None], newest):
        within(referred, NONE, entries, "entries")
        before = np.append(node, NONE)[referred]
        need(before < np.arange(nodes)[:, None], "a node refers to those before it")
    need(np.append(place, NONE)[head] == node_place, "a run goes on where one has waited")
    check_entries(arrays, "entries", entries, events)
