"""Rules in Sigma hold of the events of which the reference semantics says so."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import event, given

import estero
from estero.reference.sigma import detects
from strategies.sigma_rules import PLACEHOLDERS, detections, events


@pytest.mark.filterwarnings("ignore:no event has the field:estero.EsteroWarning")
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
