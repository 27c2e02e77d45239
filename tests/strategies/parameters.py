"""Queries with parameters in the place of their constants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from estero.errors import NOWHERE
from estero.language.tree import expressions as e
from estero.language.tree import pattern as p
from estero.language.tree.nodes import SyntaxNode, with_changed
from estero.language.tree.parameters import OpenNumber
from estero.language.tree.query import QueryTree


def with_parameters(tree: QueryTree) -> tuple[str, dict[str, object]]:
    """The text of a query with parameters for the constants of its pattern and SELECT, and their values."""
    opening = _Opening()
    select = None if tree.select is None else tuple(map(opening.part, tree.select))
    return str(replace(tree, pattern=opening.part(tree.pattern), select=select)), opening.values


class _Opening:
    """Puts parameters in the place of constants, and remembers their values."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}

    def _named(self, value: object) -> str:
        name = f"p{len(self.values)}"
        self.values[name] = value
        return name

    def node(self, node: e.Node) -> e.Node | None:
        if isinstance(node, e.In):
            members = [each.value for each in node.members if isinstance(each, e.Literal)]
            alike = len(set(map(type, members))) == 1 and len(set(members)) == len(node.members)
            return e.InList(node.operand, e.ListOf(self._named(members))) if alike else None
        if isinstance(node, e.Literal) and node.value is not None:
            return e.Parameter(None, self._named(node.value))
        return None

    def number(self, value: int) -> OpenNumber:
        return OpenNumber.of(self._named(value), NOWHERE)

    def part(self, part: Any) -> Any:
        if isinstance(part, p.Iteration):
            least = self.number(part.minimum)
            most = None if part.maximum is None else self.number(part.maximum)
            part = replace(part, minimum=least, maximum=most)
            return replace(part, pattern=self.part(part.pattern), step=self.part(part.step))
        if isinstance(part, e.Node):
            changed = self.node(part)
            return changed or with_changed(part, self.part)
        return with_changed(part, self.part) if isinstance(part, SyntaxNode) else part
