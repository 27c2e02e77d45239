"""Complex events of a DataFrame → one row for each marked event and label, as expressions of Spark.

`RowsLayout` says which columns there are. ``match`` is Spark's ``xxhash64`` of what tells a complex event
apart. With positions these are its partition columns, ``start``, ``end``, its times and, for each label, how
many events it marks and their positions; without, there are only the times, and the attributes shown, with
whether each of them is NULL, in place of positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from estero.answers.rows import LABEL, MATCH, RowsLayout
from estero.spark.work import spark_schema, told_apart

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


def rows_of(found: DataFrame, answer: pa.Schema) -> DataFrame:
    """The rows of complex events; `answer` is the schema of `found` as an `Answer` has it."""
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    layout = RowsLayout(answer)
    wanted = spark_schema(told_apart(layout.schema))
    # By number, as names may differ in nothing but case.
    numbered = found.toDF(*(f"c{place}" for place in range(len(answer))))
    shown = list(wanted.fields)
    marked = [_events(numbered, label, place, layout, wanted) for label, place in layout.labels]
    if not marked:
        numbered = numbered.filter(F.lit(False))
        nothing = (F.lit(None).cast(field.dataType).alias(f"e{place}") for place, field in enumerate(shown))
        marked = [F.array(F.struct(*nothing))]
    keys = [f"c{place}" for place in layout.keys]
    exploded = numbered.select(
        F.xxhash64(*_identity(numbered, layout)).alias("match"),
        *keys,
        F.explode(F.concat(*marked)).alias("event"),
    )
    of_keys = dict(zip((answer.field(place).name for place in layout.keys), keys, strict=True))
    columns = []
    for place, (name, field) in enumerate(zip(layout.schema.names, shown, strict=True)):
        column = F.col("match") if name == MATCH else F.col(of_keys.get(name, f"event.e{place}"))
        columns.append(column.alias(field.name, metadata=field.metadata or {}))
    return exploded.select(*columns)


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
    """What a complex event is told apart by, in the order in which it is hashed."""
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
            # Spark hashes no maps; NULL changes no hash, so it is said where there is one.
            yield F.to_json(events) if "map<" in kind.simpleString() else events
            if fields:
                yield F.transform(events, _missing(fields))


def _missing(fields: Sequence[str]) -> Callable[[Column], Column]:
    """Which of the fields of an event are NULL, as an array."""
    from pyspark.sql import functions as F  # noqa: N812 (PySpark's own habit)

    return lambda event: F.array(*(event[name].isNull() for name in fields))


def _by_number(numbered: DataFrame, place: int) -> Column:
    """The events of a label with their fields called ``f0``, ``f1`` and so on."""
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
