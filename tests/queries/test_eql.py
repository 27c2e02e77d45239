"""Queries in EQL: what they find, where fields come from, and what is refused."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import estero

START = datetime(2024, 5, 1, tzinfo=UTC)
ROWS: list[dict[str, Any]] = [
    {
        "kind": "process",
        "name": "Cmd.exe",
        "pid": 1,
        "code": "4624",
        "size": 2.5,
        "tags": ["a", "Bc"],
        "ok": True,
    },
    {"kind": "process", "name": "sh", "pid": 7, "code": None, "size": None, "tags": [], "ok": False},
    {"kind": "file", "name": None, "pid": None, "code": "7", "size": 4.0, "tags": None, "ok": None},
    {"kind": "file", "name": "a.txt", "pid": 7, "code": "x", "size": -1.0, "tags": [None, "c"], "ok": True},
]


def table(*, nested: bool = True) -> pa.Table:
    """The rows as one table, with structs or with dots in the names of columns."""
    rows = []
    for place, row in enumerate(ROWS):
        inner = {"name": row["name"], "parent": {"pid": row["pid"]}}
        fields = (
            {"process": inner, "event": {"category": row["kind"]}}
            if nested
            else {
                "process.name": row["name"],
                "process.parent.pid": row["pid"],
                "event.category": row["kind"],
            }
        )
        rows.append(
            {"@timestamp": START + timedelta(seconds=place), **fields}
            | {name: row[name] for name in ("code", "size", "tags", "ok")}
        )
    return pa.Table.from_pylist(rows)


FOUND = {
    'process where process.name : "cmd*"': [0],
    'any where not process.name : "cmd*"': [1, 2, 3],
    "any where process.parent.pid != 7": [0, 2],
    "any where process.parent.pid == 7 and not ok": [1],
    'any where ?process.entity_id == null and event.category == "file"': [2, 3],
    'any where tags : "b?"': [0],
    "any where tags == null": [1, 2],
    'any where tags != "c"': [0, 1, 2],
    "any where code == 7": [2],
    'any where process.parent.pid in ("7", 1)': [0, 1, 3],
    'any where string(size) == "2.5"': [0],
    "any where process.parent.pid / 2 == 3": [1, 3],
    '"file" where @timestamp > "2024-05-01T00:00:02Z"': [3],
    "any where @timestamp == 1714521601000": [1],
    'any where substring(process.name, -4) == ".exe" or process.name regex ".*\\\\.t.t"': [0, 3],
    'any where between(process.name, ".", "z") == null': [0, 1, 2, 3],
    'any where between(process.name, ".", ?absent) == ""': [],
    'any where indexOf(process.name, "", 3) == 3': [0, 3],
    "any where not stringContains(process.name, substring(process.name, 0, 0))": [0, 1, 2, 3],
    "any where true | tail 3 | head 1": [1],
    "any where ok | head 1": [0],
    "none where true": [],
}


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("text", FOUND)
def test_events_are_found(text: str, nested: bool) -> None:
    answer = estero.eql(text).run(table(nested=nested), time="@timestamp")
    assert [ce.all_positions for ce in answer] == [(place,) for place in FOUND[text]]


def test_the_category_may_be_in_a_list_or_in_the_column_of_types() -> None:
    lists = pa.Table.from_pylist(
        [{"event": {"category": ["network", "dns"]}}, {"event": {"category": []}}, {"event": None}]
    )
    assert [ce.start for ce in estero.eql("dns where true").run(lists)] == [0]
    typed = pa.table({"kind": ["file", "process"], "n": [1, 2]})
    query = estero.eql("process where n == 2")
    assert [ce.start for ce in query.run(typed, type="kind")] == [1]
    assert [ce.start for ce in estero.eql('any where kind : "FILE"').run(typed, type="kind")] == [0]
    mapped = {"file": pa.table({"n": [2]}), "process": pa.table({"n": [2, 3]})}
    assert [ce["1"] for ce in query.run(mapped)] == [[{"n": 2, "position": 1}]]


def test_a_sequence_has_a_label_for_each_stage() -> None:
    query = estero.eql(
        "sequence by process.parent.pid with maxspan=1h [process where true] [file where true]"
    )
    (found,) = query.run(table(), time="@timestamp")
    assert found.all_positions == (1, 3)
    assert found.labels == ("1", "2")
    assert found["2"][0]["process"]["name"] == "a.txt"


REFUSED = {
    "any where nam == 1": ("no event has a field nam", ""),
    'any where process.nam : "x"': ("no event has a field process.nam", "process.name"),
    "any where process == 1": ("process is a struct, and holds no value", "process.name"),
    'any where size < "3"': ("size is a float, and this constant is a string", "number(s)"),
    "any where ok + 1 == 2": ("+ takes numbers, and ok is a truth value", ""),
    "any where code": ("a condition is true or false, and this is a string", ""),
    "any where startsWith(code, 7)": ("startsWith takes a string here", '"7"'),
    "any where concat(size) == code": ("size is a float, whose text differs between engines", ""),
    'any where cidrMatch(code, "10.0.0.0/99")': ("'10.0.0.0/99' is not a block of addresses", ""),
    "any where cidrMatch(code, code)": ("the blocks of cidrMatch are constants", ""),
    'any where code regex "a&b"': ("& is an intersection", ""),
    'any where @timestamp > "yesterday"': ("'yesterday' is not an instant", ""),
    "any where number(code, 99) == 1": ("the base of a number is a constant", ""),
    'any where number("q") == 1': ("'q' is not a number", ""),
    'any where between(code, "a", "b", code) == "c"': ("the last argument of between is true or false", ""),
    "sequence by nam [any where true] [any where true]": ("no event has a field nam", ""),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_does_not_fit_the_events_is_refused_at_its_place(text: str) -> None:
    message, hint = REFUSED[text]
    (error,) = estero.eql(text).check(table(), time="@timestamp")[:1]
    assert error.message.startswith(message)
    assert hint in error.hint
    assert error.text == text
    with pytest.raises(estero.QueryError) as raised:
        estero.eql(text).run(table(), time="@timestamp")
    assert raised.value.message == error.message


def test_without_a_column_for_the_category_it_cannot_be_asked_for() -> None:
    events = pa.table({"n": [1]})
    assert estero.eql("any where n == 1").run(events).count() == 1
    with pytest.raises(estero.QueryError, match="no column has the category of the events"):
        estero.eql("process where n == 1").run(events)


def test_a_plan_is_made_anew_for_fields_of_another_kind() -> None:
    query = estero.eql("any where p.x / 2 == 3")
    for values, found in (([7, 6], [0, 1]), ([7.0, 6.0], [1])):
        events = pa.table({"p": [{"x": value} for value in values]})
        assert [ce.start for ce in query.run(events)] == found


def test_a_query_is_a_value() -> None:
    query = estero.eql('process where a:"x"|head 2')
    assert str(query) == 'process where a : "x" | head 2'
    assert repr(query) == "estero.eql('process where a : \"x\" | head 2')"
    assert query == estero.eql(str(query))
    assert hash(query) == hash(estero.eql(str(query)))
    assert query != estero.eql('process where a:"x"')
    assert pickle.loads(pickle.dumps(query)) == query
    assert query.parameters == ()


def test_pipes_need_a_whole_answer() -> None:
    query = estero.eql("any where ok | tail 1")
    for refused in (
        lambda: query.recognizer(table(), time="@timestamp"),
        lambda: estero.rules({"one": query}).run(table(), time="@timestamp").counts(),
        lambda: query.run(table(), time="@timestamp", partials=True),
    ):
        with pytest.raises(estero.QueryError, match="tail takes a part of a whole answer"):
            refused()


def test_a_size_is_the_number_of_results() -> None:
    assert estero.eql("any where true").run(table(), time="@timestamp", size=3).count() == 3
    with pytest.raises(ValueError, match="a limit is at least 0"):
        estero.eql("any where true").run(table(), time="@timestamp", size=-1)


@pytest.mark.parametrize(
    "text", ['process where process.name : "cmd*"', 'any where tags : "b?"', "any where ok"]
)
def test_pushed_events_find_the_same(text: str) -> None:
    query = estero.eql(text)
    events = table()
    recognizer = query.recognizer(events.schema, time="@timestamp")
    found = [ce.start for batch in events.to_batches(max_chunksize=1) for ce in recognizer.push(batch)]
    assert found == FOUND.get(text, [0, 3])
    restored = estero.restore(query, recognizer.snapshot())
    assert restored.push(events.slice(0, 0)).count() == 0


def test_rules_in_eql_run_beside_others() -> None:
    rules = estero.rules(
        {
            "cmd": estero.eql('any where process.name : "cmd.exe"'),
            "sh": estero.eql('any where process.name : "SH"'),
            "tagged": estero.eql('file where tags == "c"'),
            "pairs": "SELECT * WHERE Event AS x : Event AS y FILTER x.process.name = y.process.name",
        }
    )
    found = [(ce.rule, ce.start) for ce in rules.run(table(), time="@timestamp")]
    assert found == [("cmd", 0), ("sh", 1), ("tagged", 3)]


def test_rules_in_eql_run_beside_those_that_ask_for_types() -> None:
    events = pa.table({"kind": ["file", "process", "file"], "n": [1, 2, 3]})
    rules = estero.rules(
        {
            "odd": estero.eql("any where n % 2 == 1"),
            "typed": "SELECT * WHERE process AS x : file AS y",
            "pair": estero.eql("sequence [process where true] [file where n > 1]"),
        }
    )
    found = [(ce.rule, ce.start) for ce in rules.run(events, type="kind")]
    assert sorted(found) == [("odd", 0), ("odd", 2), ("pair", 1), ("typed", 1)]
    recognizer = rules.recognizer(events.schema, type="kind")
    pushed = [(ce.rule, ce.start) for batch in events.to_batches(1) for ce in recognizer.push(batch)]
    assert sorted(pushed) == sorted(found)


def test_explain_shows_the_query_and_its_sql() -> None:
    said = str(estero.eql('file where tags == "c"').explain(table(), time="@timestamp"))
    assert said.startswith('Query\n  file where tags == "c"')
    assert "some(tags AS e1, e1 = 'c')" in said
    assert "Classification (DuckDB)" in said


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        (
            'process where kind == "a" and n > 3',
            "b0  Event[event.category = 'process' AND kind = 'a' AND n > 3]",
        ),
        ("sample by host.name [any where x == 1] [any where y == 2]", "b1  Event[y = 2]"),
        ('any where length(a) > 3 and cidrmatch(ip, "10.0.0.0/8") | head 3', "b0  Event[length(a) > 3 AND "),
        (
            "sequence by ?u with maxspan=90m [any where n : 3] ![any where a != b]",
            "b1  Event[NOT coalesce(a = b",
        ),
    ],
)
def test_without_events_any_field_may_exist(text: str, predicate: str) -> None:
    query = estero.eql(text)
    assert f"\n  {predicate}" in str(query.explain())
    assert "on b0: mark 1" in str(query.automaton())
    assert f"\n  {predicate}" in str(estero.rules({"rule": query}).explain()["rule"])


def test_the_span_and_the_keys_of_a_sequence_are_explained_as_written() -> None:
    query = estero.eql("sequence by host.name with maxspan=90m [any where x == 1] [any where x == 2]")
    said = str(query.explain())
    assert "\n  window: at most 1 HOURS 30 MINUTES from start to end" in said
    assert "\n  on Spark: each task processes some of the values of host.name, which all events" in said


def test_lists_in_files_are_asked_as_those_in_memory(tmp_path: Path) -> None:
    table = pa.table(
        {"at": pa.array([1, 2, 3], pa.timestamp("ms")), "tags": [["x", "B"], ["bc"], None], "n": [1, 2, 3]}
    )
    pq.write_table(table, tmp_path / "events.parquet")
    query = estero.eql('any where tags : ("b", "c*") or n / 2 > 1')
    for events in (table, tmp_path / "events.parquet"):
        assert [found.start for found in query.run(events, time="at")] == [0]
