"""What a session says of an answer is what the answer says, for random queries and streams."""

from __future__ import annotations

from collections import Counter
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.automata.cea import CEA
from estero.automata.pcea import PCEA
from estero.language.tree.query import QueryTree
from estero.reference.queries import Event
from estero.studio.session import Session
from estero.studio.without import without
from strategies.full import full_queries
from strategies.joined import joined_queries
from strategies.patterns import queries, streams, to_table
from strategies.whole import whole_queries

MOST = settings.default.max_examples if settings.default else 10
TREES = st.one_of(queries(3), full_queries(3), joined_queries(), whole_queries())
LAYOUT: dict[str, Any] = {"type": "type", "time": "time", "time_unit": "s"}

pytestmark = pytest.mark.filterwarnings("ignore::estero.EsteroWarning")


def opened(events: pa.Table) -> Session:
    return Session(estero.scan(events, **LAYOUT))


def asked(session: Session, kind: str, **more: object) -> dict[str, Any]:
    reply, _ = session.answer({"kind": kind, **more})
    assert "error" not in reply, reply["error"]
    return reply


def places(row: dict[str, Any]) -> tuple[object, ...]:
    return (row["start"], row["end"], {label["label"]: label["positions"] for label in row["labels"]})


def found(one: estero.ComplexEvent) -> tuple[object, ...]:
    return (one.start, one.end, {label: list(marked) for label, marked in one.positions.items()})


@settings(max_examples=2 * MOST)
@given(TREES, streams(max_size=9), st.integers(1, 4), st.integers(0, 12))
def test_rows_pages_and_counts_are_those_of_the_answer(
    tree: QueryTree, events: list[Event], rows: int, at: int
) -> None:
    table, text = to_table(events), str(tree)
    answer = estero.query(text).run(table, **LAYOUT)
    whole = list(map(found, answer))
    session = opened(table)

    first = asked(session, "run", text=text, rows=rows)
    assert [places(row) for row in first["rows"]] == whole[:rows]
    assert first["last"] == (len(whole) <= rows)
    assert asked(session, "count", text=text)["count"] == str(len(whole))
    assert first["count"] in (None, str(len(whole)))

    typed = asked(opened(table), "typed", text=text, rows=rows)
    assert (typed["rows"], typed["count"], typed["last"]) == (first["rows"], first["count"], first["last"])

    page = asked(session, "page", text=text, at=str(at), rows=rows)
    assert [places(row) for row in page["rows"]] == whole[at : at + rows]
    assert [row["number"] for row in page["rows"]] == [str(at + i) for i in range(len(page["rows"]))]


@settings(max_examples=MOST)
@given(TREES, streams(max_size=9))
def test_a_complex_event_went_through_states_that_the_automaton_has(
    tree: QueryTree, events: list[Event]
) -> None:
    table, text = to_table(events), str(tree)
    session = opened(table)
    query = estero.query(text)
    plan = query.explain(table, **LAYOUT).plan
    for number, one in enumerate(query.run(table, **LAYOUT).limit(6)):
        reply = asked(session, "states", text=text, at=str(number))
        way = reply["way"]
        if way is None:
            # A way is always known where the automaton alone decides, and shows what it marks.
            assert reply["why"]
            assert not isinstance(plan.machine, CEA) or plan.residuals or plan.pushed
            continue
        assert way[0]["position"] == one.start
        assert way[-1]["position"] == one.end
        if isinstance(plan.machine, PCEA):
            # What has begun is gathered once, by a later event, but for the state that accepts.
            waiting = Counter[int]()
            for _, together in groupby(way, lambda step: step["position"]):
                steps = list(together)
                waiting.subtract(step["source"] for step in steps if step["source"])
                assert min(waiting.values(), default=0) >= 0
                waiting[steps[0]["target"]] += 1
            assert +waiting == {way[-1]["target"]: 1}
        else:
            assert all(before["target"] == after["source"] for before, after in pairwise(way))
        marked = {position for positions in one.positions.values() for position in positions}
        assert marked <= {step["position"] for step in way}


@settings(max_examples=MOST)
@given(st.one_of(queries(3), full_queries(3), whole_queries()), streams(max_size=9))
def test_a_query_without_a_reason_asks_less_or_as_much(tree: QueryTree, events: list[Event]) -> None:
    table, text = to_table(events), str(tree)
    session = opened(table)
    reply, _ = session.answer({"kind": "why_not", "text": text})
    for reason in reply.get("reasons", []):
        rest = reason["without"]
        if rest is None:
            continue
        assert rest.strip() != text.strip()
        assert estero.check(rest, table, **LAYOUT) == []


@settings(max_examples=MOST)
@given(st.one_of(queries(3), full_queries(3), whole_queries()))
def test_a_text_is_cut_where_it_is_written_so_that_only_the_condition_goes(tree: QueryTree) -> None:
    text = str(tree)
    if tree.window is not None:
        rest = without(text, "window", f"WITHIN {tree.window}")
        assert rest is not None
        assert estero.query(rest).tree.window is None
        assert estero.query(rest).tree.pattern == estero.query(text).tree.pattern


@settings(max_examples=MOST)
@given(TREES, st.integers(0, 400), st.text("ab[](.;$'\"\n 1", max_size=3))
def test_no_text_is_too_broken_to_be_checked_and_completed(tree: QueryTree, cut: int, more: str) -> None:
    text = str(tree)[:cut] + more
    session = opened(to_table([Event("A", {"time": 0, "n": 1, "x": 0.5, "s": "a", "k": 1}, 0)]))
    checked = asked(session, "check", text=text)
    for error in checked["errors"]:
        assert 0 <= error["from"] <= error["to"] <= len(text)
        for fix in error["fixes"]:
            mended = text[: fix["from"]] + fix["insert"] + text[fix["to"] :]
            left = asked(session, "check", text=mended)["errors"]
            assert [e for e in left if e["from"] <= error["from"]] != checked["errors"]
    completed = asked(session, "complete", text=text, place=len(text))
    assert 0 <= completed["from"] <= len(text)


@settings(max_examples=MOST)
@given(streams(min_size=1, max_size=12), st.sampled_from(["s", "k", None]))
def test_a_timeline_has_each_event_in_its_lane(events: list[Event], by: str | None) -> None:
    import numpy as np

    session = opened(to_table(events))
    reply, (x, lane) = session.answer({"kind": "timeline", "by": by})
    places = np.frombuffer(x, "<f8").tolist()
    lanes = [reply["lanes"][number] for number in np.frombuffer(lane, "<u2")]
    assert places == [float(event.time or 0) for event in events]
    wanted = [event.type if by is None else event.attributes[by] for event in events]
    assert lanes == ["NULL" if value is None else str(value) for value in wanted]


def test_errors_are_told_and_not_raised() -> None:
    session = opened(to_table([]))
    for message in ({"kind": "nothing"}, {"kind": "run"}, {"kind": "event", "position": 3}):
        reply, columns = session.answer(message)
        assert reply["error"]
        assert columns == []
