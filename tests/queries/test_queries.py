"""The query as users hold it: errors before anything runs, layouts, explanations."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import estero

EVENTS = pa.table(
    {
        "kind": ["SELL", "BUY", "SELL", "BUY", "BUY"],
        "ts": [10, 20, 20, 30, 45],
        "name": ["INTC", "RIMM", "INTC", "QQQ", "RIMM"],
        "price": [1.0, 2.5, 3.0, None, 4.0],
    }
)


def test_a_query_can_be_made_of_a_text_in_either_language_and_of_what_the_builder_makes() -> None:
    text, joined = "SELECT * WHERE SELL AS a ; BUY AS b WITHIN 3 EVENTS", "Q(x) <- T(x), S(x)"
    assert estero.Query(text) == estero.query(text)
    assert estero.Query(text).run(EVENTS, type="kind").count() == 4
    assert estero.Query(joined) == estero.conjunctive(joined) != estero.Query("SELECT * WHERE T ALL S")
    built = estero.event("SELL").named("a").then(estero.event("BUY").named("b"))
    assert estero.Query(built) == estero.query(built)
    with pytest.raises(estero.QueryError, match="no event is marked x"):
        estero.Query("SELECT * WHERE A FILTER x[n > 1]")
    with pytest.raises(estero.QueryError, match="the head lacks the variable x"):
        estero.Query("Q() <- T(x)")


def test_queries_of_all_kinds_are_queries() -> None:
    automaton = estero.automaton([(0, "A", "x", 1)], initial=0, final=1)
    made = [estero.query("SELECT * WHERE A"), estero.conjunctive("Q(x) <- T(x)"), automaton]
    assert all(isinstance(each, estero.Query) for each in made)
    assert [pickle.loads(pickle.dumps(each)) for each in made] == made
    assert len(set(made)) == 3


def test_a_query_runs_on_a_table() -> None:
    query = estero.query("SELECT * WHERE SELL AS a ; BUY AS b FILTER b[price > 2] WITHIN 25 [ts]")
    answer = query.run(EVENTS, type="kind", time="ts")
    assert [(found.start, found.end, found.positions["b"]) for found in answer] == [
        (0, 1, (1,)),
        (2, 4, (4,)),
    ]
    assert answer.count() == 2


def test_unsorted_events_are_sorted_by_time_and_ties_by_order() -> None:
    query = estero.query("SELECT * WHERE SELL AS a : BUY AS b")
    shuffled = EVENTS.take(pa.array([4, 2, 0, 3, 1]))
    found = list(query.run(shuffled, type="kind", time="ts", order=["name"]))
    assert [(each["a"][0]["ts"], each["b"][0]["name"]) for each in found] == [(20, "RIMM")]


def test_each_type_may_have_its_own_table() -> None:
    events = {
        "SELL": pa.table({"ts": [1, 4], "price": [1, 2]}),
        "BUY": pa.table({"ts": [2, 5], "volume": [7, 8]}),
    }
    query = estero.query("SELECT * WHERE SELL AS a ; BUY AS b FILTER a[price > 1] AND b[volume < 9]")
    [found] = query.run(events, time="ts")
    assert found["b"] == [{"ts": 5, "volume": 8, "position": 3}]


def test_without_a_type_column_all_events_are_of_the_stream_of_from() -> None:
    table = pa.table({"x": [1, 2, 3]})
    assert estero.query("SELECT * FROM S WHERE S AS a ; S AS b").run(table).count() == 3
    assert estero.query("SELECT * WHERE Event AS a FILTER a[x = 2]").run(table).count() == 1


def test_a_type_that_no_list_of_types_has_is_an_error_with_the_nearest_names() -> None:
    with pytest.raises(estero.QueryError) as caught:
        estero.query("SELECT * WHERE SELL ; BYU").run(EVENTS, type="kind", types=["SELL"])
    assert str(caught.value) == (
        "there are no events of type BYU\n"
        "  1 | SELECT * WHERE SELL ; BYU\n"
        "    |                       ^^^\n"
        "    expected: BUY or SELL\n"
        "    hint: did you mean BUY?"
    )


def test_a_type_that_may_be_absent_is_declared() -> None:
    query = estero.query("SELECT * WHERE SELL OR ALARM")
    assert query.run(EVENTS, type="kind", types=["ALARM"]).count() == 2


def test_check_says_everything_at_once() -> None:
    text = "SELECT nope WHERE SELL AS a ; BYU AS b FILTER a[prize > 1] AND a[price > 'x'] WITHIN 2 SECONDS"
    errors = estero.check(text, EVENTS, type="kind", time="ts", types=["SELL", "BUY"])
    assert [error.message for error in errors] == [
        "no event is marked nope",
        "there are no events of type BYU",
        "SELL (a) has no attribute prize",
        "a float cannot be compared with a string",
        "the time column ts holds integers, and the length of a tick is unknown",
    ]
    assert [error.found for error in errors] == ["nope", "BYU", "prize", "price > 'x'", "2 SECONDS"]


def test_check_of_a_text_that_does_not_parse_is_one_error() -> None:
    assert len(estero.check("SELECT * WHERE")) == 1
    assert estero.check("SELECT * WHERE A") == []


def test_a_query_is_refused_for_what_no_events_can_mend() -> None:
    with pytest.raises(estero.QueryError, match="no event is marked x"):
        estero.query("SELECT * WHERE A FILTER x[n > 1]")


def test_explain_says_plan_guarantee_automaton_and_sql() -> None:
    query = estero.query("SELECT * WHERE SELL AS a ; BUY AS b FILTER b[price > 2] WITHIN 25 [ts]")
    text = str(query.explain(EVENTS, type="kind", time="ts"))
    for part in (
        "guarantee: constant time per event, output-linear delay between complex events",
        "window: at most 25 [ts] from start to end, which bounds memory use",
        "b1  BUY[price > 2]",
        "0 → 1  on b0: mark SELL, a",
        "1 → 1  on any event: pass over",
        "SELECT",
    ):
        assert part in text


def test_explain_draws_the_automaton_for_notebooks() -> None:
    explanation = estero.query("SELECT * WHERE A ; B").explain()
    assert "<svg" in explanation._repr_html_()
    assert "Classification" not in str(explanation)


def test_a_plan_travels_to_other_processes() -> None:
    explanation = estero.query("SELECT * WHERE SELL AS a ; BUY").explain(EVENTS, type="kind", time="ts")
    assert pickle.loads(pickle.dumps(explanation.plan)) == explanation.plan


def test_a_query_is_planned_anew_for_other_columns() -> None:
    query = estero.query("SELECT * WHERE A AS a FILTER a[n > 0]")
    table = pa.table({"type": ["A"], "n": [1], "s": ["x"]})
    others = (
        table,
        table.select(["s", "n", "type"]),
        table.set_column(1, "n", pa.array([1.5])),
        table.append_column("m", pa.array([2])),
        table,
    )
    for events in others:
        (row,) = query.run(events, type="type").to_arrow().to_pylist()
        (event,) = row["a"]
        assert list(event.items()) == [*events.to_pylist()[0].items(), ("position", 0)]
    assert pickle.loads(pickle.dumps(query)) == query


def test_a_predicate_that_is_replaced_is_asked_anew() -> None:
    table = pa.table({"type": ["A", "A"], "n": [1, 2]})
    query = None
    for wanted in (1, 2):

        @estero.predicate
        def replaced_one(found: pa.Table, wanted: int = wanted) -> bool:
            return bool(found.column("n")[0].as_py() == wanted)

        query = query or estero.query("SELECT * WHERE A AS a FILTER replaced_one(a)")
        assert [row["start"] for row in query.run(table, type="type").to_arrow().to_pylist()] == [wanted - 1]


def test_more_than_63_predicates() -> None:
    table = pa.table({"n": list(range(200)) + list(range(200))})
    pattern = " ; ".join(f"Event AS e{i}" for i in range(150))
    filters = " AND ".join(f"e{i}[n = {i}]" for i in range(150))
    answer = estero.query(f"SELECT e0, e149 WHERE {pattern} FILTER {filters} WITHIN 160 EVENTS").run(table)
    assert [(found.start, found.end) for found in answer] == [(0, 149), (200, 349)]


def test_importing_estero_imports_nothing_heavy() -> None:
    heavy = ("numba", "pyarrow", "duckdb", "lark", "pyspark")
    code = f"import estero, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_attribute_that_is_always_null_may_be_compared_with_anything() -> None:
    table = pa.table({"kind": ["A", "B"], "n": pa.nulls(2)})
    known = estero.query("SELECT * WHERE A ; B FILTER A[n > 1] OR B[n = 'x']")
    assert known.run(table, type="kind").count() == 0
    assert estero.query("SELECT * WHERE A ; B FILTER B[n IS NULL]").run(table, type="kind").count() == 1
    assert estero.query("SELECT * WHERE A ; B PARTITION BY [n]").run(table, type="kind").count() == 0


@pytest.mark.parametrize("window", ["2 HOURS", "5 [ts]", "3 EVENTS"])
def test_a_file_with_a_header_and_no_row_has_an_empty_answer(tmp_path: Path, window: str) -> None:
    path = tmp_path / "events.csv"
    path.write_text("kind;ts;n\n")
    query = estero.query(f"SELECT * WHERE A AS a ; B AS b FILTER a[n > 1] PARTITION BY [n] WITHIN {window}")
    answer = query.run(path, type="kind", time="ts")
    assert answer.count() == 0
    assert answer.to_arrow().column_names == [
        "start",
        "end",
        "start_time",
        "end_time",
        "n",
        "A",
        "a",
        "B",
        "b",
    ]


def test_a_slice_far_into_a_huge_answer_is_lazy() -> None:
    table = pa.table({"kind": ["A"] * 70 + ["B"]})
    answer = estero.query("SELECT A WHERE A+ ; B").run(table, type="kind")
    assert answer.count() == 2**70 - 1
    late = answer[200_000:]
    assert next(iter(late)).positions == answer[200_000].positions


def test_a_limit_ends_the_enumeration_of_what_a_filter_has_to_check() -> None:
    events = pa.table({"type": ["A", *["B"] * 60, "C", "C"], "n": list(range(63))})
    query = estero.query("SELECT * WHERE A ; B+ AS b ; C FILTER count(b) >= 2 LIMIT 3")
    answer = query.run(events, type="type")
    assert [found.end for found in answer] == [61, 61, 61, 62, 62, 62]
