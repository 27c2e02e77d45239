"""Rules in Sigma hold of the events of which the reference semantics says so."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
import yaml
from hypothesis import event, given, settings
from hypothesis import strategies as st

import estero
from estero.reference.sigma import detects
from estero.reference.sigma_windows import windows
from laws.test_whole_queries import MOST
from strategies.sigma_rules import PLACEHOLDERS, aggregations, correlations, detections, events, timed_events

COLUMNS = pa.schema(
    [("t", pa.int64()), *((name, pa.string()) for name in "kuwovx"), ("n", pa.int64()), ("f", pa.float64())]
)
"""The columns of `timed_events`."""


@pytest.mark.filterwarnings("ignore:.*(no event has the field|is not read here):estero.EsteroWarning")
@given(detections(), events())
def test_a_rule_gives_the_events_that_it_holds_of(
    detection: dict[str, Any], given_events: list[dict[str, Any]]
) -> None:
    rule = {"title": "drawn", "logsource": {"category": "any"}, "detection": detection}
    text = yaml.safe_dump(rule, allow_unicode=True, sort_keys=False)
    query = estero.sigma(text, placeholders=PLACEHOLDERS, logsource=False)
    numbered = [{"at": place, **one} for place, one in enumerate(given_events)]
    due = [place for place, one in enumerate(given_events) if detects(detection, one, PLACEHOLDERS)]
    event("some" if due else "none")
    assert [found.start for found in query.run(numbered, time="at")] == due


@pytest.mark.filterwarnings("ignore:.*no event has the field:estero.EsteroWarning")
@given(correlations(), timed_events(), st.sampled_from((1, 2)), st.booleans())
def test_a_correlation_gives_the_windows_of_the_reference(
    drawn: tuple[dict[str, Any], dict[str, Any]],
    given_events: list[dict[str, Any]],
    threads: int,
    ended: bool,
) -> None:
    section, rules = drawn
    query = correlated(section, rules)
    ended = ended and " FOR " in str(query)
    due = windows(section, rules, given_events, [one["t"] for one in given_events], ended=ended)
    answer = query.run(given_events, time="t", time_unit="s", threads=threads, until="end" if ended else None)
    event(f"{section['type']} {'some' if due else 'none'} {'with aliases' if 'aliases' in section else ''}")
    assert sorted(found.positions["Event"] for found in answer) == due
    assert answer.count() == len(due)


@pytest.mark.filterwarnings("ignore:.*(no event has the field|is not read here):estero.EsteroWarning")
@given(detections(), detections(), events())
def test_a_filter_leaves_the_events_that_hold_of_it(
    detection: dict[str, Any], added: dict[str, Any], given_events: list[dict[str, Any]]
) -> None:
    if isinstance(added["condition"], list):
        added = {**added, "condition": added["condition"][0]}
    source = {"category": "any"}
    documents = [
        {"title": "added", "logsource": source, "filter": {"rules": "any", **added}},
        {"title": "drawn", "logsource": {**source, "product": "one"}, "detection": detection},
    ]
    text = yaml.safe_dump_all(documents, allow_unicode=True, sort_keys=False)
    query = estero.sigma(text, placeholders=PLACEHOLDERS, logsource=False)
    numbered = [{"at": place, **one} for place, one in enumerate(given_events)]
    due = [
        place
        for place, one in enumerate(given_events)
        if detects(detection, one, PLACEHOLDERS) and detects(added, one, PLACEHOLDERS)
    ]
    assert [found.start for found in query.run(numbered, time="at")] == due


@pytest.mark.filterwarnings("ignore:.*(no event has the field|is not read here):estero.EsteroWarning")
@given(aggregations(), timed_events())
def test_an_aggregation_of_the_first_specification_gives_the_windows_of_the_reference(
    drawn: tuple[dict[str, Any], dict[str, Any], dict[str, Any]], given_events: list[dict[str, Any]]
) -> None:
    detection, section, rules = drawn
    rule = {"title": "drawn", "logsource": {"category": "any"}, "detection": detection}
    query = estero.sigma(yaml.safe_dump(rule, sort_keys=False), logsource=False)
    due = windows(section, rules, given_events, [one["t"] for one in given_events], ended=True)
    answer = query.run(given_events, time="t", time_unit="s", until="end" if " FOR " in str(query) else None)
    event(f"{section['type']} {'some' if due else 'none'}")
    assert sorted(found.positions["Event"] for found in answer) == due


@pytest.mark.filterwarnings("ignore:.*no event has the field:estero.EsteroWarning")
@settings(max_examples=MOST)
@given(correlations(), timed_events(), st.lists(st.integers(1, 5), min_size=1), st.booleans(), st.booleans())
def test_a_correlation_gives_the_same_windows_in_pushes_of_any_size(
    drawn: tuple[dict[str, Any], dict[str, Any]],
    given_events: list[dict[str, Any]],
    sizes: list[int],
    restarts: bool,
    together: bool,
) -> None:
    section, rules = drawn
    query = correlated(section, rules)
    due = windows(section, rules, given_events, [one["t"] for one in given_events], ended=True)
    asked = estero.rules({"it": query, "all": estero.query("SELECT * WHERE Event")}) if together else query
    recognizer = asked.recognizer(COLUMNS, time="t", time_unit="s")
    found: list[Any] = []
    pushes, first = itertools.cycle(sizes), 0
    while first < len(given_events):
        last = first + next(pushes)
        found += recognizer.push(given_events[first] if last == first + 1 else given_events[first:last])
        first = last
        if restarts:
            recognizer = estero.restore(asked, recognizer.snapshot())
    if " FOR " in str(query):
        found += recognizer.advance(given_events[-1]["t"] + 20)
    else:
        found += recognizer.close()
    if together:
        found = [one for one in found if one.rule == "it"]
    assert sorted(one.positions["Event"] for one in found) == due


def correlated(section: dict[str, Any], rules: dict[str, Any]) -> estero.Query:
    """The query of a correlation of rules."""
    documents = [
        *(
            {"title": name, "name": name, "logsource": {"category": "any"}, "detection": rules[name]}
            for name in rules
        ),
        {"title": "drawn", "correlation": section},
    ]
    return estero.sigma(yaml.safe_dump_all(documents, sort_keys=False), logsource=False)


@pytest.mark.filterwarnings("ignore:.*cannot hold in full:estero.EsteroWarning")
@settings(max_examples=MOST // 2)
@given(st.lists(detections(), min_size=9, max_size=12), events())
def test_many_rules_together_give_what_they_give_alone(
    several: list[dict[str, Any]], given_events: list[dict[str, Any]]
) -> None:
    rules = {}
    for place, detection in enumerate(several):
        text = yaml.safe_dump({"title": "drawn", "logsource": {"category": "any"}, "detection": detection})
        rules[f"r{place}"] = estero.sigma(text, placeholders=PLACEHOLDERS, logsource=False)
    numbered = [{"at": place, **one} for place, one in enumerate(given_events)]
    due = {
        (f"r{place}", start)
        for place, detection in enumerate(several)
        for start, one in enumerate(given_events)
        if detects(detection, one, PLACEHOLDERS)
    }
    assert {(found.rule, found.start) for found in estero.rules(rules).run(numbered, time="at")} == due
