"""The depth of a tree, which is limited for every tree, as passes recurse through it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from estero.errors import QueryError
from estero.language.tree.expressions import Attribute, Literal, Node
from estero.language.tree.pattern import Filter, Pattern

MAXIMUM_DEPTH: Final = 100
"""The deepest tree; chains of one operator are one level, so this counts nested parentheses."""
_LEAVES: Final = frozenset({Literal, Attribute})


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
        above, level = level, [child for node in level if type(node) not in _LEAVES for child in _below(node)]
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


def _below(node: Pattern | Node) -> Sequence[Pattern | Node]:
    return [*node.children(), node.condition] if isinstance(node, Filter) else node.children()
