"""One MATCH_RECOGNIZE over a DataFrame → the DataFrame of its result.

Spark evaluates PARTITION BY and ORDER BY, brings the rows of a partition to one task and sorts them. Only
columns that the clause reads cross to Python, where the rows are evaluated as in this process (work.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.classify.column_names import TIME
from estero.errors import DataError, warn
from estero.language.row_patterns.slots import column_name
from estero.language.row_patterns.tree import RowPatternClause
from estero.recognize.row_patterns.evaluation import Evaluation
from estero.recognize.row_patterns.keys import Key
from estero.recognize.row_patterns.ordered_rows import NO_ORDER, Relation
from estero.recognize.row_patterns.resumption import ends_with_partition
from estero.recognize.row_patterns.statements import unique
from estero.spark.row_patterns.division import division_in_words, is_chained, why_one_task
from estero.spark.row_patterns.range_work import in_time_ranges
from estero.spark.row_patterns.streams import check_stream, refuse_another, stream_frame
from estero.spark.row_patterns.time_axis import TimeAxis
from estero.spark.row_patterns.time_ranges import find_time_ranges
from estero.spark.row_patterns.types import crossing_type, result_type
from estero.spark.row_patterns.work import GROUP, RowPatternWork, StatementsInZone, check_zone
from estero.spark.work import spark_schema
from estero.system.cached_property import cached_property

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ARRIVAL = "arrival"

Selected = Callable[[Sequence[str]], "DataFrame"]
"""A function that gives the input of a clause with further columns, which are Spark SQL."""


@dataclass(frozen=True)
class Input:
    """The input of a clause: its columns with DuckDB's types, and the Arrow types in which they cross."""

    columns: tuple[tuple[str, str], ...]
    crossing: tuple[pa.DataType | None, ...]
    zone: str

    @classmethod
    def of(cls, df: DataFrame) -> Input:
        """The input for a DataFrame; raises `DataError` for a time zone unknown to DuckDB."""
        zone = str(df.sparkSession.conf.get("spark.sql.session.timeZone"))
        crossing = tuple(crossing_type(field.dataType, zone) for field in df.schema.fields)
        if any(kind is not None and "tz=" in str(kind) for kind in crossing):
            check_zone(zone)
        else:
            zone = "UTC"
        empty = pa.table(
            {
                column_name(number): pa.nulls(0, pa.binary() if kind is None else kind)
                for number, kind in enumerate(crossing)
            }
        )
        statements = StatementsInZone(zone)
        described = statements.types("SELECT * FROM input", "the input of MATCH_RECOGNIZE", {"input": empty})
        names = [field.name for field in df.schema.fields]
        return cls(tuple(zip(names, [kind for _, kind in described], strict=True)), crossing, zone)

    def type_of(self, number: int) -> pa.DataType:
        """The Arrow type of a column; raises `DataError` if its values cannot cross to Python."""
        kind = self.crossing[number]
        if kind is None:
            raise DataError(
                "values of this type cannot be read in MATCH_RECOGNIZE",
                column=self.columns[number][0],
                hint="cast the column before, or leave it out: FROM (SELECT …) MATCH_RECOGNIZE",
            )
        return kind


class MatchedClause:
    """A clause, the `number`th of its statement, over the DataFrame that `selected` gives.

    `is_streamed` says that an earlier one is over a stream. Raises `QueryError` for mistakes in it.
    """

    partition: list[Key]
    order: list[Key]

    def __init__(
        self,
        clause: RowPatternClause,
        relation: str,
        selected: Selected,
        number: int = 1,
        *,
        is_streamed: bool = False,
    ) -> None:
        self._clause, self._relation, self._number = clause, relation, number
        df = selected(())
        if is_streamed or (df.isStreaming and number > 1):
            refuse_another(clause)
        self.input: Input = Input.of(df)
        self._statements = StatementsInZone(self.input.zone)
        self._evaluation = Evaluation(self._statements, clause, self.input.columns, relation)
        self._evaluation.check()
        self.partition, self.order = self._evaluation.partition, self._evaluation.order
        if df.isStreaming:
            check_stream(clause, df, self.order)
        elif not self.order:
            warn(NO_ORDER)
        computed = {
            f"{kind}{place}": key
            for kind, keys in (("p", self.partition), ("o", self.order))
            for place, key in enumerate(keys)
            if key.column is None
        }
        names = [column_name(number) for number in range(len(self.input.columns))]
        df = selected([key.value for key in computed.values()]) if computed else df
        self.df: DataFrame = df.toDF(*names, *computed)
        self.work: RowPatternWork = self._work([name for name in computed if name.startswith("p")])

    @property
    def explained(self) -> str:
        """How matches are found, and how tasks divide the rows, in words."""
        division = division_in_words(self._evaluation, self._axis, streaming=self.df.isStreaming)
        return f"{self._evaluation.conditions.strategy}; on Spark: {division}"

    def frame(self, *, by_time: bool = True) -> DataFrame:
        """The rows of the result; if rows are cut `by_time`, runs jobs that read the times."""
        if self.df.isStreaming:
            return self._of_stream().toDF(*self.names)
        in_ranges = self._in_ranges() if by_time and not self.partition else None
        return (self._of_batch() if in_ranges is None else in_ranges).toDF(*self.names)

    def _of_stream(self) -> DataFrame:
        keys = [self._without_signs(_column(key, "p", place)) for place, key in enumerate(self.partition)]
        time, *order = [_column(key, "o", place) for place, key in enumerate(self.order)]
        further = [replace(key, value=name).sort for key, name in zip(self.order[1:], order, strict=True)]
        return stream_frame(self.df, self.work, time, keys, further, self._number)

    def _of_batch(self) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

        keys = [_column(key, "p", place) for place, key in enumerate(self.partition)]
        order = [_sorted(key, _column(key, "o", place)) for place, key in enumerate(self.order)]
        rows = self.df.withColumn(ARRIVAL, F.monotonically_increasing_id())
        names = self.work.crossing.names
        if keys:
            rows = rows.withColumn(GROUP, F.xxhash64(*map(self._without_signs, keys)))
            rows = rows.repartition(GROUP).sortWithinPartitions(GROUP, *keys, *order, ARRIVAL)
            names = [GROUP, *names]
        else:
            rows = rows.repartition(1).sortWithinPartitions(*order, ARRIVAL)
        return rows.select(*names).mapInArrow(self.work.on_batches(), spark_schema(self.work.result))

    def _in_ranges(self) -> DataFrame | None:
        """The rows of the result by ranges of time; None if one task has all rows."""
        from pyspark.sql.functions import expr, monotonically_increasing_id

        axis = self._axis
        if axis is None or why_one_task(self._evaluation, axis):
            return None
        time = _column(self.order[0], "o", 0)
        order = [_sorted(key, _column(key, "o", place)) for place, key in enumerate(self.order)]
        around, chained = self._evaluation.surroundings, is_chained(self._clause)
        times = self.df.selectExpr(f"{axis.ticks(time)} AS {TIME}")
        ranges = find_time_ranges(times, axis.ends_of_windows, around, chained=chained)
        if ranges is None:
            return None
        rows = self.df.withColumns(
            {ARRIVAL: monotonically_increasing_id(), TIME: expr(axis.ticks_of_all(time))}
        )
        return in_time_ranges(rows, ranges, self.work, [*order, ARRIVAL], chained=chained)

    @cached_property
    def _axis(self) -> TimeAxis | None:
        """The times of the first entry of ORDER BY."""
        if not self.order:
            return None
        kind = self.df.schema[_column(self.order[0], "o", 0)].dataType.typeName()
        return TimeAxis(self._evaluation, kind, self.input.zone)

    def _without_signs(self, name: str) -> Column:
        """A key whose zeros of both signs have one hash."""
        from pyspark.sql import functions as F  # noqa: N812

        is_float = self.df.schema[name].dataType.typeName() in ("float", "double")
        return F.col(name) + F.lit(0.0) if is_float else F.col(name)

    def _work(self, computed: Sequence[str]) -> RowPatternWork:
        numbers = {key.column for key in self.partition if key.column is not None}
        numbers |= set(self._evaluation.needed())
        columns = {column_name(number): self.input.type_of(number) for number in sorted(numbers)}
        others = list(computed)
        if self._clause.within is not None and self.order:
            others.append(_column(self.order[0], "o", 0))
        fields = self.df.schema
        for name in others:
            kind = crossing_type(fields[name].dataType, self.input.zone)
            if kind is None:
                raise DataError(
                    f"values of type {fields[name].dataType.simpleString()} cannot be keys of MATCH_RECOGNIZE"
                )
            columns.setdefault(name, kind)
        crossing = pa.schema(list(columns.items()) or [(ARRIVAL, pa.int64())])  # rows are counted at least
        empty, name = crossing.empty_table(), unique("crossed")
        with self._statements.registered({name: empty}):
            result = self._evaluation.table(Relation(name, self._relation, sorted=True)).schema
        self.names: list[str] = list(result.names)
        result = pa.schema(
            [(f"r{place}", result_type(field.type, field.name)) for place, field in enumerate(result)]
        )
        return RowPatternWork(
            self._clause,
            self.input.columns,
            self._relation,
            self.input.zone,
            crossing,
            result,
            self._statements.aggregates,
            in_pieces=self._clause.within is not None and not ends_with_partition(self._clause),
        )


def _column(key: Key, kind: str, place: int) -> str:
    """The name of the column that holds a key."""
    return f"{kind}{place}" if key.column is None else column_name(key.column)


def _sorted(key: Key, name: str) -> Column:
    """The order of an entry of ORDER BY; NULL comes last unless the entry says otherwise."""
    from pyspark.sql import functions as F  # noqa: N812

    column = F.col(name)
    if key.descending:
        return column.desc_nulls_first() if key.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if key.nulls_first else column.asc_nulls_last()
