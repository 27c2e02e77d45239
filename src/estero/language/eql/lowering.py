"""Conditions of EQL as conditions of CEQL, for events of a schema.

The meaning of a comparison depends on the columns: it holds for a list if it holds for any element, a number
equals a string that is its text, and a string compared with a timestamp is an instant. Unknown values are
NULL; ``not``, ``!=`` and ``not in`` are true if the condition is false or NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

from estero.errors import QueryError, Span
from estero.language.eql import tree as q
from estero.language.eql.comparing import Comparing, one_of_texts
from estero.language.eql.lower_functions import FunctionLowering
from estero.language.eql.typed import NOTHING, Typed, is_true, unknown
from estero.language.tree import expressions as e
from estero.language.tree.conditions import conjoined
from estero.language.tree.field_names import attribute_of
from estero.language.tree.names import some, suggestion
from estero.language.tree.paths import field_of, is_path
from estero.language.tree.schema import Kind, Nested, Schema

CATEGORY: Final = "event.category"
"""The field with the category of an event, unless a column has the event type."""


class Lowering:
    """Translates conditions and keys for events of a schema; without a schema, any field may exist.

    `category` is the attribute with the category of an event, which may be a list; None if there is none.
    Methods raise `QueryError` for the first mistake, with its place in the text in EQL.
    """

    def __init__(self, schema: Schema | None, type_column: str | None = None) -> None:
        self._schema = schema
        self._elements: dict[str, e.Element | e.Literal] = {}
        self._has_lists = schema is None or bool(schema.nested)
        self.category: str | None = type_column
        if schema is None:
            self.category = type_column or reduce(field_of, CATEGORY.split("."))
        elif type_column is None:
            self.category = attribute_of(CATEGORY, schema)
        self._known: dict[int, tuple[object, e.Node | None]] = {}
        self._comparing = Comparing()
        self._functions = FunctionLowering(self.value, self._comparing)

    # ------------------------------------------------------------------------------------ events and keys

    def where(self, query: q.EventQuery | q.Item) -> e.Node | None:
        """The condition for ``category where condition``; None if every event satisfies it.

        It is cached, because a rule is first checked and then planned.
        """
        if id(query) not in self._known:
            self._known[id(query)] = query, self._where(query)
        return self._known[id(query)][1]

    def _where(self, query: q.EventQuery | q.Item) -> e.Node | None:
        tests = [] if query.category is None else [self._of_category(query.category, query.span)]
        if query.condition != q.ALWAYS:
            tests.append(self.condition(query.condition))
        return conjoined(tests)

    def key(self, field: q.Field) -> e.Attribute | None:
        """The attribute of a key, which may be a list; None for an optional key that no event has."""
        return self._attribute(field)

    def nested(self, name: str) -> Nested:
        """The type of an attribute."""
        inner = None if self._schema is None else self._schema.inside(name)
        return Nested(Kind.NULL) if inner is None else inner

    def _of_category(self, category: str, span: Span) -> e.Node:
        if self.category is None:
            raise QueryError(
                "no column has the category of the events",
                span=span,
                found=category,
                expected=f"a field {CATEGORY}, or the column that is named by type=",
                hint="any where … asks for events of all categories",
            )
        attribute = e.Attribute(self.category, span=span)
        nested = self.nested(self.category)
        if nested.kind is Kind.NULL and self._schema is not None:
            return unknown(span)
        wanted = Typed.of_constant(category, span)

        def tested() -> e.Node:
            value = self._elements.get(attribute.name, attribute)
            kind = None if isinstance(value, e.Literal) else Kind.STRING
            return self._comparing.compared("==", Typed(value, kind), wanted, span)

        return self._each_element([attribute] if nested.element else [], tested, span)

    # ---------------------------------------------------------------------------------------- conditions

    def condition(self, node: q.EqlNode) -> e.Node:
        """The condition on an event, which is true, false or NULL."""
        span = node.span
        match node:
            case q.AllOf(parts):
                return e.And(tuple(map(self.condition, parts)), span=span)
            case q.AnyOf(parts):
                return e.Or(tuple(map(self.condition, parts)), span=span)
            case q.Negated(part):
                return e.Not(is_true(self.condition(part)), span=span)
            case q.Compared("!=", left, right):
                return self.condition(q.Negated(q.Compared("==", left, right, span=span), span=span))
            case q.Compared("==", left, right) if self._is_null(left) or self._is_null(right):
                return self._absence(right if self._is_null(left) else left, span)
            case q.Compared(_, left, right):
                sign = node.operator
                return self._test(node, lambda: self._compared(sign, left, right, span))
            case q.Member(operand, members, caseless):
                return self._test(node, lambda: self._member(operand, members, caseless, span))
            case q.Alike(sign, operand, patterns):
                return self._test(
                    node, lambda: self._comparing.alike(self.value(operand), sign, patterns, span)
                )
            case q.Constant(None):
                return unknown(span)
            case _:
                return self._test(node, lambda: self._truth(node))

    def _truth(self, node: q.EqlNode) -> e.Node:
        value = self.value(node)
        if value.kind not in (Kind.BOOL, None):
            raise QueryError(
                f"a condition is true or false, and this is {value.kind.value}",
                span=node.span,
                found=str(node)[:60],
                expected="a comparison",
                hint="compare it with something, for example with == or :",
            )
        return value.node

    def _compared(self, sign: q.ComparisonSign, left: q.EqlNode, right: q.EqlNode, span: Span) -> e.Node:
        for one, other in ((left, right), (right, left)):
            match one, other:
                case q.FunctionCall("string", (inner,)), q.Constant(str()) if sign == "==":
                    value = self.value(inner)
                    if value.kind is Kind.FLOAT:  # engines write floats differently
                        return self._comparing.compared(sign, value, self.value(other), span)
                case _:
                    pass
        return self._comparing.compared(sign, self.value(left), self.value(right), span)

    def _member(self, operand: q.EqlNode, members: Sequence[q.EqlNode], caseless: bool, span: Span) -> e.Node:
        value = self.value(operand)
        if value.kind is Kind.STRING and all(map(_is_text, members)):
            return one_of_texts(value.node, members, caseless, span)
        return self._comparing.member(value, list(map(self.value, members)), caseless, span)

    def _is_null(self, node: q.EqlNode) -> bool:
        """Whether a node is ``null``, or an optional field that no event has."""
        match node:
            case q.Constant(None):
                return True
            case q.Field(optional=True):
                return self._attribute(node) is None
            case _:
                return False

    def _absence(self, node: q.EqlNode, span: Span) -> e.Node:
        """``node == null``; for a list, whether all its elements are NULL."""
        if self._is_null(node):
            return e.Literal(True, span=span)
        lists = self._lists_in(node)
        if not lists:
            return e.IsNull(self.value(node).node, span=span)
        not_null = self._each_element(
            lists, lambda: e.Not(e.IsNull(self.value(node).node, span=span), span=span), span
        )
        return e.Not(is_true(not_null), span=span)

    # ---------------------------------------------------------------------------------------------- lists

    def _test(self, node: q.EqlNode, lowered: Callable[[], e.Node]) -> e.Node:
        """A test that holds if it holds for any elements of its lists."""
        if not self._has_lists:
            return lowered()
        return self._each_element(self._lists_in(node), lowered, node.span)

    def _each_element(
        self, lists: Sequence[e.Attribute], lowered: Callable[[], e.Node], span: Span
    ) -> e.Node:
        """A test of any elements of some lists; NULL takes the place of an element of an empty list."""
        if not lists:
            return lowered()
        first, *others = lists
        name = f"e{len(self._elements) + 1}"
        tests = []
        for element in (e.Element(name, span=first.span), unknown(first.span)):
            self._elements[first.name] = element
            try:
                tests.append(self._each_element(others, lowered, span))
            finally:
                del self._elements[first.name]
        some, of_none = tests
        of_some = e.SomeElement(first, name, some, span=span)
        if of_none == unknown():
            return of_some
        has_some = e.SomeElement(first, name, e.Literal(True), span=span)
        return e.Or((of_some, e.And((e.Not(is_true(has_some)), of_none), span=span)), span=span)

    def _lists_in(self, node: q.EqlNode) -> list[e.Attribute]:
        """The lists among the fields of a test, except those of tests nested in it."""
        if not self._has_lists:
            return []
        lists: dict[str, e.Attribute] = {}
        for field in _own_fields(node, outermost=True):
            attribute = self._attribute(field)
            if attribute and attribute.name not in self._elements and self.nested(attribute.name).element:
                lists.setdefault(attribute.name, attribute)
        return list(lists.values())

    # --------------------------------------------------------------------------------------------- values

    def value(self, node: q.EqlNode) -> Typed:
        """A value of an event and its kind."""
        span = node.span
        match node:
            case q.Constant(value):
                return Typed.of_constant(value, span)
            case q.Field():
                return self._field(node)
            case q.Minus(operand):
                return self._comparing.negative(self.value(operand), span)
            case q.Computation(sign, left, right):
                return self._comparing.computed(sign, self.value(left), self.value(right), span)
            case q.FunctionCall():
                return self._functions.called(node)
            case _:
                return Typed(self.condition(node), Kind.BOOL)

    def _field(self, field: q.Field) -> Typed:
        attribute = self._attribute(field)
        if attribute is None:
            return replace(NOTHING, node=unknown(field.span))
        nested = self.nested(attribute.name)
        element = self._elements.get(attribute.name)
        if element is not None and nested.element is not None:
            kind = None if isinstance(element, e.Literal) else _known(nested.element.kind)
            return Typed(replace(element, span=field.span), kind, field)
        if nested.fields is not None or nested.kind is Kind.OPAQUE:
            raise QueryError(
                f"{field.name} is {nested.described}, and holds no value",
                span=field.span,
                found=str(field),
                expected="a field with values",
                hint=f"name a field inside of it: {field.name}.{next(iter(nested.fields))}"
                if nested.fields
                else "",
            )
        return Typed(attribute, _known(nested.kind), field)

    def _attribute(self, field: q.Field) -> e.Attribute | None:
        if self._schema is None:
            return e.Attribute(reduce(field_of, field.parts), span=field.span)
        name = attribute_of(field.name, self._schema)
        if name is None and not field.optional:
            known = [column for column in self._schema.column_kinds if not is_path(column)]
            names = [*known, *_inside(self._schema)]
            raise QueryError(
                f"no event has a field {field.name}",
                span=field.span,
                found=str(field),
                expected=some(known) or "no field at all",
                hint=suggestion(field.name, names) or f"?{field.name} may be missing from all events, too",
            )
        return None if name is None else e.Attribute(name, span=field.span)


def _is_text(node: q.EqlNode) -> bool:
    return type(node) is q.Constant and type(node.value) is str


def _known(kind: Kind) -> Kind | None:
    return None if kind is Kind.NULL else kind


def _own_fields(node: q.EqlNode, *, outermost: bool = False) -> Iterator[q.Field]:
    """The fields of a test, except those of tests nested in it."""
    if isinstance(node, q.Field):
        yield node
    elif outermost or not isinstance(node, q.Compared | q.Member | q.Alike | q.AllOf | q.AnyOf | q.Negated):
        for child in node.children():
            yield from _own_fields(child)


def _inside(schema: Schema) -> Iterator[str]:
    """The dotted names of the fields of structs."""
    stack = list(schema.nested.items())
    while stack:
        name, nested = stack.pop()
        for step, inner in (nested.fields or {}).items():
            yield f"{name}.{step}"
            stack.append((f"{name}.{step}", inner))
