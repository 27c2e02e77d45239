"""Levels of a sequence for partial matches, and the query for each level."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from estero.errors import QueryError
from estero.language.tree.conditions import conjoined, conjuncts, variables_of
from estero.language.tree.pattern import (
    Filter,
    Iteration,
    Keep,
    Optional,
    PartitionBy,
    Pattern,
    Sequence,
    Unless,
    with_children,
)
from estero.language.tree.query import Consume, QueryTree, Strategy
from estero.language.tree.selection import label_types


def levels_of(pattern: Pattern) -> tuple[int, ...]:
    """The numbers of parts that reach each level of a pattern; empty if it is not a sequence.

    The sequence stands inside the pattern's tails (FILTER, KEEP, PARTITION BY). An optional part belongs to
    the part behind it, and to the last level where there is none behind.

    >>> from estero.language.syntax.parser import parse_pattern
    >>> levels_of(parse_pattern("a ; b? ; c+ ; d FILTER a[k > 1]")), levels_of(parse_pattern("a OR b"))
    ((1, 3, 4), ())
    """
    inside = inside_tails(pattern)
    if not isinstance(inside, Sequence):
        return ()
    reached = [number for number, part in enumerate(inside.parts, 1) if not isinstance(part, Optional)]
    return (*reached[:-1], len(inside.parts)) if len(reached) > 1 else ()


def parts_of(pattern: Pattern) -> tuple[str, ...]:
    """The texts of the parts that lead from each level to the next.

    >>> from estero.language.syntax.parser import parse_pattern
    >>> parts_of(parse_pattern("a ; b? ; c+ ; d FILTER a[k > 1]"))
    ('a', 'b? ; c+', 'd')
    """
    inside, levels = inside_tails(pattern), (0, *levels_of(pattern))
    if not isinstance(inside, Sequence):
        return ()
    return tuple(str(_between(inside, first, last)) for first, last in pairwise(levels))


def _between(sequence: Sequence, first: int, last: int) -> Pattern:
    """The parts from number `first` to before `last`; a sequence where these are several."""
    before = sequence.before if first == 0 else ()
    after = sequence.after if last == len(sequence.parts) else ()
    if last - first == 1 and not (before or after):
        return sequence.parts[first]
    parts, links = sequence.parts[first:last], sequence.links[first : last - 1]
    return replace(sequence, parts=parts, links=links, before=before, after=after)


def prefix_query(tree: QueryTree, parts: int) -> QueryTree:
    """The query for the first `parts` parts of a sequence, the beginning of complex events of `tree`.

    It keeps the conjuncts of the filters that only have variables of these parts, and has the same
    partitions and window, but no strategy and no limit. Raises `QueryError` if an absence in
    these parts depends on a later one.

    >>> from estero.language.syntax.parser import parse_query
    >>> whole = parse_query("SELECT MAX * WHERE a ; b ; c FILTER a.k = b.k AND b.k = c.k WITHIN 9 EVENTS")
    >>> print(prefix_query(whole, 2))
    SELECT * WHERE a ; b FILTER a.k = b.k WITHIN 9 EVENTS
    """
    pattern = _of_what_is_bound(_prefix(tree.pattern, parts), set())
    return replace(unchosen(tree), pattern=pattern, select=None)


def unchosen(tree: QueryTree) -> QueryTree:
    """The query for all complex events: without strategy, DISJOINT, LIMIT and CONSUME BY.

    >>> from estero.language.syntax.parser import parse_query
    >>> print(unchosen(parse_query("SELECT LONGEST DISJOINT a WHERE a ; b WITHIN 9 EVENTS LIMIT 3")))
    SELECT a WHERE a ; b WITHIN 9 EVENTS
    """
    return replace(
        tree,
        strategy=Strategy.ALL,
        disjoint=False,
        consume=Consume.NONE,
        limit=None,
        per=None,
        text="",
    )


def inside_tails(pattern: Pattern) -> Pattern:
    """The pattern inside of FILTER, KEEP and PARTITION BY."""
    while isinstance(pattern, Filter | Keep | PartitionBy):
        pattern = pattern.pattern
    return pattern


def _prefix(pattern: Pattern, parts: int) -> Pattern:
    match pattern:
        case Sequence():
            return _between(pattern, 0, parts)
        case Filter(pattern=inner):
            return replace(pattern, pattern=_prefix(inner, parts))
        case Keep(pattern=inner, labels=labels):
            begun = _prefix(inner, parts)
            bound = set(label_types(begun))
            return replace(pattern, pattern=begun, labels=tuple(label for label in labels if label in bound))
        case PartitionBy(pattern=inner, keys=keys):
            begun = _prefix(inner, parts)
            bound = set(label_types(begun))
            left = tuple(key for key in keys if key.variable is None or key.variable in bound)
            return replace(pattern, pattern=begun, keys=left) if left else begun
        case _:
            raise TypeError(f"not a sequence with tails: {pattern!r}")


def _of_what_is_bound(pattern: Pattern, outside: set[str]) -> Pattern:
    """The pattern without conjuncts on variables bound neither in it nor `outside`."""
    inside = outside | set(label_types(pattern))
    negated = _negated(pattern)

    def changed(part: Pattern) -> Pattern:
        left = _of_what_is_bound(part, inside)
        if part in negated and left != part:
            raise QueryError(
                "partial matches of this pattern are undefined: a forbidden event depends on a later part",
                span=part.span,
                hint="let NOT(…) depend only on the parts before it",
            )
        return left

    whole = with_children(pattern, changed)
    if not isinstance(whole, Filter):
        return whole
    asked = conjoined(conjunct for conjunct in conjuncts(whole.condition) if variables_of(conjunct) <= inside)
    return whole.pattern if asked is None else replace(whole, condition=asked)


def _negated(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns directly below this one that must be absent."""
    match pattern:
        case Unless(forbidden=forbidden):
            return (forbidden,)
        case Sequence(parts=parts):
            return tuple(child for child in pattern.children() if not any(child is part for part in parts))
        case Iteration(step=step):
            return step.absent
        case _:
            return ()
