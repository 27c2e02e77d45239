"""The assertion over a query and a few events: it passes, or shows what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import pyarrow as pa
import pytest

import estero
from estero.testing import assert_matches as on_all_engines
from estero.testing import events
from estero.testing.expected import Expected
from estero.testing.ways import Shown, Way, ways

SAME_KEY = "SELECT * WHERE A ; B PARTITION BY [k] WITHIN 10 SECONDS"
STREAM = "A(k=1)@0s B(k=2)@1s B(k=1)@5s B(k=1)@11s"

assert_matches = partial(on_all_engines, engines=["process"])


def test_what_is_expected_passes() -> None:
    assert_matches(SAME_KEY, STREAM, [{"A": 0, "B": 2}])
    assert_matches(estero.query(SAME_KEY), events(STREAM), [{"B": [2], "A": [0]}])
    assert_matches(SAME_KEY, STREAM, 1)
    assert_matches("Q(x) <- A(k: x), B(k: x)", STREAM, [{"A": 0, "B": 2}, {"A": 0, "B": 3}])


def test_order_does_not_matter_but_number_does() -> None:
    query, stream = "SELECT * WHERE A+ ; B", "A A B"
    found: list[Expected] = [{"A": [1], "B": 2}, {"A": (0, 1), "B": 2}, {"A": [0], "B": [2]}]
    assert_matches(query, stream, found)
    with pytest.raises(AssertionError, match="1 missing"):
        assert_matches(query, stream, [*found, found[0]])


def test_without_labels_only_the_number_tells() -> None:
    assert_matches("SELECT NONE WHERE A ; B", "A B B", 2)
    assert_matches("SELECT NONE WHERE A ; B", "A B B", [{}, {}])


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_on_all_engines() -> None:
    on_all_engines(SAME_KEY, STREAM.replace("B(k=2)@1s", "B(k=2)@0s"), [{"A": 0, "B": 2}])
    on_all_engines("SELECT * WHERE A : B", "A B A C B", [{"A": 0, "B": 1}])


def test_a_failure_shows_what_is_wrong_under_the_events() -> None:
    with pytest.raises(AssertionError) as error:
        assert_matches(SAME_KEY, STREAM + " B(k=1)@12s", [{"A": 0, "B": 3}])
    assert (
        str(error.value)
        == """\
SELECT * WHERE A ; B PARTITION BY [k] WITHIN 10 SECONDS
in this process: found 1 complex event, 1 missing and 1 unexpected

position    0         1         2         3         4
type        A         B         B         B         B
time        00:00:00  00:00:01  00:00:05  00:00:11  00:00:12
missing     A                             B
unexpected  A                   B

1 complex event
step 1  A  1 event
step 2  B  1 event
waited for B: 1 event comes to it, 1 satisfies all its conditions
  without PARTITION BY [k]: 1 more; for instance events 0 to 1
  without WITHIN 10 SECONDS: 2 more; nearest: events 0 to 3, too long by 1 SECOND"""
    )


def test_a_wrong_number_shows_what_there_is() -> None:
    with pytest.raises(AssertionError, match="found 1 complex event, expected 2") as error:
        assert_matches(SAME_KEY, STREAM, 2)
    assert "\nfound " in str(error.value)


def test_of_a_long_stream_only_marked_events_are_shown() -> None:
    with pytest.raises(AssertionError) as error:
        assert_matches("SELECT * WHERE A ; B", "A " + "C " * 100 + "B", 0)
    assert "position  0  101\n" in str(error.value)


def test_the_stream_is_cut_everywhere() -> None:
    stream = estero.scan(events("A B C B"), type="type")
    named = [way.name for way in ways(estero.Query("SELECT * WHERE A ; B"), stream, ["process"])]
    assert named == [
        "in this process",
        "pushed one by one",
        "stopped and resumed before event 1",
        "stopped and resumed before event 2",
        "stopped and resumed before event 3",
    ]


def test_a_way_that_finds_something_else_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    right = [Shown((("A", (0,)), ("B", (1,))))]

    def wrong_once(*_: object) -> Sequence[Way]:
        return [Way("in this process", lambda: right), Way("pushed one by one", list)]

    monkeypatch.setattr("estero.testing.assertion.ways", wrong_once)
    with pytest.raises(AssertionError, match="pushed one by one: found no complex events, 1 missing"):
        assert_matches("SELECT * WHERE A ; B", "A B", [{"A": 0, "B": 1}])


def test_what_cannot_be_expected_is_an_error() -> None:
    with pytest.raises(ValueError, match="B is expected at 7, but positions are 0 to 1"):
        assert_matches("SELECT * WHERE A ; B", "A B", [{"A": 0, "B": 7}])
    with pytest.raises(ValueError, match="the engines are 'process' and 'spark', not 'flink'"):
        on_all_engines("SELECT * WHERE A", "A", 1, engines=["flink"])


def test_ticks_have_a_unit() -> None:
    assert_matches("SELECT * WHERE A ; B WITHIN 10 SECONDS", "A@0 B@10 B@11", 1, time_unit="s")
    assert_matches(
        "SELECT * WHERE A ; B WITHIN 10 [at]", pa.table({"type": ["A", "B"], "at": [1, 11]}), 1, time="at"
    )


TOTALS = """
    SELECT sum(x.price) AS total, count(x) AS tries, duration AS lasted, last(x.who) AS who
    WHERE A+ AS x ; B PARTITION BY [k]
"""
PRICES = "A(k=1, price=0.1, who=ann)@0s A(k=2, price=5, who=bob)@1s B(k=2)@1m30s"


def test_values_of_select_and_of_keys_are_compared() -> None:
    assert_matches(TOTALS, PRICES, [{"total": 5.0}])
    assert_matches(TOTALS, PRICES, [{"tries": 1, "who": "bob", "k": 2}])
    for lasted in (timedelta(seconds=89), "89s", "1m29s", "1 minute 29 seconds"):
        assert_matches(TOTALS, PRICES, [{"lasted": lasted}])
    assert_matches("SELECT x, max(x.v) AS most WHERE A+ AS x ; B", "A(v=1) B", [{"x": 0, "most": 1}])
    assert_matches("SELECT x, max(x.v) AS most WHERE A+ AS x ; B", "A(v=1) B", [{"x": 0}])
    assert_matches("SELECT x.time AS at WHERE A AS x", "A@5s", [{"at": "1970-01-01T00:00:05"}])
    assert_matches("SELECT x.v AS v WHERE A AS x", "A(v=null) A(v='z')", [{"v": "z"}, {"v": None}])
    assert_matches("SELECT list(x.v) AS vs WHERE A+ AS x : B", "A(v=3) B", [{"vs": [3]}])


def test_floats_are_equal_in_the_digits_that_matter() -> None:
    assert_matches("SELECT sum(x.v) AS s WHERE A{3} AS x", "A(v=0.1) A(v=0.2) A(v=0.3)", [{"s": 0.6}])
    with pytest.raises(AssertionError, match="1 missing and 1 unexpected"):
        assert_matches("SELECT sum(x.v) AS s WHERE A AS x", "A(v=0.1)", [{"s": 0.1001}])


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_values_are_compared_on_all_engines() -> None:
    on_all_engines(TOTALS, PRICES, [{"total": 5.0, "tries": 1, "lasted": "89s", "k": 2}])


def test_a_failure_shows_values() -> None:
    with pytest.raises(AssertionError) as error:
        assert_matches(TOTALS, PRICES, [{"total": 960.0, "lasted": "1m"}])
    assert """
position  0         1         2
type      A         A         B
time      00:00:00  00:00:01  00:01:30

missing     lasted = 0:01:00, total = 960.0
unexpected  lasted = 0:01:29, total = 5.0
""" in str(error.value)


def test_where_nothing_is_shown_that_is_said() -> None:
    with pytest.raises(AssertionError, match="the query shows no label and nothing that can be compared"):
        assert_matches("SELECT NONE WHERE A ; B", "A B B", [{}])


@pytest.mark.parametrize(
    ("query", "expected", "message"),
    [
        (
            TOTALS,
            [{"x": 0}],
            "the query shows k, total, tries, lasted and who; it shows no label, so positions",
        ),
        ("SELECT NONE WHERE A", [{"A": 0}], "A is expected, but the query shows nothing: give the number"),
        ("SELECT A WHERE A", [{"a": 0}], "a is expected, but the query shows A"),
        ("SELECT A WHERE A", [{"A": 960.0}], "A is a label: give the positions of its events, not 960.0"),
        (TOTALS, [{"tries": "many"}], "'many' is not a value for a column of type int64"),
        (TOTALS, [{"lasted": 5}], r"5 is not a value for a column of type duration\[us\]"),
        (TOTALS, [{"tries": 1}, {"total": 1.0}], "total is expected of one complex event but not of"),
    ],
)
def test_what_no_answer_can_have_is_an_error(query: str, expected: list[Expected], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        assert_matches(query, PRICES, expected)
