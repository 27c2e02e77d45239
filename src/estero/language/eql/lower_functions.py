"""The functions of EQL as expressions of CEQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, cast

from estero.errors import QueryError, Span
from estero.language.eql import tree as q
from estero.language.eql.addresses import block_regex
from estero.language.eql.comparing import Comparing, lowered, number_of, string_of, text_of
from estero.language.eql.typed import Typed, unknown
from estero.language.tree import expressions as e
from estero.language.tree.schema import Kind

_INTEGERS: Final = frozenset({Kind.INT})
_SIGNS: Final[dict[str, q.ComputationSign]] = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "modulo": "%",
}
_TESTS: Final = {"startsWith": "starts_with", "endsWith": "ends_with", "stringContains": "contains"}


class FunctionLowering:
    """Translates calls; `value` translates their arguments."""

    def __init__(self, value: Callable[[q.EqlNode], Typed], comparing: Comparing) -> None:
        self._value = value
        self._comparing = comparing

    def called(self, call: q.FunctionCall) -> Typed:
        """A call and the kind of its value."""
        span, name = call.span, call.name
        arguments = list(map(self._value, call.arguments))
        if name in _SIGNS:
            return self._comparing.computed(_SIGNS[name], arguments[0], arguments[1], span)
        if name in _TESTS:
            return Typed(self._tested(name, arguments, call.caseless, span), Kind.BOOL)
        match name:
            case "cidrMatch":
                return Typed(_in_blocks(arguments, span), Kind.BOOL)
            case "concat":
                return _concatenated(arguments, span)
            case "string":
                return Typed(text_of(arguments[0]), Kind.STRING)
            case "length":
                return _unless_null(
                    arguments,
                    span,
                    Kind.INT,
                    lambda: e.Call("length", (string_of(arguments[0], name),), span=span),
                )
            case "substring":
                return _substring(arguments, span)
            case "indexOf":
                return _index_of(arguments, call.caseless, span)
            case "between":
                return _between(arguments, call.caseless, span)
            case _:
                return _number(arguments, span)

    def _tested(self, name: str, arguments: Sequence[Typed], caseless: bool, span: Span) -> e.Node:
        string, *parts = (string_of(argument, name) for argument in arguments)
        if arguments[0].is_null:
            return unknown(span)
        if caseless:
            string, parts = lowered(string), list(map(lowered, parts))
        tests: list[e.Node] = [
            unknown(span) if part == unknown() else e.Call(_TESTS[name], (string, part), span=span)
            for part in parts
        ]
        if name == "stringContains":  # an empty string is not contained in any string
            tests = [
                test
                if _is_text(part)
                else e.And((test, e.Comparison(">", e.Call("length", (part,)), e.Literal(0))))
                for test, part in zip(tests, parts, strict=True)
            ]
        return tests[0] if len(tests) == 1 else e.Or(tuple(tests), span=span)


def _unless_null(arguments: Sequence[Typed], span: Span, kind: Kind, write: Callable[[], e.Node]) -> Typed:
    """NULL if an argument is NULL, else the result of `write`."""
    if any(argument.is_null for argument in arguments):
        return Typed(unknown(span), None)
    return Typed(write(), kind)


def _in_blocks(arguments: Sequence[Typed], span: Span) -> e.Node:
    address, *blocks = arguments
    value = string_of(address, "cidrMatch")
    regexes = []
    for block in blocks:
        if not isinstance(block.constant, str):
            raise QueryError(
                "the blocks of cidrMatch are constants",
                span=block.span,
                found=block.text,
                expected='a string such as "10.0.0.0/8"',
            )
        regexes.append(block_regex(block.constant, block.span))
    if address.is_null:
        return unknown(span)
    tests = [e.Matches(value, regex, span=span) for regex in dict.fromkeys(regexes)]
    return tests[0] if len(tests) == 1 else e.Or(tuple(tests), span=span)


def _concatenated(arguments: Sequence[Typed], span: Span) -> Typed:
    return _unless_null(
        arguments, span, Kind.STRING, lambda: e.Call("concat", tuple(map(text_of, arguments)), span=span)
    )


def _plus(left: e.Node, right: e.Node | int) -> e.Node:
    if isinstance(right, int):
        right = e.Literal(right)
    match left, right:
        case e.Literal(int() as one), e.Literal(int() as two):
            return e.Literal(one + two)
        case _, e.Literal(0):
            return left
        case e.Literal(0), _:
            return right
        case _:
            return e.Arithmetic("+", left, right)


def _at_least_zero(node: e.Node) -> e.Node:
    if isinstance(node, e.Literal):
        return e.Literal(max(0, cast(int, node.value)))
    return e.Call("greatest", (node, e.Literal(0)))


def _or_default(number: e.Node, default: e.Node) -> e.Node:
    """A number, or `default` if it is NULL."""
    return number if isinstance(number, e.Literal) else e.Call("coalesce", (number, default))


def _position(value: Typed, string: e.Node, missing: e.Node) -> e.Node:
    """A position in a string, from 0, for one that may be negative and count from the end."""
    if value.is_null:
        return missing
    number = _or_default(number_of(value, "substring", _INTEGERS), missing)
    from_end = _at_least_zero(_plus(e.Call("length", (string,)), number))
    if isinstance(number, e.Literal):
        return number if cast(int, number.value) >= 0 else from_end
    below = e.Comparison("<", number, e.Literal(0))
    return e.Case((e.When(below, from_end),), number)


def _substring(arguments: Sequence[Typed], span: Span) -> Typed:
    string, first, *last = arguments
    if string.is_null:
        return Typed(unknown(span), None)
    text = string_of(string, "substring")
    start = _position(first, text, e.Literal(0))
    begin = _plus(start, 1)
    if not last or last[0].is_null:
        return Typed(e.Call("substring", (text, begin), span=span), Kind.STRING)
    end = _position(last[0], text, e.Call("length", (text,)))
    if isinstance(start, e.Literal) and isinstance(end, e.Literal):
        length: e.Node = e.Literal(cast(int, end.value) - cast(int, start.value))
    else:
        length = end if start == e.Literal(0) else e.Arithmetic("-", end, start)
    return Typed(e.Call("substring", (text, begin, _at_least_zero(length)), span=span), Kind.STRING)


def _index_of(arguments: Sequence[Typed], caseless: bool, span: Span) -> Typed:
    if any(argument.is_null for argument in arguments[:2]):
        return Typed(unknown(span), None)
    string, part = (string_of(argument, "indexOf") for argument in arguments[:2])
    if caseless:
        string, part = lowered(string), lowered(part)
    start: e.Node = e.Literal(0)
    if len(arguments) > 2 and not arguments[2].is_null:
        start = _at_least_zero(_or_default(number_of(arguments[2], "indexOf", _INTEGERS), e.Literal(0)))
    rest = string if start == e.Literal(0) else e.Call("substring", (string, _plus(start, 1)))
    place = e.Call("position", (rest, part))
    is_there: e.Node = e.Comparison(">", place, e.Literal(0))
    if start != e.Literal(0) and not _is_text(part):  # an empty string is not found beyond the end
        is_there = e.And((is_there, e.Comparison("<=", start, e.Call("length", (string,)))))
    return Typed(e.Case((e.When(is_there, _plus(_plus(place, -1), start)),), span=span), Kind.INT)


def _between(arguments: Sequence[Typed], caseless: bool, span: Span) -> Typed:
    if any(argument.is_null for argument in arguments[:3]):
        return Typed(unknown(span), None)
    greedy = len(arguments) > 3 and arguments[3].constant
    if len(arguments) > 3 and not isinstance(arguments[3].constant, bool):
        raise QueryError(
            "the last argument of between is true or false",
            span=arguments[3].span,
            found=arguments[3].text,
            expected="true, for up to the last, or false",
        )
    text, left, right = (string_of(argument, "between") for argument in arguments[:3])
    searched, before, after = (map(lowered, (text, left, right))) if caseless else (text, left, right)
    place = e.Call("position", (searched, before))
    begin = _plus(place, e.Call("length", (left,)))
    rest = e.Call("substring", (searched, begin))
    end = e.Call("last_position" if greedy else "position", (rest, after))
    both_occur = e.And((e.Comparison(">", place, e.Literal(0)), e.Comparison(">", end, e.Literal(0))))
    between = e.Call("substring", (text, begin, _plus(end, -1)))
    return Typed(e.Case((e.When(both_occur, between),), span=span), Kind.STRING)


def _is_text(node: e.Node) -> bool:
    """Whether a node is a constant string that is not empty."""
    return isinstance(node, e.Literal) and node.value != ""


def _number(arguments: Sequence[Typed], span: Span) -> Typed:
    value, *base = arguments
    if value.is_null:
        return Typed(unknown(span), None)
    based = base[0].constant if base else None
    if base and not base[0].is_null and (not isinstance(based, int) or not 2 <= based <= 36):
        raise QueryError(
            "the base of a number is a constant",
            span=base[0].span,
            found=base[0].text,
            expected="a whole number from 2 to 36",
        )
    text = string_of(value, "number")
    if isinstance(text, e.Literal):
        return _number_of(cast(str, text.value), cast("int | None", based), text.span)
    hexadecimal = e.Call("parse_integer", (e.Call("substring", (text, e.Literal(3))), e.Literal(16)))
    marked = e.Matches(text, "^0[xX]")
    if based is None:
        other: e.Node = e.Cast(text, "FLOAT")
        return Typed(e.Case((e.When(marked, e.Cast(hexadecimal, "FLOAT")),), other, span=span), Kind.FLOAT)
    if based == 10:
        return Typed(e.Cast(text, "FLOAT", span=span), Kind.FLOAT)
    integer = e.Call("parse_integer", (text, e.Literal(based)))
    if based == 16:
        return Typed(e.Case((e.When(marked, hexadecimal),), integer, span=span), Kind.INT)
    return Typed(integer, Kind.INT)


def _number_of(text: str, base: int | None, span: Span) -> Typed:
    """The number that a constant text represents in a base."""
    try:
        if base in (None, 16) and text[:2].lower() == "0x":
            number: int | float = int(text, 16)
        elif base in (None, 10):
            number = int(text) if text.lstrip("+-").isdigit() else float(text)
        else:
            number = int(text, base)
    except ValueError as error:
        raise QueryError(
            f"{text!r} is not a number" + (f" to the base {base}" if base else ""),
            span=span,
            found=text,
            expected="the text of a number",
        ) from error
    return Typed.of_constant(number, span)
