"""Recognition by a chain automaton without a window: runs wait in an ED-index (chain-CEA, Algorithm 1).

The run DAG is that of the paper: a *run node* is a configuration, and its neighbourhood is not stored but
looked up whenever it is read, by the version of the index, the key and the values at that event. The time for
an event depends only on the automaton.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import KeyedEvents
from estero.engine.cursor import DONE, Reported, cursor_of, report
from estero.engine.kernels import INT, Cube, Grid, Maybe, inlined, kernel, pool
from estero.engine.runs.joined.reading import Tally, read_keyed
from estero.engine.runs.joined.run_pcea import firsts
from estero.engine.runs.reading import within_bound
from estero.engine.store.arena import NONE
from estero.engine.store.ed_index import first_unequal, insert, newest
from estero.engine.store.hash_index import HashIndex
from estero.engine.walk.list_counts import Lists

Cursor: Any = cursor_of("forgotten", "need_nodes", "need_entries", "need_slots")
"""`forgotten` is the first event that counts."""


class ChainStep(NamedTuple):
    """A transition: at an event with bit `predicate` from `source` (None: a run begins) to `target`.

    Key column `left` of the event marked before must equal column `right` of the current event, and the
    columns of each pair in `unequal` (of the event before, of the current one) must differ; NULL satisfies
    neither. A transition without equalities names a column that is constant and known everywhere.
    """

    source: int | None
    predicate: int
    mark: int
    target: int
    left: int = 0
    right: int = 0
    unequal: Sequence[tuple[int, int]] = ()


@pool
class ChainTables(NamedTuple):
    """A chain automaton of t transitions, p predicates, q states, w waiting places, at most d disequalities.

    States with the same continuations are merged, so transitions accept, not states. Transitions that look
    into the same waiting place with the same columns of the current event share one of b *probes*. Runs in a
    state that are looked up by the same columns share a waiting place.

    ============= ===== ======== ===============================================================
    array         dtype shape    meaning
    ============= ===== ======== ===============================================================
    first_fired   int32 [p + 1]  predicate k fires transitions first_fired[k] … first_fired[k+1]-1
    mark          int32 [t]      label-set id of the event
    target        int32 [t]      state
    probe         int32 [t]      probe, NONE where a run begins
    probe_place   int32 [b]      where the runs before wait
    probe_key     int32 [b]      key column of the current event
    probe_unequal int32 [b, d]   its columns that differ
    first_place   int32 [q + 1]  runs in state q wait at first_place[q] … first_place[q+1]-1
    place_key     int32 [w]      key column of the event that enters the state
    place_unequal int32 [w, d]   its columns that differ
    place_width   int32 [w]      how many these are
    accepts       int8  [t]      whether a run that takes it is accepted
    ============= ===== ======== ===============================================================
    """

    first_fired: NDArray[np.int32]
    mark: NDArray[np.int32]
    target: NDArray[np.int32]
    probe: NDArray[np.int32]
    probe_place: NDArray[np.int32]
    probe_key: NDArray[np.int32]
    probe_unequal: Grid[np.int32]
    first_place: NDArray[np.int32]
    place_key: NDArray[np.int32]
    place_unequal: Grid[np.int32]
    place_width: NDArray[np.int32]
    accepts: NDArray[np.int8]

    @property
    def values(self) -> int:
        """The number of value columns read: none, since disequalities are between keys."""
        return 0

    @property
    def columns(self) -> int:
        """The number of key columns that the automaton reads."""
        read = self.probe_key, self.probe_unequal, self.place_key, self.place_unequal
        return 1 + max(int(columns.max(initial=NONE)) for columns in read)


def chain_tables(states: int, steps: Sequence[ChainStep], final: Sequence[int]) -> ChainTables:
    """The tables of an automaton with `states` states; those in `final` are final.

    Raises ValueError if a state is not below `states`, or if a run begins with a disequality.
    """
    for number, step in enumerate(steps):
        if not all(0 <= state < states for state in (step.target, step.source or 0)):
            raise ValueError(f"transition {number} names a state that is not below {states}")
        if step.source is None and step.unequal:
            raise ValueError(f"transition {number} compares the first event with one before it")
    block = _going_on_alike(states, steps, final)
    first = [block.index(number) for number in range(len(set(block)))]
    fired = sorted(
        (step for step in steps if step.source is None or step.source in first),
        key=lambda step: step.predicate,
    )
    accepts = np.array([step.target in final for step in fired], np.int8)
    fired = [
        step._replace(source=None if step.source is None else block[step.source], target=block[step.target])
        for step in fired
    ]
    predicates = fired[-1].predicate + 1 if fired else 0
    probe_of_step = [_probe(step) for step in fired]
    probes = sorted({probe for probe in probe_of_step if probe is not None})
    places = sorted({place for place, _, _ in probes})
    width = max((len(unequal) for _, _, unequal in places), default=0)
    return ChainTables(
        firsts([step.predicate for step in fired], predicates),
        np.array([step.mark for step in fired], np.int32),
        np.array([step.target for step in fired], np.int32),
        np.array([NONE if probe is None else probes.index(probe) for probe in probe_of_step], np.int32),
        np.array([places.index(place) for place, _, _ in probes], np.int32),
        np.array([right for _, right, _ in probes], np.int32),
        _padded([unequal for _, _, unequal in probes], width),
        firsts([state for state, _, _ in places], len(first)),
        np.array([left for _, left, _ in places], np.int32),
        _padded([unequal for _, _, unequal in places], width),
        np.array([len(unequal) for _, _, unequal in places], np.int32),
        accepts,
    )


def _going_on_alike(states: int, steps: Sequence[ChainStep], final: Sequence[int]) -> list[int]:
    """The number of each state's block: the states of a block have the same continuations (Moore).

    The transitions to a state tell whether it is final.
    """
    block = [0] * states
    while True:
        after = defaultdict[int | None, list[tuple[Any, ...]]](list)
        for step in steps:
            to = block[step.target], step.target in final
            after[step.source].append((step.predicate, step.mark, *to, _probe(step._replace(source=0))))
        numbers: dict[object, int] = {}
        futures = [(block[state], *sorted(after[state])) for state in range(states)]
        finer = [numbers.setdefault(future, len(numbers)) for future in futures]
        if len(numbers) == len(set(block)):
            return finer
        block = finer


_Place = tuple[int, int, tuple[int, ...]]


def _probe(step: ChainStep) -> tuple[_Place, int, tuple[int, ...]] | None:
    """The place where a transition looks, (state, column, columns), and the columns it compares, sorted."""
    if step.source is None:
        return None
    pairs = sorted(set(step.unequal))
    place = step.source, step.left, tuple(left for left, _ in pairs)
    return place, step.right, tuple(right for _, right in pairs)


def _padded(rows: Sequence[tuple[int, ...]], width: int) -> NDArray[np.int32]:
    filled = [[*row, *([NONE] * (width - len(row)))] for row in rows]
    return np.array(filled, np.int32).reshape(len(rows), width)


@pool
class ChainFired(NamedTuple):
    """Scratch of one step: the firing transitions int32[t], and the finds of probes, for event `probed`.

    probed int64[b]; top int32[b]: the newest entry that is looked at; head int32[b]: the first one from there
    on that fits the event, or NONE. wanted uint64[2, d, 2]: row 1 holds the values that are looked for or
    inserted, row 0 is scratch of the index.
    """

    transition: NDArray[np.int32]
    probed: NDArray[np.int64]
    top: NDArray[np.int32]
    head: NDArray[np.int32]
    wanted: Cube[np.uint64]


def new_chain_fired(tables: ChainTables) -> ChainFired:
    """Scratch for the steps of an automaton."""
    probes, attributes = tables.probe_unequal.shape
    return ChainFired(
        np.empty(tables.mark.size, np.int32),
        np.full(probes, -1, np.int64),
        np.empty(probes, np.int32),
        np.empty(probes, np.int32),
        np.empty((2, attributes, 2), np.uint64),
    )


@inlined
def all_known(known, place, key, unequal, row, width):  # type: ignore[no-untyped-def]
    """Whether the event at `place` of the batch has the key column and all of unequal[row]."""
    complete = known[place, key]
    for attribute in range(width):
        complete = complete and known[place, unequal[row, attribute]]
    return complete


@inlined
def want(fired, keys, place, unequal, row, width):  # type: ignore[no-untyped-def]
    """Writes the columns unequal[row] of the event at `place` of the batch to wanted[1]."""
    for attribute in range(width):
        column = unequal[row, attribute]
        fired.wanted[1, attribute, 0] = keys[place, column, 0]
        fired.wanted[1, attribute, 1] = keys[place, column, 1]


@inlined
def look(tables, sequences, entries, index, fired, events, place, probe, forgotten):  # type: ignore[no-untyped-def]
    """Writes to `fired` the find of a probe for the event at `place` of the batch."""
    fired.head[probe] = NONE
    waiting = tables.probe_place[probe]
    width = tables.place_width[waiting]
    key = tables.probe_key[probe]
    if not all_known(events.known, place, key, tables.probe_unequal, probe, width):
        return
    entry = newest(index, waiting, events.keys[place, key, 0], events.keys[place, key, 1], forgotten)
    fired.top[probe] = entry
    if entry != NONE and width > 0:
        want(fired, events.keys, place, tables.probe_unequal, probe, width)
        entry = first_unequal(entries, sequences, entry, (1 << width) - 1, fired.wanted, 1)
    fired.head[probe] = entry


@inlined
def new_run_node(tables, nodes, fired, events, place, event, transition, waits):  # type: ignore[no-untyped-def]
    """Makes a node for a firing transition, with the data by which its neighbourhood is looked up."""
    if waits:
        node = nodes.size[0]
        nodes.size[0] = node + 1
    else:
        nodes.size[1] += 1
        node = nodes.mark.size - nodes.size[1]
    nodes.mark[node] = tables.mark[transition]
    nodes.event[node] = event
    nodes.place[node] = NONE
    nodes.top[node] = NONE
    nodes.head[node] = NONE
    probe = tables.probe[transition]
    if probe == NONE:
        return node
    waiting = tables.probe_place[probe]
    nodes.place[node] = waiting
    nodes.top[node] = fired.top[probe]
    nodes.head[node] = fired.head[probe]
    for attribute in range(tables.place_width[waiting]):
        column = tables.probe_unequal[probe, attribute]
        nodes.values[node, attribute, 0] = events.keys[place, column, 0]
        nodes.values[node, attribute, 1] = events.keys[place, column, 1]
    return node


@inlined
def let_wait(tables, sequences, entries, index, fired, events, place, event, node, target, oldest, since):  # type: ignore[no-untyped-def]
    """Puts a node on top of its lists in all waiting places of its state."""
    for waiting in range(tables.first_place[target], tables.first_place[target + 1]):
        width = tables.place_width[waiting]
        key = tables.place_key[waiting]
        if not all_known(events.known, place, key, tables.place_unequal, waiting, width):
            continue
        one = events.keys[place, key, 0]
        two = events.keys[place, key, 1]
        want(fired, events.keys, place, tables.place_unequal, waiting, width)
        wanted = fired.wanted
        insert(entries, sequences, index, waiting, width, one, two, wanted, 1, node, event, oldest, since)


@inlined
def places_to_wait(tables, events, place, target):  # type: ignore[no-untyped-def]
    """The number of waiting places in which a run that enters `target` will wait."""
    waits = 0
    for waiting in range(tables.first_place[target], tables.first_place[target + 1]):
        width = tables.place_width[waiting]
        waits += all_known(
            events.known, place, tables.place_key[waiting], tables.place_unequal, waiting, width
        )
    return waits


@inlined
def take(tables, lists, index, ordered, fired, events, cursor, here, transition, tally):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Notes a transition if it fires; see `read_keyed`. It only sees runs of events before this one."""
    _, entries, sequences, _ = lists
    place, event, _, since = here
    fires, ends, waits, waits_in_order, gathered = tally
    spots = places_to_wait(tables, events, place, tables.target[transition])
    if spots == 0 and not tables.accepts[transition]:
        return DONE, tally
    probe = tables.probe[transition]
    if probe != NONE:
        if fired.probed[probe] != event:
            look(tables, sequences, entries, index, fired, events, place, probe, since)
            fired.probed[probe] = event
        if fired.head[probe] == NONE:
            return DONE, tally
    fired.transition[fires] = transition
    if tables.accepts[transition]:
        ends += 1
    return DONE, Tally(fires + 1, ends, waits + spots, waits_in_order, gathered)


@inlined
def lacks(tables, lists, index, ordered, cursor, tally):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Whether capacity is missing for the firing transitions; see `read_keyed`.

    A transition makes one node; each waiting run makes one entry and claims a place of the hash index, half
    of whose places stay free.
    """
    nodes, entries, _, _ = lists
    if (
        nodes.size[0] + nodes.size[1] + tally.fires > nodes.mark.size
        or entries.size[0] + tally.waits > entries.node.size
        or 2 * (index.used[0] + tally.waits) > index.words.shape[0]
    ):
        cursor.need_nodes = tally.fires
        cursor.need_entries = tally.waits
        cursor.need_slots = tally.waits
        return True, tally.fires
    return False, tally.fires


@inlined
def write(tables, lists, index, ordered, fired, reported, events, here, tally, most):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Makes and reports the nodes of the firing transitions, and then lets them wait; see `read_keyed`."""
    nodes, entries, sequences, _ = lists
    place, event, oldest, since = here
    nodes_before = nodes.size[0] + nodes.size[1]
    entries_before = entries.size[0]
    slots_before = index.used[0]
    reported_before = reported.size[0]
    node = nodes.size[0]
    for number in range(tally.fires):
        transition = fired.transition[number]
        target = tables.target[transition]
        waits = places_to_wait(tables, events, place, target) > 0
        made = new_run_node(tables, nodes, fired, events, place, event, transition, waits)
        if tables.accepts[transition]:
            report(reported, event, made, since)
        fired.transition[number] = target if waits else NONE
    for number in range(tally.fires):
        target = fired.transition[number]
        if target != NONE:
            let_wait(
                tables, sequences, entries, index, fired, events, place, event, node, target, oldest, since
            )
            node += 1
    within_bound(nodes.size[0] + nodes.size[1] - nodes_before, most)
    within_bound(entries.size[0] - entries_before, tally.waits)
    within_bound(index.used[0] - slots_before, tally.waits)
    within_bound(reported.size[0] - reported_before, tally.ends)


@kernel(ChainTables, Lists, HashIndex, Maybe(HashIndex), ChainFired, Reported, KeyedEvents, Cursor, INT)
def advance_chain(tables, lists, index, forgotten, fired, reported, events, cursor, consume):  # type: ignore[no-untyped-def]
    """Reads events; see `read_keyed`. `lists` are `walk.list_counts.Lists`."""
    return read_keyed(
        tables, lists, index, None, forgotten, fired, reported, events, cursor, consume, take, lacks, write
    )
