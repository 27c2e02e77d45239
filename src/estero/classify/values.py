"""The values that registers compare (automata/registers.py) as integer columns of the classified table.

The engines compute each value in its transfer form: integers, truth values and instants as
64-bit integers, floats as they are (Spark's SQL cannot read their bits), strings and decimals as hashes.
`as_integers` makes 64-bit integers of all of them that compare as the values do (compared.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from estero.automata.registers import Value
from estero.classify.bits import Writer
from estero.classify.column_names import value_name
from estero.classify.columns import ColumnType
from estero.classify.dialect import Dialect
from estero.classify.durations import TIMES
from estero.classify.operations import Operations, Typed
from estero.classify.sql_trees import SQL, call, cast, either, is_not_null, number, text
from estero.engine.int64 import GREATEST
from estero.language.tree.schema import Kind
from estero.plan.plan import Classification

_BEYOND: Mapping[Kind | None, str] = {
    Kind.TIMESTAMP: "before 1677 or after 2262",
    Kind.DURATION: "longer than 292 years",
}


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """The SQL of a column of values, floats if `is_float`, else 64-bit integers."""

    sql: SQL
    is_float: bool

    @property
    def arrow_type(self) -> pa.DataType:
        """The transfer type of the column from Spark; DuckDB's hashes come unsigned."""
        return pa.float64() if self.is_float else pa.int64()


class ValueWriter(Writer):
    """Writes the values of a classification; NULL for events of types without the value."""

    def __init__(
        self, classification: Classification, dialect: Dialect, columns: Mapping[str, ColumnType]
    ) -> None:
        super().__init__(classification, dialect, columns)
        self._typed = [self._expressions.value(value.expression) for value in classification.values]
        self._operations = Operations(dialect)
        self._nanos = any(value.kind in TIMES and value.tick == "ns" for value in self._typed)

    def columns(self, asked: SQL | None = None) -> dict[str, ValueColumn]:
        """Name → column, in order.

        A value that may be an error (an overflow, an unsigned integer of more than 63 bits) is only computed
        for events where `asked` is true.
        """
        values = zip(self._classification.values, self._typed, strict=True)
        return {value_name(n): self._column(value, typed, asked) for n, (value, typed) in enumerate(values)}

    def _column(self, value: Value, typed: Typed, asked: SQL | None) -> ValueColumn:
        conditions = [self._has_type(value.types)]
        if asked is not None and any(map(self._may_overflow, value.expression.walk())):
            conditions.append(asked.copy())
        conditions = [condition for condition in conditions if condition != exp.true()]
        is_float = typed.kind is Kind.FLOAT
        sql = self._in_its_form(value, typed)
        if conditions:
            sql = either(exp.and_(*conditions), sql)
        hashed = value.hashed is not None
        engine_type = self._dialect.hash_type if hashed else "DOUBLE" if is_float else "BIGINT"
        return ValueColumn(cast(sql, engine_type), is_float)

    def _in_its_form(self, value: Value, typed: Typed) -> SQL:
        match typed.kind:
            case Kind.TIMESTAMP | Kind.DURATION:
                return self._ticks(value, typed)
            case Kind.STRING | Kind.DECIMAL:
                if value.hashed is None:
                    raise ValueError(f"such values are compared by their hashes: {value.expression}")
                known, shown = is_not_null(exp.paren(typed.sql)), typed.sql
                if typed.kind is Kind.DECIMAL:
                    shown = self._dialect.text_of_decimal(typed.sql.copy(), typed.scale)
                return either(known, self._dialect.hash_of_string(shown, value.hashed))
            case None:
                return exp.Null()
            case _:
                return typed.sql

    def _ticks(self, value: Value, typed: Typed) -> SQL:
        """Ticks as in the time column, or nanoseconds for all values if some column has them.

        A value that does not fit into a 64-bit integer in nanoseconds is an error.
        """
        ticks = self._operations.ticks(typed, typed.tick)
        if typed.tick == "ns" or not self._nanos:
            return ticks
        most = GREATEST // 1000
        beyond = exp.Not(this=exp.Between(this=ticks, low=number(-most), high=number(most)))
        said = (
            f"estero: {value.expression!s} is {_BEYOND[typed.kind]}, and it is compared "
            "with times in nanoseconds\nconvert one of them"
        )
        nanoseconds = exp.Mul(this=ticks.copy(), expression=number(1000))
        return either(beyond, call("error", text(said)), nanoseconds)
