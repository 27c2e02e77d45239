"""What each rule finds, and what it must not."""

from __future__ import annotations

from pathlib import Path

import pytest

import estero
from estero.testing import assert_matches

RULES = {file.stem: file for file in (Path(__file__).parents[1] / "rules").glob("*.ceql")}
TRIES = " ".join(f"failed(user=ann)@{second}s" for second in range(5))
ORDERS = "ordered(id=1)@0h ordered(id=2)@1h shipped(id=2)@3h ordered(id=3)@60h"
CASES = [
    ("guessed_password", f"{TRIES} ok(user=ann)@9s", [{"failed": [0, 1, 2, 3, 4], "ok": 5}]),
    ("guessed_password", f"{TRIES} ok(user=bob)@9s", []),
    ("guessed_password", f"{TRIES} ok(user=ann)@2m", []),
    ("order_not_shipped", ORDERS, [{"ordered": 0}]),
]


@pytest.mark.parametrize(("rule", "stream", "expected"), CASES)
def test_a_rule_finds_what_it_should(rule: str, stream: str, expected: list[dict[str, object]]) -> None:
    assert_matches(RULES[rule].read_text("utf-8"), stream, expected, engines=["process"])


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_well_written_and_has_a_case(rule: str) -> None:
    assert estero.check(RULES[rule].read_text("utf-8")) == []
    assert rule in {name for name, *_ in CASES}
