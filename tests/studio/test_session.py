"""A session says of a query what a page needs, and of what is wrong what mends it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import estero
from estero import demo
from estero.studio import stream as streams
from estero.studio import ways
from estero.studio.examples import EXAMPLES
from estero.studio.session import KINDS, Session
from studio.stream import BILLIONS, demo_session, told


def mended(text: str) -> list[str]:
    """The texts that the first hint leads to."""
    error = told(demo_session(), "check", text)["errors"][0]
    return [text[: fix["from"]] + fix["insert"] + text[fix["to"] :] for fix in error["fixes"]]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("SELECT * WHERE Wind FILTR Wind[value > 5]", "SELECT * WHERE Wind FILTER Wind[value > 5]"),
        ("SELECT * WHERE Wind FILTER Wind[valeu > 5]", "SELECT * WHERE Wind FILTER Wind[value > 5]"),
        ("SELECT * WHERE Wind FILTER Wind[value == 5]", "SELECT * WHERE Wind FILTER Wind[value = 5]"),
        (
            'SELECT * WHERE Wind FILTER Wind[station = 5 AND station = "x"]',
            None,
        ),
        ("SELECT * WHERE Wind WITHIN 5 MINUTS", "SELECT * WHERE Wind WITHIN 5 MINUTES"),
        ("SELECT * WHERE Wind FILTER Wind[value ≤ 5]", "SELECT * WHERE Wind FILTER Wind[value <= 5]"),
        ("SELECT * WHERE Wind && Humidity", "SELECT * WHERE Wind AND Humidity"),
    ],
)
def test_a_hint_is_a_click_away_where_it_says_what_to_write(wrong: str, right: str | None) -> None:
    if right is None:
        assert told(demo_session(), "check", wrong)["errors"]
    else:
        assert right in mended(wrong)


def test_places_are_those_of_a_browser() -> None:
    text = "SELECT * WHERE Wind -- 𝛼𝛽\n FILTR"
    (error,) = told(demo_session(), "check", text)["errors"]
    units = text.encode("utf-16-le")
    assert units[2 * error["from"] : 2 * error["to"]].decode("utf-16-le") == "FILTR"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * WHERE ", {"Wind", "Humidity", "Temperature"}),
        ("SELECT * WHERE Wind AS x FILTER ", {"x", "avg", "increasing"}),
        ("SELECT * WHERE Wind AS x FILTER x[", {"value", "station"}),
        ("SELECT * WHERE Wind AS x FILTER x.", {"value", "station"}),
        ("SELECT * WHERE Wind PARTITION BY [", {"station"}),
        ("SELECT * WHERE Wind WITHIN 10 ", {"MINUTES", "EVENTS"}),
        ("SELECT * WHERE Wind ", {"FILTER", "PARTITION BY", "WITHIN", "LIMIT", "AND"}),
        ("SELECT ", {"LONGEST", "NEXT"}),
        ("SELECT * WHERE Wind CONSUME BY ", {"ANY", "PARTITION", "NONE"}),
        ("", {"SELECT"}),
    ],
)
def test_completion_knows_what_can_be_written(text: str, expected: set[str]) -> None:
    options = told(demo_session(), "complete", text, place=len(text))["options"]
    assert expected <= {option["label"] for option in options}


def test_a_word_is_completed_from_where_it_begins() -> None:
    text = "SELECT * WHERE Wi"
    assert told(demo_session(), "complete", text, place=len(text))["from"] == len("SELECT * WHERE ")


def test_page_number_a_billion_is_there_at_once() -> None:
    session = demo_session()
    run = told(session, "run", BILLIONS)
    assert int(run["count"]) > 10**9
    page = told(session, "page", BILLIONS, at=str(10**9), rows=2)
    answer = estero.query(BILLIONS).run(demo.events(), type="kind", time="time", order=["id"])
    assert [(row["start"], row["end"]) for row in page["rows"]] == [
        (one.start, one.end) for one in answer[10**9 : 10**9 + 2]
    ]
    assert page["rows"][0]["number"] == "1000000000"


def test_why_not_offers_the_query_without_each_reason_as_it_is_written() -> None:
    texts = {reason["kind"]: reason["without"] for reason in told(demo_session(), "why_not")["reasons"]}
    assert texts["window"] == demo.QUERY.replace("\nWITHIN 20 MINUTES\n", "")
    assert texts["key"] == demo.QUERY.replace("PARTITION BY [station]\n", "").rstrip()
    assert texts["condition"] == demo.QUERY.replace(" AND frost[value < 0]", "").rstrip()


def test_funnel_partials_and_plan_are_those_of_the_query() -> None:
    session = demo_session()
    answer = estero.query(demo.QUERY).run(demo.events(), type="kind", time="time", order=["id"])
    steps = told(session, "funnel")["steps"]
    assert [step["starts"] for step in steps] == answer.funnel().to_arrow()["starts"].to_pylist()
    partials = told(session, "partials")
    assert partials["count"] == str(answer.partials().count())
    assert {row["steps"] for row in partials["rows"]} == {1, 2}
    titles = [section["title"] for section in told(session, "plan")["sections"]]
    assert {"Plan", "Filters"} <= set(titles)


def test_code_to_copy_runs_as_it_is() -> None:
    code = told(demo_session(), "code")["code"]
    space: dict[str, object] = {"events": demo.events(), "print": lambda number: space.update(said=number)}
    exec(code["python"], space)
    assert space["said"] == 45
    compile(code["spark"], "spark", "exec")
    assert "--type kind" in code["shell"]


def test_parameters_are_given_as_texts() -> None:
    session = demo_session()
    text = "SELECT * WHERE Wind FILTER Wind[value < $least]"
    assert told(session, "check", text)["parameters"] == ["least"]
    fewer, more = (told(session, "run", text, params={"least": least})["count"] for least in ("0.1", "0.5"))
    assert 0 < int(fewer) < int(more)
    reply, _ = session.answer({"kind": "run", "text": text})
    assert "least" in reply["error"]


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.title for example in EXAMPLES])
def test_examples_are_right_and_all_but_the_last_find_something(example: object) -> None:
    assert isinstance(example, type(EXAMPLES[0]))
    session = demo_session()
    assert told(session, "check", example.text)["errors"] == []
    found = told(session, "run", example.text)["rows"]
    assert bool(found) == (example is not EXAMPLES[-1])


def test_every_reply_is_json() -> None:
    session = demo_session()
    for kind in KINDS:
        message = {"kind": kind, "text": demo.QUERY, "at": "0", "place": 3, "position": 5}
        reply, _ = session.answer({**message, "of": "window", "condition": "WITHIN 20 MINUTES"})
        assert "error" not in reply, (kind, reply)
        json.dumps(reply, allow_nan=False)


def test_values_that_json_lacks_are_texts() -> None:
    events = pa.table({"x": [float("nan"), float("inf")], "n": [2**60, 1], "b": [b"\x00", None]})
    session = Session(estero.scan(events))
    reply, _ = session.answer({"kind": "event", "position": 0})
    assert reply["event"]["values"] == {"x": "nan", "n": str(2**60), "b": "00"}


def test_a_file_is_read_once_and_in_the_order_of_the_stream(tmp_path: Path) -> None:
    events = demo.events()
    mixed = events.take(np.random.default_rng(3).permutation(events.num_rows))
    file = tmp_path / "events.parquet"
    pyarrow.parquet.write_table(mixed, file)
    session = Session(estero.scan(str(file), type="kind", time="time", order=["id"]))
    file.unlink() if told(session, "hello")["events"] == 2010 else None
    assert session.stream.table["id"].to_pylist() == events["id"].to_pylist()
    assert told(session, "run")["count"] == "45"
    assert str(file) in told(session, "code")["code"]["python"]


def test_types_in_tables_of_their_own_are_one_stream() -> None:
    events = demo.events()
    kinds = events["kind"].to_pylist()
    tables = {
        kind: events.filter(pa.array([one == kind for one in kinds])).drop(["kind"])
        for kind in ("Wind", "Humidity", "Temperature")
    }
    session = Session(estero.scan(tables, time="time", order=["id"]))
    assert told(session, "run")["count"] == "45"
    assert told(session, "event", position=7)["event"]["type"] == kinds[7]
    way = told(session, "states", at="3")["way"]
    assert way == told(demo_session(), "states", at="3")["way"]


def test_a_timeline_of_very_many_events_is_told_in_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_DRAWN", 500)
    session = demo_session()
    reply, (counts,) = session.answer({"kind": "timeline", "by": "station"})
    assert reply["binned"]
    by_lane = np.frombuffer(counts, "<u4").reshape(5, reply["bins"]).sum(axis=1)
    assert by_lane.tolist() == [402] * 5
    middle = (reply["from"] + reply["to"]) / 2
    part, columns = session.answer({"kind": "timeline", "by": "station", "from": middle, "to": middle + 1e6})
    assert not part["binned"]
    assert np.frombuffer(columns[0], "<f8").size == part["events"] < 500


def test_more_values_than_lanes_share_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_LANES", 3)
    reply, _ = demo_session().answer({"kind": "timeline", "by": "station"})
    assert len(reply["lanes"]) == 3
    assert reply["lanes"][-1] == "3 others"


def test_more_events_than_memory_should_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_EVENTS", 100)
    reply, _ = demo_session().answer({"kind": "hello"})
    assert reply["error"] == (
        "the studio holds events in memory, and these are more than 100: give it a part of them"
    )


def test_a_join_went_through_what_its_events_gathered() -> None:
    events = pa.table({"type": ["T", "S", "R"], "x": [2, 2, 2], "y": [None, 11, 11]})
    session = Session(estero.scan(events, type="type"))
    text = "Q(x, y) <- T(x), S(x, y), R(x, y)"
    states = re.findall(r'data-state="(\d+)"', told(session, "automaton", text)["automaton"])
    reply = told(session, "states", text, at="0")
    *begun, one, other = reply["way"]
    assert [(step["position"], step["source"]) for step in begun] == [(0, 0), (1, 0)]
    assert {one["source"], other["source"]} == {step["target"] for step in begun}
    assert {(step["position"], step["target"]) for step in (one, other)} == {(2, int(states[-1]))}


def test_it_is_told_why_states_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "MOST_READ", 2)
    reply = told(demo_session(), "states", at="0")
    assert (reply["way"], reply["why"]) == (None, "it is longer than 200,000 events")


def without_ms(reply: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in reply.items() if name not in ("kind", "ms", "notes")}


def test_one_message_checks_and_runs_what_is_typed() -> None:
    session = demo_session()
    reply = told(session, "typed", rows=3)
    checked, run = told(session, "check"), told(session, "run", rows=3)
    assert without_ms(reply) == {**without_ms(checked), **without_ms(run), "ran": True}
    wrong = "SELECT * WHERE Wind FILTR"
    reply = told(session, "typed", wrong)
    assert without_ms(reply) == {**without_ms(told(session, "check", wrong)), "ran": False}


def test_what_is_typed_waits_for_the_values_of_its_parameters() -> None:
    text = "SELECT * WHERE Wind AS w FILTER w[value > $least]"
    reply = told(demo_session(), "typed", text)
    assert (reply["ran"], reply["parameters"]) == (False, ["least"])
    reply = told(demo_session(), "typed", text, params={"least": "4"})
    assert reply["ran"]
    assert all(label["events"][0]["value"] > 4 for row in reply["rows"] for label in row["labels"])


def test_what_is_known_of_a_text_is_told_though_its_question_stops() -> None:
    text = f"{demo.QUERY} -- $no"
    reply, _ = demo_session(cancelled=lambda: True).answer({"kind": "typed", "text": text})
    assert reply["error"] == "cancelled"
    assert (reply["errors"], reply["key"], reply["ran"]) == ([], "station", False)


def test_texts_that_come_again_are_numbers_of_a_dictionary_for_queries() -> None:
    events = pa.table({"kind": ["A", "B"] * 3, "name": ["x", None, "y"] * 2, "n": range(6)})
    session = Session(estero.scan(events, type="kind"))
    held = session.stream.scan.events
    assert [pa.types.is_dictionary(kind) for kind in held.schema.types] == [True, True, False]
    assert held.to_pylist() == events.to_pylist()
    text = "SELECT * WHERE A ; B PARTITION BY [name]"
    assert told(session, "run", text)["count"] == str(estero.query(text).run(events, type="kind").count())


def test_names_that_are_nearly_all_different_stay_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_TEXTS", 4)
    events = pa.table({"kind": ["A"] * 8, "name": list("abcdefgh")})
    held = Session(estero.scan(events, type="kind")).stream.scan.events
    assert [pa.types.is_dictionary(kind) for kind in held.schema.types] == [True, False]


def test_a_question_stops_when_its_time_is_over_and_when_it_is_cancelled() -> None:
    reply, _ = demo_session(seconds=0.0).answer({"kind": "run", "text": demo.QUERY})
    assert reply["error"].startswith("this takes longer than 0 seconds")
    reply, _ = demo_session(cancelled=lambda: True).answer({"kind": "run", "text": demo.QUERY})
    assert reply["error"] == "cancelled"


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"kind": "page", "at": "zz"}, "at is a whole number, such as 0, not 'zz'"),
        ({"kind": "page", "rows": None}, "rows is a whole number, such as 0, not None"),
        ({"kind": "page", "at": -1}, "pages begin at 0"),
        ({"kind": "event"}, "position is a whole number, such as 0, not None"),
        ({"kind": "states", "at": []}, "at is a whole number, such as 0, not []"),
    ],
)
def test_a_message_with_a_wrong_number_says_which(message: dict[str, object], error: str) -> None:
    reply, _ = demo_session().answer({"text": demo.QUERY, **message})
    assert reply["error"] == error
