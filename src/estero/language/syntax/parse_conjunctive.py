"""Text → the syntax tree of a conjunctive query, by the grammar in conjunctive.lark."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from estero.errors import QueryError, Span
from estero.language.syntax import assemble, assemble_condition, assemble_pattern
from estero.language.syntax.assemble_condition import name_of, span_of
from estero.language.syntax.parse import check_characters
from estero.language.tree.conjunctive import Anything, Argument, Atom, ConjunctiveTree, Term, Variable
from estero.language.tree.names import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from lark import Lark, Token, Tree

    Children = list[Any]

_START: Final = "conjunctive_query"


def parse_conjunctive(text: str) -> ConjunctiveTree:
    """The syntax tree of a conjunctive query, with spans into `text`.

    Raises `QueryError` with place, what was found and expected, and a hint.

    >>> print(parse_conjunctive("Q(x, y) <- T(x), S(x,y), R(k: x, l: y) as r within 10 events"))
    Q(x, y) <- T(x), S(x, y), R(k: x, l: y) AS r WITHIN 10 EVENTS
    """
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput

    from estero.language.syntax.syntax_errors import syntax_error

    try:
        check_characters(text)
        tree: ConjunctiveTree = _built(parser().parse(text), text)
    except UnexpectedCharacters as problem:
        place = problem.pos_in_stream or 0
        if text[place] == "=":
            raise _equality(text, place) from None
        raise syntax_error(problem, text, _START, parser(), _hint) from None
    except UnexpectedInput as problem:
        raise syntax_error(problem, text, _START, parser(), _hint) from None
    except QueryError as error:
        error.text = text
        raise
    return tree


@cache
def parser() -> Lark:
    """The parser of conjunctive.lark, made once."""
    from lark import Lark

    grammar = resources.files(__package__).joinpath("conjunctive.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="basic", start=_START, propagate_positions=True)


def _built(node: Tree[Token], text: str) -> Any:
    """What a parse tree means; no tree is deeper than five levels."""
    children = [child if isinstance(child, str) else _built(child, text) for child in node.children]
    span = Span(node.meta.start_pos, node.meta.end_pos)
    if node.data == _START:
        return _conjunctive(children, text)
    return PRODUCTIONS[str(node.data)](children, span)


def _conjunctive(children: Children, text: str) -> ConjunctiveTree:
    (name, head), *rest = children
    clauses = {child.name: child for child in rest if not isinstance(child, Atom)}
    return ConjunctiveTree(
        name,
        head,
        tuple(child for child in rest if isinstance(child, Atom)),
        clauses["FROM"].value if "FROM" in clauses else (),
        clauses["WITHIN"].value if "WITHIN" in clauses else None,
        clauses["LIMIT"].value if "LIMIT" in clauses else None,
        text=text,
        places={clause: found.span for clause, found in clauses.items()},
    )


def _head(children: Children, _span: Span) -> tuple[str, tuple[Variable, ...]]:
    name, *variables = children
    for each in variables:
        if str(each) == "_":
            raise QueryError(
                "_ stands for a value that does not matter, so it is not in the head",
                span=span_of(each),
                found="_",
                expected="the variables of the body",
                hint="leave it out of the head",
            )
    return name_of(name), tuple(Variable(name_of(each), span=span_of(each)) for each in variables)


def _atom(children: Children, span: Span) -> Atom:
    relation, *rest = children
    arguments = tuple(child for child in rest if isinstance(child, Argument))
    label = name_of(rest[-1]) if len(rest) > len(arguments) else None
    return Atom(relation, arguments, label, span=span)


def _argument(children: Children, span: Span) -> Argument:
    return Argument(children[0], span=span)


def _named_argument(children: Children, span: Span) -> Argument:
    return Argument(children[1], name_of(children[0]), span=span)


def _variable(children: Children, span: Span) -> Term:
    return Anything(span=span) if str(children[0]) == "_" else Variable(name_of(children[0]), span=span)


def _hint(token: Token, accepted: set[str], before: str) -> str:
    """How to mend what stands in the wrong place."""
    from estero.language.syntax.clauses import unclosed

    opened = unclosed(before)
    if not before:
        return "the shortest query is Q(x) <- T(x)"
    if "_IMPLIED_BY" in accepted:
        return "between the head and the atoms stands <-"
    if opened is not None and (token.type in ("$END", "WITHIN", "LIMIT", "FROM", "_IMPLIED_BY")):
        return f"the {before[opened]!r} at character {opened + 1} is not closed"
    if opened is not None:
        return "the arguments of an atom are variables, constants and _, separated by commas: T(x, 5, _)"
    if token.type == "NAME":
        words = suggestion(token.upper(), ("FROM", "WITHIN", "LIMIT"))
        return words or "atoms are separated by commas"
    if token.type in ("FROM", "WITHIN", "LIMIT") and "_LPAR" not in accepted and not before.endswith(","):
        return "the clauses stand in this order, each once: FROM, WITHIN, LIMIT"
    return "an atom is a type with its arguments in parentheses: T(x, y)"


def _equality(text: str, place: int) -> QueryError:
    return QueryError(
        "equality has no sign here",
        text=text,
        span=Span(place, place + 1),
        found="=",
        expected="the same variable, or a constant, in both places",
        hint="T(k: x) names the attribute k, T(k: 5) asks it to be 5, and two atoms with x share a value",
    )


_SHARED: Final = ("from_clause", "within_clause", "span_window", "attribute_window", "whole_number")
PRODUCTIONS: Final[dict[str, Callable[[Children, Span], Any]]] = {
    **{name: assemble.PRODUCTIONS[name] for name in (*_SHARED, "limit_clause")},
    **{name: assemble_pattern.PRODUCTIONS[name] for name in ("event_type", "stream_type")},
    "constant": assemble_condition.PRODUCTIONS["negative_constant"],
    "head": _head,
    "atom": _atom,
    "argument": _argument,
    "named_argument": _named_argument,
    "variable": _variable,
}
"""What each production but the first builds, from its children and its span."""
