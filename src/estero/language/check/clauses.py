"""Checks of the clauses of a query: SELECT list, WITHIN, CONSUME BY, LIMIT (keys.py has PARTITION BY)."""

from __future__ import annotations

from typing import Final

from estero.errors import NOWHERE, Span
from estero.language.check.keys import check_bracket
from estero.language.check.known_types import KnownTypes, naming_the_time
from estero.language.check.problems import Problems
from estero.language.check.ranking import check_ranking
from estero.language.check.selected import check_selected
from estero.language.tree import distances as d
from estero.language.tree import query as q
from estero.language.tree.literals import INT_MAX
from estero.language.tree.schema import Attributes, Kind, Schema
from estero.language.tree.words import quoted

_MOST_PER: Final = 10**9
_TIMES: Final = frozenset({Kind.INT, Kind.TIMESTAMP})


def check_clauses(tree: q.QueryTree, known: KnownTypes, problems: Problems) -> None:
    """Notes errors of the clauses around the pattern."""
    check_selected(tree, known, problems)
    for bracket in tree.partition_by:
        check_bracket(bracket, tree.pattern, known, problems)
    if tree.consume is q.Consume.PARTITION and not tree.partition_by:
        problems.add(
            "CONSUME BY PARTITION needs PARTITION BY",
            tree.places.get("CONSUME BY", NOWHERE),
            expected="CONSUME BY ANY, or a PARTITION BY clause",
            hint="without partitions, CONSUME BY ANY forgets everything read so far",
        )
    check_bounds(tree.window, tree.limit, tree.places.get("LIMIT", NOWHERE), known.schema, problems)
    if tree.per is not None:
        if tree.limit is not None and _MOST_PER < tree.limit <= INT_MAX:
            problems.add(
                f"LIMIT … PER keeps at most {_MOST_PER:,} complex events in an interval",
                tree.places.get("LIMIT", NOWHERE),
                expected=f"a whole number from 1 to {_MOST_PER}",
                hint="leave LIMIT out to keep all",
            )
        _check_interval(tree.per, tree.places.get("PER", NOWHERE), known.schema, problems)
    if tree.consume is not q.Consume.NONE:
        _check_consumed(tree, problems)
    if tree.ranking is not None:
        check_ranking(tree, tree.ranking, problems)


def _check_interval(per: d.Window, place: Span, schema: Schema | None, problems: Problems) -> None:
    """Notes errors of the length of PER."""
    if isinstance(per, d.EventWindow):
        problems.add(
            "LIMIT … PER counts in intervals of time",
            per.span,
            expected="a duration, or n [time]",
            hint="for example LIMIT 3 PER 1 HOUR; LIMIT 3 PER END is at each end",
        )
    elif (per.nanoseconds if isinstance(per, d.DurationWindow) else per.ticks) == 0:
        lasting = isinstance(per, d.DurationWindow)
        problems.add(
            "the interval of PER must be longer than zero",
            per.span,
            expected="a duration such as 1 SECOND" if lasting else f"a whole number from 1 to {INT_MAX}",
            hint="LIMIT 3 PER END is at each end",
        )
    else:
        check_length(per, schema, problems, what="interval")
    if schema is not None and schema.time is None and isinstance(per, d.AttributeWindow):
        problems.add(
            "LIMIT … PER needs a time column",
            place,
            expected="LIMIT n, or a time column",
            hint=naming_the_time(schema),
        )


def _check_consumed(tree: q.QueryTree, problems: Problems) -> None:
    """Notes clauses that conflict with CONSUME BY, because they are decided after the end is read."""
    late = f"SELECT {tree.strategy.value}" if tree.strategy.one_for_each_start else ""
    late = late or ("LIMIT … PER" if tree.per is not None else "")
    if late:
        problems.add(
            f"{late} and CONSUME BY do not go together",
            tree.places.get("CONSUME BY", NOWHERE),
            expected=f"{late} without CONSUME BY",
            hint="SELECT LONGEST DISJOINT gives complex events that share no events"
            if tree.strategy is not q.Strategy.ALL or tree.per is None
            else "it is undefined whether complex events that are left out are consumed: "
            "use one of the two clauses",
        )


def check_bounds(
    window: d.Window | None, limit: int | None, place: Span, schema: Schema | None, problems: Problems
) -> None:
    """Notes errors of WITHIN, and of LIMIT, which is at `place`."""
    if window is not None:
        check_length(window, schema, problems)
    if limit is not None and not 1 <= limit <= INT_MAX:
        problems.add(
            "LIMIT keeps at least one complex event for each position"
            if limit < 1
            else "LIMIT does not fit in 64 bits",
            place,
            expected=f"a whole number from 1 to {INT_MAX}",
            hint="leave LIMIT out to keep all",
        )


_NAMED: Final = {
    "window": "a window",
    "distance": "a distance",
    "interval": "an interval",
    "deadline": "a deadline",
}
_BEFORE: Final = {"window": "WITHIN ", "interval": "PER ", "deadline": "FOR "}
_WITHOUT: Final = {
    "window": "leave WITHIN out for no limit on the length",
    "distance": "leave it out for no limit",
    "interval": "LIMIT n without PER is at each end",
    "deadline": "NOT(b) between two parts needs no deadline",
}
_INSTEAD: Final = {"interval": "LIMIT n, or a time column", "deadline": "a time column"}
"""The words for a length: its name, the text before it, and the replacements for it and for a time."""


def check_length(
    length: d.Window, schema: Schema | None, problems: Problems, *, what: str = "window"
) -> bool:
    """Notes errors of the length of a window or a distance; returns whether there are none."""
    before = problems.count
    if not _wrong_length(length, problems, what) and schema is not None:
        match length:
            case d.DurationWindow():
                _check_duration(length, schema, problems, what)
            case d.AttributeWindow():
                _check_attribute(length, schema, problems, what)
            case _:
                pass
    return problems.count == before


def _wrong_length(window: d.Window, problems: Problems, what: str) -> bool:
    """Notes a window or distance that is too short or too long; returns whether it is."""
    is_window = what == "window"
    largest = INT_MAX - 1 if what in ("distance", "deadline") else INT_MAX  # the engine asks for one more
    match window:
        case d.EventWindow(events):
            length, least, most = events, int(is_window), f"{largest} events"
        case d.AttributeWindow(ticks):
            length, least, most = ticks, 0, f"{largest} ticks"
        case d.DurationWindow(parts):
            # A negative part is wrong in any sum.
            length = min(window.nanoseconds, *(amount for amount, _ in parts))
            length = window.nanoseconds if length >= 0 else length
            least, most = 0, "292 years long"
    if least <= length <= largest:
        return False
    if length > largest:
        message = f"{_NAMED[what]} is at most {most}"
    else:
        message = (
            "a window must be longer than 0 events" if length == 0 else f"{_NAMED[what]} cannot be negative"
        )
    problems.add(
        message,
        window.span,
        expected="a duration of at most 292 years, in whole units, none of them negative"
        if isinstance(window, d.DurationWindow)
        else f"a whole number from {least} to {largest}",
        hint=_WITHOUT[what]
        if what != "distance" or length > largest
        else "the next part comes later, so distances are positive",
    )
    return True


def _check_duration(window: d.DurationWindow, schema: Schema, problems: Problems, what: str) -> None:
    within = _BEFORE.get(what, "")
    if schema.time is None:
        problems.add(
            "a duration needs a time column",
            window.span,
            expected=_INSTEAD.get(what, f"{within}n EVENTS, or a time column"),
            hint=naming_the_time(schema),
        )
        return
    kinds = _kinds_of(schema.time, schema)
    if schema.time_unit is None and kinds and Kind.TIMESTAMP not in kinds:
        problems.add(
            f"the time column {schema.time} holds integers, and the length of a tick is unknown",
            window.span,
            expected=f"{within}n [{quoted(schema.time)}] for n ticks, or the unit of a tick",
            hint='name it where the events are given, for example time_unit="ms"',
        )


def _check_attribute(window: d.AttributeWindow, schema: Schema, problems: Problems, what: str) -> None:
    attribute = window.attribute
    place = problems.inner_span(window.span, quoted(attribute))
    kinds = _kinds_of(attribute, schema)
    if schema.time is not None and attribute != schema.time:
        problems.add(
            f"{attribute} is not the time column",
            place,
            expected=f"[{quoted(schema.time)}]",
            hint=f"{what}s follow the order of the stream, and that is the order of the time column",
        )
    elif kinds is not None and not kinds:
        every = {name for table in _tables(schema) for name in table}
        problems.no_attribute(attribute, sorted(every), place)
    elif kinds is not None and not kinds <= _TIMES:
        problems.add(
            f"{attribute} is {next(iter(kinds - _TIMES)).value}, not a time",
            place,
            expected="a column of integers or timestamps",
            hint=_WITHOUT[what]
            if what in ("interval", "deadline")
            else f"{_BEFORE.get(what, '')}n EVENTS counts events instead",
        )


def _tables(schema: Schema) -> list[Attributes]:
    return [*schema.types.values(), *([schema.shared] if schema.shared is not None else [])]


def _kinds_of(attribute: str, schema: Schema) -> set[Kind] | None:
    """The kinds of an attribute over all types; None if no type is known."""
    tables = _tables(schema)
    return {table[attribute] for table in tables if attribute in table} if tables else None
