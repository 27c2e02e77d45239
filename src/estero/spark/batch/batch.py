"""A plan and a DataFrame of events → a DataFrame of complex events, or their number.

The JVM classifies (frames.py), Arrow batches of relevant events cross to Python workers, and each worker runs
recognition over the events that its task has (distribute.py), keys interleaved as they come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.automata.registers import Value
from estero.classify.classify import Clauses, columns_read
from estero.classify.column_names import free_name
from estero.classify.spark_dialect import SPARK
from estero.language.tree.expressions import Attribute, Cast
from estero.language.tree.schema import HASHED, Kind
from estero.plan.levels import PartialsPlan
from estero.plan.plan import Classification, Plan
from estero.queries.ranked import Wanted
from estero.spark.batch.best import BestWork
from estero.spark.batch.distribute import distribute, number_of_shares
from estero.spark.failures import jobs
from estero.spark.frames import positional, positional_columns
from estero.spark.rows import rows_of
from estero.spark.work import Batches, Work, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from estero.recognize.until import Until

_COUNT = pa.schema([pa.field("count", pa.binary(), nullable=False)])


def recognize_frame(  # noqa: PLR0913 (as `recognize`)
    df: DataFrame,
    plan: Plan | PartialsPlan,
    *,
    positions: bool = False,
    partitions: int | None = None,
    split_keys: bool = True,
    share: int | None = None,
    event_rows: bool = False,
    until: Until | None = None,
    wanted: Wanted | None = None,
) -> DataFrame:
    """The complex events of `plan` in `df`, one row each: lazy, except for cutting ranges (distribute.py).

    With `positions` the columns are those of the public table; without, ``start``, ``end`` and the
    ``position`` of events are left out, because positions in the whole stream cost a move and a sort of all
    events. `partitions` is the number of tasks that share the partition keys, or of the ranges of time into
    which a windowed query without keys is cut; with `split_keys` hot keys are cut as well. `share` tasks
    share the enumeration (None: as the planner decides). `until` is the time up to which events are known, or
    None for that of the last event: a job finds it, if the query needs it. With `event_rows` there is one row
    for each marked event and label (`rows_of`). A plan for partial matches gives these, too; only the keys
    are shared then. If only the best are `wanted`, they come best first; tasks do not share their
    enumeration, because they list no others.

    Raises `QueryError` if no column is left to show, `DataError` for a column that cannot cross or that Spark
    does not find, and ValueError if complex events cannot be ranked as wanted.
    """
    partials = plan if isinstance(plan, PartialsPlan) else None
    df, plan = keyed(df, plan)
    work = Work.of(df.schema, plan, positions=positions, partials=partials)
    work.check_shown()
    work = replace(work, known=known_time(df, work, until), last_position=_last_position(df, work))
    shared = partials is None and wanted is None
    shares = number_of_shares(work.plan, df.sparkSession, share=share, partitions=partitions) if shared else 1
    distributed = distribute(df, work.plan, work.division, partitions, split_keys=split_keys, shares=shares)
    on_batches = work.on_batches(distributed.shares) if partials is None else work.with_partials(partials)
    if wanted is not None:
        matches = BestWork.of(work, wanted).best(distributed.rows)
    else:
        matches = distributed.rows.mapInArrow(on_batches, spark_schema(work.answer))
    if event_rows:
        matches = rows_of(matches, work.answer)
    distributed.release_with(matches)
    return matches


def known_time(df: DataFrame, work: Work, until: Until | None) -> int | None:
    """The time up to which events are known; None if it does not matter, or without events.

    Raises `DataError` if `until` is before the last event.
    """
    from estero.recognize.until import AFTER_ALL, check_until, known_until

    partials = work.partials is not None
    known = None if until is None else known_until(until, work.plan, work.time, partials=partials)
    asked = work.plan.wait is not None or (partials and not work.plan.by_position)
    if not asked or known == AFTER_ALL:
        return known
    text = Clauses(work.plan.classification, SPARK, positional_columns(df.schema)).time()
    with jobs():
        last = positional(df).selectExpr(f"max({text}) AS last").collect()[0]["last"]
    if known is not None:
        check_until(known, last)
        return known
    return AFTER_ALL if last is None else int(last)


def _last_position(df: DataFrame, work: Work) -> int | None:
    """The position of the last event, if it decides which partial matches are complete; else None."""
    if work.partials is None or not work.plan.by_position:
        return None
    with jobs():
        return df.count() - 1


def count_frame(
    df: DataFrame,
    plan: Plan,
    *,
    partitions: int | None = None,
    split_keys: bool = True,
    until: Until | None = None,
) -> int:
    """The exact number of complex events of `plan` in `df`, of any size; one job, and those of cutting.

    Nothing is enumerated, except where a sieve has to check each complex event, and attributes that are only
    shown do not cross to Python. The arguments and errors are those of `recognize_frame`.
    """
    df, plan = keyed(df, plan.showing_nothing())
    work = Work.of(df.schema, plan, positions=False)
    work = replace(work, known=known_time(df, work, until))
    distributed = distribute(df, work.plan, work.division, partitions, split_keys=split_keys)
    counted = distributed.rows.mapInArrow(_counting(work), "count binary")
    try:
        with jobs():
            return sum(int.from_bytes(row["count"], "big") for row in counted.collect())
    finally:
        distributed.release()


def _counting(work: Work) -> Callable[[Batches], Batches]:
    """The function for ``mapInArrow``: one row with the count of a task.

    It is bytes, because a count has more digits than a column of numbers holds, and than Python reads.
    """

    def count(batches: Batches) -> Batches:
        from estero.recognize.set_reader import number_in  # kernels are for workers only

        total = number_in(work.ended(batches, counting=True))
        size = (total.bit_length() + 7) // 8
        yield pa.RecordBatch.from_arrays([pa.array([total.to_bytes(size, "big")])], schema=_COUNT)

    return count


def keyed(df: DataFrame, plan: Plan | PartialsPlan) -> tuple[DataFrame, Plan]:
    """The events and the plan with a partition key, if all events of an answer share a value.

    If types have it under different names, it becomes a separate column. Unequal values may have equal keys
    (strings are hashed, numbers compared as floats): they only meet in one task. For partial matches the plan
    is that of the query; events without the value are partial matches, too, of one step.
    """
    if isinstance(plan, PartialsPlan):
        return _keyed_by_levels(df, plan)
    if not plan.shared:
        return df, plan
    names = list(dict.fromkeys(plan.shared.values()))
    df, name = (df, names[0]) if len(names) == 1 else _with_key(df, plan.classification, plan.shared)
    return df, replace(plan, classification=replace(plan.classification, keys=((name,),)))


def _keyed_by_levels(df: DataFrame, plan: PartialsPlan) -> tuple[DataFrame, Plan]:
    whole = plan.whole
    if not plan.shared:
        return df, whole
    df, name = _with_key(df, whole.classification, plan.shared, always=True)
    return df, replace(whole, classification=replace(whole.classification, keys=((name,),)))


def _with_key(
    df: DataFrame, classification: Classification, shared: Mapping[str, str], *, always: bool = False
) -> tuple[DataFrame, str]:
    """The events with a column for the shared value, and its name; with `always` it is never NULL.

    Events without the value then have a substitute, which spreads them among tasks.
    """
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    columns = columns_read(classification, SPARK, positional_columns(df.schema))
    types: dict[str, list[str]] = {}
    for type_name, attribute in shared.items():
        types.setdefault(attribute, []).append(type_name)
    by_texts = any(columns[name].kind is Kind.DECIMAL for name in types)  # as `Values` compares them
    values = []
    for name, of in types.items():
        as_text = by_texts and columns[name].kind is Kind.INT
        value = Cast(Attribute(name), "STRING") if as_text else Attribute(name)
        values.append(Value(value, tuple(of), 0 if as_text or columns[name].kind in HASHED else None))
    clauses = Clauses(replace(classification, values=tuple(values)), SPARK, columns)
    texts = list(clauses.values().values())
    if always:
        texts.append(f"xxhash64({clauses.time() or '0'})")
    name = free_name("shared", df.columns)
    key = F.coalesce(*map(F.expr, texts))
    return positional(df).withColumn(name, key).toDF(*df.columns, name), name
