"""Texts that differ in their constants alone: those of one shape are parsed once.

The shape of a text is the text with the shortest constant in the place of each string and number. Which
productions a text consists of depends on the kinds of its tokens alone, and these are the same in both.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from estero.errors import Span
from estero.language.syntax.productions import Production, span_of

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

_SHORTEST: Final = {"STRING": "''", "FLOAT": "0.0e0", "INT": "0"}
"""A constant of each kind, which a text behind it cannot make longer."""
_WHOLE: Final = ("COMMENT", "QUOTED", "PARAMETER", "NAME", *_SHORTEST)
"""The kinds of tokens inside which no constant begins; all others are signs."""
_LONGEST: Final = 2_000
"""Longer texts are lists of constants, which hardly ever have a shape in common."""
_COMPARING: Final = ("comparison", "in", "not_in")
_MOST: Final = 512
"""The most shapes that are remembered."""
_DIGITS: Final = 18
"""Integers of so many digits fit in 64 bits."""

Constants = Sequence[re.Match[str]]
"""The constants of a text, in order, by the names of their kinds."""


class _Place(NamedTuple):
    """A place in the text of a shape, and the number of constants that end before it."""

    offset: int
    constants: int

    def moved(self, by: Sequence[int]) -> int:
        """The same place in a text that is longer by so much behind each number of constants."""
        return self.offset + by[self.constants]


class _Piece(NamedTuple):
    """A token of a shape: its kind, its text, or the number of the constant that it is."""

    kind: str
    text: str | int
    start: _Place
    end: _Place


class _Step(NamedTuple):
    """A production, and what is below it: the places of tokens and of the results of earlier steps."""

    build: Production
    children: tuple[int, ...]
    start: _Place
    end: _Place


class Shape:
    """How the texts of one shape become syntax trees.

    `plain` are the constants, by number, that stand beside an attribute in a comparison or behind IN.
    """

    def __init__(
        self, tree: Tree[Token], constants: Constants, productions: Mapping[str, Production]
    ) -> None:
        ends = [constant.end() for constant in constants]
        numbers = {constant.start(): number for number, constant in enumerate(constants)}

        def place(offset: int) -> _Place:
            return _Place(offset, bisect_right(ends, offset))

        nodes = _bottom_up(tree)
        tokens = [child for node in nodes for child in node.children if isinstance(child, str)]
        places = {id(part): number for number, part in enumerate([*tokens, *nodes])}
        self._pieces = [
            _Piece(
                token.type,
                numbers[span.start] if token.type in _SHORTEST else str(token),
                place(span.start),
                place(span.end),
            )
            for token in tokens
            for span in (span_of(token),)
        ]
        self._steps = [
            _Step(
                productions[str(node.data)],
                tuple(places[id(child)] for child in node.children),
                place(node.meta.start_pos),
                place(node.meta.end_pos),
            )
            for node in nodes
        ]
        self.plain = sorted(numbers[start] for node in nodes for start in _beside_attribute(node))

    def built(self, constants: Constants) -> Any:
        """The syntax tree of the text with these constants.

        Raises `QueryError`, without its text, for constructs that only the grammar allows.
        """
        from lark import Token

        longer = (len(constant[0]) - len(_SHORTEST[constant.lastgroup or ""]) for constant in constants)
        by = [0, *accumulate(longer)]
        values: list[Any] = [
            Token(
                kind,
                text if isinstance(text, str) else constants[text][0],
                start_pos=start.moved(by),
                end_pos=end.moved(by),
            )
            for kind, text, start, end in self._pieces
        ]
        for build, children, start, end in self._steps:
            values.append(build([values[child] for child in children], Span(start.moved(by), end.moved(by))))
        return values[-1]


class Shaped(NamedTuple):
    """A text as a shape and the constants in it."""

    text: str
    shape: Shape
    constants: Constants

    def built(self) -> Any:
        """The syntax tree of the text, as `Shape.built`."""
        return self.shape.built(self.constants)

    def outline(self) -> str:
        """The text with the shortest constants in the place of strings and short integers beside attributes.

        Of these constants checks look at the kinds alone.
        """
        outline, end = "", 0
        for number in self.shape.plain:
            constant = self.constants[number]
            if constant.lastgroup == "STRING" or len(constant[0]) <= _DIGITS:
                outline += self.text[end : constant.start()] + _SHORTEST[constant.lastgroup or ""]
                end = constant.end()
        return outline + self.text[end:]


class Shapes:
    """The shapes of the texts that were read last."""

    def __init__(self, lark: Lark, start: str, productions: Mapping[str, Production]) -> None:
        self._lark, self._start, self._productions = lark, start, productions
        kinds = (f"(?P<{kind}>{lark.get_terminal(kind).pattern.to_regexp()})" for kind in _WHOLE)
        self._tokens = re.compile("|".join(kinds))
        self._known = lru_cache(_MOST)(self._parsed)

    def shaped(self, text: str) -> Shaped | None:
        """What a text consists of; None for a long one, and one that cannot be parsed."""
        from lark.exceptions import UnexpectedInput

        if len(text) > _LONGEST:
            return None
        constants = []

        def shortest(token: re.Match[str]) -> str:
            kind = token.lastgroup
            if kind not in _SHORTEST:
                return token[0]
            constants.append(token)
            return _SHORTEST[kind]

        shape = self._tokens.sub(shortest, text)
        try:
            return Shaped(text, self._known(shape), constants)
        except UnexpectedInput:
            return None

    def _parsed(self, text: str) -> Shape:
        constants = [token for token in self._tokens.finditer(text) if token.lastgroup in _SHORTEST]
        return Shape(self._lark.parse(text, start=self._start), constants, self._productions)


def _bottom_up(tree: Tree[Token]) -> list[Tree[Token]]:
    """The productions of a parse tree, each behind those below it, without recursion."""
    nodes, stack = [], [tree]
    while stack:
        node = stack.pop()
        nodes.append(node)
        stack += [child for child in node.children if not isinstance(child, str)]
    return nodes[::-1]


def _beside_attribute(node: Tree[Token]) -> Iterator[int]:
    """Where the strings and integers begin that a production compares with an attribute."""
    below = [str(child.data) for child in node.children if not isinstance(child, str)]
    if node.data in _COMPARING and "attribute" in below:
        for child in node.children:
            if isinstance(child, str) and child.type in ("STRING", "INT"):
                yield span_of(child).start
