"""Conditions over columns of values, evaluated by DuckDB as expressions.py writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from estero.answers.sieve.instances import UNKNOWN, Truths
from estero.classify.column_names import attribute_in
from estero.classify.columns import ColumnType, canonical
from estero.classify.duckdb_dialect import DUCKDB
from estero.classify.expressions import ExpressionWriter
from estero.errors import DataError
from estero.events.database import connect
from estero.events.reading_errors import interruptible
from estero.language.tree.expressions import Aggregate, Attribute, Node, substituted
from estero.language.tree.schema import Kind

_TABLE = "estero_tuples"
_TRUTH = "truth"


@dataclass(frozen=True, slots=True)
class Question:
    """A condition as SQL over columns: of attributes of variables' events, and of aggregates.

    It is asked about tuples of events of `variables`. `attributes` are (column, variable, attribute),
    `aggregates` are (column, aggregate).
    """

    sql: str
    variables: tuple[str, ...]
    attributes: tuple[tuple[str, str, str], ...]
    aggregates: tuple[tuple[str, Aggregate], ...]


class Evaluator:
    """Evaluates conditions on events with this `schema` in DuckDB.

    An attribute that is not in `columns` is NULL in every event.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._connection = connect()
        self._connection.execute("SET threads = 1")
        self._connection.register(_TABLE, schema.empty_table())
        described = self._connection.execute(f"DESCRIBE FROM {_TABLE}").fetchall()
        self._connection.unregister(_TABLE)
        self.columns = {attribute_in(name): DUCKDB.column_type(kind) for name, kind, *_ in described}
        """How expressions read each attribute (columns.py)."""

    def question(self, condition: Node, variable: str | None = None) -> Question:
        """The question that `condition` puts to tuples of events.

        With `variable` it is about each event of that variable: the question of ``variable[condition]``.
        """
        attributes: dict[tuple[str, str], str] = {}
        aggregates: dict[Aggregate, str] = {}

        def as_column(node: Node) -> Node | None:
            if isinstance(node, Aggregate):
                return Attribute(aggregates.setdefault(node, f"g{len(aggregates)}"))
            if isinstance(node, Attribute):
                key = node.variable or variable or "", node.name
                return Attribute(attributes.setdefault(key, f"a{len(attributes)}"))
            return None

        flat = substituted(condition, as_column)
        types = {column: self.type_of(name) for (_, name), column in attributes.items()}
        types.update({column: self.type_of_aggregate(each) for each, column in aggregates.items()})
        truth = DUCKDB.text(ExpressionWriter(types, DUCKDB).condition(flat))
        sql = f"SELECT CAST(coalesce(CAST(({truth}) AS TINYINT) * 2, {UNKNOWN}) AS TINYINT) AS {_TRUTH}"
        spoken_of = dict.fromkeys(each for each, _ in attributes)
        return Question(
            f"{sql} FROM {_TABLE}",
            tuple(spoken_of) if variable is None else (variable,),
            tuple((column, each, name) for (each, name), column in attributes.items()),
            tuple((column, each) for each, column in aggregates.items()),
        )

    def answer(self, question: Question, columns: Mapping[str, pa.Array], count: int) -> Truths:
        """The truth of a question for each of `count` rows of `columns`."""
        if count == 0:
            return np.empty(0, np.int8)
        truths: Truths = self._column(question.sql, columns, count).to_numpy()
        return truths

    def read(self, values: pa.Array, column: ColumnType) -> pa.Array:
        """Values of a column in the form of their kind (columns.py)."""
        if column.cast is None:
            return values
        sql = f"SELECT {DUCKDB.text(DUCKDB.as_read('v', column))} AS v FROM {_TABLE}"
        return self._column(sql, {"v": values}, len(values))

    def type_of(self, name: str) -> ColumnType:
        """How an attribute is read."""
        return self.columns.get(name, canonical(Kind.NULL))

    def type_of_aggregate(self, aggregate: Aggregate) -> ColumnType:
        """How the values of an aggregate are read, as aggregates.py makes them."""
        if aggregate.attribute is None or aggregate.function == "count":
            return canonical(Kind.INT)
        column = self.type_of(aggregate.attribute)
        if column.kind is Kind.NULL:
            return column
        match aggregate.function:
            case "sum":
                return canonical(column.kind)
            case "avg" | "stddev":
                return canonical(Kind.FLOAT)
            case _:
                return column

    def _column(self, sql: str, columns: Mapping[str, pa.Array], count: int) -> pa.Array:
        """The one column of a statement over these columns; without any, over as many rows."""
        given = dict(columns) or {"none": np.zeros(count, np.int8)}
        self._connection.register(_TABLE, pa.table(given))
        try:
            with interruptible():
                found = self._connection.sql(sql).to_arrow_table().column(0)
        except (duckdb.OutOfRangeException, duckdb.ConversionException) as error:
            raise DataError("a number in a filter does not fit into 64 bits") from error
        finally:
            self._connection.unregister(_TABLE)
        return found.combine_chunks() if found.num_chunks != 1 else found.chunk(0)
