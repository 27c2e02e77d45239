"""The reference meaning of expressions: values, three-valued logic, one event at a time.

Slow and plain on purpose: this is what the SQL of every engine is compared with (docs/semantics.md,
"Conditions"). Unknown is None throughout.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeVar

from estero.errors import DataError, QueryError
from estero.language.regex.dialects import for_python
from estero.language.tree import expressions as e
from estero.language.tree.durations import Duration
from estero.language.tree.literals import Value
from estero.language.tree.paths import column_of, steps_of
from estero.reference.functions import alike, as_number, call_function, converted, fit
from estero.reference.times import absolute, negated, of_times, seconds, ticked

Lookup = Callable[[e.Attribute | e.Aggregate | e.Previous], Value]
"""A function from the names in an expression to their values."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its type, its attributes, and its time in ticks where the stream has a time.

    A missing attribute is the same as NULL in expressions; a partition key tells them apart. Timestamps
    are datetimes; a naive one is in UTC. A struct is a mapping, a list a sequence; or what is inside of them
    is given by its path.
    """

    type: str
    attributes: Mapping[str, Any]
    time: int | None = None

    def has(self, name: str) -> bool:
        """Whether the event has the attribute, or the column that the path leads into."""
        return name in self.attributes or column_of(name) in self.attributes

    def value(self, name: str) -> Value:
        """The value of an attribute, field or element; NULL if it is missing or inside a NULL.

        >>> from estero.language.tree.paths import element_of
        >>> print(Event("A", {"tags": ["x", "y"]}).value(element_of("tags", 3)))
        None
        """
        if name in self.attributes:
            given: Value = self.attributes[name]
            return given
        value: Any = self.attributes.get(column_of(name))
        for step in steps_of(name):
            if value is None:
                return None
            if isinstance(step, int):
                value = value[step - 1] if step <= len(value) else None
            else:
                value = _field(value, step)
        leaf: Value = value
        return leaf


def _field(value: Any, name: str) -> Any:
    """The field of a struct; of a list, the list of what its elements have there, lists in it one list."""
    if not isinstance(value, list | tuple):
        return None if value is None else value.get(name)
    fields = [_field(inner, name) for inner in value]
    if not any(isinstance(one, list | tuple) for one in fields):
        return fields
    return [one for inner in fields if inner is not None for one in inner]


def evaluate_expression(node: e.Node, event: Event) -> Value:
    """The value of an expression, or the truth of a predicate, for one event; None is NULL or unknown.

    Every part is evaluated, so an overflow anywhere is a `DataError` even where the rest decides.

    >>> modulo = e.Arithmetic("%", e.Attribute("n"), e.Literal(3))
    >>> evaluate_expression(modulo, Event("A", {"n": -7}))
    -1
    """

    def attribute_of_event(name: e.Attribute | e.Aggregate | e.Previous) -> Value:
        if not isinstance(name, e.Attribute) or name.variable is not None:
            raise QueryError("a predicate over one event cannot refer to variables", span=name.span)
        return event.value(name.name)

    return evaluate(node, attribute_of_event)


def evaluate_predicate(node: e.Node, event: Event) -> bool | None:
    """Whether a predicate is true of one event, by three-valued logic; None is unknown."""
    return as_truth(evaluate_expression(node, event))


def evaluate(node: e.Node, lookup: Lookup) -> Value:
    """The value of `node`, where `lookup` says what attributes and aggregates stand for."""
    match node:
        case e.Literal(value):
            return in_utc(value)
        case e.Attribute() | e.Aggregate() | e.Previous():
            return in_utc(lookup(node))
        case e.Negative(operand):
            return _negative(evaluate(operand, lookup))
        case e.Arithmetic(sign, left, right):
            return arithmetic(sign, evaluate(left, lookup), evaluate(right, lookup))
        case e.Call(name, arguments):
            return _called(name, [evaluate(argument, lookup) for argument in arguments])
        case e.Case():
            return _case(node, lookup)
        case e.SomeElement(operand, name, condition):
            return _some(_any(lookup(operand)), name, condition, lookup)
        case e.Cast(operand, wanted):
            return converted(evaluate(operand, lookup), wanted)
        case _:
            return _truth(node, lookup)


def _case(node: e.Case, lookup: Lookup) -> Value:
    """The value of the first true condition; the rest is not evaluated."""
    for when in node.whens:
        if as_truth(evaluate(when.condition, lookup)):
            return evaluate(when.value, lookup)
    return None if node.default is None else evaluate(node.default, lookup)


def _called(name: str, values: Sequence[Value]) -> Value:
    match name:
        case "nullif":
            return None if compare("=", *values) else values[0]
        case "seconds":
            return None if values[0] is None else seconds(values[0])
        case "abs" if isinstance(values[0], Duration):
            return absolute(values[0])
        case "contains" if isinstance(whole := _any(values[0]), list):
            occurs = any(compare("=", in_utc(item), values[1]) for item in whole)
            return None if values[1] is None else occurs
        case "greatest" | "least":
            return _extreme(">" if name == "greatest" else "<", alike(values))
        case _:
            return call_function(name, values)


def _any(value: Any) -> Any:
    """The value, typed as anything, since a list is not a value of literals."""
    return value


def _extreme(sign: e.ComparisonOperator, known: Sequence[Value]) -> Value:
    """The greatest or least value; NULL if there is none."""
    best = known[0] if known else None
    for value in known:
        if compare(sign, value, best):
            best = value
    return best


def _truth(node: e.Node, lookup: Lookup) -> bool | None:
    match node:
        case e.Comparison(sign, left, right):
            return compare(sign, evaluate(left, lookup), evaluate(right, lookup))
        case e.Between(operand, low, high):
            value = evaluate(operand, lookup)
            return _between(value, evaluate(low, lookup), evaluate(high, lookup))
        case e.In(operand, members):
            value = evaluate(operand, lookup)
            return any_true([_is_member(value, member) for member in members])
        case e.InList(operand, values):
            value = evaluate(operand, lookup)
            return None if value is None else any(compare("=", value, item) for item in values.values)
        case e.Like(operand, pattern):
            return _text_test(evaluate(operand, lookup), _like_as_regex(node, pattern).fullmatch)
        case e.Ilike():
            return _truth(node.as_like, lookup)
        case e.Matches(operand, regex):
            return _text_test(evaluate(operand, lookup), re.compile(for_python(regex)).search)
        case e.IsNull(operand):
            return evaluate(operand, lookup) is None
        case e.And(parts):
            return all_true([as_truth(evaluate(part, lookup)) for part in parts])
        case e.Or(parts):
            return any_true([as_truth(evaluate(part, lookup)) for part in parts])
        case e.Not(part):
            return not_true(as_truth(evaluate(part, lookup)))
        case _:
            raise QueryError(f"{type(node).__name__} has no value", span=node.span)


def _some(whole: Any, name: str, condition: e.Node, lookup: Lookup) -> bool | None:
    """Whether an element, which a name stands for, satisfies a condition; unknown without a list."""
    if not isinstance(whole, list | tuple):
        return None
    tested = (of_element(condition, name, e.Literal(item)) for item in whole)
    return True in [as_truth(evaluate(one, lookup)) for one in tested]


def of_element(condition: e.Node, name: str, element: e.Node) -> e.Node:
    """The condition on an element that `name` stands for; inner lists may use the name again."""

    def change(part: e.Node) -> e.Node | None:
        if isinstance(part, e.SomeElement) and part.element == name:
            return part
        return element if part == e.Element(name) else None

    return e.substituted(condition, change)


# ------------------------------------------------------------------------------- three-valued logic


def all_true(truths: Iterable[bool | None]) -> bool | None:
    """Kleene's AND: False if any is False, else unknown if any is unknown; True of none."""
    parts = list(truths)
    if False in parts:
        return False
    return None if None in parts else True


def any_true(truths: Iterable[bool | None]) -> bool | None:
    """Kleene's OR: True if any is True, else unknown if any is unknown; False of none."""
    return not_true(all_true([not_true(truth) for truth in truths]))


def not_true(truth: bool | None) -> bool | None:
    """Kleene's NOT: unknown stays unknown."""
    return None if truth is None else not truth


def as_truth(value: Value) -> bool | None:
    """The value as a truth value; raises `DataError` for anything else."""
    if value is None or isinstance(value, bool):
        return value
    raise DataError(f"{value!r} is not a truth value")


# ---------------------------------------------------------------------------------------- comparing


def compare(sign: e.ComparisonOperator, left: Value, right: Value) -> bool | None:
    """Whether ``left sign right``; unknown if either is NULL. NaN equals itself and is the largest."""
    if left is None or right is None:
        return None
    return _COMPARISONS[sign](_order(ticked(left, right), ticked(right, left)), 0)


_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _order(left: Value | Decimal, right: Value | Decimal) -> int:
    """−1, 0 or 1 as `left` is less than, equal to or greater than `right`; neither is NULL."""
    match left, right:
        case bool(), bool():
            return (left > right) - (left < right)
        case bool(), _:
            pass
        case _, bool():
            pass
        case (Decimal(), _) | (_, Decimal()):
            one, other = exact(left), exact(right)
            return (one > other) - (one < other)
        case ((int() | float()), (int() | float())):
            if math.isnan(left) or math.isnan(right):
                return math.isnan(left) - math.isnan(right)
            return (left > right) - (left < right)  # exact for an integer beside a float
        case str(), str():
            return (left > right) - (left < right)  # by code point
        case datetime(), datetime():
            return (left > right) - (left < right)
        case Duration(), Duration():
            return (left.nanoseconds > right.nanoseconds) - (left.nanoseconds < right.nanoseconds)
    raise DataError(f"cannot compare {left!r} with {right!r}")


def exact(value: Value | Decimal) -> Fraction:
    """A number beside a decimal; a float, always a constant there, is the decimal that it was written as."""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return Fraction(repr(value) if isinstance(value, float) else value)
    raise DataError(f"{value!r} is not a number")


def _between(value: Value, low: Value, high: Value) -> bool | None:
    return all_true([compare(">=", value, low), compare("<=", value, high)])


def _is_member(value: Value, member: e.Literal | e.Range) -> bool | None:
    if isinstance(member, e.Range):
        return _between(value, in_utc(member.low.value), in_utc(member.high.value))
    return compare("=", value, in_utc(member.value))


# --------------------------------------------------------------------------------------- arithmetic


def arithmetic(sign: e.ArithmeticOperator, left: Value, right: Value) -> Value:
    """``left sign right``: NULL if either is; 64-bit integers; one float makes both floats.

    ``/`` is float division; ``/`` and ``%`` by zero are NULL; ``%`` has the sign of the dividend.
    """
    if left is None or right is None:
        return None
    if isinstance(left, datetime | Duration) or isinstance(right, datetime | Duration):
        return of_times(sign, left, right)
    a, b = as_number(left), as_number(right)
    if sign in {"/", "%"} and b == 0:
        return None
    if sign == "/":
        return float(a) / float(b)
    if isinstance(a, int) and isinstance(b, int):
        return fit(_remainder(a, b) if sign == "%" else _computed(sign, a, b))
    if sign == "%":
        return math.nan if math.isinf(a) else math.fmod(a, b)
    return _computed(sign, float(a), float(b))


_Number = TypeVar("_Number", int, float)


def _computed(sign: e.ArithmeticOperator, a: _Number, b: _Number) -> _Number:
    if sign == "+":
        return a + b
    return a - b if sign == "-" else a * b


def _remainder(a: int, b: int) -> int:
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def _negative(value: Value) -> Value:
    if value is None:
        return None
    if isinstance(value, Duration):
        return negated(value)
    number = as_number(value)
    return fit(-number) if isinstance(number, int) else -number


# ------------------------------------------------------------------------------- strings, timestamps


def _text_test(value: Value, test: Callable[[str], object]) -> bool | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise DataError(f"{value!r} is not a string")
    return test(value) is not None


def _like_as_regex(node: e.Node, pattern: str) -> re.Pattern[str]:
    """The pattern of LIKE as a regular expression: ``%`` any text, ``_`` a character, ``\\`` escapes one."""
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, None)
            if escaped is None:
                raise QueryError("the pattern of LIKE ends in its escape character", span=node.span)
            parts.append(re.escape(escaped))
        else:
            parts.append({"%": ".*", "_": "."}.get(character, re.escape(character)))
    return re.compile("".join(parts), re.DOTALL)


def in_utc(value: Value) -> Value:
    """Timestamps as instants in UTC; a naive one is in UTC already."""
    if not isinstance(value, datetime):
        return value
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
