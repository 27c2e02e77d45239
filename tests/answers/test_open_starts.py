"""Open starts in parts against a dict of the last end of each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estero.answers.sieve import open_starts
from estero.answers.sieve.open_starts import Candidates, OpenStarts
from estero.classify.column_names import POSITION, TIME
from estero.engine.walk.matches import Matches, taken

SCHEMA = pa.schema([(POSITION, pa.int64()), (TIME, pa.int64())])
Ends = dict[int, int]


def last_ends(matches: Matches) -> Matches:
    """The complex event of each start that ends last."""
    order = np.lexsort((matches.end, matches.start))
    last = np.flatnonzero(np.diff(matches.start[order], append=-1))
    return taken(matches, order[last])


def candidates(ends: Ends) -> Candidates:
    """A complex event of its first and its last event for each start; an event comes every ten ticks."""
    start = np.array(sorted(ends), np.int64)
    end = np.array([ends[each] for each in sorted(ends)], np.int64)
    events = np.column_stack((start, end)).ravel()
    position = np.unique(events)
    matches = Matches(start, end, np.arange(0, events.size + 1, 2), events, np.zeros(events.size, np.int32))
    return Candidates(matches, pa.RecordBatch.from_arrays([position, 10 * position], schema=SCHEMA))


def ends_of(found: Candidates) -> Ends:
    """The ends by start; all events have to be there, and no others."""
    matches = found.matches
    assert np.diff(matches.start).min(initial=1) > 0
    assert found.events.column(POSITION).to_pylist() == np.unique(matches.event).tolist()
    assert found.values(matches.end, TIME).tolist() == (10 * matches.end).tolist()
    assert matches.event.tolist() == np.column_stack((matches.start, matches.end)).ravel().tolist()
    return dict(zip(matches.start.tolist(), matches.end.tolist(), strict=True))


STEPS = st.lists(
    st.tuples(st.dictionaries(st.integers(0, 12), st.integers(0, 9), max_size=6), st.integers(0, 5)),
    max_size=25,
)


@given(STEPS, st.sampled_from([0, 3, 1 << 12]))
def test_the_oldest_are_taken_with_their_last_ends(steps: list[tuple[Ends, int]], many: int) -> None:
    known: Ends = {}
    oldest = 0
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(open_starts, "_MANY", many)
        starts = OpenStarts(SCHEMA, TIME, last_ends)
        for lengths, passed in steps:
            added = {oldest + start: oldest + start + length for start, length in lengths.items()}
            starts.add(candidates(added))
            known |= {start: max(end, known.get(start, end)) for start, end in added.items()}
            assert starts.empty == (not known)
            for last in (oldest, oldest + 9):
                first = min(known.values(), default=last + 1)
                assert min(starts.first_end(last), last + 1) == min(first, last + 1)
            oldest += passed
            gone = {start: end for start, end in known.items() if start < oldest}
            assert ends_of(starts.take(10 * oldest)) == gone
            known = {start: end for start, end in known.items() if start >= oldest}
        assert ends_of(starts.all()) == known
        assert ends_of(starts.all()) == known
        starts.clear()
        assert starts.empty
        assert ends_of(starts.all()) == {}


def test_what_is_taken_one_by_one_is_not_copied_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    copied = 0
    together = open_starts.together

    def counted(*given: object) -> Candidates:
        nonlocal copied
        joined = together(*given)  # type: ignore[arg-type]
        copied += joined.matches.start.size
        return joined

    monkeypatch.setattr(open_starts, "together", counted)
    starts, window = OpenStarts(SCHEMA, TIME, last_ends), 250
    for start in range(4 * window):
        starts.add(candidates({start: start + 3}))
        starts.take(10 * (start - window))
    assert copied < 4 * window * 10
