"""Numbers over windows: what is timed is right."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks import counting
from benchmarks.counting import ITERATION, PLAIN, Wrong, check, measured


@pytest.mark.parametrize("pattern", [PLAIN, ITERATION])
@pytest.mark.parametrize("window", [20, 250])
def test_numbers_are_those_of_a_plain_program(pattern: str, window: int) -> None:
    check(pattern, window, events=600)


def test_a_wrong_number_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "plain_counts", lambda *_: [1, 2, 3])
    with pytest.raises(Wrong):
        check(PLAIN, 20, events=50)


def test_each_question_has_its_seconds() -> None:
    figures = measured(PLAIN, 20, 200)
    assert figures["bits"] > 5
    assert all(figures[name] >= 0 for name in ("recognize", "count", "first of a share", "ten drawn"))
