"""Conditions and expressions over columns of values, evaluated by DuckDB as SQL from expressions.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from estero.answers.measures.marked import EventsAtHand, Integers, distinct
from estero.classify.arrays import one_array
from estero.classify.column_names import attribute_in
from estero.classify.columns import MOST_DIGITS, ColumnType, canonical
from estero.classify.duckdb_dialect import DUCKDB
from estero.classify.expressions import ExpressionWriter
from estero.classify.operations import Typed
from estero.classify.partition_keys import text_of_number
from estero.errors import DataError
from estero.events.database import Connection, lent_to
from estero.events.reading_errors import NOT_IN_NANOSECONDS, interruptible
from estero.language.tree.expressions import Aggregate, Attribute, Node, Previous, substituted
from estero.language.tree.schema import Kind
from estero.system.cached_property import cached_property

Truths = NDArray[np.int8]
"""For each instance FALSE, UNKNOWN or TRUE: AND is the minimum, OR the maximum, NOT is ``2 - truth``."""

FALSE, UNKNOWN, TRUE = np.int8(0), np.int8(1), np.int8(2)


TABLE = "estero_tuples"
_TRUTH = "truth"


@dataclass(frozen=True, slots=True)
class Question:
    """A condition as SQL over columns: attributes of the events of variables, and aggregates.

    It is evaluated on tuples of events of `variables`, and of the preceding events for the variables in
    `previous`. `attributes` are (column, variable, attribute), `aggregates` are (column, aggregate).
    """

    sql: str
    variables: tuple[str, ...]
    attributes: tuple[tuple[str, str, str], ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    previous: tuple[str, ...] = ()


def before(variable: str) -> str:
    """The name of the variable for the event before the one of this variable, as used in columns."""
    return f"prev({variable})"


class Formula(NamedTuple):
    """An expression over one event as SQL over columns, (column, attribute), and the form of its value."""

    sql: str
    columns: tuple[tuple[str, str], ...]
    type: ColumnType


class Evaluator:
    """Evaluates conditions on events with this `schema` in DuckDB, and expressions over single events.

    An attribute that is not in `columns` is NULL in every event. `place` is the clause in which they stand.
    """

    def __init__(self, schema: pa.Schema, place: str = "a filter") -> None:
        self._schema = schema
        self._place = place
        self._formulas: dict[Node, Formula] = {}

    @cached_property
    def _connection(self) -> Connection:
        database = lent_to(self)
        database.use_threads(alone=True)
        return database.connection

    @cached_property
    def columns(self) -> Mapping[str, ColumnType]:
        """The form in which expressions read each attribute (columns.py)."""
        described = self.described(self._schema)
        return {attribute_in(name): column for name, column in described.items()}

    def described(self, schema: pa.Schema) -> dict[str, ColumnType]:
        """The form in which expressions read columns of these types."""
        self._connection.register(TABLE, schema.empty_table())
        described = self._connection.execute(f"DESCRIBE FROM {TABLE}").fetchall()
        self._connection.unregister(TABLE)
        return {name: DUCKDB.column_type(kind) for name, kind, *_ in described}

    def question(self, condition: Node, variable: str | None = None) -> Question:
        """The question that `condition` puts to tuples of events.

        With `variable` it is evaluated on each event of that variable: the question of
        ``variable[condition]``.
        """
        attributes: dict[tuple[str, str], str] = {}
        aggregates: dict[Aggregate, str] = {}
        previous: dict[str, None] = {}

        def as_column(node: Node) -> Node | None:
            if isinstance(node, Aggregate):
                return Attribute(aggregates.setdefault(node, f"g{len(aggregates)}"))
            if isinstance(node, Previous):
                followed = node.operand.variable or ""
                previous[followed] = None
                key = before(followed), node.operand.name
                return Attribute(attributes.setdefault(key, f"a{len(attributes)}"))
            if isinstance(node, Attribute):
                key = node.variable or variable or "", node.name
                return Attribute(attributes.setdefault(key, f"a{len(attributes)}"))
            return None

        flat = substituted(condition, as_column)
        types = {column: self.type_of(name) for (_, name), column in attributes.items()}
        types.update({column: self.type_of_aggregate(aggregate) for aggregate, column in aggregates.items()})
        truth = DUCKDB.text(ExpressionWriter(types, DUCKDB).condition(flat))
        sql = f"SELECT CAST(coalesce(CAST(({truth}) AS TINYINT) * 2, {UNKNOWN}) AS TINYINT) AS {_TRUTH}"
        own = (label for label, _ in attributes if label not in map(before, previous))
        spoken_of = dict.fromkeys((*own, *previous))
        return Question(
            f"{sql} FROM {TABLE}",
            tuple(spoken_of) if variable is None else (variable,),
            tuple((column, label, name) for (label, name), column in attributes.items()),
            tuple((column, aggregate) for aggregate, column in aggregates.items()),
            tuple(previous),
        )

    def answer(self, question: Question, columns: Mapping[str, pa.Array], count: int) -> Truths:
        """The truth of a question for each of `count` rows of `columns`."""
        if count == 0:
            return np.empty(0, np.int8)
        truths: Truths = self.computed(question.sql, columns, count)[0].to_numpy()
        return truths

    def read(self, values: pa.Array, column: ColumnType) -> pa.Array:
        """The values of a column in the form of their kind (columns.py)."""
        if column.cast is None:
            return values
        sql = f"SELECT {DUCKDB.text(DUCKDB.as_read('v', column))} AS v FROM {TABLE}"
        return self.computed(sql, {"v": values}, len(values))[0]

    def number_texts(self, values: pa.Array, column: ColumnType) -> pa.Array:
        """Texts of integers, floats and decimals that are the same for equal numbers (`text_of_number`)."""
        shown = text_of_number(DUCKDB, DUCKDB.as_read("v", replace(column, stands=exp.column("v"))), column)
        return self.computed(f"SELECT {DUCKDB.text(shown)} AS v FROM {TABLE}", {"v": values}, len(values))[0]

    def floats(self, decimals: pa.Array) -> pa.Array:
        """The nearest floats, which Arrow's own conversion does not always give."""
        sql = f"SELECT CAST(CAST(v AS VARCHAR) AS DOUBLE) AS v FROM {TABLE}"
        return self.computed(sql, {"v": decimals}, len(decimals))[0]

    def type_of(self, name: str) -> ColumnType:
        """The form in which an attribute is read."""
        return self.columns.get(name, canonical(Kind.NULL))

    def formula(self, expression: Node) -> Formula:
        """The SQL of an expression over one event; its value has the form of its kind."""
        if expression not in self._formulas:
            names: dict[str, str] = {}

            def as_column(node: Node) -> Node | None:
                if isinstance(node, Attribute):
                    return Attribute(names.setdefault(node.name, f"a{len(names)}"))
                return None

            flat = substituted(expression, as_column)
            types = {column: self.type_of(name) for name, column in names.items()}
            value, column = in_form(ExpressionWriter(types, DUCKDB).value(flat))
            columns = tuple((column, name) for name, column in names.items() if name in self.columns)
            self._formulas[expression] = Formula(f"SELECT {value} AS v FROM {TABLE}", columns, column)
        return self._formulas[expression]

    def values(self, expression: Node, events: EventsAtHand, rows: Integers) -> tuple[pa.Array, Integers]:
        """The values of an expression, and for each of these rows the index of its event's value."""
        if isinstance(expression, Attribute):
            column = self.columns.get(expression.name)
            if column is None:
                return pa.nulls(events.count, pa.int64()), rows
            if not column.checked:
                return events.column(expression.name), rows
        asked, places = distinct(rows, events.count)
        if isinstance(expression, Attribute):  # a value that does not fit is an error only if it is used
            return events.values(expression.name, asked), places
        formula = self.formula(expression)
        columns = {column: events.values(name, asked) for column, name in formula.columns}
        (values,) = self.computed(formula.sql, columns, len(asked))
        return values, places

    def type_of_operand(self, expression: Node) -> ColumnType:
        """The form in which the values of an expression over one event are read."""
        if isinstance(expression, Attribute):
            return self.type_of(expression.name)
        return self.formula(expression).type

    def type_of_aggregate(self, aggregate: Aggregate) -> ColumnType:
        """The form in which the values of an aggregate are read, as made by aggregates.py."""
        if aggregate.operand is None or aggregate.function == "count":
            return canonical(Kind.INT)
        column = self.type_of_operand(aggregate.operand)
        match aggregate.function:
            case _ if column.kind is Kind.NULL:
                return column
            case "sum" if column.kind is Kind.DECIMAL:
                return ColumnType(Kind.DECIMAL, f"DECIMAL({MOST_DIGITS},{column.scale})")
            case "sum":
                return canonical(column.kind)
            case "avg" | "stddev" | "median":
                return canonical(Kind.FLOAT)
            case "list":
                return canonical(Kind.OPAQUE)
            case _:
                return column

    def computed(self, sql: str, columns: Mapping[str, pa.Array], count: int) -> list[pa.Array]:
        """The columns that a statement computes from these columns; without columns, over `count` rows."""
        given = dict(columns) or {"none": np.zeros(count, np.int8)}
        self._connection.register(TABLE, pa.table(given))
        try:
            with interruptible():
                computed = self._connection.sql(sql).to_arrow_table()
        except (duckdb.OutOfRangeException, duckdb.ConversionException) as error:
            if NOT_IN_NANOSECONDS in str(error):
                raise DataError(
                    f"a timestamp in {self._place} is before 1677 or after 2262, "
                    "and cannot be combined with times in nanoseconds",
                    hint="convert one of them",
                ) from error
            raise DataError(f"a number in {self._place} does not fit into 64 bits") from error
        finally:
            self._connection.unregister(TABLE)
        return list(map(one_array, computed.columns))


_FORMS: Mapping[Kind | None, str] = {
    None: "BIGINT",
    Kind.INT: "BIGINT",
    Kind.FLOAT: "DOUBLE",
    Kind.STRING: "VARCHAR",
    Kind.BOOL: "BOOLEAN",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.DURATION: "BIGINT",
}


def in_form(value: Typed) -> tuple[str, ColumnType]:
    """The SQL of a value in the form of its kind, and how that form is read."""
    if value.kind is None:
        return f"CAST({DUCKDB.text(value.sql)} AS BIGINT)", canonical(Kind.NULL)
    wanted = _FORMS[value.kind]
    if value.kind is Kind.TIMESTAMP and value.tick == "ns":
        wanted = "TIMESTAMP_NS"
    return f"CAST({DUCKDB.text(value.sql)} AS {wanted})", ColumnType(value.kind, tick=value.tick)
