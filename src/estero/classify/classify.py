"""A plan's predicates, keys and times → SQL text for an engine (algorithms.md, "Classify").

The statement gives each event its position, drops what no operator needs to see, and computes one bit
per predicate, two 64-bit hashes per partition and the values that registers compare. DuckDB runs it
whole (`classify_sql`); Spark takes the same expressions one by one, so that its filter can be pushed
into the scan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from estero.classify.bits import BitWriter, bits_name, words_of
from estero.classify.column_names import ARRIVAL, KEYS, POSITION, TIME, event_column
from estero.classify.columns import ColumnType, canonical
from estero.classify.dialect import Dialect
from estero.classify.duckdb_dialect import DUCKDB
from estero.classify.partition_keys import KeyWriter
from estero.classify.spark_dialect import SPARK
from estero.classify.sql_trees import number
from estero.classify.values import ValueWriter
from estero.language.tree.expressions import Node
from estero.language.tree.schema import Kind
from estero.plan.plan import Classification


def classify_sql(
    classification: Classification,
    source: str,
    *,
    columns: Mapping[str, ColumnType] | None = None,
    ordered: bool = True,
    positions: bool = True,
    screened: Sequence[Node | None] | None = None,
) -> str:
    """DuckDB's statement that turns the relation `source` into the table of `plan.Classification`.

    `ordered`: `source` is in stream order already, else it is sorted by time, then `order`, then arrival.
    Without `positions` the column ``__position`` is left out. `columns` says how to read the attributes
    (columns.py); by default each is in its kind's own form. Rows come in stream order.

    With `screened`, `source` is screened (screening.py) and has its positions: predicate k is true where
    bit k of ``__screen…`` is set and `screened[k]` is true, and rows without any bit are left in.
    """
    dialect = DUCKDB
    known = _columns(classification, columns)
    inner = _positioned(
        classification, source, known, ordered=ordered, positions=positions and screened is None
    )
    outputs: dict[str, str] = {}
    if positions:
        outputs[POSITION] = dialect.quoted(POSITION)
    time = time_column(classification, dialect, known)
    outputs[TIME] = dialect.quoted(POSITION) if time is None and positions else time or "0"
    outputs.update(key_columns(classification, dialect, known))
    writer = BitWriter(classification, dialect, known)
    kept = KeyWriter(classification, dialect, known).known()
    if screened is None:
        outputs.update(predicate_columns(classification, dialect, known))
        kept.append(writer.relevance())
        outputs.update(value_columns(classification, dialect, known))
    else:
        words = writer.screened_words(screened)
        some = [exp.NEQ(this=exp.column(word, quoted=True), expression=number(0)) for word in words]
        values = ValueWriter(classification, dialect, known).columns(asked=exp.paren(exp.or_(*some)))
        outputs |= words | {name: dialect.text(value.sql) for name, value in values.items()}
    for name in classification.payload:
        outputs[event_column(name)] = dialect.quoted(event_column(name))
    condition = exp.and_(*kept) if kept else exp.true()
    selected = ", ".join(f"{sql} AS {dialect.quoted(name)}" for name, sql in outputs.items())
    return f"SELECT {selected} FROM ({inner}) WHERE {dialect.text(condition)}"


def columns_of(classification: Classification) -> dict[str, ColumnType]:
    """The attributes of all types in the schema, each in its kind's own form."""
    schema = classification.schema
    found: dict[str, ColumnType] = {}
    for attributes in (*schema.types.values(), schema.shared or {}):
        found.update({name: canonical(kind) for name, kind in attributes.items()})
    if classification.type_column is not None:
        found.setdefault(classification.type_column, canonical(Kind.STRING))
    return found


def _columns(
    classification: Classification, columns: Mapping[str, ColumnType] | None
) -> Mapping[str, ColumnType]:
    return columns_of(classification) if columns is None else columns


# ------------------------------------------------------------------------------------------- pieces


def predicate_columns(
    classification: Classification, dialect: Dialect, columns: Mapping[str, ColumnType] | None = None
) -> dict[str, str]:
    """The words of bits: name → SQL of a 64-bit integer, never NULL. There is at least one word."""
    writer = BitWriter(classification, dialect, _columns(classification, columns))
    return {bits_name(word): dialect.text(writer.word(word), copy=False) for word in words_of(classification)}


def key_columns(
    classification: Classification, dialect: Dialect, columns: Mapping[str, ColumnType] | None = None
) -> dict[str, str]:
    """The two halves of the partition key: name → SQL, none without PARTITION BY.

    A single key that is an integer, a truth value or an instant is itself, a signed integer, beside 0.
    Otherwise they are two independent hashes: unsigned in DuckDB, signed in Spark. Read both as the 64
    bits of an unsigned integer. Hashes of different engines differ.
    """
    if not classification.keys:
        return {}
    writer = KeyWriter(classification, dialect, _columns(classification, columns))
    first, second = writer.halves()
    return {KEYS[0]: dialect.text(first), KEYS[1]: dialect.text(second)}


def value_columns(
    classification: Classification, dialect: Dialect, columns: Mapping[str, ColumnType] | None = None
) -> dict[str, str]:
    """The values that registers compare: name → SQL, in the form in which they cross (values.py)."""
    writer = ValueWriter(classification, dialect, _columns(classification, columns))
    return {name: dialect.text(value.sql) for name, value in writer.columns().items()}


def time_column(
    classification: Classification, dialect: Dialect, columns: Mapping[str, ColumnType] | None = None
) -> str | None:
    """The time in ticks as SQL (microseconds, or nanoseconds for such a column), or None without a time."""
    name = classification.schema.time
    if name is None:
        return None
    known = _columns(classification, columns)
    return dialect.text(dialect.ticks(name, known[name]))


def relevance(
    classification: Classification, dialect: Dialect, columns: Mapping[str, ColumnType] | None = None
) -> str:
    """The condition that keeps relevant events: some bit is set (or `keep_all`), and the key is known.

    Its first part is a plain condition over columns, for pushdown into scans; it lets all relevant events
    pass, and where arithmetic may overflow the exact bits decide after it.
    """
    known = _columns(classification, columns)
    keys = KeyWriter(classification, dialect, known).known()
    return dialect.text(exp.and_(*keys, BitWriter(classification, dialect, known).relevance()))


def stream_order(
    classification: Classification, dialect: Dialect, columns: Mapping[str, ColumnType]
) -> list[str]:
    """What the stream is sorted by before arrival: the time, then the columns of `order`."""
    time = classification.schema.time
    first = [] if time is None or time not in columns else [dialect.as_read(time, columns[time])]
    ties = [dialect.as_sorted(name, columns[name]) for name in classification.order if name in columns]
    return [dialect.text(each) for each in first + ties]


def spark_text(classification: Classification, source: str = "events") -> str:
    """What Spark computes, as one statement over `source` for people; needs no session.

    On Spark these are column expressions of a DataFrame, and `SORT BY` is a sort within each task. It is
    written for columns of Spark's own types (BIGINT, DOUBLE, TIMESTAMP, …).
    """
    columns = {
        name: replace(column, stands=exp.column(name, quoted=True))
        for name, column in columns_of(classification).items()
    }
    outputs: dict[str, str] = {}
    time = time_column(classification, SPARK, columns)
    if time is not None:
        outputs[TIME] = time
    outputs |= key_columns(classification, SPARK, columns)
    outputs |= predicate_columns(classification, SPARK, columns)
    outputs |= value_columns(classification, SPARK, columns)
    outputs |= {name: SPARK.quoted(name) for name in classification.payload}
    selected = ", ".join(f"{sql} AS {SPARK.quoted(name)}" for name, sql in outputs.items())
    statement = f"SELECT {selected} FROM {source} WHERE {relevance(classification, SPARK, columns)}"
    if classification.keys:
        statement += f" DISTRIBUTE BY {', '.join(KEYS)}"
    order = ", ".join(stream_order(classification, SPARK, columns))
    return SPARK.readable(f"{statement} SORT BY {order}" if order else statement)


def _positioned(
    classification: Classification,
    source: str,
    columns: Mapping[str, ColumnType],
    *,
    ordered: bool,
    positions: bool,
) -> str:
    """`source` with its positions, in stream order."""
    ordering = ", ".join(stream_order(classification, DUCKDB, columns))
    if not ordered and ordering:
        arrival = f"SELECT *, row_number() OVER () AS {ARRIVAL} FROM {source}"
        source = f"(SELECT * EXCLUDE ({ARRIVAL}) FROM ({arrival}) ORDER BY {ordering}, {ARRIVAL})"
    return (
        f"SELECT *, row_number() OVER () - 1 AS {POSITION} FROM {source}"
        if positions
        else f"SELECT * FROM {source}"
    )
