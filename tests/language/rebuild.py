"""A syntax tree → the calls of the builder that make it: nothing but what users have."""

from __future__ import annotations

import operator
from dataclasses import replace
from functools import reduce
from typing import assert_never

from estero.language.builder.conditions import (
    Condition,
    Expression,
    Named,
    Variable,
    attribute,
    closed,
    constant,
    var,
)
from estero.language.builder.functions import aggregate, call, case, cast, holds, outside, prev
from estero.language.builder.queries import (
    AbsenceBuilder,
    PatternBuilder,
    QueryBuilder,
    absent,
    event,
    select,
)
from estero.language.tree import distances as d
from estero.language.tree import expressions as e
from estero.language.tree import pattern as p
from estero.language.tree import query as q
from estero.language.tree.literals import Value
from estero.language.tree.paths import column_of, is_path, steps_of

_COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPUTE = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}


def expression(node: e.Node) -> Expression:
    """The expression, a condition as its truth value."""
    match node:
        case e.Literal(value):
            return constant(value)
        case e.Attribute(name, None):
            return _inside(attribute(column_of(name)), name)
        case e.Attribute(name, str(variable)):
            return _inside(var(variable)[column_of(name)], name)
        case e.Negative(operand):
            return -expression(operand)
        case e.Arithmetic(sign, left, right):
            found = _COMPUTE[sign](expression(left), expression(right))
            assert isinstance(found, Expression)
            return found
        case e.Call(name, arguments):
            return call(name, *map(expression, arguments))
        case e.Case(whens, default):
            cases = [(expression(when.condition), expression(when.value)) for when in whens]
            return case(*cases, otherwise=None if default is None else expression(default))
        case e.Cast(operand, name):
            return cast(expression(operand), name)
        case e.Previous(operand):
            return prev(expression(operand))
        case e.Aggregate(function, variable, None):
            return aggregate(function, var(variable))
        case e.Aggregate(function, variable, e.Node() as operand, distinct):
            return aggregate(function, expression(e.with_variable(operand, variable)), distinct=distinct)
        case _:
            return condition(node).as_value()


def _inside(column: Expression, name: str) -> Expression:
    return reduce(operator.getitem, steps_of(name), column)


def condition(node: e.Node) -> Condition:
    """The condition, as it stands: ``X.a > 5`` is not ``X[a > 5]``."""
    match node:
        case e.Comparison(sign, left, right):
            found = _COMPARE[sign](expression(left), expression(right))
            assert isinstance(found, Condition)
            return outside(found)
        case e.In(operand, members):
            return outside(expression(operand).is_in(*map(_member, members)))
        case e.Between(operand, low, high):
            return outside(expression(operand).between(expression(low), expression(high)))
        case e.Like(operand, text) | e.Ilike(operand, text):
            value = expression(operand)
            return outside(value.like(text) if isinstance(node, e.Like) else value.ilike(text))
        case e.Matches(operand, regex):
            return outside(expression(operand).matches(regex))
        case e.IsNull(operand):
            return outside(expression(operand).is_null())
        case e.Not(part):
            return ~condition(part)
        case e.And(parts):
            first, *more = map(condition, parts)
            return reduce(operator.and_, more, first.grouped())
        case e.Or(parts):
            first, *more = map(condition, parts)
            return reduce(operator.or_, more, first.grouped())
        case e.EventFilter(variable, predicate):
            return var(variable)[condition(predicate)]
        case e.SetPredicate(name, arguments):
            return holds(name, *map(_argument, arguments))
        case _:
            return outside(expression(node))


def _member(member: e.Literal | e.Range) -> Value | e.Range:
    return closed(member.low.value, member.high.value) if isinstance(member, e.Range) else member.value


def _argument(argument: e.Node) -> Variable | Expression:
    return var(argument.variable) if isinstance(argument, e.VariableReference) else expression(argument)


def pattern(node: p.Pattern) -> PatternBuilder:  # noqa: C901, PLR0911, PLR0912  (one case per operator)
    """The pattern."""
    match node:
        case p.EventType(name, stream):
            return event(name, stream=stream)
        case p.As(inner, variable):
            return pattern(inner).named(variable)
        case p.Rename(inner, old, new):
            return pattern(inner).renamed(old, new)
        case p.Filter(inner, filtered):
            return pattern(inner).where(condition(filtered))
        case p.Disjunction(parts):
            return _first(parts).or_(*map(pattern, parts[1:]))
        case p.Conjunction(parts):
            return _first(parts).and_(*map(pattern, parts[1:]))
        case p.All(parts):
            return _first(parts).all_with(*map(pattern, parts[1:]))
        case p.Unless(inner, forbidden):
            return pattern(inner).unless(pattern(forbidden))
        case p.Sequence(parts, links):
            built = _first(parts)
            if node.before:
                built = _absent(node.before[0]).then(*map(_absent, node.before[1:]), pattern(parts[0]))
            for link, part in zip(links, parts[1:], strict=True):
                follow = built.followed_directly_by if link.contiguous else built.then
                nothing = [pattern(each) for each in link.absent]
                if link.lacking:
                    built = built.then(*map(_absent, link.lacking), pattern(part), without=nothing)
                else:
                    built = follow(pattern(part), without=nothing, apart=link.distances)
            return built.then(*map(_absent, node.after)) if node.after else built
        case p.Iteration(inner, contiguous, minimum, maximum, step):
            return pattern(inner).repeated(
                minimum,
                maximum,
                directly=contiguous,
                without=[pattern(each) for each in step.absent],
                apart=step.distances,
            )
        case p.Optional(inner):
            return pattern(inner).optional()
        case p.Start(inner):
            return pattern(inner).at_start()
        case p.Strict(inner):
            return pattern(inner).strict()
        case p.Keep(inner, labels):
            return pattern(inner).keep(*labels)
        case p.PartitionBy(inner, keys):
            return pattern(inner).partitioned_by(*map(_key, keys))
        case _:
            raise TypeError(f"{node!r} has no builder")


def _absent(absence: p.Absence) -> AbsenceBuilder:
    begun = absent(pattern(absence.event))
    match absence.apart.lengths[0]:
        case d.AttributeWindow(ticks, attribute):
            return begun.within(ticks=ticks, attribute=attribute)
        case d.DurationWindow(parts):
            return begun.within(*parts)
        case _:
            raise TypeError("a deadline is a time")


def _first(parts: tuple[p.Pattern, ...]) -> PatternBuilder:
    return pattern(parts[0]).grouped()


def _key(key: p.PartitionKey) -> str | Expression:
    if key.variable is None and not is_path(key.attribute):
        return key.attribute
    return expression(e.Attribute(key.attribute, key.variable))


def query(tree: q.QueryTree) -> QueryBuilder:
    """The query, clause by clause."""
    built = select(pattern(tree.pattern)).strategy(tree.strategy).consume_by(tree.consume)
    if tree.disjoint:
        each_start = {q.Strategy.LONGEST: built.longest, q.Strategy.SHORTEST: built.shortest}
        built = each_start[tree.strategy](disjoint=True)
    if tree.select is not None:
        built = built.show(*map(_selected, tree.select))
    if tree.streams:
        built = built.from_streams(*tree.streams)
    if tree.partition_by:
        built = built.partition_by(*(tuple(map(_name, each.alternatives)) for each in tree.partition_by))
    if tree.window is not None:
        built = _windowed(built, tree.window)
    if tree.ranking is not None:
        by = expression(tree.ranking.by)
        built = built.order_by(by, descending=not tree.ranking.ascending)
    return built if tree.limit is None else _limited(built, tree.limit, tree.per)


def _limited(built: QueryBuilder, most: int, per: d.Window | None) -> QueryBuilder:
    match per:
        case d.AttributeWindow(ticks, attribute):
            return built.limit(most, ticks=ticks, attribute=attribute)
        case d.DurationWindow((part,)):
            return built.limit(most, per=part)
        case None:
            return built.limit(most)
        case _:  # which the builder cannot say, or says in other units
            return QueryBuilder(replace(built.tree, limit=most, per=per))


def _selected(item: q.Selected) -> str | tuple[str, tuple[str | Expression, ...]] | Named:
    match item:
        case q.EveryLabel():
            return "*"
        case q.SelectExpression(value, name):
            return expression(value).named(name)
        case q.SelectItem(label, attributes):
            return label if attributes is None else (label, tuple(map(_name, attributes)))


def _name(name: str) -> str | Expression:
    return expression(e.Attribute(name)) if is_path(name) else name


def _windowed(built: QueryBuilder, window: d.Window) -> QueryBuilder:
    match window:
        case d.EventWindow(events):
            return built.within(events=events)
        case d.DurationWindow(parts):
            return built.within(*parts)
        case d.AttributeWindow(ticks, name):
            return built.within(ticks=ticks, attribute=name)
        case _:
            assert_never(window)
