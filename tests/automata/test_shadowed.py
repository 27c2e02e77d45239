"""Alternatives that are never taken: which ones are told, and that nothing changes without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import estero
from estero import EsteroWarning
from estero.automata.row_patterns.shadowed import shadowed
from estero.language.row_patterns.patterns import parse_row_pattern
from estero.language.row_patterns.tree import (
    Anchor,
    Choice,
    Excluded,
    Nothing,
    Permutation,
    Repetition,
    RowPattern,
    Variable,
    parts_of,
)
from estero.language.row_patterns.tree import Sequence as PatternSequence
from estero.reference.row_patterns import Matcher
from strategies.row_patterns import row_patterns


def told(text: str) -> list[str]:
    return [str(found.alternative) for found in shadowed(parse_row_pattern(f"({text})", 0, len(text) + 2))]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("(a | a)", ["a"]),
        ("(a | b | a) c", ["a"]),
        ("a+ | a a", ["a a"]),
        ("a b* | a b b | a", ["a b b", "a"]),
        ("(a | b){2} | b a", ["b a"]),
        ("a* | b", ["b"]),
        ("(a? | b) c*", ["b"]),
        ("(a? | b)+", ["b"]),
        ("() | a | b", ["a", "b"]),
        ("x (a | (b | b))", ["b"]),
        ("(A | a)", ["a"]),
        ("PERMUTE(a, b) | b a", ["b a"]),
        ("a{2,5} | a{3}", ["a{3}"]),
        # these may be taken
        ("a | b", []),
        ("a | a+", []),
        ("(a? | b) c", []),
        ("x{2} (a* | b) c", []),
        ("(x (a? | b)){2}", []),
        ("PERMUTE(a? | b, c)", []),
        ("a | {- a -}", []),
        ("a+ | ^ a", []),
        ("(^ a | a)", []),
    ],
)
def test_which_alternatives_are_told(pattern: str, wanted: list[str]) -> None:
    assert [text.lower() for text in told(pattern)] == wanted


def test_alternatives_that_are_hard_to_compare_are_not_told() -> None:
    assert told("(a | b)* a (a | b){30} | (a | b)* a (a | b){29} b") == []
    assert told("((a? b?){9} c?){9} | (a{700}){700}") in ([], ["(a{700}){700}"])
    assert told(" | ".join(f"a{number}" for number in range(200))) == []


def without(pattern: RowPattern, left_out: Sequence[RowPattern]) -> RowPattern:
    """A pattern without some of its alternatives."""
    parts = [
        without(part, left_out) for part in parts_of(pattern) if all(part is not out for out in left_out)
    ]
    match pattern:
        case Variable() | Anchor() | Nothing():
            return replace(pattern)
        case Choice():
            return parts[0] if len(parts) == 1 else Choice(tuple(parts))
        case PatternSequence():
            return PatternSequence(tuple(parts))
        case Permutation():
            return Permutation(tuple(parts))
        case Excluded():
            return Excluded(parts[0])
        case Repetition(_, least, most, greedy):
            return Repetition(parts[0], least, most, greedy)


@given(
    st.one_of(
        row_patterns, st.lists(row_patterns, min_size=2, max_size=3).map(lambda parts: Choice(tuple(parts)))
    ),
    st.lists(st.sets(st.sampled_from("abc")), max_size=6),
)
def test_without_them_all_matches_are_the_same(pattern: RowPattern, rows: list[set[str]]) -> None:
    pattern = without(pattern, [])  # no part is in two places
    left_out = [found.alternative for found in shadowed(pattern)]
    define = {name: lambda row, _labels, _start, name=name: name in rows[row] for name in "abc"}
    smaller = without(pattern, left_out)
    for start in range(len(rows)):
        assert Matcher(smaller, define, len(rows)).at(start) == Matcher(pattern, define, len(rows)).at(start)


def test_a_statement_warns_of_each() -> None:
    text = """
        SELECT * FROM t MATCH_RECOGNIZE (
            ORDER BY i MEASURES count(*) AS n
            PATTERN (c (a | a) b+ | c a b)
            DEFINE a AS i > 1)"""
    table = pa.table({"i": [1, 2, 3]})
    with pytest.warns(EsteroWarning) as caught:
        assert estero.sql(text, t=table).to_arrow().to_pylist() == [{"n": 3}]
    never = "the alternative c a b of PATTERN is never taken: it is"
    assert [str(warning.message).splitlines() for warning in caught] == [
        [
            "the alternative a of PATTERN is never taken: it is the same as one before it",
            "  4 |             PATTERN (c (a | a) b+ | c a b)",
            "    |                             ^",
            "    hint: leave it out",
        ],
        [
            f"{never} behind c (a | a) b+, which accepts all that it accepts",
            "  4 |             PATTERN (c (a | a) b+ | c a b)",
            "    |                                     ^^^^^",
            "    hint: write it first, or leave it out",
        ],
    ]
    assert all(warning.filename == __file__ for warning in caught)
