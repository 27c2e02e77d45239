"""The key of PARTITION BY as two halves of 128 bits, in SQL trees.

Alternatives of one bracket whose values differ in kind, or whose timestamps differ in resolution, become
texts that are equal exactly if the values are: an integer never equals a string, and a float or a decimal
only if it is that integer. Decimals of any scale are such texts, too.
"""

from __future__ import annotations

import math

from sqlglot import exp

from estero.classify.bits import Writer
from estero.classify.columns import ColumnType
from estero.classify.dialect import Dialect
from estero.classify.sql_trees import SQL, call, cast, compared, either, is_not_null, number, text
from estero.language.tree.schema import Kind

_NUMBERS = frozenset({Kind.INT, Kind.FLOAT, Kind.DECIMAL})


class KeyWriter(Writer):
    """Writes the key of a classification and the conditions that it is known."""

    def known(self) -> list[SQL]:
        """The conditions that no bracket of the key is NULL."""
        return [is_not_null(exp.paren(self._key(bracket)[0])) for bracket in self._classification.keys]

    def halves(self) -> tuple[SQL, SQL]:
        """Both halves of the key."""
        parts = [self._key(bracket) for bracket in self._classification.keys]
        if len(parts) == 1 and parts[0][1] in {Kind.INT, Kind.BOOL, Kind.TIMESTAMP}:
            return parts[0][0], cast(number(0), "BIGINT")
        return self._dialect.hashes(parts)

    def _key(self, bracket: tuple[str, ...]) -> tuple[SQL, Kind]:
        """The value of a bracket, in a common form for all its alternatives."""
        present = [name for name in bracket if name in self._columns]
        alike = {(column.kind, column.tick) for column in map(self._columns.__getitem__, present)}
        if len(alike) > 1:
            choices = [(name, self._text(name)) for name in present]
            return self._first_that_the_type_has(choices), Kind.STRING
        choices = [(name, self._in_key_form(name)) for name in present]
        common = self._columns[present[0]].kind if present else Kind.STRING
        kind = Kind.INT if common in {Kind.BOOL, Kind.TIMESTAMP} else common
        kind = Kind.STRING if common is Kind.DECIMAL else kind
        return self._first_that_the_type_has(choices), kind

    def _in_key_form(self, name: str) -> SQL:
        value, column = self._read(name), self._columns[name]
        match column.kind:
            case Kind.TIMESTAMP:
                return self._dialect.ticks(name, column)
            case Kind.BOOL:
                return cast(value, "BIGINT")
            case Kind.DECIMAL:
                return self._dialect.text_of_decimal(value, column.scale)
            case Kind.FLOAT:
                return self._one_float_of_equal_ones(cast(value, "DOUBLE"))
            case _:
                return value

    def _text(self, name: str) -> SQL:
        """The common text of equal values of different kinds, beginning with a letter for the kind."""
        value, column = self._read(name), self._columns[name]
        if column.kind in _NUMBERS:
            return text_of_number(self._dialect, value, column)
        if column.kind is Kind.TIMESTAMP:
            return _lettered(self._dialect, "t", self._dialect.nanoseconds_of(value, column.tick))
        letters = {Kind.BOOL: "b", Kind.STRING: "s"}
        return _lettered(self._dialect, letters.get(column.kind, "o"), value)

    def _one_float_of_equal_ones(self, value: SQL) -> SQL:
        """A float with -0.0 as 0.0 and all NaNs the same."""
        positive = exp.Add(this=value, expression=self._dialect.floating(0.0))
        return either(call("isnan", value.copy()), self._dialect.floating(math.nan), positive)

    def _first_that_the_type_has(self, choices: list[tuple[str, SQL]]) -> SQL:
        """The alternative chosen by the event's type, not by NULL: a NULL attribute means no key."""
        schema, column = self._classification.schema, self._classification.type_column
        if len(choices) == 1:
            return choices[0][1]
        if not choices:
            return exp.Null()
        if column is None or not schema.types:
            return choices[0][1]
        by_choice: dict[int, list[str]] = {}
        for type_name, attributes in schema.types.items():
            index = next((i for i, (name, _) in enumerate(choices) if name in attributes), None)
            if index is not None:
                by_choice.setdefault(index, []).append(type_name)
        value = exp.Case()
        for index, type_names in by_choice.items():
            value = value.when(self._has_type(type_names), choices[index][1])
        return value.else_(choices[0][1] if schema.shared else exp.Null())


def text_of_number(dialect: Dialect, value: SQL, column: ColumnType) -> SQL:
    """The common text of equal integers, floats and decimals.

    A float that is a 64-bit integer has the text of that integer, and no other float has such a text; a
    decimal that is an integer has it, too, and no other one has the text of a float.
    """
    if column.kind is Kind.INT:
        return _lettered(dialect, "n", value)
    if column.kind is Kind.DECIMAL:
        shown = dialect.text_of_decimal(value, column.scale)
        whole = compared("=", shown, call("replace", shown.copy(), text("."), text("")))
        return either(whole, _lettered(dialect, "n", shown), _lettered(dialect, "d", shown.copy()))
    number = cast(value, "DOUBLE")
    below = compared("<", number, cast(text(str(-(2**63))), "DOUBLE"))
    above = compared(">=", number, cast(text(str(2**63)), "DOUBLE"))
    shown = _lettered(dialect, "n", number)
    whole = compared("=", number, call("floor", number.copy()))
    integer = _lettered(dialect, "n", cast(number.copy(), "BIGINT"))
    # Only a float within 64 bits is rounded down, because Spark's floor converts it to an integer.
    chosen = exp.Case().when(call("isnan", number.copy()), text("nNaN")).when(exp.or_(below, above), shown)
    return chosen.when(whole, integer).else_(shown.copy())


def _lettered(dialect: Dialect, letter: str, value: SQL) -> SQL:
    """A letter and the text of the value; NULL for NULL."""
    shown = cast(value, dialect.text_type)
    return exp.paren(exp.DPipe(this=text(letter), expression=shown, safe=True), copy=False)
