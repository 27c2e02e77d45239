"""Mistakes in patterns and conditions written as in other languages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from estero.language.syntax.clauses import unclosed
from estero.language.syntax.misplaced import COMPARISONS, Finders, Misplaced, Mistake
from estero.language.tree.durations import unit_of
from estero.language.tree.words import is_keyword, quoted


def _foreign_word(misplaced: Misplaced) -> Mistake | None:
    """The mistake of a word from another language."""
    word = misplaced.word
    if misplaced.kind != "NAME" or word not in _FOREIGN or "NAME" in misplaced.accepted:
        return None
    if word in _IN_CONDITIONS and misplaced.clause != "FILTER":
        return None
    name, hint = _FOREIGN[word]
    return Mistake(f"there is no {name} here", hint)


_SEQUENCE: Final = "a sequence is written a ; b (b later), or a : b (b at the very next event)"
_IN_CONDITIONS: Final = frozenset({"REGEXP", "RLIKE", "MATCHES", "GLOB", "SIMILAR", "EXISTS", "CONTAINS"})
_FOREIGN: Final[Mapping[str, tuple[str, str]]] = {
    "GROUP": ("GROUP BY", "PARTITION BY k treats the events of each k separately"),
    "HAVING": ("HAVING", "all conditions go in FILTER: FILTER count(b) >= 3"),
    "WHEN": ("WHEN", "conditions go in FILTER: FILTER a[price > 5]"),
    "IF": ("IF", "conditions go in FILTER: FILTER a[price > 5]"),
    "ON": ("ON", "conditions go in FILTER: FILTER a.k = b.k"),
    "JOIN": (
        "JOIN",
        "streams are separated by commas, and FILTER relates events: FROM s, t WHERE a ; b FILTER a.k = b.k",
    ),
    "UNION": ("UNION", "OR joins two patterns: WHERE a OR b"),
    "OFFSET": (
        "OFFSET",
        "leave it out: LIMIT counts at each end; answer[100] is the one at index 100",
    ),
    "FOLLOWED": ("FOLLOWED BY", _SEQUENCE),
    "THEN": ("THEN", _SEQUENCE),
    "BEFORE": ("BEFORE", _SEQUENCE),
    "NEXT": ("NEXT", _SEQUENCE),
    "WITHOUT": (
        "WITHOUT",
        "NOT(b) between two parts, or UNLESS b for all of a pattern: a ; NOT(b) ; c, or a ; c UNLESS b",
    ),
    "DURING": ("DURING", "how long it may take comes last: WITHIN 10 MINUTES"),
    "DEFINE": ("DEFINE", "conditions go in FILTER: FILTER a[price > 5]"),
    "REGEXP": ("REGEXP", "~ searches for a regular expression: x ~ 'a.b'"),
    "RLIKE": ("RLIKE", "~ searches for a regular expression: x ~ 'a.b'"),
    "MATCHES": ("MATCHES", "~ searches for a regular expression: x ~ 'a.b'"),
    "SIMILAR": ("SIMILAR TO", "~ searches for a regular expression: x ~ 'a.b'"),
    "GLOB": ("GLOB", "LIKE has % for any characters and _ for one: x LIKE 'a%'"),
    "CONTAINS": ("CONTAINS", "LIKE finds a part of a string: x LIKE '%part%'"),
    "EXISTS": ("EXISTS", "write x IS NOT NULL"),
}
"""Words of other languages, with what they are for and what to write instead."""


def _not_without_parentheses(misplaced: Misplaced) -> Mistake | None:
    if misplaced.accepted == {"_LPAR"} and misplaced.last == "NOT":
        return Mistake(
            "NOT takes parentheses",
            f"write NOT({misplaced.token}), between two parts: a ; NOT({misplaced.token}) ; b",
        )
    if misplaced.word == "NOT" and misplaced.last == "(" and misplaced.clause == "WHERE":
        return Mistake(
            "NOT takes parentheses after it",
            f"write NOT({misplaced.next_word}), between two parts of a sequence",
        )
    return None


def _condition_in_pattern(misplaced: Misplaced) -> Mistake | None:
    """The mistakes ``WHERE a.x = 1`` and ``a[x > 1]`` in a pattern."""
    kind = misplaced.kind
    if misplaced.accepted == {"_ARROW"} or (kind == "INT" and misplaced.last == ">"):
        inside = re.search(r"([^\W\d]\w*|[\"`][^\"`]+[\"`])\s*\[([^\[\]]*)$", misplaced.before)
        of = inside[1] if inside else "a"
        condition = re.match(r"[^\[\]]*", misplaced.after)
        asked = f"{inside[2]} {condition[0]}".strip() if inside and condition else "x > 5"
        hint = f"write FILTER {of}[{asked}] after the pattern"
        return Mistake("a condition goes in FILTER, after the pattern", hint, "FILTER")
    is_arrow = kind == "EQUAL" and misplaced.after.startswith("=>")
    follows_name = re.search(r"[\w\"`]$", misplaced.before) is not None and not is_keyword(misplaced.last)
    if (kind == "_DOT" and follows_name) or (kind in COMPARISONS and not is_arrow):
        return Mistake(
            "WHERE holds a pattern, and conditions follow it in FILTER",
            "for example WHERE a ; b FILTER a[price > 5] AND a.k = b.k",
            "a pattern, or FILTER before the condition",
        )
    return None


def _step(misplaced: Misplaced) -> Mistake | None:
    """The mistakes in the brackets of a step."""
    if {"AT_MOST", "INT", "NOT"} <= misplaced.accepted:
        return Mistake(
            "a step says how far apart its ends are, or what is not between them",
            "conditions on events go in FILTER, after the pattern",
            "a distance such as <= 5 MINUTES or > 2 EVENTS, or NOT R",
        )
    inside = re.search(r"\[([^\[\]]*)$", misplaced.before)
    if inside is None or misplaced.kind not in ("_RSQUARE", "_COMMA") or not misplaced.last.isalnum():
        return None
    if "RANGE" in misplaced.accepted and misplaced.last.isalpha():
        return Mistake(
            "a distance says whether it is the most or the least",
            f"write <= {inside[1].strip()} for at most that, >= for at least, and .. for a range",
        )
    if misplaced.last.isdigit() and misplaced.accepted <= {"NAME", "_LSQUARE"}:
        return Mistake(
            f"{misplaced.last} of what?",
            f"write {misplaced.last} MINUTES, {misplaced.last} EVENTS or {misplaced.last} [time]",
        )
    return None


def _sequence(misplaced: Misplaced) -> Mistake | None:
    """The mistakes in sequences: arrows, commas, words in a row, doubled separators."""
    kind = misplaced.kind
    if kind in ("SEMICOLON", "COLON") and misplaced.last in (";", ":"):
        return Mistake(
            f"there is no part between {misplaced.last} and {misplaced.token}",
            "one of the two is enough: a ; b",
        )
    if kind == "_ARROW" or (kind == "EQUAL" and misplaced.after.startswith("=>")):
        return Mistake(f"{misplaced.after[:2]} does not join patterns", _SEQUENCE)
    if kind == "_COMMA" and "SEMICOLON" in misplaced.accepted:
        return Mistake("a comma does not join patterns", f"{_SEQUENCE}; both in any order: a ALL b")
    if kind in ("NAME", "QUOTED") and {"SEMICOLON", "AS"} <= misplaced.accepted:
        if len(misplaced.token) > 2 and misplaced.misspelt:
            return None
        first = misplaced.name_before
        return Mistake(
            f"an operator is missing before {misplaced.token}",
            f"write {first} AS {misplaced.token} for a name, "
            f"{first} ; {misplaced.token} for an event that follows",
        )
    return None


def _repetition(misplaced: Misplaced) -> Mistake | None:
    kind = misplaced.kind
    if (
        kind in ("STAR", "_DOT", "RANGE")
        and "INT" not in misplaced.accepted
        and "_RBRACE" not in misplaced.accepted
    ):
        return Mistake(
            f"{misplaced.token} is not an event type",
            "a pattern names event types, joined by OR if there are several: (a OR b)",
        )
    if kind == "RANGE" or (kind == "FLOAT" and "INT" in misplaced.accepted):
        return Mistake("a repetition has two numbers, separated by a comma", "write {2,5}")
    return None


def _names(misplaced: Misplaced) -> Mistake | None:
    """The mistake of a string in place of a name."""
    if (
        misplaced.kind != "STRING"
        or "NAME" not in misplaced.accepted
        or misplaced.clause == "FILTER"
        or "STRING" in misplaced.accepted
    ):
        return None
    name = misplaced.token[1:-1]
    return Mistake("single quotes are for strings, and this is a name", f"write {quoted(name)}", "a name")


# ---------------------------------------------------------------------------------------- conditions


def _in_condition(misplaced: Misplaced) -> Mistake | None:
    """The mistakes in conditions: foreign operators, and missing words between two conditions."""
    kind, after = misplaced.kind, misplaced.after
    pair = misplaced.last + str(misplaced.token)
    if pair in _OPERATORS or after[:2] in _OPERATORS:
        sign = after[:2] if after[:2] in _OPERATORS else pair
        return Mistake(f"{sign} is not an operator", _OPERATORS[sign])
    if misplaced.accepted <= {"NULL", "NOT"}:
        return Mistake("after IS comes NULL or NOT NULL", "compare other values with = or !=")
    if kind == "_COMMA":
        return _comma(misplaced)
    if kind in COMPARISONS and re.search(
        r"[=<>~]", re.split(r"[\[(]|(?i:\b(?:and|or|filter)\b)", misplaced.before)[-1]
    ):
        return Mistake(
            "a comparison has two sides", "join two comparisons by AND: 1 < x AND x < 5, or x BETWEEN 1 AND 5"
        )
    if kind == "_DOT":
        return _dot(misplaced)
    if kind == "_ARROW":
        return Mistake("-> does not lead to an attribute", "an attribute of the events marked a is a.price")
    if kind == "STAR" and misplaced.last == "(":
        return Mistake("* is not an argument", "count(a) is the number of events marked a")
    if (kind == "_RPAR" and misplaced.last == "+") or (kind == "PLUS" and "PLUS" not in misplaced.accepted):
        return Mistake(
            "a value is missing next to this +",
            "write a variable without the + of its pattern, and a number without a sign",
        )
    if kind in ("QUESTION", "COLON") and "STRING" in misplaced.accepted:
        return Mistake(
            "a value is missing here", "write the value itself: a number, or a string in single quotes"
        )
    if kind in ("_RPAR", "_RSQUARE", "_RBRACE"):
        return _other_bracket(misplaced) or _nothing_inside(misplaced)
    return _two_in_a_row(misplaced)


_OPERATORS: Final[Mapping[str, str]] = {
    "==": "equality is written with one =",
    "=~": "~ searches for a regular expression: x ~ 'a.b'",
    "~=": "~ searches for a regular expression: x ~ 'a.b'",
    "=<": "at most is written <=",
    "=>": "at least is written >=",
    "**": "there is no power operator: write x * x",
    "//": "/ divides, floor(x / 2) rounds down; a comment begins with --",
}


def _comma(misplaced: Misplaced) -> Mistake | None:
    if (
        re.search(r"\bBETWEEN\b[^\[\](){}]*$", misplaced.before, re.IGNORECASE)
        and "_AND" in misplaced.accepted
    ):
        return Mistake("BETWEEN has AND between its bounds", "write x BETWEEN 1 AND 5")
    if re.search(r"\d$", misplaced.before) and re.match(r",\d{3}\b", misplaced.after):
        return Mistake("a number has no commas", "write 1000")
    return Mistake("a comma does not join conditions", "write AND, or OR")


def _dot(misplaced: Misplaced) -> Mistake | None:
    if re.search(r"\d$", misplaced.before) or re.match(r"\.\d", misplaced.after):
        return Mistake("a number has digits on both sides of its point", "write 0.5 or 5.0")
    return Mistake(
        "a dot goes between a variable and its attribute, in conditions",
        'write a.price; a name with dots in it goes in quotes: a."b.c"',
    )


def _other_bracket(misplaced: Misplaced) -> Mistake | None:
    opened = unclosed(misplaced.before)
    if opened is None or "([{".index(misplaced.before[opened]) == ")]}".index(str(misplaced.token)):
        return None
    closing = ")]}"["([{".index(misplaced.before[opened])]
    return Mistake(
        f"{misplaced.before[opened]!r} is not closed by {str(misplaced.token)!r}",
        f"write {closing} for the {misplaced.before[opened]!r} at character {opened + 1}",
    )


def _nothing_inside(misplaced: Misplaced) -> Mistake | None:
    if not {"STRING", "INT"} <= misplaced.accepted:
        return None
    what = "what is inside" if misplaced.last in ("(", "[", "{") else f"what the {misplaced.last} needs"
    return Mistake(
        f"there is no value before this {misplaced.token}",
        f"write {what}: a number, a string in single quotes, an attribute or a condition",
    )


def _case(misplaced: Misplaced) -> Mistake | None:
    """The mistakes in a CASE."""
    if misplaced.last == "CASE" and {"_AND", "_OR"} <= misplaced.accepted:
        return Mistake("CASE is followed by WHEN", "write CASE WHEN x = 1 THEN 'one' ELSE 'more' END")
    if misplaced.kind != "NAME" and "_END" in misplaced.accepted:
        return Mistake("a CASE has an END", "write CASE WHEN x = 1 THEN 'one' ELSE 'more' END")
    return None


def _two_in_a_row(misplaced: Misplaced) -> Mistake | None:
    behind_number = re.search(r"\d\s*$", misplaced.before) is not None and misplaced.kind == "NAME"
    if behind_number and unit_of(str(misplaced.token)):
        return Mistake("a duration has whole numbers", "write 1 HOUR 30 MINUTES, or 1.5 * 1 HOUR")
    if behind_number and re.match(r"_\d|[xXbBoO]\w", misplaced.token):
        return Mistake("a number has digits only", "write 1000, without other characters")
    if (
        misplaced.kind in ("NAME", "QUOTED", "STRING", "INT", "FLOAT")
        and {"_AND", "_OR"} <= misplaced.accepted
    ):
        return Mistake(
            f"an operator is missing before {misplaced.token}", "conditions are joined by AND or OR"
        )
    return None


FINDERS: Final[Finders] = (
    ("", _case),
    ("", _foreign_word),
    ("", _not_without_parentheses),
    ("WHERE", _step),
    ("WHERE", _condition_in_pattern),
    ("WHERE", _sequence),
    ("WHERE", _repetition),
    ("", _names),
    ("FILTER", _in_condition),
)
