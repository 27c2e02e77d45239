"""Checks of the keys of PARTITION BY, in the clause of a query and inside a pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from estero.errors import Span
from estero.language.check.inside import note_inside
from estero.language.check.kinds import COMPARABLE
from estero.language.check.known_types import KnownTypes
from estero.language.check.problems import Problems
from estero.language.tree.paths import column_of, steps_of
from estero.language.tree.pattern import EventType, PartitionBy, Pattern
from estero.language.tree.query import KeyBracket
from estero.language.tree.schema import Kind, Schema, fit
from estero.language.tree.selection import label_types
from estero.language.tree.words import named, quoted


def check_bracket(bracket: KeyBracket, pattern: Pattern, known: KnownTypes, problems: Problems) -> None:
    """Notes errors of one key of the clause PARTITION BY."""
    types = _all_types(pattern)
    _are_alternatives(types, bracket.alternatives, bracket.span, known, problems)
    kinds = known.together(types)
    for name in bracket.alternatives:
        place = problems.inner_span(bracket.span, quoted(name))
        message = f"no type in the pattern has an attribute {column_of(name)}"
        if _can_be_key(name, place, problems) and kinds is not None:
            _kinds_of_key(name, kinds, place, message, known.schema, problems)


def check_keys(node: PartitionBy, known: KnownTypes, problems: Problems) -> None:
    """Notes errors of the keys of a PARTITION BY inside a pattern."""
    labels = label_types(node.pattern)
    every = _all_types(node.pattern)
    by = problems.text.upper().rfind("BY", node.span.start, node.span.end)
    keys = node.span if by < 0 else Span(by + 3, node.span.end)
    plain = [key.attribute for key in node.keys if key.variable is None]
    if not _are_alternatives(every, plain, keys, known, problems):
        return
    first: tuple[str, Kind] | None = None
    for key in node.keys:
        if key.variable is not None and key.variable not in labels:
            span = problems.inner_span(node.span, f"{quoted(key.variable)}.")
            inside = f"bind it inside with AS {quoted(key.variable)}"
            problems.no_label(key.variable, labels, Span(span.start, span.end - 1), inside)
            continue
        span = problems.inner_span(node.span, quoted(key.attribute))
        kinds = known.together(every if key.variable is None else labels[key.variable])
        if not _can_be_key(key.attribute, span, problems) or kinds is None:
            continue
        kinds_of_key = _kinds_of_key(key.attribute, kinds, span, "", known.schema, problems)
        if len(kinds_of_key) == 1:
            (kind,) = kinds_of_key
            _agrees(first, kind, span, problems)
            first = first or (named(key.attribute), kind)


def _all_types(pattern: Pattern) -> tuple[EventType, ...]:
    return tuple(node for node in pattern.walk() if isinstance(node, EventType))


def _are_alternatives(
    types: Sequence[EventType], names: Sequence[str], span: Span, known: KnownTypes, problems: Problems
) -> bool:
    """Notes a type with two of the names in one bracket; returns whether there is none."""
    clash = known.having_two(types, names)
    if clash is None:
        return True
    of, first, second = clash[0], *map(quoted, clash[1:])
    problems.add(
        f"{of} has both {first} and {second}, and names in one bracket are alternatives",
        span,
        expected=f"PARTITION BY {first}, {second} for the key of both",
        hint=f"[{first}, {second}] is for types that each have one of the two",
    )
    return False


def _can_be_key(name: str, span: Span, problems: Problems) -> bool:
    """Notes a key inside a list; returns whether it is not."""
    if all(isinstance(step, str) for step in steps_of(name)):
        return True
    problems.add(
        f"{quoted(name)} is in a list, and cannot be a key",
        span,
        expected="an attribute, or a field of one",
        hint="events are in one partition each: make a column of the element that counts",
    )
    return False


def _kinds_of_key(
    name: str,
    kinds: Mapping[str, set[Kind]],
    span: Span,
    missing: str,
    schema: Schema | None,
    problems: Problems,
) -> set[Kind]:
    """The kinds of a key attribute except NULL; an attribute that cannot be a key is noted and has none."""
    if name not in kinds and note_inside(name, kinds, schema, span, problems):
        return set()
    if name not in kinds:
        place = problems.inner_span(span, quoted(column_of(name)))
        problems.no_attribute(column_of(name), kinds, place, missing)
        return set()
    if Kind.OPAQUE in kinds[name]:
        problems.add(
            f"{named(name)} cannot be compared, so it cannot be a key",
            span,
            expected=COMPARABLE,
            hint="a field inside it can be one: PARTITION BY [process.name]",
        )
        return set()
    return kinds[name] - {Kind.NULL}


def _agrees(first: tuple[str, Kind] | None, kind: Kind, span: Span, problems: Problems) -> None:
    """Notes a key that cannot equal the first one."""
    if first is not None and not fit((kind, first[1])):
        problems.add(
            f"{kind.value} cannot be equal to {first[1].value}",
            span,
            expected=f"a key of the kind of {first[0]}, which is {first[1].value}",
            hint="all events of the pattern agree on one value",
        )
