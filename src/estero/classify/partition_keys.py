"""The key of PARTITION BY → two halves of 128 bits, as SQL trees.

Alternatives of one bracket whose values are not of one kind, or whose timestamps have not one resolution,
are made texts that are equal just where the values are: an integer is never equal to a string, and to a
float only if the float is that integer.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from estero.classify.bits import has_type
from estero.classify.columns import ColumnType, Dialect, as_read, cast, ticks
from estero.classify.expression_sql import SQL
from estero.language.tree.schema import Kind
from estero.plan.plan import Classification

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
        alike = {(column.kind, column.tick) for column in map(self._columns.__getitem__, present)}
        if len(alike) > 1:
            choices = [(name, self._text(name)) for name in present]
            return self._first_that_the_type_has(choices), Kind.STRING
        choices = [(name, self._in_key_form(name)) for name in present]
        common = self._columns[present[0]].kind if present else Kind.STRING
        kind = Kind.INT if common in {Kind.BOOL, Kind.TIMESTAMP} else common
        return self._first_that_the_type_has(choices), kind

    def _in_key_form(self, name: str) -> SQL:
        column = self._columns[name]
        value = as_read(name, column)
        match column.kind:
            case Kind.TIMESTAMP:
                return ticks(name, column, self._dialect)
            case Kind.BOOL:
                return cast(value, "BIGINT")
            case Kind.FLOAT:
                return self._one_float_of_equal_ones(cast(value, "DOUBLE"))
            case _:
                return value

    def _text(self, name: str) -> SQL:
        """A text that values of all kinds share where they are equal; it begins with the letter of a kind."""
        column = self._columns[name]
        value = as_read(name, column)
        match column.kind:
            case Kind.TIMESTAMP:
                return self._lettered("t", self._nanoseconds(name, column))
            case Kind.FLOAT:
                return self._text_of_float(cast(value, "DOUBLE"))
            case kind:
                letters = {Kind.INT: "n", Kind.BOOL: "b", Kind.STRING: "s"}
                return self._lettered(letters.get(kind, "o"), value)

    def _text_of_float(self, value: SQL) -> SQL:
        """A float that is an integer of 64 bits as that; the others begin no integer's text."""
        below = exp.LT(this=value.copy(), expression=cast(exp.Literal.string(str(-(2**63))), "DOUBLE"))
        above = exp.GTE(this=value.copy(), expression=cast(exp.Literal.string(str(2**63)), "DOUBLE"))
        is_nan = _call("isnan", [value.copy()])
        text = self._lettered("n", value)
        whole = exp.EQ(this=value.copy(), expression=_call("floor", [value.copy()]))
        integer = self._lettered("n", cast(value.copy(), "BIGINT"))
        # Only a float inside of 64 bits is rounded down: Spark's floor makes an integer of it.
        chosen = exp.Case().when(is_nan, exp.Literal.string("nNaN")).when(exp.or_(below, above), text)
        return chosen.when(whole, integer).else_(text.copy())

    def _nanoseconds(self, name: str, column: ColumnType) -> SQL:
        """An instant in nanoseconds; in Spark, where all are in microseconds, in these."""
        value = ticks(name, column, self._dialect)
        if self._dialect == "spark" or column.tick == "ns":
            return value
        return exp.Mul(this=cast(value, "HUGEINT"), expression=exp.Literal.number(1000))

    def _lettered(self, letter: str, value: SQL) -> SQL:
        """The text of a value behind a letter; NULL of NULL."""
        text = cast(value, "VARCHAR" if self._dialect == "duckdb" else "STRING")
        return exp.paren(exp.DPipe(this=exp.Literal.string(letter), expression=text, safe=True), copy=False)

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
