"""The productions of EQL, from Lark's parse tree to the nodes of `tree.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from estero.errors import QueryError, Span
from estero.language.eql import tree as q
from estero.language.eql.functions import FUNCTIONS
from estero.language.eql.texts import UNITS
from estero.language.syntax.productions import Children, Production, refused, span_of
from estero.language.tree.names import some, suggestion

if TYPE_CHECKING:
    from lark import Token

MOST_RUNS: Final = 100
"""The largest number of ``runs``, as in Elasticsearch."""

_ESCAPE: Final = re.compile(r"\\(u\{[0-9A-Fa-f]{1,8}\}|.)", re.DOTALL)
_ESCAPED: Final[Mapping[str, str]] = {
    **{sign: sign for sign in "\"'\\"},
    **dict(zip("nrtbf", "\n\r\t\b\f", strict=True)),
}
_BACKQUOTED: Final = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


def string_value(token: Token) -> str:
    """The value of a string: with escapes, or without them in three quotes."""
    text = str(token)
    if token.type == "RAW":
        return text[3:-3]

    def unescaped(escape: re.Match[str]) -> str:
        sign = escape[1]
        if sign[0] == "u" and len(sign) > 1 and int(sign[2:-1], 16) < 0x110000:
            return chr(int(sign[2:-1], 16))
        if sign not in _ESCAPED:
            start = cast(int, token.start_pos) + 1 + escape.start()
            raise QueryError(
                f"{escape[0]} is not an escape",
                span=Span(start, start + len(escape[0])),
                found=escape[0],
                expected=r"\\ for a backslash, \" \n \r \t \b \f or \u{6d}",
                hint='in """three quotes""" a backslash is itself',
            )
        return _ESCAPED[sign]

    inner = text[1:-1]
    return _ESCAPE.sub(unescaped, inner) if "\\" in inner else inner


def _node_of(child: Any) -> q.EqlNode:
    """A node, from itself or from the token of a constant."""
    return _constant(child) if isinstance(child, str) else child


def _constant(token: Any, sign: str = "") -> q.Constant:
    span = span_of(token)
    match token.type:
        case "STRING" | "RAW":
            return q.Constant(string_value(token), span=span)
        case "INT":
            return q.Constant(_integer(token, sign), span=span)
        case "FLOAT":
            return q.Constant(float(sign + token), span=span)
        case "NULL":
            return q.Constant(None, span=span)
        case _:
            return q.Constant(token.type == "TRUE", span=span)


def _integer(token: Token, sign: str = "") -> int:
    if len(token) > 20 or not -(2**63) <= int(sign + token) < 2**63:
        raise refused(token, "this integer does not fit in 64 bits", "a smaller number", "")
    return int(sign + token)


def _negative_constant(children: Children, span: Span) -> q.Constant:
    return q.Constant(_constant(children[1], "-").value, span=span)


def _minus(children: Children, span: Span) -> q.EqlNode:
    operand = children[1]
    if isinstance(operand, str) and cast("Token", operand).type in ("INT", "FLOAT"):
        return q.Constant(_constant(operand, "-").value, span=span)
    return q.Minus(_node_of(operand), span=span)


def _field(children: Children, span: Span) -> q.Field:
    return q.Field(_parts(children[0]), span=span)


def _optional_field(children: Children, span: Span) -> q.Field:
    return q.Field(_parts(children[0]), True, span=span)


def _parts(token: Token) -> tuple[str, ...]:
    """The parts of a dotted name; a part in backquotes may contain dots."""
    if "\0" in token:
        raise refused(token, "a name cannot contain a NUL character", "a name", "leave the character out")
    if "`" not in token:
        return tuple(token.split("."))
    return tuple(
        part[1].replace("``", "`") if part[1] is not None else part[2] for part in _BACKQUOTED.finditer(token)
    )


def _call(children: Children, span: Span) -> q.FunctionCall:
    token, *arguments = children
    caseless = token.endswith("~")
    written = str(token).removesuffix("~")
    name = _NAMES.get(written.lower())
    if name is None:
        raise refused(
            token,
            f"unknown function {written}",
            some(FUNCTIONS, 5),
            suggestion(written, FUNCTIONS) or "Elastic documents the functions of EQL",
        )
    function = FUNCTIONS[name]
    if caseless and not function.caseless:
        raise refused(token, f"{name} has no form without case", name, "leave the ~ out")
    if not function.accepts(len(arguments)):
        raise QueryError(
            f"{name} takes {function.numbered}, not {len(arguments)}",
            span=span,
            found=str(token),
            expected=function.example,
            hint=f"{function.example} is {function.meaning}",
        )
    return q.FunctionCall(name, tuple(map(_node_of, arguments)), caseless, span=span)


_NAMES: Final = {name.lower(): name for name in FUNCTIONS}


def _computation(children: Children, span: Span) -> q.Computation:
    left, sign, right = children
    return q.Computation(cast(q.ComputationSign, str(sign)), _node_of(left), _node_of(right), span=span)


def _compared(children: Children, span: Span) -> q.Compared:
    left, sign, right = children
    return q.Compared(cast(q.ComparisonSign, str(sign)), _node_of(left), _node_of(right), span=span)


def _member(children: Children, span: Span) -> q.Member:
    operand, sign, *members = children
    return q.Member(_node_of(operand), tuple(map(_node_of, members)), sign.endswith("~"), span=span)


def _not_member(children: Children, span: Span) -> q.Negated:
    operand, _, *rest = children
    return q.Negated(_member([operand, *rest], span), span=span)


def _alike(children: Children, span: Span) -> q.Alike:
    operand, sign, *constants = children
    patterns = tuple(cast(q.Constant, _node_of(constant)) for constant in constants)
    if sign != ":":
        for pattern in patterns:
            if not isinstance(pattern.value, str):
                raise QueryError(
                    f"{sign} takes strings",
                    span=pattern.span,
                    found=str(pattern),
                    expected="a string",
                    hint="numbers are compared with == or in",
                )
    return q.Alike(cast(q.Likeness, str(sign)), _node_of(operand), patterns, span=span)


def _all_of(children: Children, span: Span) -> q.AllOf:
    return q.AllOf(_flat(q.AllOf, children), span=span)


def _any_of(children: Children, span: Span) -> q.AnyOf:
    return q.AnyOf(_flat(q.AnyOf, children), span=span)


def _flat(kind: type[q.AllOf | q.AnyOf], children: Children) -> tuple[q.EqlNode, ...]:
    """The parts of an operator, with nested parts of the same operator flattened."""
    parts: list[q.EqlNode] = []
    for node in map(_node_of, children):
        parts += node.parts if isinstance(node, kind) else (node,)
    return tuple(parts)


def _negated(children: Children, span: Span) -> q.Negated:
    return q.Negated(_node_of(children[-1]), span=span)


def _event_query(children: Children, span: Span) -> q.EventQuery:
    return q.EventQuery(_category(children[0]), _node_of(children[1]), span=span)


def _category(token: Token) -> str | None:
    if token.type == "ANY":
        return None
    if token.type == "NAME":
        return ".".join(_parts(token))
    return string_value(token)


@dataclass(frozen=True, slots=True)
class _By:
    """The keys after ``by``."""

    fields: tuple[q.Field, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class _With:
    """A setting after ``with``."""

    name: Token
    number: Token
    unit: Token | None
    span: Span


def _by(children: Children, span: Span) -> _By:
    return _By(tuple(children), span)


def _with(children: Children, span: Span) -> _With:
    name, _, number, *unit = children
    return _With(name, number, unit[0] if unit else None, span)


def _options(children: Children, allowed: str) -> tuple[tuple[q.Field, ...], _With | None, Children]:
    """The keys, the setting named `allowed`, and the other children."""
    keys: tuple[q.Field, ...] = ()
    setting: _With | None = None
    rest: Children = []
    for child in children:
        if isinstance(child, _By):
            if keys:
                raise QueryError("by stands here a second time", span=child.span, expected="one list of keys")
            keys = child.fields
        elif isinstance(child, _With):
            if child.name != allowed or setting is not None:
                twice = child.name == allowed
                raise refused(
                    child.name,
                    f"{child.name} {'stands here a second time' if twice else 'is no setting here'}",
                    f"with {allowed}=…" if allowed else "nothing to set",
                    _PLACES.get(child.name, ""),
                )
            setting = child
        else:
            rest.append(child)
    return keys, setting, rest


_PLACES: Final = {
    "maxspan": "maxspan comes after sequence: sequence by user.name with maxspan=1h […] […]",
    "runs": "runs comes after an item of a sequence: […] with runs=3",
}


def _item(children: Children, span: Span) -> q.Item:
    keys, setting, (bracket, category, condition) = _options(children, "runs")
    runs = 1 if setting is None else _runs(setting)
    missing = bracket.type == "MISSING"
    return q.Item(_category(category), _node_of(condition), keys, missing, runs, span=span)


def _runs(setting: _With) -> int:
    if setting.unit is not None or setting.number.type != "INT" or len(setting.number) > 9:
        wrong = True
    else:
        wrong = not 1 <= int(setting.number) <= MOST_RUNS
    if wrong:
        raise QueryError(
            "runs is how often an item comes, one after the other",
            span=setting.span,
            found=str(setting.number),
            expected=f"a whole number from 1 to {MOST_RUNS}",
        )
    return int(setting.number)


def _until(children: Children, span: Span) -> q.Item:
    (item,) = children
    if item.missing or item.runs > 1:
        raise QueryError(
            "until takes one event",
            span=span,
            found="!" if item.missing else f"runs={item.runs}",
            expected="until [category where condition]",
        )
    return cast(q.Item, item)


@dataclass(frozen=True, slots=True)
class _Until:
    """The item after ``until``."""

    item: q.Item


def _sequence(children: Children, span: Span) -> q.Sequence:
    keys, setting, rest = _options(children, "maxspan")
    items = [child for child in rest if isinstance(child, q.Item)]
    until = next((child.item for child in rest if isinstance(child, _Until)), None)
    maxspan = None if setting is None else _maxspan(setting)
    if sum(item.runs for item in items) < 2:
        raise QueryError(
            "a sequence has two items at least",
            span=span,
            found="one item",
            expected="[…] […]",
            hint="single events are asked for without sequence: process where …",
        )
    _check_keys(items, until)
    _check_missing(items, maxspan)
    return q.Sequence(keys, maxspan, tuple(items), until, span=span)


def _check_keys(items: list[q.Item], until: q.Item | None) -> None:
    first = items[0]
    for item in [*items[1:], *([until] if until else [])]:
        if len(item.keys) != len(first.keys):
            raise QueryError(
                f"this item has {_numbered(item.keys)}, and the first one has {_numbered(first.keys)}",
                span=item.span,
                found=", ".join(map(str, item.keys)) or "no by",
                expected="as many keys after each item",
                hint="keys with one name in all items come once, after sequence: sequence by user.name",
            )


def _numbered(keys: tuple[q.Field, ...]) -> str:
    return f"{len(keys) or 'no'} key{'' if len(keys) == 1 else 's'}"


def _check_missing(items: list[q.Item], maxspan: int | None) -> None:
    missing = [item for item in items if item.missing]
    if missing and maxspan is None:
        raise QueryError(
            "where an event is missing, the time for which it is has to be known",
            span=missing[0].span,
            found="no maxspan",
            expected="sequence with maxspan=5m […] ![…]",
        )
    if len(missing) == len(items):
        raise QueryError(
            "all events of this sequence are missing",
            span=missing[0].span,
            found="![",
            expected="one item at least without !",
        )


def _maxspan(setting: _With) -> int:
    unit = str(setting.unit or "")
    if unit not in UNITS or setting.number.type != "INT" or len(setting.number) > 18:
        raise QueryError(
            "maxspan is a whole number and a unit",
            span=setting.span,
            found=f"{setting.number}{unit}",
            expected=f"one of the units {', '.join(UNITS)}, as in maxspan=30s",
            hint="half a minute is 30s" if setting.number.type == "FLOAT" else "",
        )
    span = int(setting.number) * UNITS[unit]
    if not 0 < span < 2**63:
        raise QueryError(
            "this maxspan is too long or none",
            span=setting.span,
            found=f"{setting.number}{unit}",
            expected="up to 106,751 days",
        )
    return span


def _sample(children: Children, span: Span) -> q.Sample:
    keys, _, rest = _options(children, "")
    items = [child for child in rest if isinstance(child, q.Item)]
    if len(items) < len(rest):
        raise QueryError("a sample has no until", span=span, found="until", expected="sample by key […] […]")
    for item in items:
        if item.missing or item.runs > 1:
            raise QueryError(
                f"an item of a sample has no {'!' if item.missing else 'runs'}",
                span=item.span,
                found="!" if item.missing else "runs",
                expected="[category where condition]",
                hint="events that are missing, and runs, belong in a sequence",
            )
    _check_keys(items, None)
    if not keys and not items[0].keys:
        raise QueryError(
            "a sample needs a key that its events share",
            span=span,
            found="no by",
            expected="sample by host.name […] […]",
        )
    if len(items) < 2:
        raise QueryError("a sample has two items at least", span=span, found="one item", expected="[…] […]")
    return q.Sample(keys, tuple(items), span=span)


def _pipe(children: Children, span: Span) -> q.Pipe:
    name, *count = children
    if name not in ("head", "tail"):
        raise refused(
            name,
            f"there is no pipe {name}",
            "head or tail",
            "estero.sql and DuckDB count, sort and filter what the answer gives",
        )
    if not count:
        raise refused(name, f"{name} needs a number", f"{name} 10", "")
    if len(count[0]) > 18:
        raise refused(count[0], "this number is too large", f"{name} 10", "")
    return q.Pipe(cast(Any, str(name)), int(count[0]), span=span)


def _query(children: Children, span: Span) -> q.EqlTree:
    query, *pipes = children
    return q.EqlTree(query, tuple(pipes), span=span)


PRODUCTIONS: Final[Mapping[str, Production]] = {
    "query": _query,
    "event_query": _event_query,
    "sequence": _sequence,
    "sample": _sample,
    "item": _item,
    "until": lambda children, span: _Until(_until(children, span)),
    "by": _by,
    "with": _with,
    "pipe": _pipe,
    "all_of": _all_of,
    "any_of": _any_of,
    "negated": _negated,
    "compared": _compared,
    "member": _member,
    "not_member": _not_member,
    "alike": _alike,
    "negative_constant": _negative_constant,
    "computation": _computation,
    "minus": _minus,
    "call": _call,
    "group": lambda children, _: _node_of(children[-1]),
    "field": _field,
    "optional_field": _optional_field,
}
"""The builder of the node of each production."""
