"""A DataFrame of events → the classified DataFrame, computed by Spark's own JVM.

Everything here is Spark SQL over the columns of the DataFrame (written by classify.py), so that the relevance
condition reaches the scan, and irrelevant events never reach Python. No job runs here.

Spark reads SQL with templates and settings of its own (spark_dialect.py). So SQL never contains a user's
names: columns are first renamed to their indexes, by calls that parse nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from estero.arguments import shown
from estero.classify.classify import Clauses, columns_read
from estero.classify.column_names import (
    ARRIVAL,
    COLUMN,
    EVENT,
    KEYED,
    KEYS,
    ORDER,
    ORDINAL,
    POSITION,
    RELEVANT,
    TIME,
    check_names,
    event_column,
    payload_name,
    word_names,
)
from estero.classify.columns import ColumnType, reference
from estero.classify.spark_dialect import MATCHER, SPARK
from estero.classify.values import ValueWriter
from estero.errors import DataError
from estero.events.tables.nested_columns import named_in, paths_in
from estero.language.tree.paths import column_of, steps_of
from estero.language.tree.schema import EventLayout, Kind
from estero.language.tree.words import named
from estero.plan.plan import Classification
from estero.spark.failures import NULL_TIME

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Z", "+00:00"})


def check_frame(df: object) -> None:
    """Raises `DataError` for anything but a Spark DataFrame."""
    if not all(hasattr(type(df), name) for name in ("isStreaming", "schema", "columns")):
        library = type(df).__module__.partition(".")[0]
        what = shown(df) + (f" of {library}" if library in ("pandas", "polars", "pyarrow") else "")
        if isinstance(df, str | os.PathLike):
            hint = "estero.spark.read_events(path) gives the DataFrame of a file"
        else:
            hint = "make one with spark.createDataFrame, or run the query in this process: query.run(events)"
        raise DataError(f"this is not a Spark DataFrame but {what}", hint=hint)


def columns_of_frame(schema: StructType) -> dict[str, ColumnType]:
    """How expressions read each column of a DataFrame with this schema, under its own name.

    Raises `DataError` as `check_names` does.
    """
    check_names(schema.names, None)
    return {
        field.name: replace(_column_type(field.dataType), stands=exp.column(field.name, quoted=True))
        for field in schema.fields
    }


def _column_type(spark_type: DataType) -> ColumnType:
    """The form in which expressions read values of a type, including nested ones."""
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(spark_type, StructType):
        return ColumnType(
            Kind.OPAQUE,
            fields=tuple((field.name, _column_type(field.dataType)) for field in spark_type.fields),
        )
    if isinstance(spark_type, ArrayType):
        return ColumnType(Kind.OPAQUE, element=_column_type(spark_type.elementType))
    return SPARK.column_type(spark_type.simpleString())


def positional_columns(schema: StructType) -> dict[str, ColumnType]:
    """How expressions read each column of a DataFrame with this schema once it is `positional`."""
    return {
        name: replace(column, stands=exp.column(f"{COLUMN}{place}"))
        for place, (name, column) in enumerate(columns_of_frame(schema).items())
    }


def with_nested_fields(df: DataFrame, layout: EventLayout) -> DataFrame:
    """The frame with those fields of structs as columns that a layout names: ``event.outcome``."""
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)
    from pyspark.sql.pandas.types import to_arrow_schema

    names = [name for name in named_in(layout) if name not in df.columns]
    if not names:
        return df
    for name, (first, *rest) in paths_in(names, to_arrow_schema(df.schema)).items():
        column = F.col(quoted(first))
        for step in rest:
            column = column.getField(step)
        df = df.withColumn(name, column)
    return df


def positional(df: DataFrame) -> DataFrame:
    """The same rows with columns named by index: SQL over them has no names of a user."""
    return df.toDF(*(f"{COLUMN}{place}" for place in range(len(df.columns))))


@dataclass(frozen=True, slots=True)
class Laid:
    """Classified rows before they are moved: the `computed` columns of each, and the stream order.

    If irrelevant events are included, ``__relevant`` tells (`relevant_only`).
    """

    rows: DataFrame
    computed: tuple[str, ...]
    sort_keys: tuple[Column | str, ...]


class Crossing(Clauses):
    """The values that Spark computes of events, as texts of SQL over `columns`, on their way to Python."""

    def __init__(self, classification: Classification, columns: Mapping[str, ColumnType]) -> None:
        super().__init__(classification, SPARK, columns)

    def texts(self) -> dict[str, str]:
        """The columns of an event that cross, by name: the computed ones, then the payload."""
        texts, time = self.computed(), self.classification.schema.time
        if time is not None:
            failure = f"CAST(raise_error('{NULL_TIME}') AS BIGINT)"
            texts[TIME] = f"IF({self.as_it_is(time)} IS NULL, {failure}, {texts[TIME]})"
        payload = enumerate(self.classification.payload)
        return texts | {payload_name(place): self.as_it_is(name) for place, name in payload}

    def relevant(self) -> str:
        """Whether an event is relevant; never NULL."""
        return f"coalesce({self.relevance()}, false)"

    def ordering(self) -> dict[str, str]:
        """The columns that the stream is sorted by, by name: ``__order0`` is the time."""
        return {f"{ORDER}{place}": text for place, text in enumerate(self.order())}

    def as_it_is(self, name: str) -> str:
        """A column of the events, without a cast."""
        return SPARK.text(reference(name, self.columns[name]))


def laid_out(df: DataFrame, classification: Classification, *, every: bool) -> Laid:
    """The classified rows of `df`, not yet moved: relevant ones, or with `every` all of them.

    Irrelevant events are only counted: apart from times and keys, their values are not computed.
    """
    columns = positional_columns(df.schema)
    if _is_in_utc(df):
        columns = {name: SPARK.in_utc(column) for name, column in columns.items()}
    clauses = Crossing(classification, columns)
    relevant, computed, ordering = clauses.relevance(), clauses.texts(), clauses.ordering()
    give_matcher_for(df.sparkSession, (relevant, *computed.values()))
    arrival = f"monotonically_increasing_id() AS {ARRIVAL}"
    if not every:
        first = [TIME] if TIME in computed else []
        if first:
            del ordering[f"{ORDER}0"]  # the time itself
        rows = positional(df).where(relevant).selectExpr(*_named(computed | ordering), arrival)
        return Laid(rows, tuple(computed), (*first, *_sort_keys(ordering)))
    flags = {RELEVANT: clauses.relevant(), KEYED: clauses.keyed()}
    flagged = positional(df).selectExpr("*", *_named(flags), arrival)
    kept = spared(computed, RELEVANT, but=(TIME, *KEYS))
    rows = flagged.selectExpr(*_named(kept | ordering), *flags, ARRIVAL)
    return Laid(rows, tuple(computed), _sort_keys(ordering))


def streamed(
    df: DataFrame,
    events: StructType,
    classification: Classification,
    *,
    clock: str,
    every: bool,
    whole: Sequence[str] = (),
) -> DataFrame:
    """The classified rows of a streaming DataFrame: relevant ones, or with `every` all of them, flagged.

    `df` has the columns of `events`, `positional`, and may have more. The result has ``__time``, the key
    halves, the words of bits, the values, the payload, then ``__order1``, … if ties are broken, ``__event0``,
    … for the columns `whole`, and with `every` ``__relevant``. `clock` is the column that has a watermark:
    *all* events move it, so Spark must not filter before it reads the times.
    """
    clauses = Crossing(classification, positional_columns(events))
    relevant, computed, ordering = clauses.relevant(), clauses.texts(), clauses.ordering()
    give_matcher_for(df.sparkSession, (relevant, *computed.values()))
    del ordering[f"{ORDER}0"]  # the time itself
    computed |= {f"{EVENT}{place}": clauses.as_it_is(name) for place, name in enumerate(whole)}
    if every:
        return df.selectExpr(*_named(spared(computed, relevant) | ordering), f"{relevant} AS {RELEVANT}")
    # Spark filters before it follows the watermark, unless the condition reads that very time.
    no_time = f"CAST(raise_error('{NULL_TIME}') AS BOOLEAN)"
    asked = f"CASE WHEN {clock} IS NULL THEN {relevant} AND {no_time} ELSE {relevant} END"
    return df.where(asked).selectExpr(*_named(computed | ordering))


def _is_in_utc(df: DataFrame) -> bool:
    """Whether expressions over `df` are evaluated in UTC for good; Spark Connect reads the zone later."""
    if not hasattr(df, "_jdf"):
        return False
    return df.sparkSession.conf.get("spark.sql.session.timeZone") in _UTC


def relevant_only(rows: DataFrame) -> DataFrame:
    """The relevant rows of a frame laid out with `every`."""
    from pyspark.sql import functions as F  # noqa: N812

    return rows.where(F.col(RELEVANT))


def classified_schema(events: StructType, classification: Classification, *, ordinals: bool) -> pa.Schema:
    """The Arrow schema of what recognition receives: the columns of the classified table, in its order."""
    fields = [pa.field(POSITION, pa.int64()), pa.field(TIME, pa.int64())]
    if ordinals:
        fields.append(pa.field(ORDINAL, pa.int64()))
    if classification.keys:
        fields += [pa.field(name, pa.uint64()) for name in KEYS]
    columns = columns_read(classification, SPARK, columns_of_frame(events))
    fields += [pa.field(name, pa.int64()) for name in word_names(len(classification.predicates))]
    values = ValueWriter(classification, SPARK, columns).columns()
    fields += [pa.field(name, value.arrow_type) for name, value in values.items()]
    fields += [pa.field(event_column(name), arrow_type(name, events)) for name in classification.payload]
    return pa.schema(fields)


def arrow_type(name: str, events: StructType) -> pa.DataType:
    """The Arrow type in which a column crosses to Python; instants are in UTC.

    Raises `DataError` for a type that cannot cross.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import NullType

    spark_type: Any = events[column_of(name)].dataType
    for step in steps_of(name):
        if isinstance(spark_type, NullType):  # everything inside NULL is NULL
            break
        spark_type = spark_type.elementType if isinstance(step, int) else _field(spark_type, step)
    try:
        return to_arrow_type(spark_type, timezone="UTC")
    except PySparkException as error:
        raise DataError(
            f"values of type {spark_type.simpleString()} cannot be shown",
            column=named(name),
            hint="leave the column out of the SELECT list, or cast it to another type",
        ) from error


def _field(spark_type: Any, name: str) -> Any:
    """The type of a field of a struct; for a list of structs, the list of that type."""
    from pyspark.sql.types import ArrayType, NullType

    if not isinstance(spark_type, ArrayType):
        return spark_type if isinstance(spark_type, NullType) else spark_type[name].dataType
    inner = _field(spark_type.elementType, name)
    return inner if isinstance(inner, ArrayType) else ArrayType(inner)


def quoted(name: str) -> str:
    """A column's name in the form that functions of PySpark accept. It is not for SQL."""
    return "`" + name.replace("`", "``") + "`"


def spared(texts: Mapping[str, str], relevant: str, *, but: Sequence[str] = (TIME,)) -> dict[str, str]:
    """The texts, which compute only these columns for irrelevant events."""
    return {
        name: text if name in but else f"CASE WHEN {relevant} THEN {text} END" for name, text in texts.items()
    }


def _sort_keys(names: Iterable[str]) -> tuple[Column | str, ...]:
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    return (*(F.col(name).asc_nulls_last() for name in names), ARRIVAL)


def _named(texts: Mapping[str, str]) -> list[str]:
    return [f"{text} AS {name}" for name, text in texts.items()]


# ------------------------------------------------------------------------------ regular expressions


def give_matcher(spark: SparkSession) -> None:
    """Gives a session the function that matches by RE2, for SQL that Estero writes.

    It matches, in Python workers, expressions that would cost Java's matcher too much time or stack. Bringing
    the texts there takes about a microsecond per event.
    """
    from pyspark.sql.pandas.functions import arrow_udf

    if not spark.catalog.functionExists(MATCHER):
        spark.udf.register(MATCHER, arrow_udf(_matched, "boolean"))  # type: ignore[call-overload]


def give_matcher_for(spark: SparkSession, texts: Iterable[str]) -> None:
    """The same if one of these SQL texts needs it."""
    if any(MATCHER in text.lower() for text in texts):
        give_matcher(spark)


def _matched(texts: pa.Array, regexes: pa.Array) -> pa.Array:
    """Whether each text matches; all rows have the same expression."""
    if len(texts) == 0:
        return pa.array([], pa.bool_())
    return pc.match_substring_regex(texts, regexes[0].as_py())
