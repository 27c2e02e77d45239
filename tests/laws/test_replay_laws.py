"""A rule that begins with a replay of what is kept answers as if it had always been there."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import estero
from estero.plan.look_back import look_back_of
from estero.plan.plan import Plan, Window
from estero.recognize.rules import kept_events
from estero.recognize.rules.conditions import dispatch
from estero.recognize.rules.set_recognizer import RuleSetRecognizer
from estero.reference.queries import Event
from laws.test_rule_set_laws import MOST, fewest_dispatched, restored, rule_sets
from laws.test_sequence_laws import ASKED
from strategies.absences import absent_queries
from strategies.patterns import streams, to_table
from strategies.staged import Row, Staged, rows, table_of

LAYOUT: dict[str, Any] = {"type": "type", "time": "time", "time_unit": "s"}
SEQUENCES: dict[str, Any] = {"time": "t", "time_unit": "s"}
Rules = Mapping[str, estero.Query]


@settings(max_examples=MOST)
@given(
    rule_sets(),
    st.lists(absent_queries().map(estero.Query), max_size=2),
    streams(max_size=16),
    st.integers(0, 4),
    fewest_dispatched,
    st.data(),
)
def test_a_rule_with_a_replay_answers_as_if_it_had_always_been_there(
    rules: dict[str, estero.Query],
    absent: list[estero.Query],
    events: list[Event],
    lateness: int,
    fewest: int,
    data: st.DataObject,
) -> None:
    rules |= {f"absent {number}": query for number, query in enumerate(absent)}
    with patch.multiple(dispatch, FEWEST=fewest, SPARE=0):
        check_replays(rules, to_table(data.draw(nearly_in_order(events))), LAYOUT, lateness, data)


@settings(max_examples=MOST)
@given(st.lists(ASKED, min_size=1, max_size=3), rows(), st.integers(0, 4), st.data())
def test_so_does_a_sequence_by_stages(
    asked: list[Staged], events: list[Row], lateness: int, data: st.DataObject
) -> None:
    rules = {f"rule {number}": one.query for number, one in enumerate(asked)}
    check_replays(rules, table_of(data.draw(nearly_in_order(events))), SEQUENCES, lateness, data)


SHAPES = (
    "SELECT * WHERE A AS a ; B AS b FILTER b[n > {}] WITHIN 4 SECONDS",
    "SELECT MAX * WHERE A+ ; C AS c FILTER c[n > {}] PARTITION BY k WITHIN 3 EVENTS",
)


@settings(max_examples=MOST)
@given(streams(min_size=20, max_size=40), st.integers(0, 3), st.sampled_from([1, 3, 99]), st.data())
def test_so_do_rules_that_are_handed_over_to_others_of_their_shape(
    events: list[Event], lateness: int, fewest: int, data: st.DataObject
) -> None:
    rules = {f"{text[:10]} {n}": estero.query(text.format(n)) for text in SHAPES for n in (-2, -1, 0)}
    with patch.multiple(dispatch, FEWEST=fewest, SPARE=0):
        check_replays(rules, to_table(data.draw(nearly_in_order(events))), LAYOUT, lateness, data)


def test_a_rule_goes_on_with_those_of_its_shape_once_a_window_has_passed() -> None:
    table = pa.table({"type": ["A", "B"] * 20, "time": range(40), "n": [1] * 40, "k": [1] * 40})
    names = [text.format(0) for text in SHAPES]
    recognizer = estero.rules(dict(zip(names, names, strict=True))).recognizer(
        table.schema, **LAYOUT, keep=["4 seconds", "3 events"]
    )
    recognizer.push(table.slice(0, 10))
    for text in SHAPES:
        recognizer.add(text.format(-1), text.format(-1), replay=True)

    def groups() -> list[int]:
        return [len(group.plans) for reading in recognizer._readings for group in reading.groups]

    recognizer.push(table.slice(10, 3))
    assert groups() == [1, 1, 1, 1]
    recognizer.push(table.slice(13, 2))
    recognizer.push(table.slice(15, 2))
    assert groups() == [2, 2]


@st.composite
def nearly_in_order(draw: st.DrawFn, events: list[Any]) -> list[Any]:
    """Events of which some come later than others that are behind them."""
    delays = draw(st.lists(st.sampled_from([0, 0, 0, 1, 3]), min_size=len(events), max_size=len(events)))
    places = sorted(range(len(events)), key=lambda place: (place + delays[place], place))
    return [events[place] for place in places]


def endless(rules: Rules, schema: pa.Schema, layout: Mapping[str, Any]) -> dict[str, Plan]:
    """The plans of the rules that have answers on a stream without an end."""
    plans: Mapping[str, Plan] = estero.rules(rules).explain(schema.empty_table(), **layout).plans
    return {name: plan for name, plan in plans.items() if plan.window is not None or not plan.decides_later}


def check_replays(
    rules: Rules, table: pa.Table, layout: Mapping[str, Any], lateness: int, data: st.DataObject
) -> None:
    """Rules come, go and change at random, with a replay and without one, beside a set that never changes.

    No more is kept than the rule needs that looks back furthest.
    """
    plans = endless(rules, table.schema, layout)
    known = {name: look_back_of(plan) for name, plan in plans.items()}
    reaches = {name: reach for name, reach in known.items() if isinstance(reach, Window)}
    assume(reaches)
    rules = {name: rules[name] for name in plans}
    furthest = [
        max((reach.length for reach in reaches.values() if reach.in_positions == counted), default=None)
        for counted in (False, True)
    ]
    keep = [
        length if unit is None else f"{length} {unit}"
        for length, unit in zip(furthest, (None, "events"), strict=True)
        if length is not None
    ]
    how = {**layout, "lateness": lateness, "keep": keep}
    there = {name: rules[name] for name in data.draw(st.lists(st.sampled_from(sorted(rules)), min_size=1))}
    with warnings.catch_warnings(), patch.object(kept_events, "_LOOSE", data.draw(st.integers(2, 4))):
        warnings.simplefilter("ignore", estero.EsteroWarning)
        always = estero.rules({name: rules[name] for name in reaches}).recognizer(table.schema, **how)
        changing = estero.rules(there).recognizer(table.schema, **how)
        alike = {name for name in there if name in reaches}
        pushed = 0
        while pushed < table.num_rows:
            for _ in range(data.draw(st.integers(0, 3))):
                change(changing, rules, there, alike, reaches, data)
            if data.draw(st.sampled_from(["go on", "go on", "restore"])) == "restore":
                changing = restored(changing, there)
            batch = table.slice(pushed, data.draw(st.integers(1, 5)))
            pushed += batch.num_rows
            check_same(changing.push(batch), always.push(batch), alike)
            match data.draw(st.sampled_from(["go on", "go on", "flush", "advance"])):
                case "flush":
                    check_same(changing.flush(), always.flush(), alike)
                case "advance" if always.watermark is not None:
                    time = always.watermark + data.draw(st.integers(0, 3))
                    check_same(changing.advance(time), always.advance(time), alike)
        for _ in range(data.draw(st.integers(0, 2))):
            change(changing, rules, there, alike, reaches, data)
        assert (changing.position, changing.late) == (always.position, always.late)
        assert changing.metrics()["kept_events"] == always.metrics()["kept_events"]
        check_same(changing.close(), always.close(), alike)


def change(
    recognizer: RuleSetRecognizer,
    rules: Rules,
    there: dict[str, estero.Query],
    alike: set[str],
    reaches: Mapping[str, Window],
    data: st.DataObject,
) -> None:
    """Puts a rule in, with a replay or without one, or takes it out.

    Those that are `alike` answer as if they had always been there.
    """
    name = data.draw(st.sampled_from(sorted(rules)))
    what = data.draw(st.sampled_from(["replay", "replay", "begin now", "take out"]))
    put = recognizer.replace if name in there else recognizer.add
    match what:
        case "replay" if name in reaches:
            put(name, rules[name], replay=True)
            there[name] = rules[name]
            alike.add(name)
        case "replay":
            with pytest.raises(estero.QueryError, match="the rule cannot begin with a replay"):
                put(name, rules[name], replay=True)
        case "begin now":
            put(name, rules[name])
            there[name] = rules[name]
            alike.discard(name)
        case _:
            alike.discard(name)
            if there.pop(name, None) is not None:
                recognizer.remove(name)


def check_same(answers: estero.RuleAnswers, others: estero.RuleAnswers, names: set[str]) -> None:
    """The answers of some rules are the same."""
    for name in sorted(names):
        assert repr(answers[name].to_arrow().to_pylist()) == repr(others[name].to_arrow().to_pylist()), name
        assert answers.counts()[name] == others.counts()[name]
