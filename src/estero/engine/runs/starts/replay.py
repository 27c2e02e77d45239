"""The complex events of one start and one end; among several supports, the one that NEXT chooses.

Events are read once more, from the start to the end, with the only run that begins there. As with spans
(`run_spans`), each state keeps its best support; here there is one span, of one window.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, FULL, GROW, Reported
from estero.engine.kernels import FLAG, FLAGS, kernel, pool
from estero.engine.runs.reading import missing
from estero.engine.runs.run_cea import DEAD, IDLE, MISSING, Tables
from estero.engine.runs.spans.run_spans import Made, are_idle, move_ordered, report_made, written
from estero.engine.runs.spans.spans import Members, free_members
from estero.engine.runs.split.ranks import NEXT
from estero.engine.runs.starts.groups import Cursor, History
from estero.engine.store.arena import NONE, Arena
from estero.engine.store.tecs import bottom, output


@pool
class Pairs(NamedTuple):
    """Starts and ends whose complex events are wanted, int32, by end and start; size[0] is their number."""

    start: NDArray[np.int32]
    end: NDArray[np.int32]
    size: NDArray[np.int64]


@pool
class Replayed(NamedTuple):
    """The arrays that the kernel below works on; `made` is scratch."""

    arena: Arena
    members: Members
    made: Made


@kernel(Tables, History, Replayed, Pairs, Reported, Cursor, FLAG, FLAG, FLAGS)
def replay(tables, history, replayed, pairs, reported, cursor, gaps, together, visible):  # type: ignore[no-untyped-def]
    """Reports the roots of pairs from cursor.pair on, until one of the codes; resumable with larger pools.

    If roots of one end have to be read `together`, the kernel begins again with the first pair of an end.

    For an event nothing is written before all its rows are known and all the capacity it may need is there.
    """
    arena, members, made = replayed
    while cursor.pair < pairs.size[0]:
        start = pairs.start[cursor.pair]
        end = pairs.end[cursor.pair]
        if cursor.reading == NONE:
            if not together or cursor.pair == 0 or pairs.end[cursor.pair - 1] != end:
                cursor.began = cursor.pair
                cursor.began_reported = reported.size[0]
                cursor.began_nodes = arena.size[0]
            cursor.reading = start
            cursor.read = history.ordinal[start] - 1
            cursor.member = NONE
        event = cursor.reading
        member = np.int32(cursor.member)
        ordinal = history.ordinal[event]
        in_gap = gaps and ordinal - cursor.read > 1
        event_class = 0 if in_gap else history.event_class[event]
        first_row = IDLE
        births = 0
        if event == start:
            first_row = tables.row_of[0, event_class]
            if first_row == MISSING:
                return missing(cursor, 0, event_class)
            if first_row != IDLE:
                births = tables.first[first_row + 1] - tables.first[first_row] + 1
        moves = births
        here = member
        while here != NONE:
            row = tables.row_of[members.state[here], event_class]
            if row == MISSING:
                return missing(cursor, members.state[here], event_class)
            moves += 1
            if row != IDLE:
                moves += tables.first[row + 1] - tables.first[row]
            here = members.next[here]
        idle = births == 0 and are_idle(tables, members, member, event_class)
        if not idle:
            if arena.size[0] + 5 * moves + births + 1 > arena.kind.size:
                cursor.need_nodes = 5 * moves + births + 1
                return GROW
            if moves > members.free[1] or moves > made.state.size:
                cursor.need_members = moves
                cursor.need_made = moves
                return GROW
            if event == end and reported.size[0] + moves > reported.event.size:
                return FULL
            for number in range(births):
                if number < births - 1:
                    mark = tables.edge_marks[tables.first[first_row] + number]
                    made.born[number] = output(arena, mark, cursor.origin + event, NONE)
                elif tables.skip[first_row] != DEAD:
                    made.born[number] = bottom(arena, cursor.origin + event)
            move_ordered(
                tables,
                arena,
                members,
                made,
                member,
                event_class,
                cursor.origin + event,
                first_row,
                NEXT,
                visible,
            )
            if event == end and not in_gap:
                report_made(tables, made, reported, cursor.origin + event, 0, NEXT)
            free_members(members, member)
            member = written(tables, members, made)
        if in_gap:
            cursor.read = ordinal - 1 if idle else cursor.read + 1
            cursor.member = member
            continue
        cursor.read = ordinal
        following = history.following[event]
        if event == end or min(following, member) == NONE:
            free_members(members, member)
            cursor.member = NONE
            cursor.reading = NONE
            cursor.pair += 1
        else:
            cursor.member = member
            cursor.reading = following
    return DONE
