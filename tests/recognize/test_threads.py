"""Answers that several threads find: lazily, in bounded memory, with their errors, and ended when left."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import estero
from estero.events.sources import open_source
from estero.language.tree.schema import EventLayout
from estero.plan.division import thread_division_of
from estero.recognize.batch_columns import numbers_of
from estero.recognize.recognition import Recognition
from estero.recognize.threads import channels, ranges
from estero.recognize.threads.channels import Channel
from estero.recognize.threads.divided import Divided, _Idle
from estero.recognize.threads.pushed import PushedRanges
from estero.recognize.threads.questions import Count
from estero.recognize.threads.ranges import RangeCutter

NUMBER = 300_000
RANGES = "SELECT * WHERE A AS a ; B AS b WITHIN 5 EVENTS"
KEYS = "SELECT * WHERE A AS a ; B AS b PARTITION BY [k] CONSUME BY PARTITION"


@pytest.fixture(scope="module")
def events() -> estero.Scan:
    draw = np.random.default_rng(1)
    kinds = pa.DictionaryArray.from_arrays(pa.array(draw.integers(0, 3, NUMBER), pa.int8()), ["A", "B", "C"])
    table = pa.table({"type": kinds, "k": draw.integers(0, 50, NUMBER), "n": np.arange(NUMBER)})
    return estero.scan(table, type="type")


@pytest.fixture(autouse=True)
def _none_is_left() -> Iterator[None]:
    yield
    gc.collect()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("estero-recognize")]


@pytest.mark.parametrize("text", [RANGES, KEYS])
def test_the_answer_is_that_of_one_thread(events: estero.Scan, text: str) -> None:
    query = estero.query(text)
    one, three = (query.run(events, threads=threads) for threads in (1, 3))
    assert three.to_arrow() == one.to_arrow()
    assert three.count() == one.count() > NUMBER // 20
    assert three[7:9].to_arrow() == one[7:9].to_arrow()
    assert three.sample(5, seed=1).to_arrow() == one.sample(5, seed=1).to_arrow()


@pytest.mark.parametrize("text", [RANGES, KEYS])
def test_an_answer_that_is_left_ends_its_threads(events: estero.Scan, text: str) -> None:
    batches = estero.query(text).run(events, threads=2).batches()
    assert sum(batch.num_rows for batch in islice(batches, 2)) > 0
    batches.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", [RANGES, KEYS])
def test_an_error_of_a_thread_is_that_of_the_run(
    events: estero.Scan, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Recognition.recognize

    def fails(recognition: Recognition, batch: pa.RecordBatch) -> Iterator[object]:
        if batch.num_rows and batch.column("__position")[-1].as_py() > NUMBER // 2:
            raise MemoryError("the pool is full")
        return whole(recognition, batch)

    monkeypatch.setattr(Recognition, "recognize", fails)
    with pytest.raises(MemoryError, match="the pool is full"):
        estero.query(text).run(events, threads=2).count()


def test_a_thread_waits_for_its_reader() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1_000):
            made.append(number)
            yield number

    channel: Channel[int] = Channel()
    thread = threading.Thread(target=channel.fill, args=(items,))
    thread.start()
    read = iter(channel)
    assert [next(read), next(read)] == [0, 1]
    assert len(made) <= channels._CAPACITY + 4
    channel.close()
    thread.join()
    assert len(made) <= channels._CAPACITY + 4


def test_progress_is_told_of_all_events(events: estero.Scan) -> None:
    told: list[tuple[int, int | None]] = []
    answer = estero.query(RANGES).run(events, threads=2, progress=lambda *now: told.append(now))
    answer.count()
    assert [read for read, _ in told] == sorted(read for read, _ in told)
    assert {of for _, of in told} == {NUMBER}
    assert told[-1] == (NUMBER, NUMBER)


@pytest.mark.parametrize("text", [f"{RANGES} CONSUME BY ANY", "SELECT * WHERE A ; B"])
def test_what_cannot_be_divided_is_found_by_one(
    events: estero.Scan, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Divided, "ask", None)
    assert "\n  in process: one thread, because " in str(estero.query(text).explain())
    query = estero.query(text)
    assert query.run(events, threads=2).count() == query.run(events, threads=1).count()


ODD = "SELECT * WHERE A AS a ; B AS b FILTER odd(a.n) WITHIN 5 EVENTS"


@pytest.fixture
def few(events: estero.Scan, monkeypatch: pytest.MonkeyPatch) -> estero.Scan:
    """Some thousand events, which several ranges share."""
    monkeypatch.setattr(ranges, "SHORTEST", 1_000)
    return estero.scan(events.events.slice(0, 6_000), type="type")


def test_a_predicate_is_called_by_one_thread(few: estero.Scan) -> None:
    callers: set[int] = set()

    @estero.predicate
    def odd(values: pa.Array) -> bool:
        callers.add(threading.get_ident())
        return bool(values[0].as_py() % 2)

    assert len(list(estero.query(ODD).run(few, threads=2)[:100])) == 100
    assert len(callers) == 1


def test_a_predicate_is_called_by_several_threads_at_once_where_it_says_so(few: estero.Scan) -> None:
    both_call = threading.Barrier(2)
    callers: set[int] = set()

    @estero.predicate(parallel=True)
    def odd(values: pa.Array) -> bool:
        if threading.get_ident() not in callers:
            callers.add(threading.get_ident())
            both_call.wait(timeout=60)
        return bool(values[0].as_py() % 2)

    several = estero.query(ODD).run(few, threads=2).to_arrow()
    assert len(callers) == 2
    estero.predicate(name="odd")(lambda values: bool(values[0].as_py() % 2))
    assert several == estero.query(ODD).run(few, threads=2).to_arrow()


def test_what_a_predicate_raises_in_a_thread_is_the_error_of_the_run(few: estero.Scan) -> None:
    @estero.predicate(parallel=True)
    def odd(values: pa.Array) -> bool:
        if values[0].as_py() > 5_000:
            raise ArithmeticError("no such number")
        return True

    with pytest.raises(estero.DataError, match="odd") as raised:
        estero.query(ODD).run(few, threads=2).count()
    assert isinstance(raised.value.__cause__, ArithmeticError)


def test_explain_says_how_a_predicate_may_be_called_by_threads() -> None:
    estero.predicate(name="odd")(bool)
    one = "one thread, because odd may only be called by one thread at a time, unless"
    assert one in str(estero.query(ODD).explain())
    estero.predicate(parallel=True, name="odd")(bool)
    assert "each thread processes a range of events" in str(estero.query(ODD).explain())


def test_explain_says_what_threads_share() -> None:
    said = str(estero.query(RANGES).explain())
    assert "\n  in process: each thread processes a range of events and the window before it; skipped" in said
    said = str(estero.query("SELECT * WHERE A ; B PARTITION BY [k]").explain())
    assert "\n  in process: each thread processes some of the partition keys\n" in said


def test_ten_users_ask_at_once(events: estero.Scan) -> None:
    texts = [f"SELECT * WHERE A AS a ; B AS b WITHIN {window} EVENTS" for window in range(2, 12)]
    expected = [estero.query(text).run(events, threads=1).count() for text in texts]
    with ThreadPoolExecutor(len(texts)) as users:
        counted = users.map(lambda text: estero.query(text).run(events, threads=2).count(), texts)
        assert list(counted) == expected


def test_a_thread_that_was_overtaken_reads_all_of_its_range(events: estero.Scan) -> None:
    """Its recognition must not be one that has read a later range."""
    source = open_source(events.events, EventLayout.of(type="type"))
    plan = estero.query(RANGES).plan(source.layout)
    schema = source.classified_schema(plan.classification)
    batches = list(source.read(plan.classification))
    cutter = RangeCutter(batches[:3], 5, lambda batch: numbers_of(batch, "__position"))
    first, second, *_ = cutter.cut(batches)
    divided = Divided(
        lambda: Recognition(plan, schema, counting=True),
        iter(()),
        thread_division_of(plan),
        threads=2,
        known=lambda: None,
        read=lambda _: None,
    )
    idle = _Idle(divided.open)
    in_order = [sum(divided._of_range(_Idle(divided.open), Count(), part)) for part in (first, second)]
    overtaken = [sum(divided._of_range(idle, Count(), part)) for part in (second, first, second)]
    assert overtaken == [in_order[1], in_order[0], in_order[1]]


def test_a_large_push_is_recognized_by_several_threads(
    events: estero.Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "SHORTEST", 10_000)
    query, table = estero.query(RANGES), events.events
    one, three = (query.recognizer(table.schema, type="type", threads=threads) for threads in (1, 3))
    for pushed in (table, table.slice(0, 10), table):
        mine, theirs = three.push(pushed), one.push(pushed)
        assert mine.to_arrow() == theirs.to_arrow()
        assert mine.count() == theirs.count()
        assert mine.sample(5, seed=1).to_arrow() == theirs.sample(5, seed=1).to_arrow()
    assert three.position == one.position == 2 * NUMBER + 10


def test_a_thread_that_fails_fails_the_push(events: estero.Scan, monkeypatch: pytest.MonkeyPatch) -> None:
    recognizer = estero.query(RANGES).recognizer(events.events.schema, type="type", threads=2)

    def fail(*_: object) -> None:
        raise MemoryError("no more")

    monkeypatch.setattr(ranges, "SHORTEST", 10_000)
    monkeypatch.setattr(PushedRanges, "_of_range", fail)
    with pytest.raises(MemoryError, match="no more"):
        recognizer.push(events.events)
    with pytest.raises(estero.EsteroError, match="broke off in an earlier push"):
        recognizer.push(events.events)


@pytest.mark.parametrize(("threads", "error"), [(0, ValueError), (-1, ValueError), ("a", TypeError)])
def test_a_recognizer_refuses_wrong_numbers_of_threads(threads: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="threads"):
        estero.query(RANGES).recognizer(pa.schema([("type", pa.string())]), type="type", threads=threads)
