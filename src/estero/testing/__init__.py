"""A test kit for queries: events written as a short text, and an assertion that tries every engine.

>>> from estero.testing import assert_matches
>>> assert_matches("A ; B PARTITION BY [k]", "A(k=1)@0s B(k=2)@1s B(k=1)@5s", [{"A": 0, "B": 2}])
"""

from __future__ import annotations

from estero.testing.assertion import assert_matches
from estero.testing.short_events import events

__all__ = ["assert_matches", "events"]
