"""Correlations as queries: a window is all events of a group, from one of them on, within the timespan.

``SELECT LONGEST * WHERE e{n,}[NOT e] … WITHIN d LIMIT 1 PER END``: a step leaves no event of the rules out,
LONGEST takes for each start all that come within the timespan, and of windows with one end the first holds
the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from estero.language.sigma.lower import Lowered, joined
from estero.language.sigma.tree import Correlation
from estero.language.tree import expressions as e
from estero.language.tree.distances import DurationWindow
from estero.language.tree.durations import TimeUnit
from estero.language.tree.pattern import As, Disjunction, EventType, Filter, Iteration, Link, Pattern, Step
from estero.language.tree.pattern import Sequence as InOrder
from estero.language.tree.query import KeyBracket, QueryTree, Strategy

_OTHER: Final = "other"
_MOST_ROUNDS: Final = 256
"""The most events that rounds of the pattern count; more are counted by a filter."""


def windows_tree(
    rule: Correlation, name: str, conditions: Sequence[Lowered], keys: Sequence[str], counted: Sequence[str]
) -> QueryTree:
    """The query of a correlation over events of the type `name`.

    `conditions` are those of its rules, `keys` and `counted` attributes.
    """
    anything = joined(conditions, e.Or, absorbing=True)
    if rule.type == "temporal_ordered":
        pattern, asked = _ordered(name, conditions, anything), None
    else:
        least = rule.count + (rule.operator == ">")
        pattern, asked = _together(rule, name, conditions, anything, counted, least)
    return QueryTree(
        pattern if asked is None else Filter(pattern, asked),
        strategy=Strategy.LONGEST,
        partition_by=tuple(KeyBracket((key,)) for key in keys),
        window=DurationWindow(((rule.seconds, TimeUnit.SECONDS),)),
        limit=1,
    )


def _together(
    rule: Correlation,
    name: str,
    conditions: Sequence[Lowered],
    anything: Lowered,
    counted: Sequence[str],
    least: int,
) -> tuple[Pattern, e.Node | None]:
    """The events of a window, and what is asked of all of them."""
    rounds = least if rule.type == "event_count" else 1
    asked: list[e.Node] = []
    if rounds > _MOST_ROUNDS:
        rounds = 1
        asked.append(e.Comparison(">=", e.Aggregate("count", name), e.Literal(least)))
    if rule.type == "value_count":
        values = [e.Aggregate("count", name, e.Attribute(field), distinct=True) for field in counted]
        asked += [e.Comparison(">=", value, e.Literal(least)) for value in values]
    elif rule.type == "temporal":
        asked.append(_rules_met(name, conditions, least))
    events = _events(name, anything, rounds)
    return events, None if not asked else asked[0] if len(asked) == 1 else e.And(tuple(asked))


def _rules_met(name: str, conditions: Sequence[Lowered], least: int) -> e.Node:
    """Whether at least a number of the rules hold, of any events."""
    met = [e.Aggregate("max", name, _as_number(condition)) for condition in conditions]
    if least == len(met):
        tests = tuple(e.Comparison("=", one, e.Literal(1)) for one in met)
        return tests[0] if len(tests) == 1 else e.And(tests)
    total: e.Node = met[0]
    for one in met[1:]:
        total = e.Arithmetic("+", total, one)
    return e.Comparison(">=", total, e.Literal(least))


def _as_number(condition: Lowered) -> e.Node:
    if isinstance(condition, bool):
        return e.Literal(int(condition))
    return e.Case((e.When(condition, e.Literal(1)),), e.Literal(0))


def _ordered(name: str, conditions: Sequence[Lowered], anything: Lowered) -> Pattern:
    """The events of a window from one of the first rule on, in which the rules follow one another."""
    link = Link(absent=(_event(name, anything, _OTHER),))
    between = _events(name, anything, 1)
    parts: list[Pattern] = [_event(name, conditions[0], None)]
    for condition in conditions[1:]:
        last = _event(name, condition, None)
        parts.append(Disjunction((last, InOrder((between, last), (link,)))))
    whole: Pattern = parts[0] if len(parts) == 1 else InOrder(tuple(parts), (link,) * (len(parts) - 1))
    return Disjunction((whole, InOrder((whole, between), (link,))))


def _events(name: str, condition: Lowered, least: int) -> Pattern:
    """So many events or more of which a condition holds, none left out."""
    step = Step(absent=(_event(name, condition, _OTHER),))
    return Iteration(_event(name, condition, None), minimum=least, step=step)


def _event(name: str, condition: Lowered, variable: str | None) -> Pattern:
    """One event of which a condition holds, marked with a variable, too, if one is given."""
    event: Pattern = EventType(name) if variable is None else As(EventType(name), variable)
    if condition is True:
        return event
    predicate = e.Literal(False) if condition is False else condition
    return Filter(event, e.EventFilter(variable or name, predicate))
