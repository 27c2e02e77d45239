"""The reference meaning of partial matches and funnels (semantics-2.md, "How far it came")."""

from __future__ import annotations

from collections.abc import Sequence

from estero.errors import QueryError
from estero.language.tree.distances import DurationWindow, EventWindow, Window
from estero.language.tree.levels import levels_of, prefix_query
from estero.language.tree.query import QueryTree
from estero.language.tree.whole import with_whole
from estero.reference.queries import (
    ComplexEvent,
    Event,
    earliest_difference,
    evaluate_query,
)


def evaluate_levels(tree: QueryTree, events: Sequence[Event], *, tick: int = 1) -> dict[int, int]:
    """The level that each start reaches, for those that reach any: n where it starts a complex event.

    Raises `QueryError` for a query without a window, or of a pattern that is no sequence.
    """
    reached: dict[int, int] = {}
    for level, query in enumerate(_queries(tree), 1):
        for found in evaluate_query(query, events, tick=tick).values():
            reached |= {each.start: level for each in found}
    return reached


def evaluate_funnel(tree: QueryTree, events: Sequence[Event], *, tick: int = 1) -> list[int]:
    """How many starts reach at least each level."""
    reached = evaluate_levels(tree, events, tick=tick).values()
    return [sum(level >= least for level in reached) for least in range(1, len(_queries(tree)) + 1)]


def evaluate_partials(
    tree: QueryTree, events: Sequence[Event], *, tick: int = 1, known: int | None = None
) -> dict[int, tuple[int, set[ComplexEvent]]]:
    """For each start whose window has passed, short of the last level: its level and what NEXT would choose.

    Several complex events are chosen where they mark the same events; any one of them is right. `known` is
    the greatest time that is known, that of the last event unless it is given.
    """
    queries = _queries(tree)
    partials = {}
    for start, level in evaluate_levels(tree, events, tick=tick).items():
        if level == len(queries) or not _has_passed(tree.window, start, events, tick, known):
            continue
        candidates = {
            each
            for found in evaluate_query(queries[level - 1], events, tick=tick).values()
            for each in found
            if each.start == start
        }
        best = max((each.support for each in candidates), key=earliest_difference)
        partials[start] = level, {each for each in candidates if each.support == best}
    return partials


def _queries(tree: QueryTree) -> list[QueryTree]:
    """For each level the query that finds what reaches it; the last is the whole query."""
    tree = with_whole(tree)
    if tree.window is None:
        raise QueryError("how far a pattern came is told when its window has passed, and it has none")
    levels = levels_of(tree.pattern)
    if not levels:
        raise QueryError("only a sequence comes some of the way", span=tree.pattern.span)
    return [*(prefix_query(tree, parts) for parts in levels[:-1]), tree]


def _has_passed(
    window: Window | None, start: int, events: Sequence[Event], tick: int, known: int | None
) -> bool:
    if isinstance(window, EventWindow):
        return len(events) - 1 > start + window.events
    begun, last = events[start].time, events[-1].time if known is None else known
    if begun is None or last is None or window is None:
        raise QueryError("the window needs the time of each event")
    if isinstance(window, DurationWindow):
        return (last - begun) * tick > window.nanoseconds
    return last - begun > window.ticks
