"""CEQL or a conjunctive query: texts are told apart, and one function takes both."""

from __future__ import annotations

import pyarrow as pa
import pytest

import estero
from estero.language.syntax.languages import is_conjunctive

CONJUNCTIVE = [
    "Q(x) <- T(x)",
    "q ( x,\n y )<-T(x)",
    "-- joins\n/* two\n lines */ Q() <- T()",
    '"two words"(x) <- T(x)',
    "`Q`(x) <- T(x)",
    "Q(x) :- T(x)",
    "Q(x) <= T(x)",
    "Q <- T(x)",
    "Q(x <- T(x)",
    "Selected(x) <- T(x)",
]
OTHERS = [
    "",
    "SELECT * WHERE a",
    "select * where a filter a[x<-5]",
    "/* Q(x) <- T(x) */ SELECT * WHERE a",
    "SELECT(x) <- T(x)",
    "START(a ; b) FILTER a[x<-5]",
    "START(a ; b FILTER a[x<-5]",
    "Q(x)",
    "(a ; b)",
    "'Q'(x) <- T(x)",
]


@pytest.mark.parametrize("text", CONJUNCTIVE)
def test_a_head_and_an_arrow_begin_a_conjunctive_query(text: str) -> None:
    assert is_conjunctive(text)


@pytest.mark.parametrize("text", OTHERS)
def test_anything_else_is_taken_for_ceql(text: str) -> None:
    assert not is_conjunctive(text)


def test_estero_conjunctive_names_the_function_for_ceql() -> None:
    with pytest.raises(estero.QueryError) as caught:
        estero.conjunctive("-- frost\nselect * WHERE a ; b")
    assert str(caught.value) == (
        "this is a query in CEQL, and a conjunctive query is expected here\n"
        "  2 | select * WHERE a ; b\n"
        "    | ^^^^^^\n"
        "    expected: a head and atoms, as in Q(x, y) <- T(x), S(x, y)\n"
        "    hint: estero.query takes queries in either language"
    )
    assert caught.value.found == "select"


def test_estero_query_takes_texts_in_either_language_and_the_builder() -> None:
    joined, sequence = "Q(x) <- T(x), S(x)", "SELECT * WHERE T ; S"
    assert estero.query(joined) == estero.Query(joined) == estero.conjunctive(joined)
    assert str(estero.query(sequence)) == sequence
    assert estero.query(estero.event("T").then(estero.event("S"))) == estero.query(sequence)
    with pytest.raises(estero.QueryError, match="the head lacks the variable x"):
        estero.query("Q() <- T(x)")


def test_check_says_what_is_wrong_with_either() -> None:
    tables = {"T": pa.table({"k": [1]}), "S": pa.table({"k": [1], "name": ["u"]})}
    assert estero.check("Q(x) <- T(x), S(x, _)") == []
    assert estero.check("Q(x) <- T(x), S(x, _)", tables) == []
    assert [error.message for error in estero.check("Q(x) :- T(x)")] == ["':' is not expected here"]
    assert [error.message for error in estero.check("Q() <- T(x) LIMIT 0")] == [
        "the head lacks the variable x",
        "LIMIT keeps at least one complex event for each position",
    ]
    assert [error.message for error in estero.check("Q(x) <- T(x), S(_, x)", tables)] == [
        "x joins values that cannot be compared: k of T is an integer, and name of S is a string"
    ]
