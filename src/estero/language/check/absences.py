"""Checks of absences with a deadline, ``NOT(R) FOR d``: their place, their length and their combinations."""

from __future__ import annotations

from estero.errors import NOWHERE
from estero.language.check.clauses import check_length
from estero.language.check.known_types import naming_the_time
from estero.language.check.problems import Problems
from estero.language.tree import pattern as p
from estero.language.tree.conditions import residuals
from estero.language.tree.distances import AttributeWindow, DurationWindow, EventWindow, Window
from estero.language.tree.query import Consume, QueryTree
from estero.language.tree.schema import Schema
from estero.language.tree.selection import marking


def check_absences(tree: QueryTree, schema: Schema | None, problems: Problems) -> None:
    """Notes errors of the absences with a deadline in a pattern."""
    _check_compared(tree.pattern, problems)
    at_the_end = {id(absence) for absence in p.ending(tree.pattern)}
    for node in tree.pattern.walk():
        if not isinstance(node, p.Sequence):
            continue
        between = [absence for link in node.links for absence in link.lacking]
        for absence in (*node.before, *between, *node.after):
            _check_deadline(absence, schema, problems)
        for absence in between:
            _check_window(absence, tree.window, problems)
        for absence in node.after:
            if id(absence) not in at_the_end:
                problems.add(
                    "NOT(…) FOR after a part goes at the end of the whole pattern",
                    absence.span,
                    piece="NOT(…) FOR at the end of a part",
                    expected="a pattern that is one sequence, with NOT(…) FOR as its last part",
                    hint="with something after it, leave the parentheses out: a ; NOT(b) FOR 1 HOUR ; c; "
                    "alternatives with deadlines are queries of their own",
                )
    if at_the_end and tree.consume is not Consume.NONE:
        problems.add(
            "NOT(…) FOR at the end and CONSUME BY do not go together",
            tree.places.get("CONSUME BY", NOWHERE),
            expected="the query without CONSUME BY",
            hint="which events are forgotten would only be known once the deadline has passed",
        )


def _check_deadline(absence: p.Absence, schema: Schema | None, problems: Problems) -> None:
    (length,) = absence.apart.lengths
    if isinstance(length, EventWindow):
        problems.add(
            "a deadline is a time",
            length.span,
            expected="a duration, or n [time]",
            hint="a ;[<= 5 EVENTS] b counts events up to what happens",
        )
    elif not check_length(length, schema, problems, what="deadline"):
        pass
    elif schema is not None and schema.time is None and isinstance(length, AttributeWindow):
        problems.add(
            "NOT(…) FOR needs a time column",
            absence.span,
            expected="a time column",
            hint=naming_the_time(schema),
        )


def _check_compared(pattern: p.Pattern, problems: Problems, *, once: bool = True) -> None:
    """Notes comparisons with the event of a first or last absence, in parts that may occur several times.

    `once`: the pattern occurs once in each complex event.
    """
    if isinstance(pattern, p.Sequence) and not once:
        for absence in (*pattern.before, *pattern.after):
            for residual in residuals(absence.event):
                problems.add(
                    "a part that repeats, is optional or is an alternative "
                    "cannot compare the event that it forbids",
                    residual.span,
                    expected="conditions on the forbidden event alone: NOT(b AS r FILTER r[x > 1]) FOR …",
                    hint="where all events agree on an attribute, use PARTITION BY",
                )
    once = once and not isinstance(pattern, p.Iteration | p.Optional | p.Disjunction)
    for part in marking(pattern):
        _check_compared(part, problems, once=once)


def _check_window(absence: p.Absence, window: Window | None, problems: Problems) -> None:
    """Notes a deadline as long as the window, after which nothing can follow."""
    (length,) = absence.apart.lengths
    match length, window:
        case DurationWindow(), DurationWindow():
            too_long = length.nanoseconds >= window.nanoseconds
        case AttributeWindow(), AttributeWindow():
            too_long = length.ticks >= window.ticks
        case _:
            too_long = False
    if too_long:
        problems.add(
            "this deadline is as long as the window or longer: nothing can follow",
            length.span,
            expected=f"less than {window}",
            hint="the next part comes after the deadline and within the window",
        )
