"""Hints for a misplaced word or sign that no known mistake explains."""

from __future__ import annotations

import re

from estero.language.syntax.clauses import unclosed
from estero.language.syntax.misplaced import Misplaced
from estero.language.tree.names import suggestion
from estero.language.tree.words import is_keyword


def in_ceql(misplaced: Misplaced) -> str:
    """The hint for a query, a pattern or a condition."""
    return _on_signs(misplaced) or _on_words(misplaced) or _advice(misplaced)


def _on_signs(misplaced: Misplaced) -> str:
    kind, before, accepted = misplaced.kind, misplaced.before, misplaced.accepted
    opened = unclosed(before)
    if {"NAME", "_LSQUARE"} <= accepted and re.search(r"\bWITHIN\s+\d+$", before, re.IGNORECASE):
        return "a window is written WITHIN 10 SECONDS, WITHIN 100 EVENTS or WITHIN 5 [time]"
    if kind in ("$END", "WITHIN", "CONSUME", "LIMIT", "FROM", "WHERE") and opened is not None:
        return f"the {before[opened]!r} at character {opened + 1} is not closed"
    if accepted == {"_LBRACE"}:
        return "the members of a set go in braces: IN {1, 2, 5..9}"
    if kind in ("_RPAR", "_RSQUARE", "_RBRACE") and opened is None:
        return f"there is nothing open for this {str(misplaced.token)!r} to close"
    if kind in ("SEMICOLON", "COLON", "ALL", "UNLESS") and re.search(r"(?i)\bfilter\b", before):
        return "a filter covers all of the pattern before it; to continue it, put both in parentheses"
    return ""


def _on_words(misplaced: Misplaced) -> str:
    token, accepted = misplaced.token, misplaced.accepted
    if {"WHERE", "FROM"} <= accepted and token.type in ("NAME", "QUOTED", "_LPAR"):
        return suggestion(token, ("WHERE", "FROM")) or "the pattern comes after WHERE"
    if token.type == "FLOAT" and accepted <= {"INT", "MINUS"}:
        return "use whole numbers of smaller units: 1 HOUR 30 MINUTES"
    if token.type == "QUOTED" and "STRING" in accepted and "NAME" not in accepted:
        return f"strings are written in single quotes: '{token[1:-1]}'"
    if "STAR" in accepted and token.type in ("FROM", "WHERE"):
        return "SELECT * shows all labels, SELECT NONE shows none"
    if "NAME" in accepted and is_keyword(token):
        return f'{token.upper()} is a keyword; as a name, write it "{token}"'
    return misplaced.misspelt if token.type == "NAME" else ""


def _advice(misplaced: Misplaced) -> str:
    """The hint on what is written in this place."""
    accepted = misplaced.accepted
    if "SELECT" in accepted:
        return "the shortest query is SELECT * WHERE and an event type"
    if "$END" in accepted <= {"$END", "CONSUME", "ORDER_BY", "LIMIT", "PER"}:
        return "the clauses come in this order, each once: PARTITION BY, WITHIN, CONSUME BY, ORDER BY, LIMIT"
    if accepted <= {"INT", "PARAMETER"} and "INT" in accepted:
        return "write the number of repetitions as {2}, {2,} or {2,5}"
    if "SEMICOLON" in accepted:
        return "join two patterns by ; (later), : (the very next event), AND, OR, ALL or UNLESS"
    if misplaced.kind == "$END":
        return "something is missing after the last word, or that word is one too many"
    return "something is missing before it, or it is one too many"


def in_conjunctive(misplaced: Misplaced) -> str:
    """The hint for a conjunctive query."""
    kind, before, accepted = misplaced.kind, misplaced.before, misplaced.accepted
    opened = unclosed(before)
    if not before:
        return "the shortest query is Q(x) <- T(x)"
    if "_IMPLIED_BY" in accepted:
        return "write <- between the head and the atoms"
    if opened is not None and kind in ("$END", "WITHIN", "LIMIT", "FROM", "_IMPLIED_BY"):
        return f"the {before[opened]!r} at character {opened + 1} is not closed"
    if opened is not None:
        return "the arguments of an atom are variables, constants and _, separated by commas: T(x, 5, _)"
    if kind == "NAME":
        near = suggestion(misplaced.token.upper(), ("FROM", "WITHIN", "LIMIT"))
        return near or "atoms are separated by commas"
    if kind in ("FROM", "WITHIN", "LIMIT") and "_LPAR" not in accepted and not before.endswith(","):
        return "the clauses come in this order, each once: FROM, WITHIN, LIMIT"
    return "an atom is a type with its arguments in parentheses: T(x, y)"
