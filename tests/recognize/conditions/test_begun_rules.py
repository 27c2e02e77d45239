"""Rules of a set leave out later events until they begin, and miss nothing then."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pyarrow as pa
import pytest

import estero
from estero.answers.complex_event import ComplexEvent
from estero.recognize.rules.conditions import dispatch
from estero.recognize.rules.conditions.asked_conditions import Rows
from estero.recognize.rules.conditions.begun_rules import BegunBatch, RuleConditions
from estero.recognize.rules.conditions.dispatch import HeldRows

EVENTS = pa.schema([("@timestamp", pa.timestamp("us")), ("c", pa.string())])
RULES = {
    "pair": 'sequence with maxspan=5s [any where c == "a"] [any where c == "b"]',
    "until": 'sequence [any where c == "a"] [any where c == "b"] until [any where c in ("a", "x")]',
    "absent": 'sequence with maxspan=5s ![any where c == "n"] [any where c == "a"] [any where c == "b"]',
}


@pytest.fixture(autouse=True)
def dispatched() -> Iterator[None]:
    """Conditions are dispatched, however few rules there are."""
    with patch.object(dispatch, "FEWEST", 1):
        yield


def table(*events: tuple[int, str]) -> pa.Table:
    times = [second * 1_000_000 for second, _ in events]
    return pa.table([pa.array(times, EVENTS[0].type), [text for _, text in events]], EVENTS)


def answers(*pushes: list[tuple[int, str]], restored: bool) -> list[tuple[str, int]]:
    """The rules that have answers, with the positions of their ends, push by push."""
    rules = estero.rules({name: estero.eql(text) for name, text in RULES.items()})
    recognizer = rules.recognizer(EVENTS, time="@timestamp")
    found: list[ComplexEvent] = []
    for events in pushes:
        found += recognizer.push(table(*events))
        if restored:
            recognizer = estero.restore(rules, recognizer.snapshot())
    found += recognizer.close()
    return sorted((str(event.rule), event.end) for event in found)


@pytest.mark.parametrize("restored", [False, True])
def test_what_begins_in_one_push_ends_in_another(*, restored: bool) -> None:
    assert answers([(0, "b"), (1, "a")], [(6, "b")], restored=restored) == [("absent", 2), ("pair", 2)]
    assert answers([(1, "a")], [(7, "b"), (8, "b")], restored=restored) == []
    assert answers([(1, "n")], [(3, "a"), (4, "b")], restored=restored) == [("pair", 2)]


def test_what_has_not_begun_is_not_asked() -> None:
    asked = []
    mattering = BegunBatch.mattering

    def followed(
        batch: BegunBatch, rule: RuleConditions, held: HeldRows, *, is_open: bool
    ) -> list[tuple[Rows, int]]:
        pairs = list(mattering(batch, rule, held, is_open=is_open))
        asked.append([(rows.tolist(), bit) for rows, bit in pairs])
        return pairs

    with patch.object(BegunBatch, "mattering", followed):
        recognizer = estero.rules({"pair": estero.eql(RULES["pair"])}).recognizer(EVENTS, time="@timestamp")
        for events in ([(0, "b")], [(1, "b"), (2, "a"), (3, "b")], [(7, "b")], [(8, "b")]):
            recognizer.push(table(*events))
        recognizer.close()
    assert asked == [[([1], 0), ([2], 1)], [([0], 1)]], "rows by condition, of pushes that matter"
