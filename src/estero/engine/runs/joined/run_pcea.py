"""Recognition by a parallelised automaton: runs wait in heaps, by their keys (PCEA, Algorithm 1).

The paper's look-up table has an entry for each (transition, source, key). Runs that wait in one state with
one key expression have the same entry, so here they share a *waiting place*.

Beyond the paper, a source may compare a value of the run's last event with one of the current event, by
order. Such runs wait in an ordered index and not in the look-up table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import KeyedEvents
from estero.engine.cursor import DONE, GROW, Reported, cursor_of, report
from estero.engine.kernels import INT, Maybe, inlined, kernel, pool, step
from estero.engine.runs.joined.reading import Tally, read_keyed
from estero.engine.runs.reading import within_bound
from estero.engine.store.arena import NONE
from estero.engine.store.hash_index import FREE, START, HashIndex, claim, find, heap_of, put
from estero.engine.store.heap import SPINE, heap_node, meld, new_product
from estero.engine.store.ordered_index import (
    ABOVE_LOW,
    BELOW_HIGH,
    BETWEEN,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    NOT_EQUAL,
    OrderedIndex,
    has_capacity,
    insert,
    most_nodes,
    query,
)
from estero.engine.store.value_trees import FREE_ROWS, PIECES, USED
from estero.engine.walk.products import Heaps

Cursor: Any = cursor_of(
    "forgotten", "need_products", "need_children", "need_nodes", "need_entries", "need_values"
)
"""`forgotten` is the first event that counts."""

OPERATORS = {"<": LESS, "<=": LESS_EQUAL, ">": GREATER, ">=": GREATER_EQUAL, "!=": NOT_EQUAL}
"""The operators for comparing the value of a waiting run with a value of the current event."""

RANGES = {
    ">= <=": BETWEEN,
    "> <=": BETWEEN + ABOVE_LOW,
    ">= <": BETWEEN + BELOW_HIGH,
    "> <": BETWEEN + ABOVE_LOW + BELOW_HIGH,
}
"""The operators for comparing it with two values of the current event, the lower and the upper."""


@pool
class PceaTables(NamedTuple):
    """A parallelised automaton of t transitions, s sources in all, p predicates, q states, w waiting places.

    Sources that look into the same waiting place with the same columns of the current event share one of d
    *probes*.

    ============== ===== ======== ==============================================================
    array          dtype shape    meaning
    ============== ===== ======== ==============================================================
    first_fired    int32 [p + 1]  predicate k fires transitions first_fired[k] … first_fired[k+1]-1
    mark           int32 [t]      label-set id of the event
    target         int32 [t]      state
    first_source   int32 [t + 1]  sources of transition i: first_source[i] … first_source[i+1]-1
    source_probe   int32 [s]      probe
    probe_place    int32 [d]      where the gathered runs wait
    probe_key      int32 [d]      key column of the event at hand
    probe_order    int32 [d]      how the waiting value has to compare, LESS …; NONE: it need not
    probe_value    int32 [d]      value column of the current event, or NONE
    probe_upper    int32 [d]      that of the upper end of a range, else the same
    first_place    int32 [q + 1]  runs in state q wait at first_place[q] … first_place[q+1]-1
    first_ordered  int32 [q]      of these, from here on with a value
    place_key      int32 [w]      key column of the event that enters the state
    place_value    int32 [w]      its value column, or NONE
    final          int8  [q]      whether the state is final
    ordered_steps  int            the most insertions with a value and queries for one that an event makes
    ============== ===== ======== ==============================================================
    """

    first_fired: NDArray[np.int32]
    mark: NDArray[np.int32]
    target: NDArray[np.int32]
    first_source: NDArray[np.int32]
    source_probe: NDArray[np.int32]
    probe_place: NDArray[np.int32]
    probe_key: NDArray[np.int32]
    probe_order: NDArray[np.int32]
    probe_value: NDArray[np.int32]
    probe_upper: NDArray[np.int32]
    first_place: NDArray[np.int32]
    first_ordered: NDArray[np.int32]
    place_key: NDArray[np.int32]
    place_value: NDArray[np.int32]
    final: NDArray[np.int8]
    ordered_steps: int

    @property
    def columns(self) -> int:
        """The number of key columns that the automaton reads."""
        return 1 + max(int(columns.max(initial=NONE)) for columns in (self.probe_key, self.place_key))

    @property
    def values(self) -> int:
        """The number of value columns that the automaton reads."""
        asked = self.probe_value, self.probe_upper, self.place_value
        return 1 + max(int(columns.max(initial=NONE)) for columns in asked)


Source = tuple[int, int, int] | tuple[int, int, int, str, int, int] | tuple[int, int, int, str, int, int, int]
"""The runs that a transition gathers: those in a state, as (state, key column of the event that entered it,
key column of the current event); with an order also (…, operator, value column of the event that entered it,
value column of the current event), and for RANGES one more value column of the current event. NULL is in no
order."""


class Transition(NamedTuple):
    """Gathers a run of each source at an event with bit `predicate`, marks the event and enters `target`.

    Without sources a run begins.
    """

    sources: Sequence[Source]
    predicate: int
    mark: int
    target: int


class _Place(NamedTuple):
    """A place where runs wait. Places without a value come first in their state."""

    state: int
    value: int
    key: int


class _Probe(NamedTuple):
    """The way in which an event looks up waiting runs."""

    place: int
    key: int
    order: int
    value: int
    upper: int


def _parts(source: Source) -> tuple[_Place, tuple[int, int, int, int]]:
    """The place where the runs of a source wait, and the rest, for its probe: key, order and two values."""
    if len(source) == 3:
        state, left, right = source
        return _Place(state, NONE, left), (right, NONE, NONE, NONE)
    if len(source) == 6:
        state, left, right, operator, left_value, right_value = source
        return _Place(state, left_value, left), (right, OPERATORS[operator], right_value, right_value)
    state, left, right, operator, left_value, right_value, upper = source
    return _Place(state, left_value, left), (right, RANGES[operator], right_value, upper)


def pcea_tables(states: int, transitions: Sequence[Transition], final: Sequence[int]) -> PceaTables:
    """The tables of an automaton with `states` states; those in `final` are final.

    Raises ValueError if a transition gathers one state twice, a state is not below `states`, or an operator
    is none of OPERATORS or RANGES.
    """
    for number, transition in enumerate(transitions):
        _check(number, transition, states)
    fired = sorted(transitions, key=lambda transition: transition.predicate)
    predicates = fired[-1].predicate + 1 if fired else 0
    parts = [_parts(source) for transition in fired for source in transition.sources]
    places = sorted({place for place, _ in parts})
    place_of = {place: number for number, place in enumerate(places)}
    sources = [_Probe(place_of[place], *rest) for place, rest in parts]
    probes = sorted(set(sources))
    probe_of = {probe: number for number, probe in enumerate(probes)}
    is_final = np.zeros(states, np.int8)
    is_final[list(final)] = 1
    first_place = firsts([place.state for place in places], states)
    plain = np.bincount([place.state for place in places if place.value == NONE], minlength=states)
    first_ordered = (first_place[:-1] + plain[:states]).astype(np.int32)
    ordered = first_place[1:] - first_ordered
    return PceaTables(
        firsts([transition.predicate for transition in fired], predicates),
        np.array([transition.mark for transition in fired], np.int32),
        np.array([transition.target for transition in fired], np.int32),
        np.cumsum([0, *(len(transition.sources) for transition in fired)], dtype=np.int32),
        np.array([probe_of[source] for source in sources], np.int32),
        np.array([probe.place for probe in probes], np.int32),
        np.array([probe.key for probe in probes], np.int32),
        np.array([probe.order for probe in probes], np.int32),
        np.array([probe.value for probe in probes], np.int32),
        np.array([probe.upper for probe in probes], np.int32),
        first_place,
        first_ordered,
        np.array([place.key for place in places], np.int32),
        np.array([place.value for place in places], np.int32),
        is_final,
        sum(probe.order != NONE for probe in probes)
        + sum(int(ordered[transition.target]) for transition in fired),
    )


def _check(number: int, transition: Transition, states: int) -> None:
    """Raises ValueError unless a transition is one of such an automaton."""
    gathered = [source[0] for source in transition.sources]
    if len(set(gathered)) != len(gathered):
        raise ValueError(f"transition {number} gathers a state twice: {gathered}")
    if not all(0 <= state < states for state in (*gathered, transition.target)):
        raise ValueError(f"transition {number} names a state that is not below {states}")
    for source in transition.sources:
        known = OPERATORS if len(source) == 6 else RANGES
        if len(source) != 3 and source[3] not in known:
            raise ValueError(f"transition {number} compares by {source[3]}, none of {', '.join(known)}")


def firsts(groups: Sequence[int], count: int) -> NDArray[np.int32]:
    """The first place of each group 0 … count - 1 among ascending group numbers, and their end."""
    return np.searchsorted(groups, np.arange(count + 1)).astype(np.int32)


@pool
class Fired(NamedTuple):
    """Scratch of one step: firing transitions, their max_start and heaps; probes; of a meld and a query.

    transition int32[t], start int64[t], first int32[t + 1], heap int32[s]. The find of a probe, heap (NONE:
    nothing) and max_start, is for event `probed`: int64[d], int32[d], int64[d]. path int32[64], pieces
    int64[PIECES].
    """

    transition: NDArray[np.int32]
    start: NDArray[np.int64]
    first: NDArray[np.int32]
    heap: NDArray[np.int32]
    probed: NDArray[np.int64]
    probe_heap: NDArray[np.int32]
    probe_start: NDArray[np.int64]
    path: NDArray[np.int32]
    pieces: NDArray[np.int64]


def new_fired(tables: PceaTables) -> Fired:
    """Scratch for the steps of an automaton."""
    transitions, probes = tables.mark.size, tables.probe_key.size
    return Fired(
        np.empty(transitions, np.int32),
        np.empty(transitions, np.int64),
        np.zeros(transitions + 1, np.int32),
        np.empty(tables.source_probe.size, np.int32),
        np.full(probes, -1, np.int64),
        np.empty(probes, np.int32),
        np.empty(probes, np.int64),
        np.empty(64, np.int32),
        np.empty(PIECES, np.int64),
    )


@inlined
def look(tables, index, fired, events, place, probe, oldest):  # type: ignore[no-untyped-def]
    """Notes the runs that wait for the event at `place` of the batch where a probe looks."""
    key = tables.probe_key[probe]
    fired.probe_heap[probe] = NONE
    if events.known[place, key]:
        entry = find(index, tables.probe_place[probe], events.keys[place, key, 0], events.keys[place, key, 1])
        if entry != FREE and index.entries[entry, START] >= oldest:
            fired.probe_heap[probe] = heap_of(index, entry)
            fired.probe_start[probe] = index.entries[entry, START]


@step
def look_in_order(tables, nodes, ordered, fired, events, place, probe, oldest, most):  # type: ignore[no-untyped-def]
    """Notes the runs that wait for the event at `place` of the batch with a value where a probe looks.

    Needs capacity for `most` heap nodes.
    """
    nodes_before = nodes.size[0]
    key = tables.probe_key[probe]
    value = tables.probe_value[probe]
    upper = tables.probe_upper[probe]
    fired.probe_heap[probe] = NONE
    if events.known[place, key] and events.valid[place, value] and events.valid[place, upper]:
        heap = query(
            ordered,
            nodes,
            tables.probe_place[probe],
            events.keys[place, key, 0],
            events.keys[place, key, 1],
            tables.probe_order[probe],
            events.values[place, value],
            events.values[place, upper],
            oldest,
            fired.pieces,
            fired.path,
        )
        if heap != NONE:
            fired.probe_heap[probe] = heap
            fired.probe_start[probe] = nodes.start[heap]
    within_bound(nodes.size[0] - nodes_before, most)


@step
def wait_in_order(tables, nodes, ordered, fired, events, place, waiting, alone, event, oldest):  # type: ignore[no-untyped-def]
    """Lets a product, whose heap node `alone` holds it alone, wait with the value of the event at `place`."""
    key = tables.place_key[waiting]
    insert(
        ordered,
        nodes,
        waiting,
        events.keys[place, key, 0],
        events.keys[place, key, 1],
        events.values[place, tables.place_value[waiting]],
        alone,
        event,
        oldest,
        fired.path,
    )


@inlined
def take(tables, heaps, index, ordered, fired, events, cursor, here, transition, tally):  # type: ignore[no-untyped-def]
    """Notes the runs that a transition gathers if it fires; see `read_keyed`.

    Queries of the ordered index make heap nodes, and make them again if the event is retried.
    """
    _, nodes = heaps
    place, event, _, since = here
    fires, ends, waits, waits_in_order, gathered = tally
    target = tables.target[transition]
    waits_before = waits + waits_in_order
    for spot in range(tables.first_place[target], tables.first_ordered[target]):
        waits += events.known[place, tables.place_key[spot]]
    if ordered is not None:
        for spot in range(tables.first_ordered[target], tables.first_place[target + 1]):
            known = events.known[place, tables.place_key[spot]]
            waits_in_order += known and events.valid[place, tables.place_value[spot]]
    if waits + waits_in_order == waits_before and not tables.final[target]:
        return DONE, tally
    start = event
    for source in range(tables.first_source[transition], tables.first_source[transition + 1]):
        probe = tables.source_probe[source]
        if fired.probed[probe] != event:
            if ordered is None or tables.probe_order[probe] == NONE:
                look(tables, index, fired, events, place, probe, since)
            else:
                most = most_nodes(ordered, nodes, 1)
                if nodes.size[0] + most > nodes.product.size:
                    cursor.need_nodes = most_nodes(ordered, nodes, tables.ordered_steps)
                    return GROW, tally
                look_in_order(tables, nodes, ordered, fired, events, place, probe, since, most)
            fired.probed[probe] = event
        if fired.probe_heap[probe] == NONE:
            return DONE, tally
        start = min(start, fired.probe_start[probe])
        fired.heap[gathered] = fired.probe_heap[probe]
        gathered += 1
    fired.transition[fires] = transition
    fired.start[fires] = start
    fires += 1
    fired.first[fires] = gathered
    if tables.final[target]:
        ends += 1
    return DONE, Tally(fires, ends, waits, waits_in_order, gathered)


@inlined
def lacks(tables, heaps, index, ordered, cursor, tally):  # type: ignore[no-untyped-def]
    """Whether capacity is missing for the firing transitions; see `read_keyed`.

    A transition makes one product, with a child for each heap that it gathers. A run that waits without a
    value claims a place of the hash index, half of whose places stay free, and makes SPINE heap nodes, among
    them the one that holds its product alone. A run that waits with a value takes as many as the ordered
    index states, and that node for each product.
    """
    products, nodes = heaps
    most = SPINE * tally.waits
    short_of_values = False
    if ordered is not None and tally.waits_in_order > 0:
        most += tally.fires + most_nodes(ordered, nodes, tally.waits_in_order)
        short_of_values = not has_capacity(ordered, tally.waits_in_order)
    if (
        products.size[0] + tally.fires > products.mark.size
        or products.size[1] + tally.gathered > products.child.size
        or nodes.size[0] + most > nodes.product.size
        or 2 * (index.used[0] + tally.waits) > index.words.shape[0]
        or short_of_values
    ):
        cursor.need_products = tally.fires
        cursor.need_children = tally.gathered
        cursor.need_nodes = most
        if ordered is not None:
            cursor.need_nodes += most_nodes(ordered, nodes, tables.ordered_steps)
        cursor.need_entries = tally.waits
        cursor.need_values = tally.waits_in_order
        return True, most
    return False, most


@inlined
def let_wait(tables, nodes, index, fired, events, here, target, product, start):  # type: ignore[no-untyped-def]
    """Lets a product wait without a value; returns the heap node that holds it alone, or NONE."""
    place, _, oldest, since = here
    alone = NONE
    for spot in range(tables.first_place[target], tables.first_ordered[target]):
        key = tables.place_key[spot]
        if not events.known[place, key]:
            continue
        entry = claim(index, spot, events.keys[place, key, 0], events.keys[place, key, 1], oldest)
        newest = index.entries[entry, START]
        if newest >= since and start >= newest:
            heap = heap_node(nodes, product, start, heap_of(index, entry), NONE)
            put(index, entry, spot, heap, start)
            continue
        if alone == NONE:
            alone = heap_node(nodes, product, start, NONE, NONE)
        if newest < since:
            put(index, entry, spot, alone, start)
        else:
            heap = meld(nodes, heap_of(index, entry), alone, since, fired.path)
            put(index, entry, spot, heap, newest)
    return alone


@inlined
def write(tables, heaps, index, ordered, fired, reported, events, here, tally, most):  # type: ignore[no-untyped-def]
    """Makes the products of firing transitions, lets them wait and reports them; see `read_keyed`."""
    products, nodes = heaps
    place, event, oldest, since = here
    products_before = products.size[0]
    children_before = products.size[1]
    nodes_before = nodes.size[0]
    entries_before = index.used[0]
    reported_before = reported.size[0]
    rows_before = np.int64(0)
    if ordered is not None:
        rows_before = ordered.sizes[USED] - ordered.sizes[FREE_ROWS]
    for number in range(tally.fires):
        transition = fired.transition[number]
        target = tables.target[transition]
        start = fired.start[number]
        first = fired.first[number]
        last = fired.first[number + 1]
        product = new_product(products, nodes, tables.mark[transition], event, start, fired.heap, first, last)
        if tables.final[target]:
            report(reported, event, product, since)
        alone = let_wait(tables, nodes, index, fired, events, here, target, product, start)
        if ordered is not None:
            for spot in range(tables.first_ordered[target], tables.first_place[target + 1]):
                if not events.known[place, tables.place_key[spot]]:
                    continue
                if not events.valid[place, tables.place_value[spot]]:
                    continue
                if alone == NONE:
                    alone = heap_node(nodes, product, start, NONE, NONE)
                wait_in_order(tables, nodes, ordered, fired, events, place, spot, alone, event, oldest)
    within_bound(products.size[0] - products_before, tally.fires)
    within_bound(products.size[1] - children_before, tally.gathered)
    within_bound(nodes.size[0] - nodes_before, most)
    within_bound(index.used[0] - entries_before, tally.waits)
    within_bound(reported.size[0] - reported_before, tally.ends)
    if ordered is not None:
        rows = ordered.sizes[USED] - ordered.sizes[FREE_ROWS]
        within_bound(rows - rows_before, 2 * tally.waits_in_order)


@kernel(
    PceaTables,
    Heaps,
    HashIndex,
    Maybe(OrderedIndex),
    Maybe(HashIndex),
    Fired,
    Reported,
    KeyedEvents,
    Cursor,
    INT,
)
def advance_pcea(tables, heaps, index, ordered, forgotten, fired, reported, events, cursor, consume):  # type: ignore[no-untyped-def]
    """Reads events; see `read_keyed`.

    `heaps` are `walk.products.Heaps`. `ordered` is None if the automaton never compares by order: machine
    code for that leaves out the code after `ordered is not None`, which made it 5 to 10 % slower even where
    it was never reached. Gathered runs start at or after `since`; indexes of all partitions only drop runs
    before `oldest`.
    """
    return read_keyed(
        tables, heaps, index, ordered, forgotten, fired, reported, events, cursor, consume, take, lacks, write
    )
