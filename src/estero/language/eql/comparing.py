"""Comparisons and computations of values in EQL, by the kinds of both sides."""

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
    """The value as a string; raises `QueryError` for one that has no text that all engines write alike."""
    if value.kind in (Kind.STRING, None):
        return value.node
    if value.is_constant:
        return e.Literal(_written(value.constant), span=value.span)
    if value.kind in (Kind.INT, Kind.BOOL, Kind.DECIMAL):
        return e.Cast(value.node, "STRING", span=value.span)
    raise QueryError(
        f"{value.said} is {value.kind.value}, of which engines write different texts",
        span=value.span,
        found=value.said,
        expected="a string, an integer or a truth value",
        hint="compare the number itself",
    )


def string_of(value: Typed, asked: str) -> e.Node:
    """The value where a string is asked for; a constant has to be one."""
    if value.is_constant and value.kind not in (Kind.STRING, None):
        raise QueryError(
            f"{asked} takes a string here, and this is {cast(Kind, value.kind).value}",
            span=value.span,
            found=str(value.constant),
            expected="a string",
            hint=f'strings are written in double quotes: "{_written(value.constant)}"',
        )
    return text_of(value)


def number_of(value: Typed, asked: str, wanted: Iterable[Kind] = NUMBERS) -> e.Node:
    """The value where a number is asked for."""
    if value.kind is not None and value.kind not in wanted:
        raise QueryError(
            f"{asked} takes {'an integer' if Kind.FLOAT not in wanted else 'numbers'}, "
            f"and {value.said} is {value.kind.value}",
            span=value.span,
            found=value.said,
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
    """Writes comparisons and computations as expressions of the house."""

    def compared(self, sign: str, left: Typed, right: Typed, span: Span) -> e.Node:
        """``left sign right``, unknown if one is NULL."""
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
            beside = self._beside(operator, left, right, span)
            if beside is not None:
                return beside
        raise QueryError(
            f"{left.said} is {_kind(left)}, and {right.said} is {_kind(right)}",
            span=span,
            found=f"{sign}",
            expected="two values of one kind",
            hint="string(x) is the text of a value, number(s) the number that a text is",
        )

    def _beside(
        self, operator: e.ComparisonOperator, value: Typed, constant: Typed, span: Span
    ) -> e.Node | None:
        """The comparison with a constant of another kind; None where there is none."""
        said = constant.constant
        match value.kind:
            case Kind.TIMESTAMP if isinstance(said, str | int) and not isinstance(said, bool):
                return _beside_instant(operator, value.node, said, constant.span, span)
            case _ if operator != "=":
                return None
            case Kind.STRING:
                text = e.Literal(_written(said), span=constant.span)
                return e.Comparison("=", value.node, text, span=span)
            case Kind.BOOL if said in ("true", "false"):
                return e.Comparison("=", value.node, e.Literal(said == "true", span=constant.span), span=span)
            case Kind.INT | Kind.FLOAT if isinstance(said, str):
                number = _number_written(said, value.kind)
                if number is not None:
                    return e.Comparison("=", value.node, e.Literal(number, span=constant.span), span=span)
                return never(value, span)
            case Kind.BOOL | Kind.DECIMAL if isinstance(said, str):
                return never(value, span)
            case _:
                return None

    def member(self, operand: Typed, members: Sequence[Typed], caseless: bool, span: Span) -> e.Node:
        """``operand in (…)``: constants of the operand's kind are one set, others comparisons."""
        if operand.is_null:
            return unknown(span)
        tests: list[e.Node] = []
        texts: list[e.Literal] = []
        for member in members:
            said = member.constant
            if caseless and isinstance(said, str) and operand.kind in (Kind.STRING, None):
                texts.append(e.Literal(in_lower_case(said), span=member.span))
            elif isinstance(said, str) and operand.kind in (Kind.STRING, None):
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
        """``operand : (…)``, ``like`` and ``regex``, each with and without case."""
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
        return Typed(e.Negative(number_of(operand, "-"), span=span), operand.kind, operand.said)

    def computed(self, sign: q.ComputationSign, left: Typed, right: Typed, span: Span) -> Typed:
        """``left sign right``; the quotient of integers is one, towards zero."""
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
    """Whether a string is one of some constants, which are texts."""
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
    """The tests, with one set for all comparisons of one value with constants."""
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


def _number_written(text: str, kind: Kind) -> int | float | None:
    """The number whose text this is."""
    try:
        number = int(text) if kind is Kind.INT else float(text)
    except ValueError:
        return None
    same = str(number) == text or (kind is Kind.FLOAT and str(number) == f"{text}.0")
    return number if same and abs(number) < 2**63 else None


_FINER: Final = re.compile(r"(\.\d{6})(\d{1,3})(?!\d)")
"""The digits of nanoseconds in a time."""


def _beside_instant(
    operator: e.ComparisonOperator, value: e.Node, said: str | int, place: Span, span: Span
) -> e.Node:
    """A comparison with an instant; one between two microseconds is some nanoseconds behind the first."""
    finer = _FINER.search(said) if isinstance(said, str) else None
    instant = _instant(_FINER.sub(r"\1", said) if isinstance(said, str) else said, place)
    literal = e.Literal(instant, span=place)
    nanoseconds = int(finer[2].ljust(3, "0")) if finer else 0
    if nanoseconds == 0:
        return e.Comparison(operator, value, literal, span=span)
    behind = e.Arithmetic("-", value, literal, span=span)
    return e.Comparison(operator, behind, e.Literal(Duration(nanoseconds), span=place), span=span)


def _instant(said: str | int, span: Span) -> datetime:
    """The instant of a text of ISO 8601, or of milliseconds since 1970."""
    try:
        if isinstance(said, int):
            return _EPOCH + timedelta(milliseconds=said)
        return timestamp_value(said)
    except (ValueError, OverflowError) as error:
        raise QueryError(
            f"{said!r} is not an instant",
            span=span,
            found=str(said),
            expected="a time such as 2024-01-31T12:00:00Z, or milliseconds since 1970",
        ) from error
