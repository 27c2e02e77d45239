"""Comparisons and arithmetic of EQL, depending on the kinds of both sides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from estero.errors import QueryError, Span
from estero.language.eql import tree as q
from estero.language.eql.lucene import as_regex
from estero.language.eql.typed import Typed, never, unknown
from estero.language.tree import expressions as e
from estero.language.tree.durations import Duration
from estero.language.tree.literals import in_lower_case, timestamp_value
from estero.language.tree.schema import NUMBERS, Kind

_SIGNS: Final[dict[str, e.ComparisonOperator]] = {"==": "="}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OF_LIKE: Final = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_", "*": "%", "?": "_"})
"""A pattern with ``*`` and ``?`` as one of LIKE."""
_COMPARABLE: Final = NUMBERS | {Kind.DECIMAL}


def text_of(value: Typed) -> e.Node:
    """The value as a string; raises `QueryError` for kinds whose texts differ between engines."""
    if value.kind in (Kind.STRING, None):
        return value.node
    if value.is_constant:
        return e.Literal(_written(value.constant), span=value.span)
    if value.kind in (Kind.INT, Kind.BOOL, Kind.DECIMAL):
        return e.Cast(value.node, "STRING", span=value.span)
    raise QueryError(
        f"{value.text} is {value.kind.value}, whose text differs between engines",
        span=value.span,
        found=value.text,
        expected="a string, an integer or a truth value",
        hint="compare the number itself",
    )


def string_of(value: Typed, function: str) -> e.Node:
    """The value as a string argument of `function`; a constant must be a string."""
    if value.is_constant and value.kind not in (Kind.STRING, None):
        raise QueryError(
            f"{function} takes a string here, and this is {cast(Kind, value.kind).value}",
            span=value.span,
            found=str(value.constant),
            expected="a string",
            hint=f'strings are written in double quotes: "{_written(value.constant)}"',
        )
    return text_of(value)


def number_of(value: Typed, function: str, wanted: Iterable[Kind] = NUMBERS) -> e.Node:
    """The value as a numeric argument of `function`."""
    if value.kind is not None and value.kind not in wanted:
        raise QueryError(
            f"{function} takes {'an integer' if Kind.FLOAT not in wanted else 'numbers'}, "
            f"and {value.text} is {value.kind.value}",
            span=value.span,
            found=value.text,
            expected="a number",
            hint="number(s) is the number that a string is" if value.kind is Kind.STRING else "",
        )
    return value.node


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def lowered(node: e.Node) -> e.Node:
    """The string in lower case."""
    if isinstance(node, e.Literal) and isinstance(node.value, str):
        return replace(node, value=in_lower_case(node.value))
    return e.Call("lower", (node,), span=node.span)


class Comparing:
    """Translates comparisons and arithmetic into expressions of CEQL."""

    def compared(self, sign: str, left: Typed, right: Typed, span: Span) -> e.Node:
        """``left sign right``; NULL if either side is NULL."""
        if left.is_null or right.is_null:
            return unknown(span)
        if left.is_constant and not right.is_constant:
            return self.compared(_TURNED.get(sign, sign), right, left, span)
        operator = _SIGNS.get(sign) or cast(e.ComparisonOperator, sign)
        if (
            left.kind == right.kind
            or None in (left.kind, right.kind)
            or {left.kind, right.kind} <= _COMPARABLE
        ):
            return e.Comparison(operator, left.node, right.node, span=span)
        if right.is_constant and not left.is_constant:
            beside = self._with_other_kind(operator, left, right, span)
            if beside is not None:
                return beside
        raise QueryError(
            f"{left.text} is {_kind(left)}, and {right.text} is {_kind(right)}",
            span=span,
            found=f"{sign}",
            expected="two values of one kind",
            hint="string(x) is the text of a value, number(s) the number that a text is",
        )

    def _with_other_kind(
        self, operator: e.ComparisonOperator, value: Typed, constant: Typed, span: Span
    ) -> e.Node | None:
        """The comparison with a constant of another kind; None if the kinds cannot be compared."""
        literal = constant.constant
        match value.kind:
            case Kind.TIMESTAMP if isinstance(literal, str | int) and not isinstance(literal, bool):
                return _compared_with_instant(operator, value.node, literal, constant.span, span)
            case _ if operator != "=":
                return None
            case Kind.STRING:
                text = e.Literal(_written(literal), span=constant.span)
                return e.Comparison("=", value.node, text, span=span)
            case Kind.BOOL if literal in ("true", "false"):
                return e.Comparison(
                    "=", value.node, e.Literal(literal == "true", span=constant.span), span=span
                )
            case Kind.INT | Kind.FLOAT if isinstance(literal, str):
                number = _number_in(literal, value.kind)
                if number is not None:
                    return e.Comparison("=", value.node, e.Literal(number, span=constant.span), span=span)
                return never(value, span)
            case Kind.BOOL | Kind.DECIMAL if isinstance(literal, str):
                return never(value, span)
            case _:
                return None

    def member(self, operand: Typed, members: Sequence[Typed], caseless: bool, span: Span) -> e.Node:
        """``operand in (…)``: a set of the constants of its kind, and comparisons with the other members."""
        if operand.is_null:
            return unknown(span)
        tests: list[e.Node] = []
        texts: list[e.Literal] = []
        for member in members:
            literal = member.constant
            if caseless and isinstance(literal, str) and operand.kind in (Kind.STRING, None):
                texts.append(e.Literal(in_lower_case(literal), span=member.span))
            elif isinstance(literal, str) and operand.kind in (Kind.STRING, None):
                texts.append(cast(e.Literal, member.node))
            elif caseless and not member.is_constant:
                tests.append(
                    e.Comparison(
                        "=", lowered(string_of(operand, "in~")), lowered(string_of(member, "in~")), span=span
                    )
                )
            elif not member.is_null:
                tests.append(self.compared("==", operand, member, span))
        sets = _sets(tests)
        if texts:
            value = lowered(operand.node) if caseless else operand.node
            sets.insert(0, _one_of(value, texts, span))
        return _any_of(sets, span)

    def alike(self, operand: Typed, sign: str, patterns: Sequence[q.Constant], span: Span) -> e.Node:
        """``operand : (…)``, ``like`` and ``regex``, case-sensitive or not."""
        if operand.is_null:
            return unknown(span)
        caseless = sign == ":" or sign.endswith("~")
        others = [pattern for pattern in patterns if not isinstance(pattern.value, str)]
        if others:
            values = [Typed.of_constant(pattern.value, pattern.span) for pattern in others]
            texts = [pattern for pattern in patterns if isinstance(pattern.value, str)]
            first = self.member(operand, values, caseless, span)
            return _any_of([first, *([self.alike(operand, sign, texts, span)] if texts else [])], span)
        value = text_of(operand)
        plain: list[q.EqlNode] = []
        tests: list[e.Node] = []
        of_regex = sign.startswith("regex")
        kind = e.Ilike if caseless else e.Like
        for pattern in patterns:
            text = str(pattern.value)
            if of_regex:
                regex = as_regex(text, pattern.span, caseless=caseless)
                tests.append(e.Matches(value, regex, span=pattern.span))
            elif "*" in text or "?" in text:
                tests.append(kind(value, text.translate(_OF_LIKE), span=pattern.span))
            else:
                plain.append(pattern)
        if plain:
            tests.insert(0, one_of_texts(value, plain, caseless, span))
        return _any_of(tests, span)

    # ------------------------------------------------------------------------------------- computations

    def negative(self, operand: Typed, span: Span) -> Typed:
        """``-operand``."""
        if operand.is_null:
            return Typed(unknown(span), None)
        return Typed(e.Negative(number_of(operand, "-"), span=span), operand.kind, operand.text)

    def computed(self, sign: q.ComputationSign, left: Typed, right: Typed, span: Span) -> Typed:
        """``left sign right``; integers are divided towards zero."""
        if left.is_null or right.is_null:
            return Typed(unknown(span), None)
        both = (number_of(left, sign), number_of(right, sign))
        integers = left.kind is right.kind is Kind.INT
        if sign == "/" and integers:
            return Typed(e.Call("div", both, span=span), Kind.INT)
        kind = Kind.INT if integers else Kind.FLOAT
        return Typed(e.Arithmetic(sign, *both, span=span), None if None in (left.kind, right.kind) else kind)


_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _kind(value: Typed) -> str:
    return "nothing" if value.kind is None else value.kind.value


def one_of_texts(value: e.Node, texts: Sequence[q.EqlNode], caseless: bool, span: Span) -> e.Node:
    """Whether a string is one of some constants, which are strings."""
    places: dict[str, Span] = {}
    for constant in texts:
        text = cast(str, cast(q.Constant, constant).value)
        places.setdefault(in_lower_case(text) if caseless else text, constant.span)
    once = tuple([e.Literal(text, span=place) for text, place in places.items()])
    return _in(lowered(value) if caseless else value, once, span)


def _one_of(value: e.Node, constants: Sequence[e.Literal], span: Span) -> e.Node:
    return _in(value, tuple(dict.fromkeys(constants)), span)


def _in(value: e.Node, once: tuple[e.Literal, ...], span: Span) -> e.Node:
    """Whether a value is one of distinct constants."""
    return e.Comparison("=", value, once[0], span=span) if len(once) == 1 else e.In(value, once, span=span)


def _sets(tests: Sequence[e.Node]) -> list[e.Node]:
    """The tests, in which comparisons of one value with constants are merged into one set."""
    sets: dict[e.Node, list[e.Literal]] = {}
    others: list[e.Node] = []
    for test in tests:
        match test:
            case e.Comparison("=", value, e.Literal() as constant):
                sets.setdefault(value, []).append(constant)
            case _:
                others.append(test)
    return [_one_of(value, constants, value.span) for value, constants in sets.items()] + others


def _any_of(tests: Sequence[e.Node], span: Span) -> e.Node:
    if not tests:
        return unknown(span)
    return tests[0] if len(tests) == 1 else e.Or(tuple(tests), span=span)


def _number_in(text: str, kind: Kind) -> int | float | None:
    """The number that the text represents."""
    try:
        number = int(text) if kind is Kind.INT else float(text)
    except ValueError:
        return None
    same = str(number) == text or (kind is Kind.FLOAT and str(number) == f"{text}.0")
    return number if same and abs(number) < 2**63 else None


_FINER: Final = re.compile(r"(\.\d{6})(\d{1,3})(?!\d)")
"""The digits of nanoseconds in a time."""


def _compared_with_instant(
    operator: e.ComparisonOperator, value: e.Node, moment: str | int, place: Span, span: Span
) -> e.Node:
    """A comparison with an instant, which may have nanoseconds beyond its microseconds."""
    finer = _FINER.search(moment) if isinstance(moment, str) else None
    instant = _instant(_FINER.sub(r"\1", moment) if isinstance(moment, str) else moment, place)
    literal = e.Literal(instant, span=place)
    nanoseconds = int(finer[2].ljust(3, "0")) if finer else 0
    if nanoseconds == 0:
        return e.Comparison(operator, value, literal, span=span)
    difference = e.Arithmetic("-", value, literal, span=span)
    return e.Comparison(operator, difference, e.Literal(Duration(nanoseconds), span=place), span=span)


def _instant(moment: str | int, span: Span) -> datetime:
    """The instant of a text of ISO 8601, or of milliseconds since 1970."""
    try:
        if isinstance(moment, int):
            return _EPOCH + timedelta(milliseconds=moment)
        return timestamp_value(moment)
    except (ValueError, OverflowError) as error:
        raise QueryError(
            f"{moment!r} is not an instant",
            span=span,
            found=str(moment),
            expected="a time such as 2024-01-31T12:00:00Z, or milliseconds since 1970",
        ) from error
