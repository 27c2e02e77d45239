"""Pairs of rows and rules, without those of events that can be in no complex event of their rule.

An event is in a complex event only if runs of the automaton reach it and go on from it to an end, all inside
the window. One pass over the pairs notes for each state of each rule the latest start of its runs, and a pass
back the earliest end that follows. Both ignore what else a rule asks, such as keys: they leave out too little
rather than too much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.engine.held_conditions import HeldConditions
from estero.engine.kernels import INT, INT64S, inlined, kernel, pool
from estero.engine.pairs import Pairs

AT_ONCE: Final = 1 << 18
"""Pairs that are looked at together; beyond them no end is known, and events are kept."""
_NEVER: Final = -(2**62)
_FURTHEST: Final = 2**62 - 1
"""Stamps no further than this from the first one are compared, and windows no longer."""
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
    """Transitions: an event with all bits of `present`, and none of `absent`, leads from `source` to `target`.

    int64[steps]; a state is one of `states`, or OUTSIDE. A step from a state comes before those into it, if
    no run comes back there.
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    present: NDArray[np.int64]
    absent: NDArray[np.int64]
    states: int


@pool
class _Routes(NamedTuple):
    """The steps that an event takes with the bit of one rule's condition alone.

    Of entry i of `Asking`, they lead from places ``sources[firsts[i] : firsts[i + 1]]`` among the states of all
    rules to `targets`.
    """

    firsts: NDArray[np.int64]
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]

    @classmethod
    def of(cls, asking: Asking, steps: Steps, outside: int) -> _Routes:
        """Those where places from `outside` on stand for a source and a target outside."""
        words = (np.int64(1) << asking.bits)[:, np.newaxis]
        entries, taken = np.nonzero((words & steps.present == steps.present) & (words & steps.absent == 0))
        firsts = np.searchsorted(entries, np.arange(asking.bits.size + 1)).astype(np.int64)
        begin = asking.rules[entries] * steps.states
        source, target = steps.source[taken], steps.target[taken]
        return cls(
            firsts,
            np.where(source == OUTSIDE, outside, begin + source),
            np.where(target == OUTSIDE, outside + 1, begin + target),
        )


_NONE: Final = np.empty(0, np.int64)
NO_STEPS: Final = Steps(_NONE, _NONE, _NONE, _NONE, 0)


@pool
class _Scratch(NamedTuple):
    """Of each rule the bits of the current row; the rules that have some. int64[rules]"""

    words: NDArray[np.int64]
    touched: NDArray[np.int64]


@pool
class _Spanned(NamedTuple):
    """Pairs, with the latest start of the runs that reach the event."""

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
        self._window = min(window, _FURTHEST)
        outside = rules * self._steps.states
        self._routes = _Routes.of(asking, self._steps, outside)
        self._reached = np.full(outside + 2, _NEVER, np.int64)
        self._ahead = np.empty_like(self._reached)
        self._scratch = _Scratch(np.zeros(rules, np.int64), np.empty(rules, np.int64))
        capacity = max(at_once, asking.rules.size)
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
        """The distances of stamps from the first one of all; events whose stamps do not ascend are all kept."""
        if not self._steps.source.size or not stamps.size:
            return stamps
        first, last = int(stamps[0]), int(stamps[-1])
        if self._first is None:
            self._first = self._last = first
        ascend = self._last <= first and not (stamps[1:] < stamps[:-1]).any()
        self._last = last
        if not ascend or last - self._first > _FURTHEST:
            self._steps = NO_STEPS
            self._routes = _Routes.of(self._asking, NO_STEPS, 0)
            return stamps
        return stamps - self._first


@inlined
def _fires(steps, step, word):  # type: ignore[no-untyped-def]
    """Whether an event with the bits of a word takes a step."""
    return word & steps.present[step] == steps.present[step] and word & steps.absent[step] == 0


@inlined
def _advance(reached, source, target, stamp, window, latest):  # type: ignore[no-untyped-def]
    """Takes a step with the runs inside the window; returns their latest start, or a later one known before.

    It has no branch, which would be taken at random.
    """
    begun = reached[source]
    begun = begun if stamp - begun <= window else np.int64(_NEVER)
    reached[target] = max(reached[target], begun)
    return max(latest, begun)


@inlined
def _put(pairs, count, row, rule, word, begun):  # type: ignore[no-untyped-def]
    """Writes a pair, and returns how many there are: one more if a run has begun."""
    pairs.rows[count] = row
    pairs.rules[count] = rule
    pairs.words[count] = word
    pairs.begun[count] = begun
    return count + np.int64(begun != _NEVER)


@inlined
def _advance_all(steps, reached, rule, word, stamp, window, latest):  # type: ignore[no-untyped-def]
    """Takes all steps of an event with the bits of a word, as `_advance` does."""
    for step in range(steps.source.size):
        if _fires(steps, step, word):
            begin = rule * steps.states
            source = reached.size - 2 if steps.source[step] == OUTSIDE else begin + steps.source[step]
            target = reached.size - 1 if steps.target[step] == OUTSIDE else begin + steps.target[step]
            latest = _advance(reached, source, target, stamp, window, latest)
    return latest


@kernel(HeldConditions, Asking, INT64S, Steps, _Routes, INT, INT64S, _Scratch, INT64S, _Spanned)
def _expand(held, asking, stamps, steps, routes, window, reached, scratch, at, pairs):  # type: ignore[no-untyped-def]
    """Fills pairs from row ``at[0]`` on, which advances, while those of a row fit; returns how many there are."""
    count = np.int64(0)
    words, touched = scratch
    unknown = np.int64(0) if steps.source.size == 0 else np.int64(_NEVER)
    for row in range(at[0], stamps.size):
        begin = held.ends[row]
        end = held.ends[row + 1]
        most = np.int64(0)
        for place in range(begin, end):
            condition = held.numbers[place]
            most += asking.firsts[condition + 1] - asking.firsts[condition]
        if count + most > pairs.rows.size:
            at[0] = row
            return count
        stamp = stamps[row]
        reached[reached.size - 2] = stamp
        if end - begin == 1:
            condition = held.numbers[begin]
            for place in range(asking.firsts[condition], asking.firsts[condition + 1]):
                latest = unknown
                for route in range(routes.firsts[place], routes.firsts[place + 1]):
                    source, target = routes.sources[route], routes.targets[route]
                    latest = _advance(reached, source, target, stamp, window, latest)
                word = np.int64(1) << asking.bits[place]
                count = _put(pairs, count, row, asking.rules[place], word, latest)
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
            latest = _advance_all(steps, reached, rule, words[rule], stamp, window, unknown)
            count = _put(pairs, count, row, rule, words[rule], latest)
            words[rule] = 0
    at[0] = stamps.size
    return count


@kernel(INT64S, Steps, INT, INT64S, _Spanned, INT)
def _keep_ending(stamps, steps, window, ahead, pairs, count):  # type: ignore[no-untyped-def]
    """Moves to the end of `count` pairs those from which runs go on to an end; returns the first of them.

    ahead int64[rules * states + 2]: the earliest end of runs in each state of each rule.
    """
    first = count
    for back in range(count):
        at = count - 1 - back
        stamp = stamps[pairs.rows[at]]
        rule = pairs.rules[at]
        word = pairs.words[at]
        begun = pairs.begun[at]
        ahead[ahead.size - 1] = stamp
        goes_on = False
        for step_back in range(steps.source.size):
            step = steps.source.size - 1 - step_back
            if _fires(steps, step, word):
                begin = rule * steps.states
                target = ahead.size - 1 if steps.target[step] == OUTSIDE else begin + steps.target[step]
                source = ahead.size - 2 if steps.source[step] == OUTSIDE else begin + steps.source[step]
                end = ahead[target]
                in_time = end - begun <= window
                ahead[source] = min(ahead[source], end) if in_time else ahead[source]
                goes_on |= in_time
        pairs.rows[first - 1] = pairs.rows[at]
        pairs.rules[first - 1] = rule
        pairs.words[first - 1] = word
        pairs.begun[first - 1] = begun
        first -= np.int64(goes_on)
    return first
