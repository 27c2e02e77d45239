"""Expressions over one event as SQL of a dialect, with the same meaning in each (dialect.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from estero.classify.columns import ColumnType, reference
from estero.classify.dialect import Dialect
from estero.classify.durations import computed
from estero.classify.functions import called, chosen, converted
from estero.classify.naming import with_names
from estero.classify.operations import UNKNOWN, Operations, Typed
from estero.classify.sql_trees import SQL, call, is_not_null
from estero.errors import QueryError
from estero.language.tree import expressions as e
from estero.language.tree.schema import Kind


class ExpressionWriter:
    """Writes expressions over one event for `dialect`, reading the columns as `columns` says.

    An attribute that is not in `columns` is missing from every event: NULL.
    """

    def __init__(self, columns: Mapping[str, ColumnType], dialect: Dialect) -> None:
        self._columns = columns
        self._dialect = dialect
        self._operations = Operations(dialect)
        self._elements: dict[str, Typed] = {}

    def condition(self, node: e.Node) -> SQL:
        """A predicate over one event as a boolean SQL expression; unknown is NULL."""
        match node:
            case e.And(parts):
                return exp.paren(exp.and_(*(self.condition(part) for part in parts)), copy=False)
            case e.Or(parts):
                return exp.paren(exp.or_(*(self.condition(part) for part in parts)), copy=False)
            case e.Not(e.IsNull(operand)):
                return self._operations.is_known(self.value(operand))
            case e.Not(part):
                return exp.paren(exp.Not(this=exp.paren(self.condition(part))), copy=False)
            case e.Comparison(operator, left, right):
                return self._test((left, right), lambda of, both: of.compare(operator, *both))
            case e.Between(operand, low, high):
                return self._test((operand, low, high), lambda of, three: of.between(*three))
            case e.In(operand, members):
                return self._test((operand,), lambda of, one: of.is_member(one[0], members))
            case e.InList(operand, values):
                return self._test((operand,), lambda of, one: of.is_listed(one[0], values.values))
            case e.Like() | e.Ilike() | e.Matches():
                return self._text_test(node.as_like if isinstance(node, e.Ilike) else node)
            case e.IsNull(operand):
                return exp.paren(exp.Not(this=self._operations.is_known(self.value(operand))), copy=False)
            case e.Literal(bool() as truth):
                return exp.true() if truth else exp.false()
            case _:
                typed = self.value(node)
                return typed.sql if typed.kind is not None else UNKNOWN.copy()

    def value(self, node: e.Node) -> Typed:
        """An expression over one event with its kind."""
        match node:
            case e.Literal(value):
                return self._operations.literal(value)
            case e.Attribute(name, None):
                return self._attribute(name)
            case e.Element(name):
                return self._elements[name]
            case e.SomeElement() | e.SomeAttribute():
                return Typed(self._some(node), Kind.BOOL)
            case e.Negative(e.Literal(int() | float() as number)) if not isinstance(number, bool):
                return self._operations.literal(-number)
            case e.Negative(operand):
                return self._of((operand,), lambda of, one: of.negative(*one))
            case e.Arithmetic(operator, left, right):
                return self._of((left, right), lambda of, both: computed(of, operator, *both))
            case e.Call(name, arguments):
                return self._of(arguments, lambda of, values: called(of, name, values))
            case e.Case(whens, default):
                cases = [(self.condition(when.condition), self.value(when.value)) for when in whens]
                return chosen(self._operations, cases, self.value(default or e.Literal(None)))
            case e.Cast(operand, wanted):
                return self._of((operand,), lambda of, one: converted(of, one[0], wanted))
            case _ if isinstance(node, e.CONDITIONS):
                return Typed(self.condition(node), Kind.BOOL)
            case _:
                raise QueryError(f"{type(node).__name__} is not an expression over one event", span=node.span)

    def _some(self, node: e.SomeElement | e.SomeAttribute) -> SQL:
        if isinstance(node, e.SomeAttribute):
            return self.condition(node.spread)
        whole = self.value(node.operand)
        if whole.element is None:
            return UNKNOWN.copy()
        texts = _texts_asked(node)
        if texts is not None and whole.element == ColumnType(Kind.STRING):
            quick = self._dialect.has_any_text(whole.sql.copy(), texts)
            if quick is not None:
                return quick
        item = exp.column(f"item{len(self._elements)}")
        element = replace(whole.element, stands=item)
        outer = self._elements
        if element.kind is Kind.NULL:
            one = self._operations.literal(None)
        else:
            one = Typed(
                self._dialect.as_read("item", element),
                element.kind,
                tick=element.tick,
                element=element.element,
                scale=element.scale,
            )
        self._elements = {**outer, node.element: one}
        condition = call("coalesce", self.condition(node.condition), exp.false())
        self._elements = outer
        return self._dialect.any_element(whole.sql.copy(), item, condition)

    def _text_test(self, node: e.Like | e.Matches) -> SQL:
        value = self.value(node.operand)
        if value.kind is None:
            return UNKNOWN.copy()
        if isinstance(node, e.Like):
            return self._dialect.like(value.sql, node.pattern)
        return self._dialect.matches(value.sql, node.regex)

    # -------------------------------------------------------------------------------- operands

    def _of(self, operands: Sequence[e.Node], write: Callable[[Operations, Sequence[Typed]], Typed]) -> Typed:
        """The result of `write` on operands, each of which is computed once."""
        values = [self.value(operand) for operand in operands]
        return with_names(self._dialect, values, lambda named: write(self._operations, named))

    def _test(self, operands: Sequence[e.Node], write: Callable[[Operations, Sequence[Typed]], SQL]) -> SQL:
        """A condition written on operands, each of which is computed once."""
        return self._of(operands, lambda of, values: Typed(write(of, values), Kind.BOOL)).sql

    # ---------------------------------------------------------------------------------- leaves

    def _attribute(self, name: str) -> Typed:
        column = self._columns.get(name)
        if column is None or column.kind is Kind.NULL:
            return self._operations.literal(None)
        known = (is_not_null(reference(name, column)),)
        return Typed(
            self._dialect.as_read(name, column),
            column.kind,
            known,
            tick=column.tick,
            element=column.element,
            scale=column.scale,
        )


def _texts_asked(node: e.SomeElement) -> list[str] | None:
    """The texts that an element has to be one of, if that is the condition."""
    match node.condition:
        case e.Comparison("=", e.Element(name), e.Literal(str() as text)) if name == node.element:
            return [text]
        case e.In(e.Element(name), members) if name == node.element:
            texts = [member.value for member in members if isinstance(member, e.Literal)]
            known = [text for text in texts if isinstance(text, str)]
            return known if len(known) == len(members) else None
        case _:
            return None
