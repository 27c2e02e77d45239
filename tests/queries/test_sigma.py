"""Rules in Sigma as queries: fields, log sources, correlations, and what else a query is asked."""

from __future__ import annotations

import datetime as dt
import pickle
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sigma.processing.pipeline import ProcessingItem, ProcessingPipeline
from sigma.processing.transformations import FieldMappingTransformation

import estero
from estero import DataError, EsteroWarning, QueryError

LOGINS = """
title: Login of a robot
name: robot
logsource: {product: windows, service: security}
detection:
  login: {EventID: 4624, LogonType: [3, '10']}
  known: {User|startswith: 'admin'}
  condition: login and not known
"""


def rule(detection: str, source: str = "category: test") -> str:
    return f"title: t\nlogsource: {{{source}}}\ndetection: {detection}\n"


def starts(query: estero.Query, events: list[dict[str, Any]], **layout: Any) -> list[int]:
    return [found.start for found in query.run(events, **layout)]


def test_the_same_rule_reads_flat_and_nested_events() -> None:
    query = estero.sigma(LOGINS)
    flat = [
        {"Channel": "Security", "EventID": 4624, "LogonType": 3, "User": "bot"},
        {"Channel": "security", "EventID": 4624, "LogonType": 10, "User": None},
        {"Channel": "Security", "EventID": 4624, "LogonType": 3, "User": "Admin7"},
        {"Channel": "System", "EventID": 4624, "LogonType": 3, "User": "bot"},
        {"Channel": "Security", "EventID": 4625, "LogonType": 3, "User": "bot"},
    ]
    assert starts(query, flat) == [0, 1]
    data = [{name: one[name] for name in ("LogonType", "User")} for one in flat]
    system = [{name: one[name] for name in ("Channel", "EventID")} for one in flat]
    raw = [{"Event": {"System": s, "EventData": d}} for s, d in zip(system, data, strict=True)]
    assert starts(query, raw) == [0, 1]
    beats = [
        {"winlog": {"channel": s["Channel"], "event_id": str(s["EventID"]), "event_data": d}}
        for s, d in zip(system, data, strict=True)
    ]
    assert starts(query, beats) == [0, 1]


def test_fields_of_user_data_and_names_without_blanks_are_there() -> None:
    query = estero.sigma(
        rule("{s: {ThreatName: worm, Path|endswith: '.exe'}, condition: s}"), logsource=False
    )
    events = [
        {"Event": {"UserData": {"Found": {"Threat Name": "Worm", "Path": "a.EXE"}}}},
        {"Event": {"UserData": {"Found": {"Threat Name": "Worm", "Path": "a.com"}}}},
    ]
    assert starts(query, events) == [0]


def test_a_field_in_two_containers_is_that_of_the_event() -> None:
    query = estero.sigma(rule("{s: {Level: 4}, n: {Other: null}, condition: s and n}"), logsource=False)
    events = [
        {"Event": {"System": {"Level": 4, "Other": None}, "EventData": {"Level": None, "Other": None}}},
        {"Event": {"System": {"Level": None, "Other": None}, "EventData": {"Level": "4", "Other": "x"}}},
        {"Event": {"System": {"Level": None, "Other": None}, "EventData": {"Level": "4", "Other": None}}},
    ]
    assert starts(query, events) == [0, 2]


@pytest.mark.parametrize("given", [{"Image": "process.executable"}, "ecs", "file", [{"X": "y"}, "ecs"]])
def test_fields_have_other_names(given: Any, tmp_path: Path) -> None:
    if given == "file":
        file = tmp_path / "fields.yml"
        file.write_text("fields:\n  Image: [process.image, process.executable]\n")
        given = file
    query = estero.sigma(rule("{s: {Image|endswith: '\\sh'}, condition: s}"), fields=given, logsource=False)
    events = [{"process": {"executable": "/bin\\SH"}}, {"process": {"executable": "/bin/sh2"}}]
    assert starts(query, events) == [0]
    assert "executable" in str(query)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nowhere", "there is no mapping and no file nowhere"),
        ({"Image": 7}, "a field has a name or a list of names, not 7"),
        ({"sources": [{"category": "a"}]}, "a source has category, product or service, and where"),
        (
            {"sources": [{"category": "a", "where": {"b|sounds": "c"}}]},
            "where cannot be read, Unknown modifier",
        ),
    ],
)
def test_names_of_fields_that_are_wrong_are_refused(given: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        estero.sigma(LOGINS, fields=given)


def test_a_log_source_that_nothing_tells_is_up_to_the_caller() -> None:
    text = rule("{s: {a: b}, condition: s}", "product: toaster")
    with pytest.warns(EsteroWarning, match="nothing says which events have the log source product: toaster"):
        estero.sigma(text)
    with pytest.raises(QueryError, match="nothing says which events have this log source: product: toaster"):
        estero.sigma(text, logsource=True)
    told = {"sources": [{"product": "toaster", "where": {"kind": ["toast", 7], "on": True, "off": None}}]}
    query = estero.sigma(text, fields=told, logsource=True)
    events = [
        {"a": "b", "kind": "Toast", "on": True, "off": None},
        {"a": "b", "kind": "7", "on": True, "off": None},
        {"a": "b", "kind": "7", "on": False, "off": None},
        {"a": "b", "kind": "7", "on": True, "off": "x"},
    ]
    assert starts(query, events) == [0, 1]


def test_a_field_that_no_event_has_is_a_warning() -> None:
    query = estero.sigma(rule("{s: {a: b}, f: {c|re: d}, condition: s and not f}"), logsource=False)
    with pytest.warns(EsteroWarning, match="no event has the field c"):
        assert starts(query, [{"a": "b"}]) == [0]
    with pytest.warns(EsteroWarning, match="a is a struct, which is not read here"):
        assert starts(query, [{"a": {"b": "b"}, "c": "x"}]) == []


def test_a_test_of_a_list_holds_of_one_element() -> None:
    query = estero.sigma(
        rule(
            "{s: {tag|all: [a, b]}, f: {target.type: GROUP}, n: {gone: null}, condition: s and not f and n}"
        ),
        logsource=False,
    )
    users = [{"type": "user"}, {"type": "app"}]
    events: list[dict[str, Any]] = [
        {"tag": ["B", "x", "a"], "target": users, "gone": []},
        {"tag": ["B", "a"], "target": [{"type": "group"}], "gone": None},
        {"tag": ["a", None], "target": [], "gone": None},
        {"tag": ["b", "a"], "target": None, "gone": ["x"]},
    ]
    assert starts(query, events) == [0]
    assert starts(estero.sigma(rule("{k: [APP], condition: k}"), logsource=False), events) == [0]


def test_placeholders_have_values() -> None:
    text = rule("{s: {user|expand: '%admins%'}, condition: s}")
    query = estero.sigma(text, placeholders={"admins": ["ann", "b*", r"c\*"]}, logsource=False)
    events = [{"user": name} for name in ("ANN", "b*", "bob", "an", "c*", "cid")]
    assert starts(query, events) == [0, 1, 2, 4]


def test_a_pipeline_changes_the_rule_and_says_what_its_log_source_is(tmp_path: Path) -> None:
    pipeline = ProcessingPipeline(items=[ProcessingItem(FieldMappingTransformation({"a": "deep.b"}))])
    events = [{"deep": {"b": "x"}}, {"deep": {"b": "y"}}]
    text = rule("{s: {a: X}, condition: s}")
    assert starts(estero.sigma(text, pipeline=pipeline), events) == [0]
    file = tmp_path / "pipeline.yml"
    file.write_text(
        "name: p\npriority: 1\ntransformations:\n- {id: m, type: field_name_mapping, mapping: {a: deep.b}}\n"
    )
    assert starts(estero.sigma(text, pipeline=file), events) == [0]
    file.write_text("transformations: 7")
    with pytest.raises(DataError, match="this is not a pipeline of pySigma"):
        estero.sigma(text, pipeline=file)
    with pytest.raises(DataError, match="there is no file"):
        estero.sigma(text, pipeline=tmp_path / "none.yml")


def test_queries_of_equal_rules_are_equal_and_can_be_pickled() -> None:
    query, other = estero.sigma(LOGINS), estero.sigma(LOGINS.replace("3, '10'", "3"))
    assert query == estero.sigma(LOGINS)
    assert hash(query) == hash(estero.sigma(LOGINS))
    assert query != other
    assert pickle.loads(pickle.dumps(query)) == query
    assert estero.query(str(query)) is not None
    assert repr(other).startswith('estero.query("SELECT * WHERE Event FILTER Event[Channel ILIKE')
    assert "EventID = 4624" in str(other)


def test_types_are_refused_and_explanations_need_no_events() -> None:
    query = estero.sigma(LOGINS)
    with pytest.raises(QueryError, match="rules in Sigma apply to events of all types, and kind would"):
        query.run([{"kind": "a", "User": "x"}], type="kind")
    assert "ILIKE" in str(query.explain())


def test_a_text_with_several_rules_is_no_query() -> None:
    with pytest.raises(QueryError, match="a query is made of one rule, and this text has 2: robot and t"):
        estero.sigma(f"{LOGINS}---\n{rule('{s: {a: b}, condition: s}')}")


def test_times_of_dicts_may_be_text() -> None:
    query = estero.sigma(rule("{s: {a: b}, condition: s}"), logsource=False)
    events = [{"at": "2026-01-01T00:00:01Z", "a": "x"}, {"at": "2026-01-01T00:00:00+00:00", "a": "b"}]
    (found,) = query.run(events, time="at")
    assert found.start == 0
    assert str(found.start_time) == "2026-01-01 00:00:00+00:00"
    with pytest.raises(DataError, match="'noon' is not a timestamp"):
        query.run([{"at": "noon", "a": "b"}], time="at")


def test_a_recognizer_gives_the_events_as_they_come() -> None:
    events = [{"a": text} for text in ("b", "x", "B")]
    recognizer = estero.sigma(rule("{s: {a: b}, condition: s}"), logsource=False).recognizer(events)
    assert [found.start for one in events for found in recognizer.push([one])] == [0, 2]


CORRELATION = """
title: failed
name: failed
logsource: {category: test}
detection: {s: {kind: fail}, condition: s}
---
title: Many failures
correlation:
  type: event_count
  rules: failed
  group-by: [user]
  timespan: 1m
  condition: {gte: 3}
"""


def test_a_correlation_gives_windows_that_are_no_parts_of_others() -> None:
    query = estero.sigma(CORRELATION, logsource=False)
    seconds = [0, 20, 60, 61, 200, 230, 260, 300]
    events = [{"t": second, "user": "ann", "kind": "fail"} for second in seconds]
    answer = query.run([*events, {"t": 301, "user": "bob", "kind": "fail"}], time="t", time_unit="s")
    assert [found.positions["Event"] for found in answer] == [(0, 1, 2), (1, 2, 3), (4, 5, 6)]
    assert [found.partition["user"] for found in answer] == ["ann"] * 3


@pytest.mark.parametrize(
    ("item", "value", "kind"),
    [
        ("hour: 10", "2026-01-01T10:00:00Z", "text"),
        ("cidr: 10.0.0.0/8", 10, "a number"),
        ("lt: 2", True, "true"),
    ],
)
def test_a_test_that_no_value_of_a_column_can_pass_is_a_warning(item: str, value: object, kind: str) -> None:
    query = estero.sigma(rule(f"{{s: {{a|{item}}}, condition: s}}"), logsource=False)
    with pytest.warns(EsteroWarning, match=f"a is {kind}.*, which is not read here"):
        assert starts(query, [{"a": value}]) == []


def test_an_hour_is_asked_of_times() -> None:
    query = estero.sigma(rule("{s: {a|hour: 10}, condition: s}"), logsource=False)
    assert starts(query, [{"a": dt.datetime(2026, 1, 1, hour, tzinfo=dt.UTC)} for hour in (9, 10)]) == [1]


def test_a_correlation_needs_a_time_and_warns_of_keys_that_are_missing() -> None:
    query = estero.sigma(CORRELATION, logsource=False)
    with pytest.raises(QueryError, match="a duration needs a time column"):
        query.run([{"user": "ann", "kind": "fail"}])
    with pytest.warns(EsteroWarning, match="no event has the field user"):
        assert query.run([{"t": 1, "kind": "fail"}] * 3, time="t", time_unit="s").count() == 0


WRONG = {
    "condition: {gte: 3}": {
        "condition: {lt: 1}": "a window has one event at least",
        "condition: {eq: 0}": "a window has one event at least",
        "condition: {gte: 1.5}": "a number of events is a whole number",
        f"condition: {{gte: {10**20}}}": "a number of events is less than 9223372036854775807",
        f"condition: {{gt: 2, lt: {2**63 - 1}}}": "a number of events is less than 9223372036854775807",
        "condition: {gte: 3, field: [v, 7]}": "the name of a field is a text, not 7",
        "condition: {gt: 2, lt: 3}": "no number is > 2 and < 3",
        "condition: {gte: 2, lt: x}": "'x' is no valid Sigma correlation condition count",
        "condition: {gte: 0}": "a window has one event at least",
        "condition: failed and failed": "Extended conditions",
        "": "without condition",
    },
    "type: event_count": {
        "type: value_sum": "reference",
        "type: value_count": "without field reference",
        "type: value_percentile": "reference",
        "type: 7": "a type is a text, not 7",
        "type: other": "no valid Sigma correlation type",
        "type: temporal": "there are 1 rules, not 3",
    },
    "rules: failed": {"rules: lost": "there is no rule lost", "rules: []": "a correlation has rules"},
    "timespan: 1m": {
        "timespan: soon": "Timespan 'soon' is invalid",
        "timespan: 60": "Timespan '60' is invalid",
        "timespan: 99999999999999d": "a timespan is at most 292 years long",
        "": "without timespan",
    },
    "group-by: [user]": {
        "group-by: [{a: b}]": "the name of a field is a text",
        "group-by: 7": "is a text, not 7",
    },
}


@pytest.mark.parametrize(
    ("part", "other", "said"), [(part, *case) for part, cases in WRONG.items() for case in cases.items()]
)
def test_what_is_wrong_with_a_correlation_is_said(part: str, other: str, said: str) -> None:
    text = CORRELATION.replace(part, other)
    with pytest.raises(QueryError, match=re.escape(said)):
        estero.sigma(text, logsource=False)


def test_the_count_of_a_window_may_be_within_a_range() -> None:
    query = estero.sigma(CORRELATION.replace("{gte: 3}", "{gt: 1, lte: 3}"), logsource=False)
    seconds = [0, 100, 110, 600, 610, 620, 630, 800]
    events = [{"t": second, "user": "ann", "kind": "fail"} for second in seconds]
    answer = query.run(events, time="t", time_unit="s")
    assert [found.positions["Event"] for found in answer] == [(1, 2), (4, 5, 6)]


@pytest.mark.filterwarnings("ignore:no event has the field:estero.EsteroWarning")
def test_a_counted_field_that_no_event_has_has_no_values() -> None:
    text = CORRELATION.replace("event_count", "value_count").replace("{gte: 3}", "{lt: 1, field: gone}")
    events = [{"t": second, "user": "ann", "kind": "fail"} for second in (0, 10, 100)]
    answer = estero.sigma(text, logsource=False).run(events, time="t", time_unit="s", until="end")
    assert [found.positions["Event"] for found in answer] == [(0, 1), (2,)]


@pytest.mark.parametrize("part", ["group-by: [v]", "condition: {gte: 1, field: v}"])
def test_structs_are_neither_counted_nor_groups(part: str) -> None:
    kind = "event_count" if part.startswith("group") else "value_count"
    text = CORRELATION.replace("event_count", kind).replace(
        "group-by: [user]" if part.startswith("group") else "condition: {gte: 3}", part
    )
    events = [{"t": 1, "user": "ann", "kind": "fail", "v": {"x": 1}}] * 3
    with pytest.warns(EsteroWarning, match="v is a struct, which is not read here"):
        assert estero.sigma(text, logsource=False).run(events, time="t", time_unit="s").count() == 0


def test_an_alias_names_a_rule_that_is_referred_to_by_its_id() -> None:
    text = CORRELATION.replace("name: failed", "name: failed\nid: 5013198a-70be-4d00-8b2c-4a5e1f2b3c4d")
    text = text.replace("rules: failed", "rules: 5013198a-70be-4d00-8b2c-4a5e1f2b3c4d")
    text = text.replace("[user]", "who\n  aliases: {who: {failed: user}}")
    events = [{"t": second, "user": "ann", "kind": "fail"} for second in range(3)]
    assert estero.sigma(text, logsource=False).run(events, time="t", time_unit="s").count() == 1


def test_percentiles_are_refused() -> None:
    text = CORRELATION.replace("event_count", "value_percentile").replace(
        "{gte: 3}", "{gte: 3, field: n, percentile: 95}"
    )
    with pytest.raises(QueryError, match="correlations of the type value_percentile are not taken"):
        estero.sigma(text, logsource=False)


def test_what_may_still_change_is_given_when_time_has_passed() -> None:
    query = estero.sigma(CORRELATION.replace("gte: 3", "eq: 2"), logsource=False)
    seconds = [0, 20, 200, 210, 220, 500, 560]
    events = [{"t": second, "user": "ann", "kind": "fail"} for second in seconds]
    (first, second) = query.run(events, time="t", time_unit="s")
    assert (first.positions["Event"], second.positions["Event"]) == ((0, 1), (3, 4))
    ended = query.run(events, time="t", time_unit="s", until="end")
    assert [found.positions["Event"] for found in ended][2:] == [(5, 6)]


def test_a_key_that_is_a_list_is_in_no_group() -> None:
    query = estero.sigma(CORRELATION, logsource=False)
    with pytest.warns(EsteroWarning, match="user is a list, which is not read here"):
        assert (
            query.run([{"t": 1, "user": ["ann"], "kind": "fail"}] * 3, time="t", time_unit="s").count() == 0
        )


def test_an_alias_is_one_field_of_all_rules() -> None:
    text = CORRELATION.replace("timespan: 1m", "timespan: 1m\n  aliases: {who: {failed: user}}").replace(
        "[user]", "[who]"
    )
    assert "PARTITION BY [user]" in str(estero.sigma(text, logsource=False))
    with pytest.raises(QueryError, match="the alias who has no field for the rule failed"):
        estero.sigma(text.replace("{failed: user}", "{other: user}"), logsource=False)


HOPS = """
title: into
name: into
logsource: {category: login}
detection: {s: {port: 22}, condition: s}
---
title: out of
name: out_of
logsource: {category: login}
detection: {s: {kind: net}, condition: s}
---
title: through
correlation:
  type: temporal_ordered
  rules: [into, out_of]
  group-by: host
  aliases: {host: {into: target, out_of: source}}
  timespan: 5m
"""


def hop(at: int, port: int, source: object, target: object) -> dict[str, object]:
    return {"t": at, "kind": "net", "port": port, "source": source, "target": target}


def test_a_correlation_of_a_correlation_is_refused() -> None:
    again = "{type: event_count, rules: much, timespan: 1h, condition: {gte: 2}}"
    text = CORRELATION.replace("title: Many failures", "title: Many failures\nname: much")
    text += f"---\ntitle: again\ncorrelation: {again}\n"
    with pytest.raises(
        QueryError, match="much is a correlation itself, whose windows are known only as time"
    ):
        estero.sigma(text, logsource=False)


def test_an_alias_may_be_another_field_in_each_rule() -> None:
    query = estero.sigma(HOPS, logsource=False)
    events = [hop(0, 22, "a", "b"), hop(1, 22, "c", "c"), hop(2, 80, "b", "e"), hop(3, 22, "f", "b")]
    answer = query.run(events, time="t", time_unit="s")
    assert [(found.partition, found.positions["Event"]) for found in answer] == [({"host": "b"}, (0, 2, 3))]
    assert answer.to_arrow()["host"].to_pylist() == ["b"]
    assert "PARTITION BY [target, source]" in str(query)
    assert "out_of  b1 with this key" in str(query.explain(estero.scan(events, time="t", time_unit="s")))


def test_an_alias_is_a_number_here_and_a_text_there() -> None:
    query = estero.sigma(HOPS, logsource=False)
    events = [hop(0, 22, None, "7"), hop(1, 80, 7.0, "x"), hop(2, 80, 2.5, None)]
    (found,) = query.run(events, time="t", time_unit="s")
    assert (found.partition, found.positions["Event"]) == ({"host": "7"}, (0, 1))


def test_a_column_that_is_called_as_the_alias_is_shown_as_it_is() -> None:
    query = estero.sigma(HOPS, logsource=False)
    events = [
        hop(0, 22, "a", "b") | {"host": "h", "into": 1},
        hop(1, 80, "b", "e") | {"host": "i", "into": 2},
    ]
    (found,) = query.run(events, time="t", time_unit="s")
    assert found.partition == {"host_": "b"}
    assert [one["host"] for one in found["Event"]] == ["h", "i"]


def test_what_is_not_told_of_rows_says_so() -> None:
    query = estero.sigma(HOPS, logsource=False)
    events = pa.Table.from_pylist([hop(0, 22, "a", "b"), hop(1, 80, "b", "e")])
    answer = query.run(events, time="t", time_unit="s")
    with pytest.raises(QueryError, match="reasons why not are not available for a correlation"):
        answer.funnel()
    with pytest.raises(QueryError, match="partial matches, funnels and reasons"):
        query.recognizer(events.schema, time="t", time_unit="s", partials=True)


def test_many_rules_over_nested_events_are_recognized_as_they_are_pushed() -> None:
    fields = ("a", "b", "c", "d")
    rules = estero.rules(
        {
            f"{field}{number}": estero.sigma(
                rule(f"{{s: {{{field}: v{number}}}, condition: s}}"), logsource=False
            )
            for field in fields
            for number in range(6)
        }
    )
    events = [
        {
            "t": f"2026-01-01T00:00:{place:02}Z",
            "Event": {"EventData": dict.fromkeys(fields, f"V{place % 7}")},
        }
        for place in range(14)
    ]
    due = {(f"{field}{place % 7}", place) for field in fields for place in range(14) if place % 7 < 6}
    assert {(found.rule, found.start) for found in rules.run(events, time="t")} == due
    recognizer = rules.recognizer(events[:1], time="t")
    pushed = [found for one in events for found in recognizer.push([one])]
    assert {(found.rule, found.start) for found in pushed} == due
