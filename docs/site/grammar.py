"""Railroad diagrams of a grammar, drawn from the file that the parser reads.

    ```{grammar} ceql
    ```

draws all productions of ``ceql.lark``, in its order and under the comments that part it, and behind them the
tokens. Names lead to their productions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Final

import lark
import railroad
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

GRAMMARS: Final = Path(__file__).parents[2] / "src" / "estero" / "language" / "syntax"
OF_GRAMMARS: Final = lark.Lark.open(
    str(Path(lark.__file__).parent / "grammars" / "lark.lark"), parser="lalr", maybe_placeholders=False
)
"""Lark's own grammar of grammars."""
SHOWN: Final = {"NAME", "QUOTED", "PARAMETER", "STRING", "FLOAT", "INT", "VARIABLE", "QUANTIFIER"}
"""Tokens that are drawn as a name, because what they stand for is a regular expression."""
KEYWORDS: Final = {
    "PER": "PER",
    "PERMUTE": "PERMUTE",
    "STRATEGY": "ANY | STRICT | MAX | NEXT | LAST | LONGEST | SHORTEST | DISJOINT",
    "_CASE": "CASE",
    "_DISTINCT": "DISTINCT",
    "_ELSE": "ELSE",
    "_END": "END",
    "_THEN": "THEN",
    "_WHEN": "WHEN",
}
"""Tokens that are keywords in one place only (language/syntax/cases.py)."""


@dataclass(frozen=True, slots=True)
class Production:
    """One rule of a grammar."""

    name: str
    body: lark.Tree[lark.Token]


def productions(grammar: str) -> list[Production]:
    """The rules of a grammar in the order of its file, then those that it imports.

    Rules whose names begin with ``_`` only shorten others, in which the parser and the diagrams have them.
    """
    imported = set[str]()
    for statement in _parsed(grammar).find_data("multi_import"):
        tokens = statement.scan_values(lambda value: isinstance(value, lark.Token) and value.type == "RULE")
        imported |= {str(name) for name in tokens}
    ours = _rules(grammar)
    shared = {name: body for name, body in (_rules("shared") if imported else {}).items() if name in imported}
    rules = ours | shared
    parts = {name: body for name, body in rules.items() if name.startswith("_")}
    return [Production(name, _filled_in(body, parts)) for name, body in rules.items() if name not in parts]


def diagram(production: Production, words: dict[str, str], linked: str) -> str:
    """A production as SVG; names of others link to ``#`` and `linked` before them."""
    out = StringIO()
    railroad.Diagram(_Drawing(words, linked).drawn(production.body)).format(8).writeSvg(out.write)
    return out.getvalue()


def words_of(grammar: str) -> dict[str, str]:
    """What each token of a grammar is written as: ``_COMMA`` is ``,``; one of several, by ``|``."""
    words = dict(KEYWORDS)
    for name in ("shared", grammar):
        for token in _parsed(name).find_data("token"):
            literals = [str(literal.children[0]) for literal in token.find_data("literal")]
            name_of_token = str(token.children[0])
            if name_of_token not in KEYWORDS and name_of_token not in SHOWN:
                words[name_of_token] = " | ".join(map(_unquoted, literals))
    return words


def patterns_of(grammar: str) -> dict[str, str]:
    """The regular expressions of the tokens that are drawn as names."""
    return {
        str(token.children[0]): " | ".join(str(literal.children[0]) for literal in token.find_data("literal"))
        for source in ("shared", grammar)
        for token in _parsed(source).find_data("token")
        if token.children[0] in SHOWN
    }


def _parsed(grammar: str) -> lark.Tree[lark.Token]:
    return OF_GRAMMARS.parse((GRAMMARS / f"{grammar}.lark").read_text("utf-8"))


def _rules(grammar: str) -> dict[str, lark.Tree[lark.Token]]:
    """The bodies of the rules, in the order of the file."""
    rules = sorted(_parsed(grammar).find_data("rule"), key=_place)
    return {str(rule.children[0]).lstrip("!?"): _tree(rule.children[-1]) for rule in rules}


def _place(rule: lark.Tree[lark.Token]) -> int:
    """Where a rule begins in its file."""
    (name, *_) = rule.children
    return (name.start_pos or 0) if isinstance(name, lark.Token) else 0


def _tree(value: object) -> lark.Tree[lark.Token]:
    return value if isinstance(value, lark.Tree) else lark.Tree("expansion", [value])  # type: ignore[list-item]


def _filled_in(node: Any, parts: dict[str, lark.Tree[lark.Token]]) -> Any:
    """A body in which the names of `parts` are replaced by them."""
    if not isinstance(node, lark.Tree):
        return node
    if node.data == "name" and str(node.children[0]) in parts:
        return _filled_in(parts[str(node.children[0])], parts)
    return lark.Tree(node.data, [_filled_in(child, parts) for child in node.children])


def _unquoted(literal: str) -> str:
    if literal.startswith('"'):
        return literal.removesuffix("i").strip('"')
    return literal.strip("/").replace(r"\s*", "").replace("\\", "")


class _Drawing:
    """Turns the tree of a production into shapes."""

    def __init__(self, words: dict[str, str], linked: str) -> None:
        self._words, self._linked = words, linked

    def drawn(self, node: object) -> railroad.DiagramItem:
        if not isinstance(node, lark.Tree):
            raise TypeError(f"no part of a production: {node!r}")
        match str(node.data), node.children:
            case "expansions", ways:
                return railroad.Choice(0, *map(self.drawn, ways))
            case "alias", [way, *_]:
                return self.drawn(way)
            case "expansion", parts:
                return railroad.Sequence(*map(self.drawn, parts)) if parts else railroad.Skip()
            case "expr", [part, lark.Token() as sign, *_]:
                return {"?": railroad.Optional, "*": railroad.ZeroOrMore, "+": railroad.OneOrMore}[str(sign)](
                    self.drawn(part)
                )
            case "literal", [literal]:
                return railroad.Terminal(_unquoted(str(literal)))
            case "name", [lark.Token(type="TOKEN") as token]:
                name = str(token)
                return railroad.NonTerminal(name) if name in SHOWN else railroad.Terminal(self._words[name])
            case "name", [rule]:
                name = str(rule)
                return railroad.NonTerminal(name, href=f"#{self._linked}{name}")
            case kind, _:
                raise TypeError(f"a grammar with {kind} cannot be drawn")


class GrammarDirective(SphinxDirective):
    """``{grammar} name``: the diagrams of a grammar."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The diagrams, and what the tokens stand for."""
        name = self.arguments[0]
        for source in (name, "shared"):
            self.env.note_dependency(str(GRAMMARS / f"{source}.lark"))
        return list(self._diagrams(name))

    def _diagrams(self, name: str) -> Iterator[nodes.Node]:
        words, linked = words_of(name), f"{name}-"
        for production in productions(name):
            anchor = f"{linked}{production.name}"
            title = nodes.paragraph("", "", nodes.strong(text=production.name), ids=[anchor])
            yield title
            drawing = f'<div class="railroad">{diagram(production, words, linked)}</div>'
            yield nodes.raw("", drawing, format="html")
        tokens = nodes.definition_list()
        for token, pattern in patterns_of(name).items():
            meaning = nodes.paragraph("", "", nodes.literal(text=pattern))
            tokens += nodes.definition_list_item("", nodes.term(text=token), nodes.definition("", meaning))
        yield tokens


def setup(app: Sphinx) -> ExtensionMetadata:
    """Registers the directive."""
    app.add_directive("grammar", GrammarDirective)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
