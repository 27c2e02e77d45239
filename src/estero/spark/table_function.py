"""Recognition as a table function of Spark SQL: ``SELECT * FROM recognize(TABLE(trades) …, '…CEQL…')``.

Spark calls `analyze` once, with the schema of the table and the constant arguments: it checks and plans the
query, and returns the columns of the result and those of the table that cross, as SQL that the JVM computes.
So classification costs what it costs `recognize_frame`. If the query has PARTITION BY, `analyze` also divides
the rows: by buckets of keys, because Spark makes one instance of the function for each value that it
partitions by.

Spark gives a table function no way to filter its table. But the computed columns may be generators, and one
that gives no row for an irrelevant event (`_where`) is a filter: in place of the bucket it drops events
before they are moved, in place of a column before they cross to Python.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType, TimestampNTZType, TimestampType
from pyspark.sql.udtf import AnalyzeResult, OrderingColumn, PartitioningColumn, SelectedColumn

from estero.arguments import checked
from estero.classify.column_names import KEYS, POSITION, RELEVANT, TIME
from estero.engine.int64 import fall
from estero.errors import NOWHERE, DataError, EsteroError, QueryError
from estero.language.tree.distances import AttributeWindow
from estero.language.tree.pattern import distances_of
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import EventLayout
from estero.queries.query import Query
from estero.queries.texts import query as ceql
from estero.spark.batch.ranges import shuffle_partitions
from estero.spark.frames import Crossing, columns_of_frame, give_matcher, quoted, spared
from estero.spark.rows import NumberedRows
from estero.spark.streams.packing import group_numbers
from estero.spark.work import Work, classified_batch, layout_of_schema, spark_schema
from estero.spark.workers import spare_collector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.udtf import AnalyzeArgument

    from estero.recognize.recognition import Recognition

_TEMPLATE = "${"

_OPTIONS = ("events", "query", "type", "time", "order", "time_unit", "positions", "rows", "until")


@checked
def register(spark: SparkSession, *, name: str = "recognize") -> None:
    """Registers the table function ``recognize``, or another name, for Spark SQL in this session.

    ``SELECT * FROM recognize(TABLE(trades) PARTITION BY name ORDER BY (ts), 'SELECT … WHERE …')``

    Named arguments after the query are the keyword arguments of `estero.spark.recognize`:
    ``type => 'kind'``, ``time => 'ts'``, ``order => array('id')``, ``time_unit => 'ms'``,
    ``positions => true``, ``rows => 'events'``. A query that ends with ``NOT(…) FOR d`` needs
    ``until => 'end'``, or a time, because no task knows the last of all events. Without ``time`` it is the
    column of the window, or the only column of timestamps; ``time => ''`` says that there is none. The
    columns are those of `estero.spark.recognize`, without keys that only SQL partitions by; ``match`` is
    another hash, made by DuckDB.

    A query with its own PARTITION BY distributes and orders the rows as it needs them: ``TABLE(trades)`` is
    enough then, and many keys are fast.
    """
    from pyspark.util import PythonEvalType

    buckets = 1 << (shuffle_partitions(spark) - 1).bit_length()

    class Registered(Recognize):
        @staticmethod
        def analyze(*arguments: AnalyzeArgument, **options: AnalyzeArgument) -> Analyzed:
            spare_collector()
            try:
                schema, text, said = _named(arguments, options)
                return analyze(schema, ceql(text), said, buckets)
            except EsteroError as error:  # Spark shows the traceback: keep it short
                raise error.with_traceback(None) from None

    # `arrow_udtf` refuses functions with their own `analyze` (SPARK-53286 is to change that). The JVM
    # supports both, and accepts a function that is constructed directly.
    function = _class_of_functions(spark)(
        Registered, None, name=name, evalType=PythonEvalType.SQL_ARROW_UDTF, deterministic=True
    )
    spark.udtf.register(name, function)
    give_matcher(spark)


def _class_of_functions(spark: SparkSession) -> Any:
    """The class of table functions of this session: Spark Connect has another one."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        from pyspark.sql.connect.udtf import UserDefinedTableFunction as OfConnect

        return OfConnect
    from pyspark.sql.udtf import UserDefinedTableFunction

    return UserDefinedTableFunction


@dataclass
class Analyzed(AnalyzeResult):
    """The result of `analyze`, as each instance of the function receives it."""

    work: Work | None = None
    time: str | None = None
    event_rows: bool = False
    by_query: bool = False
    """Whether the query, not the statement, decides how tasks divide the rows."""
    partitionBy: list[PartitioningColumn] = field(default_factory=list)  # noqa: N815 (Spark's name)
    orderBy: list[OrderingColumn] = field(default_factory=list)  # noqa: N815
    select: list[SelectedColumn] = field(default_factory=list)


class Recognize:
    """The table function: an instance for each value that rows are partitioned by, `eval` for each batch.

    The registered class adds `analyze`, which Spark calls first.
    """

    def __init__(self, analyzed: Analyzed) -> None:
        if analyzed.work is None:
            raise TypeError("an instance of the function needs what `analyze` has found")
        spare_collector()
        self._analyzed = analyzed
        self._work = analyzed.work
        self._rows = NumberedRows(self._work.answer) if analyzed.event_rows else None
        self._recognition: Recognition | None = None
        self._seen = 0
        self._last: int | None = None

    def eval(self, *arguments: object, **options: object) -> Iterator[pa.RecordBatch]:
        """The complex events that end in a batch of rows."""
        (batch,) = (
            argument for argument in (*arguments, *options.values()) if isinstance(argument, pa.RecordBatch)
        )
        if self._recognition is None:
            if not self._analyzed.by_query:
                _check_shared()
            self._recognition = self._work.recognition()
        self._check_order(batch)
        numbered = batch.append_column(POSITION, pa.array(np.arange(self._seen, self._seen + batch.num_rows)))
        self._seen += batch.num_rows
        relevant = numbered.filter(batch.column(RELEVANT))
        for table in self._recognition.push(classified_batch(relevant, self._work.events, 0)):
            yield from self._shown(table)

    def terminate(self) -> Iterator[pa.RecordBatch]:
        """The complex events that are decided when all rows have been read."""
        if self._recognition is not None:
            for ended in self._recognition.ended(self._work.known):
                for table in self._recognition.reader.tables(ended):
                    yield from self._shown(table)

    def _shown(self, table: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Complex events in the form in which they are shown, or their rows."""
        shown = self._work.shown(table)
        if self._rows is None:
            yield shown
        else:
            yield from self._rows.of(shown)

    def _check_order(self, batch: pa.RecordBatch) -> None:
        if self._analyzed.time is None or batch.num_rows == 0:
            return
        times = batch.column(TIME).to_numpy()
        if (self._last is not None and times[0] < self._last) or fall(times):
            raise DataError(
                f"the rows are not in order of {self._analyzed.time!r}, the time column",
                hint=f"write ORDER BY ({self._analyzed.time}) after TABLE(…) PARTITION BY …, "
                "or name another column: time => '…'",
            )
        self._last = int(times[-1])


def analyze(schema: StructType, query: Query, options: Mapping[str, Any], buckets: int) -> Analyzed:
    """The answer to Spark about a call on a table with this schema: columns, what crosses, in which order.

    The keys of the query are in `buckets` buckets, a power of two, each an instance of the function. Raises
    `QueryError` if the query does not fit the table, and `DataError` for a column that is missing or of a
    wrong kind: Spark shows their texts.
    """
    time = _time(schema, query.tree, options.get("time"))
    named = EventLayout.of(
        options.get("type"),
        time,
        options.get("order") or (),
        options.get("time_unit"),
        only_type=query.only_type,
    )
    plan = query.plan(layout_of_schema(schema, named))
    clauses = Crossing(plan.classification, columns_of_frame(schema))
    relevant, texts, order = clauses.relevant(), clauses.texts(), clauses.order()
    work = Work.of(schema, plan, positions=bool(options.get("positions")), every=True)
    work.check_shown()
    work = replace(work, known=_known(work, options.get("until")))
    by_query, counted = bool(query.tree.partition_by), work.division.positions
    if counted:
        crossing = {RELEVANT: relevant} | spared(texts, relevant)
    else:
        crossing = {RELEVANT: "true" if by_query else _where(relevant, "true")} | texts
    _check_templates(schema.names, "".join((*crossing.values(), relevant, *order)))
    event_rows = options.get("rows") is not None
    analyzed = Analyzed(
        spark_schema(NumberedRows(work.answer).schema if event_rows else work.answer),
        work=work,
        time=time,
        event_rows=event_rows,
        by_query=by_query,
        select=[SelectedColumn(text, alias=name) for name, text in crossing.items()],
    )
    if by_query:
        bucket = "0" if work.division.one_order else _bucket([texts[key] for key in KEYS], buckets)
        analyzed.withSinglePartition = counted
        analyzed.partitionBy = [] if counted else [PartitioningColumn(_where(relevant, bucket))]
        analyzed.orderBy = [OrderingColumn(text, overrideNullsFirst=False) for text in order]
    return analyzed


def _known(work: Work, until: str | None) -> int | None:
    """The time up to which all rows are known; None if it does not matter."""
    from estero.recognize.until import known_until

    if until is not None:
        return known_until(until, work.plan, work.time)
    if work.plan.wait is None:
        return None
    raise QueryError(
        "NOT(…) FOR at the end needs to know how far the rows are known, but a table function sees only "
        "some of them",
        text=work.plan.tree.text,
        span=NOWHERE,
        expected="until => 'end', where nothing comes any more, or a time that is not before any row",
        hint="estero.spark.recognize(df, …) looks for the last event itself",
    )


def _where(condition: str, value: str) -> str:
    """SQL that gives a row with the value if the condition holds, and no row otherwise."""
    return f"explode(IF({condition}, array({value}), NULL))"


def _bucket(keys: Sequence[str], buckets: int) -> str:
    """SQL of the number of a key's bucket: this many tasks, or half of them, get equally many."""
    numbers = ", ".join(map(str, group_numbers(buckets)))
    return f"element_at(array({numbers}), 1 + pmod(hash({', '.join(keys)}), {buckets}))"


def _check_templates(columns: Sequence[str], sql: str) -> None:
    """Raises `DataError` for a requested column whose name Spark would replace.

    A table function can only name columns in SQL, and Spark puts values in place of ``${…}`` there.
    """
    odd = [name for name in columns if _TEMPLATE in name and quoted(name) in sql]
    if odd:
        raise DataError(
            f"Spark SQL takes {_TEMPLATE}…}} for a variable, even in the name of a column",
            column=odd[0],
            hint="rename it before the view is made: df.withColumnRenamed(…), "
            "or use estero.spark.recognize(df, …)",
        )


def _time(schema: StructType, tree: QueryTree, named: str | None) -> str | None:
    """The time column: the one that is named, else that of a length, else the only one of timestamps."""
    if named is not None:
        return named or None
    distances = (distance for node in tree.pattern.walk() for distance in distances_of(node))
    for length in (tree.window, tree.per, *(length for distance in distances for length in distance.lengths)):
        if isinstance(length, AttributeWindow):
            return length.attribute
    instants = [
        field.name for field in schema.fields if isinstance(field.dataType, (TimestampType, TimestampNTZType))
    ]
    return instants[0] if len(instants) == 1 else None


def _named(
    arguments: tuple[AnalyzeArgument, ...], options: Mapping[str, AnalyzeArgument]
) -> tuple[StructType, str, dict[str, Any]]:
    """The schema of the table, the text of the query and the options of a call, in any order."""
    options = {name.lower(): argument for name, argument in options.items()}  # SQL ignores case
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        near = difflib.get_close_matches(unknown[0], _OPTIONS, 1)
        hint = f"did you mean {near[0]}?" if near else f"the options are {', '.join(_OPTIONS[2:])}"
        raise DataError(f"recognize has no option {unknown[0]!r}", hint=hint)
    tables = [argument for argument in (*arguments, *options.values()) if argument.isTable]
    queries = [argument for argument in arguments if not argument.isTable]
    queries += [options["query"]] if "query" in options else []
    if len(tables) != 1 or len(queries) != 1:
        raise DataError(
            "recognize takes a table and the text of a query",
            hint="SELECT * FROM recognize(TABLE(events) PARTITION BY key ORDER BY (time), 'SELECT …')",
        )
    if not isinstance(queries[0].value, str):
        raise DataError("the query must be a constant string: Spark plans by it before any row is read")
    said = {name: argument.value for name, argument in options.items() if name not in ("events", "query")}
    for name, value in said.items():
        _check_option(name, value)
    if not isinstance(tables[0].dataType, StructType):
        raise TypeError(f"a table has columns, but this one is a {tables[0].dataType}")
    return tables[0].dataType, queries[0].value, said


def _check_option(name: str, value: object) -> None:
    """Raises `DataError` for an option with a value of another kind."""
    several = value if isinstance(value, list | tuple) and name == "order" else [value]
    kind, word = (bool, "true or false") if name == "positions" else (str, "a string")
    if value is not None and not all(isinstance(one, kind) for one in several):
        also = ", or an array of strings" if name == "order" else ""
        raise DataError(f"{name} => … is {word}{also}, not {value!r}")
    if name == "rows" and value not in (None, "events"):
        raise DataError(f"rows => … is 'events', or left out for complex events, not {value!r}")


def _check_shared() -> None:
    """Raises `DataError` in a second task that has rows without a key: there would be several orders.

    Spark's own loop over partitions is the caller if there are keys; nothing else reveals them.
    """
    from pyspark import TaskContext

    frame: FrameType | None = sys._getframe()  # noqa: SLF001 (see above)
    keyed = False
    while frame is not None and not keyed:
        keyed = type(frame.f_locals.get("self")).__name__ == "ArrowUDTFWithPartition"
        frame = frame.f_back
    task = TaskContext.get()
    if not keyed and task is not None and task.partitionId() > 0:
        raise DataError(
            "the rows of the table are in several tasks, and each would see only a part of the stream",
            hint="write TABLE(…) PARTITION BY key ORDER BY (time), or TABLE(…) WITH SINGLE PARTITION "
            "ORDER BY (time), or PARTITION BY [key] in the query",
        )
