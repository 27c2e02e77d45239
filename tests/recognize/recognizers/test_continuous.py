"""A recognizer of a stream without an end: what it takes, when it answers, how it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import estero
from estero.answers.answer import Answer
from estero.errors import DataError
from notebooks import shown_by
from recognize.recognizers.continuous import QUERY, ROWS, SCHEMA, begun, row, spans, table

# ------------------------------------------------------------------------------------ what it takes


@pytest.mark.parametrize(
    "events",
    [
        table(*ROWS),
        table(*ROWS).to_batches()[0],
        table(*ROWS).to_reader(),
        [table(*ROWS[:1]), table(*ROWS[1:])],
        pd.DataFrame(ROWS),
        pl.DataFrame(ROWS),
        ROWS,
        table(*ROWS).select(["k", "n", "ts", "kind"]),
        table(*ROWS).append_column("more", pa.array([1, 2, 3])),
        table(*ROWS).set_column(0, "kind", table(*ROWS).column("kind").dictionary_encode()),
        table(*ROWS).set_column(1, "ts", pa.array([1, 2, 3], pa.int16())),
    ],
    ids=["table", "batch", "stream", "list", "pandas", "polars", "dicts", "columns in another order",
         "a column more", "dictionary", "narrow integers"],
)  # fmt: skip
def test_whatever_holds_events_is_pushed(events: object) -> None:
    assert spans(begun().push(events)) == [(0, 1)]


def test_one_event_is_a_dict() -> None:
    recognizer = begun()
    assert spans(recognizer.push(row("A", 1))) == []
    assert spans(recognizer.push(row("B", 1))) == [(0, 1)]
    assert recognizer.position == 2


def test_one_event_is_a_tuple_in_the_order_of_the_columns() -> None:
    recognizer = begun()
    assert spans(recognizer.push(("A", 1, 0, "x"))) == []
    assert spans(recognizer.push([("B", 1, 0, "x"), ("B", 2, 0, "x")])) == [(0, 1), (0, 2)]
    held = begun(lateness=5)
    assert spans(held.push(("A", 1, 0, "x"))) == []
    assert (held.held_back, held.push(("B", 2, 0, "x")).count(), held.flush().count()) == (1, 0, 1)


def test_types_may_have_tables_of_their_own() -> None:
    schemas = {
        "A": pa.schema([("ts", pa.int64()), ("n", pa.int64()), ("k", pa.string())]),
        "B": pa.schema([("ts", pa.int64()), ("k", pa.string()), ("m", pa.float64())]),
    }
    recognizer = QUERY.recognizer(schemas, time="ts", time_unit="s")
    first = recognizer.push(
        {"A": {"ts": 1, "n": 2, "k": "x"}, "B": [{"ts": 3, "k": "x"}, {"ts": 2, "k": "x"}]}
    )
    assert spans(first) == [(0, 1), (0, 2)]
    assert spans(recognizer.push({"B": pa.table({"ts": [0], "k": ["x"], "m": [1.0]})})) == []
    assert recognizer.late_events().to_pylist() == [{"__type": "B", "ts": 0, "n": None, "k": "x", "m": 1.0}]
    again = estero.restore(QUERY, recognizer.snapshot())
    assert spans(again.push({"B": {"ts": 4, "k": "x"}})) == [(0, 3)]


@pytest.mark.parametrize(
    "schema", [SCHEMA.empty_table(), table(*ROWS), pd.DataFrame(ROWS), {"A": SCHEMA, "B": SCHEMA}]
)
def test_columns_are_declared_by_anything_that_has_some(schema: object) -> None:
    typed = None if isinstance(schema, dict) else "kind"
    recognizer = QUERY.recognizer(schema, type=typed, time="ts", time_unit="s")
    assert recognizer.position == 0
    assert recognizer.schema.names[:2] == ["start", "end"]


def test_conjunctive_queries_and_chains_go_on_too() -> None:
    for text in ("Q(x) <- A(k: x) AS a, B(k: x) AS b WITHIN 10 SECONDS", "Q(x) <- A(k: x), B(k: x)"):
        conjunctive = estero.conjunctive(text)
        recognizer = conjunctive.recognizer(SCHEMA, type="kind", time="ts", time_unit="s")
        assert spans(recognizer.push([row("B", 1), row("A", 2)])) == [(0, 1)]
        for asked in (conjunctive, text):
            again = estero.restore(asked, recognizer.snapshot())
            assert spans(again.push(row("B", 3))) == [(1, 2)]
    chain = estero.query("SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k AND a.n != b.n")
    recognizer = chain.recognizer(SCHEMA, type="kind")
    assert spans(recognizer.push([row("A", 0, n=n) for n in range(3)])) == []
    answer = recognizer.push([row("B", 0, n=1)] * 2000)
    assert answer.count() == 4000
    assert spans(answer.limit(2)) == [(0, 3), (2, 3)]


def test_automata_go_on_too() -> None:
    transitions = [("q0", "A", {"a"}, "q1"), ("q1", "*", (), "q1"), ("q1", "B", {"b"}, "q2")]
    query = estero.automaton(transitions, initial="q0", final="q2", within="3 EVENTS")
    recognizer = query.recognizer(SCHEMA, type="kind")
    assert spans(recognizer.push([row("A", 0), row("C", 0)])) == []
    again = estero.restore(query, recognizer.snapshot())
    assert spans(again.push([row("B", 0), row("B", 0), row("B", 0)])) == [(0, 2), (0, 3)]


# ------------------------------------------------------------------------------------- when it answers


def test_positions_go_on_over_pushes() -> None:
    recognizer = begun()
    assert spans(recognizer.push([row("C", 0), row("A", 1), row("C", 2)])) == []
    answer = recognizer.push([row("C", 3), row("B", 4)])
    assert spans(answer) == [(1, 4)]
    assert [event["position"] for event in answer.to_arrow().to_pylist()[0]["b"]] == [4]
    assert recognizer.position == 5


def test_a_batch_is_sorted_by_time_then_order_then_arrival() -> None:
    recognizer = begun(order=["n"])
    answer = recognizer.push([row("B", 2, n=1), row("B", 1, n=5), row("A", 2, n=0), row("A", 1, n=1)])
    assert spans(answer) == [(0, 1), (0, 3), (2, 3)]


def test_events_are_held_back_for_so_long_as_earlier_ones_may_come() -> None:
    recognizer = begun(lateness="3 seconds")
    assert spans(recognizer.push([row("B", 5), row("A", 4)])) == []
    assert recognizer.held_back == 2
    assert spans(recognizer.push(row("A", 3))) == []
    assert spans(recognizer.push(row("C", 8))) == [(0, 2), (1, 2)]
    assert (recognizer.held_back, recognizer.late, recognizer.position) == (1, 0, 3)


def test_what_comes_too_late_is_counted_and_shown() -> None:
    recognizer = begun(lateness=2)
    recognizer.push([row("A", 5), row("A", 1)])
    answer = recognizer.push([row("B", 0), row("A", 2), row("B", 9)])
    assert spans(answer) == []
    assert recognizer.late == 1
    assert recognizer.late_events().to_pylist() == [row("B", 0)]
    assert spans(recognizer.push(row("C", 11))) == [(0, 3), (1, 3), (2, 3)]
    assert recognizer.late_events().num_rows == 0
    assert recognizer.late == 1


def test_ties_with_what_was_let_go_are_decided_by_order() -> None:
    recognizer = begun(order=["n"], lateness=1)
    recognizer.push([row("A", 1, n=5), row("C", 4)])
    recognizer.push([row("B", 1, n=4), row("B", 1, n=6), row("B", 0)])
    assert recognizer.late_events().to_pylist() == [row("B", 1, n=4), row("B", 0)]
    assert recognizer.position == 2


def test_flush_lets_everything_go_and_expects_nothing_before_it() -> None:
    recognizer = begun(lateness=timedelta(seconds=100))
    recognizer.push([row("B", 3), row("A", 1)])
    assert spans(recognizer.flush()) == [(0, 1)]
    assert recognizer.held_back == 0
    recognizer.push([row("B", 2), row("B", 3)])
    assert recognizer.late == 1
    assert recognizer.late_events().to_pylist() == [row("B", 2)]


def test_without_a_time_batches_follow_one_another() -> None:
    recognizer = estero.query("SELECT * WHERE A ; B").recognizer(SCHEMA, type="kind", order="n")
    assert spans(recognizer.push([row("B", 0, n=2), row("A", 0, n=1)])) == [(0, 1)]
    assert spans(recognizer.push([row("B", 0, n=0)])) == [(0, 2)]
    assert recognizer.late == 0


def test_an_answer_is_asked_again_and_again_until_the_next_push() -> None:
    recognizer = begun()
    recognizer.push([row("A", 0)] * 3)
    answer = recognizer.push([row("B", 1)] * 2)
    assert answer.count() == 6
    assert len(list(answer)) == answer.to_arrow().num_rows == 6
    assert [answer[place] for place in range(6)] == list(answer)
    assert sorted(map(repr, [*answer.share(0, 2), *answer.share(1, 2)])) == sorted(map(repr, answer))
    state = recognizer.snapshot()
    assert answer.count() == len(list(answer)) == 6
    recognizer.push(row("C", 2))
    gone = (
        "this answer is of an earlier push, and the recognizer has gone on since: "
        "read answers before the next push, or keep answer.to_arrow()"
    )
    with pytest.raises(estero.EsteroError) as caught:
        list(answer)
    assert str(caught.value) == gone
    with pytest.raises(estero.EsteroError, match="of an earlier push"):
        bool(answer)
    assert estero.restore(QUERY, state).position == 5


def test_an_answer_breaks_off_where_the_recognizer_goes_on() -> None:
    recognizer = begun()
    recognizer.push([row("A", 0)] * 40)
    batches = recognizer.push([row("B", 1)] * 40).batches()
    next(batches)
    recognizer.push(row("C", 2))
    with pytest.raises(estero.EsteroError, match="of an earlier push"):
        list(batches)


def test_a_huge_answer_is_counted_and_begun() -> None:
    recognizer = estero.query("SELECT * WHERE A+ AS a ; B").recognizer(SCHEMA, type="kind", time="ts")
    recognizer.push([row("A", 0)] * 80)
    answer = recognizer.push(row("B", 1))
    assert answer.count() == 2**80 - 1
    assert len(list(answer.limit(1000))) == 1000


def test_it_says_how_far_it_is() -> None:
    recognizer = begun(lateness=1)
    recognizer.push([row("A", 1), row("A", 2)])
    recognizer.push(row("A", 0))
    assert repr(recognizer) == f"ContinuousRecognizer(1 events, 1 held back, 1 late, known up to 1)\n{QUERY}"


def test_what_is_found_is_told() -> None:
    recognizer = begun()
    told: list[object] = []

    @recognizer.on_match
    def tell(answer: Answer) -> None:
        told.append(spans(answer))

    recognizer.on_match(lambda answer: told.append(answer.count()))
    recognizer.push([row("A", 1), row("C", 1)])
    recognizer.push(row("C", 1))
    recognizer.push(row("B", 2))
    recognizer.push([row("B", 3)])
    recognizer.flush()
    assert told == [[(0, 3)], 1, [(0, 4)], 1]
    assert callable(tell)


def test_what_is_held_back_is_told_when_it_is_let_go() -> None:
    recognizer, told = begun(lateness=5), []
    recognizer.on_match(lambda answer: told.append(spans(answer)))
    recognizer.push([row("B", 2), row("A", 1)])
    recognizer.close()
    assert told == [[(0, 1)]]


def test_nothing_is_told_of_what_a_filter_leaves_out() -> None:
    query = estero.query("SELECT * WHERE A+ AS a ; B FILTER count(a) > 1")
    recognizer, told = query.recognizer(SCHEMA, type="kind", time="ts"), []
    recognizer.on_match(lambda answer: told.append(spans(answer)))
    for kind in "ABAB":
        recognizer.push(row(kind, 1))
    assert told == [[(0, 3)]]


def test_an_error_in_what_is_told_leaves_the_recognizer_sound() -> None:
    recognizer = begun()
    recognizer.on_match(lambda _: 1 // 0)
    recognizer.push(row("A", 1))
    with pytest.raises(ZeroDivisionError):
        recognizer.push(row("B", 2))
    assert recognizer.position == 2
    recognizer.push(row("C", 3))


@pytest.mark.parametrize("lateness", [None, 1])
def test_events_that_are_waited_for_are_pushed(lateness: int | None) -> None:
    recognizer = begun(lateness=lateness)

    async def events() -> AsyncIterator[object]:
        for each in (row("A", 1), [row("C", 2), row("B", 2)], ("B", 3, 0, "x"), row("C", 3)):
            yield each

    async def found() -> list[list[tuple[int, int]]]:
        return [spans(answer) async for answer in recognizer.over(events())]

    assert asyncio.run(found()) == [[(0, 2)], [(0, 3)]]
    assert recognizer.position == 5


def test_an_answer_without_anything_stays_so() -> None:
    recognizer = begun()
    empty = recognizer.push(row("C", 1))
    recognizer.push(row("A", 1))
    assert not empty
    assert empty.to_arrow().equals(recognizer.flush().to_arrow())
    assert (list(empty), empty.count(), list(empty.share(0, 2)), list(empty.sample(3))) == ([], 0, [], [])


def test_a_stream_says_why_its_events_go_by_sql() -> None:
    assert begun().why_slow is None
    assert begun(lateness=1).why_slow == "events are held back for late ones"
    assert begun(order=["n"]).why_slow == "columns break ties of time"


# ---------------------------------------------------------------------------------- what goes wrong


def test_a_predicate_that_fails_where_it_decides_what_is_forgotten_stops_the_recognizer() -> None:
    @estero.predicate
    def fine(found: pa.Table) -> bool:
        if found.column("n")[0].as_py() == 7:
            raise RuntimeError("seven")
        return True

    picky = estero.query("SELECT * WHERE A AS a FILTER fine(a) CONSUME BY ANY")
    recognizer = picky.recognizer(SCHEMA, type="kind")
    assert recognizer.push(row("A", 0)).count() == 1
    state = recognizer.snapshot()
    with pytest.raises(estero.DataError, match="seven"):
        recognizer.push(row("A", 0, n=7))
    for goes_on in (lambda: recognizer.push(row("A", 0)), recognizer.flush, recognizer.snapshot):
        with pytest.raises(estero.EsteroError) as caught:
            goes_on()
        assert str(caught.value) == (
            "recognition broke off in an earlier push, so that its state is not to be trusted: "
            "restore the last snapshot"
        )
    assert spans(estero.restore(picky, state).push(row("A", 0))) == [(1, 1)]


def test_what_is_closed_takes_nothing_more() -> None:
    recognizer = begun(lateness=5)
    recognizer.push([row("A", 1), row("B", 2)])
    assert spans(recognizer.close()) == [(0, 1)]
    with pytest.raises(estero.EsteroError) as caught:
        recognizer.push(row("B", 3))
    assert str(caught.value) == "the recognizer is closed: make a new one, or restore a snapshot of it"


# ---------------------------------------------------------------------------------------- restarts


def test_a_snapshot_has_all_that_is_needed() -> None:
    recognizer = begun(lateness=3, order=["n"])
    recognizer.push([row("A", 1), row("A", 4), row("B", 5, n=2)])
    recognizer.push(row("A", 0))
    again = estero.restore(str(QUERY), recognizer.snapshot())
    assert (again.position, again.held_back, again.late) == (1, 2, 1)
    assert again.snapshot() == recognizer.snapshot()
    late = [row("B", 1, n=-1), row("C", 9)]
    for one in (recognizer, again):
        assert spans(one.push(late)) == [(0, 2), (1, 2)]
        assert one.late == 2


def test_a_snapshot_with_a_key_is_restored_with_it() -> None:
    recognizer, key = begun(lateness=3), bytes(range(32))
    recognizer.push([row("A", 1), row("A", 4)])
    state = recognizer.snapshot(key=key)
    again = estero.restore(QUERY, state, key=key)
    assert again.snapshot(key=key) == state
    assert again.snapshot() == recognizer.snapshot()
    with pytest.raises(estero.DataError) as caught:
        estero.restore(QUERY, state, key=bytes(32))
    assert str(caught.value) == "the state was not written with this key, or it was changed since"


def test_a_snapshot_of_another_query_is_refused() -> None:
    state = begun().snapshot()
    with pytest.raises(estero.DataError) as caught:
        estero.restore("SELECT * WHERE A ; B", state)
    assert str(caught.value) == (
        f"the state is of another query: {QUERY}\n  hint: it cannot go on with SELECT * WHERE A ; B"
    )


def test_a_snapshot_with_keys_of_another_duckdb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    state = begun().snapshot()
    monkeypatch.setattr("estero.recognize.recognizers.intake.hashes", lambda: (1, 2, 3))
    with pytest.raises(estero.DataError) as caught:
        estero.restore(QUERY, state)
    assert str(caught.value) == (
        "the keys in this state were hashed by another version of DuckDB\n"
        "  hint: use that version, or start over"
    )


def test_memory_stays_where_it_is_over_a_long_stream() -> None:
    recognizer = begun(lateness=2)
    sizes, found = [], 0
    for start in range(0, 400_000, 4_000):
        rows = range(start, start + 4_000)
        batch = pa.table(
            {
                "kind": ["A" if each % 2 else "B" for each in rows],
                "ts": [each // 40 for each in rows],
                "n": list(rows),
                "k": [f"{each // 50}" for each in rows],
            },
            schema=SCHEMA,
        )
        found += recognizer.push(batch).count()
        recognition = recognizer._recognition
        held = recognition.recognizer.size + recognition.store.next - recognition.store.first
        sizes.append((held, len(recognizer.snapshot())))
    assert found > 400_000
    settled = sizes[20:]
    assert max(held for held, _ in settled) <= 2 * max(held for held, _ in sizes[10:20])
    assert max(size for _, size in settled) <= 1.1 * max(size for _, size in sizes[10:20])


@pytest.mark.parametrize("partials", [False, True])
def test_a_recognizer_shows_up_to_when_events_are_known(*, partials: bool) -> None:
    schema = pa.schema([("kind", pa.string()), ("t", pa.timestamp("us"))])
    query = estero.query("SELECT * WHERE a ; b WITHIN 1 HOUR")
    options: dict[str, Any] = {"partials": True} if partials else {}
    recognizer: Any = query.recognizer(schema, type="kind", time="t", **options)
    assert "known" not in repr(recognizer)
    recognizer.push([{"kind": "a", "t": "2024-01-01T00:00:05"}])
    first, _ = repr(recognizer).split("\n")
    assert first.startswith(type(recognizer).__name__ + "(1 events, ")
    assert first.endswith(" late, known up to 2024-01-01 00:00:05)")
    page = shown_by(recognizer)
    assert page.texts("b") == [type(recognizer).__name__]
    assert page.rows() == [
        *(["events", "1"], ["held back", "0"], ["late", "0"], ["known up to", "2024-01-01 00:00:05"]),
    ]
    assert page.texts("pre") == ["SELECT *\nWHERE a ; b\nWITHIN 1 HOURS"]
    recognizer.push(pa.table({"kind": ["a"], "t": pa.array([1 << 60], pa.timestamp("us"))}))
    assert "known up to 1152921504606846976 us since 1970" in repr(recognizer)


def test_errors_are_shown_in_notebooks_with_their_carets_in_place() -> None:
    (error,) = estero.check("SELECT * WHERE a ; ; <b>")[:1]
    assert error._repr_html_().startswith(
        "<pre>there is no part between ; and ;\n  1 | SELECT * WHERE a ; ; &lt;b"
    )
    assert DataError("a <b> &")._repr_html_() == "<pre>a &lt;b&gt; &amp;</pre>"


@pytest.mark.parametrize("asking", [False, True])
@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("A ; NOT(B) FOR 2 SECONDS", [[(0, 0)], [], []]),
        ("A ; B WITHIN 5 SECONDS", [[], [(0, 1)], []]),
    ],
)
def test_what_the_watermark_has_decided_stays(
    text: str, given: list[list[tuple[int, int]]], asking: bool
) -> None:
    query = estero.query(f"SELECT * WHERE {text}")
    recognizer = query.recognizer(SCHEMA, type="kind", time="ts", time_unit="s", lateness=3)
    answers = [[(each.start, each.end) for each in recognizer.push([row("A", 0), row("C", 10)])]]
    if asking:
        recognizer.progress()
    answers.append([(each.start, each.end) for each in recognizer.push([row("B", 1)])])
    assert recognizer.late == (1 if "NOT" in text else 0)
    answers.append([(each.start, each.end) for each in recognizer.close()])
    assert answers == given
