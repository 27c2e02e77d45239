"""Filters on the complex event as a whole: its times, and the values of its partition keys.

``FILTER duration <= 5 MINUTES`` behind the pattern of a query compares the event with which a complex event
ends and the one with which it starts. So it is a filter on two variables, whose events no label marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from estero.language.tree import expressions as e
from estero.language.tree.pattern import As, EventType, Filter, Keep, PartitionBy, Pattern, ending
from estero.language.tree.query import QueryTree
from estero.language.tree.selection import DECIDED_TIME, END_TIME, START_TIME

DURATION: Final = "duration"
START_OF: Final = "the start"
END_OF: Final = "the end"
ENDS: Final = frozenset({START_OF, END_OF})
"""The variables of the two events."""
TIME_OF: Final = "the time"
"""The attribute for the time if no column is known to be it."""
DEADLINE: Final = "the deadline"
"""The attribute of the end for the time by which all deadlines after it have passed."""


def with_whole(tree: QueryTree, time: str | None = None) -> QueryTree:
    """The query with values of the whole as filters on both ends; `time` is the time column.

    It changes the filters of the whole pattern, outside of ``X[…]``. There an attribute without a variable
    is ``start_time``, ``end_time``, ``duration`` or a partition key, and where the pattern ends with
    ``NOT(…) FOR d``, ``decided_time``.

    >>> from estero.language.syntax.parser import parse_query
    >>> print(with_whole(parse_query("SELECT * WHERE a ; b FILTER duration > 5"), "t").pattern)
    a ; b FILTER "the end".t - "the start".t > 5
    """
    match tree.pattern:
        case Filter(EventType() | As(EventType()), e.EventFilter()):
            return tree  # it asks one event, as nearly all rules do
        case _:
            pass
    start, end = (e.Attribute(time or TIME_OF, variable) for variable in (START_OF, END_OF))
    values: dict[str, e.Node] = {}
    for bracket in tree.partition_by:
        keys = tuple(e.Attribute(name, END_OF) for name in bracket.alternatives)
        values |= dict.fromkeys(bracket.alternatives, keys[0] if len(keys) == 1 else e.Call("coalesce", keys))
    values |= {START_TIME: start, END_TIME: end, DURATION: e.Arithmetic("-", end, start)}
    if ending(tree.pattern):
        values[DECIDED_TIME] = e.Attribute(DEADLINE, END_OF)
    pattern = _changed(tree.pattern, values)
    return tree if pattern is tree.pattern else replace(tree, pattern=pattern)


def as_written(tree: QueryTree, time: str | None = None) -> QueryTree:
    """The query that `with_whole` changed into `tree`, with values of the whole by name again.

    >>> from estero.language.syntax.parser import parse_query
    >>> tree = parse_query("SELECT * WHERE a ; b FILTER duration > 5 AND k > 1 PARTITION BY [k, n]")
    >>> as_written(with_whole(tree, "t"), "t") == tree
    True
    """
    keys = [bracket.alternatives for bracket in tree.partition_by]

    def of_pattern(pattern: Pattern) -> Pattern:
        if not isinstance(pattern, Filter | Keep | PartitionBy):
            return pattern
        inner = replace(pattern, pattern=of_pattern(pattern.pattern))
        if not isinstance(inner, Filter):
            return inner
        return replace(inner, condition=condition_as_written(inner.condition, time, keys))

    return replace(tree, pattern=of_pattern(tree.pattern))


def condition_as_written(
    condition: e.Node, time: str | None = None, keys: Iterable[tuple[str, ...]] = ()
) -> e.Node:
    """A condition changed by `with_whole`, with values of the whole by name again.

    `keys` are the alternatives of each partition key.
    """
    known = {tuple(e.Attribute(name, END_OF) for name in alternatives) for alternatives in keys}
    clock = time or TIME_OF
    lasted = e.Arithmetic("-", e.Attribute(clock, END_OF), e.Attribute(clock, START_OF))

    def named(node: e.Node) -> e.Node | None:
        match node:
            case e.Arithmetic() if node == lasted:
                return e.Attribute(DURATION, span=node.span)
            case e.Call("coalesce", (e.Attribute(name), *_)) if node.arguments in known:
                return e.Attribute(name, span=node.span)
            case e.Attribute(name, variable=variable) if name == DEADLINE and variable == END_OF:
                return e.Attribute(DECIDED_TIME, span=node.span)
            case e.Attribute(name, variable=variable) if variable in ENDS:
                at = {START_OF: START_TIME, END_OF: END_TIME}[str(variable)]
                return e.Attribute(at if name == clock else name, span=node.span)
            case _:
                return None

    return e.substituted(condition, named)


def speaks_of_whole(pattern: Pattern) -> bool:
    """Whether a filter of a pattern changed by `with_whole` is on the whole complex event."""
    return any(
        getattr(node, "variable", None) in ENDS
        for part in pattern.walk()
        if isinstance(part, Filter)
        for node in part.condition.walk()
    )


def _changed(pattern: Pattern, values: Mapping[str, e.Node]) -> Pattern:
    if not isinstance(pattern, Filter | Keep | PartitionBy):
        return pattern
    inner = _changed(pattern.pattern, values)
    if not isinstance(pattern, Filter):
        return pattern if inner is pattern.pattern else replace(pattern, pattern=inner)

    def change(node: e.Node) -> e.Node | None:
        if isinstance(node, e.EventFilter | e.Aggregate | e.Previous | e.SetPredicate):
            return node  # their attributes are those of events
        if isinstance(node, e.Attribute) and node.variable is None and node.name in values:
            return _at(values[node.name], node)
        return None

    condition = e.substituted(pattern.condition, change)
    if inner is pattern.pattern and condition == pattern.condition:
        return pattern
    return replace(pattern, pattern=inner, condition=condition)


def _at(value: e.Node, place: e.Node) -> e.Node:
    """A value whose nodes have the span of the word for it."""
    placed = e.substituted(
        value, lambda part: replace(part, span=place.span) if isinstance(part, e.Attribute) else None
    )
    return replace(placed, span=place.span)
