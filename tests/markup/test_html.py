"""HTML is escaped as it is built."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from estero.errors import legible
from estero.markup.html import MOST_LETTERS, Html, element, text
from estero.markup.style import shown
from estero.markup.tables import MOST_COLUMNS, Column, Dates, Row, share, table
from notebooks import Element, page_of

HOSTILE = "<script>alert(1)</script><!-- \" ' & \x1b[31m ]]> </style></div>"
texts = st.text() | st.text("<>&\"'/!- \x00\x1b\ud800\u202escriptyle", max_size=30)


@given(texts)
@example(HOSTILE)
def test_any_text_is_text_wherever_it_stands(value: str) -> None:
    page = page_of(shown(element("p", value, title=value), value))
    (paragraph,) = page.all("p")
    assert paragraph.text == legible(value[:MOST_LETTERS])
    assert paragraph.attributes["title"] == legible(value)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=5))
def test_any_text_is_text_in_a_table(cells: list[tuple[str, str]]) -> None:
    columns = [Column(name, label="label c0") for name, _ in cells]
    page = page_of(shown(table(columns, [[value for _, value in cells]], named=cells[0][0])))
    assert page.rows() == [[legible(value) for _, value in cells]]
    assert [head.all("span")[0].text for head in page.all("th")] == [legible(name) for name, _ in cells]


def test_long_text_is_cut_off_with_a_note() -> None:
    page = page_of(shown(text("<" * 1_000_000, most=5)))
    assert page.text == "<<<<<… 1,000,000 characters"
    assert len(shown(text("<" * 1_000_000))) < 20_000


def test_only_html_is_markup() -> None:
    assert element("p", Html("<b>1</b>"), "<b>") == "<p><b>1</b>&lt;b&gt;</p>"
    assert Html("<p></p>")._repr_html_() == "<p></p>"


def test_numbers_stand_at_the_right_and_names_have_types() -> None:
    columns = [
        Column("n", "i64"),
        Column("s", "str"),
        Column("t", "datetime[μs]"),
        Column("k", is_number=True),
    ]
    page = page_of(shown(table(columns, [[1, "x", "y", None]], named="numbers")))
    assert [cell.classes for cell in page.all("td")] == [["number"], [], ["time"], ["number"]]
    assert page.texts("small") == ["i64", "str", "datetime[μs]"]
    assert page.rows() == [["1", "x", "y", "null"]]


def test_columns_stand_in_groups() -> None:
    group = Column("g", "list")
    columns = [Column("a"), Column("b", group=group), Column("c", group=group)]
    upper, lower = page_of(shown(table(columns, [[1, 2, 3]], named="groups"))).all("thead")[0].all("tr")
    assert [head.attributes.get("rowspan") for head in upper.all("th")] == ["2", None]
    assert [head.attributes.get("colspan") for head in upper.all("th")] == [None, "2"]
    assert lower.texts("th") == ["b", "c"]


def test_too_many_columns_are_counted() -> None:
    many = MOST_COLUMNS + 5
    page = page_of(shown(table([Column(f"c{i}") for i in range(many)], [range(many)], named="wide")))
    assert page.texts("th")[-2:] == [f"c{MOST_COLUMNS - 1}", "… 5 more"]
    assert page.rows() == [[*map(str, range(MOST_COLUMNS)), "…"]]


def test_a_row_that_goes_on_has_no_line_above() -> None:
    page = page_of(shown(table([Column("a")], [Row([1]), Row([2], goes_on=True)], named="rows")))
    assert [row.classes for row in page.all("tbody")[0].all("tr")] == [[], ["same"]]


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (["2024-01-01 00:00:05", "2024-01-01 00:00:06"], ["2024-01-01 00:00:05", "00:00:06"]),
        (["2024-01-01 09:00:00", "2024-01-02 09:00:00"], ["2024-01-01 09:00:00", "2024-01-02 09:00:00"]),
        (["2024-01-01 00:00:05.120000+01:00"], ["2024-01-01 00:00:05.120+01:00"]),
        (["2024-01-01 05:00:00Z", "2024-01-01 06:00:00Z"], ["2024-01-01 05:00:00Z", "06:00:00"]),
        (
            ["2024-03-31 01:59:00+01:00", "2024-03-31 03:00:00+02:00", "2024-04-01 03:00:00+02:00"],
            ["2024-03-31 01:59:00+01:00", "03:00:00+02:00", "2024-04-01 03:00:00"],
        ),
        (["2024-01-01 00:00:05.000000001"], ["2024-01-01 00:00:05.000000001"]),
        (["2024-01-01 00:00:05.123456000"], ["2024-01-01 00:00:05.123456"]),
        (["10000-01-01T00:00:00", "10000-01-01T00:00:01"], ["10000-01-01 00:00:00", "00:00:01"]),
        ([5, None, "5 us since 1970"], ["5", "null", "5 us since 1970"]),
    ],
)
def test_a_date_stands_where_it_changes(times: list[object], said: list[str]) -> None:
    dates = Dates()
    page = page_of(shown(*(element("p", dates.shown(time)) for time in times)))
    assert page.texts("p") == said


def test_a_time_stands_without_the_date_of_one_beside_it() -> None:
    dates = Dates()
    start = "2024-01-01 23:59:59"
    page = page_of(
        shown(
            element("p", dates.shown("2024-01-01 23:59:59.5", start)),
            dates.shown("2024-01-02 00:00:01", start),
        )
    )
    assert page.text == "23:59:59.52024-01-02 00:00:01"
    assert [inside.attributes for inside in page.all("span")] == [{"title": "2024-01-01 23:59:59.5"}, {}]


@pytest.mark.parametrize(
    ("part", "width"), [(0.0, "0.0%"), (0.256, "25.6%"), (1.0, "100.0%"), (1.5, "100.0%")]
)
def test_a_share_is_a_bar(part: float, width: str) -> None:
    bar = page_of(shown(share(part))).all("span", "share")[0]
    inside = bar.children[0]
    assert isinstance(inside, Element)
    assert inside.attributes == {"style": f"width:{width}"}
    assert page_of(shown(share(None))).text == "null"
