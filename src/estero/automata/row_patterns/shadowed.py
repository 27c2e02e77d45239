"""Alternatives of PATTERN that no match ever takes, because earlier ones accept all that they accept.

A search takes the first alternative with which a match can end. So one is never taken if each sequence of
variables that it accepts is accepted by earlier ones, which automata decide; if these are too large, or if
the alternatives contain ^ and $, only identical alternatives are detected. An alternative is not taken either
after one that may be empty, if the rest may be empty, too: a match can always end with that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from estero.automata.row_patterns.positions import ACCEPT, START, PositionAutomaton
from estero.errors import LimitExceeded, QueryError, Span, warn
from estero.language.row_patterns.tree import (
    Anchor,
    Choice,
    Excluded,
    Nothing,
    Permutation,
    Repetition,
    RowPattern,
    RowPatternClause,
    Variable,
    nodes_of,
    parts_of,
)
from estero.language.row_patterns.tree import Sequence as PatternSequence

_MOST_PAIRS: Final = 1_000
_MOST_ALTERNATIVES: Final = 30
_LONGEST: Final = 1 << 20


class Shadowed(NamedTuple):
    """An alternative that is never taken, with the reason, and with what to write instead."""

    alternative: RowPattern
    reason: str
    hint: str


def warn_of_alternatives(clause: RowPatternClause) -> None:
    """Warns of each alternative of PATTERN that is never taken, with its position in the text."""
    for alternative, reason, hint in shadowed(clause.pattern):
        spans = [node.span for node in nodes_of(alternative) if isinstance(node, Variable)]
        span = clause.pattern_span
        if spans:
            span = Span(min(part.start for part in spans), max(part.end for part in spans))
        piece = clause.text[span.start : span.end]
        message = f"the alternative {alternative} of PATTERN is never taken: it is {reason}"
        warn(str(QueryError(message, text=clause.text, span=span, found=piece, hint=hint)))


def shadowed(pattern: RowPattern, *, always_ends: bool = True) -> Iterator[Shadowed]:
    """The alternatives that are never taken, in the order of the text.

    `always_ends`: whatever comes before, a match can end after the pattern without a further row.
    """
    match pattern:
        case PatternSequence(parts):
            for place, part in enumerate(parts):
                behind = all(map(_may_be_empty, parts[place + 1 :]))
                yield from shadowed(part, always_ends=always_ends and behind)
        case Repetition(part, least):
            ends = always_ends and (least <= 1 or _may_be_empty(part))
            yield from shadowed(part, always_ends=ends)
        case Excluded(part):
            yield from shadowed(part, always_ends=always_ends)
        case Permutation(parts):
            for part in parts:
                yield from shadowed(part, always_ends=False)
        case Choice(alternatives):
            for place, alternative in enumerate(alternatives):
                reason, hint = _problem(alternative, alternatives[:place], always_ends=always_ends)
                if reason:
                    yield Shadowed(alternative, reason, hint)
                else:
                    yield from shadowed(alternative, always_ends=always_ends)


def _problem(alternative: RowPattern, earlier: Sequence[RowPattern], *, always_ends: bool) -> tuple[str, str]:
    """The reason why an alternative is never taken, and what to write; empty if it may be taken."""
    if alternative in earlier:
        return "the same as one before it", "leave it out"
    empty = next(filter(_may_be_empty, earlier), None) if always_ends else None
    if empty is not None:
        return f"behind {empty}, with which a match can always end without a row", f"write it before {empty}"
    if earlier and len(earlier) < _MOST_ALTERNATIVES and _is_included(alternative, Choice(tuple(earlier))):
        before = " | ".join(map(str, earlier))
        return f"behind {before}, which accepts all that it accepts", "write it first, or leave it out"
    return "", ""


def _may_be_empty(pattern: RowPattern) -> bool:
    """Whether a part can be empty wherever it occurs; with ^ and $ this is false."""
    match pattern:
        case Variable() | Anchor():
            return False
        case Nothing():
            return True
        case Choice(alternatives):
            return any(map(_may_be_empty, alternatives))
        case Repetition(part, least):
            return least == 0 or _may_be_empty(part)
    return all(map(_may_be_empty, parts_of(pattern)))


def _is_included(pattern: RowPattern, other: RowPattern) -> bool:
    """Whether each sequence of variables of one pattern is one of the other; False if hard to decide."""
    if any(isinstance(node, Anchor) for part in (pattern, other) for node in nodes_of(part)):
        return False
    try:
        return _covers(PositionAutomaton(pattern, _LONGEST), PositionAutomaton(other, _LONGEST))
    except LimitExceeded:
        return False


def _covers(mine: PositionAutomaton, others: PositionAutomaton) -> bool:
    """Whether the second automaton accepts all that the first does, by following all its states at once."""
    first = START, frozenset([START])
    waiting, seen = [first], {first}
    while waiting:
        state, states = waiting.pop()
        targets = {move.target for reached in states for move in others.moves(reached)}
        for move in mine.moves(state):
            if move.target == ACCEPT:
                if ACCEPT not in targets:
                    return False
                continue
            letter = mine.states[move.target]
            same = frozenset(
                target for target in targets if target != ACCEPT and others.states[target] == letter
            )
            pair = move.target, same
            if not same or len(seen) > _MOST_PAIRS:
                return False
            if pair not in seen:
                seen.add(pair)
                waiting.append(pair)
    return True
