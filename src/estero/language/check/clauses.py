"""The clauses of a query: SELECT list, PARTITION BY, WITHIN, CONSUME BY, LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from estero.errors import NOWHERE, Span
from estero.language.check.labels import KnownTypes
from estero.language.check.problems import Problems
from estero.language.tree.literals import INT_MAX
from estero.language.tree.names import SPELLING, some, suggestion
from estero.language.tree.pattern import EventType
from estero.language.tree.query import (
    AttributeWindow,
    Consume,
    DurationWindow,
    EventWindow,
    KeyBracket,
    QueryTree,
    SelectItem,
    Strategy,
    Window,
)
from estero.language.tree.schema import Kind, Schema
from estero.language.tree.selection import label_types
from estero.language.tree.words import quoted

_TIMES: Final = (Kind.INT, Kind.TIMESTAMP)


def check_clauses(tree: QueryTree, known: KnownTypes, problems: Problems) -> None:
    """Note what is wrong with the clauses around the pattern."""
    types = label_types(tree.pattern)
    for item in tree.select or ():
        _check_item(item, types, known, problems)
    for bracket in tree.partition_by:
        _check_bracket(bracket, tree, known, problems)
    _check_window(tree, known.schema, problems)
    if tree.consume is Consume.PARTITION and not tree.partition_by:
        problems.add(
            "CONSUME BY PARTITION needs PARTITION BY",
            tree.places.get("CONSUME BY", NOWHERE),
            expected="CONSUME BY ANY, or a PARTITION BY clause",
            hint="without partitions, CONSUME BY ANY forgets everything read so far",
        )
    if tree.limit is not None and not 1 <= tree.limit <= INT_MAX:
        problems.add(
            "LIMIT keeps at least one complex event for each position",
            tree.places.get("LIMIT", NOWHERE),
            expected=f"a whole number from 1 to {INT_MAX}",
            hint="leave LIMIT out to keep all",
        )


def _check_item(
    item: SelectItem, types: dict[str, tuple[EventType, ...]], known: KnownTypes, problems: Problems
) -> None:
    if item.label not in types:
        place = Span(item.span.start, min(item.span.end, item.span.start + len(quoted(item.label))))
        problems.add(
            f"no event is marked {item.label}",
            place,
            expected=some(types) or "no label at all",
            hint=suggestion(item.label, types)
            or (
                f"a strategy stands before what is shown: SELECT {item.label.upper()} *"
                if item.label.upper() in Strategy.__members__
                else f"bind it in the pattern with AS {quoted(item.label)}"
            ),
        )
        return
    kinds = known.together(types[item.label])
    for attribute in item.attributes or ():
        if kinds is not None and attribute not in kinds:
            problems.add(
                f"the events marked {item.label} have no attribute {attribute}",
                problems.inner_span(item.span, quoted(attribute)),
                expected=some(kinds) or "no attribute at all",
                hint=suggestion(attribute, kinds) or SPELLING,
            )


def _check_bracket(bracket: KeyBracket, tree: QueryTree, known: KnownTypes, problems: Problems) -> None:
    types = [node for node in tree.pattern.walk() if isinstance(node, EventType)]
    check_alternatives(types, bracket.alternatives, bracket.span, known, problems)
    kinds = known.together(types)
    if kinds is None:
        return
    for attribute in bracket.alternatives:
        place = problems.inner_span(bracket.span, quoted(attribute))
        if attribute not in kinds:
            problems.add(
                f"no type in the pattern has an attribute {attribute}",
                place,
                expected=some(kinds) or "no attribute at all",
                hint=suggestion(attribute, kinds) or SPELLING,
            )
        elif Kind.OPAQUE in kinds[attribute]:
            problems.add(
                f"{attribute} cannot be compared, so it cannot be a key",
                place,
                expected="an attribute that holds truth values, numbers, strings or timestamps",
                hint="a field inside it can be a key once it is a column of its own",
            )


def check_alternatives(
    types: Sequence[EventType], names: Sequence[str], span: Span, known: KnownTypes, problems: Problems
) -> bool:
    """Whether one of the types has two of the names in one bracket of PARTITION BY, which is noted."""
    found = known.having_two(types, names)
    if found is not None:
        of, first, second = found[0], *map(quoted, found[1:])
        problems.add(
            f"{of} has both {first} and {second}, and names in one bracket are alternatives",
            span,
            expected=f"PARTITION BY {first}, {second} for the key of both",
            hint=f"[{first}, {second}] is for types of which each has one of the two",
        )
    return found is not None


def _check_window(tree: QueryTree, schema: Schema | None, problems: Problems) -> None:
    match tree.window:
        case EventWindow(events):
            if not 1 <= events <= INT_MAX:
                _wrong_length("events", events, tree.window, problems)
        case DurationWindow(parts):
            if any(amount < 0 for amount, _ in parts) or tree.window.nanoseconds > INT_MAX:
                _wrong_length("nanoseconds", tree.window.nanoseconds, tree.window, problems)
            elif schema is not None:
                _check_duration(tree.window, schema, problems)
        case AttributeWindow(ticks):
            if not 0 <= ticks <= INT_MAX:
                _wrong_length("ticks", ticks, tree.window, problems)
            elif schema is not None:
                _check_attribute(tree.window, schema, problems)
        case None:
            pass


def _wrong_length(of: str, length: int, window: Window, problems: Problems) -> None:
    least = 1 if of == "events" else 0
    if of == "nanoseconds":
        expected = "a duration of at most 292 years, of whole units none of which is negative"
    else:
        expected = f"a whole number from {least} to {INT_MAX}"
    if of == "events" and length == 0:
        message = "a window has to be longer than 0 events"
    elif length > INT_MAX:
        message = f"a window is at most {'292 years long' if of == 'nanoseconds' else f'{INT_MAX} {of}'}"
    else:
        message = "a window is not negative"
    problems.add(message, window.span, expected=expected, hint="leave WITHIN out for no bound")


def _check_duration(window: DurationWindow, schema: Schema, problems: Problems) -> None:
    place = window.span
    if schema.time is None:
        problems.add(
            "a duration needs a time column",
            place,
            expected="WITHIN n EVENTS, or a time column",
            hint='name it where the events are given: time="…"',
        )
    elif schema.time_unit is None and _kind_of_time(schema) not in (Kind.TIMESTAMP, None):
        problems.add(
            f"the time column {schema.time} holds integers, and nothing says how long one tick is",
            place,
            expected=f"WITHIN n [{quoted(schema.time)}] for n ticks, or the unit of a tick",
            hint='name it where the events are given, for example time_unit="ms"',
        )


def _check_attribute(window: AttributeWindow, schema: Schema, problems: Problems) -> None:
    attribute = window.attribute
    place = problems.inner_span(window.span, quoted(attribute))
    if schema.time is not None and attribute != schema.time:
        problems.add(
            f"{attribute} is not the time column",
            place,
            expected=f"[{quoted(schema.time)}]",
            hint="windows follow the order of the stream, and that is the order of the time column",
        )
        return
    kinds = _kinds_of_attribute(attribute, schema)
    if kinds is None:
        return
    if not kinds:
        every = {name for each in (*schema.types.values(), schema.shared or {}) for name in each}
        problems.add(
            f"there is no attribute {attribute}",
            place,
            expected=some(sorted(every)) or "no attribute at all",
            hint=suggestion(attribute, sorted(every)) or SPELLING,
        )
    elif not kinds <= set(_TIMES):
        problems.add(
            f"{attribute} is {next(iter(kinds - set(_TIMES))).value}, which is no time",
            place,
            expected="a column of integers or timestamps",
            hint="WITHIN n EVENTS counts events instead",
        )


def _kind_of_time(schema: Schema) -> Kind | None:
    kinds = _kinds_of_attribute(schema.time or "", schema)
    return next(iter(kinds)) if kinds else None


def _kinds_of_attribute(attribute: str, schema: Schema) -> set[Kind] | None:
    """The kinds of an attribute over all types; None where no type is known at all."""
    every = [*schema.types.values(), *([schema.shared] if schema.shared is not None else [])]
    if not every:
        return None
    return {attributes[attribute] for attributes in every if attribute in attributes}
