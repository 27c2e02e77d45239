"""The reference meaning of conditions in EQL: one event at a time, slow and plain.

It is independent of columns and of the translation of conditions elsewhere. Unknown is None throughout, an
event a mapping in which fields have dotted names or are inside of mappings, and lists are lists.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

from estero.language.eql import tree as q
from estero.language.tree.nodes import with_changed

Event = Mapping[str, Any]
_COMPARE: Final = {
    "==": lambda one, other: one == other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


def matches(query: q.EventQuery | q.Item, event: Event, absent: Collection[q.Field] = ()) -> bool:
    """Whether an event has the category, or one of the categories, and satisfies the condition.

    `absent` are optional fields that no event has: they are ``null``.
    """
    condition = _without(query.condition, absent)
    given = field_of(event, ("event", "category"))
    categories = given if isinstance(given, list) else [given]
    return (query.category is None or query.category in categories) and _truth(condition, event, {}) is True


def _without(node: q.EqlNode, absent: Collection[q.Field]) -> q.EqlNode:
    def change(item: Any) -> Any:
        return _without(item, absent) if isinstance(item, q.EqlNode) else item

    return q.Constant(None) if node in absent else with_changed(node, change)


def field_of(event: Event, parts: Sequence[str]) -> Any:
    """The value of a field, of a column with dots in its name or inside of structs; None if there is none."""
    for cut in range(len(parts), 0, -1):
        name = ".".join(parts[:cut])
        if name in event:
            inner = event[name]
            if cut == len(parts):
                return inner
            return field_of(inner, parts[cut:]) if isinstance(inner, Mapping) else None
    return None


Chosen = Mapping[q.Field, Any]
"""The element that stands for a list."""


def _truth(node: q.EqlNode, event: Event, chosen: Chosen) -> bool | None:
    """A condition: true, false or unknown."""
    match node:
        case q.AllOf(parts):
            truths = [_truth(part, event, chosen) for part in parts]
            return False if False in truths else None if None in truths else True
        case q.AnyOf(parts):
            truths = [_truth(part, event, chosen) for part in parts]
            return True if True in truths else None if None in truths else False
        case q.Negated(part):
            return _truth(part, event, chosen) is not True
        case q.Compared("!=", left, right):
            return _truth(q.Compared("==", left, right), event, chosen) is not True
        case q.Compared("==", left, q.Constant(None)):
            return _is_absent(left, event, chosen)
        case q.Compared("==", q.Constant(None), right):
            return _is_absent(right, event, chosen)
        case _:
            return _of_any_element(node, event, chosen)


def _is_absent(node: q.EqlNode, event: Event, chosen: Chosen) -> bool:
    return all(_value(node, event, one) is None for one in _choices(node, event, chosen))


def _of_any_element(node: q.EqlNode, event: Event, chosen: Chosen) -> bool | None:
    """A test: of a list, whether it is true of any element."""
    lists = [field for field in _fields(node, top=True) if isinstance(field_of(event, field.parts), list)]
    if not lists:
        return _tested(node, event, chosen)
    return any(_tested(node, event, one) is True for one in _choices(node, event, chosen))


def _choices(node: q.EqlNode, event: Event, chosen: Chosen) -> Iterator[Chosen]:
    fields = [
        field
        for field in dict.fromkeys(_fields(node, top=True))
        if field not in chosen and isinstance(field_of(event, field.parts), list)
    ]
    for elements in product(*(field_of(event, field.parts) or [None] for field in fields)):
        yield {**chosen, **dict(zip(fields, elements, strict=True))}


def _fields(node: q.EqlNode, *, top: bool = False) -> Iterator[q.Field]:
    """The fields of a test, without those of tests inside of it, which look for elements of their own."""
    if isinstance(node, q.Field):
        yield node
    elif top or not isinstance(node, q.Compared | q.Member | q.Alike | q.AllOf | q.AnyOf | q.Negated):
        for child in node.children():
            yield from _fields(child)


def _tested(node: q.EqlNode, event: Event, chosen: Chosen) -> bool | None:
    match node:
        case q.Compared(sign, left, right):
            one, other = _value(left, event, chosen), _value(right, event, chosen)
            if one is None or other is None:
                return None
            if sign == "==":
                return _equal(one, other)
            return bool(_COMPARE[sign](one, other))
        case q.Member(operand, members, caseless):
            value = _value(operand, event, chosen)
            known = [other for member in members if (other := _value(member, event, chosen)) is not None]
            if value is None or not known:
                return None
            return any(_equal(_folded(value, caseless), _folded(other, caseless)) for other in known)
        case q.Alike(sign, operand, patterns):
            value = _value(operand, event, chosen)
            if value is None:
                return None
            return any(_is_alike(sign, _text(value), pattern.value) for pattern in patterns)
        case _:
            value = _value(node, event, chosen)
            return value if isinstance(value, bool) else None


def _equal(one: Any, other: Any) -> bool:
    """Whether two values are equal; a number equals the text of it."""
    if isinstance(one, str) != isinstance(other, str):
        return _text(one) == _text(other)
    return bool(one == other)


def _folded(value: Any, caseless: bool) -> Any:
    return value.lower() if caseless and isinstance(value, str) else value


def _is_alike(sign: str, text: str, pattern: Any) -> bool:
    caseless = re.IGNORECASE if sign == ":" or sign.endswith("~") else re.NOFLAG
    if sign.startswith("regex"):
        return re.fullmatch(pattern, text, re.DOTALL | caseless) is not None
    wild = "".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in _text(pattern))
    return re.fullmatch(wild, text, re.DOTALL | caseless) is not None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# ------------------------------------------------------------------------------------------------- values


def _value(node: q.EqlNode, event: Event, chosen: Chosen) -> Any:
    match node:
        case q.Constant(value):
            return value
        case q.Field(parts):
            return chosen[node] if node in chosen else field_of(event, parts)
        case q.Minus(operand):
            number = _value(operand, event, chosen)
            return None if number is None else -number
        case q.Computation(sign, left, right):
            return _computed(sign, _value(left, event, chosen), _value(right, event, chosen))
        case q.FunctionCall(name, arguments, caseless):
            return _called(
                name, [_value(argument, event, chosen) for argument in arguments], caseless=caseless
            )
        case _:
            return _truth(node, event, chosen)


def _computed(sign: str, one: Any, other: Any) -> Any:
    if one is None or other is None or (sign in "/%" and other == 0):
        return None
    match sign:
        case "+":
            return one + other
        case "-":
            return one - other
        case "*":
            return one * other
        case "/" if isinstance(one, int) and isinstance(other, int):
            return math.trunc(one / other)
        case "/":
            return one / other
        case _ if isinstance(one, int) and isinstance(other, int):
            return one - other * math.trunc(one / other)
        case _:
            return math.fmod(one, other)


_SIGNS: Final = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "%"}


def _called(name: str, given: list[Any], *, caseless: bool) -> Any:
    if name in _SIGNS:
        return _computed(_SIGNS[name], *given)
    first = given[0]
    if first is None:
        return None
    match name:
        case "length":
            return len(_text(first))
        case "string":
            return _text(first)
        case "concat":
            return None if None in given else "".join(map(_text, given))
        case "substring":
            start, end = given[1] or 0, given[2] if len(given) > 2 else None
            return _text(first)[start:end]
        case "number":
            return _number(first, given[1] if len(given) > 1 else None)
        case "cidrMatch":
            return _in_blocks(first, given[1:])
        case "startsWith" | "endsWith" | "stringContains":
            return _in_text(name, first, given[1:], caseless=caseless)
        case "indexOf":
            return _index_of(*given, caseless=caseless)
        case _:
            return _between(*given, caseless=caseless)


def _in_text(name: str, text: str, parts: list[Any], *, caseless: bool) -> bool | None:
    tests: list[bool | None] = []
    for part in parts:
        whole, inner = _folded(text, caseless), _folded(part, caseless)
        if inner is None:
            tests.append(None)
        elif name == "startsWith":
            tests.append(whole.startswith(inner))
        else:
            tests.append(whole.endswith(inner) if name == "endsWith" else inner != "" and inner in whole)
    return True if True in tests else None if None in tests else False


def _index_of(text: str, part: str | None, start: int | None = None, *, caseless: bool) -> int | None:
    if part is None:
        return None
    place = _folded(text, caseless).find(_folded(part, caseless), max(0, start or 0))
    return None if place < 0 else place


def _between(
    text: str, left: str | None, right: str | None, greedy: bool = False, *, caseless: bool
) -> str | None:
    if left is None or right is None:
        return None
    searched, one, other = (_folded(part, caseless) for part in (text, left, right))
    begin = searched.find(one)
    if begin < 0:
        return None
    begin += len(one)
    end = searched.rfind(other, begin) if greedy else searched.find(other, begin)
    return None if end < 0 else text[begin:end]


def _number(text: str, base: int | None) -> float | None:
    try:
        if base in (None, 16) and text[:2].lower() == "0x":
            return int(text, 16)
        return float(text) if base in (None, 10) else int(text, base or 10)
    except ValueError:
        return None


def _in_blocks(text: str, blocks: list[str]) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return any(address in ipaddress.ip_network(block, strict=False) for block in blocks)
