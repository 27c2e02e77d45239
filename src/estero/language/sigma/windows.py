"""Correlations as queries: a window consists of all events of a group within the timespan of its first one.

``SELECT LONGEST * WHERE e{n,}[NOT e] … WITHIN d LIMIT 1 PER END``: steps skip no event of the rules, LONGEST
takes for each start all events within the timespan, and of windows with the same end, the first contains the
others.

Conditions that further events can make false (``lt``, ``eq``, sums, …) are evaluated on complete windows:
``first ; e{1,} ; NOT(e AS later FILTER later.time - first.time <= d) FOR d``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from estero.language.sigma.lower import Lowered, joined
from estero.language.sigma.tree import Correlation
from estero.language.tree import expressions as e
from estero.language.tree.distances import Apart, DurationWindow
from estero.language.tree.durations import Duration, TimeUnit
from estero.language.tree.pattern import (
    Absence,
    As,
    Disjunction,
    EventType,
    Filter,
    Iteration,
    Link,
    Pattern,
    Step,
)
from estero.language.tree.pattern import Sequence as InOrder
from estero.language.tree.query import KeyBracket, QueryTree, SelectItem, Strategy

_OTHER, _FIRST, _LATER = "other", "first", "later"
_MOST_ROUNDS: Final = 256
"""The largest number of events that the pattern itself counts; more are counted by a filter."""


def windows_tree(
    rule: Correlation,
    name: str,
    conditions: Sequence[Lowered],
    keys: Sequence[Sequence[str]],
    counted: Sequence[e.Node],
    time: str,
) -> QueryTree:
    """The query of a correlation over events of the type `name`.

    - `conditions`: the conditions of its rules.
    - `keys`: the attributes of each key.
    - `counted`: the expressions over one event whose values are counted or added up.
    - `time`: the attribute with the time of an event.
    """
    anything = joined(conditions, e.Or, absorbing=True)
    condition: e.Node | None = None
    if rule.type == "temporal_ordered":
        pattern = _ordered_window(name, conditions, anything)
    elif rule.is_of_whole_windows:
        pattern = _complete_window(name, anything, rule.seconds, time)
        condition = _condition_on_all(rule, name, conditions, counted)
    else:
        least = max(int(count) + (operator == ">") for operator, count in rule.bounds)
        pattern, condition = _window(rule, name, conditions, anything, counted, least)
    return QueryTree(
        pattern if condition is None else Filter(pattern, condition),
        select=(SelectItem(name),) if rule.is_of_whole_windows else None,
        strategy=Strategy.LONGEST,
        partition_by=tuple(KeyBracket(tuple(key)) for key in keys),
        window=DurationWindow(((rule.seconds, TimeUnit.SECONDS),)),
        limit=1,
    )


def _window(
    rule: Correlation,
    name: str,
    conditions: Sequence[Lowered],
    anything: Lowered,
    counted: Sequence[e.Node],
    least: int,
) -> tuple[Pattern, e.Node | None]:
    """The events of a window, and the condition on all of them together."""
    rounds = least if rule.type == "event_count" else 1
    tests: list[e.Node] = []
    if rounds > _MOST_ROUNDS:
        rounds = 1
        tests.append(e.Comparison(">=", e.Aggregate("count", name), e.Literal(least)))
    if rule.type == "value_count":
        tests += [e.Comparison(">=", number, e.Literal(least)) for number in _different(name, counted)]
    elif rule.type == "temporal":
        tests.append(_rules_met(name, conditions, least))
    events = _events(name, anything, rounds)
    return events, None if not tests else tests[0] if len(tests) == 1 else e.And(tuple(tests))


def _condition_on_all(
    rule: Correlation, name: str, conditions: Sequence[Lowered], counted: Sequence[e.Node]
) -> e.Node:
    """The condition on all events of a window together."""
    match rule.type:
        case "event_count":
            results: list[e.Node] = [e.Aggregate("count", name)]
        case "value_count":
            results = _different(name, counted)
        case "temporal":
            results = [_sum(_met(name, conditions))]
        case _:
            function = cast("e.AggregateFunction", rule.type.removeprefix("value_"))
            results = [e.Aggregate(function, name, value) for value in counted]
    tests = tuple(
        e.Comparison(operator, result, e.Literal(count))
        for result in results
        for operator, count in rule.bounds
    )
    return tests[0] if len(tests) == 1 else e.And(tests)


def _different(name: str, values: Sequence[e.Node]) -> list[e.Node]:
    return [e.Aggregate("count", name, value, distinct=True) for value in values]


def _rules_met(name: str, conditions: Sequence[Lowered], least: int) -> e.Node:
    """The condition that at least `least` rules hold, each for any event."""
    met = _met(name, conditions)
    if least == len(met):
        tests = tuple(e.Comparison("=", one, e.Literal(1)) for one in met)
        return tests[0] if len(tests) == 1 else e.And(tests)
    return e.Comparison(">=", _sum(met), e.Literal(least))


def _met(name: str, conditions: Sequence[Lowered]) -> list[e.Node]:
    """A number for each rule: 1 if it holds for any event, else 0."""
    return [e.Aggregate("max", name, _as_number(condition)) for condition in conditions]


def _sum(numbers: Sequence[e.Node]) -> e.Node:
    total = numbers[0]
    for one in numbers[1:]:
        total = e.Arithmetic("+", total, one)
    return total


def _as_number(condition: Lowered) -> e.Node:
    if isinstance(condition, bool):
        return e.Literal(int(condition))
    return e.Case((e.When(condition, e.Literal(1)),), e.Literal(0))


def _ordered_window(name: str, conditions: Sequence[Lowered], anything: Lowered) -> Pattern:
    """The events of a window that starts with the first rule and has the rules in order."""
    link = Link(absent=(_event(name, anything, _OTHER),))
    between = _events(name, anything, 1)
    parts: list[Pattern] = [_event(name, conditions[0], None)]
    for condition in conditions[1:]:
        last = _event(name, condition, None)
        parts.append(Disjunction((last, InOrder((between, last), (link,)))))
    shortest: Pattern = parts[0] if len(parts) == 1 else InOrder(tuple(parts), (link,) * (len(parts) - 1))
    return Disjunction((shortest, InOrder((shortest, between), (link,))))


def _complete_window(name: str, anything: Lowered, seconds: int, time: str) -> Pattern:
    """All events of a complete window: no further event follows within the timespan of its first one."""
    first = _event(name, anything, _FIRST)
    others = InOrder((first, _events(name, anything, 1)), (Link(absent=(_event(name, anything, _OTHER),)),))
    apart = e.Arithmetic("-", e.Attribute(time, _LATER), e.Attribute(time, _FIRST))
    within = e.Comparison("<=", apart, e.Literal(Duration(seconds * TimeUnit.SECONDS.value)))
    test = within if anything is True else e.And((e.EventFilter(_LATER, _predicate(anything)), within))
    later = Filter(As(EventType(name), _LATER), test)
    span = Apart(">", DurationWindow(((seconds, TimeUnit.SECONDS),)))
    return InOrder((Disjunction((others, first)),), (), after=(Absence(later, span),))


def _events(name: str, condition: Lowered, least: int) -> Pattern:
    """At least `least` events that satisfy a condition, without skipping any."""
    step = Step(absent=(_event(name, condition, _OTHER),))
    return Iteration(_event(name, condition, None), minimum=least, step=step)


def _event(name: str, condition: Lowered, variable: str | None) -> Pattern:
    """One event that satisfies a condition, also marked with `variable` unless that is empty."""
    event: Pattern = EventType(name) if variable is None else As(EventType(name), variable)
    if condition is True:
        return event
    return Filter(event, e.EventFilter(variable or name, _predicate(condition)))


def _predicate(condition: Lowered) -> e.Node:
    return e.Literal(condition) if isinstance(condition, bool) else condition
