"""Checks of ORDER BY: the criteria by which the best complex events of an answer are chosen."""

from __future__ import annotations

from estero.errors import NOWHERE
from estero.language.check.problems import Problems
from estero.language.tree import expressions as e
from estero.language.tree import query as q
from estero.language.tree.names import suggestion
from estero.language.tree.selection import END_TIME, START_TIME, bound_names
from estero.language.tree.whole import DURATION

_WHOLE = (DURATION, START_TIME, END_TIME)
_EVENTS = 'events are ordered where they are given: time="…" and order=[…], --time and --order'
_KNOWN = "duration, start_time, end_time, sum(x.price), count(x), or a column that SELECT computes so"


def ranked_by(tree: q.QueryTree, ranking: q.Ranking) -> str | None:
    """The text by which `Answer.top` ranks; None for a criterion that it does not support."""
    match _meant(tree, ranking.by):
        case e.Attribute(name, None) if name in _WHOLE:
            return name
        case e.Aggregate("count", label, None, False):
            return f"count({label})"
        case e.Aggregate("sum" | "count" as function, label, e.Attribute(name, None), False):
            return f"{function}({label}.{name})"
    return None


def _meant(tree: q.QueryTree, by: e.Node) -> e.Node:
    """The expression of a column, if this is the name of one."""
    computed = {
        item.name: item.expression for item in tree.select or () if isinstance(item, q.SelectExpression)
    }
    return computed.get(by.name, by) if isinstance(by, e.Attribute) and by.variable is None else by


def check_ranking(tree: q.QueryTree, ranking: q.Ranking, problems: Problems) -> None:
    """Notes errors of ORDER BY."""
    by, place = _meant(tree, ranking.by), ranking.by.span
    if ranked_by(tree, ranking) is None:
        names = [*_WHOLE, *(item.name for item in tree.select or () if isinstance(item, q.SelectExpression))]
        near = "of several events there is one value: sum(x.price)"
        if isinstance(by, e.Attribute):
            near = suggestion(by.name, names) or _EVENTS
        problems.add(
            f"complex events are not ordered by {ranking.by}",
            place,
            expected=_KNOWN,
            hint=near,
        )
    elif isinstance(by, e.Aggregate) and by.variable not in bound_names(tree.pattern):
        near = suggestion(by.variable, bound_names(tree.pattern))
        problems.add(f"no event is marked {by.variable}", place, expected="a label of the pattern", hint=near)
    if tree.limit is None:
        problems.add(
            "ORDER BY needs LIMIT",
            tree.places.get("ORDER BY", NOWHERE),
            expected=f"ORDER BY {ranking} LIMIT 10",
            hint="LIMIT says how many of the best are given",
        )
    if tree.per is not None:
        problems.add(
            "after ORDER BY, LIMIT applies to the whole answer",
            tree.places.get("PER", NOWHERE),
            expected="LIMIT without PER",
            hint="leave PER out, or ORDER BY",
        )
