"""MATCH_RECOGNIZE without PARTITION BY: ranges of time give what one ordered task gives."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import estero
import estero.spark
from estero.language.row_patterns.patterns import parse_row_pattern
from estero.language.row_patterns.statements import placed_clauses
from estero.language.row_patterns.tree import (
    Anchor,
    Choice,
    Repetition,
    RowPattern,
    Skip,
    Variable,
    nodes_of,
    variables_of,
)
from estero.language.row_patterns.tree import Sequence as PatternSequence
from estero.recognize.row_patterns.evaluation import Evaluation
from estero.spark.batch import ranges
from estero.spark.row_patterns import clauses, time_ranges, work
from estero.spark.row_patterns.division import always_goes_on, why_one_task
from estero.spark.row_patterns.range_work import ENTRY, HOME, LINE, START, TASK, RangeWork
from estero.spark.row_patterns.time_axis import TimeAxis
from estero.spark.row_patterns.time_ranges import Border, TimeRanges, borders_of
from estero.spark.row_patterns.work import RowPatternWork, StatementsInZone
from laws.test_row_pattern_laws import is_accepted
from strategies.row_patterns import Condition, Row, conditions, near_conditions, row_patterns, skips

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore:the alternative")

NAMES = ("t", "i", "v", "w")
ONE = "FIRST(i) AS first, array_agg(i) AS rows, array_agg(CLASSIFIER()) AS labels"
ALL = "FIRST(i) AS first, CLASSIFIER() AS label, count(*) AS n"
BESIDE = ", PREV(FIRST(v)) AS before, NEXT(LAST(v), 2) AS behind"
FORMS = (
    (ONE, ""),
    (ONE + BESIDE, ""),
    (ALL, "ALL ROWS PER MATCH"),
    (ALL + BESIDE, "ALL ROWS PER MATCH OMIT EMPTY MATCHES"),
)
STEPS = st.sampled_from((0, 1, 1, 2, 3))
VALUES = st.builds(Row, st.one_of(st.none(), st.integers(0, 4)), st.integers(0, 3))
TIMED = st.lists(st.tuples(STEPS, VALUES), min_size=6, max_size=24)
ASKED = st.one_of(
    st.tuples(near_conditions, st.one_of(st.just(Skip()), st.just(Skip()), skips)),
    st.tuples(conditions, st.just(Skip("next"))),
)
"""DEFINE and AFTER MATCH SKIP: matches are left out where rows alone decide."""


def table_of(rows: Sequence[tuple[int, Row]]) -> pa.Table:
    """Rows in order, each so much later than the one before."""
    times = np.cumsum([step for step, _ in rows])
    values = {
        "t": times,
        "i": range(len(rows)),
        "v": [row.v for _, row in rows],
        "w": [row.w for _, row in rows],
    }
    return pa.table({name: pa.array(column, pa.int64()) for name, column in values.items()})


def evaluation_of(text: str) -> Evaluation:
    (placed,) = placed_clauses(text)
    return Evaluation(StatementsInZone("UTC"), placed.clause, [(name, "BIGINT") for name in NAMES], "events")


def borders_at(table: pa.Table, starts: Sequence[int], evaluation: Evaluation, within: int) -> list[Border]:
    """Borders at these times, beside which there are enough rows."""
    times, around = table["t"].to_pylist(), evaluation.surroundings
    found = borders_of(starts, [start + within for start in starts], sorted(set(times)), around)
    return [
        border
        for border in found
        if sum(border.back <= time < border.start for time in times) >= around.back
        and sum(border.end <= time < border.ahead for time in times) >= around.ahead
    ]


def in_ranges(table: pa.Table, borders: Sequence[Border], range_work: RangeWork, size: int) -> pa.Table:
    """What the tasks give together, in pieces of so many rows."""
    times = table["t"].to_pylist()
    home = [bisect_right([border.start for border in borders], time) for time in times]
    first = [bisect_right([border.ahead for border in borders], time) for time in times]
    last = [bisect_right([border.back for border in borders], time) for time in times]
    entry = [
        bisect_right([border.end for border in borders], time) < own
        for time, own in zip(times, home, strict=True)
    ]
    columns = {f"c{number}": table[name] for number, name in enumerate(NAMES)}
    rows = pa.table({HOME: pa.array(home, pa.int32()), ENTRY: entry, **columns})
    match = range_work.on_batches()
    found = []
    for task in range(range_work.count):
        mine = rows.filter([low <= task <= high for low, high in zip(first, last, strict=True)])
        mine = mine.add_column(0, TASK, pa.array([task] * mine.num_rows, pa.int32()))
        found += list(match(iter(mine.to_batches(size))))
    result = pa.Table.from_batches(found, range_work.result)
    if not range_work.chained:
        return result
    result = result.sort_by([(START, "ascending"), (LINE, "ascending")])
    return pa.Table.from_batches(
        range_work.taken()(iter(result.to_batches(max_chunksize=size))), range_work.work.result
    )


def check(text: str, rows: Sequence[tuple[int, Row]], cuts: Sequence[int], within: int, size: int) -> None:
    evaluation = evaluation_of(text)
    assume(not why_one_task(evaluation, TimeAxis(evaluation, "long", "UTC")))
    table = table_of(rows)
    expected = estero.sql(text, events=table).to_arrow()
    starts = sorted({table["t"][cut % len(rows)].as_py() for cut in cuts} - {table["t"][0].as_py()})
    borders = borders_at(table, starts, evaluation, within)
    event(f"{len(borders)} borders")
    (placed,) = placed_clauses(text)
    crossing = pa.schema([(f"c{number}", pa.int64()) for number in range(4)])
    result = pa.schema([(f"r{place}", field.type) for place, field in enumerate(expected.schema)])
    clause_work = RowPatternWork(
        placed.clause,
        tuple((name, "BIGINT") for name in NAMES),
        "events",
        "UTC",
        crossing,
        result,
        StatementsInZone("UTC").aggregates,
        in_pieces=True,
    )
    range_work = RangeWork(clause_work, placed.clause.skip.to != "next", len(borders) + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "AT_ONCE", size)
        found = in_ranges(table, borders, range_work, size)
    assert found.rename_columns(expected.column_names).to_pylist() == expected.to_pylist()


@given(
    row_patterns,
    ASKED,
    TIMED,
    st.integers(0, 3),
    st.one_of(st.just(range(24)), st.lists(st.integers(0, 23), min_size=1, max_size=5)),
    st.sampled_from(FORMS),
    st.integers(1, 6),
)
def test_ranges_give_what_the_whole_gives(
    pattern: RowPattern,
    asked: tuple[Mapping[str, Condition], Skip],
    rows: Sequence[tuple[int, Row]],
    within: int,
    cuts: Sequence[int],
    form: tuple[str, str],
    size: int,
) -> None:
    (define, skip), (measures, per_match) = asked, form
    assume(not any(isinstance(node, Anchor) and node.at == "end" for node in nodes_of(pattern)))
    if set(variables_of(pattern)) != set("abc"):  # which conditions may read
        pattern = PatternSequence((pattern, Repetition(Choice(tuple(map(Variable, "ABC"))), 0, 2)))
    defined = {name: condition.sql for name, condition in define.items()} or {"A": "TRUE"}
    text = f"""SELECT * FROM events MATCH_RECOGNIZE (ORDER BY t MEASURES {measures} {per_match}
        AFTER MATCH SKIP {skip} PATTERN ({pattern}) WITHIN {within}
        DEFINE {", ".join(f"{name} AS {sql}" for name, sql in defined.items())})"""
    assume(is_accepted(text))
    check(text, rows, cuts, within, size)


@pytest.mark.parametrize(
    ("pattern", "skip", "goes_on"),
    [
        ("A B", Skip("last", Variable("B")), True),
        ("A B+ | A C B", Skip("first", Variable("B")), True),
        ("(A (B | B C))+", Skip("last", Variable("B")), True),
        ("A? B", Skip("last", Variable("B")), False),
        ("A B A", Skip("last", Variable("A")), True),
        ("A B A", Skip("first", Variable("A")), False),
        ("A B?", Skip("last", Variable("B")), False),
        ("(A B)*", Skip("last", Variable("B")), False),
        ("PERMUTE(A, B)", Skip("last", Variable("B")), False),
        ("A{2} {- B -}", Skip("first", Variable("U")), False),
        ("C{2} {- B -}", Skip("first", Variable("U")), True),
    ],
)
def test_patterns_tell_whether_a_search_always_goes_on(pattern: str, skip: Skip, goes_on: bool) -> None:
    names = {name: frozenset([name]) for name in "abc"} | {"u": frozenset("ab")}
    assert always_goes_on(parse_row_pattern(f"({pattern})", 0, len(pattern) + 2), skip, names) == goes_on


# ------------------------------------------------------------------------------- in a session

SHAPES = """MATCH_RECOGNIZE (ORDER BY {order} MEASURES FIRST(i) AS first, count(*) AS n, LAST(v) AS last
    AFTER MATCH SKIP {skip} PATTERN (high down+ up+) WITHIN {within}
    DEFINE down AS v < PREV(v), up AS v > PREV(v))"""
NOON = np.datetime64("2024-05-01T12:00:00", "us")


def walk() -> pa.Table:
    """Values of rows whose times are of several types, and often equal."""
    draw = np.random.default_rng(3)
    seconds = np.cumsum(draw.integers(0, 3, 1200))
    times = NOON + seconds.astype("timedelta64[s]")
    return pa.table(
        {
            "at": pa.array(times, pa.timestamp("us", "UTC")),
            "local": pa.array(times, pa.timestamp("us")),
            "second": seconds,
            "day": pa.array((seconds // 20).astype(np.int32)).cast(pa.date32()),
            "v": draw.integers(0, 5, 1200),
            "i": np.arange(1200),
        }
    )


@pytest.fixture
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Cuts few rows into ranges, too; how many ranges there were."""
    counts: list[int] = []

    def find(*arguments: Any, **options: Any) -> TimeRanges | None:
        found = time_ranges.find_time_ranges(*arguments, **options)
        counts.append(1 if found is None else found.count)
        return found

    monkeypatch.setattr(ranges, "SMALLEST_TASK", 1)
    monkeypatch.setattr(ranges, "parallelism", lambda _: 4)
    monkeypatch.setattr(time_ranges, "FEWEST_TASKS", 2)
    monkeypatch.setattr(time_ranges, "SAMPLED", 1.0)
    monkeypatch.setattr(clauses, "find_time_ranges", find)
    return counts


@pytest.mark.spark
@pytest.mark.parametrize(
    ("order", "within", "skip"),
    [
        ("at", "INTERVAL '20' SECOND", "PAST LAST ROW"),
        ("at DESC", "INTERVAL '20' SECOND", "TO LAST up"),
        ("local, i DESC", "INTERVAL '10' SECOND", "TO NEXT ROW"),
        ("second NULLS FIRST", "15", "TO FIRST up"),
        ("day DESC", "INTERVAL '1' DAY", "PAST LAST ROW"),
    ],
)
def test_ranges_of_a_session_give_what_this_process_gives(
    spark: SparkSession, small_ranges: list[int], order: str, within: str, skip: str
) -> None:
    text = f"SELECT * FROM walk {SHAPES.format(order=order, within=within, skip=skip)}"
    in_spark = estero.spark.sql(spark, text, walk=walk()).toArrow()
    assert small_ranges == [4]
    assert in_spark.to_pylist() == estero.sql(text, walk=walk()).to_arrow().to_pylist()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("", ""), "a range of time and the window after it, and one takes their matches in order"),
        (("PAST LAST ROW", "TO NEXT ROW"), "the window after it; with few rows or few tasks, there is one"),
        (("MATCH_RECOGNIZE (", "MATCH_RECOGNIZE (PARTITION BY day "), "processes some of the partitions"),
        (("WITHIN 9", ""), "one ordered task, because without WITHIN a match may extend to any row"),
        (("up+", "up+ $"), "one ordered task, because $ is the last of all rows"),
        (("count(*)", "MATCH_NUMBER()"), "because MATCH_NUMBER() depends on all earlier matches"),
        (("count(*)", "sum(MATCH_NUMBER())"), "because MATCH_NUMBER() depends on all earlier matches"),
        (("AFTER", "ALL ROWS PER MATCH WITH UNMATCHED ROWS AFTER"), "which rows are unmatched depends on"),
        (("v > PREV(v)", "v > FIRST(v)"), "because DEFINE refers to the match so far"),
        (("PAST LAST ROW", "TO high"), "AFTER MATCH SKIP TO LAST high may find no row at which to resume"),
        (("ORDER BY second", "ORDER BY second / 2"), "because values of type double are not cut into ranges"),
    ],
)  # fmt: skip
def test_explain_says_how_tasks_divide_the_rows(
    spark: SparkSession, change: tuple[str, str], reason: str
) -> None:
    clause = SHAPES.format(order="second", within="9", skip="PAST LAST ROW")
    text = f"SELECT * FROM walk {clause.replace(*change)}"
    said = estero.spark.explain_sql(spark, text, walk=walk())
    assert said.startswith("MATCH_RECOGNIZE 1: ")
    assert reason in said


@pytest.mark.spark
def test_days_of_a_zone_with_summer_time_are_not_equally_long(spark: SparkSession) -> None:
    clause = SHAPES.format(order="at", within="INTERVAL '1' DAY", skip="TO NEXT ROW")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        said = estero.spark.explain_sql(spark, f"SELECT * FROM walk {clause}", walk=walk())
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert "days and months in Europe/Berlin are not equally long: write WITHIN in hours" in said
