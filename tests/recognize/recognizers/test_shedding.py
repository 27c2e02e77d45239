"""Recognizers that shed their oldest partitions at a limit of memory: all others have their answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import estero
from estero.engine.runs.cea_runs import CeaRuns
from estero.recognize.recognizers.stream_recognizer import StreamRecognizer
from estero.recognize.rules.set_recognizer import RuleSetRecognizer

LAYOUT: dict[str, Any] = {"type": "type", "time": "time", "time_unit": "s"}
SCHEMA = pa.schema([("type", pa.string()), ("time", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
QUERIES = (
    "SELECT * WHERE A ; B PARTITION BY [k]",
    "SELECT * WHERE A AS x ; B+ AS y ; C FILTER x[v > 2] PARTITION BY [k] WITHIN 50 SECONDS",
    "SELECT NEXT * WHERE A ; B+ ; C PARTITION BY [k] WITHIN 30 SECONDS",
    "SELECT * WHERE A ; B ; C PARTITION BY [k] WITHIN 9 EVENTS",
    "SELECT * WHERE A ; B PARTITION BY [k] CONSUME BY PARTITION",
)
EVENTS = st.lists(
    st.tuples(st.sampled_from("AAABC"), st.integers(0, 12), st.integers(0, 5)), min_size=1, max_size=120
)
Recognizer = StreamRecognizer | RuleSetRecognizer


def table(events: list[tuple[str, int, int]]) -> pa.Table:
    kinds, keys, values = zip(*events, strict=True)
    return pa.table({"type": kinds, "time": range(len(events)), "k": keys, "v": values}, schema=SCHEMA)


def rows(recognizer: Recognizer, events: pa.Table, batch: int) -> Iterator[dict[str, Any]]:
    for first in range(0, events.num_rows, batch):
        yield from recognizer.push(events.slice(first, batch)).to_arrow().to_pylist(maps_as_pydicts="strict")


def key(row: dict[str, Any]) -> int:
    return int(row["keys"]["k"]) if "keys" in row else int(row["k"])


@contextmanager
def dropping() -> Iterator[list[int]]:
    """The keys of the partitions that are shed, as they are."""
    keys: list[int] = []
    shed = CeaRuns.shed

    def told(runs: CeaRuns, oldest: int) -> int:
        with pytest.MonkeyPatch.context() as patch:
            drop = type(runs)._drop

            def note(own: CeaRuns, partition: int) -> None:
                keys.append(int(own._keys.words[partition, 0]))
                drop(own, partition)

            patch.setattr(type(runs), "_drop", note)
            return shed(runs, oldest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CeaRuns, "shed", told)
        yield keys


def check(asked: estero.Query, events: pa.Table, limit: int) -> list[int]:
    """Compares answers with and without a limit, partition by partition; the keys of those that were shed."""
    whole = list(rows(asked.recognizer(SCHEMA, **LAYOUT), events, 10))
    shedding = asked.recognizer(SCHEMA, **LAYOUT, memory_limit=limit, memory_policy="shed")
    with dropping() as dropped:
        some = list(rows(shedding, events, 10))
    numbers = shedding.metrics()
    assert numbers["shed_partitions"] == len(dropped)
    assert all(row in whole for row in some)
    assert [row for row in some if key(row) not in dropped] == [
        row for row in whole if key(row) not in dropped
    ]
    if not dropped:
        assert numbers["shed_events"] == 0
    return dropped


@given(query=st.sampled_from(QUERIES), drawn=EVENTS, limit=st.integers(600, 6000))
def test_partitions_that_are_not_shed_have_their_answers(
    query: str, drawn: list[tuple[str, int, int]], limit: int
) -> None:
    check(estero.query(query), table([*drawn, *((kind, 99, 9) for kind in "ABC")]), limit)


def many(number: int) -> pa.Table:
    """Partitions that are never closed, and one that has something new again and again."""
    return table([("A" if i % 5 else "B", 0 if i % 50 == 1 else i, 9) for i in range(number)] + [("B", 0, 9)])


def test_the_oldest_are_shed_and_the_state_stays_within_the_limit() -> None:
    query = estero.query(QUERIES[0])
    dropped = check(query, many(1000), 25_000)
    assert len(dropped) > 200
    assert 0 not in dropped
    shedding = query.recognizer(SCHEMA, **LAYOUT, memory_limit="25 KB", memory_policy="shed")
    for _ in rows(shedding, many(1000), 10):
        pass
    assert shedding.shed(12_000) > 0
    assert shedding.metrics()["state_bytes"] <= 12_000
    assert not shedding.over_limit


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    assert check(estero.query(QUERIES[0]), many(500), 10**9) == []


def test_of_a_set_of_rules_each_rule_has_partitions_of_its_own() -> None:
    rules = estero.rules({f"r{place}": query for place, query in enumerate(QUERIES[:4])})
    events = many(600)
    whole = list(rows(rules.recognizer(SCHEMA, **LAYOUT), events, 10))
    shedding = rules.recognizer(SCHEMA, **LAYOUT, memory_limit="30 KB", memory_policy="shed")
    some = list(rows(shedding, events, 10))
    assert all(row in whole for row in some)
    assert [row for row in some if key(row) == 0] == [row for row in whole if key(row) == 0]
    assert shedding.metrics()["shed_partitions"] > 100
    assert shedding.shed(1) > 0
    assert shedding.shed(1) == 0


def test_a_state_goes_on_as_the_recognizer_that_was_shed() -> None:
    query, events = estero.query(QUERIES[1]), many(300)
    one = query.recognizer(SCHEMA, **LAYOUT)
    list(rows(one, events, 10))
    assert one.shed(3_000) > 0
    other = estero.restore(query, one.snapshot())
    more = table([(kind, k, 9) for k in range(300) for kind in "BC"])
    later = more.set_column(1, "time", pa.array([301 + i // 20 for i in range(more.num_rows)], pa.int64()))
    assert list(rows(one, later, 50)) == list(rows(other, later, 50))


@pytest.mark.parametrize(
    "query", ["SELECT * WHERE A ; B", "SELECT LONGEST * WHERE A ; B PARTITION BY [k] WITHIN 1 HOUR"]
)
def test_without_partitions_that_can_go_it_is_an_error(query: str) -> None:
    recognizer = estero.query(query).recognizer(SCHEMA, **LAYOUT, memory_limit="2 KB", memory_policy="shed")
    with pytest.raises(estero.LimitExceeded, match="it may take 2,000"):
        list(rows(recognizer, many(1000), 100))
    assert recognizer.shed(1) == 0


def test_a_policy_that_there_is_not() -> None:
    refused = r"^recognizer\(\) takes 'error' or 'shed' as memory_policy, not 'drop'$"
    with pytest.raises(ValueError, match=refused):
        estero.query(QUERIES[0]).recognizer(SCHEMA, **LAYOUT, memory_limit=9, memory_policy="drop")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=refused):
        estero.rules({"r": QUERIES[0]}).recognizer(SCHEMA, **LAYOUT, memory_limit=9, memory_policy="drop")  # type: ignore[arg-type]
