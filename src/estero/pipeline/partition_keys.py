"""The key of PARTITION BY → two halves of 128 bits, as SQL trees."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from estero.language.schema import Kind
from estero.pipeline.bits import has_type
from estero.pipeline.columns import ColumnType, Dialect, as_read, cast, ticks
from estero.pipeline.expression_sql import SQL
from estero.plan import Classification

_SALT = "\u2021estero"
_SALT_BITS = 0x5851F42D4C957F2D


class KeyWriter:
    """Writes the key of a classification, and that it is known."""

    def __init__(
        self, classification: Classification, dialect: Dialect, columns: Mapping[str, ColumnType]
    ) -> None:
        self._classification = classification
        self._dialect = dialect
        self._columns = columns

    def known(self) -> list[SQL]:
        """For each bracket of the key, that it is not NULL."""
        return [self._is_known(bracket) for bracket in self._classification.keys]

    def halves(self) -> tuple[SQL, SQL]:
        """Both halves of the key."""
        parts = [self._key(bracket) for bracket in self._classification.keys]
        if len(parts) == 1 and parts[0][1] in {Kind.INT, Kind.BOOL, Kind.TIMESTAMP}:
            return parts[0][0], cast(exp.Literal.number(0), "BIGINT")
        values = [value for value, _ in parts]
        salted = [self._salted(value, kind) for value, kind in parts]
        if self._dialect == "spark":
            return _call("xxhash64", values), _call("xxhash64", [exp.Literal.string("estero"), *values])
        return _call("hash", values), _call("hash", salted)

    def _key(self, bracket: tuple[str, ...]) -> tuple[SQL, Kind]:
        """The value of one bracket in one form for all its alternatives."""
        present = [name for name in bracket if name in self._columns]
        kinds = {self._columns[name].kind for name in present}
        common = (
            kinds.pop() if len(kinds) == 1 else Kind.FLOAT if kinds == {Kind.INT, Kind.FLOAT} else Kind.STRING
        )
        choices = [(name, self._in_key_form(name, common)) for name in present]
        kind = Kind.INT if common in {Kind.BOOL, Kind.TIMESTAMP} else common
        return self._first_that_the_type_has(choices), kind

    def _in_key_form(self, name: str, common: Kind) -> SQL:
        column = self._columns[name]
        value = as_read(name, column)
        if column.kind is Kind.TIMESTAMP:
            return ticks(name, column, self._dialect)
        if column.kind is Kind.BOOL and common is Kind.BOOL:
            return cast(value, "BIGINT")
        if common is Kind.FLOAT:
            return self._one_float_of_equal_ones(cast(value, "DOUBLE"))
        if common is Kind.STRING and column.kind is not Kind.STRING:
            return cast(value, "VARCHAR" if self._dialect == "duckdb" else "STRING")
        return value

    def _one_float_of_equal_ones(self, value: SQL) -> SQL:
        """-0.0 as 0.0, and every NaN as the same one."""
        zero = exp.Literal.number("0e0" if self._dialect == "duckdb" else "0D")
        nan = cast(exp.Literal.string("NaN"), "DOUBLE")
        total = exp.Add(this=value, expression=zero)
        return exp.Case().when(_call("isnan", [value.copy()]), nan).else_(total)

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
            value = value.when(has_type(type_names, self._classification, self._columns), choices[index][1])
        return value.else_(choices[0][1] if schema.shared else exp.Null())

    def _is_known(self, bracket: tuple[str, ...]) -> SQL:
        value, _ = self._key(bracket)
        return exp.Not(this=exp.Is(this=exp.paren(value), expression=exp.Null()))

    def _salted(self, value: SQL, kind: Kind) -> SQL:
        """Another value for another value, so that its hash says nothing about the first one."""
        if kind is Kind.STRING:
            return _salted_string(value)
        if kind is Kind.FLOAT:
            text = cast(value.copy(), "VARCHAR")
            return _call("concat", [text, exp.Literal.string(_SALT)])
        return _call("xor", [value.copy(), exp.Literal.number(_SALT_BITS)])


def hash_of_string(value: SQL, number: int, dialect: Dialect) -> SQL:
    """Number 0 or 1 of two independent hashes of a string: unsigned in DuckDB, signed in Spark."""
    if dialect == "spark":
        return _call("xxhash64", [value] if number == 0 else [exp.Literal.string("estero"), value])
    return _call("hash", [value if number == 0 else _salted_string(value)])


def _salted_string(value: SQL) -> SQL:
    return _call("concat", [value.copy(), exp.Literal.string(_SALT)])


def _call(name: str, arguments: list[SQL]) -> SQL:
    return exp.Anonymous(this=name, expressions=arguments)
