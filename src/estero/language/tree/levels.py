"""How far a sequence can come: its levels, and the query of what it takes to reach one of them."""

from __future__ import annotations

from dataclasses import replace

from estero.language.tree.conditions import conjoined, conjuncts, variables_of
from estero.language.tree.pattern import (
    Filter,
    Keep,
    Optional,
    PartitionBy,
    Pattern,
    Sequence,
)
from estero.language.tree.query import Consume, QueryTree, Strategy
from estero.language.tree.selection import label_types


def levels_of(pattern: Pattern) -> tuple[int, ...]:
    """For each level of a pattern how many parts of its sequence reach it; empty if it is no sequence.

    The sequence stands inside the pattern's tails (FILTER, KEEP, PARTITION BY). An optional part belongs to
    the part behind it, and to the last level where there is none behind.

    >>> from estero.language.syntax.parser import parse_pattern
    >>> levels_of(parse_pattern("a ; b? ; c+ ; d FILTER a[k > 1]")), levels_of(parse_pattern("a OR b"))
    ((1, 3, 4), ())
    """
    inside = _inside_tails(pattern)
    if not isinstance(inside, Sequence):
        return ()
    reached = [number for number, part in enumerate(inside.parts, 1) if not isinstance(part, Optional)]
    return (*reached[:-1], len(inside.parts)) if len(reached) > 1 else ()


def prefix_query(tree: QueryTree, parts: int) -> QueryTree:
    """The query of the first `parts` parts of a sequence: what a complex event of `tree` begins with.

    It asks for those conjuncts of the filters that speak only of variables in these parts, has the same
    partitions and window, and neither strategy nor limit.

    >>> from estero.language.syntax.parser import parse_query
    >>> whole = parse_query("SELECT MAX * WHERE a ; b ; c FILTER a.k = b.k AND b.k = c.k WITHIN 9 EVENTS")
    >>> print(prefix_query(whole, 2))
    SELECT * WHERE a ; b FILTER a.k = b.k WITHIN 9 EVENTS
    """
    return replace(
        tree,
        pattern=_prefix(tree.pattern, parts),
        select=None,
        strategy=Strategy.ALL,
        consume=Consume.NONE,
        limit=None,
        text="",
    )


def _inside_tails(pattern: Pattern) -> Pattern:
    while isinstance(pattern, Filter | Keep | PartitionBy):
        pattern = pattern.pattern
    return pattern


def _prefix(pattern: Pattern, parts: int) -> Pattern:
    match pattern:
        case Sequence():
            if parts == 1:
                return pattern.parts[0]
            return replace(pattern, parts=pattern.parts[:parts], links=pattern.links[: parts - 1])
        case Filter(pattern=inner, condition=condition):
            begun = _prefix(inner, parts)
            bound = set(label_types(begun))
            asked = conjoined(each for each in conjuncts(condition) if variables_of(each) <= bound)
            return begun if asked is None else replace(pattern, pattern=begun, condition=asked)
        case Keep(pattern=inner, labels=labels):
            begun = _prefix(inner, parts)
            bound = set(label_types(begun))
            return replace(pattern, pattern=begun, labels=tuple(each for each in labels if each in bound))
        case PartitionBy(pattern=inner, keys=keys):
            begun = _prefix(inner, parts)
            bound = set(label_types(begun))
            left = tuple(key for key in keys if key.variable is None or key.variable in bound)
            return replace(pattern, pattern=begun, keys=left) if left else begun
        case _:
            raise TypeError(f"not a sequence with tails: {pattern!r}")
