"""Every message about a query, by its full text: errors.txt holds queries and what is said of them."""

from __future__ import annotations

import pytest

from estero.errors import QueryError, Span, render_error
from estero.language.check.conjunctive import check_conjunctive
from estero.language.check.kinds import kind_of
from estero.language.check.queries import check_query
from estero.language.syntax.languages import is_conjunctive
from estero.language.syntax.parser import parse_condition, parse_conjunctive, parse_query
from estero.language.syntax.recover import read
from estero.language.tree.schema import Kind
from language.error_page import PAGE, Case, cases, page
from language.schemas import SCHEMAS

_CASES = pytest.mark.parametrize("case", cases(), ids=lambda case: case.text[:60])


def errors_of(schema: str, text: str) -> list[QueryError]:
    """All that is said of a text, as `estero.check` says it."""
    known = SCHEMAS[schema]
    if is_conjunctive(text):
        try:
            return check_conjunctive(parse_conjunctive(text), known)
        except QueryError as error:
            return [error]
    reading = read(text)
    return reading.with_checks(check_query(reading.tree, known) if reading.tree else [])


@_CASES
def test_an_error_says_where_what_and_how_to_mend_it(case: Case) -> None:
    assert "\n\n".join(map(str, errors_of(case.schema, case.text))) == case.said


@_CASES
def test_an_error_carries_its_parts(case: Case) -> None:
    for error in errors_of(case.schema, case.text):
        assert error.text == case.text
        assert error.span.end <= len(case.text)
        assert error.found
        assert error.expected
        assert error.hint


def test_every_kind_of_error_is_in_the_table() -> None:
    messages = {error.message for case in cases() for error in errors_of(case.schema, case.text)}
    assert len(messages) >= 60


def test_the_page_of_errors_is_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: make pages"


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (
            "none",
            "SELECT a WHERE x AS a ; y? ; z :+ FILTER a[p = 1] OR NOT z[q] PARTITION BY [k] WITHIN 1 HOUR",
        ),
        ("trades", "SELECT s[name], BUY WHERE SELL AS s ; BUY FILTER s[price > 5 AND volume = 2.5]"),
        (
            "trades",
            "SELECT * WHERE SELL AS x ; BUY AS x FILTER x[broker = 'b' AND id = 1 AND name LIKE 'a%']",
        ),
        (
            "trades",
            "SELECT * WHERE SELL ; BUY PARTITION BY [broker, id], name WITHIN 0 [ts] CONSUME BY PARTITION",
        ),
        (
            "trades",
            "SELECT * WHERE (SELL AS a OR BUY AS a){2} FILTER a[ts > TIMESTAMP '2024-01-01' AND name ~ 'a']",
        ),
        (
            "trades",
            "SELECT * WHERE SELL FILTER SELL[price IS NULL OR coalesce(name, 'a') = 'b' OR tags IS NULL]",
        ),
        ("streams", "SELECT * FROM s, t WHERE s>SELL ; BUY FILTER SELL[ok] AND BUY[broker = 'b']"),
        ("streams", "SELECT * FROM s WHERE SELL FILTER SELL[ok]"),
        ("untimed", "SELECT * WHERE ANYTHING PARTITION BY [name] WITHIN 5 [ts]"),
        ("ticks", "SELECT * WHERE a WITHIN 5 [at]"),
        ("milliseconds", "SELECT * WHERE a WITHIN 5 SECONDS"),
    ],
)
def test_a_query_without_errors_has_none(schema: str, text: str) -> None:
    assert check_query(parse_query(text), SCHEMAS[schema]) == []


def test_further_errors_are_printed_after_the_first() -> None:
    first, second = QueryError("one"), QueryError("two", hint="three")
    first.others = (second,)
    assert str(first) == "one\n\ntwo\n  hint: three"


def test_a_long_line_is_cut_around_the_place() -> None:
    text = "x" * 500 + "HERE" + "y" * 500
    line, carets = render_error(QueryError("m", text=text, span=Span(500, 504))).splitlines()[1:]
    assert len(line) < 120
    assert line[carets.index("^") : carets.rindex("^") + 1] == "HERE"


def test_a_place_that_spans_lines_is_shown_on_its_first() -> None:
    said = render_error(QueryError("m", text="a\nbcd\ne", span=Span(3, 7)))
    assert said == "m\n  2 | bcd\n    |  ^^"


@pytest.mark.parametrize("text", ["\nSELECT * WHERE a", "\n\n  SELECT * WHERE a\n", "SELECT * WHERE a"])
def test_an_error_without_a_place_points_at_the_first_word(text: str) -> None:
    shown = render_error(QueryError("no parameter p", text=text)).split("\n")
    number = text.count("\n", 0, text.index("S")) + 1
    assert shown[1] == f"  {number} | {text.strip(chr(10)).rstrip()}"
    assert shown[2].index("^") == shown[1].index("S")


def test_the_kind_of_an_expression_follows_from_its_attributes() -> None:
    kinds = {"i": Kind.INT, "f": Kind.FLOAT, "s": Kind.STRING, "t": Kind.TIMESTAMP, "b": Kind.BOOL}
    expected = {
        "i + i": Kind.INT,
        "i + f": Kind.FLOAT,
        "i / i": Kind.FLOAT,
        "-i % 3": Kind.INT,
        "NULL": None,
        "NULL + i": None,
        "NULL + f": Kind.FLOAT,
        "abs(f)": Kind.FLOAT,
        "floor(f)": Kind.FLOAT,
        "ceil(i)": Kind.INT,
        "length(s)": Kind.INT,
        "hour(t)": Kind.INT,
        "coalesce(NULL, i, f)": Kind.FLOAT,
        "coalesce(NULL, s)": Kind.STRING,
        "coalesce(NULL)": None,
        "i = f AND NOT b": Kind.BOOL,
        "s IS NULL": Kind.BOOL,
    }
    assert {text: kind_of(parse_condition(text), kinds) for text in expected} == expected


def test_the_kind_of_a_wrong_expression_is_its_first_error() -> None:
    with pytest.raises(QueryError, match="there is no attribute valu"):
        kind_of(parse_condition("valu + 1"), {"value": Kind.INT})
