"""Samples of EQL, of which a key has several: what they find, say, refuse and keep."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import estero

LAYOUT: dict[str, Any] = {"time": "t", "time_unit": "s"}
TEXT = 'sample by k [any where c in ("A", "B")] [any where c in ("A", "C")]'
IN_ORDER = [(1, 0), (0, 2), (1, 2), (2, 0), (3, 0), (3, 2), (0, 6), (1, 6), (2, 6), (3, 6)]
"""The samples of the key x among `EVENTS`."""


def table(letters: str, keys: str) -> pa.Table:
    count = len(letters)
    return pa.table({"t": range(count), "c": list(letters), "k": [None if k == "-" else k for k in keys]})


EVENTS = table("ABABCAC", "xxxxy-x")


def positions(most: int, tail: str = "", **how: Any) -> list[Any]:
    query = estero.eql(TEXT + tail, max_samples_per_key=most)
    return [found.all_positions for found in query.run(EVENTS, **LAYOUT, **how)]


@pytest.mark.parametrize("most", [1, 2, 3, 4, 9, 10, 1000])
def test_a_key_has_as_many_samples_as_are_asked_for(most: int) -> None:
    assert positions(most) == IN_ORDER[:most]


def test_pipes_and_size_take_of_all_samples() -> None:
    assert positions(4, " | tail 3 | head 2") == IN_ORDER[1:3]
    assert positions(4, size=3) == IN_ORDER[:3]


def test_a_state_goes_on_between_two_samples_of_a_key() -> None:
    query = estero.eql(TEXT, max_samples_per_key=7)
    recognizer = query.recognizer(EVENTS.schema, **LAYOUT)
    found = list(recognizer.push(EVENTS[:4]))
    recognizer = estero.restore(query, recognizer.snapshot())
    found += recognizer.push(EVENTS[4:])
    assert [one.all_positions for one in found] == IN_ORDER[:7]
    for most in (1, 6):
        with pytest.raises(estero.EsteroError, match="planned otherwise"):
            estero.restore(estero.eql(TEXT, max_samples_per_key=most), recognizer.snapshot())


@pytest.mark.parametrize("most", [2, 5])
def test_a_key_holds_no_more_than_its_samples_need(most: int) -> None:
    query = estero.eql(TEXT, max_samples_per_key=most)
    recognizer = query.recognizer(EVENTS.schema, **LAYOUT)
    events = table("B" * (1000 + most) + "A", "x" * (1001 + most))
    sizes = []
    for first, last in ((0, most), (most, 500), (500, 1000 + most), (1000 + most, 1001 + most)):
        found = list(recognizer.push(events[first:last]))
        sizes.append(len(recognizer.snapshot()))
    assert sizes[1] == sizes[2] > sizes[3], "of a complete key nothing but the key is kept"
    assert sizes[1] - sizes[0] < 100, "times and positions are longer"
    assert [one.all_positions for one in found] == [(place, 1000 + most) for place in range(most)]


def test_rules_that_differ_in_it_are_each_their_own() -> None:
    rules = estero.rules({str(most): estero.eql(TEXT, max_samples_per_key=most) for most in (1, 2, 5)})
    found = list(rules.run(EVENTS, **LAYOUT))
    for most in (1, 2, 5):
        assert [one.all_positions for one in found if one.rule == str(most)] == IN_ORDER[:most]


def test_it_is_a_part_of_the_query_and_not_of_its_text() -> None:
    one, two = estero.eql(TEXT), estero.eql(TEXT, max_samples_per_key=2)
    assert str(one) == str(two)
    assert one != two
    assert one == estero.eql(TEXT, max_samples_per_key=1)
    assert hash(one) != hash(two)
    assert repr(one) == f"estero.eql({TEXT!r})"
    assert repr(two) == f"estero.eql({TEXT!r}, max_samples_per_key=2)"
    assert eval(repr(two), {"estero": estero}) == two == pickle.loads(pickle.dumps(two))
    assert "each key has at most 2 samples and 4 events" in str(two.explain(EVENTS, **LAYOUT))


@pytest.mark.parametrize("most", [0, -1, 1001, 10**9])
def test_a_number_of_samples_that_is_out_of_range_is_refused(most: int) -> None:
    with pytest.raises(ValueError, match="max_samples_per_key is a whole number from 1 to 1,000, not"):
        estero.eql(TEXT, max_samples_per_key=most)


@pytest.mark.parametrize("most", ["a", True, 1.5, None])
def test_a_number_of_samples_that_is_none_is_refused(most: Any) -> None:
    with pytest.raises(TypeError, match=r"eql\(\) takes an integer as max_samples_per_key, not"):
        estero.eql(TEXT, max_samples_per_key=most)


@pytest.mark.parametrize(
    ("text", "what"),
    [("any where true", "single events"), ("sequence [any where true] [any where true]", "a sequence")],
)
def test_only_samples_have_a_number_for_each_key(text: str, what: str) -> None:
    assert str(estero.eql(text, max_samples_per_key=1)) == text
    with pytest.raises(estero.QueryError) as caught:
        estero.eql(text, max_samples_per_key=2)
    assert caught.value.message == f"max_samples_per_key is for samples, and this query asks for {what}"
    assert caught.value.expected == "sample by host.name […] […]"
    assert caught.value.span.start == 0
