"""Pairs of rows and rules, without those of events that can be in no complex event of their rule.

An event is in a complex event only if runs of the automaton reach it and go on from it to an end, all inside
the window. One pass over the pairs notes for each state of each rule the latest start of its runs, and a pass
back the earliest end that follows. Both ignore what else a rule asks, such as keys: they leave out too little
rather than too much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.held_conditions import HeldConditions
from estero.engine.kernels import INT, INT64S, Grid, inlined, kernel, pool
from estero.engine.pairs import Pairs

AT_ONCE: Final = 1 << 18
"""Pairs that are looked at together; beyond them no end is known, and events are kept."""
_NEVER: Final = -(2**62)
_FURTHEST: Final = 2**62 - 1
"""Stamps no further than this from the first one are compared, and windows no longer."""
_LAST, _BITS = 64, 63
OUTSIDE: Final = -1
"""Where runs come from that begin, and go to that accept."""


@pool
class Asking(NamedTuple):
    """Rules ``rules[firsts[i] : firsts[i + 1]]`` ask for condition i, for which they have these `bits`."""

    firsts: NDArray[np.int64]
    rules: NDArray[np.int64]
    bits: NDArray[np.int64]

    @classmethod
    def of(cls, asking: Iterable[tuple[int, int, int]]) -> Asking:
        """Those of triples of a condition, a rule and a bit, with all conditions up to the last one."""
        triples = sorted(asking)
        conditions, rules, bits = np.array(triples, np.int64).reshape(-1, 3).T
        firsts = np.searchsorted(conditions, np.arange(conditions.max(initial=-1) + 2))
        return cls(firsts.astype(np.int64), np.ascontiguousarray(rules), np.ascontiguousarray(bits))


@pool
class Steps(NamedTuple):
    """Transitions from `source` to `target`, on events with all bits of `present` and none of `absent`.

    int64[steps]; a state is one of `states`, or OUTSIDE. A step from a state comes before those into it, if
    no run comes back there.
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    present: NDArray[np.int64]
    absent: NDArray[np.int64]
    states: int

    @classmethod
    def of(cls, steps: Sequence[tuple[int, int, int, int]], states: int) -> Steps:
        """Those with these sources, targets, and bits that are present and absent."""
        source, target, present, absent = np.ascontiguousarray(np.array(steps, np.int64).reshape(-1, 4).T)
        return cls(source, target, present, absent, states)


NO_STEPS: Final = Steps.of((), 0)


@pool
class _Routes(NamedTuple):
    """The steps that an event takes in which one condition holds alone.

    Those of condition i are ``steps[firsts[i] : firsts[i + 1]]``, rule by rule. steps int32[., 4]: the places
    among the states of all rules from which a step leads and to which; the rule; and its bit, _LAST higher in
    the last step of the rule.
    """

    firsts: NDArray[np.int64]
    steps: Grid[np.int32]

    @classmethod
    def of(cls, asking: Asking, steps: Steps, outside: int) -> _Routes:
        """Those where places from `outside` on stand for a source and a target outside.

        If there are no steps, every event takes one.
        """
        if not steps.source.size:
            every = np.arange(asking.bits.size)
            source, target = np.full(every.size, outside), np.full(every.size, outside + 1)
            entries = every
        else:
            words = (np.int64(1) << asking.bits)[:, np.newaxis]
            fires = (words & steps.present == steps.present) & (words & steps.absent == 0)
            entries, taken = np.nonzero(fires)
            begin = asking.rules[entries] * steps.states
            source, target = steps.source[taken], steps.target[taken]
            source = np.where(source == OUTSIDE, outside, begin + source)
            target = np.where(target == OUTSIDE, outside + 1, begin + target)
        last = np.append(entries[1:] != entries[:-1], True)[: entries.size]
        columns = (source, target, asking.rules[entries], asking.bits[entries] + _LAST * last)
        firsts = np.searchsorted(entries, asking.firsts)
        return cls(firsts.astype(np.int64), np.column_stack(columns).astype(np.int32))


@pool
class _Scratch(NamedTuple):
    """Of each rule the bits of the current row, and the rules that have some; int64[rules]."""

    words: NDArray[np.int64]
    touched: NDArray[np.int64]


@pool
class _Spanned(NamedTuple):
    """Pairs, with the latest start of the runs that come from an earlier event, or _NEVER."""

    rows: NDArray[np.int64]
    rules: NDArray[np.int64]
    words: NDArray[np.int64]
    begun: NDArray[np.int64]


class SpannedPairs:
    """The pairs of one stream, batch after batch, for as many `rules` with these `steps` and this window.

    Without steps all pairs are kept.
    """

    def __init__(self, asking: Asking, rules: int, steps: Steps, window: int, at_once: int = AT_ONCE) -> None:
        self._asking = asking
        self._steps = steps if 0 <= window <= _FURTHEST else NO_STEPS
        self._window = min(max(window, 0), _FURTHEST)
        outside = rules * self._steps.states
        self._routes = _Routes.of(asking, self._steps, outside)
        self._reached = np.full(outside + 2, _NEVER, np.int64)
        self._ahead = np.empty_like(self._reached)
        self._scratch = _Scratch(np.zeros(rules, np.int64), np.empty(rules, np.int64))
        capacity = max(at_once, asking.rules.size * (2 + steps.source.size))
        self._pairs = _Spanned(*(np.empty(capacity, np.int64) for _ in _Spanned._fields))
        self._first: int | None = None
        self._last = 0

    def of(self, held: HeldConditions, stamps: NDArray[np.int64]) -> Iterator[Pairs]:
        """The distinct pairs of a batch in order of rows; of a row the rules come in any order.

        stamps int64[rows] are in the unit of the window, and ascend from batch to batch.
        """
        stamps = self._distances(stamps)
        at, pairs = np.zeros(1, np.int64), self._pairs
        while at[0] < stamps.size:
            count = _expand(
                *(held, self._asking, stamps, self._steps, self._routes, self._window),
                *(self._reached, self._scratch, at, pairs),
            )
            first = 0
            if self._steps.source.size:
                self._ahead.fill(stamps[at[0] - 1])
                first = _keep_ending(stamps, self._steps, self._window, self._ahead, pairs, count)
            if first < count:
                yield Pairs(*(column[first:count].copy() for column in pairs[: len(Pairs._fields)]))

    def _distances(self, stamps: NDArray[np.int64]) -> NDArray[np.int64]:
        """The distances of stamps from the first of all; zeros, once they do not ascend or are too far."""
        if self._steps.source.size and stamps.size:
            first, last = int(stamps[0]), int(stamps[-1])
            if self._first is None:
                self._first = self._last = first
            ascend = self._last <= first and not (stamps[1:] < stamps[:-1]).any()
            self._last = last
            if ascend and last - self._first <= _FURTHEST:
                return stamps - self._first
            self._steps = NO_STEPS
            self._routes = _Routes.of(self._asking, NO_STEPS, self._reached.size - 2)
        return np.zeros(stamps.size, np.int64)


@inlined
def _fires(steps, step, word):  # type: ignore[no-untyped-def]
    """Whether an event with the bits of a word takes a step."""
    return word & steps.present[step] == steps.present[step] and word & steps.absent[step] == 0


@inlined
def _place_of(state, begin, outside):  # type: ignore[no-untyped-def]
    """The place of a state of a rule, whose states begin at `begin`; `outside` for OUTSIDE."""
    return outside if state == OUTSIDE else begin + state


@inlined
def _advance(reached, source, target, stamp, window):  # type: ignore[no-untyped-def]
    """Takes a step with the runs inside the window; returns their latest start, _NEVER for none.

    It has no branch, which would be taken at random.
    """
    start = reached[source]
    start = start if stamp - start <= window else np.int64(_NEVER)
    reached[target] = max(reached[target], start)
    return start


@inlined
def _put(pairs, count, row, rule, word, begun):  # type: ignore[no-untyped-def]
    """Writes a pair behind the others."""
    pairs.rows[count] = row
    pairs.rules[count] = rule
    pairs.words[count] = word
    pairs.begun[count] = begun


@kernel(HeldConditions, Asking, INT64S, Steps, _Routes, INT, INT64S, _Scratch, INT64S, _Spanned)
def _expand(held, asking, stamps, steps, routes, window, reached, scratch, at, pairs):  # type: ignore[no-untyped-def]
    """Fills pairs from row ``at[0]`` on, which advances, while those of a row fit; returns their number."""
    count = np.int64(0)
    words, touched = scratch
    outside = reached.size - 2
    for row in range(at[0], stamps.size):
        begin = held.ends[row]
        end = held.ends[row + 1]
        most = np.int64(0)
        for place in range(begin, end):
            condition = held.numbers[place]
            most += routes.firsts[condition + 1] - routes.firsts[condition]
            most += asking.firsts[condition + 1] - asking.firsts[condition]
        if count + most > pairs.rows.size:
            at[0] = row
            return count
        stamp = stamps[row]
        reached[outside] = stamp
        if end - begin == 1:
            condition = held.numbers[begin]
            begun = np.int64(_NEVER)
            latest = np.int64(_NEVER)
            for route in range(routes.firsts[condition], routes.firsts[condition + 1]):
                source = routes.steps[route, 0]
                start = _advance(reached, source, routes.steps[route, 1], stamp, window)
                begun = max(begun, start if source < outside else np.int64(_NEVER))
                latest = max(latest, start)
                bit = np.int64(routes.steps[route, 3])
                _put(pairs, count, row, routes.steps[route, 2], np.int64(1) << (bit & _BITS), begun)
                is_last = bit >= _LAST
                count += np.int64(is_last & (latest != _NEVER))
                begun = np.int64(_NEVER) if is_last else begun
                latest = np.int64(_NEVER) if is_last else latest
            continue
        number = 0
        for held_place in range(begin, end):
            condition = held.numbers[held_place]
            for place in range(asking.firsts[condition], asking.firsts[condition + 1]):
                rule = asking.rules[place]
                if words[rule] == 0:
                    touched[number] = rule
                    number += 1
                words[rule] |= np.int64(1) << asking.bits[place]
        for place in range(number):
            rule = touched[place]
            begun = np.int64(_NEVER)
            latest = np.int64(_NEVER) if steps.source.size > 0 else stamp
            for step in range(steps.source.size):
                if _fires(steps, step, words[rule]):
                    source = _place_of(steps.source[step], rule * steps.states, outside)
                    target = _place_of(steps.target[step], rule * steps.states, outside + 1)
                    start = _advance(reached, source, target, stamp, window)
                    begun = max(begun, start if source < outside else np.int64(_NEVER))
                    latest = max(latest, start)
            _put(pairs, count, row, rule, words[rule], begun)
            count += np.int64(latest != _NEVER)
            words[rule] = 0
    at[0] = stamps.size
    return count


@kernel(INT64S, Steps, INT, INT64S, _Spanned, INT)
def _keep_ending(stamps, steps, window, ahead, pairs, count):  # type: ignore[no-untyped-def]
    """Moves to the end of `count` pairs those from which runs go on to an end; returns the first of them.

    ahead int64[rules * states + 2]: the earliest end of runs in each state of each rule.
    """
    first = count
    outside = ahead.size - 2
    for back in range(count):
        at = count - 1 - back
        stamp = stamps[pairs.rows[at]]
        rule = pairs.rules[at]
        word = pairs.words[at]
        begun = pairs.begun[at]
        ahead[outside + 1] = stamp
        goes_on = False
        for step_back in range(steps.source.size):
            step = steps.source.size - 1 - step_back
            if _fires(steps, step, word):
                source = _place_of(steps.source[step], rule * steps.states, outside)
                end = ahead[_place_of(steps.target[step], rule * steps.states, outside + 1)]
                in_time = end - (begun if source < outside else stamp) <= window
                ahead[source] = min(ahead[source], end) if in_time else ahead[source]
                goes_on |= in_time
        pairs.rows[first - 1] = pairs.rows[at]
        pairs.rules[first - 1] = rule
        pairs.words[first - 1] = word
        pairs.begun[first - 1] = begun
        first -= np.int64(goes_on)
    return first
