"""Examples beside rules: what is tried, and what is said of those that fail."""

from __future__ import annotations

from pathlib import Path

import pytest

import estero
from estero.testing import check_rules

PAIR = "SELECT * WHERE A ; B WITHIN 10 SECONDS"
EXAMPLES = """
- events: A@0s B@5s B@20s
  expected: [{A: 0, B: 1}]
- events:
    - {type: A, time: "2026-01-01T00:00:00"}
    - {type: B, time: "2026-01-01T00:00:03"}
  expected: 1
"""


def put(directory: Path, **files: str) -> Path:
    for name, text in files.items():
        (directory / name.replace("__", ".")).write_text(text)
    return directory


def test_examples_of_all_languages_are_tried(tmp_path: Path) -> None:
    put(tmp_path, pair__ceql=PAIR, pair__test__yml=EXAMPLES)
    sequence = "sequence [any where k == 1] [any where k == 2]"
    put(tmp_path, e__eql=sequence, e__test__yml="[{events: [{k: 1}, {k: 2}], expected: [{1: 0, 2: 1}]}]")
    assert check_rules(tmp_path) == 3
    assert check_rules([tmp_path / "pair.ceql", tmp_path / "e.eql"]) == 3
    assert estero.rules(tmp_path).names == ("pair", "e")


def test_all_that_is_not_as_expected_is_told_with_its_place(tmp_path: Path) -> None:
    put(
        tmp_path,
        pair__ceql=PAIR,
        pair__test__yml=EXAMPLES.replace("B: 1}", "B: 2}") + "- {events: A@0s B@30s, expected: 0}",
    )
    with pytest.raises(AssertionError, match=r"pair\.test\.yml, example 1: SELECT") as caught:
        check_rules(tmp_path)
    assert "1 missing and 1 unexpected" in str(caught.value)
    assert "example 2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not YAML"),
        ("a: 1", "a list of mappings"),
        ("[{events: A@0s}]", "needs expected"),
        ("[{events: A@0s, expectd: 1}]", "no entry 'expectd'"),
    ],
)
def test_what_is_no_example_is_refused(tmp_path: Path, text: str, message: str) -> None:
    put(tmp_path, pair__ceql=PAIR, pair__test__yml=text)
    with pytest.raises(estero.DataError, match=message):
        check_rules(tmp_path)


def test_examples_need_their_rule(tmp_path: Path) -> None:
    put(tmp_path, pair__ceql=PAIR)
    with pytest.raises(estero.DataError, match="no examples"):
        check_rules(tmp_path)
    put(tmp_path, other__test__yml=EXAMPLES)
    with pytest.raises(AssertionError, match="there is no rule other beside it"):
        check_rules(tmp_path)
    put(tmp_path, other__test__yml="[{events: 5, expected: 1, rule: pair}]")
    with pytest.raises(AssertionError, match="there is no rule other beside it"):
        check_rules(tmp_path)
