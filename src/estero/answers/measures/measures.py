"""Columns with a value for each complex event: aggregates over segments, then expressions over these.

Expressions over single events are computed once for each event, and those over aggregates once for each
batch, both in DuckDB; nothing is done for one complex event at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from estero.answers.measures.aggregates import aggregate
from estero.answers.measures.evaluator import TABLE, Evaluator, in_form
from estero.answers.measures.marked import EventsAtHand, Marked
from estero.classify.column_names import event_column
from estero.classify.columns import ColumnType, decimal_digits
from estero.classify.duckdb_dialect import DUCKDB
from estero.classify.expressions import ExpressionWriter
from estero.events.tables.shown_types import plain_type
from estero.language.tree.expressions import Aggregate, Attribute, Node, substituted
from estero.language.tree.schema import Kind
from estero.language.tree.selection import Measure
from estero.system.cached_property import cached_property

_TYPES: Mapping[Kind, pa.DataType] = {
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BOOL: pa.bool_(),
    Kind.NULL: pa.int64(),
}


class Measures:
    """Computes measures of complex events whose events have this schema.

    `columns` are the columns of the answer that measures may name, with their types.
    """

    def __init__(
        self, measures: Sequence[Measure], events: pa.Schema, columns: Mapping[str, pa.DataType]
    ) -> None:
        self._events = events
        self._columns = dict(columns)
        self._evaluator = Evaluator(events, "SELECT")
        self._aggregates: dict[Aggregate, str] = {}
        self._named: dict[str, str] = {}
        self._flat = [substituted(measure.expression, self._as_column) for measure in measures]

    def _as_column(self, node: Node) -> Node | None:
        if isinstance(node, Aggregate):
            return Attribute(self._aggregates.setdefault(node, f"g{len(self._aggregates)}"))
        if isinstance(node, Attribute):
            return Attribute(self._named.setdefault(node.name, f"c{len(self._named)}"))
        return None

    @property
    def variables(self) -> tuple[str, ...]:
        """The labels whose events are aggregated, each once."""
        return tuple(dict.fromkeys(aggregate.variable for aggregate in self._aggregates))

    @cached_property
    def types(self) -> tuple[pa.DataType, ...]:
        """The types of the columns.

        A value that is shown unchanged keeps its type; other values have one type for each kind.
        """
        return tuple(map(self._type, self._flat))

    def columns(
        self, marked: Mapping[str, Marked], events: EventsAtHand, named: Mapping[str, pa.Array], count: int
    ) -> list[pa.Array]:
        """The columns of `count` complex events; `marked` has the events of each label.

        `named` are the columns of the answer. Raises `DataError` for an overflow.
        """
        inputs = {
            column: aggregate(node, marked[node.variable], events, self._evaluator)
            for node, column in self._aggregates.items()
        }
        inputs.update({column: named[name] for name, column in self._named.items()})
        computed = iter(self._evaluator.computed(self._sql, inputs, count) if self._sql else ())
        columns = [
            inputs[flat.name] if isinstance(flat, Attribute) else next(computed) for flat in self._flat
        ]
        return [_in_type(column, wanted) for column, wanted in zip(columns, self.types, strict=True)]

    # ------------------------------------------------------------------------- the computed values

    @cached_property
    def _sql(self) -> str:
        """One statement for all expressions over aggregates; empty if there are none."""
        values = [
            in_form(self._writer.value(flat))[0] for flat in self._flat if not isinstance(flat, Attribute)
        ]
        listed = ", ".join(f"{value} AS m{place}" for place, value in enumerate(values))
        return f"SELECT {listed} FROM {TABLE}" if listed else ""

    @cached_property
    def _writer(self) -> ExpressionWriter:
        types = {column: self._evaluator.type_of_aggregate(node) for node, column in self._aggregates.items()}
        fields = [pa.field(column, self._columns[name]) for name, column in self._named.items()]
        types.update(self._evaluator.described(pa.schema(fields)) if fields else {})
        return ExpressionWriter(types, DUCKDB)

    def _type(self, flat: Node) -> pa.DataType:
        if not isinstance(flat, Attribute):
            return self._type_of(in_form(self._writer.value(flat))[1])
        for node, column in self._aggregates.items():
            if column == flat.name:
                return self._type_of_aggregate(node)
        return self._columns[next(name for name, column in self._named.items() if column == flat.name)]

    def _type_of_aggregate(self, node: Aggregate) -> pa.DataType:
        if node.function in ("first", "last", "min", "max", "list") and node.operand is not None:
            operand = self._type_of_operand(node.operand)
            return pa.list_(operand) if node.function == "list" else operand
        return self._type_of(self._evaluator.type_of_aggregate(node))

    def _type_of_operand(self, operand: Node) -> pa.DataType:
        """The type of an attribute as events show it, or one type for each kind of computed value."""
        if isinstance(operand, Attribute):
            place = self._events.get_field_index(event_column(operand.name))
            return pa.int64() if place < 0 else plain_type(self._events.field(place).type)
        return self._type_of(self._evaluator.type_of_operand(operand))

    def _type_of(self, column: ColumnType) -> pa.DataType:
        match column.kind:
            case Kind.TIMESTAMP:
                return pa.timestamp(column.tick, self._zone)
            case Kind.DURATION:
                return pa.duration(column.tick)
            case Kind.DECIMAL:
                return pa.decimal128(*decimal_digits(str(column.cast)))
            case kind:
                return _TYPES[kind]

    @property
    def _zone(self) -> str | None:
        """The zone of computed timestamps: that of the columns, or UTC if these have several."""
        kinds = [*(field.type for field in self._events), *self._columns.values()]
        zones = {kind.tz for kind in map(plain_type, kinds) if pa.types.is_timestamp(kind)}
        return zones.pop() if len(zones) == 1 else "UTC" if zones else None


def _in_type(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The column with ticks as timestamps and durations, and NULLs in the type of their column."""
    if column.type == wanted:
        return column
    if pa.types.is_null(wanted):  # Arrow cannot cast to null
        return pa.nulls(len(column))
    if pa.types.is_list(wanted) and pa.types.is_list(column.type):
        items = _in_type(column.values, wanted.value_type)
        mask = column.is_null() if column.null_count else None
        return pa.ListArray.from_arrays(_offsets(column), items, mask=mask)
    if pa.types.is_duration(wanted) or pa.types.is_timestamp(wanted):
        return column.view(wanted)
    return column.cast(wanted)


def _offsets(lists: pa.ListArray) -> pa.Array:
    """The offsets of lists in their values, without a NULL."""
    return pa.array(lists.offsets.to_numpy(zero_copy_only=False), pa.int32())
