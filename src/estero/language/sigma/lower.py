"""Conditions of Sigma as expressions of CEQL, for fields whose attributes and kinds are known.

Sigma's logic has two values, SQL's three: an expression is true exactly if the condition is, and otherwise
false or NULL. `Negated` is therefore not NOT, but also tests whether operands are NULL.

Numbers and strings compare by their texts: an integer field is compared with a number as an integer, and with
a pattern as a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Final

from estero.language.sigma import tree as s
from estero.language.sigma.addresses import regex_of_network
from estero.language.sigma.fields import Attributed, Fields
from estero.language.sigma.texts import escaped, number_text
from estero.language.tree import expressions as e
from estero.language.tree.literals import INT_MAX, INT_MIN
from estero.language.tree.schema import Kind

Lowered = e.Node | bool
"""An expression, or a truth value that does not depend on the event."""

_WHOLE: Final = frozenset({Kind.INT, Kind.BOOL, Kind.DECIMAL})
_DEAD: Final = frozenset({Kind.NULL, Kind.OPAQUE})
_COMPARED: Final = frozenset({None, *Kind}) - {Kind.OPAQUE, Kind.TIMESTAMP, Kind.DURATION}
"""The kinds that have a text or are NULL; None is an unknown kind."""
_READ: Final[Mapping[type, frozenset[Kind | None]]] = {
    s.PartOfTime: frozenset({None, Kind.NULL, Kind.TIMESTAMP}),
    s.Network: frozenset({None, Kind.NULL, Kind.STRING}),
    s.Compared: _COMPARED - {Kind.BOOL},
}
"""The kinds that some tests read; all others read the kinds that have a text."""
_NAMES_OF_KINDS: Final[Mapping[Kind | None, str]] = {
    Kind.OPAQUE: "a struct",
    Kind.TIMESTAMP: "a time",
    Kind.DURATION: "a duration",
    Kind.STRING: "text",
    Kind.BOOL: "true or false",
}
_UNESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_PARTS: Final = ("minute", "hour", "day", "week", "month", "year")


@dataclass(slots=True)
class Lowering:
    """Translates the conditions of one rule.

    `missing` are the fields that no event has; `unread` are those whose kind a test cannot read, with the
    names of the kinds.
    """

    fields: Fields
    missing: dict[str, None] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)

    def of(self, condition: s.Condition) -> Lowered:
        """The expression for a condition."""
        match condition:
            case s.Text(name, like, cased):  # as most fields are
                plain = self.fields.plain(name)
                return (
                    self._test(condition) if plain is None or cased or like == "%" else e.Ilike(plain, like)
                )
            case s.Every(parts):
                return joined(map(self.of, parts), e.And, absorbing=False)
            case s.Some(parts):
                patterns = self._patterns(parts)
                if patterns is not None:
                    return patterns
                keywords = tuple([part for part in parts if type(part) is s.Keyword])
                if not keywords:
                    return joined(map(self.of, parts), e.Or, absorbing=True)
                others = (self.of(part) for part in parts if type(part) is not s.Keyword)
                return joined((self._keywords(keywords), *others), e.Or, absorbing=True)
            case s.Negated(s.Negated(part)):
                return self.of(part)
            case s.Negated(part):
                return denied(self.of(part))
            case s.Keyword():
                return self._keywords((condition,))
            case s.SameAs(name, other):
                pairs = [(one, two) for one in self.attributes(name) for two in self.attributes(other)]
                return joined((_test_of_fields(condition, *pair) for pair in pairs), e.Or, absorbing=True)
            case s.Missing(name):
                return joined((_is_missing(one) for one in self.fields.of(name)), e.And, absorbing=False)
            case _:
                return self._test(condition)

    def _patterns(self, parts: tuple[s.Condition, ...]) -> e.Node | None:
        """Whether one column of strings has one of some patterns, as most rules ask; None for other parts."""
        first = parts[0] if parts else None
        if not isinstance(first, s.Text):
            return None
        attribute = self.fields.plain(first.field)
        if attribute is None:
            return None
        likes: dict[str, None] = {}
        for part in parts:
            if type(part) is not s.Text or part.cased or part.like == "%" or part.field != first.field:
                return None
            likes[part.like] = None
        tests = tuple([e.Ilike(attribute, like) for like in likes])
        return tests[0] if len(tests) == 1 else e.Or(tests)

    def _test(self, test: s.TestOfField) -> Lowered:
        """A test that holds if it holds for any attribute of its field."""
        attributes = self.attributes(test.field, _READ.get(type(test), _COMPARED))
        tests = [_test_of_attribute(one, partial(_tested, test)) for one in attributes]
        return tests[0] if len(tests) == 1 else joined(tests, e.Or, absorbing=True)

    def notes(self) -> list[str]:
        """Notes on the fields that no event has, and on those that cannot be read."""
        missing = [f"no event has the field {name}" for name in self.missing]
        return missing + [f"{name} is {kind}, which is not read here" for name, kind in self.unread.items()]

    def attributes(self, name: str, kinds: Container[Kind | None] = _COMPARED) -> tuple[Attributed, ...]:
        """The attributes of a field whose kind is one of `kinds`; the others are noted."""
        attributes = self.fields.of(name)
        if not attributes:
            self.missing[name] = None
        for one in attributes:
            if one.kind not in kinds:
                self.leave_out(name, one)
        return attributes

    def leave_out(self, name: str, one: Attributed) -> None:
        """Notes that the attribute of a field is not read."""
        self.unread[name] = "a list" if one.listed else _NAMES_OF_KINDS.get(one.kind, "a number")

    def _keywords(self, keywords: tuple[s.Keyword, ...]) -> Lowered:
        """Whether any column matches one of some keywords."""
        if not keywords:
            return False

        def test(text: e.Node, _: Kind | None = Kind.STRING) -> Lowered:
            return joined((_has(text, keyword) for keyword in keywords), e.Or, absorbing=True)

        plain = self.fields.plain_texts
        inside = test(e.Element("v"))
        if len(plain) < 2 or isinstance(inside, bool):
            return joined((_test_of_attribute(one, test) for one in self.fields.texts), e.Or, absorbing=True)
        listed = (_test_of_attribute(one, test) for one in self.fields.texts if one.listed)
        return joined((e.SomeAttribute(plain, "v", inside), *listed), e.Or, absorbing=True)


def joined(
    parts: Iterable[Lowered], join: Callable[[tuple[e.Node, ...]], e.Node], *, absorbing: bool
) -> Lowered:
    """The parts joined by AND (`absorbing` is False) or OR (True), flattened and without constants."""
    nodes: dict[e.Node, None] = {}
    for part in parts:
        if isinstance(part, bool):
            if part is absorbing:
                return absorbing
        elif type(part) is join:
            nodes.update(dict.fromkeys(part.parts))  # type: ignore[attr-defined]  # AND and OR have these
        else:
            nodes[part] = None
    if not nodes:
        return not absorbing
    return nodes.popitem()[0] if len(nodes) == 1 else join(tuple(nodes))


# ------------------------------------------------------------------------------------ negation


def denied(condition: Lowered) -> Lowered:
    """The expression that is true exactly if another one is not."""
    match condition:
        case bool():
            return not condition
        case e.IsNull() | e.SomeAttribute():
            return e.Not(condition)
        case e.Not(e.IsNull() | e.SomeAttribute() as part):
            return part
    operands = _null_operands(condition)
    if operands is not None:
        turned = condition.part if isinstance(condition, e.Not) else e.Not(condition)
        return e.Or((*map(e.IsNull, operands), turned))
    match condition:
        case e.And(parts):
            return joined(map(denied, parts), e.Or, absorbing=True)
        case e.Or(parts):
            return joined(map(denied, parts), e.And, absorbing=False)
        case _:
            raise TypeError(f"{condition} is not a condition of a rule")


def _null_operands(condition: e.Node) -> tuple[e.Node, ...] | None:
    """The operands whose being NULL alone makes the condition NULL; None if it may be NULL otherwise."""
    match condition:
        case e.And(parts) | e.Or(parts):
            operands = {_null_operands(part) for part in parts}
            return operands.pop() if len(operands) == 1 else None
        case e.IsNull():
            return None
        case e.Not(part):
            return _null_operands(part)
        case e.Comparison(_, left, right):
            return tuple(side for side in (left, right) if not isinstance(side, e.Literal))
        case e.Like(operand) | e.Ilike(operand) | e.Matches(operand) | e.SomeElement(operand):
            return (operand,)
        case e.Call(_, arguments):
            return arguments
        case _:
            return None


# ------------------------------------------------------------------------------------ tests


def _test_of_attribute(
    one: Attributed, test: Callable[[e.Node, Kind | None], Lowered], name: str = "v"
) -> Lowered:
    """The test of an attribute; for a list, whether it holds for any element."""
    if not one.listed:
        return test(_attribute(one.name), one.kind)
    of_element = test(e.Element(name), one.kind)
    return (
        of_element if isinstance(of_element, bool) else e.SomeElement(e.Attribute(one.name), name, of_element)
    )


@lru_cache(maxsize=4096)
def _attribute(name: str) -> e.Attribute:
    return e.Attribute(name)


def _is_missing(one: Attributed) -> Lowered:
    """Whether there is no value; a list without values counts as none."""
    if one.kind is Kind.NULL:
        return True
    return denied(_test_of_attribute(one, lambda value, _: e.Not(e.IsNull(value))))


def _tested(test: s.Test, attribute: e.Node, kind: Kind | None) -> Lowered:
    """The test of an attribute, or of an element of it, by its kind."""
    if kind in _DEAD:
        return False
    match test:
        case s.Text(_, like, cased):
            return _text(attribute, kind, like, cased=cased)
        case s.Number(_, value):
            return _number(attribute, kind, value)
        case s.Truth(_, value):
            if kind in (Kind.BOOL, None):
                return e.Comparison("=", attribute, e.Literal(value))
            return _text(attribute, kind, str(value).lower(), cased=False)
        case s.Compared(_, operator, value):
            return _compared(attribute, kind, operator, value)
        case s.Searched(_, regex):
            return _over_text(attribute, kind, lambda text: e.Matches(text, regex))
        case s.Network(_, network):
            regex = regex_of_network(network)
            return e.Matches(attribute, regex) if kind in (Kind.STRING, None) else False
        case s.PartOfTime(_, part, value):
            return _part(attribute, kind, part, value)
        case _:
            raise TypeError(f"{test} is not of one field")


def _over_text(attribute: e.Node, kind: Kind | None, test: Callable[[e.Node], e.Node]) -> Lowered:
    """A test of the text of an attribute; timestamps and fractions have no text."""
    if kind in (Kind.STRING, None):
        return test(attribute)
    if kind in _WHOLE:
        return test(e.Cast(attribute, "STRING"))
    if kind is Kind.FLOAT:
        whole = e.Comparison("=", attribute, e.Call("floor", (attribute,)))
        return e.And((whole, test(e.Cast(e.Cast(attribute, "INTEGER"), "STRING"))))
    return False


def _has(text: e.Node, keyword: s.Keyword) -> e.Node:
    if keyword.regex is not None:
        return e.Matches(text, keyword.regex)
    return (e.Like if keyword.cased else e.Ilike)(text, keyword.like)


def _text(attribute: e.Node, kind: Kind | None, like: str, *, cased: bool) -> Lowered:
    if like == "%":
        return e.Not(e.IsNull(attribute))
    if kind is Kind.STRING and not cased:
        return e.Ilike(attribute, like)
    plain = plain_text(like)
    if plain is not None and kind in (Kind.INT, Kind.FLOAT, Kind.DECIMAL):
        return _equal_number(attribute, kind, plain)
    if plain is not None and cased:
        return _over_text(attribute, kind, lambda text: e.Comparison("=", text, e.Literal(plain)))
    node = e.Like if cased else e.Ilike
    return _over_text(attribute, kind, lambda text: node(text, like))


def plain_text(like: str) -> str | None:
    """The text that a pattern without wildcards matches; None for other patterns."""
    bare = _UNESCAPED.sub("", like)
    return None if "%" in bare or "_" in bare else _UNESCAPED.sub(r"\1", like)


def _equal_number(attribute: e.Node, kind: Kind, text: str) -> Lowered:
    """Whether a number has exactly this text: ``4625``, not ``04625``."""
    try:
        value = float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        return False
    if number_text(value) != text:
        return False
    return _number(attribute, kind, value)


def _number(attribute: e.Node, kind: Kind | None, value: float) -> Lowered:
    if kind is Kind.STRING:
        return e.Ilike(attribute, escaped(number_text(value)))
    whole = float(value).is_integer()
    if kind in (Kind.INT, None) and whole:
        return e.Comparison("=", attribute, e.Literal(int(value))) if INT_MIN <= value <= INT_MAX else False
    if kind in (Kind.FLOAT, None):
        return e.Comparison("=", attribute, e.Literal(float(value)))
    if kind is Kind.DECIMAL and whole and INT_MIN <= value <= INT_MAX:
        return e.Comparison("=", attribute, e.Literal(int(value)))
    if kind is Kind.DECIMAL:
        return e.Comparison("=", e.Cast(attribute, "STRING"), e.Literal(number_text(value)))
    return False


def _compared(attribute: e.Node, kind: Kind | None, operator: str, value: float) -> Lowered:
    number: e.Node = e.Literal(float(value))
    if isinstance(value, int) and INT_MIN <= value <= INT_MAX and kind in (Kind.INT, None):
        number = e.Literal(value)
    if kind in (Kind.STRING, Kind.DECIMAL):
        return e.Comparison(operator, e.Cast(attribute, "FLOAT"), number)  # type: ignore[arg-type]
    if kind in (Kind.INT, Kind.FLOAT, None):
        return e.Comparison(operator, attribute, number)  # type: ignore[arg-type]
    return False


def _part(attribute: e.Node, kind: Kind | None, part: str, value: int) -> Lowered:
    if kind not in (Kind.TIMESTAMP, None) or part not in _PARTS:
        return False
    return e.Comparison("=", e.Call(part, (attribute,)), e.Literal(value))


def _test_of_fields(test: s.SameAs, one: Attributed, other: Attributed) -> Lowered:
    """Whether the text of a field equals, begins, ends with or contains that of another, ignoring case."""

    def compared(left: e.Node, kind: Kind | None) -> Lowered:
        return _test_of_attribute(
            other, lambda right, kind_of: _alike(test, _as_text(left, kind), _as_text(right, kind_of)), "w"
        )

    return _test_of_attribute(one, compared)


def _alike(test: s.SameAs, left: e.Node | None, right: e.Node | None) -> Lowered:
    if left is None or right is None:
        return False
    match test.begins, test.ends:
        case False, False:
            return e.Comparison("=", left, right)
        case True, False:
            return e.Call("starts_with", (left, right))
        case False, True:
            return e.Call("ends_with", (left, right))
        case _:
            return e.Call("contains", (left, right))


def _as_text(value: e.Node, kind: Kind | None) -> e.Node | None:
    if kind in (Kind.STRING, None):
        return e.Call("lower", (value,))
    return e.Cast(value, "STRING") if kind in _WHOLE else None
