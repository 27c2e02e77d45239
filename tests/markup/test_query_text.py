"""The text of queries, in lines and with its words marked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import estero
from estero.errors import legible
from estero.language.syntax.parser import parse_query
from estero.language.tree.query import QueryTree
from estero.markup.colours import LabelColours
from estero.markup.query_text import LONGEST_LINE, MOST_LETTERS, highlighted, in_lines
from estero.markup.style import shown
from language.trees import queries
from notebooks import Element, page_of, shown_by

LONG = (
    "SELECT * WHERE SELL AS s ; BUY AS b FILTER s[price BETWEEN 10 AND 99.5] AND b[name LIKE 'a%']"
    " AND s.volume < b.volume AND b.price > 10 PARTITION BY [name] WITHIN 1 HOURS"
)


def marked(text: str, labels: dict[str, int | None] | None = None, *, sql: bool = False) -> Element:
    return page_of(shown(highlighted(text, labels, sql=sql)))


def words(page: Element, style: str) -> list[str]:
    return page.texts("span", style)


@given(queries)
def test_in_lines_a_query_is_the_same_and_marked_it_has_the_same_text(tree: QueryTree) -> None:
    lines = in_lines(str(tree))
    assert parse_query(lines) == tree
    assert marked(lines, dict(LabelColours.of_query(tree).places)).text == legible(lines, lines=True)


@given(st.text() | st.text("<>&'\"`[](){};-$1a.\n"))
def test_any_text_keeps_its_characters(text: str) -> None:
    assert marked(text, {"a": 0}).text == legible(text, lines=True)


def test_clauses_stand_on_lines_and_long_ones_are_broken() -> None:
    assert in_lines(LONG).splitlines() == [
        "SELECT *",
        "WHERE SELL AS s ; BUY AS b",
        "FILTER s[price BETWEEN 10 AND 99.5]",
        "  AND b[name LIKE 'a%']",
        "  AND s.volume < b.volume",
        "  AND b.price > 10",
        "PARTITION BY [name]",
        "WITHIN 1 HOURS",
    ]
    assert max(map(len, in_lines(LONG).splitlines())) <= LONGEST_LINE
    assert in_lines("-- FROM\n-- WHERE") == "-- FROM\n-- WHERE"


def test_the_and_of_between_does_not_begin_a_line() -> None:
    condition = " AND ".join(f"a.n + {i} BETWEEN 1000000 AND 2000000" for i in range(4))
    lines = in_lines(f"SELECT * WHERE A AS a FILTER {condition}").splitlines()
    assert [line.count("BETWEEN 1000000 AND 2000000") for line in lines] == [0, 0, 1, 1, 1, 1]


def test_words_are_marked_by_what_they_are() -> None:
    text = (
        "SELECT NEXT b WHERE A AS a ; B AS b FILTER count(b) >= $n AND a[a = 'WHERE' OR s = 2.5e3]"
        " WITHIN 10 SECONDS"
    )
    page = marked(text, {"a": 0, "b": 9})
    keywords = ["SELECT", "NEXT", "WHERE", "AS", "AS", "FILTER", "AND", "OR", "WITHIN", "SECONDS"]
    assert words(page, "keyword") == keywords
    assert words(page, "string") == ["'WHERE'"]
    assert words(page, "digits") == ["2.5e3", "10"]
    assert words(page, "function") == ["count"]
    assert words(page, "parameter") == ["$n"]
    assert words(page, "c0") == ["a", "a"], "the attribute a is no label"
    assert words(page, "c1") == ["b", "b", "b"], "colours begin anew"


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("a KEEP [a, b]", ["a", "a"]),
        ("a [a -> c]", ["a", "a"]),
        ("b [c -> a]", ["a"]),
        ("b[n = a.n]", ["a"]),
        ("b.a", []),
        ('"a" AS b', ['"a"']),
        ("b[n = 1] KEEP [a] PARTITION BY [a]", ["a"]),
        ("'a' -- a", []),
    ],
)
def test_labels_are_marked_where_they_are_labels(text: str, labels: list[str]) -> None:
    assert words(marked(text, {"a": 0}), "label") == labels


def test_sql_has_words_of_its_own() -> None:
    text = "CASE WHEN a THEN 1 ELSE 2 END"
    assert words(marked(text, sql=True), "keyword") == ["CASE", "WHEN", "THEN", "ELSE", "END"]
    assert "label" not in highlighted(text, sql=True)


def test_a_long_query_is_cut_off() -> None:
    text = marked("a " * MOST_LETTERS).text
    assert text.endswith(f"… {2 * MOST_LETTERS:,} characters")
    assert len(text) < MOST_LETTERS + 50


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("SELECT * WHERE SELL AS a ; BUY AS b ; BUY AS c", {"a": 0, "b": 1, "c": 2}),
        ("SELECT * WHERE SELL ; BUY AS b", {"SELL": 0, "b": 1}),
        ("SELECT * WHERE SELL ; BUY AS b ; BUY", {"SELL": 0, "BUY": 1, "b": 2}),
        ("SELECT b, a WHERE SELL AS a ; BUY AS b", {"b": 0, "a": 1}),
        ("SELECT SELL, b WHERE SELL AS a ; BUY AS b", {"SELL": 0, "b": 1}),
        ("SELECT NONE WHERE SELL AS a ; BUY AS b", {"a": 0, "b": 1}),
        ("SELECT * WHERE (A AS x ; B AS y) AS z", {"x": 0, "y": 1}),
        ("SELECT * WHERE (A AS x) [x -> w]", {"w": 0}),
        ("SELECT * WHERE (A AS x ; B AS y) KEEP [y]", {"y": 0}),
    ],
)
def test_a_label_is_coloured_if_events_are_shown_under_it(query: str, places: dict[str, int]) -> None:
    assert LabelColours.of_query(estero.query(query).tree).places == places


def test_a_query_shows_its_lines_labels_and_notes() -> None:
    page = shown_by(estero.query('SELECT * WHERE A+ AS "<i>" ; B AS b WITHIN 3 EVENTS'))
    (text,) = page.texts("pre")
    assert text.splitlines() == ["SELECT *", 'WHERE A+ AS "<i>" ; B AS b', "WITHIN 3 EVENTS"]
    assert [words(page, f"c{place}") for place in range(2)] == [['"<i>"'], ["b"]]
    assert page.texts("li")[0].startswith("A+ may")
    assert shown_by(estero.query("SELECT * WHERE A")).all("ul") == []


def test_queries_in_other_languages_show_themselves() -> None:
    conjunctive = shown_by(estero.conjunctive("Q(x, y) <- T(x), S(x, y), R(x, y) AS r WITHIN 5 EVENTS"))
    assert conjunctive.texts("pre") == ["Q(x, y) <- T(x), S(x, y), R(x, y) AS r\nWITHIN 5 EVENTS"]
    assert words(conjunctive, "label") == ["T", "S", "r"]
