"""What is asked of all complex events together: participation, aggregates and the best of them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import estero
from estero.engine.walk import blocks
from estero.recognize.set_reader import SetReader

STREAM = pa.table(
    {
        "type": ["A", "A", "B", "A", "B"],
        "time": [1, 2, 4, 5, 9],
        "v": [10, 20, None, 5, 7],
        "price": pa.array(["0.10", "0.20", "1.05", "2.00", "9.99"]).cast(pa.decimal128(6, 2)),
        "f": [0.1, 0.2, 0.3, 0.4, float("inf")],
    }
)
LONG = pa.table({"type": ["A"] * 80, "time": range(80), "v": range(80), "f": [0.5] * 80})


def answer(text: str = "SELECT a, b WHERE A AS a ; B AS b", stream: pa.Table = STREAM) -> estero.Answer:
    return estero.query(text).run(stream, type="type", time="time")


@pytest.fixture
def unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails where complex events are listed."""

    def listed(*_: object) -> None:
        raise AssertionError("complex events were listed")

    monkeypatch.setattr(SetReader, "matches", listed)


@pytest.mark.usefixtures("unlisted")
def test_each_event_is_in_as_many_as_it_says() -> None:
    rows = answer().participation().to_dicts()
    assert [(row["label"], row["position"], row["v"], row["count"]) for row in rows] == [
        ("a", 0, 10, 2),
        ("a", 1, 20, 2),
        ("b", 2, None, 2),
        ("a", 3, 5, 1),
        ("b", 4, 7, 3),
    ]


@pytest.mark.usefixtures("unlisted")
def test_aggregates_go_over_all_complex_events() -> None:
    found = answer().aggregate(
        n="count(*)",
        total="sum(a.v)",
        money="sum( a.price )",
        mean="avg(a.v)",
        longest="max(duration)",
        together="sum(duration)",
        most="MAX(sum(b.price))",
        marked="count(a)",
        known="count(b.v)",
    )
    assert found == {
        "n": 5,
        "total": 65,
        "money": Decimal("2.60"),
        "mean": 13.0,
        "longest": 8,
        "together": 3 + 2 + 8 + 7 + 4,
        "most": Decimal("9.99"),
        "marked": 5,
        "known": 3,
    }
    assert list(found) == ["n", "total", "money", "mean", "longest", "together", "most", "marked", "known"]


def test_floats_are_rounded_once_and_infinity_stays() -> None:
    assert answer().aggregate(a="sum(a.f)", b="sum(b.f)") == {"a": 1.0, "b": float("inf")}


def test_nothing_has_a_number_only() -> None:
    found = answer("SELECT a, b WHERE B AS b ; A AS a FILTER a[v > 100]").aggregate(
        n="count(*)",
        s="sum(a.v)",
        m="max(duration)",
        g="avg(sum(a.v))",
        c="count(b)",
        k="sum(count(b))",
        t="min(start_time)",
    )
    assert found == {"n": 0, "s": None, "m": None, "g": None, "c": 0, "k": None, "t": None}
    empty = answer("SELECT a, b WHERE B AS b ; A AS a FILTER a[v > 100]")
    assert empty.participation().to_arrow().num_rows == 0
    assert empty.top(3, by="duration").count() == 0


def test_times_are_those_of_the_answer() -> None:
    times = pa.array([datetime(2026, 5, 1, hour, tzinfo=UTC) for hour in range(5)], pa.timestamp("us", "UTC"))
    stream = STREAM.set_column(1, "time", times)
    found = answer(stream=stream).aggregate(
        first="min(start_time)",
        last="max(end_time)",
        long="max(duration)",
        mean="avg(duration)",
        sum="sum(duration)",
    )
    assert found == {
        "first": datetime(2026, 5, 1, 0, tzinfo=UTC),
        "last": datetime(2026, 5, 1, 4, tzinfo=UTC),
        "long": timedelta(hours=4),
        "mean": timedelta(hours=2, minutes=12),
        "sum": 11 * 3_600_000_000,
    }


@pytest.mark.usefixtures("unlisted")
def test_the_best_come_first_and_ties_as_in_the_answer() -> None:
    best = answer().top(3, by="duration")
    assert [(one.start, one.end) for one in best] == [(0, 4), (1, 4), (3, 4)]
    assert best.to_arrow().schema == answer().schema
    least = answer().top(3, by="sum(a.v)", ascending=True)
    assert [(one.start, one.end) for one in least] == [(3, 4), (0, 2), (0, 4)]
    assert [(one.start, one.end) for one in answer().top(2, by="count(b)")] == [(1, 2), (0, 2)]
    assert answer().top(0, by="duration").count() == 0


@pytest.mark.usefixtures("unlisted")
def test_sets_of_2_to_the_80_are_asked_as_a_whole() -> None:
    every = answer("SELECT A WHERE A+", LONG)
    total, half = 2**80 - 1, 2**79
    participation = every.participation()
    assert [row["count"] for row in participation.to_dicts()] == [half] * 80
    assert participation.to_arrow().schema.field("count").type == pa.decimal128(38, 0)
    found = every.aggregate(
        n="count(*)",
        sum="sum(A.v)",
        most="max(sum(A.v))",
        floats="sum(A.f)",
        long="max(duration)",
        time="sum(duration)",
    )
    durations = sum((end - start) * 2 ** max(0, end - start - 1) for end in range(80) for start in range(end))
    assert found == {
        "n": total,
        "sum": half * sum(range(80)),
        "most": sum(range(80)),
        "floats": float(half * 40),
        "long": 79,
        "time": durations,
    }
    best = list(every.top(4, by="sum(A.v)"))
    assert [sum(range(80)) - sum(one.positions["A"]) for one in best] == [0, 0, 1, 1]
    assert len({one.positions["A"] for one in best}) == 4
    assert {(one.start, one.end) for one in every.top(5, by="duration")} == {(0, 79)}


@pytest.mark.usefixtures("unlisted")
def test_each_question_is_asked_of_every_partition() -> None:
    keyed = STREAM.append_column("k", pa.array([2, None, 2, 1, 1]))
    by_key = answer("SELECT a, b WHERE A AS a ; B AS b PARTITION BY [k]", keyed)
    values = by_key.aggregate(
        by_partition=True, n="count(*)", v="sum(a.v)", price="max(a.price)", long="max(duration)"
    )
    assert values.to_dicts() == [
        {"k": 1, "n": 1, "v": 5, "price": Decimal("2.00"), "long": 4},
        {"k": 2, "n": 1, "v": 10, "price": Decimal("0.10"), "long": 3},
    ]
    rows = by_key.participation(by_partition=True)
    assert rows.to_arrow().column_names[:3] == ["k", "label", "position"]
    found = [(row["k"], row["position"], row["count"]) for row in rows.to_dicts()]
    assert found == [(1, 3, 1), (1, 4, 1), (2, 0, 1), (2, 2, 1)]
    best = by_key.top(1, by="duration", by_partition=True)
    assert [(one.partition["k"], one.start) for one in best] == [(1, 3), (2, 0)]
    assert answer().aggregate(by_partition=True, n="count(*)").to_dicts() == [{"n": 5}]


@pytest.mark.usefixtures("unlisted")
def test_sets_of_2_to_the_69_are_asked_of_every_partition() -> None:
    keyed = LONG.append_column("k", pa.array([0] * 70 + [1] * 10))
    every = answer("SELECT A WHERE A+ PARTITION BY [k]", keyed)
    values = every.aggregate(by_partition=True, n="count(*)", sum="sum(A.v)")
    assert values.to_arrow().schema.field("n").type == pa.decimal128(38, 0)
    assert values.to_dicts() == [
        {"k": 0, "n": 2**70 - 1, "sum": 2**69 * sum(range(70))},
        {"k": 1, "n": 2**10 - 1, "sum": 2**9 * sum(range(70, 80))},
    ]


@pytest.mark.usefixtures("unlisted")
def test_all_are_ranked_and_reading_may_stop_anywhere() -> None:
    ranked = answer().ranked(by="duration")
    assert [(one.start, one.end) for one in ranked] == [(0, 4), (1, 4), (3, 4), (0, 2), (1, 2)]
    assert ranked.count() == 5
    assert ranked[3].start == 0
    assert ranked.limit(0).to_arrow().num_rows == 0
    every = iter(answer("SELECT A WHERE A+", LONG).ranked(by="sum(A.v)"))
    sums = [sum(next(every).positions["A"]) for _ in range(40)]
    assert sums == sorted(sums, reverse=True)
    assert sums[:3] == [sum(range(80))] * 2 + [sum(range(80)) - 1]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("by", ["a", "b", "c"])
def test_ties_in_joins_are_in_the_order_of_the_answer(seed: int, by: str) -> None:
    draw = random.Random(seed)
    types = [*draw.choices("ABCD", k=12), *"ABCD"]
    values = [draw.choice([0, 0, 1, 2]) for _ in types]
    stream = pa.table({"type": types, "k": [1] * len(types), "v": values})
    query = (
        "SELECT a, b, c WHERE (A AS a ALL B AS b ALL C AS c ALL D AS d)"
        " FILTER a.k = b.k AND b.k = c.k AND c.k = d.k"
    )
    join = estero.query(query).run(stream, type="type")
    rows = join[0 : join.count()].to_arrow().to_pylist()
    best = sorted(rows, key=lambda row: -sum(event["v"] for event in row[by]))
    for n in (1, 4, 11, len(rows)):
        assert join.top(n, by=f"sum({by}.v)").to_arrow().to_pylist() == best[:n]


def test_counts_beyond_38_digits_are_text() -> None:
    long = pa.table({"type": ["A"] * 130, "time": range(130)})
    rows = answer("SELECT A WHERE A+", long).participation()
    assert rows.to_arrow().schema.field("count").type == pa.string()
    assert rows.to_dicts()[0]["count"] == 2**129


@pytest.mark.parametrize("ascending", [False, True])
def test_the_least_integer_there_is_ranks_as_the_least(ascending: bool) -> None:
    extremes = pa.table({"type": list("ABAB"), "time": range(4), "v": [0, 1, 0, -(2**63)]})
    every = answer("SELECT a, b WHERE A AS a ; B+ AS b", extremes)
    rows = every.to_arrow().to_pylist()
    rows.sort(key=lambda row: sum(event["v"] for event in row["b"]), reverse=not ascending)
    for n in (1, 2, 9):
        assert every.top(n, by="sum(b.v)", ascending=ascending).to_arrow().to_pylist() == rows[:n]


def test_what_a_window_cuts_is_counted_inside_of_it() -> None:
    within = answer("SELECT A WHERE A+ WITHIN 70 EVENTS", LONG)
    listed = within.aggregate(n="count(*)")["n"]
    assert listed == within.count() > 2**60
    counts = [row["count"] for row in within.participation().to_dicts()]
    assert counts == counts[::-1]  # a window looks alike from both ends
    assert sum(counts) == within.aggregate(n="count(A)")["n"]
    assert len(within.top(1, by="count(A)")[0].positions["A"]) == 71


@pytest.mark.usefixtures("unlisted")
def test_long_windows_are_asked_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def spied(*arguments: Any) -> blocks.Block | None:
        made.append(block := _block(*arguments))
        return block

    _block = blocks._block
    monkeypatch.setattr(blocks, "_LONG", 4)
    monkeypatch.setattr(blocks, "_block", spied)
    stream = pa.table({"type": list("AAB") * 60, "time": range(180), "v": [*range(9)] * 20})
    text = "SELECT a, b WHERE A AS a ; B AS b WITHIN 40 EVENTS"
    found = answer(text, stream)
    asked = {"n": "count(*)", "v": "sum(a.v)", "most": "max(sum(b.v))", "long": "sum(duration)"}
    inside = found.aggregate(by_partition=False, **asked), found.participation().to_arrow()
    best = found.top(5, by="sum(a.v)").to_arrow()
    assert made
    assert None not in made
    monkeypatch.setattr(blocks, "_LONG", 1 << 40)
    assert inside == (found.aggregate(by_partition=False, **asked), found.participation().to_arrow())
    assert best == found.top(5, by="sum(a.v)").to_arrow()


def test_what_was_pushed_is_asked_until_more_is() -> None:
    recognizer = estero.query("SELECT a, b WHERE A AS a ; B AS b").recognizer(
        STREAM.schema, type="type", time="time"
    )
    pushed = recognizer.push(STREAM)
    assert pushed.aggregate(n="count(*)") == {"n": pushed.count()} == {"n": 5}
    recognizer.push(STREAM)
    with pytest.raises(estero.EsteroError, match="this answer is of an earlier push"):
        pushed.participation()


def test_a_participation_prints_its_first_rows_and_becomes_a_frame() -> None:
    participation = answer("SELECT A WHERE A+", LONG.slice(0, 30)).participation()
    assert str(participation).splitlines()[0].split() == [
        "label",
        "position",
        "type",
        "time",
        "v",
        "f",
        "count",
    ]
    assert str(participation).endswith("and 10 more")
    assert len(participation) == 30
    assert participation.to_pandas()["count"].tolist() == [2**29] * 30
    assert pa.table(participation).equals(participation.to_arrow())


MISTAKES: dict[str, str] = {
    "median(a.v)": "median(a.v) is not an aggregate: write count, sum, min, max or avg of an attribute, such "
    "as sum(x.amount), of duration, or count(*)",
    "sum(*)": "sum(*): of * there is only count(*)",
    "sum(start_time)": "sum(start_time): times are not added up: write min(start_time) or max(start_time)",
    "sum(a)": "sum(a): events have no value: name an attribute, or write count(a)",
    "sum(a.type)": "sum(a.type): a.type is not a number: only count, min and max apply to it",
    "sum(a.w)": "sum(a.w): the events a show no attribute w: they show type, time, v, price, f",
    "sum(c.v)": "sum(c.v): the answer has no label c.v: its labels are a, b",
    "max(avg(a.v))": "max(avg(a.v)): an average within a complex event belongs in SELECT, not here",
    "max(sum(duration))": "max(sum(duration)): duration is not a value of the events of a label, such as "
    "x.amount",
    "sum(a.v": "sum(a.v is not an aggregate: write count, sum, min, max or avg of an attribute, such as "
    "sum(x.amount), of duration, or count(*)",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_what_is_no_aggregate_is_said(text: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole text is compared
        answer().aggregate(x=text)
    assert str(raised.value) == MISTAKES[text]


@pytest.mark.parametrize("values", [[[1], [2]], [{"f": 1}, None]], ids=["lists", "structs"])
def test_of_lists_and_structs_only_the_number_is_known(values: list[Any]) -> None:
    found = estero.query("SELECT * WHERE Event AS a").run(pa.table({"v": values}))
    assert found.aggregate(x="count(a.v)") == {"x": 2 - values.count(None)}
    for text in ("min(a.v)", "max(a.v)", "sum(a.v)", "max(sum(a.v))"):
        with pytest.raises(ValueError, match=r"a\.v holds lists or structs: only count applies to it"):
            found.aggregate(x=text)


ASKED: dict[str, tuple[Any, str]] = {
    "by": (
        lambda: answer().top(1, by="v"),
        "complex events are ranked by duration, start_time, end_time, sum(x.a) or count(x), not by v",
    ),
    "negative": (lambda: answer().top(-1, by="duration"), "the best are at least 0 complex events, not -1"),
    "part": (
        lambda: answer().limit(2).participation(),
        "participation() needs the whole answer, not a part of it",
    ),
    "none": (
        lambda: answer().aggregate(),
        'aggregate() needs an expression: write aggregate(total="sum(x.amount)")',
    ),
    "held": (
        lambda: answer().top(1, by="duration").aggregate(n="count(*)"),
        "aggregate() is not available for rows in memory: use the answer of query.run",
    ),
    "no time": (
        lambda: estero.query("SELECT * WHERE A").run(STREAM, type="type").top(1, by="duration"),
        "duration: complex events have a duration where the events have a time: name time=…",
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_cannot_be_asked_is_said(name: str) -> None:
    ask, message = ASKED[name]
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole text is compared
        ask()
    assert str(raised.value) == message


def test_no_number_is_not_ranked() -> None:
    nan = STREAM.set_column(4, "f", pa.array([float("nan")] * 5))
    with pytest.raises(estero.DataError, match=r"sum\(a.f\): a value is NaN"):
        answer(stream=nan).top(1, by="sum(a.f)")
