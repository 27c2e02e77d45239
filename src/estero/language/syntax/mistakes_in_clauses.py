"""Mistakes in clauses: out of order, repeated, or written as in other languages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from estero.language.syntax.clauses import ORDER, clauses_of, is_nested, is_used_as_name, unclosed
from estero.language.syntax.misplaced import Finders, Misplaced, Mistake
from estero.language.tree.durations import unit_of

_IN_ORDER: Final = (
    "the clauses come in this order: "
    "SELECT, FROM, WHERE, FILTER, KEEP, PARTITION BY, WITHIN, CONSUME BY, ORDER BY, LIMIT"
)
_LABELS: Final = "labels, with some of their attributes if wanted: a, b[price]"


def _clause(misplaced: Misplaced) -> Mistake | None:
    """The mistake of a clause in the wrong place."""
    word = misplaced.word.partition(" ")[0] if misplaced.kind == "ORDER_BY" else misplaced.word
    if word not in ORDER or misplaced.kind in ("NAME", "QUOTED", "STRING"):
        return None
    if is_used_as_name(
        misplaced.before + " " + misplaced.after,
        len(misplaced.before) + 1,
        len(misplaced.before) + 1 + len(word),
    ):
        return Mistake(
            f"{misplaced.token} is a keyword",
            f'as a name, write it "{misplaced.token}"',
            "a name, a constant or an operator",
        )
    name = _named(word)
    if misplaced.last in ("AND", "OR"):
        again = (
            "join the conditions after one FILTER" if word == "FILTER" else "clauses are not joined by AND"
        )
        return Mistake(f"{misplaced.last} is followed by {name}", again)
    if misplaced.last == "BY" or (misplaced.last in ORDER and misplaced.last != "ORDER"):
        follows = _AFTER.get(misplaced.last) or _AFTER[f"{misplaced.clause} BY"]
        expected = _LABELS if misplaced.last == "SELECT" else ""
        return Mistake(f"there is nothing between {misplaced.last} and {name}", follows, expected)
    if misplaced.last == ",":
        return Mistake(f"a comma is followed by {name}", "leave the comma out, or write what follows it")
    if unclosed(misplaced.before) is not None or (
        "NAME" in misplaced.accepted and misplaced.clause != "SELECT"
    ):
        return None
    return _order(word, name, misplaced)


def _order(word: str, name: str, misplaced: Misplaced) -> Mistake | None:
    earlier = [clause for clause, _ in clauses_of(misplaced.before)]
    if not earlier:
        return Mistake("a query begins with SELECT", _IN_ORDER, "SELECT")
    if word == "WHERE" and word in earlier:
        return Mistake("this is a second WHERE", "conditions go in FILTER: FILTER a[price > 5] AND a.k = b.k")
    if word in earlier and word not in ("FILTER", "KEEP", "PARTITION"):
        return Mistake(f"this is a second {name}", "each clause comes once: leave one of them out")
    later = [clause for clause in earlier if ORDER.index(clause) > ORDER.index(word)]
    if later:
        return Mistake(
            f"{name} comes too late: it belongs before {_named(later[0])}",
            _IN_ORDER,
        )
    if "WHERE" not in earlier and word not in ("FROM", "WHERE"):
        return Mistake(
            f"{name} comes too early: it belongs after the pattern",
            _IN_ORDER,
        )
    return None


def _named(word: str) -> str:
    return f"{word} BY" if word in ("PARTITION", "CONSUME", "ORDER") else word


def _beginning(misplaced: Misplaced) -> Mistake | None:
    if misplaced.accepted == {"SELECT"} and misplaced.before == "" and misplaced.kind != "$END":
        hint = "put SELECT * WHERE before a pattern: SELECT * WHERE a ; b"
        if misplaced.after.strip().endswith(".ceql"):
            hint = f"the text of a file is given by pathlib.Path({misplaced.after.strip()!r}).read_text()"
        return Mistake("a query begins with SELECT", hint)
    return None


def _and_between_clauses(misplaced: Misplaced) -> Mistake | None:
    if misplaced.word == "AND" and misplaced.clause in ("PARTITION", "WITHIN", "CONSUME", "ORDER", "LIMIT"):
        return Mistake("AND joins conditions or patterns only", "clauses are not joined by AND")
    return None


def _last_semicolon(misplaced: Misplaced) -> Mistake | None:
    at_end = misplaced.kind == "$END" and misplaced.last == ";"
    if at_end or (misplaced.kind == "SEMICOLON" and not misplaced.after[1:].strip()):
        return Mistake(
            "a query does not end in ;",
            "leave it out: ; separates the parts of a sequence",
            "no ; at the end",
        )
    return None


def _too_early(misplaced: Misplaced) -> Mistake | None:
    """The mistake of a text that ends after a word."""
    if misplaced.kind != "$END" or unclosed(misplaced.before) is not None:
        return None
    last = f"{misplaced.clause} BY" if misplaced.last == "BY" else misplaced.last
    hint = _AFTER.get(last) or (
        "WHERE and a pattern follow: WHERE a ; b" if "WHERE" in misplaced.accepted else ""
    )
    return Mistake("the text ends too early", hint) if hint else None


_AFTER: Final[Mapping[str, str]] = {
    "SELECT": "labels follow, * for all of them, or NONE: SELECT * WHERE a ; b",
    "FROM": "the names of streams follow: FROM s",
    "WHERE": "a pattern follows: WHERE a ; b",
    "FILTER": "a condition follows: FILTER a[price > 5]",
    "KEEP": "labels in brackets follow: KEEP [a, b]",
    "PARTITION": "keys follow: PARTITION BY ip, user",
    "WITHIN": "a window follows: WITHIN 10 SECONDS, WITHIN 100 EVENTS or WITHIN 5 [time]",
    "LIMIT": "a whole number follows: LIMIT 5",
    "PER": "END or a duration follows: LIMIT 3 PER 1 HOUR",
    "CONSUME": "a policy follows: CONSUME BY ANY",
    "PARTITION BY": "keys follow: PARTITION BY ip, user",
    "CONSUME BY": "a policy follows: CONSUME BY ANY",
    "ORDER BY": "what is most follows: ORDER BY sum(x.price) DESC LIMIT 10",
    "AS": "a name follows: a AS x",
    "AND": "after AND comes another condition or pattern",
    "OR": "after OR comes another condition or pattern",
    "NOT": "the event that must not happen follows in parentheses: a ; NOT(b) ; c",
    "UNLESS": "the pattern that must not happen follows: a ; b UNLESS c",
}


def _in_select(misplaced: Misplaced) -> Mistake | None:
    """The mistakes of SELECT lists written as in SQL."""
    match misplaced.kind:
        case "STAR" if misplaced.last == "(":
            return Mistake(
                "aggregates do not take *",
                "count(a) counts the events marked a; answer.count() and --count count complex events",
                "a label, or an attribute X.a",
            )
        case "STAR" if misplaced.last == ".":
            return Mistake("a label by itself shows all its attributes", "leave .* out", "an attribute")
        case "INT":
            return Mistake(
                "SELECT takes no number",
                "for the first five of all, use answer.limit(5) or --limit 5",
            )
        case "STAR" | "_RSQUARE" if misplaced.last == "[":
            return Mistake(
                "the brackets hold attributes", "without brackets a label shows all its attributes"
            )
        case _:
            return None


def _in_clause(misplaced: Misplaced) -> Mistake | None:
    """The mistakes after PARTITION BY, WITHIN, CONSUME BY and LIMIT."""
    if misplaced.accepted == {"BY"}:
        return Mistake(
            f"BY is missing after {misplaced.last}", f"write {misplaced.last} BY {misplaced.token}"
        )
    match misplaced.clause:
        case "PARTITION" if misplaced.kind == "_LPAR":
            return Mistake("keys need no parentheses", "write PARTITION BY ip, user", "a name or '['")
        case "PARTITION" if misplaced.kind in ("NAME", "QUOTED", "_LSQUARE"):
            return Mistake("a comma is missing between two keys", "write PARTITION BY ip, user")
        case "CONSUME" if misplaced.word == "ALL":
            return Mistake(
                "ALL is not a consumption policy",
                "ANY forgets everything read so far",
                "ANY, PARTITION or NONE",
            )
        case "KEEP" if misplaced.accepted == {"_LSQUARE"}:
            return Mistake("labels to keep go in brackets", f"write KEEP [{misplaced.token}]")
        case "LIMIT" if misplaced.kind == "_COMMA":
            return Mistake(
                "LIMIT takes one number",
                "it counts at each end; answer[100] is the one at index 100",
            )
        case _:
            return None


def _window(misplaced: Misplaced) -> Mistake | None:
    if misplaced.last != "WITHIN":
        return None
    quoted_window = re.match(r"'\s*(\d+)\s*(\w+)\s*'", misplaced.after)
    if quoted_window:
        unit = unit_of(quoted_window[2]) or quoted_window[2].upper()
        return Mistake("a window is written without quotes", f"write WITHIN {quoted_window[1]} {unit}")
    if misplaced.word == "INTERVAL":
        return Mistake("a window needs no INTERVAL", "write WITHIN 5 MINUTES")
    if misplaced.kind in ("NAME", "STRING"):
        return Mistake(
            "a window begins with a whole number",
            "write WITHIN 10 SECONDS, WITHIN 100 EVENTS or WITHIN 5 [time]",
        )
    return None


def _window_of_a_part(misplaced: Misplaced) -> Mistake | None:
    """The mistake of a window for a part of the pattern."""
    inside = misplaced.word == "WITHIN" and is_nested(misplaced.before, misplaced.after)
    if not inside and not (misplaced.clause == "WITHIN" and misplaced.kind in ("SEMICOLON", "COLON")):
        return None
    return Mistake(
        "WITHIN is for the whole query, not for a part of its pattern",
        "the time between two parts is a distance: a ;[<= 5 MINUTES] b; that of one part is compared: "
        "FILTER last(x.ts) - first(x.ts) <= 5 MINUTES",
        "WITHIN once, after the whole pattern",
    )


FINDERS: Final[Finders] = (
    ("", _last_semicolon),
    ("", _window_of_a_part),
    ("", _clause),
    ("", _beginning),
    ("", _and_between_clauses),
    ("", _too_early),
    ("SELECT", _in_select),
    ("", _in_clause),
    ("WITHIN", _window),
)
