"""The reference meaning of partial matches and funnels.

How far a match came is a question about events, not about which complex events are chosen: neither the
strategy nor LIMIT matters. Events forgotten by CONSUME BY are invisible to all later ones, at every level.
"""

from __future__ import annotations

from collections.abc import Sequence

from estero.errors import QueryError
from estero.language.tree.distances import DurationWindow, EventWindow, Window
from estero.language.tree.levels import levels_of, prefix_query, unchosen
from estero.language.tree.query import Consume, QueryTree
from estero.language.tree.whole import with_whole
from estero.reference.queries import (
    ComplexEvent,
    Event,
    earliest_difference,
    evaluate_query,
    partitions_of,
)


def evaluate_levels(
    tree: QueryTree, events: Sequence[Event], *, tick: int = 1, chosen: bool = False
) -> dict[int, int]:
    """The level reached by each start that reaches any; n if it starts a complex event.

    With `chosen`, only complex events that the strategy and LIMIT choose count at level n. Raises
    `QueryError` for a query without a window, or of a pattern that is no sequence.
    """
    return {start: level for start, (level, _) in _furthest(tree, events, tick, chosen=chosen).items()}


def evaluate_funnel(
    tree: QueryTree, events: Sequence[Event], *, tick: int = 1, chosen: bool = False
) -> list[int]:
    """The numbers of starts that reach at least each level; see `evaluate_levels`."""
    reached = evaluate_levels(tree, events, tick=tick, chosen=chosen).values()
    return [sum(level >= least for level in reached) for least in range(1, len(_queries(tree)) + 1)]


def evaluate_partials(
    tree: QueryTree,
    events: Sequence[Event],
    *,
    tick: int = 1,
    known: int | None = None,
    chosen: bool = False,
) -> dict[int, tuple[int, set[ComplexEvent]]]:
    """The level and NEXT's choice for each start whose window has passed below the last level.

    Several complex events are chosen where they mark the same events; any one of them is right. `known` is
    the greatest time that is known, by default that of the last event. For `chosen` see `evaluate_levels`.
    """
    last = len(_queries(tree))
    partials = {}
    for start, (level, candidates) in _furthest(tree, events, tick, chosen=chosen).items():
        if level == last or not _has_passed(tree.window, start, events, tick, known):
            continue
        best = max((candidate.support for candidate in candidates), key=earliest_difference)
        partials[start] = level, {candidate for candidate in candidates if candidate.support == best}
    return partials


def _furthest(
    tree: QueryTree, events: Sequence[Event], tick: int, *, chosen: bool
) -> dict[int, tuple[int, set[ComplexEvent]]]:
    """The level of each start, with its complex events at that level."""
    queries = _queries(tree)
    answers = evaluate_query(tree, events, tick=tick)
    reached: dict[int, tuple[int, set[ComplexEvent]]] = {}
    for level, query in enumerate(queries, 1):
        of_query = answers
        if not (chosen and level == len(queries)):
            of_query = evaluate_query(query, events, tick=tick)
        seen = _seen(tree, events, answers, {candidate for group in of_query.values() for candidate in group})
        for start in {candidate.start for candidate in seen}:
            reached[start] = level, {candidate for candidate in seen if candidate.start == start}
    return reached


def _seen(
    tree: QueryTree,
    events: Sequence[Event],
    answers: dict[int, set[ComplexEvent]],
    candidates: set[ComplexEvent],
) -> set[ComplexEvent]:
    """The candidates whose start is not forgotten before their end: no answer ends in between."""
    if tree.consume is Consume.NONE:
        return candidates
    part_of = {
        position: number
        for number, part in enumerate(partitions_of(tree.partition_by, events))
        for position in part
    }

    def forgets(end: int, candidate: ComplexEvent) -> bool:
        here = tree.consume is Consume.ANY or part_of[end] == part_of[candidate.start]
        return here and candidate.start <= end < candidate.end

    return {candidate for candidate in candidates if not any(forgets(end, candidate) for end in answers)}


def _queries(tree: QueryTree) -> list[QueryTree]:
    """The query for each level; the last one has the whole pattern."""
    tree = with_whole(tree)
    if tree.window is None:
        raise QueryError("partial matches need a window: add WITHIN")
    levels = levels_of(tree.pattern)
    if not levels:
        raise QueryError("only a sequence can be matched in part", span=tree.pattern.span)
    return [*(prefix_query(tree, parts) for parts in levels[:-1]), unchosen(tree)]


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
