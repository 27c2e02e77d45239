"""Expressions of MEASURES and DEFINE: the values that they read from a match, and their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from estero.errors import QueryError
from estero.language.row_patterns.scalars import MODES, NAVIGATION, ParsedScalar, function_of
from estero.language.row_patterns.slots import (
    HERE,
    Address,
    Aggregate,
    Count,
    Expression,
    Label,
    MatchNumber,
    Presence,
    Rows,
    Slot,
    Value,
    column_name,
    slot_name,
)
from estero.language.row_patterns.tree import RowPatternClause, Scalar
from estero.language.row_patterns.words import Dialect

MOST_ROWS: Final = 2**31 - 1
EVALUATED: Final = "duckdb"
"""The dialect of SQL in which expressions are evaluated; they may be written in another."""
_OF_ORDER: Final = (exp.ArrayAgg, exp.GroupConcat, exp.AnyValue)
_ORDERED: Final = frozenset(
    {
        "list",
        "array_agg",
        "string_agg",
        "group_concat",
        "listagg",
        "any_value",
        "arbitrary",
        "array_agg_distinct",
    }
)


@dataclass(frozen=True)
class Names:
    """The meanings of names in expressions: columns of the input, its own name, variables and subsets."""

    clause: RowPatternClause
    columns: Sequence[str]
    relation: str = ""
    aggregates: frozenset[str] = frozenset()
    numbers: Mapping[str, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        numbers: dict[str, int] = {}
        for number, name in enumerate(self.columns):
            numbers.setdefault(name.casefold(), number)
        object.__setattr__(self, "numbers", numbers)

    @property
    def dialect(self) -> Dialect:
        """The SQL in which expressions are written; they are evaluated in DuckDB's."""
        return self.clause.dialect

    def rows(self, name: str) -> Rows:
        """The variables of a variable or subset; None if there is none of this name."""
        return self.clause.names.get(name.casefold())

    def aggregate(self, node: exp.Expr) -> bool:
        """Whether a node calls an aggregate."""
        if isinstance(node, exp.AggFunc):
            return True
        return isinstance(node, exp.Anonymous) and str(node.this).lower() in self.aggregates


@dataclass(frozen=True)
class Reference:
    """A column: its number, the rows whose values are meant, and the fields after it."""

    column: int
    rows: Rows
    fields: tuple[exp.Expr, ...]


Clause = Literal["MEASURES", "DEFINE"]


class Reader:
    """Reads the expressions of one clause; a condition of DEFINE belongs to the variable `of`."""

    def __init__(self, names: Names, clause: Clause, of: str | None = None) -> None:
        self._names, self._clause, self._of = names, clause, of
        self._slots: dict[Slot, int] = {}
        self._earlier: dict[str, exp.Expr] = {}
        self._parsed: ParsedScalar

    @property
    def tree(self) -> exp.Expr:
        """The tree of the last expression read, as it is written."""
        return self._parsed.tree

    def read(self, scalar: Scalar, earlier: Mapping[str, exp.Expr] | None = None) -> Expression:
        """The expression; raises `QueryError`. A measure may name earlier ones, by their trees."""
        text = self._names.clause.text
        self._slots = {}
        self._earlier = {name.casefold(): tree for name, tree in (earlier or {}).items()}
        self._parsed = ParsedScalar(scalar, text, self._names.dialect)
        tree = self._parsed.tree.transform(self._outside)
        return Expression(tree, tuple(self._slots))

    # ------------------------------------------------------------------------------- nodes, by where they are

    def _outside(self, node: exp.Expr) -> exp.Expr:
        """The node outside of functions of rows and aggregates."""
        call, wrappers = self._unwrapped(node)
        function = function_of(call)
        if isinstance(node, exp.Window):
            raise self._wrong(f"a window function cannot stand in {self._clause}", node, "leave OVER out")
        if function in MODES and not wrappers:
            return self._in_mode(call, function)
        if function and wrappers:
            if function in MODES and self._names.aggregate(call.expressions[0]):
                return self._aggregate(node, call.expressions[0], self._mode(call, function))
            raise self._wrong(f"{function} takes no FILTER, ORDER BY or IGNORE NULLS", node, "leave it out")
        if function:
            return self._function(call, function, final=False)
        if self._names.aggregate(call):
            return self._aggregate(node, call, final=False)
        if isinstance(node, exp.Query | exp.Subquery | exp.Exists) and node.find(exp.Query):
            return self._subquery(node)
        if isinstance(node, exp.Column):
            return self._column(node, HERE)
        return node

    def _unwrapped(self, node: exp.Expr) -> tuple[exp.Expr, list[exp.Expr]]:
        """The call inside FILTER, WITHIN GROUP and IGNORE NULLS, and these."""
        wrappers: list[exp.Expr] = []
        while isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
            wrappers.append(node)
            node = node.this
        return node, wrappers

    def _in_mode(self, call: exp.Expr, function: str) -> exp.Expr:
        """RUNNING or FINAL and what follows."""
        inner = call.expressions[0]
        final = self._mode(call, function)
        name = function_of(inner)
        if name in ("FIRST", "LAST"):
            return self._function(inner, name, final=final)
        if self._names.aggregate(inner):
            return self._aggregate(inner, inner, final=final)
        always = " always reads the row that it leads to" if name in NAVIGATION else ""
        raise self._wrong(
            f"{function} is for FIRST, LAST and aggregates" + (f", and {name}{always}" if always else ""),
            call,
            "leave it out",
        )

    def _mode(self, call: exp.Expr, function: str) -> bool:
        if function == "FINAL" and self._clause == "DEFINE":
            raise self._wrong(
                "FINAL cannot stand in DEFINE, where only RUNNING is available", call, "leave FINAL out"
            )
        return function == "FINAL"

    def _column(self, node: exp.Column, address: Address | None) -> exp.Expr:
        """A column, of the rows of its variable or at an address."""
        earlier = self._earlier.get(node.name.casefold()) if len(node.parts) == 1 else None
        if earlier is not None and node.name.casefold() not in self._names.numbers:
            return exp.Paren(this=earlier.transform(self._outside))
        reference = self._reference(node)
        if address is HERE:
            address = Address(rows=reference.rows)
        if address is None:
            return _with_fields(exp.column(column_name(reference.column)), reference.fields)
        return _with_fields(self._slot(Value(self._normal(address), reference.column)), reference.fields)

    def _reference(self, node: exp.Column) -> Reference:
        """The meaning of the name of a column; raises `QueryError` if there is none."""
        parts = node.parts
        if isinstance(parts[-1], exp.Star):
            raise self._wrong("A.* is for count(A.*) only", node, "name a column")
        names = [part.name for part in parts]
        numbers = self._names.numbers
        first = names[0].casefold()
        if len(names) > 1 and names[1].casefold() in numbers:
            rows = self._names.rows(first)
            if rows is not None or first == self._names.relation.casefold():
                return Reference(numbers[names[1].casefold()], rows, tuple(parts[2:]))
        if first in numbers:
            return Reference(numbers[first], None, tuple(parts[1:]))
        raise self._unknown(node, names)

    def _unknown(self, node: exp.Column, names: Sequence[str]) -> QueryError:
        column = names[-1]
        if len(names) > 1:
            known = self._names.rows(names[0]) is not None
            if not known and names[0].casefold() != self._names.relation.casefold():
                variables = [str(variable) for variable in self._names.clause.variables.values()]
                return self._wrong(
                    f"{names[0]!r} is not a variable of PATTERN, a subset or a column",
                    node,
                    f"the variables are {', '.join(variables)}" if variables else "",
                )
            column = names[1]
        earlier = [measure.name for measure in self._names.clause.measures]
        if column.casefold() in map(str.casefold, earlier):
            return self._wrong(
                f"the measure {column!r} cannot be referenced before it is defined",
                node,
                "only the measures before it can be named",
            )
        return self._wrong(
            f"there is no column {column!r} in the input",
            node,
            f"its columns are {', '.join(self._names.columns)}",
        )

    def _subquery(self, node: exp.Expr) -> exp.Expr:
        """A subquery with slots for what it reads from the match: functions of rows, and names of variables.

        Other names and aggregates are its own, as are names of variables that its tables have.
        """
        if self._clause == "DEFINE":
            raise self._wrong("a subquery cannot stand in DEFINE", node, "join its table to the input")
        own = {
            inner.alias_or_name.casefold()
            for inner in node.find_all(exp.Table, exp.Subquery, exp.CTE)
            if inner.alias_or_name
        }

        def is_of_match(column: exp.Column) -> bool:
            qualifier = column.parts[0].name
            return (
                len(column.parts) > 1
                and qualifier.casefold() not in own
                and self._names.rows(qualifier) is not None
            )

        def named(inner: exp.Expr) -> exp.Expr:
            call, _ = self._unwrapped(inner)
            columns = list(call.find_all(exp.Column))
            if function_of(call) or (
                self._names.aggregate(call) and columns and all(map(is_of_match, columns))
            ):
                return self._outside(inner)
            if not isinstance(inner, exp.Column):
                return inner
            if is_of_match(inner):
                return self._column(inner, HERE)
            if len(inner.parts) == 1 and isinstance(inner.this, exp.Identifier):
                return exp.column(inner.this.name, quoted=True)  # otherwise it would be taken for a slot
            return inner

        copy: exp.Expr = node.copy().transform(named)
        return copy

    # ---------------------------------------- functions of rows

    def _function(self, call: exp.Expr, function: str, *, final: bool) -> exp.Expr:
        if function == "MATCH_NUMBER":
            if call.expressions:
                raise self._wrong("MATCH_NUMBER takes no argument", call, "write MATCH_NUMBER()")
            return self._slot(MatchNumber())
        if function == "CLASSIFIER":
            return self._label(Address(rows=self._classified(call)))
        argument, address = self._navigated(call, function, final=final)
        return self._at(argument, address)

    def _classified(self, call: exp.Expr) -> Rows:
        """The rows of CLASSIFIER's argument."""
        arguments = call.expressions
        if not arguments:
            return None
        if len(arguments) > 1 or not isinstance(arguments[0], exp.Column) or len(arguments[0].parts) > 1:
            raise self._wrong(
                "CLASSIFIER takes one variable or subset, or nothing",
                call,
                "write CLASSIFIER() or CLASSIFIER(A)",
            )
        rows = self._names.rows(arguments[0].name)
        if rows is None:
            raise self._wrong(f"{arguments[0].name!r} is not a variable of PATTERN or a subset", arguments[0])
        return rows

    def _navigated(self, call: exp.Expr, function: str, *, final: bool) -> tuple[exp.Expr, Address]:
        """The value read, and its address: the argument of PREV, NEXT, FIRST or LAST."""
        argument, offset = self._arguments(call, function)
        inner = argument.unnest()
        name = function_of(inner)
        if function in ("PREV", "NEXT"):
            shift = -offset if function == "PREV" else offset
            inner_final = False
            if name in MODES:
                inner_final = self._mode(inner, name)
                inner = inner.expressions[0].unnest()
                name = function_of(inner)
            if name in ("FIRST", "LAST"):
                read, address = self._navigated(inner, name, final=inner_final)
                return read, replace(address, shift=shift)
            self._check_flat(argument, function)
            return argument, Address(rows=self._scope(argument, call, function), shift=shift)
        self._check_flat(argument, function)
        rows = self._scope(argument, call, function)
        return argument, Address(function == "LAST", rows, offset, final)

    def _arguments(self, call: exp.Expr, function: str) -> tuple[exp.Expr, int]:
        arguments = call.expressions
        if not 1 <= len(arguments) <= 2 or isinstance(arguments[0], exp.Distinct | exp.Order):
            raise self._wrong(
                f"{function} takes an expression and an optional offset",
                call,
                f"write {function}(A.x) or {function}(A.x, 2)",
            )
        if len(arguments) == 1:
            return arguments[0], 1 if function in ("PREV", "NEXT") else 0
        offset = simplify(arguments[1].copy())
        negative = isinstance(offset, exp.Neg)
        number = offset.this if negative else offset
        if not isinstance(number, exp.Literal) or number.is_string or not number.this.isdigit():
            null = ", not NULL" if isinstance(number, exp.Null) else ""
            raise self._wrong(
                f"the offset of {function} must be a constant, a non-negative integer{null}", arguments[1]
            )
        if negative and int(number.this):
            raise self._wrong(
                f"the offset of {function} must be a non-negative integer",
                arguments[1],
                "for the other direction write "
                + {"PREV": "NEXT", "NEXT": "PREV", "FIRST": "LAST", "LAST": "FIRST"}[function],
            )
        if int(number.this) > MOST_ROWS:
            raise self._wrong(
                f"the offset of {function} is larger than any match can have rows",
                arguments[1],
                f"offsets go up to {MOST_ROWS:,}",
            )
        return arguments[0], int(number.this)

    def _check_flat(self, argument: exp.Expr, function: str) -> None:
        """Raises `QueryError` if a navigation has another one or an aggregate inside."""
        for node in argument.walk():
            name = function_of(node)
            if name in NAVIGATION or name in MODES:
                raise self._wrong(
                    f"Nested row pattern navigation: {name} cannot be nested in {function} here",
                    node,
                    "PREV and NEXT take FIRST(…) or LAST(…) as their whole argument, and nothing "
                    "else is nested",
                )
            if self._names.aggregate(node):
                raise self._wrong(
                    f"an aggregate reads the rows of the match and cannot be nested in {function}", node
                )
            if isinstance(node, exp.Query):
                raise self._wrong(f"a subquery cannot stand in {function}", node)

    def _scope(self, argument: exp.Expr, call: exp.Expr, function: str) -> Rows:
        """The rows to which all columns and classifiers of an argument refer."""
        scopes = self._scopes(argument)
        if not scopes:
            raise self._wrong(
                f"{function} must read a column or CLASSIFIER()", call, "write the value without it"
            )
        return self._one_of(scopes, call, function)

    def _scopes(self, argument: exp.Expr) -> list[Rows]:
        scopes: list[Rows] = []

        def seen(node: exp.Expr) -> exp.Expr:
            if function_of(node) == "CLASSIFIER":
                scopes.append(self._classified(node))
                return exp.null()
            if isinstance(node, exp.Column):
                if isinstance(node.this, exp.Star):
                    scopes.append(self._starred(node))
                else:
                    scopes.append(self._reference(node).rows)
                return exp.null()
            return node

        argument.copy().transform(seen)
        return scopes

    def _one_of(self, scopes: Sequence[Rows], call: exp.Expr, function: str) -> Rows:
        if len(set(scopes)) > 1:
            whole = None in scopes
            raise self._wrong(
                f"{function} reads the rows of one pattern variable: all columns and classifiers in "
                f"it must be of a "
                "single pattern variable" + (", and it cannot also read the whole match" if whole else ""),
                call,
                "name the same variable everywhere, or none",
            )
        return scopes[0] if scopes else None

    def _at(self, argument: exp.Expr, address: Address) -> exp.Expr:
        """An argument, read at an address; NULL if there is no such row."""
        inner = argument.unnest()
        if isinstance(inner, exp.Column):
            return self._column(inner, address)
        if function_of(inner) == "CLASSIFIER":
            return self._label(address)

        def read(node: exp.Expr) -> exp.Expr:
            if function_of(node) == "CLASSIFIER":
                return self._label(address)
            if function_of(node) == "MATCH_NUMBER":
                return self._slot(MatchNumber())
            return self._column(node, address) if isinstance(node, exp.Column) else node

        value = argument.copy().transform(read)
        present = self._slot(Presence(self._normal(address)))
        return exp.Paren(this=exp.Case(ifs=[exp.If(this=present, true=value)]))

    # ---------------------------------------- aggregates

    def _aggregate(self, node: exp.Expr, call: exp.Expr, final: bool) -> exp.Expr:
        """An aggregate with its FILTER and ORDER BY."""
        name = (
            call.sql_name()
            if isinstance(call, exp.Func) and not isinstance(call, exp.Anonymous)
            else str(call.this)
        )
        if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
            raise self._wrong("IGNORE NULLS is not supported in aggregates here", node, "use FILTER")
        self._check_inside(node, call, name)
        starred = [
            part
            for part in call.args.values()
            if isinstance(part, exp.Column) and isinstance(part.this, exp.Star)
        ]
        if starred and not isinstance(call, exp.Count):
            raise self._wrong("A.* is for count(A.*) only", call, "name a column")
        if (
            node is call
            and isinstance(call, exp.Count)
            and (starred or not call.this or isinstance(call.this, exp.Star))
        ):
            return self._slot(Count(self._starred(starred[0]) if starred else None, final))
        rows = self._one_of(self._scopes(node), node, name)
        columns: list[int] = []

        def read(inner: exp.Expr) -> exp.Expr:
            if function_of(inner) == "CLASSIFIER":
                return exp.column("label")
            if function_of(inner) == "MATCH_NUMBER":
                return exp.column("number")
            if isinstance(inner, exp.Column):
                if isinstance(inner.this, exp.Star):
                    return exp.Star()
                columns.append(self._reference(inner).column)
                return self._column(inner, None)
            return inner

        condition, built = self._filtered(node.copy().transform(read))
        ordered = (isinstance(call, _OF_ORDER) or name.lower() in _ORDERED) and not call.find(exp.Order)
        return self._slot(
            Aggregate(built.sql(EVALUATED), condition, rows, final, tuple(dict.fromkeys(columns)), ordered)
        )

    def _filtered(self, tree: exp.Expr) -> tuple[str, exp.Expr]:
        """The condition of an aggregate's FILTER, and the call in it, in DuckDB's form."""
        while function_of(tree) in MODES:
            tree = tree.expressions[0]
        if self._names.dialect != EVALUATED:  # some aggregates become others, with a FILTER
            tree = sqlglot.parse_one(tree.sql(EVALUATED), dialect=EVALUATED)
        if not isinstance(tree, exp.Filter):
            return "", tree
        call = tree.this
        while function_of(call) in MODES:
            call = call.expressions[0]
        return tree.expression.this.sql(EVALUATED), call

    def _starred(self, star: exp.Column) -> Rows:
        if len(star.parts) != 2:
            raise self._wrong("count(A.*) counts the rows of one variable", star)
        rows = self._names.rows(star.parts[0].name)
        if rows is None and star.parts[0].name.casefold() != self._names.relation.casefold():
            raise self._wrong(f"{star.parts[0].name!r} is not a variable of PATTERN or a subset", star)
        return rows

    def _check_inside(self, node: exp.Expr, call: exp.Expr, name: str) -> None:
        for inner in node.walk():
            function = function_of(inner)
            if function in NAVIGATION:
                raise self._wrong(
                    f"row pattern navigation cannot be nested in an aggregate: {function} stands in {name}",
                    inner,
                )
            if inner is not call and self._names.aggregate(inner):
                raise self._wrong(
                    f"an aggregate reads the rows of the match and cannot be nested in {name}", inner
                )
            if isinstance(inner, exp.Query):
                raise self._wrong("a subquery cannot stand in an aggregate here", inner)

    # ---------------------------------------- slots

    def _label(self, address: Address) -> exp.Expr:
        address = self._normal(address)
        if self._of is not None and address.is_near and address.shift >= 0:
            if address.shift:
                return exp.null()
            return exp.Literal.string(self._names.clause.variables[self._of].name)
        return self._slot(Label(address))

    def _normal(self, address: Address) -> Address:
        """The same address; in the condition of a variable its last row is the current one."""
        mine = self._of is not None and address.rows is not None and self._of in address.rows
        if mine and address.last and address.offset == 0:
            return replace(address, rows=None)
        return address

    def _slot(self, slot: Slot) -> exp.Expr:
        return exp.column(slot_name(self._slots.setdefault(slot, len(self._slots))))

    def _wrong(self, message: str, node: exp.Expr, hint: str = "") -> QueryError:
        return self._parsed.error(message, node, hint=hint)


def _with_fields(value: exp.Expr, fields: Sequence[exp.Expr]) -> exp.Expr:
    for name in fields:
        value = exp.Dot(this=value, expression=name.copy())
    return value
