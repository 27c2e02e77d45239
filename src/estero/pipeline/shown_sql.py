"""The classification as SQL for people: the same expressions that run, in one statement on several lines."""

from __future__ import annotations

from estero.pipeline.classify import (
    KEYS,
    TIME,
    columns_of,
    key_columns,
    predicate_columns,
    relevance,
    stream_order,
    time_column,
    value_columns,
)
from estero.plan import Classification


def duckdb_text(statement: str) -> str:
    """DuckDB's statement on several lines."""
    return _pretty(statement, "duckdb")


def spark_text(classification: Classification, source: str = "events") -> str:
    """What Spark computes, as one statement over `source`; needs no session.

    On Spark these are column expressions of a DataFrame, and `SORT BY` is a sort within each task. It is
    written for columns of Spark's own types (BIGINT, DOUBLE, TIMESTAMP, …).
    """
    columns = columns_of(classification)
    outputs: dict[str, str] = {}
    time = time_column(classification, "spark", columns=columns)
    if time is not None:
        outputs[TIME] = time
    outputs |= key_columns(classification, "spark", columns=columns)
    outputs |= predicate_columns(classification, "spark", columns=columns)
    outputs |= value_columns(classification, "spark", columns=columns)
    outputs |= {name: _quoted(name) for name in classification.payload}
    selected = ", ".join(f"{sql} AS {_quoted(name)}" for name, sql in outputs.items())
    condition = relevance(classification, "spark", columns=columns)
    statement = f"SELECT {selected} FROM {source} WHERE {condition}"
    if classification.keys:
        statement += f" DISTRIBUTE BY {', '.join(KEYS)}"
    order = ", ".join(each.sql(dialect="spark") for each in stream_order(classification, columns))
    return _pretty(f"{statement} SORT BY {order}" if order else statement, "spark")


def _pretty(statement: str, dialect: str) -> str:
    """The statement on several lines, or on one where it is nested too deeply to be read again.

    The parser descends through some ten functions for each level, so it meets Python's limit of 1,000 before
    the engines meet theirs.
    """
    import sqlglot

    try:
        return sqlglot.transpile(statement, read=dialect, write=dialect, pretty=True)[0]
    except RecursionError:
        return statement


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
