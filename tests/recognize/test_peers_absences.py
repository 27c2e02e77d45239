"""Situations that the published tests and pages of other engines describe, and where the meaning differs.

Elastic's EQL ("missing events"), Siddhi (absent patterns), Flink (``notFollowedBy``, ``within``, timeouts)
and Alibaba's Flink (timed-out matches). Streams and queries are our own. A test whose name ends with a
difference says what the other engine gives.
"""

from __future__ import annotations

import pytest

import estero
from estero.testing import events

pytestmark = pytest.mark.filterwarnings("ignore:there are no events of type")


def found(query: str, stream: str, **known: object) -> list[tuple[int, ...]]:
    """The positions that each complex event marks, in order."""
    answer = estero.query(query).run(events(stream), type="type", time="time", **known)  # type: ignore[arg-type]
    return sorted(tuple(sorted({at for each in one.positions.values() for at in each})) for one in answer)


# ----------------------------------------------------------------------------------- Elastic: missing events

CALLS = "ok@1s ok@2s gap@3s ok@4s"


def test_missing_between_two_events() -> None:
    assert found("SELECT * WHERE ok AS x ;[NOT gap] ok AS y WITHIN 10 SECONDS", CALLS) == [(0, 1)]


def test_missing_between_where_none_is_there_finds_all_pairs_eql_gives_the_latest_first_event() -> None:
    query = "SELECT * WHERE ok AS x ;[NOT other] ok AS y WITHIN 10 SECONDS"
    assert found(query, CALLS) == [(0, 1), (0, 3), (1, 3)]
    assert found(query.replace("*", "LAST *", 1), CALLS) == [(0, 1), (1, 3)]


def test_missing_behind_the_last_event() -> None:
    query = "SELECT * WHERE ok ; NOT(gap) FOR 10 SECONDS"
    assert found(query, CALLS, until="end") == [(3,)]
    assert (
        found(query, CALLS) == []
    )  # EQL looks at what is stored: it takes the end of the data for an answer


def test_a_pair_of_which_the_second_has_a_gap_behind_it_and_one_before() -> None:
    stream = "ok@1s ok@2s gap@3s ok@4s ok@5s gap@6s late@2m"
    query = "SELECT LAST * WHERE ok AS x ; ok AS y ;[NOT gap] ok AS z WITHIN 1 MINUTE"
    assert found(query, stream) == [(1, 3, 4)]


STATUS = "gap@0s ok@10m gap@20m ok@21m ok@29m ok@31m"


def test_missing_before_the_first_event() -> None:
    assert found("SELECT * WHERE NOT(gap) FOR 3 MINUTES ; ok", STATUS) == [(1,), (4,), (5,)]


def test_missing_before_and_behind_are_asked_each_for_itself_eql_asks_for_both_together() -> None:
    """EQL leaves an event out if a gap before and one behind it lie in one span: here 20 minutes apart."""
    query = "SELECT * WHERE NOT(gap) FOR 9 MINUTES ; ok ; NOT(gap) FOR 9 MINUTES"
    assert found(query, STATUS, until="end") == [(1,), (5,)]
    longer = query.replace("9 MINUTES", "19 MINUTES")
    assert found(longer, STATUS, until="end") == []


STEPS = "A@1s B@2s M@3s B@4s C@5s N@6s D@7s M@8s C@9s A@13s B@14s C@16s D@17s P@18s end@2m"


def test_several_missing_events_in_one_sequence() -> None:
    within = "WITHIN 5 SECONDS"
    assert found(f"SELECT * WHERE A ; B ;[NOT M] C ;[NOT N] D {within}", STEPS) == [(9, 10, 11, 12)]
    assert found(f"SELECT * WHERE A ; B ; C ;[NOT N] D {within}", STEPS) == [(9, 10, 11, 12)]
    behind = "A ; B ;[NOT M] C ;[NOT N] D ; NOT(P) FOR 3 SECONDS"
    assert found(f"SELECT * WHERE {behind} {within}", STEPS) == []
    before = "NOT(other) FOR 3 SECONDS ; A ; B ;[NOT M] C ;[NOT N] D"
    assert found(f"SELECT * WHERE {before} {within}", STEPS) == [(9, 10, 11, 12)]


def test_every_combination_is_found_eql_moves_one_sequence_on() -> None:
    """In EQL the first A goes on with the latest B; here each B of it is tried, with the same C and D."""
    query = "SELECT * WHERE A ; B ; C ; D WITHIN 6 SECONDS"
    assert found(query, STEPS) == [(0, 1, 4, 6), (0, 3, 4, 6), (9, 10, 11, 12)]


def test_missing_events_have_the_key_of_the_others_or_none() -> None:
    stream = "ok(k=1)@1s gap(k=2)@2s ok(k=1)@3s gap(k=1)@4s ok(k=1)@5s ok(k=2)@6s ok(k=2)@7s"
    of_key = "SELECT * WHERE ok AS x ;[NOT gap] ok AS y PARTITION BY [k] WITHIN 1 MINUTE"
    assert found(of_key, stream) == [(0, 2), (5, 6)]
    of_any = "SELECT * WHERE ok AS x ;[NOT gap] ok AS y FILTER x.k = y.k WITHIN 1 MINUTE"
    assert found(of_any, stream) == [(5, 6)]


# --------------------------------------------------------------------------------- Siddhi: absent patterns

NOT_DEARER = "NOT(second AS s FILTER s.price > first.price) FOR 1 SECOND"
DEARER = f"SELECT * WHERE first ; {NOT_DEARER} FILTER first.price > 20"


@pytest.mark.parametrize(
    ("stream", "wanted"),
    [
        ("first(price=55)@0s end@2s", [(0,)]),
        ("first(price=55)@0s second(price=58)@1100ms", [(0,)]),
        ("first(price=55)@0s second(price=58)@100ms end@2s", []),
        ("first(price=55)@0s second(price=50)@100ms end@2s", [(0,)]),
        ("first(price=5)@0s end@2s", []),
    ],
)
def test_a_dearer_one_did_not_follow(stream: str, wanted: list[tuple[int, ...]]) -> None:
    assert found(DEARER, stream) == wanted


@pytest.mark.parametrize(
    ("stream", "wanted"),
    [
        ("first(price=59)@100ms second(price=58)@2200ms", [(1,)]),
        ("first(price=59)@0s second(price=58)@100ms", []),
        ("first(price=59)@0s second(price=58)@1s", []),
        ("first(price=5)@0s second(price=58)@100ms", [(1,)]),
        ("second(price=58)@0s", [(0,)]),
    ],
)
def test_nothing_before_siddhi_waits_from_the_moment_that_it_starts(
    stream: str, wanted: list[tuple[int, ...]]
) -> None:
    """In the last two cases Siddhi gives nothing: its clock has not run for a second yet."""
    query = (
        "SELECT * WHERE NOT(first AS f FILTER f[price > 20]) FOR 1 SECOND ; second FILTER second.price > 30"
    )
    assert found(query, stream) == wanted


@pytest.mark.parametrize(
    ("stream", "wanted"),
    [
        ("first@0s third@1200ms", [(0, 1)]),
        ("first@0s third@100ms", []),
        ("first@0s second@100ms third@1200ms", []),
        ("first@0s second@1100ms third@1200ms", [(0, 2)]),
    ],
)
def test_between_two_events_the_time_has_to_pass_first(stream: str, wanted: list[tuple[int, ...]]) -> None:
    assert found("SELECT * WHERE first ; NOT(second) FOR 1 SECOND ; third", stream) == wanted


@pytest.mark.parametrize(
    ("stream", "wanted"),
    [
        ("second@1100ms fourth@2200ms", [(0, 1)]),
        ("first@0s second@100ms third@200ms fourth@300ms", []),
        ("second@0s third@100ms fourth@1200ms", []),
        ("first@0s second@1100ms fourth@2200ms", [(1, 2)]),
    ],
)
def test_absent_before_and_between(stream: str, wanted: list[tuple[int, ...]]) -> None:
    query = "SELECT * WHERE NOT(first) FOR 1 SECOND ; second ; NOT(third) FOR 1 SECOND ; fourth"
    assert found(query, stream) == wanted


# ----------------------------------------------------------------- Flink: notFollowedBy, within, timeouts


def test_not_followed_by_at_the_end() -> None:
    """Flink's window is exclusive, and here it is not: 3 there is 2 here."""
    stream = "a@1s b@2s a@4s c@5s b@10s a@11s b@13s"
    assert found("SELECT * WHERE a ; NOT(b) FOR 2 SECONDS", stream) == [(2,)]


def test_not_followed_by_before_parts_that_may_be_missing_flink_takes_the_next_ones() -> None:
    """Flink's relaxed contiguity leaves out the one with the second c alone."""
    stream = "a@1s b@2s a@10s c@11s c@12s a@20s c@21s c@24s"
    query = "SELECT * WHERE a OR (a ;[NOT b] c{1,2}) WITHIN 2 SECONDS"
    assert found(query, stream) == [(0,), (2,), (2, 3), (2, 3, 4), (2, 4), (5,), (5, 6)]


def test_a_match_with_not_followed_by_at_its_end_is_given_once() -> None:
    """One for all starts, as with Flink's strategy that skips past the last event."""
    stream = "a@1s a@2s a@3s c@4s c@10s"
    query = "SELECT LONGEST DISJOINT * WHERE a+ ; c ; NOT(b) FOR 1 SECOND WITHIN 5 SECONDS"
    assert found(query, stream) == [(0, 1, 2, 3)]


def test_timed_out_partial_matches_one_for_each_start_flink_gives_each_branch() -> None:
    """Flink hands over all that was open: the first event alone, with the one middle, and with the other."""
    stream = events("first@1s middle@2s middle@3s first@4s last@30s")
    query = estero.query("SELECT * WHERE first ; middle ; last WITHIN 10 SECONDS")
    answer = query.run(stream, type="type", time="time")
    assert [(each.start, each.steps) for each in answer.partials()] == [(0, 2), (3, 1)]


# --------------------------------------------------------------------------- Alibaba: timed-out matches


def test_timed_out_matches_are_shown_beside_the_others() -> None:
    stream = events("A(id=1)@0m B(id=2)@1m A(id=3)@2m B(id=4)@5m other@9m")
    answer = estero.query("SELECT * WHERE A : B WITHIN 2 MINUTES").run(stream, type="type", time="time")
    assert [one.positions for one in answer] == [{"A": (0,), "B": (1,)}]
    (expired,) = answer.partials()
    assert (expired.positions, expired.steps) == ({"A": (2,), "B": ()}, 1)
    assert (expired.expired_time - expired.start_time).total_seconds() == 120
