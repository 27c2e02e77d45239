"""Answers, complex events, rows and funnels in notebooks."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import estero
from estero.answers.answer import Answer
from estero.answers.as_html import kind_of, table_html
from estero.answers.small_timeline import WIDTH, Lane
from estero.errors import legible
from notebooks import Element, page_of, shown_by

START = datetime(2024, 1, 1, 23, 59, 50, tzinfo=UTC)
LAYOUT: dict[str, Any] = {"type": "kind", "time": "t"}
PAIR = "SELECT * WHERE A AS a ; B AS b WITHIN 10 SECONDS"


def stream(kinds: str, *, apart: float = 4, **columns: list[Any]) -> pa.Table:
    times = [START + timedelta(seconds=apart * number) for number in range(len(kinds))]
    return pa.table({"kind": list(kinds), "t": pa.array(times, pa.timestamp("us", "UTC")), **columns})


def answer(query: str, events: pa.Table) -> Answer:
    return estero.query(query).run(events, **LAYOUT)


def dots(page: Element) -> list[list[tuple[float, str]]]:
    """Of each timeline, where its dots are and in which colours."""
    return [
        [(float(dot.attributes["cx"]), dot.classes[-1]) for dot in svg.all("circle")]
        for svg in page.all("svg", "timeline")
    ]


def test_an_answer_is_a_table_with_types_labels_and_timelines() -> None:
    page = shown_by(answer(PAIR, stream("ABAB", v=[1, 2, None, 4])))
    assert page.texts("p") == ["2 complex events"]
    upper, lower = page.all("thead")[0].all("tr")
    assert [head.children[0] for head in upper.all("th")[:5]] == [
        *("start", "end", "start_time", "end_time", "timeline"),
    ]
    assert upper.texts("small")[:5] == ["i64", "i64", *["datetime[μs, UTC]"] * 2, "time"]
    assert [(label.text, label.classes) for label in upper.all("span")] == [
        ("A", ["label"]),
        ("a", ["label", "c0"]),
        ("B", ["label"]),
        ("b", ["label", "c1"]),
    ]
    assert lower.texts("th") == ["#", "kindstr", "tdatetime[μs, UTC]", "vi64"] * 2
    first, second = page.rows()
    assert first[:5] == ["0", "1", "2024-01-01 23:59:50+00:00", "23:59:54", ""]
    assert first[5:] == ["#0", "#0", "A", "23:59:50", "1", "#1", "#1", "B", "23:59:54", "2"]
    assert second[2:4] == ["23:59:58", "2024-01-02 00:00:02"]
    assert second[9] == "null"
    (start, *_) = page.all("tbody")[0].all("td")
    assert start.classes == ["number"]


def test_a_timeline_has_a_dot_for_each_event_in_the_colour_of_its_label() -> None:
    page = shown_by(answer(PAIR, stream("AAB")))
    (first, second) = dots(page)
    assert sorted([first, second]) == sorted([[(4.5, "c0"), (155.5, "c1")], [(80.0, "c0"), (155.5, "c1")]])
    assert page.all("thead")[0].texts("small")[4] == "time"
    bars = [
        [svg.all("rect", "span")[0].attributes[name] for name in ("x", "width")] for svg in page.all("svg")
    ]
    assert sorted(bars) == [["4.5", "151.0"], ["80.0", "75.5"]]


def test_short_complex_events_far_apart_are_drawn_from_their_starts() -> None:
    events = pa.concat_tables([stream("AB"), stream("C" * 40 + "AB").slice(40)])
    page = shown_by(answer(PAIR, events))
    assert page.all("thead")[0].texts("small")[4] == "time since start"
    assert dots(page) == [[(4.5, "c0"), (155.5, "c1")]] * 2


def test_without_a_time_the_axis_has_positions() -> None:
    table = pa.table({"kind": list("AXXB")})
    page = shown_by(estero.query("SELECT * WHERE A AS a ; B AS b").run(table, type="kind"))
    assert page.all("thead")[0].texts("small")[2] == "position"
    assert page.all("svg")[0].attributes["aria-label"] == "from 0 to 3"
    assert dots(page) == [[(4.5, "c0"), (155.5, "c1")]]


def test_where_the_time_of_events_is_not_shown_the_axis_has_positions() -> None:
    page = shown_by(answer("SELECT a, b[kind] WHERE A AS a ; B AS b", stream("AXB")))
    assert page.all("thead")[0].texts("small")[4] == "position"


def test_an_attribute_like_a_time_that_differs_from_it_is_no_axis() -> None:
    table = pa.table({"kind": list("AB"), "n": [7, 8], "t": [1, 5]})
    batch = answer("SELECT a, b WHERE A AS a ; B AS b", table).to_arrow().to_batches()[0]
    lane = Lane.of(batch, 0, {"a": 4, "b": 5}, pa.int64())
    assert (lane.span, lane.has_times_in("n"), lane.has_times_in("t")) == ((1, 5), False, True)


def test_of_many_events_some_are_shown_and_the_others_counted() -> None:
    page = shown_by(answer("SELECT LONGEST x WHERE (A AS x):+", stream("A" * 5_000, apart=0.001)).limit(1))
    cells = page.rows()[0]
    assert cells[5] == "#0#1#2#3… 4,996 more"
    assert cells[6] == "AAAA"
    assert len(dots(page)[0]) <= 2 * WIDTH


def test_an_answer_reads_no_more_than_it_shows_and_counts_nothing() -> None:
    many = answer("SELECT * WHERE A+ AS x", stream("A" * 60))
    page = shown_by(many)
    assert page.texts("p") == ["More than 10 complex events, not counted yet", "… more"]
    assert len(page.rows()) == 10
    assert "not counted yet" in repr(many)
    many.count()
    total = 2**60 - 1
    assert shown_by(many).texts("p") == [f"{total:,} complex events", f"… {total - 10:,} more"]
    assert shown_by(many.limit(1)).texts("p") == ["1 complex event"]
    assert shown_by(many.limit(0)).text == "No complex events."


def test_partial_matches_say_how_far_they_came() -> None:
    partials = answer("SELECT * WHERE A AS a ; B AS b WITHIN 3 EVENTS", stream("AXXXB")).partials()
    page = shown_by(partials)
    assert page.texts("p") == ["1 partial match"]
    assert shown_by(partials.limit(0)).text == "No partial matches."
    heads = [str(head.children[0]) for head in page.all("thead")[0].all("th")]
    assert page.rows()[0][heads.index("steps")] == "1"


def test_a_complex_event_stands_from_top_to_bottom() -> None:
    found = answer(
        "SELECT a.v AS first, a, b WHERE A AS a ; B+ AS b PARTITION BY [k]",
        stream("ABB", v=[1, 2, 3], k=[1, 1, 1]),
    )
    page = shown_by(max(found, key=lambda ce: len(ce["b"])))
    names = [row[0] for row in page.rows()]
    assert names == ["start", "end", "start_time", "end_time", "timeline", "k", "first", "a", "b"]
    assert [table.rows() for table in page.all("div", "scroll")][1:] == [
        [["#0", "A", "23:59:50", "1", "1"]],
        [["#1", "B", "23:59:54", "2", "1"], ["#2", "B", "23:59:58", "3", "1"]],
    ]
    assert dots(page) == [[(4.5, "c0"), (80.0, "c1"), (155.5, "c1")]]


def test_rows_of_a_complex_event_stand_together() -> None:
    page = shown_by(answer(PAIR, stream("AAB")).rows())
    rows = page.rows()
    assert [row[0] for row in rows] == ["0", "", "", "", "1", "", "", ""]
    assert [row.classes for row in page.all("tbody")[0].all("tr")] == [[], *[["same"]] * 3] * 2
    assert [(label.text, label.classes[1:]) for label in page.all("span", "label")[:4]] == [
        *(("A", []), ("a", ["c0"]), ("B", []), ("b", ["c1"])),
    ]
    times = [row[4] for row in rows]
    assert times[0].startswith("2024-01-01 ")
    assert not any(time.startswith("2024") for time in times[1:])


def test_a_funnel_has_bars_and_names_a_partition_once() -> None:
    events = stream("ABAX", k=["x", "x", "y", "y"])
    funnel = answer("SELECT * WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 1 HOUR", events)
    page = shown_by(funnel.funnel(by_partition=True))
    assert [row[:5] for row in page.rows()] == [
        ["x", "1", "A AS a", "1", "100.0%"],
        ["", "2", "B AS b", "1", "100.0%"],
        ["y", "1", "A AS a", "1", "100.0%"],
        ["", "2", "B AS b", "0", "0.0%"],
    ]
    bars = [bar.children[0] for bar in page.all("span", "share")]
    assert [bar.attributes["style"] for bar in bars if isinstance(bar, Element)] == [
        *("width:100.0%", "width:100.0%", "width:100.0%", "width:0.0%"),
    ]
    assert page.texts("span", "keyword") == ["AS"] * 4


def test_of_a_long_funnel_the_first_rows_are_shown() -> None:
    events = stream("A" * 150, apart=0.01, k=list(range(150)))
    both = pa.concat_tables([events, stream("AB", k=[0, 0])])
    funnel = answer("SELECT * WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 1 HOUR", both)
    page = shown_by(funnel.funnel(by_partition=True))
    assert len(page.rows()) == 200
    assert page.texts("p") == ["… 100 more"]


@given(st.text(), st.text("<>&\"'`\x1b\n-", min_size=1), st.text('a<">', min_size=1))
def test_hostile_values_and_names_stay_text(value: str, name: str, label: str) -> None:
    encodable = value.encode(errors="replace").decode()
    events = pa.table({"kind": ["A"], name: [encodable]})
    quoted = '"' + label.replace('"', '""') + '"'
    found = estero.query(f"SELECT * WHERE A AS {quoted}").run(events, type="kind")
    for shown in (found, found[0], found.rows()):
        page = shown_by(shown)
        texts = {element.text for element in page.walk()}
        assert legible(encodable[:60]) in {text[: len(legible(encodable[:60]))] for text in texts}
        assert legible(label) in texts
        assert any(legible(name) in text for text in texts)


def test_long_values_are_cut_off() -> None:
    events = pa.table({"kind": ["A"], "v": ["<" * 1_000_000]})
    found = estero.query("SELECT * WHERE A AS a").run(events, type="kind")
    for shown in (found, found[0], found.rows()):
        assert len(shown._repr_html_()) < 30_000
        assert "<… 1,000,000 characters" in shown_by(shown).text


def test_wide_events_leave_room_for_all_labels() -> None:
    wide: dict[str, Any] = {f"v{number}": [1, 2] for number in range(100)}
    page = shown_by(answer(PAIR, stream("AB", **wide)))
    upper, lower = page.all("thead")[0].all("tr")
    assert upper.texts("span") == ["A", "a", "B", "b"]
    assert lower.texts("th").count("… 90 more") == 2
    assert [len(row) for row in page.rows()] == [
        sum(int(th.attributes.get("colspan", 1)) for th in upper.all("th"))
    ]


@pytest.mark.parametrize(
    ("data_type", "name"),
    [
        (pa.uint8(), "u8"),
        (pa.float16(), "f16"),
        (pa.large_string(), "str"),
        (pa.dictionary(pa.int8(), pa.string_view()), "str"),
        (pa.timestamp("ns"), "datetime[ns]"),
        (pa.duration("us"), "duration[μs]"),
        (pa.decimal128(5, 2), "decimal[5,2]"),
        (pa.date32(), "date"),
        (pa.time64("us"), "time"),
        (pa.large_list(pa.bool_()), "list[bool]"),
        (pa.null(), "null"),
        (pa.binary(), "binary"),
    ],
)
def test_types_are_called_as_in_polars(data_type: pa.DataType, name: str) -> None:
    assert kind_of(data_type) == name


def test_a_table_may_have_a_name_twice_and_values_of_any_type() -> None:
    columns = [pa.array([1, 2, 3]), pa.array([math.nan, None, 0.5]), pa.array([[1], None, []])]
    table = pa.Table.from_arrays(columns, ["a", "a", "b"])
    page = page_of(table_html(table.schema, table.to_batches(), most=2, count=3))
    assert page.texts("p") == ["3 rows", "… 1 more"]
    assert page.rows() == [["1", "nan", "[1]"], ["2", "null", "null"]]
