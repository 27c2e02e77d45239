"""Recognition where complex events of one end are compared: MAX, NEXT and LAST (docs/architecture.md).

The choice of a strategy depends on where the window begins: a run is beaten only as long as the runs that
beat it are inside. So the windows that can begin at the events so far are kept in *spans*, newest first: for
all windows of a span, the same states have runs that are not beaten, in the same order. A *member* of a span
is such a state, with the compact set of its runs and, under NEXT and LAST, the rank of their common support,
best first. Each event moves every span as if it were the whole stream. Then neighbours that have become alike
are joined: `newer` puts the compact sets of the one before those of the other. A span is dropped when its
last window has passed; results come from the oldest one.

So the cost of an event is that of its changes in each span, not that of the window. Where later windows have
seen less of the same, as with ``;`` and ``+``, there are no more spans than states.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.cursor import DONE, FULL, GROW, MISS, Reported, automaton_cursor_of, report
from estero.engine.kernels import FLAG, INT, Grid, inlined, kernel, pool, step
from estero.engine.runs.reading import missing, read_events, within_bound
from estero.engine.runs.run_cea import (
    DEAD,
    IDLE,
    MISSING,
    Events,
    Partitions,
    Tables,
)
from estero.engine.runs.spans.spans import Members, Spans, drop_expired, drop_spans, free_members, join_spans
from estero.engine.runs.split.ranks import NEXT
from estero.engine.runs.split.run_split import Order
from estero.engine.store.arena import NONE, Arena
from estero.engine.store.lists import take_row
from estero.engine.store.schema import STATES, counters, data, scratch
from estero.engine.store.tecs import bottom, output, pair

MAX = 3
"""An order in addition to those of `run_split`: supports that no other one contains."""

Cursor: Any = automaton_cursor_of("need_members", "need_spans", "need_made")
"""The missing capacity for members and spans, and that of `made` in all. If `miss_class` is negative,
`Contest.beside` is missing for `miss_state` and rival -1 - miss_class."""

UNKNOWN = -2
"""Stands for an unknown value in `Contest.beside`."""

EMPTY = 1 << 30
"""The rank of runs that have marked nothing: after all others."""


@pool
class Made(NamedTuple):
    """Scratch: the members of a span after an event, int32; where[state] is the member, NONE between steps.

    born: the nodes of runs that begin, one for each edge, and of one that begins without a mark. size
    int64[1].
    """

    state: NDArray[np.int32] = scratch()
    rank: NDArray[np.int32] = scratch()
    node: NDArray[np.int32] = scratch()
    born: NDArray[np.int32] = scratch()
    where: NDArray[np.int32] = scratch(NONE, length=STATES)
    size: NDArray[np.int64] = counters()


@pool
class Contest(NamedTuple):
    """The relations of states that MAX needs, as far as they are known; see `Rivalry`.

    beside int32[states, 2 × own states]: the state with a rival, number 2 × its own state + whether it has
    marked more; DEAD or UNKNOWN. own int32[states]; empty int8[states].
    """

    beside: Grid[np.int32] = data(UNKNOWN, length=STATES, axes=("rivals",))
    own: NDArray[np.int32] = data(0, length=STATES)
    empty: NDArray[np.int8] = data(0, length=STATES)


@pool
class Spanned(NamedTuple):
    """The arrays that the kernels below work on; `made` is scratch."""

    arena: Arena
    members: Members
    spans: Spans
    partitions: Partitions
    made: Made


@step
def among(tables, contest, members, member, event_class, state, marked, cursor):  # type: ignore[no-untyped-def]
    """The state of a run that begins, now `state`, among rivals in a span before the event.

    DEAD if one of them beats it. If something is not known yet, the cursor names it, and the result is
    UNKNOWN.
    """
    while member != NONE and state >= 0:
        source = members.state[member]
        member = members.next[member]
        more = not contest.empty[source]
        row = tables.row_of[source, event_class]
        edges = 0 if row == IDLE else tables.first[row + 1] - tables.first[row]
        for place in range(edges + (0 if marked else 1)):
            if place < edges:
                target = tables.edge_target[tables.first[row] + place]
            else:
                target = source if row == IDLE else tables.skip[row]
            if target == DEAD:
                continue
            rival = 2 * contest.own[target] + (1 if more or (place < edges and not marked) else 0)
            result = contest.beside[state, rival]
            if result == UNKNOWN:
                cursor.miss_state = state
                cursor.miss_class = -1 - rival
            state = result
            if state < 0:
                break
    return state


@inlined
def put(arena, made, state, rank, mark, event, node):  # type: ignore[no-untyped-def]
    """Adds runs, marked if `mark` is not NONE, unless better ones are in that state."""
    place = made.where[state]
    if place == NONE or made.rank[place] == rank:
        if mark != NONE:
            node = output(arena, mark, event, node)
        if place == NONE:
            place = made.size[0]
            made.size[0] = place + 1
            made.where[state] = place
            made.state[place] = state
            made.rank[place] = rank
            made.node[place] = node
        elif arena.start[made.node[place]] >= arena.start[node]:
            made.node[place] = pair(arena, made.node[place], node)
        else:
            made.node[place] = pair(arena, node, made.node[place])


@step
def move_maximal(tables, contest, arena, members, made, member, event_class, event, first_row, cursor):  # type: ignore[no-untyped-def]
    """Fills `made` with the members of a span after an event, under MAX; all it needs is known."""
    first = member
    while member != NONE:
        state = members.state[member]
        node = members.node[member]
        row = tables.row_of[state, event_class]
        if row == IDLE:
            put(arena, made, state, 0, NONE, event, node)
        else:
            for edge in range(tables.first[row], tables.first[row + 1]):
                put(arena, made, tables.edge_target[edge], 0, tables.edge_marks[edge], event, node)
            if tables.skip[row] != DEAD:
                put(arena, made, tables.skip[row], 0, NONE, event, node)
        member = members.next[member]
    if first_row != IDLE:
        edges = tables.first[first_row + 1] - tables.first[first_row]
        for place in range(edges + 1):
            marked = place < edges
            state = tables.edge_target[tables.first[first_row] + place] if marked else tables.skip[first_row]
            if state != DEAD:
                state = among(tables, contest, members, first, event_class, state, marked, cursor)
            if state != DEAD:
                put(arena, made, state, 0, NONE, event, made.born[place])


@step
def move_ordered(tables, arena, members, made, first, event_class, event, first_row, order, visible):  # type: ignore[no-untyped-def]
    """As `move_maximal`, under NEXT and LAST.

    Supports are taken from the best to the worst as they are after the event: under NEXT those before it
    decide, and among equal ones the mark; under LAST the mark decides, and then those before.
    """
    level = 0
    group = first
    beginning = first_row != IDLE
    while group != NONE or beginning:
        stop = group
        if order == NEXT:
            while stop != NONE and members.rank[stop] == members.rank[group]:
                stop = members.next[stop]
        else:
            stop = NONE
        # New runs are as good as those that have marked nothing.
        joins = beginning and stop == NONE
        if order == NEXT and group != NONE and members.rank[group] != EMPTY:
            joins = False
        for marked in range(1, -1, -1):
            before = -1
            member = group
            while member != stop:
                state = members.state[member]
                node = members.node[member]
                if members.rank[member] != before:
                    before = members.rank[member]
                    level += 1
                rank = EMPTY if before == EMPTY and marked == 0 else level
                row = tables.row_of[state, event_class]
                if row == IDLE:
                    if marked == 0:
                        put(arena, made, state, rank, NONE, event, node)
                else:
                    for edge in range(tables.first[row], tables.first[row + 1]):
                        mark = tables.edge_marks[edge]
                        if (1 if visible.size == 0 or visible[mark] else 0) == marked:
                            put(arena, made, tables.edge_target[edge], rank, mark, event, node)
                    if marked == 0 and tables.skip[row] != DEAD:
                        put(arena, made, tables.skip[row], rank, NONE, event, node)
                member = members.next[member]
            if joins:
                if before != EMPTY:
                    level += 1
                rank = EMPTY if marked == 0 else level
                edges = tables.first[first_row + 1] - tables.first[first_row]
                for place in range(edges):
                    edge = tables.first[first_row] + place
                    mark = tables.edge_marks[edge]
                    if (1 if visible.size == 0 or visible[mark] else 0) == marked:
                        put(arena, made, tables.edge_target[edge], rank, NONE, event, made.born[place])
                if marked == 0 and tables.skip[first_row] != DEAD:
                    put(arena, made, tables.skip[first_row], rank, NONE, event, made.born[edges])
        if joins:
            beginning = False
        group = stop


@inlined
def report_made(tables, made, reported, event, oldest, order):  # type: ignore[no-untyped-def]
    """Reports complex events: under NEXT and LAST the best support, which comes first."""
    best = np.int32(NONE)
    for place in range(made.size[0]):
        rank = made.rank[place]
        chosen = order == MAX or best == NONE
        if tables.accepts[made.state[place]] and (chosen or best == rank):
            best = rank
            report(reported, event, made.node[place], oldest)


@step
def written(tables, members, made):  # type: ignore[no-untyped-def]
    """Turns `made` into a list of the members that continue, and returns the first."""
    kept = 0
    for place in range(made.size[0]):
        state = made.state[place]
        made.where[state] = NONE
        if tables.continues[state]:
            rank = made.rank[place]
            node = made.node[place]
            at = kept
            while at > 0 and (
                made.rank[at - 1] > rank or (made.rank[at - 1] == rank and made.state[at - 1] > state)
            ):
                made.state[at] = made.state[at - 1]
                made.rank[at] = made.rank[at - 1]
                made.node[at] = made.node[at - 1]
                at -= 1
            made.state[at] = state
            made.rank[at] = rank
            made.node[at] = node
            kept += 1
    level = 0
    for place in range(kept):  # ranks are dense
        rank = made.rank[place]
        changes = place + 1 < kept and made.rank[place + 1] != rank
        if rank != EMPTY:
            made.rank[place] = level
        if changes:
            level += 1
    first = NONE
    for place in range(kept - 1, -1, -1):
        member = take_row(members)
        members.state[member] = made.state[place]
        members.rank[member] = made.rank[place]
        members.node[member] = made.node[place]
        members.next[member] = first
        first = member
    made.size[0] = 0
    return first


@inlined
def are_idle(tables, members, member, event_class):  # type: ignore[no-untyped-def]
    """Whether an event changes nothing for these members."""
    while member != NONE and tables.row_of[members.state[member], event_class] == IDLE:
        member = members.next[member]
    return member == NONE


@inlined
def knows_rivals(tables, contest, members, member, event_class, first_row, cursor):  # type: ignore[no-untyped-def]
    """Whether it is known which new runs are beaten in a span; notes what is missing."""
    edges = tables.first[first_row + 1] - tables.first[first_row]
    for number in range(edges + 1):
        marked = number < edges
        state = tables.edge_target[tables.first[first_row] + number] if marked else tables.skip[first_row]
        if state != DEAD:
            state = among(tables, contest, members, member, event_class, state, marked, cursor)
            if state == UNKNOWN:
                return False
    return True


@inlined
def most_nodes(moves, births):  # type: ignore[no-untyped-def]
    """An upper bound on the nodes of a step with that many `moves` and `births`.

    One for each new run, and one for the windows that begin at the event. A move takes at most two, if it is
    marked and united with others that come to its state; and if its span is joined with the next, `newer`
    makes three for a member.
    """
    return 5 * moves + births + 1


@inlined
def look(automaton, spanned, reported, events, cursor, here):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Drops what has left the window, and looks up every row; see `read_events`.

    The effect of an event on the runs of a span consists of moves: one for each new run, each member, and
    each edge of these. A span has no more members after an event than moves, all of whose results may be
    reported if it is the oldest one. `moves` counts one more span, in which the windows from this event on
    begin.
    """
    tables, contest, (order, _, _, _, _) = automaton
    arena, members, spans, partitions, made = spanned
    event_class = here.event_class
    drop_expired(arena, members, spans, partitions, here.partition, here.oldest)
    first_row = IDLE
    births = np.int64(0)
    if not here.in_gap:
        first_row = tables.row_of[0, event_class]
        if first_row == MISSING:
            return missing(cursor, 0, event_class), births, (first_row, births, births, births)
        if first_row != IDLE:
            births += tables.first[first_row + 1] - tables.first[first_row] + 1
    touched = births
    moves = births
    most = births
    span = partitions.first[here.partition]
    while span != NONE:
        moves_here = births
        member = spans.first[span]
        while member != NONE:
            row = tables.row_of[members.state[member], event_class]
            if row == MISSING:
                code = missing(cursor, members.state[member], event_class)
                return code, births, (first_row, births, births, births)
            moves_here += 1
            if row != IDLE:
                moves_here += tables.first[row + 1] - tables.first[row]
                touched += 1
            member = members.next[member]
        if order == MAX and births > 0:
            member = spans.first[span]
            if not knows_rivals(tables, contest, members, member, event_class, first_row, cursor):
                return MISS, births, (first_row, births, births, births)
        most = max(most, moves_here)
        moves += moves_here
        span = spans.next[span]
    code = DONE
    if touched > 0:
        if arena.size[0] + most_nodes(moves, births) > arena.kind.size:
            cursor.need_nodes = most_nodes(moves, births)
            code = GROW
        elif moves > members.free[1] or spans.free[1] == 0 or most > made.state.size:
            cursor.need_members = moves
            cursor.need_spans = 1
            cursor.need_made = most
            code = GROW
        elif reported.size[0] + most > reported.event.size:
            code = FULL
    return code, touched, (first_row, births, moves, most)


@inlined
def write(automaton, spanned, reported, events, cursor, here, touched, plan):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Moves the members of each span; see `read_events`."""
    tables, contest, (order, windowed, visible, _, _) = automaton
    arena, members, spans, partitions, made = spanned
    _, event, event_class, partition, oldest, _ = here
    first_row, births, moves, most = plan
    nodes_before = arena.size[0]
    members_before = members.free[1]
    reported_before = reported.size[0]

    # 1. Runs that begin: the same ones in all spans, and in one of their own.
    for number in range(births):
        if number < births - 1:
            mark = tables.edge_marks[tables.first[first_row] + number]
            made.born[number] = output(arena, mark, event, NONE)
        elif tables.skip[first_row] != DEAD:
            made.born[number] = bottom(arena, event)
    span = partitions.first[partition]
    if births > 0 and (windowed or span == NONE):
        fresh = take_row(spans)
        spans.last[fresh] = bottom(arena, event)
        spans.first[fresh] = NONE
        spans.next[fresh] = span
        partitions.first[partition] = fresh
        span = fresh

    # 2. Move the members of each span.
    while span != NONE:
        first = spans.first[span]
        if births > 0 or not are_idle(tables, members, first, event_class):
            if order == MAX:
                move_maximal(
                    tables, contest, arena, members, made, first, event_class, event, first_row, cursor
                )
            else:
                move_ordered(
                    tables, arena, members, made, first, event_class, event, first_row, order, visible
                )
            within_bound(made.size[0], most)
            if spans.next[span] == NONE:
                report_made(tables, made, reported, event, oldest, order)
            free_members(members, first)
            spans.first[span] = written(tables, members, made)
            within_bound(members_before - members.free[1], moves)
        span = spans.next[span]
    join_spans(arena, members, spans, partitions, partition)
    within_bound(arena.size[0] - nodes_before, most_nodes(moves, births))
    within_bound(reported.size[0] - reported_before, most)


@inlined
def drop(automaton, spanned, partition):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Forgets every run of a partition; see `read_events`."""
    drop_spans(spanned.members, spanned.spans, spanned.partitions, partition)


@kernel(Tables, Contest, Spanned, Reported, Events, Cursor, FLAG, INT, Order)
def advance(tables, contest, spanned, reported, events, cursor, gaps, consume, ordering):  # type: ignore[no-untyped-def]
    """Reads events; see `read_events`.

    Loop invariant: as that of `read_events`, for each window that begins at or after the start of the one of
    the last event, with neighbouring spans that are not alike.
    """
    automaton = (tables, contest, ordering)
    return read_events(automaton, spanned, reported, events, cursor, gaps, consume, look, write, drop)
