"""The clause MATCH_RECOGNIZE as text: what it may say, and what is said of mistakes."""

from __future__ import annotations

import pytest
from hypothesis import given

from estero import QueryError
from estero.language.row_patterns.patterns import parse_row_pattern
from estero.language.row_patterns.statements import Placed, placed_clauses
from estero.language.row_patterns.tree import Repetition, RowPattern, Variable, nodes_of
from strategies.row_patterns import row_patterns


def parsed(text: str) -> RowPattern:
    return parse_row_pattern(text, 0, len(text))


def clause(inner: str, before: str = "SELECT * FROM t", behind: str = "") -> Placed:
    (placed,) = placed_clauses(f"{before} MATCH_RECOGNIZE ({inner}) {behind}")
    return placed


def mistakes(inner: str) -> list[str]:
    with pytest.raises(QueryError) as raised:
        clause(inner)
    return [raised.value.message, *(other.message for other in raised.value.others)]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("(up down+ (flat | up)*?)", "up down+ (flat | up)*?"),
        ("()", "()"),
        ("(^ up{2} down{,3} flat{1,}? $)", "^ up{2} down{0,3} flat+? $"),
        ("(PERMUTE(a, b c) {- d+ -})", "PERMUTE(a, b c) {- d+ -}"),
        ('("first row" permute)', '"first row" permute'),
        ("(a -- a comment\n /* and | one */ b ? ?)", "a b??"),
        ("(größe+)", "größe+"),
    ],
)
def test_patterns_are_read(text: str, printed: str) -> None:
    assert str(parsed(text)) == printed


@given(row_patterns)
def test_a_pattern_that_is_printed_is_read_as_one_of_the_same_text(pattern: RowPattern) -> None:
    assert str(parsed(f"({pattern})")) == str(pattern)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("(a{3,2})", "the lower bound 3 is larger than the upper bound 2", "write {2,3}"),
        ("(a{0} b)", "a quantifier whose upper bound is 0 matches nothing", "leave the part out"),
        ("(a{} b)", "a quantifier without a number", "write {n}, {n,}, {,m} or {n,m}"),
        ("(a{3000000000})", "bounds go up to 2,147,483,647", "leave the upper bound out: {n,}"),
        ("(a, b)", "',' cannot stand here in PATTERN", "commas are for PERMUTE"),
        ("(a | | b)", "'|' cannot stand here in PATTERN", "an alternative that is empty is written ()"),
        ("(a+*)", "'*' cannot stand here in PATTERN", "a quantifier comes after a variable or a group"),
        ("(a {x})", "'{' cannot stand here in PATTERN", "bounds are written {n}"),
        ("(a b", "PATTERN ends too early", ""),
    ],
)
def test_wrong_patterns_have_a_message_and_a_hint(text: str, message: str, hint: str) -> None:
    with pytest.raises(QueryError) as raised:
        parsed(text)
    assert raised.value.message == message
    assert raised.value.hint.startswith(hint)


def test_large_bounds_are_not_written_out() -> None:
    assert len(list(nodes_of(parsed("((a{700}){700})")))) == 3


def test_the_parts_of_a_clause() -> None:
    read = clause(
        """PARTITION BY g ORDER BY t DESC NULLS LAST, n
        MEASURES first(a.x) AS x, count(*) AS "how many"
        ALL ROWS PER MATCH OMIT EMPTY MATCHES AFTER MATCH SKIP TO FIRST b
        PATTERN (a b*) WITHIN INTERVAL '1' HOUR SUBSET u = (a, b), w = (b)
        DEFINE a AS x > 1, b AS y IN (1, 2)"""
    ).clause
    assert [key.text for key in read.order_by] == ["t DESC NULLS LAST", "n"]
    assert [measure.name for measure in read.measures] == ["x", "how many"]
    assert (read.rows, read.skip.to) == ("all nonempty", "first")
    assert read.within is not None
    assert read.within.text == "INTERVAL '1' HOUR"
    assert read.names["u"] == {"a", "b"}
    assert [condition.expression.text for condition in read.define] == ["x > 1", "y IN (1, 2)"]


@pytest.mark.parametrize(
    ("before", "behind", "source", "relation"),
    [
        ("SELECT * FROM t", "", "t", "t"),
        ("SELECT * FROM main.t", "AS m", "main.t", "t"),
        ("SELECT * FROM t AS u", "m", "t AS u", "u"),
        ("SELECT * FROM (VALUES (1)) v(x)", "", "(VALUES (1)) v(x)", "v"),
        ("SELECT * FROM range(5)", "", "range(5)", "range"),
        ("SELECT * FROM range(5) r(x)", "", "range(5) r(x)", "r"),
        ("SELECT * FROM a JOIN (SELECT 1 AS x)", "ON true", "(SELECT 1 AS x)", ""),
        ("SELECT * FROM a, b", "", "b", "b"),
    ],
)
def test_a_clause_is_applied_to_what_stands_before_it(
    before: str, behind: str, source: str, relation: str
) -> None:
    placed = clause("MEASURES 1 AS one PATTERN (a) DEFINE a AS TRUE", before, behind)
    text = f"{before} "
    assert text[placed.source.start : placed.source.end] == source
    assert placed.relation == relation


def test_all_mistakes_are_found_at_once() -> None:
    assert mistakes(
        "ORDER BY t MEASURES 1 AS x, 2 AS X PATTERN (a b) SUBSET a = (c) DEFINE c AS TRUE, a AS TRUE, a AS 1"
    ) == [
        "Duplicate name: there are two measures 'X'",
        "'a' is already a pattern variable",
        "unknown pattern variable 'c' in SUBSET",
        "DEFINE has the variable 'c', which PATTERN does not use",
        "'a' is defined more than once",
    ]


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        ("", "MATCH_RECOGNIZE is empty"),
        ("MEASURES 1 AS x DEFINE a AS TRUE", "MATCH_RECOGNIZE requires a PATTERN clause"),
        ("MEASURES 1 AS x PATTERN (a)", "MATCH_RECOGNIZE requires a DEFINE clause"),
        ("PATTERN (a) MEASURES 1 AS x DEFINE a AS TRUE", "MEASURES comes after PATTERN"),
        ("MEASURES 1 AS x PATTERN (a) DEFINE AUTO", "DEFINE AUTO is not supported"),
        ("MEASURES 1 AS x SEEK PATTERN (a) DEFINE a AS TRUE", "SEEK is not supported in MATCH_RECOGNIZE"),
        (
            "MEASURES 1 AS x MEASURES 2 AS y PATTERN (a) DEFINE a AS TRUE",
            "there is more than one MEASURES clause",
        ),
        ("MEASURES x PATTERN (a) DEFINE a AS TRUE", "a measure has no name"),
        ("MEASURES 1 AS x PATTERN (a) DEFINE a", "a variable has no condition"),
        (
            "PATTERN (a) DEFINE a AS TRUE",
            "ONE ROW PER MATCH without MEASURES and PARTITION BY gives a table without columns",
        ),
        (
            "MEASURES 1 AS x ONE ROW PER MATCH OMIT EMPTY MATCHES PATTERN (a) DEFINE a AS TRUE",
            "OMIT EMPTY MATCHES does not belong to ONE ROW PER MATCH",
        ),
        (
            "MEASURES 1 AS x AFTER MATCH SKIP PATTERN (a) DEFINE a AS TRUE",
            "AFTER MATCH says where to continue",
        ),
        (
            "MEASURES 1 AS x AFTER MATCH SKIP TO b PATTERN (a) DEFINE a AS TRUE",
            "'b' is not a pattern variable",
        ),
        (
            "ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN ({- a -} b) DEFINE a AS TRUE",
            "the exclusion {- -} is not allowed with ALL ROWS PER MATCH WITH UNMATCHED ROWS",
        ),
    ],
)
def test_mistakes_in_the_clause(inner: str, message: str) -> None:
    assert mistakes(inner) == [message]


def test_an_error_stands_under_its_place() -> None:
    with pytest.raises(QueryError) as raised:
        clause("MEASURES 1 AS x PATTERN (a b{2,1}) DEFINE a AS TRUE")
    assert str(raised.value).splitlines()[1:3] == [
        "  1 | SELECT * FROM t MATCH_RECOGNIZE (MEASURES 1 AS x PATTERN (a b{2,1}) DEFINE a AS TRUE) ",
        "    |                                                              ^^^^^",
    ]


def test_a_repetition_keeps_its_variable() -> None:
    assert parsed("(a+)") == Repetition(Variable("a"), 1, None)
