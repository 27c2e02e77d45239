"""SQL trees → text that an engine reads as they mean it, whatever letters are in their strings.

Spark replaces ``${…}`` in every text that it parses (``spark.sql.variable.substitute``), inside of strings,
too, and reads backslashes in strings as ``spark.sql.parser.escapedStringLiterals`` says. So a string with
a letter that may mean something is written in hexadecimal digits: Spark makes a constant of them before it
looks for filters to push into a scan.
"""

from __future__ import annotations

import re

from sqlglot import exp

from estero.classify.columns import Dialect, cast

_PLAIN = re.compile(r"[\w !#%&()*+,./:;<=>?@^|~\-]*")
"""Strings that mean themselves in every setting of Spark's."""


def text_of(tree: exp.Expr, dialect: Dialect, *, copy: bool = True) -> str:
    """The text of a tree; without `copy` the tree may be changed."""
    if dialect == "spark":
        tree, copy = tree.transform(_in_safe_letters, copy=copy), False
    return tree.sql(dialect=dialect, copy=copy)


def readable(statement: str, dialect: Dialect) -> str:
    """The same statement for people: on several lines, its strings as they are.

    It stays as it is where it is nested too deeply to be read again: the parser descends through some ten
    functions for each level, so it meets Python's limit of 1,000 before the engines meet theirs.
    """
    import sqlglot

    try:
        tree = sqlglot.parse_one(statement, read=dialect)
        return tree.transform(_as_string).sql(dialect=dialect, pretty=True)
    except RecursionError:
        return statement


def _in_safe_letters(tree: exp.Expr) -> exp.Expr:
    if not (isinstance(tree, exp.Literal) and tree.is_string) or _PLAIN.fullmatch(tree.this):
        return tree
    return cast(exp.HexString(this=tree.this.encode().hex().upper()), "STRING")


def _as_string(tree: exp.Expr) -> exp.Expr:
    if isinstance(tree, exp.Cast) and isinstance(tree.this, exp.HexString):
        return exp.Literal.string(bytes.fromhex(tree.this.this).decode())
    return tree
