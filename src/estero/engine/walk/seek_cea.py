"""Going to the path with a given index, for whoever enumerates from there on (distributed-cea, 4).

By the counts inside the window: at a union the left side is gone past as a whole, or the right side is left
for later, as an enumeration would. So it costs the length of one path, and the rim below the root.
"""

from __future__ import annotations

import numpy as np

from estero.engine.jit import kernel
from estero.engine.store.arena import UNION
from estero.engine.walk.count import FITS, inside, rim_of
from estero.engine.walk.enumerate import DONE, GROW, SEEK


@kernel
def seek_path(arena, counts, root, oldest, skip, stamp, order, stack, walk):  # type: ignore[no-untyped-def]
    """Goes to the complex event number `skip` of a root, or as far as those after it have the same way.

    Returns (code, node, depth, height), from where the enumeration goes on: DONE, GROW (the walk is full),
    or SEEK where `skip` is below 0, which stands for more than a word. The other arguments are those of
    `rim_of`.
    """
    node = root
    depth = 0
    height = 0
    if skip < 0:
        return SEEK, node, depth, height
    rim_of(arena, counts, root, oldest, stamp, order, stack)
    while skip > 0:
        if arena.kind[node] == UNION:
            right = arena.right[node]
            exact, rough = inside(arena, counts, arena.left[node], oldest)
            if rough < FITS and np.int64(exact) <= skip:
                skip -= np.int64(exact)
                node = right
                continue
            if height == walk.stack_node.size:
                return GROW, node, depth, height
            if arena.start[right] >= oldest:
                walk.stack_node[height] = right
                walk.stack_depth[height] = depth
                height += 1
        else:
            if depth == walk.path_event.size:
                return GROW, node, depth, height
            walk.path_event[depth] = arena.event[node]
            walk.path_marks[depth] = arena.kind[node]
            depth += 1
        node = arena.left[node]
    return DONE, node, depth, height
