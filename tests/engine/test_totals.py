"""Totals by states against the compact set, whose own counts are compared with enumeration elsewhere."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.streams import batch_of, recognizer_of
from estero.engine.lanes import rows_by_lane
from estero.engine.runs import cea_runs
from estero.engine.tally import counted_runs, totals
from estero.engine.tally.counted_runs import CountedRuns
from estero.engine.tally.totals import NoTotalError

IN_ORDER = (
    *("A", "A ; B", "A ; B ; C", "A ; B? ; C", "A ; (A OR B) ; C", "(A ; B) OR (B ; C)", "A OR (A ; A ; B)"),
    *("A ; A ; A", "A AND B"),
)
OTHERS = "A : B : C", "A ; B+ ; C", "(A OR B)+ ; C", "(A ; B)+", "A+", "A : B+ ; (C OR A)"
BATCHES = st.lists(st.text("ABCx", min_size=1, max_size=25), min_size=1, max_size=5)
WINDOWS = st.one_of(st.none(), st.integers(0, 30))


def totals_of(
    pattern: str, batches: list[str], keys: list[int] | None, *, window: int | None, limit: int | None
) -> list[int]:
    """What ends in each batch, by states alone."""
    settings = {"window": window, "keyed": keys is not None, "counting": limit is None, "total": True}
    recognizer, bits = recognizer_of(pattern, **settings)
    assert isinstance(recognizer.runs, CountedRuns)
    found = []
    for first, last in pairwise(accumulate(map(len, batches), initial=0)):
        letters = "".join(batches)[first:last]
        batch = batch_of(letters, bits, first=first, keys=None if keys is None else keys[first:last])
        found.append(sum(recognizer.runs.total or 0 for _ in recognizer.push(batch)))
    return found


def counts_of(
    pattern: str, batches: list[str], keys: list[int] | None, *, window: int | None, limit: int | None
) -> list[int]:
    """The same by the compact set."""
    recognizer, bits = recognizer_of(pattern, window=window, keyed=keys is not None)
    found = []
    for first, last in pairwise(accumulate(map(len, batches), initial=0)):
        letters = "".join(batches)[first:last]
        batch = batch_of(letters, bits, first=first, keys=None if keys is None else keys[first:last])
        found.append(sum(sum(recognizer.counts_by_end(roots, limit)[1]) for roots in recognizer.push(batch)))
    return found


@given(st.sampled_from([*IN_ORDER, *OTHERS]), BATCHES, WINDOWS, st.booleans())
def test_an_end_counts_once(pattern: str, batches: list[str], window: int | None, keyed: bool) -> None:
    keys = [place * place % 5 for place in range(125)] if keyed else None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cea_runs, "_FEW_KEYS", 1)
        patched.setattr(cea_runs, "_MANY_KEYS", 2)
        counted = totals_of(pattern, batches, keys, window=window, limit=1)
    assert counted == counts_of(pattern, batches, keys, window=window, limit=1)


@given(st.sampled_from([*IN_ORDER, *OTHERS]), BATCHES, st.booleans())
def test_runs_are_counted_without_a_window(pattern: str, batches: list[str], keyed: bool) -> None:
    keys = [place * place % 5 for place in range(125)] if keyed else None
    counted = totals_of(pattern, batches, keys, window=None, limit=None)
    assert counted == counts_of(pattern, batches, keys, window=None, limit=None)


@given(st.sampled_from(IN_ORDER), BATCHES, st.integers(0, 60))
def test_sums_count_in_a_window(pattern: str, batches: list[str], window: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(totals, "_SHORTEST", 2)
        counted = totals_of(pattern, batches, None, window=window, limit=None)
    assert counted == counts_of(pattern, batches, None, window=window, limit=None)


def test_an_event_without_a_name_may_come_first() -> None:
    batches = ["xx", "A", "xB", "C", "CC"]
    for window in (None, 9):
        counted = totals_of("A ; B ; C", batches, None, window=window, limit=None)
        assert counted == [0, 0, 0, 1, 2]


@pytest.mark.parametrize("pattern", OTHERS)
def test_no_sums_serve_where_runs_come_back_to_a_state_or_leave_it(pattern: str) -> None:
    with pytest.raises(NoTotalError):
        totals_of(pattern, ["ABCABCxx"], None, window=5, limit=None)


def test_numbers_beyond_words_are_no_totals() -> None:
    assert totals_of("A+", ["A" * 61], None, window=None, limit=None) == [2**61 - 1]
    with pytest.raises(NoTotalError):
        totals_of("A+", ["A" * 61, "A" * 9], None, window=None, limit=None)
    with pytest.raises(NoTotalError):
        totals_of(" ; ".join("ABABABAB"), ["AB" * 300], None, window=2**9, limit=None)


def test_totals_of_many_ends_are_longer_than_words() -> None:
    batches = ["A" * 60 + "C" * 100]
    assert totals_of("A+ ; C", batches, None, window=None, limit=None) == [100 * (2**60 - 1)]


def test_runs_that_change_places_have_no_moves() -> None:
    settings = {"counting": True, "total": True}
    recognizer, bits = recognizer_of("(A ; B)+", **settings)
    with pytest.raises(NoTotalError):
        list(recognizer.push(batch_of("ABZ", {**bits, "Z": bits["A"] | bits["B"]})))


def test_of_many_states_no_rows_are_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_runs, "_MOST_STATES", 2)
    with pytest.raises(NoTotalError):
        totals_of("A ; B ; C", ["ABC"], None, window=5, limit=1)


def test_what_only_counts_has_no_snapshot() -> None:
    recognizer, bits = recognizer_of("A ; B", counting=True, total=True)
    list(recognizer.push(batch_of("AB", bits)))
    with pytest.raises(
        ValueError, match=r"^runs that are only counted have no compact set, and so no snapshot$"
    ):
        recognizer.snapshot()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**64 - 1)), max_size=40), st.integers(1, 8))
def test_rows_of_one_key_are_in_one_lane(keys: list[tuple[int, int]], lanes: int) -> None:
    words = np.array(keys, np.uint64).reshape(-1, 2)
    rows = rows_by_lane(words[:, 0], words[:, 1], lanes)
    assert len(rows) == lanes
    assert sorted(np.concatenate(rows).tolist()) == list(range(len(keys)))
    lane_of = {keys[row]: lane for lane, here in enumerate(rows) for row in here.tolist()}
    for lane, here in enumerate(rows):
        assert (np.diff(here) > 0).all()
        assert all(lane_of[keys[row]] == lane for row in here.tolist())
