"""Going to the complex event of a run node with a given index, for whoever enumerates from there on.

Lists have no places to jump to: for each event the entries before the right one are passed, one by one, which
takes far less than to enumerate what goes with them.
"""

from __future__ import annotations

import numpy as np

from estero.engine.jit import kernel
from estero.engine.store.arena import NONE
from estero.engine.store.ed_index import find_next
from estero.engine.walk.count import FITS
from estero.engine.walk.count_chain import count_of
from estero.engine.walk.enumerate import DONE, GROW, SEEK


@kernel
def seek_chain(nodes, entries, sequences, counts, widths, root, skip, walk):  # type: ignore[no-untyped-def]
    """Goes to the complex event number `skip` of a root, or as far as those after it have the same way.

    Returns (code, owner, entry, choices, depth), from where the enumeration goes on: DONE, GROW (the walk is
    full), or SEEK where counts pass a word, or `skip` does, which then is below 0.
    """
    choices = 0
    depth = 0
    node = root
    _, most = count_of(nodes, counts, widths, root)
    if skip < 0 or (skip > 0 and not most < FITS):
        return SEEK, NONE, NONE, choices, depth
    while True:
        if max(depth, choices) == walk.item_event.size:
            return GROW, NONE, NONE, choices, depth
        walk.item_event[depth] = nodes.event[node]
        walk.item_marks[depth] = nodes.mark[node]
        depth += 1
        entry = nodes.head[node]
        if skip == 0 or entry == NONE:
            return DONE, node, entry, choices, depth
        width = widths[nodes.place[node]]
        number, _ = count_of(nodes, counts, widths, entries.node[entry])
        while np.int64(number) <= skip:
            skip -= np.int64(number)
            entry = find_next(entries, sequences, entry, width, nodes.values, node)
            number, _ = count_of(nodes, counts, widths, entries.node[entry])
        following = find_next(entries, sequences, entry, width, nodes.values, node)
        if following != NONE:
            walk.choice_entry[choices] = following
            walk.choice_owner[choices] = node
            walk.choice_depth[choices] = depth
            choices += 1
        node = entries.node[entry]
