"""The key of PARTITION BY → two halves of 128 bits, as SQL trees.

Alternatives of one bracket whose values differ in kind, or whose timestamps differ in resolution, become
texts that are equal exactly where the values are: an integer never equals a string, and a float only if the
float is that integer.
"""

from __future__ import annotations

import math

from sqlglot import exp

from estero.classify.bits import Writer
from estero.classify.sql_trees import SQL, call, cast, compared, either, is_not_null, number, text
from estero.language.tree.schema import Kind


class KeyWriter(Writer):
    """Writes the key of a classification, and that it is known."""

    def known(self) -> list[SQL]:
        """For each bracket of the key, that it is not NULL."""
        return [is_not_null(exp.paren(self._key(bracket)[0])) for bracket in self._classification.keys]

    def halves(self) -> tuple[SQL, SQL]:
        """Both halves of the key."""
        parts = [self._key(bracket) for bracket in self._classification.keys]
        if len(parts) == 1 and parts[0][1] in {Kind.INT, Kind.BOOL, Kind.TIMESTAMP}:
            return parts[0][0], cast(number(0), "BIGINT")
        return self._dialect.hashes(parts)

    def _key(self, bracket: tuple[str, ...]) -> tuple[SQL, Kind]:
        """The value of one bracket in one form for all its alternatives."""
        present = [name for name in bracket if name in self._columns]
        alike = {(column.kind, column.tick) for column in map(self._columns.__getitem__, present)}
        if len(alike) > 1:
            choices = [(name, self._text(name)) for name in present]
            return self._first_that_the_type_has(choices), Kind.STRING
        choices = [(name, self._in_key_form(name)) for name in present]
        common = self._columns[present[0]].kind if present else Kind.STRING
        kind = Kind.INT if common in {Kind.BOOL, Kind.TIMESTAMP} else common
        return self._first_that_the_type_has(choices), kind

    def _in_key_form(self, name: str) -> SQL:
        value, column = self._read(name), self._columns[name]
        match column.kind:
            case Kind.TIMESTAMP:
                return self._dialect.ticks(name, column)
            case Kind.BOOL:
                return cast(value, "BIGINT")
            case Kind.FLOAT:
                return self._one_float_of_equal_ones(cast(value, "DOUBLE"))
            case _:
                return value

    def _text(self, name: str) -> SQL:
        """A text that equal values of different kinds share; it begins with a letter for the kind."""
        value, column = self._read(name), self._columns[name]
        match column.kind:
            case Kind.TIMESTAMP:
                return self._lettered("t", self._dialect.nanoseconds_of(value, column.tick))
            case Kind.FLOAT:
                return self._text_of_float(cast(value, "DOUBLE"))
            case kind:
                letters = {Kind.INT: "n", Kind.BOOL: "b", Kind.STRING: "s"}
                return self._lettered(letters.get(kind, "o"), value)

    def _text_of_float(self, value: SQL) -> SQL:
        """A float that is a 64-bit integer has the text of that integer; no other float has such a text."""
        below = compared("<", value, cast(text(str(-(2**63))), "DOUBLE"))
        above = compared(">=", value, cast(text(str(2**63)), "DOUBLE"))
        is_nan = call("isnan", value.copy())
        shown = self._lettered("n", value)
        whole = compared("=", value, call("floor", value.copy()))
        integer = self._lettered("n", cast(value.copy(), "BIGINT"))
        # Only a float within 64 bits is rounded down: Spark's floor makes an integer of it.
        chosen = exp.Case().when(is_nan, text("nNaN")).when(exp.or_(below, above), shown)
        return chosen.when(whole, integer).else_(shown.copy())

    def _lettered(self, letter: str, value: SQL) -> SQL:
        """A letter and the text of the value; NULL for NULL."""
        shown = cast(value, self._dialect.text_type)
        return exp.paren(exp.DPipe(this=text(letter), expression=shown, safe=True), copy=False)

    def _one_float_of_equal_ones(self, value: SQL) -> SQL:
        """-0.0 as 0.0, and every NaN as the same one."""
        positive = exp.Add(this=value, expression=self._dialect.floating(0.0))
        return either(call("isnan", value.copy()), self._dialect.floating(math.nan), positive)

    def _first_that_the_type_has(self, choices: list[tuple[str, SQL]]) -> SQL:
        """Chosen by the type of the event, not by NULL: a type whose attribute is NULL has no key."""
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
