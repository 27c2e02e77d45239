"""Conjunctive queries as text: what is read, how it prints, and every mistake."""

from __future__ import annotations

import pytest
from hypothesis import given

from estero.errors import QueryError
from estero.language.check.atoms import named_atoms
from estero.language.check.conjunctive import check_conjunctive
from estero.language.syntax.parser import parse_conjunctive
from estero.language.tree.conjunctive import Anything, Argument, Atom, ConjunctiveTree, Variable
from estero.language.tree.distances import EventWindow
from estero.language.tree.expressions import Literal
from estero.language.tree.pattern import EventType
from estero.language.tree.schema import Kind, Schema
from strategies.conjunctive import hierarchical_queries

OWN_TABLES = Schema(
    types={
        "T": {"k": Kind.INT},
        "S": {"a": Kind.INT, "b": Kind.STRING},
        "R": {"a": Kind.FLOAT, "b": Kind.STRING, "l": Kind.OPAQUE},
    },
    closed=True,
)
ONE_TABLE = Schema(
    shared={"type": Kind.STRING, "ts": Kind.INT, "a": Kind.INT, "b": Kind.STRING, "l": Kind.OPAQUE},
    time="ts",
)


def test_a_text_is_read_as_its_parts() -> None:
    query = parse_conjunctive("Q(x) <- T(x, _, -5), S>R(k: x) AS r WITHIN 3 EVENTS LIMIT 2")
    assert query == ConjunctiveTree(
        "Q",
        (Variable("x"),),
        (
            Atom(EventType("T"), (Argument(Variable("x")), Argument(Anything()), Argument(Literal(-5)))),
            Atom(EventType("R", "S"), (Argument(Variable("x"), "k"),), "r"),
        ),
        window=EventWindow(3),
        limit=2,
    )


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("q ( x,y )<-T(x),S( x , y )", "q(x, y) <- T(x), S(x, y)"),
        ("Q() <- T()", "Q() <- T()"),
        (
            "Q(x)<-T(k:x,l:'it''s')as t from A,B within 1 hour 30 minutes limit 5",
            "Q(x) <- T(k: x, l: 'it''s') AS t FROM A, B WITHIN 1 HOURS 30 MINUTES LIMIT 5 PER END",
        ),
        ("Q(x) <- T(x) WITHIN 5 [ts]", "Q(x) <- T(x) WITHIN 5 [ts]"),
        ('Q("_") <- "two words"("_", _, TRUE, 1.5)', 'Q("_") <- "two words"("_", _, TRUE, 1.5)'),
        ("Q() <- T(TIMESTAMP '2024-01-31') -- said", "Q() <- T(TIMESTAMP '2024-01-31T00:00:00Z')"),
    ],
)
def test_it_prints_in_canonical_form(text: str, canonical: str) -> None:
    assert str(parse_conjunctive(text)) == canonical
    assert parse_conjunctive(canonical) == parse_conjunctive(text)


@given(hierarchical_queries())
def test_the_text_of_a_query_is_read_as_the_query(query: ConjunctiveTree) -> None:
    assert parse_conjunctive(str(query)) == query


def test_spans_are_places_in_the_text() -> None:
    text = "Q(x) <- T(k: x), S(x) AS s"
    query = parse_conjunctive(text)
    assert [text[atom.span.start : atom.span.end] for atom in query.atoms] == ["T(k: x)", "S(x) AS s"]
    (argument,) = query.atoms[0].arguments
    assert text[argument.span.start : argument.span.end] == "k: x"


@pytest.mark.parametrize(
    ("text", "message", "found", "hint"),
    [
        ("", "there is no conjunctive query here", "the end of the text", "the shortest query is"),
        (
            "Q(x)",
            "the text ends too early",
            "the end of the text",
            "write <- between the head and the atoms",
        ),
        ("Q(x) :- T(x)", "':' is not expected here", ":", "write <- between the head and the atoms"),
        ("Q(x) <- T(x", "the text ends too early", "the end of the text", "at character 10 is not closed"),
        ("Q(x) <- T(x) S(x)", "S is not expected here", "S", "atoms are separated by commas"),
        ("Q(x) <- T(x) witin 3 events", "witin is not expected here", "witin", "did you mean WITHIN?"),
        ("Q(x) <- T(k = x)", "a conjunctive query has no =", "=", "T(k: x) names the attribute k"),
        ("Q(x) <- T(x > 5)", "'>' is not expected here", ">", "variables, constants and _"),
        ("Q(x) <- T(x) LIMIT 5 FROM S", "FROM is not expected here", "FROM", "FROM, WITHIN, LIMIT"),
        ("Q(x) <- T(x), LIMIT 5", "LIMIT is not expected here", "LIMIT", "arguments in parentheses"),
        ("Q(x) <- T(x) WITHIN 5 SECUNDS", "unknown unit SECUNDS", "SECUNDS", "did you mean SECONDS"),
        ("Q(_) <- T(x)", "_ stands for any value", "_", "leave it out of the head"),
        ("Q(x) <- T('x)", "this string is not closed", "'", "written twice"),
    ],
)
def test_what_cannot_be_read_is_explained(text: str, message: str, found: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_conjunctive(text)
    error = caught.value
    assert error.message.startswith(message)
    assert error.found == found
    assert hint in error.hint
    assert error.expected
    assert error.text == text


@pytest.mark.parametrize(
    ("text", "message", "place", "hint"),
    [
        ("Q(x, z) <- T(x)", "no atom has the variable z", "z", "take it out of the head"),
        ("Q() <- T(x)", "the head lacks the variable x", "x", "write Q(x), or _ for a value that does not"),
        (
            "Q(x) <- T(x) AS S, S(a: x)",
            "two atoms are called S",
            "T(x) AS S",
            "or by its number",
        ),
        (
            "Q(x, y) <- T(x), S(x, y), R(_, y, _)",
            "this query is not hierarchical: S(x, y) has both x and y, T(x) has x without y",
            "S(x, y)",
            "(T ALL S ALL R) FILTER …",
        ),
        ("Q(x) <- X(x)", "there are no events of type X", "X", "an empty one will do"),
        ("Q(x) <- T(x, _)", "T has 1 attribute, not 2", "T(x, _)", "T(k: x)"),
        ("Q(x) <- S(x)", "S has 2 attributes, not 1", "S(x)", "S(a: x)"),
        ("Q(x) <- S(c: x)", "S has no attribute c", "c: x", "names must match the events' columns"),
        ("Q(x) <- S(a: x, 5)", "some arguments of this atom are by name", "S(a: x, 5)", "T(x, 5) takes them"),
        ("Q(x) <- S(a: x, a: x)", "this atom has the attribute a twice", "a: x", "the same variable"),
        ("Q() <- T(NULL)", "NULL equals nothing", "NULL", "_ is any value"),
        ("Q() <- T('a')", "an integer cannot be compared with a string", "'a'", "without quotes"),
        ("Q() <- R(l: 5)", "l cannot be compared", "5", "lists, bytes and structures"),
        (
            "Q(x) <- T(x), S(_, x)",
            "x joins values that cannot be compared: k of T is an integer, and b of S is a string",
            "x",
            "another variable",
        ),
        ("Q(x) <- R(l: x) AS a, R(l: x) AS b", "x joins values that cannot be compared", "l: x", "cast"),
        ("Q(x) <- T(x) WITHIN 5 SECONDS", "a duration needs a time column", "5 SECONDS", "time="),
        ("Q(x) <- T(x) WITHIN 0 EVENTS", "a window must be longer than 0 events", "0 EVENTS", "WITHIN"),
        ("Q(x) <- T(x) LIMIT 0", "LIMIT keeps at least one complex event", "LIMIT 0", "leave LIMIT out"),
    ],
)
def test_what_does_not_fit_is_explained(text: str, message: str, place: str, hint: str) -> None:
    (error,) = check_conjunctive(parse_conjunctive(text), OWN_TABLES)
    assert error.message.startswith(message)
    assert text[error.span.start : error.span.end] == place
    assert hint in error.hint
    assert error.expected


@pytest.mark.parametrize(
    "text",
    [
        "Q(x, y) <- T(x), S(x, y), R(x, y, _)",
        "Q(x) <- T(x), R(x, _, _)",  # an integer and a float
        "Q(x) <- R(l: x)",  # nothing is compared
        "Q() <- T(), S(a: 1.5)",
        "Q(x, y) <- S(x, y), T(5)",
    ],
)
def test_what_fits_is_accepted(text: str) -> None:
    assert check_conjunctive(parse_conjunctive(text), OWN_TABLES) == []


def test_all_mistakes_are_said_in_order_of_place() -> None:
    query = parse_conjunctive("Q(x, z) <- X(x), T(x, 'a') LIMIT 0")
    messages = [error.message.split(",")[0] for error in check_conjunctive(query, OWN_TABLES)]
    assert messages == [
        "no atom has the variable z",
        "there are no events of type X",
        "T has 1 attribute",
        "LIMIT keeps at least one complex event for each position",
    ]


def test_a_tree_without_a_text_is_checked_as_its_text() -> None:
    tree = ConjunctiveTree("Q", (), (Atom(EventType("T"), (Argument(Variable("x")),)),))
    (error,) = check_conjunctive(tree)
    assert error.text == "Q() <- T(x)"


def test_attributes_by_place_are_those_of_the_table_without_type_and_time() -> None:
    query = parse_conjunctive("Q(x, y) <- T(x, y), S(x)")
    assert check_conjunctive(query, ONE_TABLE, "type") == []
    t, s = named_atoms(query, ONE_TABLE, "type")
    assert t.terms == (("a", Variable("x")), ("b", Variable("y")))
    assert s.terms == (("a", Variable("x")),)  # a table of all types has attributes that are not of S


def test_more_arguments_than_a_common_table_has_attributes_are_refused() -> None:
    (error,) = check_conjunctive(parse_conjunctive("Q() <- T(_, _, _, _)"), ONE_TABLE, "type")
    assert error.message == "T has 3 attributes, not 4"


def test_an_atom_reads_the_types_of_its_streams() -> None:
    query = parse_conjunctive("Q() <- T(), A>T() FROM A, B")
    assert [atom.types for atom in named_atoms(query, ONE_TABLE)] == [("T", "A>T", "B>T"), ("A>T",)]
