"""Small SQL trees from which larger ones are built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlglot import exp

from estero.language.tree.expressions import ComparisonOperator

SQL = exp.Expr

_COMPARE: Mapping[ComparisonOperator, Callable[..., SQL]] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}


def call(function: str, *arguments: SQL) -> SQL:
    """``function(arguments)``, the name written as it is."""
    return exp.Anonymous(this=function, expressions=list(arguments))


def cast(value: SQL, engine_type: str) -> SQL:
    """``CAST(value AS engine_type)``, the type written as it is."""
    return exp.Cast(this=value, to=exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=engine_type))


def text(value: str) -> SQL:
    """A literal string."""
    return exp.Literal.string(value)


def number(value: int | str) -> SQL:
    """A literal number, written as it is."""
    return exp.Literal.number(value)


def bound(value: SQL) -> SQL:
    """A copy of `value` that binds as one operand."""
    return closed(value.copy())


def closed(value: SQL) -> SQL:
    """The value, in parentheses if it does not bind as one operand."""
    if isinstance(value, exp.Column | exp.Literal | exp.Cast | exp.Anonymous | exp.Paren):
        return value
    return exp.paren(value, copy=False)


def compared(operator: ComparisonOperator, left: SQL, right: SQL) -> SQL:
    """``left operator right``, both of them copied."""
    return _COMPARE[operator](this=bound(left), expression=bound(right))


def is_not_null(value: SQL) -> SQL:
    """``NOT value IS NULL``."""
    return exp.Not(this=exp.Is(this=bound(value), expression=exp.Null()))


def either(test: SQL, value: SQL, default: SQL | None = None) -> SQL:
    """``CASE WHEN test THEN value ELSE default END``; NULL without a default."""
    return exp.Case(ifs=[exp.If(this=test, true=value)], default=default)


def total(terms: Iterable[SQL]) -> SQL:
    """The sum of at least one term."""
    first, *rest = terms
    for term in rest:
        first = exp.Add(this=first, expression=term)
    return first


def negative(value: SQL, *, is_negative: bool) -> SQL:
    """``(-value)`` where `is_negative`, else the value."""
    return exp.paren(exp.Neg(this=value)) if is_negative else value


def is_one_of(value: SQL, texts: Sequence[str]) -> SQL:
    """The test that a string is one of `texts`; false for no texts."""
    if len(texts) == 1:
        return exp.EQ(this=value, expression=text(texts[0]))
    return exp.In(this=value, expressions=list(map(text, texts))) if texts else exp.false()
