"""The items of a complex event that has branches, in the order of events."""

from __future__ import annotations

from estero.engine.kernels import inlined, step
from estero.engine.walk.enumeration import write_back


@inlined
def write_sorted(walk, length, start, matches, first):  # type: ignore[no-untyped-def]
    """Writes the current items to matches from place `first` on, by event and then by label-set id.

    Items come parents first, so backwards each branch is ascending already: its runs are merged, in O(items ×
    log branches); for a chain that is one copy. Returns the first event.
    """
    write_back(walk, length, start, matches, first)
    while merge_runs(matches, first, length, walk.sort_event, walk.sort_marks) > 1:
        for place in range(length):
            matches.event[first + place] = walk.sort_event[place]
            matches.marks[first + place] = walk.sort_marks[place]
    return matches.event[first]


@step
def merge_runs(matches, first, length, event, marks):  # type: ignore[no-untyped-def]
    """Merges each ascending run of matches.event[first …] with the next, into event and marks.

    Returns the number of runs that there were.
    """
    runs = 0
    low = first
    last = first + length
    while low < last:
        middle = run_end(matches, low, last)
        high = run_end(matches, middle, last)
        if low == first and middle == last:
            return 1
        runs += 1 if middle == high else 2
        one = low
        two = middle
        for place in range(low - first, high - first):
            if two == high or (one < middle and not before(matches, two, one)):
                chosen = one
                one += 1
            else:
                chosen = two
                two += 1
            event[place] = matches.event[chosen]
            marks[place] = matches.marks[chosen]
        low = high
    return runs


@step
def before(matches, one, two):  # type: ignore[no-untyped-def]
    """Whether item `one` comes before item `two`."""
    if matches.event[one] != matches.event[two]:
        return matches.event[one] < matches.event[two]
    return matches.marks[one] < matches.marks[two]


@step
def run_end(matches, low, last):  # type: ignore[no-untyped-def]
    """Where the ascending run that begins at `low` ends, at most `last`."""
    if low == last:
        return last
    low += 1
    while low < last and not before(matches, low, low - 1):
        low += 1
    return low
