"""The depth of a tree, which is limited for every tree, as passes recurse through it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from estero.errors import QueryError
from estero.language.tree.expressions import (
    And,
    Attribute,
    Ilike,
    In,
    IsNull,
    Like,
    Literal,
    Matches,
    Node,
    Or,
)
from estero.language.tree.pattern import Filter, Pattern

MAXIMUM_DEPTH: Final = 100
"""The deepest tree; chains of one operator are one level, so this counts nested parentheses."""
_LEAVES: Final = frozenset({Literal, Attribute})
_OF_PARTS: Final = frozenset({And, Or})
_OF_ONE: Final = frozenset({Like, Ilike, Matches, IsNull})


def depth_of(*roots: Pattern | Node) -> int:
    """The levels of the deepest of these trees; raises `QueryError` for one too deep for passes.

    >>> from estero.language.syntax.parser import parse_condition
    >>> depth_of(parse_condition("a = 1")), depth_of(parse_condition("a + 1 = b AND c"))
    (2, 4)
    """
    level = list(roots)
    for depth in range(MAXIMUM_DEPTH + 1):
        if not level:
            return depth
        above, level = level, [child for node in level for child in _below(node)]
    raise QueryError(
        f"this is nested more than {MAXIMUM_DEPTH} levels deep",
        span=above[0].span,
        found="a deeper level",
        expected=f"at most {MAXIMUM_DEPTH} levels of operators",
        hint="chains of ; : OR AND ALL count as one level; a sum of many terms does not",
    )


def known_depth(depth: int) -> int:
    """A depth that is known, so that a long chain is not walked for each of its parts; 0 for a wrong one."""
    return depth if depth <= MAXIMUM_DEPTH else 0


def _below(node: Any) -> Sequence[Pattern | Node]:
    """The nodes one level deeper, but for constants in a set, whose operand is as deep at least.

    The first cases, as of most nodes, only save time.
    """
    kind = type(node)
    if kind in _LEAVES:
        return ()
    if kind in _OF_PARTS:
        parts: Sequence[Node] = node.parts
        return parts
    if kind in _OF_ONE:
        return (node.operand,)
    if kind is In:
        return (node.operand, *[member for member in node.members if type(member) is not Literal])
    return [*node.children(), node.condition] if isinstance(node, Filter) else node.children()
