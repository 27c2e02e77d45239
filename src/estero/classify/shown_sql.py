"""The classification as SQL for people: the same expressions that run, in one statement on several lines."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from estero.classify.classify import (
    columns_of,
    key_columns,
    predicate_columns,
    relevance,
    stream_order,
    time_column,
    value_columns,
)
from estero.classify.column_names import KEYS, TIME
from estero.classify.sql_text import readable, text_of
from estero.plan.plan import Classification


def duckdb_text(statement: str) -> str:
    """DuckDB's statement on several lines."""
    return readable(statement, "duckdb")


def spark_text(classification: Classification, source: str = "events") -> str:
    """What Spark computes, as one statement over `source`; needs no session.

    On Spark these are column expressions of a DataFrame, and `SORT BY` is a sort within each task. It is
    written for columns of Spark's own types (BIGINT, DOUBLE, TIMESTAMP, …).
    """
    columns = {
        name: replace(column, stands=exp.column(name, quoted=True))
        for name, column in columns_of(classification).items()
    }
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
    order = ", ".join(text_of(each, "spark") for each in stream_order(classification, columns))
    return readable(f"{statement} SORT BY {order}" if order else statement, "spark")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
