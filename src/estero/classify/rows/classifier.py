"""The classify stage (`plan.Classification`) for a single row in Python.

Its result equals that of DuckDB's statement for the event (`classify.classify_sql`), or it leaves the event
to that statement: all events if it raises `NotInPythonError`, which says why, and single events if it raises
`AskSqlError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Final, NamedTuple

from estero.automata.registers import Value
from estero.classify.rows.classified import ClassifiedRow, Key, Row
from estero.classify.rows.durations import TIMES
from estero.classify.rows.functions import FunctionWriter, RowColumn
from estero.classify.rows.hashes import Ask, Hashes
from estero.classify.rows.typed import AskSqlError, Function, NotInPythonError, Typed, of_one
from estero.classify.splits import split
from estero.engine.int64 import GREATEST, LEAST
from estero.language.tree.expressions import Attribute
from estero.language.tree.schema import Kind
from estero.plan.plan import Classification

_UNSIGNED: Final = 2**64 - 1
_ITSELF: Final = frozenset({Kind.INT, Kind.BOOL, Kind.TIMESTAMP})
"""Kinds whose single key is the value itself."""


class _Asked(NamedTuple):
    """The bits of one type: those always set, those looked up by a string, and those of tests."""

    always: int
    looked_up: tuple[tuple[int, Mapping[str, int]], ...]
    tests: tuple[tuple[int, Function], ...]


class RowClassifier:
    """Classifies rows one by one; `columns` gives the index of each attribute in a row, `ask` runs DuckDB.

    Raises `NotInPythonError` if only SQL can evaluate the query's conditions.
    """

    def __init__(self, classification: Classification, columns: Mapping[str, RowColumn], ask: Ask) -> None:
        self._columns = columns
        self._writer = FunctionWriter(columns)
        self._ask = ask
        self._keep_all = classification.keep_all
        self._only = None if classification.type_column is not None else classification.only_type
        self._type = 0 if self._only is not None else columns[str(classification.type_column)].place
        self._by_type = _by_type(classification, columns, self._writer)
        self._nothing = _Asked(0, (), ())
        time = classification.schema.time
        self._time = None if time is None else self._writer.value(Attribute(time)).function
        self._keyed = bool(classification.keys)
        self._key = self._key_function(classification)
        self._string = Hashes([Kind.STRING], ask)
        typed = [self._writer.value(value.expression) for value in classification.values]
        nanos = any(operand.kind in TIMES and operand.tick == "ns" for operand in typed)
        self._values = tuple(
            self._value_function(value, operand, nanos=nanos)
            for value, operand in zip(classification.values, typed, strict=True)
        )

    def time(self, row: Row) -> int | None:
        """The time in ticks; 0 without a time column, None if it is NULL."""
        return 0 if self._time is None else self._time(row)

    def classified(self, row: Row, time: int) -> ClassifiedRow | None:
        """The classified event, None if irrelevant; raises `AskSqlError` if only SQL can tell."""
        asked = self._by_type.get(row[self._type] if self._only is None else self._only, self._nothing)
        bits = asked.always
        for place, masks in asked.looked_up:
            bits |= masks.get(row[place], 0)
        for mask, test in asked.tests:
            if test(row):
                bits |= mask
        if not (bits or self._keep_all):
            return None
        key = None
        if self._keyed:
            key = self._key(row)
            if key is None:
                return None
        return ClassifiedRow(row, time, bits, key, tuple([function(row) for function in self._values]))

    # ------------------------------------------------------------------------------------------- keys

    def _key_function(self, classification: Classification) -> Callable[[Row], Key | None]:
        columns = []
        for bracket in classification.keys:
            present = [self._columns[name] for name in bracket if name in self._columns]
            if len({(column.kind, column.tick) for column in present}) > 1:
                raise NotInPythonError(f"the alternatives of the key [{', '.join(bracket)}] differ in kind")
            if not present or present[0].kind is Kind.NULL:
                return lambda _: None
            columns.append(present[0])
        if len(columns) == 1 and columns[0].kind in _ITSELF:
            return _key_itself(columns[0])
        hashes = Hashes(
            [Kind.INT if column.kind in _ITSELF else column.kind for column in columns], self._ask
        )
        reads = [_key_form(column) for column in columns]

        def hashed(row: Row) -> Key | None:
            values = tuple([read(row) for read in reads])
            return None if None in values else hashes.of(values)

        return hashed

    # ----------------------------------------------------------------------------------------- values

    def _value_function(self, value: Value, typed: Typed, *, nanos: bool) -> Function:
        """The value in the transfer form of DuckDB; None for events of other types."""
        function = typed.function
        if typed.kind is Kind.STRING:
            which, hashes = value.hashed, self._string
            if which is None:
                raise ValueError(f"strings are compared by their hashes: {value.expression}")
            function = of_one(function, lambda text: hashes.of((text,))[which])
        elif typed.kind is Kind.BOOL:
            function = of_one(function, int)
        elif typed.kind in TIMES and nanos and typed.tick != "ns":
            function = of_one(function, _in_nanoseconds)
        if self._only is not None:
            return function if self._only in value.types else lambda _: None
        place, types = self._type, frozenset(value.types)
        return lambda row: function(row) if row[place] in types else None


def _by_type(
    classification: Classification, columns: Mapping[str, RowColumn], writer: FunctionWriter
) -> dict[str, _Asked]:
    """The bits of each type; equalities on one column of strings become one look-up."""
    strings = {name for name, column in columns.items() if column.kind is Kind.STRING}
    always: dict[str, int] = {}
    looked_up: dict[str, dict[int, dict[str, int]]] = {}
    tests: dict[str, list[tuple[int, Function]]] = {}
    for bit, predicate in enumerate(classification.predicates):
        mask, condition = 1 << bit, predicate.condition
        parts = split(predicate, None, strings)
        test = None if condition is None else writer.condition(condition)
        for name in predicate.types:
            if test is None:
                always[name] = always.get(name, 0) | mask
            elif parts.rest is None and len(parts.one_of) == 1:
                ((column, texts),) = parts.one_of.items()
                masks = looked_up.setdefault(name, {}).setdefault(columns[column].place, {})
                masks.update({text: masks.get(text, 0) | mask for text in texts})
            else:
                tests.setdefault(name, []).append((mask, test))
    return {
        name: _Asked(always.get(name, 0), tuple(looked_up.get(name, {}).items()), tuple(tests.get(name, ())))
        for name in {*always, *looked_up, *tests}
    }


def _key_itself(column: RowColumn) -> Callable[[Row], Key | None]:
    place, scale = column.place, column.scale

    def key(row: Row) -> Key | None:
        value = row[place]
        return None if value is None else (value * scale & _UNSIGNED, 0)

    return key


def _key_form(column: RowColumn) -> Function:
    """The form of a column that is hashed."""
    read: Function = itemgetter(column.place)
    if column.kind is Kind.BOOL:
        return of_one(read, int)
    return read if column.scale == 1 else of_one(read, column.scale.__mul__)


def _in_nanoseconds(ticks: int) -> int:
    if not LEAST <= 1000 * ticks <= GREATEST:
        raise AskSqlError
    return 1000 * ticks
