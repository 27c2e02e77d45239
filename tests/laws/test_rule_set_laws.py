"""A set of rules gives for each rule what its query gives alone, however many share a recognition."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import estero
from estero.plan.plan import Plan
from estero.recognize.recognizers.continuous import ContinuousRecognizer
from estero.recognize.rules.conditions import dispatch
from estero.recognize.rules.groups import groups_of
from estero.recognize.rules.set_recognizer import RuleSetRecognizer
from estero.reference.queries import Event
from laws.test_thread_laws import divided
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
    return [query for shift in (0, *shifts) for query in _bound(text, _shifted(values, shift))]


def _bound(text: str, values: dict[str, object]) -> list[estero.Query]:
    """The query with these values; none where it is wrong with them, as one of a repetition may be."""
    try:
        return [estero.Query(text).bind(values)]
    except estero.QueryError:
        return []


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


@given(rule_sets(), streams(max_size=12), st.sampled_from([1, dispatch.FEWEST]))
def test_each_rule_has_the_answer_of_its_query(
    rules: dict[str, estero.Query], events: list[Event], fewest: int
) -> None:
    with patch.object(dispatch, "FEWEST", fewest):
        check_batch(rules, to_table(events), threads=1)


@given(
    rule_sets(),
    streams(max_size=12),
    st.sampled_from([1, dispatch.FEWEST]),
    st.sampled_from([2, 3, 8]),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_several_threads_share_rules(
    rules: dict[str, estero.Query],
    events: list[Event],
    fewest: int,
    threads: int,
    shortest: int,
    batch: int,
) -> None:
    with patch.object(dispatch, "FEWEST", fewest), divided(shortest, batch):
        check_batch(rules, to_table(events), threads=threads)


def check_batch(rules: dict[str, estero.Query], table: pa.Table, threads: int) -> None:
    """All that answers of a set say is what those of the queries say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", estero.EsteroWarning)
        answers = estero.rules(rules).run(table, **LAYOUT, threads=threads)
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


fewest_dispatched = st.sampled_from([1, 3, dispatch.FEWEST])


@given(
    rule_sets(),
    streams(max_size=12),
    st.lists(st.integers(0, 3), min_size=1, max_size=8),
    fewest_dispatched,
    st.data(),
)
def test_rules_that_come_and_go_have_the_answers_of_their_time(
    rules: dict[str, estero.Query], events: list[Event], sizes: list[int], fewest: int, data: st.DataObject
) -> None:
    with patch.multiple(dispatch, FEWEST=fewest, SPARE=0):
        check_come_and_go(rules, events, sizes, data)


def check_come_and_go(
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
            if data.draw(st.sampled_from(["go on", "go on", "restore"])) == "restore":
                together = restored(together, {name: rules[name] for name in alone})
                alone = {n: (at, estero.restore(rules[n], own.snapshot())) for n, (at, own) in alone.items()}
            batch = table.slice(pushed, size)
            check_push(together.push(batch), {n: (at, own.push(batch)) for n, (at, own) in alone.items()})
            pushed += batch.num_rows
        assert together.position == pushed
        assert together.names == tuple(alone)
        check_push(together.close(), {name: (at, own.close()) for name, (at, own) in alone.items()})


def restored(recognizer: RuleSetRecognizer, rules: Mapping[str, estero.Query | str]) -> RuleSetRecognizer:
    """The recognizer of these rules that goes on where another one is."""
    state = recognizer.snapshot()
    again = estero.restore(estero.rules(dict(reversed(list(rules.items())))), state)
    assert again.names == recognizer.names
    assert again.snapshot() == state
    return again


@settings(max_examples=MOST // 2)
@given(
    rule_sets(),
    streams(max_size=16),
    st.lists(st.integers(1, 3), min_size=1, max_size=8),
    st.integers(0, 4),
    fewest_dispatched,
    st.data(),
)
def test_rules_go_on_from_a_snapshot_as_if_they_had_never_stopped(
    rules: dict[str, estero.Query],
    events: list[Event],
    sizes: list[int],
    lateness: int,
    fewest: int,
    data: st.DataObject,
) -> None:
    with patch.multiple(dispatch, FEWEST=fewest, SPARE=0):
        check_restored(rules, events, sizes, lateness, data)


def check_restored(
    rules: dict[str, estero.Query], events: list[Event], sizes: list[int], lateness: int, data: st.DataObject
) -> None:
    """With events that come out of order or too late, and rules that come and go while some are held back."""
    rules = {name: query for name, query in rules.items() if "START" not in str(query) and endless(query)}
    assume(rules)
    table = to_table(events)
    schema = estero.scan(table.schema, **LAYOUT)
    there = {name: rules[name] for name in list(rules)[: data.draw(st.integers(1, len(rules)))]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", estero.EsteroWarning)
        one = estero.rules(there).recognizer(schema, lateness=lateness)
        other = estero.rules(there).recognizer(schema, lateness=lateness)
        alone = {name: (0, query.recognizer(schema, lateness=lateness)) for name, query in there.items()}
        pushed = 0
        for size in [*sizes, table.num_rows]:
            name = data.draw(st.sampled_from(sorted(rules)))
            change = data.draw(st.sampled_from(["nothing", "nothing", "put in", "take out"]))
            for recognizer in (one, other) if change != "nothing" else ():
                if change == "put in":
                    (recognizer.replace if name in there else recognizer.add)(name, rules[name])
                elif name in there:
                    recognizer.remove(name)
            if change == "put in":
                there[name] = rules[name]
            elif change == "take out":
                there.pop(name, None)
            if change != "nothing":
                alone.pop(name, None)
            other = restored(other, there)
            batch = table.slice(pushed, size)
            pushed += batch.num_rows
            check_alike(one, other, one.push(batch), other.push(batch), alone, batch)
        check_alike(one, other, one.close(), other.close(), alone, None)


def check_alike(
    one: RuleSetRecognizer,
    other: RuleSetRecognizer,
    answers: estero.RuleAnswers,
    others: estero.RuleAnswers,
    alone: dict[str, tuple[int, ContinuousRecognizer]],
    batch: pa.Table | None,
) -> None:
    """Two recognizers of rules say the same, and of rules that were always there what these say alone."""
    assert repr(answers.to_dicts()) == repr(others.to_dicts())
    assert answers.counts() == others.counts()
    assert (one.names, one.late, one.position) == (other.names, other.late, other.position)
    assert (one.held_back, one.watermark) == (other.held_back, other.watermark)
    for name, (_, own) in alone.items():
        answer = own.close() if batch is None else own.push(batch)
        assert repr(answers[name].to_arrow().to_pylist()) == repr(answer.to_arrow().to_pylist())


def test_a_rule_sees_nothing_that_was_pushed_before_it_came() -> None:
    """Not even what is held back, whether rules that share its conditions wait for that or not."""
    text = "SELECT * WHERE A AS a ; B AS b FILTER b[x > {}]"
    table = pa.table({"type": ["A", "B", "A", "B"], "x": [5, 5, 5, 5], "t": [2, 1, 3, 4]})
    recognizer = estero.rules({"first": text.format(1)}).recognizer(
        table.schema, type="type", time="t", time_unit="s", lateness="9s"
    )
    recognizer.push(table.slice(0, 2))
    recognizer.add("same", text.format(1))
    recognizer.add("direct", "SELECT * WHERE A AS a : B AS b")
    recognizer = restored(
        recognizer,
        {"first": text.format(1), "same": text.format(1), "direct": "SELECT * WHERE A AS a : B AS b"},
    )
    recognizer.push(table.slice(2, 1))
    recognizer.add("last", text.format(2))
    recognizer.push(table.slice(3, 1))
    assert recognizer.flush().counts() == {"first": 2, "same": 1, "direct": 1, "last": 0}


def test_a_set_without_rules_goes_on_counting() -> None:
    table = pa.table({"type": ["A", "B"], "k": [1, 1]})
    recognizer = estero.rules({"ab": "SELECT * WHERE A ; B PARTITION BY [k]"}).recognizer(
        table.schema, type="type"
    )
    recognizer.push(table)
    recognizer.remove("ab")
    recognizer = restored(recognizer, {})
    recognizer.push(table)
    recognizer.add("ab", "SELECT * WHERE A AS a ; B AS b PARTITION BY [k]")
    assert [(each.start, each.end) for each in recognizer.push(table)] == [(4, 5)]


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


def test_what_a_rule_that_is_gone_compared_is_no_part_of_a_state() -> None:
    keyed, plain = "SELECT * WHERE A AS a ; B AS b FILTER a.k <= b.k", "SELECT * WHERE A AS a ; B AS b"
    table = pa.table({"type": ["A", "B", "A"], "k": [1, 1, 1], "t": [1, 2, 2]})
    recognizer = estero.rules({"keyed": keyed, "plain": plain}).recognizer(
        table.schema, type="type", time="t", time_unit="s", lateness="1s"
    )
    recognizer.push(table)
    recognizer.remove("keyed")
    assert recognizer.held_back
    assert restored(recognizer, {"plain": plain}).flush().counts() == {"plain": 1}
