"""A test kit for queries: events written as a short text, and an assertion that tries every engine.

>>> from estero.testing import assert_matches
>>> stream = "A(k=1)@0s B(k=2)@1s B(k=1)@5s"
>>> query = "SELECT * WHERE A ; B PARTITION BY [k]"
>>> assert_matches(query, stream, [{"A": 0, "B": 2}], engines=["process"])
"""

from __future__ import annotations

from estero.testing.assertion import assert_matches
from estero.testing.rule_examples import check_rules
from estero.testing.short_events import events

__all__ = ["assert_matches", "check_rules", "events"]
