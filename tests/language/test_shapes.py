"""Shapes: texts that differ in their constants are parsed once, and checked once where only these differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import UnexpectedInput

import estero
from estero.errors import QueryError
from estero.language.check import outlines
from estero.language.check.outlines import Outline, errors_of
from estero.language.check.queries import check_query
from estero.language.syntax.parser import parse_alone, parse_query, parser, shapes
from estero.language.tree.nodes import OpenText
from language.trees import queries
from strategies.patterns import SCHEMA
from strategies.whole import whole_queries

CONSTANTS = {
    "STRING": ["''", "'a'", "'it''s'", "'('", "'\\'", "'%a'", "'2024-01-31'", "'-- 5'"],
    "INT": ["0", "1", "2", "007", "999999999999999999", "9223372036854775808", "٣"],
    "FLOAT": ["0.5", "1e3", "2.0E-1", "1e999", "1234567890.12345678901"],
}
TEXT = "SELECT * WHERE a AS x ; b FILTER x[name = 'n1' AND v IN {{1, 2}} AND w < {0}] WITHIN {1} EVENTS"


@st.composite
def redrawn(draw: st.DrawFn, text: str) -> str:
    """The text with other constants of the same kinds."""
    for token in [*parser().lex(text)][::-1]:
        if token.type in CONSTANTS and token.start_pos is not None and token.end_pos is not None:
            text = (
                text[: token.start_pos] + draw(st.sampled_from(CONSTANTS[token.type])) + text[token.end_pos :]
            )
    return text


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """The text with something in the place of a piece of it."""
    start = draw(st.integers(0, len(text)))
    end = min(len(text), start + draw(st.integers(0, 3)))
    return text[:start] + draw(st.text("'\"`-/*.0e5$ \nx", max_size=3)) + text[end:]


def spelled(value: object) -> object:
    """A tree with all places in its text."""
    if isinstance(value, OpenText):
        return value.name, value.span
    if is_dataclass(value):
        return type(value), *(spelled(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, tuple):
        return tuple(map(spelled, value))
    return value if not isinstance(value, dict) else {name: spelled(part) for name, part in value.items()}


def outcome(build: Callable[[], Any]) -> object:
    """What a text is: its tree, an error, or None where the grammar does not allow it."""
    try:
        return spelled(build())
    except QueryError as error:
        return error.message, error.span, error.hint
    except UnexpectedInput:
        return None


def assert_alike(text: str) -> None:
    """A text is by its shape what it is alone."""
    shaped = shapes().shaped(text)
    assert outcome(lambda: shaped and shaped.built()) == outcome(lambda: parse_alone(text, "query"))


@given(queries, st.data())
def test_a_text_is_by_its_shape_what_it_is_alone(tree: Any, data: st.DataObject) -> None:
    text = str(tree)
    assert_alike(text)
    assert_alike(data.draw(redrawn(text)))


@given(queries.map(str).flatmap(damaged))
@example("SELECT * WHERE a FILTER a[x = 1.5e3e4]")
@example("SELECT * WHERE a FILTER a[x = 'a''] -- '")
@example("SELECT * WHERE a FILTER a[x = 5e] /* 1 */")
@example('SELECT * WHERE "it\'s" FILTER a[x BETWEEN 1..2]')
def test_so_is_a_damaged_text(text: str) -> None:
    assert_alike(text)


@given(queries | whole_queries(), st.data())
def test_checks_say_of_a_query_what_they_say_of_it_alone(tree: Any, data: st.DataObject) -> None:
    text = str(tree)
    for written in (text, data.draw(redrawn(text)), data.draw(redrawn(text))):
        try:
            parsed = parse_query(written)
        except QueryError:
            continue
        for schema in (None, SCHEMA):
            errors = errors_of(parsed, schema, Outline.of(parsed))
            assert list(map(str, errors)) == list(map(str, check_query(parsed, schema)))


def test_a_shape_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    parse = Lark.parse

    def parse_and_note(lark: Lark, text: str, start: str) -> Any:
        parsed.append(text)
        return parse(lark, text, start)

    monkeypatch.setattr(Lark, "parse", parse_and_note)
    shapes.cache_clear()
    for number in (5, 10, 2**70):
        parse_query(TEXT.format(number, number))
    assert parsed == [
        "SELECT * WHERE a AS x ; b FILTER x[name = '' AND v IN {0, 0} AND w < 0] WITHIN 0 EVENTS"
    ]


def test_rules_that_differ_in_what_an_attribute_equals_are_checked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked = []

    def check(tree: Any, schema: Any) -> list[QueryError]:
        checked.append(tree.text)
        return check_query(tree, schema)

    monkeypatch.setattr(outlines, "check_query", check)
    estero.rules({str(number): TEXT.format(number, 61) for number in range(5)})
    assert checked == [TEXT.format(0, 61)]
    estero.rules({str(number): TEXT.format(1, 60 - number) for number in range(5)})
    assert len(checked) == 6, "a check looks at the length of a window"


@pytest.mark.parametrize(("least", "window"), [(2**70, 5), (5, 0)])
def test_a_constant_that_is_wrong_is_refused_beside_others_that_are_right(least: int, window: int) -> None:
    estero.query(TEXT.format(7, 5))
    with pytest.raises(QueryError, match=r"this integer does not fit in 64 bits|a window must be longer"):
        estero.query(TEXT.format(least, window))


def test_a_predicate_that_takes_something_else_now_is_asked_again() -> None:
    text = "SELECT * WHERE a AS x ; b AS y FILTER alike_in_shape(x.v, y.v) AND x[v = {0}]"
    estero.predicate(name="alike_in_shape")(lambda one, other: one == other)
    estero.query(text.format(1))
    estero.predicate(name="alike_in_shape")(lambda one: one > 1)
    with pytest.raises(QueryError, match="alike_in_shape takes 1 argument, not 2"):
        estero.query(text.format(2))


def test_a_long_text_is_parsed_by_itself() -> None:
    members = ", ".join(map(str, range(1000)))
    text = f"SELECT * WHERE a FILTER a[x IN {{{members}}}]"
    assert shapes().shaped(text) is None
    assert str(estero.query(text)) == text
