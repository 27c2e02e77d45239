"""Checks of the kinds of expressions, and messages for those that do not fit together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from typing import Final

from estero.errors import QueryError, Span
from estero.language.check.problems import Problems
from estero.language.check.set_predicates import known_predicates
from estero.language.check.times import COMPUTED, NAMES, OPERANDS, TIMES, kind_computed, mended
from estero.language.regex.parser import parse_regex
from estero.language.tree import expressions as e
from estero.language.tree.durations import Duration
from estero.language.tree.functions import CASTS, SCALAR_FUNCTIONS, SUMMED, Constant, Function
from estero.language.tree.literals import INT_MAX, INT_MIN, Value, literal_text
from estero.language.tree.names import listed, some, suggestion
from estero.language.tree.paths import element_of, steps_of
from estero.language.tree.schema import NUMBERS, Kind, fit
from estero.language.tree.whole import ENDS, condition_as_written
from estero.language.tree.words import named

COMPARABLE: Final = "an attribute that holds truth values, numbers, strings or timestamps"

Lookup = Callable[[e.Attribute], Kind | None]
"""The kind of an attribute; None if it is unknown, or wrong and noted as a problem."""

_LONGEST: Final = 60
"""The number of characters of a constant that a message shows."""
_USES: Final = {
    Kind.BOOL: "a truth value is a condition by itself: X[ok], X[NOT ok]",
    Kind.INT: "numbers can be compared (= < BETWEEN IN) and used in arithmetic",
    Kind.FLOAT: "numbers can be compared (= < BETWEEN IN) and used in arithmetic",
    Kind.DECIMAL: "decimals can be compared with decimals, integers and constants, and summed up; "
    "CAST(d AS FLOAT) is a float to compute with",
    Kind.STRING: "strings can be compared (= < IN LIKE ~), joined by concat(a, b), and have a length(…)",
    Kind.TIMESTAMP: "timestamps can be compared and have a year(…), month(…), day(…), hour(…) and so on",
    Kind.DURATION: "durations can be compared, added and multiplied; seconds(…) of one is a number",
    Kind.OPAQUE: "lists, bytes and structures can only be shown, or tested with IS NULL",
    Kind.NULL: "all its values are NULL",
}
"""The uses of values of a kind."""
_FIT: Final = frozenset(Kind) - {Kind.DECIMAL, Kind.OPAQUE, Kind.NULL}
"""Kinds whose values can be compared with any other value of the kind."""
_TICKS: Final = (
    "a duration is compared with a difference of timestamps, or of times in the integer time column "
    "if its time_unit is given"
)


def kind_of(node: e.Node, attributes: Mapping[str, Kind]) -> Kind | None:
    """The kind of an expression or predicate over one event; None for NULL, which is of every kind.

    Raises the first error as a `QueryError`.

    >>> from estero.language.syntax.parser import parse_condition
    >>> kind_of(parse_condition("price / 2"), {"price": Kind.INT})
    <Kind.FLOAT: 'a float'>
    """
    problems = Problems("")

    def look_up(attribute: e.Attribute) -> Kind | None:
        if attribute.variable is None and attribute.name in attributes:
            return attributes[attribute.name]
        problems.no_attribute(attribute.name, attributes, attribute.span)
        return None

    kind = KindChecker(look_up, problems).kind(node)
    for error in problems.in_order():
        raise error
    return kind


def kind_of_value(value: Value) -> Kind | None:
    """The kind of a constant; None for NULL."""
    match value:
        case bool():
            return Kind.BOOL
        case int():
            return Kind.INT
        case float():
            return Kind.FLOAT
        case str():
            return Kind.STRING
        case datetime():
            return Kind.TIMESTAMP
        case Duration():
            return Kind.DURATION
        case None:
            return None


_STRINGS: Final = frozenset({Kind.STRING})
_TESTS: Final = frozenset(e.CONDITIONS) - {e.SomeElement, e.SomeAttribute}
"""What is true or false of its parts, which most nodes of rules are."""


class KindChecker:
    """Finds kinds bottom-up, notes conflicts in `problems`, and goes on."""

    def __init__(self, look_up: Lookup, problems: Problems) -> None:
        self._look_up = look_up
        self._problems = problems
        self._elements: dict[str, Kind | None] = {}

    def kind(self, node: e.Node) -> Kind | None:
        """The kind of an expression; None if it is of every kind or unknown."""
        match node:
            case e.Literal(value):
                self._literal(node)
                return kind_of_value(value)
            case e.ListOf(values=values):
                return kind_of_value(values[0]) if values else None
            case e.Attribute():
                kind = self._look_up(node)
                return None if kind is Kind.NULL else kind
            case e.Negative(operand):
                kind = self.kind(operand)
                return kind if kind is Kind.DURATION else self._wanted("-", operand, kind, NUMBERS)
            case e.Arithmetic():
                return self._arithmetic(node)
            case e.Call():
                return self._call(node)
            case e.Case():
                return self._case(node)
            case e.Cast(operand, wanted):
                kind, takes = CASTS[wanted]
                self._takes(f"CAST AS {wanted}", operand, takes)
                return kind
            case e.Element(name):
                return self._elements.get(name)
            case e.SomeElement():
                self._some(node)
                return Kind.BOOL
            case e.EventFilter() | e.Aggregate() | e.SetPredicate() | e.Previous():
                self._refuse_filter(node)
                return None
            case _:
                self._test(node)
                return Kind.BOOL

    def truth(self, node: e.Node) -> None:
        """Notes a node that is not a condition."""
        if type(node) in _TESTS:
            self._test(node)
            return
        kind = self.kind(node)
        if kind not in (Kind.BOOL, None):
            self._problems.add(
                f"a condition is true or false, and this is {kind.value}",
                node.span,
                expected="a comparison",
                hint="compare it with something, for example with = or <",
            )

    def comparable(self, left: e.Node, right: e.Node, place: e.Node) -> None:
        """Notes two expressions that cannot be compared."""
        self._compare(left, self.kind(left), right, self.kind(right), place)

    def _compare(
        self, left: e.Node, first: Kind | None, right: e.Node, second: Kind | None, place: e.Node
    ) -> None:
        if first is second and first in _FIT:
            return
        for node, other in ((left, second), (right, first)):
            if other is Kind.DECIMAL:
                self._kept_exactly(node)
        if None in (first, second) or Kind.OPAQUE in (first, second):
            self.not_opaque(left, first)
            self.not_opaque(right, second)
        elif first and second and not fit((_beside(left, first, second), _beside(right, second, first))):
            self._problems.add(
                f"{first.value} cannot be compared with {second.value}",
                place.span,
                expected=f"two values of one kind, or numbers; {self._named(left)} is {first.value}",
                hint=_conversion(left, first, right, second),
            )

    def _kept_exactly(self, node: e.Node) -> None:
        """Notes a constant compared with a decimal that has more digits than a float keeps."""
        if not (isinstance(node, e.Literal) and isinstance(node.value, float)):
            return
        with suppress(ValueError):  # without a text
            said = Fraction(self._problems.text[node.span.start : node.span.end].lstrip("-"))
            if said != Fraction(repr(abs(node.value))):
                self._problems.add(
                    "this constant has more digits than are kept",
                    node.span,
                    expected="17 digits at most",
                    hint=f"it is read as {node.value!r}",
                )

    def not_opaque(self, node: e.Node, kind: Kind | None) -> None:
        """Notes an expression of a kind that cannot be compared."""
        if kind is Kind.OPAQUE:
            self._problems.add(
                f"{self._named(node)} cannot be compared", node.span, expected=COMPARABLE, hint=_USES[kind]
            )

    def as_it_comes(self, node: e.Node, kind: Kind | None) -> None:
        """Notes a list, bytes or a structure used in a computation."""
        if kind is Kind.OPAQUE and isinstance(node, e.Call | e.Case):
            chooser = node.name if isinstance(node, e.Call) else "CASE"
            self._problems.add(
                f"{chooser} does not choose among lists, bytes and structures",
                node.span,
                expected="values that can be compared",
                hint="choose among their fields or elements: coalesce(X.s.f, X.l[1])",
            )

    def _test(self, node: e.Node) -> None:
        match node:
            case e.And(parts) | e.Or(parts):
                for part in parts:
                    self.truth(part)
            case e.Ilike(operand, pattern) | e.Like(operand, pattern):
                name = "LIKE" if isinstance(node, e.Like) else "ILIKE"
                self._takes(name, operand, _STRINGS)
                if pattern.endswith("\\") and (len(pattern) - len(pattern.rstrip("\\"))) % 2:
                    self._problems.add(
                        f"the pattern of {name} ends in its escape character",
                        node.span,
                        expected="a character after the last \\",
                        hint="a backslash itself is written \\\\",
                    )
            case e.Comparison(operator, left, right):
                self._not_with_null(operator, left, right, node)
                self.comparable(left, right, node)
            case e.In(operand, members):
                self._in(operand, members)
            case e.InList(operand, values):
                self._compare(operand, self.kind(operand), values, self.kind(values), values)
            case e.Between(operand, low, high):
                self._not_with_null("=", operand, low if _is_null(low) else high, node)
                self.comparable(operand, low, node)
                self.comparable(operand, high, node)
            case e.Matches(operand, regex):
                self._takes("~", operand, _STRINGS)
                self._regex(node, regex)
            case e.IsNull(operand):
                self.kind(operand)
            case e.Not(part):
                self.truth(part)
            case _:
                raise TypeError(f"{type(node).__name__} has no kind")

    def _not_with_null(self, operator: str, left: e.Node, right: e.Node, place: e.Node) -> None:
        """Notes a comparison with NULL, which is never true."""
        if not (_is_null(left) or _is_null(right)):
            return
        other = right if _is_null(left) else left
        name = self._named(other) if isinstance(other, e.Attribute) else "x"
        self._problems.add(
            "a comparison with NULL is never true",
            place.span,
            expected="IS NULL or IS NOT NULL",
            hint=f"write {name} {'IS NOT NULL' if operator == '!=' else 'IS NULL'}",
        )

    def _in(self, operand: e.Node, members: tuple[e.Literal | e.Range, ...]) -> None:
        kind = self.kind(operand)
        for member in members:
            if kind is Kind.STRING and type(member) is e.Literal and type(member.value) is str:
                continue  # most are
            if _is_null(member):
                self._problems.add(
                    "NULL equals nothing, so it cannot be in a set",
                    member.span,
                    expected="constants other than NULL",
                    hint=f"write {self._named(operand)} IS NULL, joined to the rest by OR",
                )
            elif isinstance(member, e.Literal):
                self._compare(operand, kind, member, self.kind(member), member)
            else:
                self._compare(operand, kind, member.low, self.kind(member.low), member.low)
                self.comparable(member.low, member.high, member)
                self._not_empty(member)

    def _not_empty(self, member: e.Range) -> None:
        low, high = member.low.value, member.high.value
        numbers = isinstance(low, int | float) and isinstance(high, int | float) and low > high
        if numbers or (isinstance(low, str) and isinstance(high, str) and low > high):
            self._problems.add(
                "this range is empty",
                member.span,
                expected="the smaller end first",
                hint="swap the two ends",
            )

    def _regex(self, node: e.Matches, regex: str) -> None:
        try:
            parse_regex(regex)
        except QueryError as error:
            first, last = (regex[:edge].replace("'", "''") for edge in (error.span.start, error.span.end))
            literal = node.span.end - len(literal_text(regex)) + 1
            place = Span(literal + len(first), literal + len(last)) if node.span.end else node.span
            self._problems.add(
                error.message, place, piece=error.found, expected=error.expected, hint=error.hint
            )

    def _arithmetic(self, node: e.Arithmetic) -> Kind | None:
        operator, sides = node.operator, (node.left, node.right)
        left, right = (self.kind(side) for side in sides)
        if left and right and {left, right} & TIMES:
            if (operator, left, right) not in COMPUTED:
                self._problems.add(
                    f"there is no {NAMES[operator]} of {left.value} and {right.value}",
                    node.span,
                    expected=OPERANDS[operator],
                    hint=mended(left, right),
                )
        elif not {left, right} & TIMES:
            left, right = (
                self._wanted(operator, side, kind, NUMBERS)
                for side, kind in zip(sides, (left, right), strict=True)
            )
        return kind_computed(operator, left, right)

    def _takes(self, operator: str, operand: e.Node, wanted: frozenset[Kind]) -> Kind | None:
        """The kind of an operand if it is wanted; any other is noted."""
        return self._wanted(operator, operand, self.kind(operand), wanted)

    def _wanted(
        self, operator: str, operand: e.Node, kind: Kind | None, wanted: frozenset[Kind]
    ) -> Kind | None:
        """The given kind of an operand if it is wanted; any other is noted."""
        if kind is None or kind in wanted:
            return kind
        one = any_of_them = listed(
            sorted(kind_wanted.value for kind_wanted in wanted - {Kind.NULL, Kind.OPAQUE})
        )
        if wanted in (NUMBERS, SUMMED):
            one = "an integer or a float" if wanted is NUMBERS else "an integer, a float or a decimal"
            any_of_them = "numbers"
        self._problems.add(
            f"{operator} takes {any_of_them}, and {self._named(operand)} is {kind.value}",
            operand.span,
            expected=one,
            hint=_USES[kind],
        )
        return None

    def _literal(self, literal: e.Literal) -> None:
        value = literal.value
        if isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
            self._problems.add(
                "this integer does not fit in 64 bits",
                literal.span,
                expected=f"an integer from {INT_MIN} to {INT_MAX}",
                hint=f"as a float it is {float(value)!r}" if abs(value) < 10**300 else "",
            )
        elif isinstance(value, Duration) and not value.fits:
            self._problems.add(
                "this duration does not fit in 64 bits",
                literal.span,
                expected="up to 106,751,991 days; with nanoseconds, up to 106,751 days",
                hint="timestamps are from year 1 to year 9999, which are 3,652,059 days",
            )
        elif isinstance(value, float) and not math.isfinite(value):
            self._problems.add(
                "this number is too large for a float",
                literal.span,
                expected="a number up to 1.79e308",
                hint="there is no literal for infinity, which alone is larger than 1.79e308",
            )

    def _refuse_filter(self, node: e.EventFilter | e.Aggregate | e.SetPredicate | e.Previous) -> None:
        if isinstance(node, e.SetPredicate):
            self._unknown_function(node, node.name)
            return
        if isinstance(node, e.Previous):
            self._problems.add(
                "prev speaks of two events, and this is a condition on one event",
                node.span,
                expected="attributes of the event, constants and operators",
                hint="write it outside of the brackets: x.price > prev(x.price)",
            )
            return
        what = "X[…]" if isinstance(node, e.EventFilter) else "a function of a set of events"
        self._problems.add(
            f"{what} belongs in a filter, and this is a condition on one event",
            node.span,
            expected="attributes of the event, constants and operators",
            hint="join filters outside the brackets: X[…] AND Y[…]",
        )

    def _unknown_function(self, node: e.Node, name: str) -> None:
        is_known = name in known_predicates()
        self._problems.add(
            f"{name} is not a function of one event" if is_known else f"unknown function {name}",
            node.span,
            expected=some(SCALAR_FUNCTIONS, 5),
            hint=suggestion(name, SCALAR_FUNCTIONS)
            or "functions and predicates of sets of events go outside the brackets",
        )

    def _call(self, node: e.Call) -> Kind | None:
        name, arguments, function = node.name, node.arguments, SCALAR_FUNCTIONS[node.name]
        if not function.accepts(len(arguments)):
            self._problems.add(
                f"{name} takes {_numbered(function)}, not {len(arguments)}",
                node.span,
                expected=function.example,
                hint=f"{function.example} is {function.meaning}",
            )
            return function.gives
        if name == "contains" and self._is_in_list(node):
            return Kind.BOOL
        kinds = [
            self._constant(name, argument, function.constants[place])
            if place in function.constants
            else self._takes(name, argument, function.taken(place))
            for place, argument in enumerate(arguments)
        ]
        return function.gives or (self._alike(name, node, kinds) if function.alike else kinds[0])

    def _named(self, node: e.Node) -> str:
        """The name of an expression in a message.

        One that was bound is called by its parameter, and one of the whole complex event as it is written.
        """
        text = self._problems.text[node.span.start : node.span.end]
        is_bound = isinstance(node, e.Literal) and text.startswith("$")
        return text if is_bound or (text and _is_of_whole(node)) else _what(condition_as_written(node))

    def _is_in_list(self, node: e.Call) -> bool:
        """Whether ``contains`` is about the elements of a list; a value of the wrong kind is noted."""
        whole, value = node.arguments
        kind = self._look_up(whole) if isinstance(whole, e.Attribute) else Kind.STRING
        if kind is Kind.OPAQUE and isinstance(whole, e.Attribute):
            element = replace(whole, name=element_of(whole.name, 1))
            self._compare(element, self.kind(element), value, self.kind(value), node)
            return True
        if kind in (None, Kind.NULL):  # of any kind
            self.kind(value)
            return True
        return False

    def _some(self, node: e.SomeElement) -> None:
        """Notes what is wrong with a test of elements."""
        kind = self._look_up(node.operand)
        element: Kind | None = None
        if kind is Kind.OPAQUE:
            element = self._look_up(replace(node.operand, name=element_of(node.operand.name, 1)))
        elif kind not in (None, Kind.NULL):
            self._problems.add(
                f"some takes a list, and {self._named(node.operand)} is {kind.value}",
                node.operand.span,
                expected="an attribute that is a list",
                hint=f"one value is tested by the condition alone: {_USES[kind]}",
            )
        before = dict(self._elements)
        self._elements[node.element] = None if element is Kind.NULL else element
        self.truth(node.condition)
        self._elements = before

    def _case(self, node: e.Case) -> Kind | None:
        for when in node.whens:
            self.truth(when.condition)
        values = [when.value for when in node.whens] + ([node.default] if node.default else [])
        return self._alike("CASE", node, list(map(self.kind, values)))

    def _constant(self, name: str, argument: e.Node, constant: Constant) -> Kind | None:
        """Notes an argument that is neither an allowed constant nor a parameter for one."""
        kind = self.kind(argument)
        if isinstance(argument, e.Parameter):
            return kind
        message = f"{name} takes a constant here"
        if isinstance(argument, e.Literal):
            if constant.allows(argument.value):
                return kind
            message = f"{name} cannot take {_cut(str(argument))} here{self._bound_to(argument)}"
        self._problems.add(
            message,
            argument.span,
            expected=constant.expected,
            hint=f"for example {SCALAR_FUNCTIONS[name].example}",
        )
        return None

    def _bound_to(self, constant: e.Node) -> str:
        """The words for the parameter that a constant was bound to; empty if there is none."""
        text = self._problems.text[constant.span.start : constant.span.end]
        return f", the value of {text}" if text.startswith("$") else ""

    def _alike(self, name: str, node: e.Node, operands: Sequence[Kind | None]) -> Kind | None:
        """The common kind of the arguments that a function chooses among."""
        kinds = {kind for kind in operands if kind}
        if kinds == NUMBERS:
            return Kind.FLOAT
        if Kind.DECIMAL in kinds and name == "CASE":
            self._problems.add(
                "CASE does not choose among decimals",
                node.span,
                expected="values of another kind",
                hint="cast them: CAST(d AS FLOAT) or CAST(d AS STRING)",
            )
            return None
        if len(kinds) > 1:
            self._problems.add(
                f"{name} mixes {listed(sorted(kind.value for kind in kinds), 'and')}",
                node.span,
                expected="arguments of one kind, or numbers",
                hint="compare each on its own, and join the comparisons with OR",
            )
            return None
        return kinds.pop() if kinds else None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _is_null(node: e.Node) -> bool:
    return isinstance(node, e.Literal) and node.value is None and not isinstance(node, e.Parameter)


def _beside(node: e.Node, kind: Kind, other: Kind) -> Kind:
    """The kind of one side of a comparison; a constant beside a decimal is a decimal as written."""
    is_constant = isinstance(node, e.Literal | e.ListOf)
    return Kind.DECIMAL if is_constant and (kind, other) == (Kind.FLOAT, Kind.DECIMAL) else kind


def _numbered(function: Function) -> str:
    """The number of arguments of a function, in words."""
    most, least = len(function.takes), len(function.takes) - function.optional
    if function.repeated:
        return "at least one argument"
    numbers = [("no", "one", "two", "three")[number] for number in range(least, most + 1)]
    return f"{' or '.join(numbers)} argument{'s' if most > 1 else ''}"


def _is_of_whole(node: e.Node) -> bool:
    """Whether the expression is written as one word, such as ``duration``."""
    return any(
        isinstance(inner, e.Attribute) and inner.variable in ENDS and inner.span == node.span
        for inner in node.walk()
    )


def _what(node: e.Node) -> str:
    match node:
        case e.Attribute(name, variable):
            return named(name) if variable is None else f"{variable}.{named(name)}"
        case e.Literal():
            return "this constant"
        case e.Call(name):
            return f"{name}(…)"
        case _:
            return "this"


def _conversion(left: e.Node, first: Kind, right: e.Node, second: Kind) -> str:
    """The way to write a constant of the wrong kind so that the two compare."""
    for node, own, other in ((right, second, first), (left, first, second)):
        if not isinstance(node, e.Literal):
            continue
        if own is Kind.STRING and other is Kind.TIMESTAMP:
            return f"write the instant as TIMESTAMP '{node.value}'"
        if own is Kind.STRING and other in NUMBERS:
            return "numbers are written without quotes"
        if own in NUMBERS and other is Kind.STRING:
            text = condition_as_written(left if node is right else right)
            is_column = isinstance(text, e.Attribute) and not steps_of(text.name)
            number = f"; the number in it is CAST({text} AS FLOAT)" if is_column else ""
            return f"strings are written in single quotes: '{node.value}'{number}"
        if Kind.DURATION in (own, other) and {own, other} & NUMBERS:
            return _TICKS if own is Kind.DURATION else "a number with its unit is a duration: 5 MINUTES"
        if {own, other} == TIMES:
            return "timestamps have a difference, which is a duration: y.time - x.time"
        if own in NUMBERS and other is Kind.TIMESTAMP:
            return "an instant is written TIMESTAMP '2024-01-31 12:00:00'"
    if {first, second} == {Kind.DECIMAL, Kind.FLOAT}:
        return "a float is hardly ever the decimal that was meant: compare CAST(d AS FLOAT) with it"
    return _USES[Kind.BOOL] if Kind.BOOL in (first, second) else "compare it with a value of its own kind"
