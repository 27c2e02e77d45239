"""Complex events of a DataFrame → one row for each marked event and label, as Spark expressions.

`RowsLayout` defines the columns. ``match`` is Spark's ``xxhash64`` of the identity of a complex event. With
positions that is its partition columns, ``start``, ``end``, its times and, for each label, the number of
events that it marks and their positions; without, it has only the times, and in place of positions the shown
attributes, with whether each of them is NULL.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.answers.rows import LABEL, MATCH, RowsLayout
from estero.spark.work import spark_schema, told_apart

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from estero.events.database import Database


def rows_of(matches: DataFrame, answer: pa.Schema, *, late: str | None = None) -> DataFrame:
    """The rows of complex events; `answer` is the schema of `matches` in the form of an `Answer`.

    With `late`, `matches` has two columns: the complex event and, under that name, a late event; one of them
    is NULL in each row. The result has the same two, with a row in place of a complex event.
    """
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    layout = RowsLayout(answer)
    wanted = spark_schema(told_apart(layout.schema))
    shown = list(wanted.fields)
    # By number, because names may differ only in case.
    if late is None:
        numbered = matches.toDF(*(f"c{place}" for place in range(len(answer))))
    else:
        whole = F.col(next(name for name in matches.columns if name != late))
        fields = enumerate(spark_schema(answer).names)
        numbered = matches.select(*(whole.getField(name).alias(f"c{place}") for place, name in fields), late)
    nulls = (F.lit(None).cast(field.dataType).alias(f"e{place}") for place, field in enumerate(shown))
    nothing = F.array(F.struct(*nulls))
    marked = [_events(numbered, label, place, layout, wanted) for label, place in layout.labels]
    events = F.concat(*marked) if marked else F.filter(nothing, lambda _: F.lit(False))
    if late is not None:
        events = F.when(F.col(late).isNotNull(), nothing).otherwise(events)
    keys = [f"c{place}" for place in layout.keys]
    exploded = numbered.select(
        F.xxhash64(*_identity(numbered, layout)).alias("match"),
        *keys,
        *([] if late is None else [late]),
        F.explode(events).alias("event"),
    )
    of_keys = dict(zip(layout.key_names, keys, strict=True))
    columns = []
    for place, (name, field) in enumerate(zip(layout.schema.names, shown, strict=True)):
        column = F.col("match" if name == MATCH else of_keys.get(name, f"event.e{place}"))
        if late is not None:  # PySpark takes no NULL for a struct with a field that is never NULL
            column = F.when(F.col(late).isNull(), column)
        columns.append(column.alias(field.name, metadata=field.metadata or {}))
    if late is None:
        return exploded.select(*columns)
    of_match = F.when(F.col(late).isNull(), F.struct(*columns)).alias(matches.columns[0])
    return exploded.select(of_match, late)


class NumberedRows:
    """The same rows made in Python from batches of an `answer`, if Spark computes nothing after it.

    ``match`` is DuckDB's hash of the complex event in its shown form, in 64 signed bits.
    """

    def __init__(self, answer: pa.Schema) -> None:
        self._layout = RowsLayout(answer)
        self.schema: pa.Schema = told_apart(self._layout.schema)

    def of(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows of a batch."""
        if not batch.num_rows:
            return
        numbers = _hashes(batch)
        for rows in self._layout.batches([batch]):
            matches = numbers.take(rows.column(0))
            yield pa.RecordBatch.from_arrays([matches, *rows.columns[1:]], schema=self.schema)


def _hashes(batch: pa.RecordBatch) -> pa.Array:
    """A hash of each row, int64."""
    with _hasher(os.getpid()).cursor() as cursor:
        cursor.register("matches", pa.Table.from_batches([batch]))
        hashes = cursor.sql("SELECT hash(matches) AS hash FROM matches").to_arrow_table().column("hash")
    return hashes.combine_chunks().view(pa.int64())


@functools.cache
def _hasher(_process: int) -> Database:
    """The one database of a process that only hashes."""
    from estero.events.database import Database  # few workers of Spark need DuckDB

    return Database()


def _events(numbered: DataFrame, label: str, place: int, layout: RowsLayout, wanted: StructType) -> Column:
    """The events under one label as an array of structs: field ``e3`` is column 3 of the rows."""
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    names = layout.shown_by(place)

    def row(event: Column) -> Column:
        values = []
        for number, (name, field) in enumerate(zip(layout.schema.names, wanted.fields, strict=True)):
            if name == LABEL:
                value = F.lit(label)
            elif name in names:
                value = event[f"f{names.index(name)}"].cast(field.dataType)
            else:
                value = F.lit(None).cast(field.dataType)
            values.append(value.alias(f"e{number}"))
        return F.struct(*values)

    return F.transform(_by_number(numbered, place), row)


def _identity(numbered: DataFrame, layout: RowsLayout) -> Iterator[Column]:
    """The identity of a complex event, in the order in which it is hashed."""
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    for place in (*layout.keys, *layout.ends):
        yield F.col(f"c{place}")
    for _, place in layout.labels:
        events = _by_number(numbered, place)
        yield F.size(events)
        fields = [f"f{number}" for number in range(len(layout.shown_by(place)))]
        if layout.placed:
            yield events[fields[-1]]
        else:
            kind = numbered.schema[place].dataType
            # Spark cannot hash maps; NULL does not change a hash, so it is stated where there is one.
            yield F.to_json(events) if "map<" in kind.simpleString() else events
            if fields:
                yield F.transform(events, _missing(fields))


def _missing(fields: Sequence[str]) -> Callable[[Column], Column]:
    """Which of the fields of an event are NULL, as an array."""
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    return lambda event: F.array(*(event[name].isNull() for name in fields))


def _by_number(numbered: DataFrame, place: int) -> Column:
    """The events of a label with their fields named ``f0``, ``f1`` and so on."""
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)
    from pyspark.sql.types import ArrayType, StructField, StructType

    kind = numbered.schema[place].dataType
    if not (isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType)):
        raise TypeError(f"a label column holds lists of events, not {kind.simpleString()}")
    fields = [
        StructField(f"f{number}", field.dataType, field.nullable)
        for number, field in enumerate(kind.elementType.fields)
    ]
    return F.col(f"c{place}").cast(ArrayType(StructType(fields), kind.containsNull))
