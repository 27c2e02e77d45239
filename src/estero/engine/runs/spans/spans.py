"""Spans of windows in which a strategy chooses among the same states: the arrays and their small steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.kernels import INT, inlined, kernel, pool, step
from estero.engine.runs.run_cea import Partitions
from estero.engine.store.arena import NONE
from estero.engine.store.lists import give_back
from estero.engine.store.schema import STATES, data, free_rows, heads, own, ref
from estero.engine.store.tecs import newer


@pool
class Members(NamedTuple):
    """States of spans, in the order of rank (0 is best; under MAX always 0) and state, with their runs."""

    state: NDArray[np.int32] = ref(STATES, once=True)
    rank: NDArray[np.int32] = data()
    node: NDArray[np.int32] = ref("arena")
    next: NDArray[np.int32] = own()
    free: NDArray[np.int64] = free_rows()


@pool
class Spans(NamedTuple):
    """Spans, newest first: `last` is a node of the event at which the last window begins."""

    last: NDArray[np.int32] = ref("arena", live="event")
    first: NDArray[np.int32] = heads("members")
    next: NDArray[np.int32] = own()
    free: NDArray[np.int64] = free_rows()


@kernel(Members, INT)
@inlined
def free_members(members, member):  # type: ignore[no-untyped-def]
    """Frees a list of members."""
    while member != NONE:
        following = members.next[member]
        give_back(members, member)
        member = following


@step
def free_spans(members, spans, span):  # type: ignore[no-untyped-def]
    """Forgets a span and all older ones."""
    while span != NONE:
        following = spans.next[span]
        free_members(members, spans.first[span])
        give_back(spans, span)
        span = following


@kernel(Members, Spans, Partitions, INT)
def drop_spans(members, spans, partitions, partition):  # type: ignore[no-untyped-def]
    """Forgets every run of a partition."""
    free_spans(members, spans, partitions.first[partition])
    partitions.first[partition] = NONE


@step
def drop_expired(arena, members, spans, partitions, partition, oldest):  # type: ignore[no-untyped-def]
    """Forgets the spans whose last window begins before `oldest`."""
    before = NONE
    span = partitions.first[partition]
    while span != NONE and arena.event[spans.last[span]] >= oldest:
        before = span
        span = spans.next[span]
    if span != NONE:
        free_spans(members, spans, span)
        if before == NONE:
            partitions.first[partition] = NONE
        else:
            spans.next[before] = NONE


@inlined
def alike(members, one, two):  # type: ignore[no-untyped-def]
    """Whether two lists have the same states and ranks."""
    while min(one, two) != NONE:
        if members.state[one] != members.state[two] or members.rank[one] != members.rank[two]:
            break
        one = members.next[one]
        two = members.next[two]
    return one == two


@step
def join_spans(arena, members, spans, partitions, partition):  # type: ignore[no-untyped-def]
    """Drops spans without members, and joins neighbours that are alike."""
    before = NONE
    span = partitions.first[partition]
    while span != NONE:
        older = spans.next[span]
        gone = spans.first[span] == NONE
        if not gone and older != NONE and alike(members, spans.first[span], spans.first[older]):
            last = arena.event[spans.last[older]]
            one = spans.first[span]
            two = spans.first[older]
            while one != NONE:
                members.node[two] = newer(arena, members.node[one], members.node[two], last)
                one = members.next[one]
                two = members.next[two]
            spans.last[older] = spans.last[span]
            gone = True
        if gone:
            free_members(members, spans.first[span])
            give_back(spans, span)
            if before == NONE:
                partitions.first[partition] = older
            else:
                spans.next[before] = older
        else:
            before = span
        span = older
