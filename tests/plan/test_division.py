"""How tasks on Spark divide the work of a query, and what explain says of it."""

from __future__ import annotations

import pyarrow as pa
import pytest

import estero
from estero.language.syntax.parser import parse_query
from estero.language.tree.schema import Kind, Schema
from estero.plan.division import (
    Division,
    buckets_in_words,
    division_in_words,
    division_of,
    may_be_shared,
    why_not_shared,
)
from estero.plan.plan import Layout
from estero.plan.rules import plan_of

TYPES = {name: {"k": Kind.INT, "key": Kind.STRING, "t": Kind.INT} for name in ("A", "B")}
TIMED = Layout(Schema(TYPES, time="t"), tick_ns=None)
UNTIMED = Layout(Schema(TYPES))
NO_KEY = (
    "one ordered task, because not all events of an answer share a key, "
    "and without a window the stream cannot be cut"
)
SHARED = f"{NO_KEY}; if many complex events are expected, several tasks share the enumeration"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * WHERE A ; B",
        "SELECT * WHERE A+",
        "SELECT STRICT * WHERE A+",
        "SELECT * WHERE A OR (A ; B)",
        "SELECT * WHERE A AS a ; B AS b FILTER a.k * b.k > 60",
    ],
)
def test_one_order_without_a_window_may_be_shared(text: str) -> None:
    assert may_be_shared(plan_of(parse_query(text), TIMED))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * WHERE A",
        "SELECT * WHERE A OR B",
        "SELECT * WHERE A ; B LIMIT 3",
        "SELECT * WHERE A ; B WITHIN 9 [t]",
        "SELECT * WHERE A ; B WITHIN 9 EVENTS",
        "SELECT * WHERE A ; B PARTITION BY [key]",
        "SELECT * WHERE A ; B CONSUME BY ANY",
        "SELECT NEXT * WHERE A ; B",
        "SELECT LAST * WHERE A ; B",
        "SELECT MAX * WHERE A+",
        "SELECT * WHERE A AS a ; B AS b FILTER a.k < b.k",
        "SELECT * WHERE A AS a ; B AS b ; B AS c FILTER a.k = b.k AND b.key = c.key",
    ],
)
def test_what_has_few_or_unknown_numbers_of_complex_events_or_is_divided_otherwise_may_not(text: str) -> None:
    assert not may_be_shared(plan_of(parse_query(text), TIMED))


def test_a_window_is_no_help_without_a_time() -> None:
    assert may_be_shared(plan_of(parse_query("SELECT * WHERE A ; B WITHIN 9 EVENTS"), UNTIMED))


def test_only_filters_that_decide_what_is_forgotten_forbid_it() -> None:
    forgetting = "SELECT * WHERE A AS a ; B AS b FILTER a.k * b.k > 60 CONSUME BY ANY"
    reason = "filters after enumeration decide what CONSUME BY drops, so each task would enumerate all"
    assert why_not_shared(plan_of(parse_query(forgetting), TIMED)) == reason
    for text in (forgetting.removesuffix(" CONSUME BY ANY"), "SELECT * WHERE A ; B CONSUME BY ANY"):
        assert why_not_shared(plan_of(parse_query(text), TIMED)) == ""


def test_explain_says_so() -> None:
    assert f"\n  on Spark: {SHARED}\n" in str(estero.query("SELECT * WHERE A ; B").explain())
    events = pa.table({"type": ["A"], "k": [1], "key": [1]})
    chain = estero.query("SELECT * WHERE A AS a ; B AS b ; B AS c FILTER a.k = b.k AND b.key = c.key")
    text = str(chain.explain(events, type="type", types=("A", "B")))
    assert f"\n  on Spark: {NO_KEY}\n" in text


KEYS = "each task processes some of the partition keys"
HOT = "; a key with too many events for one task is split into ranges of time"
BUCKET = "one ordered task, with one bucket for all events, because "
RANGES = "each task processes a range of time and the window before it"
SORTED = "; before that, one ordered task numbers all events, because WITHIN 9 EVENTS counts them"


@pytest.mark.parametrize(
    ("rest", "division", "said"),
    [
        ("", Division(by_key=False), SHARED),
        (" PARTITION BY [key]", Division(by_key=True), KEYS),
        (
            " PARTITION BY [key] WITHIN 9 [t]",
            Division(by_key=True, cut=True),
            f"{KEYS}{HOT}, and so are all keys if the footers of files have the times",
        ),
        (
            " PARTITION BY [key] WITHIN 9 EVENTS",
            Division(by_key=True, positions=True, cut=True),
            KEYS + SORTED,
        ),
        (" PARTITION BY [key] WITHIN 9 [t] CONSUME BY PARTITION", Division(by_key=True), KEYS),
        (
            " PARTITION BY [key] WITHIN 9 [t] CONSUME BY ANY",
            Division(by_key=False),
            "one ordered task, because the events that CONSUME BY drops depend on all earlier events",
        ),
        (" WITHIN 9 [t]", Division(by_key=False, cut=True), RANGES),
        (
            " WITHIN 9 EVENTS",
            Division(by_key=False, positions=True, cut=True),
            f"{RANGES}; before that, all events are counted, because WITHIN 9 EVENTS counts them",
        ),
        (" LIMIT 2", Division(by_key=False), NO_KEY),
    ],
)
def test_explain_says_how_the_work_is_divided(rest: str, division: Division, said: str) -> None:
    plan = plan_of(parse_query(f"SELECT * WHERE A ; B{rest}"), TIMED)
    assert (division_of(plan), division_in_words(plan)) == (division, said)


def test_places_in_the_stream_of_a_key_are_counted_by_key() -> None:
    plan = plan_of(parse_query("SELECT * WHERE A : B PARTITION BY [key] WITHIN 9 [t]"), TIMED)
    assert division_of(plan) == Division(by_key=True, ordinals=True, cut=True)
    assert division_in_words(plan) == KEYS + HOT


@pytest.mark.parametrize("end", [" PARTITION BY [key] WITHIN 9 [t]", " WITHIN 9 [t]", ""])
def test_a_predicate_of_values_divides_the_work_as_its_query_does(end: str) -> None:
    estero.predicate(name="near")(lambda *_: True)
    with_it = plan_of(parse_query(f"SELECT * WHERE A AS a ; B AS b FILTER near(a.k, b.k, 3){end}"), TIMED)
    without = plan_of(parse_query(f"SELECT * WHERE A AS a ; B AS b{end}"), TIMED)
    assert division_of(with_it) == division_of(without)
    assert with_it.predicates
    assert not with_it.needs_positions


def test_a_predicate_of_events_sees_their_positions() -> None:
    estero.predicate(name="near")(lambda *_: True)
    plan = plan_of(
        parse_query("SELECT * WHERE A AS a ; B AS b FILTER near(a, b.k) PARTITION BY [key]"), TIMED
    )
    assert division_of(plan) == Division(by_key=True, positions=True)
    why = "near(a, b.k) receives events with their positions; of attributes it would receive only values"
    assert (
        division_in_words(plan) == f"{KEYS}; before that, one ordered task numbers all events, because {why}"
    )
    assert buckets_in_words(plan) == BUCKET + why


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (
            " PARTITION BY [key]",
            "each bucket has some of the partition keys, and one task processes a bucket",
        ),
        (
            " WITHIN 9 [t]",
            f"{BUCKET}not all events of an answer share a key",
        ),
        (
            " PARTITION BY [key] CONSUME BY ANY",
            f"{BUCKET}the events that CONSUME BY drops depend on all earlier events",
        ),
    ],
)
def test_explain_says_how_buckets_divide_a_stream(rest: str, said: str) -> None:
    assert buckets_in_words(plan_of(parse_query(f"SELECT * WHERE A ; B{rest}"), TIMED)) == said


def test_explain_says_that_shown_positions_need_one_order() -> None:
    plan = plan_of(parse_query("SELECT * WHERE A ; B PARTITION BY [key]"), TIMED)
    why = "because the answer shows positions"
    assert division_in_words(plan, positions=True).endswith(f"one ordered task numbers all events, {why}")
    assert buckets_in_words(plan, positions=True).endswith(why)
