"""The benchmark of one complex event for each incident checks what it times."""

from __future__ import annotations

import pytest

from benchmarks import by_start


@pytest.mark.parametrize("window", by_start.WINDOWS)
def test_what_is_timed_is_right(window: int | None) -> None:
    by_start.check(window)


def test_a_wrong_answer_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_start, "plainly", lambda *_: [])
    with pytest.raises(by_start.Wrong):
        by_start.check(100)


@pytest.mark.parametrize("keys", by_start.KEYS)
def test_sessions_are_those_of_a_plain_program(keys: int) -> None:
    by_start.check_sessions(keys)
