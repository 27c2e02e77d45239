"""Plans of sequences and samples: what they refuse, what they say, and which rules share them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import estero
from estero.plan.samples import MOST_CONDITIONS

EVENTS = pa.table({"t": [0, 1, 2], "c": ["A", "B", "C"], "k": ["x", "x", "x"], "n": [1, 2, 3]})
LAYOUT: dict[str, Any] = {"time": "t", "time_unit": "s"}


def message(text: str, **layout: Any) -> str:
    with pytest.raises(estero.QueryError) as caught:
        estero.eql(text).run(EVENTS, **layout).count()
    return caught.value.message


def test_keys_that_are_never_equal_are_refused() -> None:
    text = 'sequence [any where c == "A"] by k [any where c == "B"] by n'
    assert message(text, **LAYOUT) == (
        "events are joined by keys that are never equal: k is a string, n is an integer"
    )


def test_a_span_needs_times() -> None:
    text = 'sequence with maxspan=1s [any where c == "A"] [any where c == "B"]'
    assert message(text) == "maxspan needs times, and these events have none, or times without a unit"


def test_a_sample_has_as_many_conditions_as_a_number_has_bits() -> None:
    conditions = " ".join(f"[any where n == {number}]" for number in range(MOST_CONDITIONS + 1))
    assert (
        message(f"sample by k {conditions}", **LAYOUT)
        == "a sample has at most 63 conditions, and this one has 64"
    )


def test_partial_matches_are_told_of_ceql_alone() -> None:
    query = estero.eql('sequence [any where c == "A"] [any where c == "B"]')
    said = "partial matches, funnels and reasons why not are available for queries in CEQL, not in EQL"
    answer = query.run(EVENTS, **LAYOUT)
    for ask in (answer.funnel, answer.partials, answer.why_not):
        with pytest.raises(estero.QueryError) as caught:
            ask()
        assert caught.value.message == said
    with pytest.raises(estero.QueryError) as caught:
        query.recognizer(EVENTS.schema, partials=True, **LAYOUT)
    assert caught.value.message == said


def test_explain_names_the_stages_and_what_must_be_missing() -> None:
    query = estero.eql(
        'sequence by k with maxspan=9s ![any where n == 7] [any where c == "A"] ![any where n == 8] '
        '[any where c == "B"] ![any where n == 9] until [any where n == 6]'
    )
    said = str(query.explain(EVENTS, **LAYOUT))
    assert "missing before: b0" in said
    assert "until (drops candidates): b5" in said
    assert "2: b1" in said
    assert "missing in between: b2" in said
    assert "4: b3" in said
    assert "missing after: b4" in said


def test_positions_are_those_of_stages_and_of_other_queries_all() -> None:
    (event,) = estero.eql(
        'sequence with maxspan=9s [any where c == "A"] ![any where n == 7] [any where c == "C"]'
    ).run(EVENTS, **LAYOUT)
    assert event.all_positions == (0, None, 2)
    (event,) = estero.query("SELECT * WHERE (C AS late ALL A AS early) WITHIN 9 SECONDS").run(
        EVENTS, type="c", **LAYOUT
    )
    assert event.all_positions == (0, 2)


def test_a_recognizer_tells_which_candidates_are_open() -> None:
    query = estero.eql(
        'sequence by k with maxspan=9s [any where c == "A"] [any where c == "B"] [any where n == 9]'
    )
    recognizer = query.recognizer(EVENTS.schema, **LAYOUT)
    recognizer.push(EVENTS)
    progress = recognizer.progress()
    assert (progress.steps, progress.oldest_start, progress.expires) == ({2: 1}, 0, 9)
