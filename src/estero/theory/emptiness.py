"""Emptiness of queries: whether a query can match on any stream, and the part that makes it empty."""

from __future__ import annotations

from estero.automata.cea import CEA, FIRST
from estero.automata.compile.compile_pattern import compile_pattern
from estero.language.tree.distances import EventWindow
from estero.language.tree.pattern import Pattern, Unless, shortened
from estero.language.tree.query import QueryTree
from estero.language.tree.selection import marking
from estero.theory.event_kinds import kinds_of
from estero.theory.inclusion import shortest


def why_never(tree: QueryTree, cea: CEA) -> str:
    """The reason why a query matches on no stream, as a sentence that names the part; empty if it can match.

    `cea` is its automaton. Comparisons of several events are ignored. Raises `LimitExceeded` if conditions
    distinguish too many kinds of events.
    """
    length = _shortest(cea)
    if length is None:
        return f"this query never matches: {_why_empty(tree)}"
    window = tree.window
    if isinstance(window, EventWindow) and length - 1 > window.events:
        return (
            f"this query never matches: its complex events take {length} events or more, "
            f"and WITHIN {window} allows {window.events + 1}"
        )
    return ""


def _why_empty(tree: QueryTree) -> str:
    cea = compile_pattern(tree.pattern, tree.streams).automaton
    if _shortest(cea) is not None:
        return "the marked events of its complex events never follow one another directly, as STRICT asks"
    part = _smallest_empty(tree.pattern, tree.streams)
    for predicate in compile_pattern(part, tree.streams).automaton.predicates:
        if predicate != FIRST and not any(kind.bits for kind in kinds_of([predicate])):
            return f"no event satisfies {predicate}"
    return f"no complex event matches {shortened(part)}"


def _smallest_empty(pattern: Pattern, streams: tuple[str, ...]) -> Pattern:
    """The first smallest part of an empty pattern that is empty by itself; else the pattern itself."""
    for part in [pattern.pattern] if isinstance(pattern, Unless) else marking(pattern):
        if _shortest(compile_pattern(part, streams).automaton) is None:
            return _smallest_empty(part, streams)
    return pattern


def _shortest(cea: CEA) -> int | None:
    return shortest(cea, {kind.bits for kind in kinds_of(cea.predicates)})
