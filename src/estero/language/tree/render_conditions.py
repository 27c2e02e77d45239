"""Filters, predicates and expressions → canonical text."""

from __future__ import annotations

from estero.language.tree.expressions import (
    Aggregate,
    And,
    Arithmetic,
    Attribute,
    Between,
    Call,
    Comparison,
    EventFilter,
    In,
    IsNull,
    Like,
    Literal,
    Matches,
    Negative,
    Node,
    Not,
    Or,
    Range,
    SetPredicate,
    VariableReference,
)
from estero.language.tree.literals import literal_text
from estero.language.tree.words import quoted

OR, AND, NOT, COMPARISON, SUM, PRODUCT, SIGN, VALUE = range(8)
"""How tightly the operators of conditions bind, loosest first."""


def render_condition(node: Node) -> str:
    """The condition or expression in canonical text, to be read by `parse_condition`."""
    return _text(node, OR)


def _text(node: Node, least: int) -> str:
    """The text of a node, in parentheses if it binds looser than `least`."""
    level, text = _with_level(node)
    return text if level >= least else f"({text})"


def _with_level(node: Node) -> tuple[int, str]:
    match node:
        case Or(parts):
            return OR, " OR ".join(_text(part, AND) for part in parts)
        case And(parts):
            return AND, " AND ".join(_text(part, NOT) for part in parts)
        case Not(In() | Between() | Like() | IsNull() as test):
            return COMPARISON, _test(test, "NOT ")
        case Not(part):
            return NOT, f"NOT {_text(part, NOT)}"
        case Comparison() | In() | Between() | Like() | Matches() | IsNull():
            return COMPARISON, _test(node, "")
        case Arithmetic() | Negative():
            return _computed(node)
        case Literal(value):
            text = literal_text(value)
            return SIGN if text.startswith("-") else VALUE, text
        case _:
            return VALUE, _value(node)


def _computed(node: Arithmetic | Negative) -> tuple[int, str]:
    match node:
        case Arithmetic(operator, left, right) if operator in ("+", "-"):
            return SUM, f"{_text(left, SUM)} {operator} {_text(right, PRODUCT)}"
        case Arithmetic(operator, left, right):
            return PRODUCT, f"{_text(left, PRODUCT)} {operator} {_text(right, SIGN)}"
        case Negative(operand):
            return SIGN, _negative(operand)


def _test(node: Node, negation: str) -> str:
    match node:
        case Comparison(operator, left, right):
            return f"{_text(left, SUM)} {operator} {_text(right, SUM)}"
        case In(operand, members):
            return f"{_text(operand, SUM)} {negation}IN {{{', '.join(map(_member, members))}}}"
        case Between(operand, low, high):
            return f"{_text(operand, SUM)} {negation}BETWEEN {_text(low, SUM)} AND {_text(high, SUM)}"
        case Like(operand, pattern):
            return f"{_text(operand, SUM)} {negation}LIKE {literal_text(pattern)}"
        case Matches(operand, regex):
            return f"{_text(operand, SUM)} ~ {literal_text(regex)}"
        case IsNull(operand):
            return f"{_text(operand, SUM)} IS {negation}NULL"
        case _:
            raise TypeError(f"{type(node).__name__} is not a test of one value")


def _member(member: Literal | Range) -> str:
    if isinstance(member, Range):
        return f"{literal_text(member.low.value)}..{literal_text(member.high.value)}"
    return literal_text(member.value)


def _negative(operand: Node) -> str:
    """``-5`` would be a literal and ``--`` a comment, so those operands stand in parentheses."""
    text = _text(operand, SIGN)
    return f"-({text})" if text.startswith("-") or isinstance(operand, Literal) else f"-{text}"


def _value(node: Node) -> str:
    match node:
        case Attribute(name, variable):
            return f"{quoted(variable)}.{quoted(name)}" if variable is not None else quoted(name)
        case VariableReference(variable):
            return quoted(variable)
        case EventFilter(variable, predicate):
            return f"{quoted(variable)}[{render_condition(predicate)}]"
        case Call(name, arguments) | SetPredicate(name, arguments):
            return f"{quoted(name)}({', '.join(map(render_condition, arguments))})"
        case Aggregate(function, variable, None):
            return f"{function}({quoted(variable)})"
        case Aggregate(function, variable, str(attribute)):
            return f"{function}({quoted(variable)}.{quoted(attribute)})"
        case _:
            raise TypeError(f"{type(node).__name__} is not a condition that has a text")
