"""ORDER BY … LIMIT n on Spark: the best of tasks, and of these the best, are those of one process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import estero
from estero.answers.answer import Answer
from estero.answers.answer_schema import label_of
from estero.classify.column_names import KEYS, is_working, payload_name
from estero.errors import QueryError
from estero.language.tree.query import QueryTree
from estero.plan.division import division_of
from estero.queries.ranked import Wanted
from estero.recognize.in_process import InProcessRun
from estero.recognize.source_run import time_type
from estero.reference.queries import Event
from estero.spark import count, explain, recognize
from estero.spark.batch.best import BestWork
from estero.spark.work import Work, told_apart
from laws.test_restart_laws import picked
from strategies.patterns import queries, queries_by_start, streams
from strategies.whole import whole_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORTH = "SELECT a, b, sum(a.x) AS worth WHERE A+ AS a ; B AS b {}"
EVENTS = pa.table(
    {
        "type": ["A", "A", "B", "A", "B"] * 8,
        "t": list(range(40)),
        "k": [1, 1, 1, 2, 2, 2, 1, 2] * 5,
        "x": [place * 7 % 11 for place in range(40)],
    }
)
LAYOUT: dict[str, Any] = {"type": "type", "time": "t", "time_unit": "s"}


@settings(max_examples=40)
@given(
    st.one_of(queries(), queries_by_start(), whole_queries()),
    streams(max_size=9),
    st.integers(0, 4),
    st.booleans(),
    st.data(),
)
def test_the_best_of_tasks_have_the_best_of_all(
    tree: QueryTree, events: list[Event], number: int, ascending: bool, data: st.DataObject
) -> None:
    run = picked(tree, events)
    answer = Answer(run)
    by = data.draw(st.sampled_from(sorted(_worths(answer.schema))), "by")
    work = _work_of(run)
    best = BestWork.of(work, Wanted(number, by, ascending))
    of_tasks = [list(best.on_batches(iter(task))) for task in _tasks(run, work)]
    order = data.draw(st.permutations(of_tasks), "order")
    rows = pa.Table.from_batches(best.merged(batch for task in order for batch in task), work.answer)
    right = answer.top(number, by, ascending=ascending).to_arrow()
    assert [repr([*row.values()]) for row in rows.to_pylist()] == [
        repr([*row.values()]) for row in right.to_pylist()
    ]


def _worths(schema: pa.Schema) -> Iterator[str]:
    """What complex events with these columns are ranked by."""
    yield from ("duration", "start_time", "end_time") if "start_time" in schema.names else ()
    for field in schema:
        if (label := label_of(field)) is not None:
            yield f"count({label})"
            yield from (f"sum({label}.n)" for one in field.type.value_type if one.name == "n")


def _work_of(run: InProcessRun) -> Work:
    plan, source = run.plan, run.source
    events = source.classified_schema(plan.classification)
    known = run.known()
    work = Work(plan, division_of(plan), events, time_type(source), True, pa.schema([]), known)
    return replace(work, answer=told_apart(work.recognized))


def _tasks(run: InProcessRun, work: Work) -> list[list[pa.RecordBatch]]:
    """The events of two tasks that share the keys, or of one, as they come from Spark."""
    tasks: list[list[pa.RecordBatch]] = [[], []]
    for batch in run.source.read(run.plan.classification):
        names = [name for name in batch.schema.names if not is_working(name)]
        crossing = {name: batch.column(name) for name in batch.schema.names if is_working(name)}
        crossing |= {payload_name(place): batch.column(name) for place, name in enumerate(names)}
        rows = pa.RecordBatch.from_pydict(crossing)
        of_task = np.zeros(rows.num_rows, np.bool_)
        if work.division.by_key and KEYS[0] in crossing:
            of_task = crossing[KEYS[0]].to_numpy() % 2 == 1
        for task, own in zip(tasks, (~of_task, of_task), strict=True):
            task.append(rows.filter(pa.array(own)))
    return tasks


@pytest.mark.spark
@pytest.mark.parametrize(
    "clauses",
    [
        "PARTITION BY [k] WITHIN 9 SECONDS ORDER BY worth DESC LIMIT 4",
        "WITHIN 6 SECONDS ORDER BY duration LIMIT 7",
    ],
)
def test_a_batch_has_the_best_rows_in_their_order(spark: SparkSession, clauses: str) -> None:
    query, frame = WORTH.format(clauses), spark.createDataFrame(EVENTS)
    rows = recognize(frame, query, **LAYOUT, positions=True, partitions=3)
    right = estero.query(query).run(EVENTS, **LAYOUT).to_arrow()
    assert rows.toArrow().to_pylist() == right.to_pylist()
    assert rows.columns == right.schema.names
    assert count(frame, query, **LAYOUT) == right.num_rows


@pytest.mark.spark
def test_what_has_no_best_is_refused(spark: SparkSession) -> None:
    frame, stream = spark.createDataFrame(EVENTS), spark.readStream.format("rate").load()
    best = "SELECT * WHERE A AS a ; B AS b ORDER BY sum(a.x) LIMIT 2"
    said = "ORDER BY … LIMIT chooses among all complex events, and a stream has never had all of them"
    for asked in (recognize, explain):
        with pytest.raises(QueryError, match=rf"^{said}"):
            asked(stream, "SELECT * WHERE Event ORDER BY duration LIMIT 2", time="timestamp")
    with pytest.raises(ValueError, match=r"^ORDER BY … LIMIT lists the best alone: leave share out$"):
        recognize(frame, best, **LAYOUT, share=2)
    with pytest.raises(ValueError, match=r"^ORDER BY ranks complex events: leave partials=True out$"):
        recognize(frame, best, **LAYOUT, partials=True)
    with pytest.raises(QueryError, match=r"the events a show no attribute x: they show t") as refused:
        recognize(frame, best.replace("*", "a[t], b"), **LAYOUT)
    assert refused.value.hint == "ORDER BY looks at what SELECT shows: SELECT * shows everything"
    with pytest.raises(QueryError, match=r"^rule one: ORDER BY ranks the answer to all events"):
        recognize(frame, estero.rules({"one": best}), **LAYOUT)
