"""A text with several mistakes has several errors, each at its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import estero
from estero.language.check.queries import check_query
from estero.language.syntax.recover import read
from estero.language.tree.query import QueryTree
from language.trees import queries

PIECES = ["SELECT", "WHERE", "FROM", "FILTER", "KEEP", "PARTITION BY", "WITHIN", "CONSUME BY", "LIMIT", "*"]
PIECES += [
    "a",
    "b AS x",
    ";",
    "(",
    ")",
    "[",
    "]",
    "a[x = 1]",
    "'",
    '"',
    "5",
    "EVENTS",
    "[k]",
    "PARTITION",
    "+",
]


def said(text: str) -> list[str]:
    return [error.message for error in estero.check(text)]


def test_each_broken_clause_has_an_error_and_the_rest_is_checked() -> None:
    assert said("SELECT x WHERE a ; b FILTER a[x = = 1] FILTER c[y] WITHIN 5 SECUNDS LIMIT 0") == [
        "no event is marked x",
        "== is not an operator",
        "no event is marked c",
        "unknown unit SECUNDS",
        "LIMIT keeps at least one complex event for each position",
    ]


def test_nothing_is_said_of_what_depends_on_a_part_that_cannot_be_read() -> None:
    assert said("SELECT x WHERE a ; ; b FILTER c[y]") == ["there is no part between ; and ;"]
    assert said("SELECT * WHERE a PARTITION BY 1 CONSUME BY PARTITION") == ["'1' is not expected here"]
    assert said("SELECT * FROM s t WHERE u>a") == ["t is not expected here"]


def test_a_clause_may_be_broken_where_the_next_one_starts() -> None:
    assert said("SELECT * WHERE a FILTER WITHIN 0 EVENTS") == [
        "there is nothing between FILTER and WITHIN",
        "a window must be longer than 0 events",
    ]


def test_the_exception_has_all_errors() -> None:
    with pytest.raises(estero.QueryError) as caught:
        estero.query("SELECT * WHERE a FILTER a[x == 1] LIMIT 0")
    assert [error.message for error in (caught.value, *caught.value.others)] == [
        "== is not an operator",
        "LIMIT keeps at least one complex event for each position",
    ]


@given(queries)
def test_a_text_without_mistakes_is_read_whole(tree: QueryTree) -> None:
    text = str(tree)
    reading = read(text)
    assert (reading.tree, reading.errors, reading.lost) == (tree, (), frozenset())
    found = check_query(tree)
    assert reading.with_checks(found) == found


@given(st.lists(st.sampled_from(PIECES), max_size=14))
def test_any_text_is_read_or_has_errors_in_order(pieces: list[str]) -> None:
    text = " ".join(["SELECT * WHERE", *pieces])
    reading = read(text)
    assert (reading.tree is not None) or reading.errors
    errors = reading.with_checks(check_query(reading.tree) if reading.tree else [])
    assert [error.span.start for error in errors] == sorted(error.span.start for error in errors)
    assert all(error.text == text and error.expected and error.hint for error in errors)
    assert len({(error.span, error.message) for error in errors}) == len(errors)
