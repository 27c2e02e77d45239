"""The text of a query without the condition that a "why not" names: the effect of "try it without"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from estero.errors import QueryError, Span
from estero.language.syntax.clauses import clauses_of
from estero.language.syntax.parser import parse_query
from estero.language.tree import pattern as p
from estero.language.tree.conditions import conjoined, conjuncts
from estero.language.tree.query import Consume, QueryTree, Strategy
from estero.language.tree.relaxations import EARLIER, LATER, in_single_conjuncts, relaxations

_JOINS: Final = (r"\s*\bAND\s*$", r"^\s*AND\b\s*")


def without(text: str, kind: str, condition: str) -> str | None:
    """The text of a query without a condition, as named by `estero.answers.why_not.Reason`; None if unknown.

    The rest of the text is kept as written if possible.

    >>> without("SELECT * WHERE a ; b FILTER b[x > 5] WITHIN 3 EVENTS", "condition", "b[x > 5]")
    'SELECT * WHERE a ; b WITHIN 3 EVENTS'
    >>> without("SELECT * WHERE a ; b WITHIN 3 EVENTS", "window", "WITHIN 3 EVENTS")
    'SELECT * WHERE a ; b'
    """
    try:
        tree = parse_query(text)
    except QueryError:
        return None
    asked = _relaxed(tree, kind, condition)
    if asked is None:
        return None
    for edited in _edits(text, condition):
        try:
            parsed = parse_query(edited)
        except QueryError:
            continue
        if _alike(parsed) == _alike(asked):
            return edited
    return _laid_out(str(asked))


def _alike(tree: QueryTree) -> QueryTree:
    return replace(tree, pattern=in_single_conjuncts(tree.pattern))


def _relaxed(tree: QueryTree, kind: str, condition: str) -> QueryTree | None:
    if kind == "choice":
        chosen = replace(tree, strategy=Strategy.ALL, disjoint=False)
        return replace(chosen, consume=Consume.NONE, limit=None, per=None)
    if kind == "condition":
        pattern = _without_condition(in_single_conjuncts(tree.pattern), condition)
        return None if pattern is None else replace(tree, pattern=pattern)
    for relaxed in relaxations(replace(tree, pattern=p.unshared(tree.pattern)), 0):
        if relaxed.kind == kind and relaxed.said == condition:
            return replace(relaxed.tree, pattern=_unlabelled(relaxed.tree.pattern))
    return None


def _without_condition(pattern: p.Pattern, condition: str) -> p.Pattern | None:
    """The pattern without the first conjunct with that text; None if there is none."""
    if isinstance(pattern, p.Filter):
        parts = list(conjuncts(pattern.condition))
        for place, part in enumerate(parts):
            if str(part) == condition:
                left = conjoined([*parts[:place], *parts[place + 1 :]])
                return pattern.pattern if left is None else replace(pattern, condition=left)
    done = False

    def below(part: p.Pattern) -> p.Pattern:
        nonlocal done
        changed = None if done else _without_condition(part, condition)
        done = done or changed is not None
        return part if changed is None else changed

    changed = p.with_children(pattern, below)
    return changed if done else None


def _unlabelled(pattern: p.Pattern) -> p.Pattern:
    """The pattern without the labels that a relaxed link has for its neighbours."""
    pattern = p.with_children(pattern, _unlabelled)
    match pattern:
        case p.As(pattern=inner, variable=variable) if variable in (EARLIER, LATER):
            return inner
        case p.Keep(labels=labels):
            return replace(pattern, labels=tuple(name for name in labels if name not in (EARLIER, LATER)))
        case _:
            return pattern


def _edits(text: str, condition: str) -> Iterator[str]:
    """Texts without one piece that may be the condition, otherwise unchanged."""
    words = condition.partition(" ")[0].partition("[")
    for word, span in clauses_of(text):
        clause = text[span.start : span.end]
        if word == words[0]:
            yield _cut(text, span)
            continue
        for piece in _pieces(condition, clause):
            inner = Span(span.start + piece.start, span.start + piece.end)
            yield _cut(text, inner, word=word, clause=span)


def _pieces(condition: str, clause: str) -> Iterator[Span]:
    """The places in a clause of the condition, or the one inside its brackets, with any spacing."""
    inside = re.fullmatch(r"[^\[]*\[(.*)\]", condition, re.DOTALL)
    for said in (condition, inside[1] if inside else ""):
        pattern = r"\s*".join(map(re.escape, re.findall(r"\w+|\S", said)))
        for match in re.finditer(pattern, clause, re.IGNORECASE) if said else ():
            yield Span(*match.span())


def _cut(text: str, span: Span, *, word: str = "", clause: Span | None = None) -> str:
    """The text without a span, the AND next to it, and its clause if nothing else is in it."""
    before, after = text[: span.start], text[span.end :]
    if clause is not None:
        rest = text[clause.start + len(word) : span.start] + text[span.end : clause.end]
        if not rest.strip():
            before, after = text[: clause.start], text[clause.end :]
        elif re.search(_JOINS[0], before, re.IGNORECASE):
            before = re.sub(_JOINS[0], "", before, flags=re.IGNORECASE)
        else:
            after = re.sub(_JOINS[1], "", after, flags=re.IGNORECASE)
    before, after = before.rstrip(" \t"), after.lstrip(" \t")
    if before.endswith("\n") and (after.startswith("\n") or not after):
        before = before.rstrip("\n")
    gap = " " if re.search(r"[\w\])]\Z", before) and re.match(r"\w", after) else ""
    return f"{before}{gap}{after}".rstrip()


def _laid_out(text: str) -> str:
    """The text with a line for each clause."""
    starts = [span.start for _, span in clauses_of(text)][1:]
    lines, begun = [], 0
    for start in [*starts, len(text)]:
        lines.append(text[begun:start].strip())
        begun = start
    return "\n".join(lines)
