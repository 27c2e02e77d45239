"""Partitions whose rows come in several pieces: the decided matches, and the rows that the next piece needs.

With WITHIN a start is decided as soon as a row after its window is known, or it is known that no more rows
come in it, together with the rows that NEXT reads after the window. Starts are decided in order, so that the
effect of SKIP is known, too. Rows from the first undecided start on are kept, and those before it that PREV
reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from estero.engine.row_patterns.row_matcher import Extent
from estero.engine.walk.matches import places_of
from estero.language.row_patterns.slots import Aggregate, Expression, Label, MatchNumber, Presence, Value
from estero.language.row_patterns.tree import Anchor, RowPatternClause, nodes_of
from estero.recognize.row_patterns.matches import Matches
from estero.recognize.row_patterns.ordered_rows import PROGRESS, OrderedRows


@dataclass(frozen=True)
class Surroundings:
    """The numbers of rows read after a match and before one, and whether `earlier` matches count at all."""

    ahead: int
    back: int
    earlier: bool


def reads_number(expressions: Iterable[Expression]) -> bool:
    """Whether one of them reads MATCH_NUMBER(), or an aggregate that does."""
    slots = {slot for expression in expressions for slot in expression.slots}
    return any(
        isinstance(slot, MatchNumber)
        or (isinstance(slot, Aggregate) and _NUMBER.search(f"{slot.call} {slot.filter}") is not None)
        for slot in slots
    )


_NUMBER: Final = re.compile(r"\bnumber\b")
"""The name of the match number in the text of an aggregate."""


def surroundings_of(clause: RowPatternClause, expressions: Sequence[Expression]) -> Surroundings:
    """The rows around a match that the expressions and the pattern of a clause read."""
    slots = {slot for expression in expressions for slot in expression.slots}
    shifts = [slot.address.shift for slot in slots if isinstance(slot, Value | Presence | Label)]
    anchored = any(isinstance(node, Anchor) for node in nodes_of(clause.pattern))
    numbered = anchored or reads_number(expressions)
    back = max((-shift for shift in shifts if shift < 0), default=0)
    return Surroundings(max((shift for shift in shifts if shift > 0), default=0), back, numbered)


WHOLE: Final = Surroundings(0, 0, earlier=False)


def ends_with_partition(clause: RowPatternClause) -> bool:
    """Whether the end of the partition must be known: its pattern has $."""
    return any(isinstance(node, Anchor) and node.at == "end" for node in nodes_of(clause.pattern))


def extent_of(rows: OrderedRows, around: Surroundings) -> Extent | None:
    """The decided starts; None if all rows are known."""
    progress = rows.progress
    if progress is None:
        return None
    assert rows.until is not None  # noqa: S101 - rows without WITHIN come in one piece
    first, end = rows.first[:-1], rows.first[1:]
    ends = np.repeat(end, end - first)
    decided = (rows.until < ends) | progress.over
    decided &= rows.until + around.ahead <= ends
    before = np.concatenate([[0], np.cumsum(decided)])
    stop = np.where(progress.ended, end, first + before[end] - before[first])
    if rows.starts is not None:
        stop = np.minimum(stop, rows.starts.stop)
    begin = first + progress.begin
    return Extent(begin, np.maximum(begin, stop), np.where(progress.dropped == 0, first, -1))


def remaining(table: pa.Table, rows: OrderedRows, matches: Matches, around: Surroundings) -> pa.Table:
    """The rows of the ordered `table` with which the next piece begins, with the columns `PROGRESS`."""
    progress = rows.progress
    assert progress is not None  # noqa: S101 - as in `extent_of`
    first, end = rows.first[:-1], rows.first[1:]
    resume = np.minimum(matches.resume, end)
    kept = np.maximum(first, resume - max(around.back, int(around.earlier)))
    kept = np.where(progress.ended, end, kept)
    size = end - kept
    count = np.bincount(matches.partition, minlength=first.size).astype(np.int64)
    covered = first + progress.covered
    np.maximum.at(covered, matches.partition, matches.start + matches.length)
    values = {
        "dropped": progress.dropped + kept - first,
        "begin": resume - kept,
        "number": progress.number + count,
        "covered": np.maximum(covered - kept, 0),
    }
    left = table.take(pa.array(places_of(kept, size)))
    for name in PROGRESS:
        place = left.schema.get_field_index(name)
        left = left.set_column(place, name, pa.array(np.repeat(values[name], size)))
    return left
