"""What did not happen: found as the reference says, however the stream is cut, stopped and known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import estero
from estero.answers.answer import Answer
from estero.engine import deadlines as engine
from estero.language.syntax.parser import parse_query
from estero.language.tree.expressions import Attribute
from estero.language.tree.pattern import ending, has_deadlines
from estero.language.tree.query import EveryLabel, QueryTree, SelectExpression
from estero.plan.rules import plan_of
from estero.recognize.in_process import InProcessRun
from estero.recognize.recognition import Recognition
from estero.recognize.source_run import time_type
from estero.recognize.stages import deadlines as hold
from estero.recognize.until import AFTER_ALL
from estero.reference.queries import Event, evaluate_query, is_answer, undecided
from laws.evaluators import ByEnd, by_end
from laws.test_plans_agree import layout_of, source_of
from laws.test_restart_laws import MOST, SIZES
from laws.test_stream_laws import cut
from strategies.absences import absent_queries
from strategies.patterns import TABLE, TICK, streams, to_table

QUERIES = [
    "A ; NOT(B) FOR 3 [time]",
    "A ; NOT(B AS r FILTER r[n > 0]) FOR 3 SECONDS PARTITION BY [k]",
    "A ; C ; NOT(B) FOR 2 [time] ; NOT(A) FOR 4 [time] WITHIN 6 [time]",
    "NOT(B) FOR 3 [time] ; A ; C+ WITHIN 6 [time]",
    "A ; NOT(B) FOR 2 [time] ; NOT(A) ; C PARTITION BY [k] WITHIN 8 [time]",
    "(NOT(B) FOR 2 [time] ; A)+ ; C WITHIN 9 [time]",
    "(A ; NOT(B) FOR 1 [time] ; C)+ WITHIN 9 [time]",
    "A : C ; NOT(B) FOR 2 [time] PARTITION BY [k]",
    "START(A) ; C ; NOT(A) FOR 2 [time] PARTITION BY [k] WITHIN 9 [time]",
    "A ; C ; NOT(A) FOR 2 [time] FILTER A.n < C.n WITHIN 8 [time] LIMIT 1 PER 5 [time]",
    "NOT(A) FOR 2 [time] ; A ; NOT(A) FOR 2 [time]",
    "(A ; NOT(B) FOR 1 [time] ; C KEEP [A]) ; B WITHIN 7 [time]",
    "A ; B? ; NOT(C) FOR 2 [time] WITHIN 5 [time]",
    "(A ALL C) ; NOT(B) FOR 1 [time] WITHIN 5 [time]",
    "A ; NOT(B AS r FILTER r.n = A.n) FOR 3 [time]",
    "A ; C ; NOT(B AS r FILTER r.n = A.n AND r.x > C.x) FOR 3 [time] PARTITION BY [k] WITHIN 6 [time]",
    "NOT(B AS r FILTER r.s = A.s) FOR 3 [time] ; A ; C WITHIN 6 [time]",
    "A ; NOT(B AS r FILTER r.n < A.n) FOR 2 [time] ; C FILTER A.n < C.n WITHIN 8 [time]",
    "(A ; NOT(B AS r FILTER r.n != C.n) FOR 1 [time] ; C)+ WITHIN 9 [time]",
    "A+ ; NOT(B AS r FILTER r.n > sum(A.n)) FOR 2 [time] WITHIN 6 [time]",
    "A ; C ; NOT(B) FOR 3 [time] FILTER decided_time - A.time > 5 WITHIN 6 [time] LIMIT 1 PER 4 [time]",
    "A+ ; NOT(B) FOR 1500 MILLISECONDS FILTER decided_time % 3 != last(A.k) WITHIN 6 [time]",
]
SELECTED = ["*", "MAX *", "LAST *", "NEXT *", "STRICT *", "LONGEST *", "SHORTEST *", "LONGEST DISJOINT *"]
_asked = st.one_of(
    absent_queries().map(lambda tree: replace(tree, select=None)),
    st.builds(
        lambda select, where: parse_query(f"SELECT {select} WHERE {where}"),
        st.sampled_from(SELECTED),
        st.sampled_from(QUERIES),
    ).filter(lambda tree: not tree.strategy.one_for_each_start or tree.window is not None),
)


def showing_decisions(tree: QueryTree) -> QueryTree:
    """The same with a column that SELECT gives the time with which what waits is decided."""
    shown = EveryLabel(), SelectExpression(Attribute("decided_time"), "known_at")
    return replace(tree, select=shown) if ending(tree.pattern) else tree


def run_of(tree: QueryTree, events: list[Event], until: int | None = None) -> InProcessRun:
    return InProcessRun(plan_of(tree, layout_of()), source_of(events), until=until)


def check(tree: QueryTree, events: list[Event], found: ByEnd, until: float | None = None) -> None:
    assert is_answer(tree, events, found, tick=TICK, until=until), (str(tree), found)


@pytest.mark.parametrize("where", QUERIES)
def test_each_of_these_forbids_something_for_a_time(where: str) -> None:
    assert has_deadlines(parse_query(f"SELECT * WHERE {where}").pattern)


@settings(max_examples=max(60, 2 * MOST))
@given(_asked, streams(max_size=12), st.sampled_from([None, 0, 1, 3, 20, AFTER_ALL]))
def test_it_is_found_and_counted(tree: QueryTree, events: list[Event], later: int | None) -> None:
    last = events[-1].time if events else 0
    assert last is not None
    until = None if later is None or not ending(tree.pattern) else last + later
    tree = showing_decisions(tree)
    answer = Answer(run_of(tree, events, until))
    known: float | None = math.inf if until is not None and until >= AFTER_ALL else until
    found = by_end(answer.batches())
    check(tree, events, found, known)
    assert answer.count() == sum(map(len, found.values()))
    waiting = answer.undecided()
    assert waiting == undecided(tree, events, tick=TICK, until=known)
    rows = list(waiting.batches())
    assert sum(each.num_rows for each in rows) == waiting.count()
    assert waiting.share(0, 2).count() + waiting.share(1, 2).count() == waiting.count()
    if ending(tree.pattern):
        now = last if until is None else until
        for each in [*rows, *answer.batches()]:
            assert each["known_at"].equals(each["decided_time"])
        everything = list(Answer(run_of(tree, events, AFTER_ALL)).batches())
        open_ends = {
            end
            for each in everything
            for end, time in zip(each["end"].to_pylist(), each["decided_time"].to_pylist(), strict=True)
            if time >= now
        }
        assert by_end(rows) == {end: all_ for end, all_ in by_end(everything).items() if end in open_ends}


def restarted(run: InProcessRun, sizes: list[int]) -> Iterator[pa.RecordBatch]:
    """The answer of a new recognition for each batch, which has nothing but the state of the one before."""
    events = run.source.classified_schema(run.plan.classification)

    def begun(state: bytes | None) -> Recognition:
        return Recognition(run.plan, events, time=time_type(run.source), endless=True, state=state)

    state: bytes | None = None
    for batch in cut(run, sizes):
        recognition = begun(state)
        yield from recognition.push(batch)
        state = recognition.snapshot()
        assert begun(state).snapshot() == state, "a state is read and written without change"
    recognition = begun(state)
    last = run.source.last_time()
    for ended in recognition.ended(AFTER_ALL if last is None else last):
        yield from recognition.reader.tables(ended)


def test_a_restart_remembers_what_is_past_beside_what_waits() -> None:
    tree = parse_query("SELECT * WHERE NOT(A) FOR 0 [time] ; C ; NOT(B) FOR 1 [time]")
    events = [Event(kind, {"time": time, "k": 0}, time) for kind, time in (("C", 0), ("A", 1), ("C", 1))]
    found = by_end(restarted(run_of(tree, [*events, Event("C", {"time": 9, "k": 0}, 9)]), [1]))
    assert sorted(found) == [0]


@settings(max_examples=max(40, MOST), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=_asked, events=streams(max_size=12), sizes=SIZES, little=st.booleans())
def test_a_restart_at_every_cut_changes_nothing_nor_does_little_memory(
    monkeypatch: pytest.MonkeyPatch, tree: QueryTree, events: list[Event], sizes: list[int], little: bool
) -> None:
    with monkeypatch.context() as patched:
        if little:
            patched.setattr(engine, "_FEWEST", 1)
            patched.setattr(hold, "_FEW", 0)
        check(tree, events, by_end(restarted(run_of(tree, events), sizes)))


@settings(max_examples=max(40, MOST))
@given(
    _asked, streams(max_size=12), SIZES, st.sampled_from([None, "3 seconds"]), st.booleans(), st.booleans()
)
def test_a_recognizer_decides_by_its_watermark(
    tree: QueryTree,
    events: list[Event],
    sizes: list[int],
    lateness: str | None,
    everything: bool,
    restored: bool,
) -> None:
    query = estero.query(str(replace(tree, select=None)))
    recognizer = query.recognizer(TABLE, type="type", time="time", time_unit="s", lateness=lateness)
    batches: list[pa.RecordBatch] = []
    table, first, turn = to_table(events), 0, 0
    while first < table.num_rows:
        size = sizes[turn % len(sizes)]
        answer = recognizer.push(table.slice(first, size))
        batches += answer.to_arrow().to_batches()
        known = table["time"][min(first + size, table.num_rows) - 1].as_py() - (3 if lateness else 0)
        decided = answer.to_arrow()
        if "decided_time" in decided.column_names:
            assert all(time < known for time in decided["decided_time"].to_pylist())
        if restored:
            recognizer = estero.restore(query, recognizer.snapshot())
        first, turn = first + size, turn + 1
    everything = everything and bool(ending(tree.pattern))
    batches += recognizer.close(until="end" if everything else None).to_arrow().to_batches()
    check(tree, events, by_end(batches), math.inf if everything else None)


def test_an_answer_says_when_it_was_decided_and_how_much_is_not() -> None:
    events = [
        Event("A" if n else "B", {"time": time, "n": 0, "k": 0}, time) for n, time in enumerate((0, 0, 4, 9))
    ]
    tree = parse_query("SELECT * WHERE A ; NOT(A) FOR 3 [time] ; NOT(B) FOR 4 [time]")
    answer = estero.query(str(tree)).run(to_table(events), type="type", time="time")
    assert [(each.end_time, each.decided_time) for each in answer] == [(0, 4), (4, 8)]
    waiting = answer.undecided()
    assert waiting == undecided(tree, events) == 1
    assert waiting != 0
    assert (int(waiting), bool(waiting), waiting == answer.undecided()) == (1, True, False)
    assert [(each.start_time, each.end_time, each.decided_time) for each in waiting] == [(9, 9, 13)]
    assert waiting.to_arrow().schema == answer.schema
    assert waiting[0] == waiting.limit(1)[0]
    assert waiting.undecided() == 1
    for refused in (waiting.funnel, waiting.partials, waiting.why_not):
        with pytest.raises(ValueError, match="ask the answer that these complex events wait for"):
            refused()
    assert evaluate_query(tree, events).keys() == {1, 2}
