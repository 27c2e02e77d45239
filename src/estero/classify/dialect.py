"""Differences of SQL between the engines: each dialect is a class in a file of its own.

===========================  ================================  =========================================
docs/semantics.md says            engines                           here
===========================  ================================  =========================================
overflow is an error         Spark only in ANSI mode, DuckDB   ``try_add`` and an explicit ``raise_error``;
                             unless it rewrites the condition  ``add``, which DuckDB does not rewrite
integers against floats      both round the integer first      an exact comparison (expressions.py)
``/``, ``%`` by zero is NULL  errors, or infinities            an explicit CASE
``min_int % -1`` is 0        DuckDB: an overflow               an explicit CASE
float literals               DuckDB reads 0.1 as a decimal     written with an exponent, ``1e-1``
instants                     by the session's zone             ``as_read``; literals as UTC instants
upper: letter by letter      Spark: ``ß`` becomes ``SS``       letter by letter where there are such
                             DuckDB: ``ß`` becomes ``ẞ``
===========================  ================================  =========================================
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from sqlglot import exp

from estero.classify.columns import ColumnType, Tick, canonical, reference
from estero.classify.sql_trees import SQL, call, cast, negative, number, text
from estero.errors import DataError
from estero.language.tree.paths import Step, column_of, is_path, steps_of
from estero.language.tree.schema import Kind


class Dialect(ABC):
    """A dialect: how one engine writes the parts of all expressions."""

    name: ClassVar[str]
    """The name of the dialect in sqlglot."""
    types: ClassVar[Mapping[str, ColumnType]]
    """The column types of the engine's types; columns of other types are opaque."""
    text_type: ClassVar[str]
    hash_type: ClassVar[str]
    """The type of a hash of a string."""
    starts_with: ClassVar[str]
    ends_with: ClassVar[str]
    """The engine's names of these functions."""

    # ---------------------------------------------------------------------------------- columns

    def column_type(self, engine_type: str) -> ColumnType:
        """The column type of an engine's type.

        >>> from estero.classify.duckdb_dialect import DUCKDB
        >>> DUCKDB.column_type("DECIMAL(10,2)").kind
        <Kind.DECIMAL: 'a decimal'>
        """
        if engine_type.upper().startswith("DECIMAL"):
            return ColumnType(Kind.DECIMAL, engine_type.upper())
        return self.types.get(engine_type, canonical(Kind.OPAQUE))

    def inside(self, columns: Mapping[str, ColumnType], path: str) -> ColumnType | None:
        """The column type at the end of a path; None if these columns have no such path."""
        column = columns.get(column_of(path))
        if column is None:
            return None
        value = reference(column_of(path), column)
        for step in steps_of(path):
            _refuse_alike(column, step)
            further = column.step(step)
            if further is None:
                return None
            if column.element is None or isinstance(step, int):
                value = self.stepped(value, step)
            else:
                value = self._of_elements(value, step, column.element)
            column = further
        return replace(column, stands=exp.Null() if column.kind is Kind.NULL else value)

    def with_paths(self, columns: Mapping[str, ColumnType], names: Iterable[str]) -> dict[str, ColumnType]:
        """The columns, together with those of `names` that are paths inside one of them."""
        inner = {name: self.inside(columns, name) for name in names if name not in columns and is_path(name)}
        return {**columns, **{name: column for name, column in inner.items() if column is not None}}

    @abstractmethod
    def stepped(self, value: SQL, step: Step) -> SQL:
        """A field of a struct, NULL if the struct is; or an element of a list, NULL beyond its end."""

    def _of_elements(self, whole: SQL, field: str, element: ColumnType) -> SQL:
        """The list of a field of each element of a list, or of the fields in inner lists."""
        item = exp.column("inner")
        inner = element.step(field)
        if element.element is not None:
            value = self._of_elements(item, field, element.element)
        elif element.kind is Kind.NULL:
            value = item
        else:
            value = self.stepped(item, field)
        listed = self.of_elements(whole, item, value)
        return self.flat(listed, item) if inner is not None and inner.element is not None else listed

    @abstractmethod
    def of_elements(self, whole: SQL, item: exp.Column, value: SQL) -> SQL:
        """The list of a value computed from each `item` of a list; NULL for NULL."""

    @abstractmethod
    def flat(self, whole: SQL, item: exp.Column) -> SQL:
        """The elements of the lists in a list, some of which may be NULL."""

    @abstractmethod
    def any_element(self, whole: SQL, item: exp.Column, condition: SQL) -> SQL:
        """The test whether some `item` of a list satisfies a condition that is never NULL; NULL for NULL."""

    def has_any_text(self, whole: SQL, texts: Sequence[str]) -> SQL | None:
        """The test whether a list has one of these texts; None if `any_element` is just as good."""
        del whole, texts
        return None

    @abstractmethod
    def let(self, name: exp.Column, value: SQL, result: SQL) -> SQL:
        """`result` with `name` bound to `value`, which is computed once."""

    def as_read(self, name: str, column: ColumnType) -> SQL:
        """The column as expressions read it: in its kind's own form, timestamps as the engine's instants.

        In DuckDB instants are naive timestamps in UTC (the session's zone is UTC). In Spark they are
        ``timestamp``; a ``timestamp_ntz`` or a date is moved there without asking the session's zone.
        """
        value = reference(name, column)
        return value if column.cast is None else cast(value, column.cast)

    def as_sorted(self, name: str, column: ColumnType) -> SQL:
        """The column as a tie-breaker: uncast, because a cast would lose digits of large numbers.

        Strings of other types (enumerations, collations) are in the order of their code points.
        """
        cast_first = column.kind in (Kind.STRING, Kind.NULL)
        return self.as_read(name, column) if cast_first else reference(name, column)

    def ticks(self, name: str, column: ColumnType) -> SQL:
        """A time column as 64-bit ticks."""
        value = self.as_read(name, column)
        return self.ticks_of(value, column.tick) if column.kind is Kind.TIMESTAMP else value

    # --------------------------------------------------------------------------------- literals

    @abstractmethod
    def integer(self, value: int) -> SQL:
        """A literal of 64 bits."""

    def floating(self, value: float) -> SQL:
        """A literal of 64 bits, also where it is NaN or infinite."""
        if not math.isfinite(value):
            name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return cast(text(name), "DOUBLE")
        literal = number(self._float_text(repr(abs(value))))
        return negative(literal, is_negative=math.copysign(1.0, value) < 0)

    @abstractmethod
    def _float_text(self, digits: str) -> str:
        """The text of digits, marked as a float and not a decimal."""

    @abstractmethod
    def instant(self, moment: datetime) -> SQL:
        """A literal instant; `moment` has a zone."""

    # -------------------------------------------------------------------------------- operations

    def listed(self, value: SQL, values: Sequence[int | float | str], kind: Kind) -> SQL:
        """The test whether a value is one of many integers, instants, floats or strings; NULL for NULL.

        They are one JSON text, which the parser of SQL need not take apart, and are looked up by a join.
        """
        element = {Kind.FLOAT: "DOUBLE", Kind.STRING: self.text_type}.get(kind, "BIGINT")
        items = exp.Select(expressions=[self.from_json(text(json.dumps(values)), element)])
        return exp.In(this=value, query=exp.Subquery(this=items))

    @abstractmethod
    def from_json(self, items: SQL, element: str) -> SQL:
        """A row for each element, of this type, of a list in JSON."""

    @abstractmethod
    def like(self, value: SQL, pattern: str) -> SQL:
        """``value LIKE pattern``; a backslash escapes ``% _ \\`` and nothing else."""

    @abstractmethod
    def matches(self, value: SQL, regex: str) -> SQL:
        """Whether a part of a string matches a regular expression of the language."""

    @abstractmethod
    def checked(self, operator: str, left: SQL, right: SQL, known: Sequence[SQL]) -> SQL:
        """``+ - *`` on 64-bit integers; an overflow is an error. The operands are not NULL where `known`."""

    @abstractmethod
    def wide(self, value: SQL, *, is_literal: bool) -> SQL:
        """A 64-bit integer as an operand of 64 bits."""

    @abstractmethod
    def rounded(self, function: str, value: SQL) -> SQL:
        """``floor`` or ``ceil`` of a float, a float."""

    @abstractmethod
    def whole(self, value: SQL) -> SQL:
        """The 64-bit integer equal to a float without a fraction; an error if it has more bits."""

    @abstractmethod
    def ticks_of(self, value: SQL, tick: Tick) -> SQL:
        """Microseconds, or nanoseconds, since the epoch of an instant of this resolution, of 64 bits."""

    def nanoseconds_of(self, value: SQL, tick: Tick) -> SQL:
        """The nanoseconds of an instant, to compare different resolutions, in more than 64 bits if needed."""
        return self.ticks_of(value, tick)

    @abstractmethod
    def moment(self, ticks: SQL, tick: Tick) -> SQL:
        """The instant of 64-bit ticks since the epoch; an error outside of the years 1 to 9999."""

    @abstractmethod
    def part_of_time(self, part: str, value: SQL, tick: Tick) -> SQL:
        """``year`` to ``second`` of an instant in UTC, a 64-bit integer."""

    @abstractmethod
    def truncated(self, unit: str, value: SQL, tick: Tick) -> SQL:
        """The instant at which the year … second of an instant in UTC begins, in microseconds."""

    @abstractmethod
    def lower(self, value: SQL) -> SQL:
        """A string with each letter in lower case."""

    @abstractmethod
    def upper(self, value: SQL) -> SQL:
        """A string with each letter in upper case where that is one letter."""

    @abstractmethod
    def trimmed(self, value: SQL) -> SQL:
        """A string without the spaces at its ends."""

    def split_part(self, value: SQL, delimiter: SQL, place: SQL) -> SQL:
        """Part number `place`, from 1, of a string between delimiters; empty beyond the last one."""
        return call("split_part", value, delimiter, place)

    @abstractmethod
    def last_position(self, value: SQL, part: SQL) -> SQL:
        """The position, from 1, at which a part last begins in a string; 0 if it does not occur."""

    @abstractmethod
    def number_of(self, digits: SQL, base: int) -> SQL:
        """The number written in digits and small letters to a base, of more than 64 bits; 0 for no digits."""

    @abstractmethod
    def power(self, base: SQL, exponent: SQL) -> SQL:
        """A power of floats, as in IEEE 754."""

    # ------------------------------------------------------------------------------------ hashes

    @abstractmethod
    def hashes(self, values: Sequence[tuple[SQL, Kind]]) -> tuple[SQL, SQL]:
        """Two independent hashes of values of these kinds: unsigned in DuckDB, signed in Spark."""

    def text_of_decimal(self, value: SQL, scale: int) -> SQL:
        """The common text of equal decimals of any scale, without trailing zeros of the fraction."""
        shown = cast(value, self.text_type)
        return call("regexp_replace", shown, text("[.]?0+$"), text("")) if scale else shown

    def hash_of_string(self, value: SQL, which: int) -> SQL:
        """Number 0 or 1 of the two hashes of a string."""
        return self.hashes([(value, Kind.STRING)])[which]

    # -------------------------------------------------------------------------------------- text

    def text(self, tree: SQL, *, copy: bool = True) -> str:
        """The SQL text of a tree for the engine; without `copy` the tree may be changed."""
        return tree.sql(dialect=self.name, copy=copy)

    def quoted(self, name: str) -> str:
        """The text of a name."""
        return exp.to_identifier(name, quoted=True).sql(self.name)

    def readable(self, statement: str) -> str:
        """The statement for people: on several lines, with strings unchanged.

        It is returned unchanged if it is nested too deeply to be parsed again: the parser descends through
        some ten functions for each level, so it meets Python's limit of 1,000 before the engines meet theirs.
        """
        import sqlglot

        try:
            return (
                sqlglot.parse_one(statement, read=self.name)
                .transform(self._plain)
                .sql(self.name, pretty=True)
            )
        except RecursionError:
            return statement

    def _plain(self, tree: SQL) -> SQL:
        """The readable form of a node of a statement."""
        return tree


def escaped(pattern: str) -> str:
    """The pattern of LIKE with escapes only where both engines accept them: before ``% _ \\``."""
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        escape = character == "\\"
        meant = next(characters, "\\") if escape else character
        parts.append(f"\\{meant}" if escape and meant in {"%", "_", "\\"} else meant)
    return "".join(parts)


def _refuse_alike(column: ColumnType, step: Step) -> None:
    """Raises `DataError` for a field whose name differs from that of another one only in case."""
    alike = [name for name, _ in column.fields or () if name.lower() == str(step).lower()]
    if len(alike) > 1:
        raise DataError(
            f"the fields {alike[0]!r} and {alike[1]!r} of a struct differ in case only",
            hint="rename one of them",
        )
