"""Recognition where only the first complex event of each end is read: a list is its head, and has no unions.

Enumeration takes a union's left node first, which is the head of its list, and whose start is the newest. So
the complex event that comes first remains the same if all other nodes of the list are left out, and so does
the end of an entry, which is when its newest start has left the window.
"""

from __future__ import annotations

from estero.engine.cursor import Reported
from estero.engine.kernels import FLAG, INT, inlined, kernel
from estero.engine.runs.reading import read_events
from estero.engine.runs.run_cea import Cursor, Events, Plain, Tables, drop, look, write_by
from estero.engine.store.tecs import free_list


@inlined
def head_of(arena, cells, entries, entry, oldest, scratch):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """The first node of an entry's list."""
    return cells.node[entries.head[entry]]


@inlined
def first_of(arena, cells, head, oldest, scratch):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """The first node of a list."""
    return cells.node[head]


@inlined
def put_newer(arena, cells, entries, entry, node, oldest, scratch):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Replaces an entry's list by a node that starts later."""
    head = entries.head[entry]
    if arena.start[node] > arena.start[cells.node[head]]:
        cells.node[head] = node


@inlined
def put_newer_list(arena, cells, entries, entry, cell, length, oldest, scratch):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Replaces an entry's list by one whose head starts later; frees the other one."""
    head = entries.head[entry]
    if arena.start[cells.node[cell]] > arena.start[cells.node[head]]:
        free_list(cells, head)
        entries.head[entry] = cell
        entries.length[entry] = length
    else:
        free_list(cells, cell)


@inlined
def write_first(tables, plain, reported, events, cursor, here, fills, plan):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Writes the changes of an event; see `read_events`."""
    write_by(tables, plain, reported, here, fills, plan, head_of, first_of, put_newer, put_newer_list)


@kernel(Tables, Plain, Reported, Events, Cursor, FLAG, INT)
def advance_first(tables, plain, reported, events, cursor, gaps, consume):  # type: ignore[no-untyped-def]
    """Reads events; see `read_events`. All lists have one cell."""
    return read_events(tables, plain, reported, events, cursor, gaps, consume, look, write_first, drop)
