"""A set of rules gives for each rule what its query gives alone, however many share a recognition."""

from __future__ import annotations

import warnings
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import estero
from estero.plan.plan import Plan
from estero.recognize.rules import set_run
from estero.recognize.rules.groups import groups_of
from estero.reference.queries import Event
from strategies.full import full_queries
from strategies.parameters import with_parameters
from strategies.patterns import streams, to_table
from strategies.whole import whole_queries

MOST = settings.default.max_examples if settings.default else 10
LAYOUT: dict[str, Any] = {"type": "type", "time": "time", "time_unit": "s"}


@st.composite
def siblings(draw: st.DrawFn) -> list[estero.Query]:
    """Queries that differ in the numbers of their conditions alone, and one that does in nothing."""
    text, values = with_parameters(draw(st.one_of(full_queries(), whole_queries())))
    values = {name: value for name, value in values.items() if f"${name}" in text}
    shifts = draw(st.lists(st.integers(0, 2), min_size=1, max_size=3))
    return [estero.Query(text).bind(_shifted(values, shift)) for shift in (0, *shifts)]


def _shifted(values: dict[str, object], shift: int) -> dict[str, object]:
    return {
        name: value + shift if isinstance(value, int) and not isinstance(value, bool) else value
        for name, value in values.items()
    }


@st.composite
def rule_sets(draw: st.DrawFn) -> dict[str, estero.Query]:
    """Some queries of any kind, and some that are alike, in any order."""
    alike = draw(st.lists(siblings(), min_size=1, max_size=2))
    others = draw(st.lists(whole_queries().map(estero.Query), max_size=2))
    queries = draw(st.permutations([*(query for group in alike for query in group), *others]))
    return {f"rule {number}": query for number, query in enumerate(queries)}


def common(answer: estero.Answer, name: str) -> list[tuple[object, ...]]:
    """The rows of the common table for one rule."""
    return sorted((each.start, each.end, tuple(sorted(each.positions.items())), name) for each in answer)


@given(rule_sets(), streams(max_size=12), st.sampled_from([1, set_run.FEWEST]))
def test_each_rule_has_the_answer_of_its_query(
    rules: dict[str, estero.Query], events: list[Event], fewest: int
) -> None:
    with patch.object(set_run, "FEWEST", fewest):
        check_batch(rules, to_table(events))


def check_batch(rules: dict[str, estero.Query], table: pa.Table) -> None:
    """All that answers of a set say is what those of the queries say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", estero.EsteroWarning)
        answers = estero.rules(rules).run(table, **LAYOUT)
        alone = {name: query.run(table, **LAYOUT) for name, query in rules.items()}
    tables = answers.tables()
    counts = answers.counts()
    wanted: list[tuple[object, ...]] = []
    for name, answer in alone.items():
        rows = repr(answer.to_arrow().to_pylist())  # NaN equals nothing, and prints all the same
        assert repr(tables[name].to_pylist()) == rows, name
        assert repr(answers[name].to_arrow().to_pylist()) == rows
        assert counts[name] == answer.count(), name
        wanted += common(answer, name)
    together = answers.to_dicts()
    assert [row["end"] for row in together] == sorted(row["end"] for row in together)
    listed = [(row["start"], row["end"], _positions(row["positions"]), row["rule"]) for row in together]
    assert sorted(listed) == sorted(wanted)
    assert sorted(
        (each.start, each.end, tuple(sorted(each.positions.items())), each.rule) for each in answers
    ) == sorted(wanted)


def _positions(row: dict[str, list[int]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(sorted((label, tuple(places)) for label, places in row.items()))


@given(rule_sets(), streams(max_size=12), st.lists(st.integers(0, 3), min_size=1, max_size=8), st.data())
def test_rules_that_come_and_go_have_the_answers_of_their_time(
    rules: dict[str, estero.Query], events: list[Event], sizes: list[int], data: st.DataObject
) -> None:
    """Each is told what a recognizer of its own would tell that is there as long as it is."""
    rules = {name: query for name, query in rules.items() if "START" not in str(query) and endless(query)}
    assume(rules)
    table = to_table(sorted(events, key=lambda event: event.time or 0))
    schema = estero.scan(table.schema, **LAYOUT)
    first = list(rules)[: data.draw(st.integers(1, len(rules)))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", estero.EsteroWarning)
        together = estero.rules({name: rules[name] for name in first}).recognizer(schema)
        alone = {name: (0, rules[name].recognizer(schema)) for name in first}
        pushed = 0
        for size in [*sizes, table.num_rows]:
            name = data.draw(st.sampled_from(sorted(rules)))
            change = data.draw(st.sampled_from(["nothing", "put in", "take out"]))
            if change == "put in":
                (together.replace if name in alone else together.add)(name, rules[name])
                alone[name] = pushed, rules[name].recognizer(schema)
            elif change == "take out" and name in alone:
                together.remove(name)
                del alone[name]
            batch = table.slice(pushed, size)
            check_push(together.push(batch), {n: (at, own.push(batch)) for n, (at, own) in alone.items()})
            pushed += batch.num_rows
        assert together.position == pushed
        check_push(together.close(), {name: (at, own.close()) for name, (at, own) in alone.items()})


def endless(query: estero.Query) -> bool:
    """Whether a query has answers on a stream without an end."""
    try:
        query.recognizer(estero.scan(to_table([]).schema, **LAYOUT))
    except estero.QueryError:
        return False
    return True


def check_push(answers: estero.RuleAnswers, alone: dict[str, tuple[int, estero.Answer]]) -> None:
    """The answers of a push are those of recognizers, whose positions begin later."""
    assert set(answers.names) == set(alone)
    tables, counts = answers.tables(), answers.counts()
    for name, (begun, answer) in alone.items():
        wanted = [
            (each.start + begun, each.end + begun, moved(each.positions, begun), repr(each.measures))
            for each in answer
        ]
        told = [
            (each.start, each.end, moved(each.positions, 0), repr(each.measures)) for each in answers[name]
        ]
        assert told == wanted, name
        assert tables[name].num_rows == counts[name] == len(wanted)


def moved(positions: dict[str, tuple[int, ...]], by: int) -> list[tuple[str, tuple[int, ...]]]:
    """Positions of a stream that began earlier by some events."""
    return [(label, tuple(place + by for place in places)) for label, places in positions.items()]


def test_rules_of_one_shape_are_recognized_together_and_others_are_not() -> None:
    text = "SELECT * WHERE A AS a ; B AS b FILTER a[x > {}] AND b[x > {}] {}"
    rules = estero.rules(
        {
            "one": text.format(1, 2, ""),
            "two": text.format(3, 4, ""),
            "longer": text.format(1, 2, "WITHIN 5 EVENTS"),
            "consuming": text.format(1, 2, "CONSUME BY ANY"),
            "consuming too": text.format(2, 3, "CONSUME BY ANY"),
        }
    )
    plans: dict[str, Plan] = dict(rules.explain().plans)
    assert [group.names for group in groups_of(plans)] == [
        ("one", "two"),
        ("longer",),
        ("consuming",),
        ("consuming too",),
    ]


def test_an_event_that_many_rules_want_counts_once_for_each() -> None:
    events = pa.table({"type": ["A", "B", "B"], "x": [5, 5, 9], "k": [1, 1, 2]})
    rules = {f"over {n}": f"SELECT * WHERE A AS a ; B AS b FILTER b[x > {n}]" for n in range(10)}
    answers = estero.rules(rules).run(events, type="type")
    assert answers.counts() == {f"over {n}": (n < 5) + (n < 9) for n in range(10)}
    assert answers.count() == 14
    keyed = {name: f"{text} PARTITION BY [k]" for name, text in rules.items()}
    assert estero.rules(keyed).run(events, type="type").counts() == {
        f"over {n}": int(n < 5) for n in range(10)
    }
