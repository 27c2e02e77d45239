"""Conditions written in Python: ``var("a").price * 2 > 10``, joined by ``&``, ``|`` and ``~``.

A comparison on one variable is a condition on each of its events, ``a[price * 2 > 10]``;
one on several variables relates them, ``a.price > b.price``. Without a variable, `attribute` makes
predicates for ``var("a")[…]``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar, NoReturn, TypeAlias, overload

from estero.arguments import checked, shown
from estero.errors import NOWHERE
from estero.language.builder.durations import duration_of, durations_of
from estero.language.tree import expressions as e
from estero.language.tree.depth import depth_of, known_depth
from estero.language.tree.durations import Duration
from estero.language.tree.functions import AGGREGATES
from estero.language.tree.literals import Value
from estero.language.tree.nodes import OpenText
from estero.language.tree.paths import element_of, field_of, is_path
from estero.language.tree.pattern import PartitionKey

Operand: TypeAlias = "Expression | Condition | Value | timedelta"


@checked
def var(name: str) -> Variable:
    """The events marked `name`; ``var("a").price`` and ``var("a")["unit price"]`` are their attributes."""
    return Variable(name)


@checked
def attribute(name: str) -> Expression:
    """An attribute of the event at hand, for conditions inside ``var("a")[…]``."""
    return Expression(e.Attribute(_sound(name)))


def _sound(name: str) -> str:
    if is_path(name):
        raise ValueError(f"a column name cannot contain a NUL character, as {name!r} does")
    return name


@checked
def param(name: str) -> Expression:
    """``$name``: a constant, a list behind `is_in`, a length of time or a number, which `Query.bind` gives.

    >>> print(var("a").price > param("least"), var("a").name.is_in(param("names")), sep="\\n")
    a[price > $least]
    a[name IN $names]
    """
    if not name.isidentifier():
        raise ValueError(f"{name!r} is not a parameter name: use letters, digits and _ only")
    return Expression(e.Parameter(None, name))


def constant(value: Value) -> Expression:
    """A constant as an expression: ``constant(1) < var("a").price`` is ``a[1 < price]``."""
    return Expression(literal_of(value))


def closed(low: Value, high: Value) -> e.Range:
    """``low..high`` for `Expression.is_in`: all values from `low` to `high`, both included.

    >>> print(var("a").grade.is_in("x", closed("a", "c")))
    a[grade IN {'x', 'a'..'c'}]
    """
    return e.Range(literal_of(low), literal_of(high))


@checked
class Variable:
    """A variable of a pattern; attributes named like a method are written ``var("a")["name"]``."""

    __slots__ = ("variable_name",)

    def __init__(self, name: str) -> None:
        self.variable_name: str = name

    def __getattr__(self, name: str) -> Expression:
        if name.startswith("__"):
            raise AttributeError(name)
        return Expression(e.Attribute(_sound(name), self.variable_name))

    @overload
    def __getitem__(self, key: str) -> Expression: ...

    @overload
    def __getitem__(self, key: Condition) -> Condition: ...

    def __getitem__(self, key: str | Condition) -> Expression | Condition:
        """An attribute by its name, or a condition on each of its events: ``a[p]``."""
        if isinstance(key, str):
            return Expression(e.Attribute(_sound(key), self.variable_name))
        if not isinstance(key, Condition):
            raise TypeError(f"{self}[…] takes the name of an attribute or a condition, not {shown(key)}")
        return Condition(e.EventFilter(self.variable_name, key.tree))

    def __repr__(self) -> str:
        return f"var({self.variable_name!r})"


def _compared(operator: e.ComparisonOperator, left: Expression, right: Operand) -> Condition:
    return _condition(e.Comparison(operator, left.tree, _beside(left.tree, right)))


def _computed(operator: e.ArithmeticOperator, left: Operand, right: Operand) -> Expression:
    return Expression(e.Arithmetic(operator, _term(left), _term(right)))


@checked
@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A value of one event or of several; compared, it makes a `Condition`.

    Of a struct, ``x.process.name`` is a field, written ``x.process["sum"]`` where a method has its name; of a
    list, ``x.tags[1]`` is the first element.
    """

    tree: e.Node

    def __post_init__(self) -> None:
        depth_of(self.tree)

    def __getattr__(self, name: str) -> Expression:
        if name.startswith("__") or name == "tree":
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, step: str | int) -> Expression:
        """A field by its name, or an element by its place, from 1."""
        if not isinstance(self.tree, e.Attribute):
            raise TypeError(f"{self} is not an attribute, so it has no field or element {step!r}")
        if isinstance(step, str):
            return Expression(replace(self.tree, name=field_of(self.tree.name, _sound(step))))
        if isinstance(step, bool) or not isinstance(step, int):
            raise TypeError(f"a field has a name and an element a number, not {step!r}")
        if step < 1:
            raise ValueError(f"there is no element {step}: the first one is {self}[1]")
        return Expression(replace(self.tree, name=element_of(self.tree.name, step)))

    __iter__ = None

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Refuses a call, since a name other than a method's is that of a field."""
        raise TypeError(f"{self} is a value of events, not a method; the methods are {', '.join(AGGREGATES)}")

    def __str__(self) -> str:
        return str(self.tree)

    def __bool__(self) -> bool:
        raise TypeError(
            "Python cannot tell whether a value of events is true; join conditions with &, | and ~"
        )

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __eq__(self, other: Operand) -> Condition:  # type: ignore[override]
        return _compared("=", self, other)

    def __ne__(self, other: Operand) -> Condition:  # type: ignore[override]
        return _compared("!=", self, other)

    def __lt__(self, other: Operand) -> Condition:
        return _compared("<", self, other)

    def __le__(self, other: Operand) -> Condition:
        return _compared("<=", self, other)

    def __gt__(self, other: Operand) -> Condition:
        return _compared(">", self, other)

    def __ge__(self, other: Operand) -> Condition:
        return _compared(">=", self, other)

    def __add__(self, other: Operand) -> Expression:
        return _computed("+", self, other)

    def __radd__(self, other: Operand) -> Expression:
        return _computed("+", other, self)

    def __sub__(self, other: Operand) -> Expression:
        return _computed("-", self, other)

    def __rsub__(self, other: Operand) -> Expression:
        return _computed("-", other, self)

    def __mul__(self, other: Operand) -> Expression:
        return _computed("*", self, other)

    def __rmul__(self, other: Operand) -> Expression:
        return _computed("*", other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return _computed("/", self, other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return _computed("/", other, self)

    def __mod__(self, other: Operand) -> Expression:
        return _computed("%", self, other)

    def __rmod__(self, other: Operand) -> Expression:
        return _computed("%", other, self)

    def __neg__(self) -> Expression:
        return Expression(e.Negative(self.tree))

    def count(self, *, distinct: bool = False) -> Expression:
        """The number of marked events with a value, or the number of distinct values.

        >>> print(var("x").user.count(distinct=True) > 3)
        count(DISTINCT x.user) > 3
        """
        return aggregated("count", self, distinct=distinct)

    def sum(self) -> Expression:
        """The sum over all events that a variable marks: ``sum(x.price * x.volume)``.

        >>> print((var("x").price * var("x").volume).sum())
        sum(x.price * x.volume)
        """
        return aggregated("sum", self)

    def avg(self) -> Expression:
        """The mean over all events that a variable marks: ``avg(x.price)``."""
        return aggregated("avg", self)

    def stddev(self) -> Expression:
        """The standard deviation over all events that a variable marks: ``stddev(x.price)``."""
        return aggregated("stddev", self)

    def median(self) -> Expression:
        """The median over all events that a variable marks: ``median(x.price)``."""
        return aggregated("median", self)

    def min(self) -> Expression:
        """The smallest value of all events that a variable marks: ``min(x.price)``."""
        return aggregated("min", self)

    def max(self) -> Expression:
        """The largest value of all events that a variable marks: ``max(x.price)``."""
        return aggregated("max", self)

    def first(self) -> Expression:
        """The value of the first event that a variable marks: ``first(x.price)``."""
        return aggregated("first", self)

    def last(self) -> Expression:
        """The value of the last event that a variable marks: ``last(x.price)``."""
        return aggregated("last", self)

    def list(self) -> Expression:
        """The values of all events that a variable marks, in order: ``list(x.price)``."""
        return aggregated("list", self)

    def __and__(self, other: Condition | Expression) -> Condition:
        return self.as_filter() & other

    def __or__(self, other: Condition | Expression) -> Condition:
        return self.as_filter() | other

    def __invert__(self) -> Condition:
        return ~self.as_filter()

    def __abs__(self) -> Expression:
        return Expression(e.Call("abs", (self.tree,)))

    def is_in(self, *members: Value | range | e.Range | Expression) -> Condition:
        """Tests for one of these constants; ``range(1, 6)`` stands for ``1..5``, as does ``closed(1, 5)``.

        A parameter alone is a list.
        """
        if not members:
            raise ValueError("a set needs at least one member")
        if len(members) == 1 and (listed := parameter_in(members[0])) is not None:
            return _condition(e.InList(self.tree, e.ListOf(listed.name)))
        return _condition(e.In(self.tree, tuple(map(_member, members))))

    def between(self, low: Operand, high: Operand) -> Condition:
        """``value BETWEEN low AND high``, both ends included."""
        return _condition(e.Between(self.tree, _beside(self.tree, low), _beside(self.tree, high)))

    def like(self, pattern: str | Expression) -> Condition:
        """Tests for a string of this form: ``%`` any text, ``_`` one character, a backslash escapes both."""
        return _condition(e.Like(self.tree, _text(pattern)))

    def ilike(self, pattern: str | Expression) -> Condition:
        """Tests for a string of this form, whatever the case of its letters."""
        return _condition(e.Ilike(self.tree, _text(pattern)))

    def matches(self, regex: str | Expression) -> Condition:
        """Tests for a string with a match of the regular expression."""
        return _condition(e.Matches(self.tree, _text(regex)))

    def is_null(self) -> Condition:
        """Tests that the value is missing."""
        return _condition(e.IsNull(self.tree))

    def is_not_null(self) -> Condition:
        """Tests that the value is not missing."""
        return _condition(e.Not(e.IsNull(self.tree)))

    def named(self, name: str) -> Named:
        """A column of the answer: ``max(x.price) AS name``, for `QueryBuilder.show`."""
        return Named(self, name)

    def as_filter(self) -> Condition:
        """The condition that this truth value is true."""
        return _condition(self.tree)

    def as_key(self) -> PartitionKey:
        """The key of a partition, if this is an attribute."""
        if not isinstance(self.tree, e.Attribute):
            raise TypeError(f"{self} is not an attribute, so it cannot be a key")
        return PartitionKey(self.tree.name, self.tree.variable)


@dataclass(frozen=True, slots=True)
class Named:
    """A value of each complex event under a name: a column of the answer."""

    value: Expression
    name: str


@checked
@dataclass(frozen=True, slots=True)
class Condition:
    """A filter, or a predicate over one event; joined with ``&``, ``|`` and ``~``."""

    tree: e.Node
    is_group: bool = field(default=False, compare=False, repr=False)
    depth: int = field(default=0, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", self.depth or depth_of(self.tree))

    def __str__(self) -> str:
        return str(self.tree)

    def __bool__(self) -> bool:
        raise TypeError(
            "Python cannot tell whether a condition on events is true; join conditions with &, | and ~"
        )

    def __and__(self, other: Condition | Expression) -> Condition:
        return self._chain(e.And, _joined(other, "&"))

    def __or__(self, other: Condition | Expression) -> Condition:
        return self._chain(e.Or, _joined(other, "|"))

    def _chain(self, kind: type[e.And | e.Or], other: Condition) -> Condition:
        if not isinstance(self.tree, kind) or self.is_group:
            return Condition(kind((self.tree, other.tree)))
        depth = known_depth(max(self.depth, other.depth + 1))
        return Condition(kind((*self.tree.parts, other.tree)), depth=depth)

    def __invert__(self) -> Condition:
        """The negation: for ``a[p]``, that p is not true of every event marked a."""
        return Condition(e.Not(self.tree))

    def as_filter(self) -> Condition:
        """This condition."""
        return self

    def as_value(self) -> Expression:
        """The truth value of the condition, to be compared or passed on.

        >>> print(var("a")[(attribute("price") > 5).as_value() == attribute("ok")])
        a[(price > 5) = ok]
        """
        return Expression(self.tree)

    def grouped(self) -> Condition:
        """This condition in parentheses: ``(p AND q) AND r`` and ``p AND q AND r`` mean the same.

        >>> p, q, r = (attribute(name) == 1 for name in "pqr")
        >>> print((p & q).grouped() & r, "/", p & q & r)
        (p = 1 AND q = 1) AND r = 1 / p = 1 AND q = 1 AND r = 1
        """
        return Condition(self.tree, is_group=True)


def aggregated(function: e.AggregateFunction, of: Expression, *, distinct: bool = False) -> Expression:
    """A value of all events marked with the one variable whose attributes are in `of`."""
    variables = {node.variable for node in of.tree.walk() if isinstance(node, e.Attribute)}
    if len(variables) != 1 or None in variables:
        raise TypeError("an aggregate takes a variable, or an expression over the attributes of one")
    (variable,) = variables
    return Expression(e.Aggregate(function, str(variable), e.without_variable(of.tree), distinct))


def parameter_in(value: object) -> e.Parameter | None:
    """The parameter that an expression is, None for all others."""
    tree = value.tree if isinstance(value, Expression) else None
    return tree if isinstance(tree, e.Parameter) else None


def _condition(node: e.Node) -> Condition:
    """The condition itself, or on each event of its only variable."""
    below = list(node.walk())
    variables = {node.variable for node in below if isinstance(node, e.Attribute)}
    of_sets = any(
        isinstance(node, e.Aggregate | e.SetPredicate | e.EventFilter | e.Previous) for node in below
    )
    if of_sets or len(variables) != 1:
        return Condition(node)
    (variable,) = variables
    return Condition(node if variable is None else e.EventFilter(variable, e.without_variable(node)))


def node_of(value: object) -> e.Node:
    """The node of a value, a constant included."""
    if isinstance(value, Expression | Condition):
        return value.tree
    return literal_of(value)


def _term(value: object) -> e.Node:
    """The node of an operand of arithmetic: a text is a duration, as there is no arithmetic on strings."""
    if not isinstance(value, str):
        return node_of(value)
    return e.Literal(Duration(sum(amount * unit.value for amount, unit in durations_of(value))))


def _beside(computed: e.Node, value: object) -> e.Node:
    """The node of an operand of a comparison; beside arithmetic, a text is a duration.

    >>> x, y = var("x"), var("y")
    >>> print(y.time - x.time <= "30 minutes", y.time > x.time + "1 hour", x.name == "30 minutes", sep="\\n")
    y.time - x.time <= 30 MINUTES
    y.time > x.time + 1 HOUR
    x[name = '30 minutes']
    """
    return _term(value) if isinstance(computed, e.Arithmetic | e.Negative) else node_of(value)


def _joined(other: object, sign: str) -> Condition:
    """The node of an operand of ``&`` or ``|``."""
    if not isinstance(other, Condition | Expression):
        raise TypeError(
            f"{sign} joins conditions, and {shown(other)} is not one: comparisons on both sides of it need "
            f"parentheses, (…) {sign} (…)"
        )
    return other.as_filter()


def literal_of(value: object) -> e.Literal:
    """The node of a constant; refuses what has no literal."""
    if isinstance(value, float) and math.isnan(value):
        raise ValueError("NaN has no literal")
    if isinstance(value, datetime):
        if value != value:  # noqa: PLR0124 - pandas' NaT is a datetime that does not equal itself
            raise ValueError("NaT is not a time: use None for NULL")
        return e.Literal(value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC))
    if isinstance(value, timedelta):
        return e.Literal(duration_of(value))
    if value is None or isinstance(value, bool | int | float | str | Duration):
        return e.Literal(value)
    raise TypeError(f"{value!r} is not a truth value, a number, a string, a datetime, a timedelta or None")


def _text(text: str | Expression) -> str:
    if not isinstance(text, Expression):
        return text
    parameter = parameter_in(text)
    if parameter is None:
        raise TypeError(f"{text} is not a string or a parameter")
    return OpenText.of(parameter.name, NOWHERE)


def _member(member: Value | range | e.Range | Expression) -> e.Literal | e.Range:
    if isinstance(member, e.Range):
        return member
    if (parameter := parameter_in(member)) is not None:
        return parameter
    if not isinstance(member, range):
        return literal_of(member)
    if member.step != 1 or not member:
        raise ValueError(f"{member!r} is empty or skips numbers: a set takes ranges with step 1")
    return e.Range(e.Literal(member[0]), e.Literal(member[-1]))
