"""Matches as columns of numbers, and the rows that addresses name in all of them at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estero.language.row_patterns.slots import Address, Rows
from estero.language.row_patterns.tree import RowPatternClause
from estero.recognize.row_patterns.ordered_rows import OrderedRows
from estero.system.cached_property import cached_property

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Matches:
    """Matches in order: start, length and partition of each.

    `variable` is the number of the variable of each of their rows, concatenated; `variables` are the keys by
    number, `labels` the names as they are written, and `excluded` says which rows are not shown. Each
    partition had `given` matches before, and its search would continue at the row `resume`.
    """

    start: Ints
    length: Ints
    partition: Ints
    variable: NDArray[np.int32]
    excluded: NDArray[np.bool_]
    variables: tuple[str, ...]
    labels: tuple[str, ...]
    resume: Ints
    given: Ints

    @cached_property
    def offset(self) -> Ints:
        """The first row of each match among all of them, and finally their end."""
        return np.concatenate([[0], np.cumsum(self.length)]).astype(np.int64)

    @cached_property
    def number(self) -> Ints:
        """The number of each match in its partition, from 1."""
        if not self.partition.size:
            return np.zeros(0, np.int64)
        begins = np.concatenate([[True], self.partition[1:] != self.partition[:-1]])
        places = np.arange(self.partition.size, dtype=np.int64)
        here: Ints = places - np.maximum.accumulate(np.where(begins, places, 0)) + 1
        return here + self.given[self.partition]

    @cached_property
    def match_of(self) -> Ints:
        """The match of each matched row."""
        return np.repeat(np.arange(self.start.size, dtype=np.int64), self.length)

    @cached_property
    def row_of(self) -> Ints:
        """The input row of each matched row."""
        places = np.arange(self.variable.size, dtype=np.int64)
        return places - np.repeat(self.offset[:-1] - self.start, self.length)

    def numbers_of(self, rows: Rows) -> list[int]:
        """The numbers of the variables that are named."""
        return [number for number, key in enumerate(self.variables) if rows is None or key in rows]


class Place(NamedTuple):
    """Rows of the input, and which of them exist."""

    row: Ints
    exists: NDArray[np.bool_]


@dataclass(frozen=True)
class ShownRows:
    """The rows shown: for each its match, its input row, and its place among the matched rows.

    The match is -1 if there is none. The place of an empty match is the one before its rows would begin.
    """

    matches: Matches
    rows: OrderedRows
    match: Ints
    row: Ints
    place: Ints
    _of_variables: dict[Rows, tuple[Ints, Ints]] = field(default_factory=dict)

    @property
    def is_all(self) -> bool:
        """Whether all rows belong to matches."""
        return not self.match.size or int(self.match.min()) >= 0

    def at(self, address: Address) -> Place:
        """The rows that an address names, for all rows that are shown."""
        low, high = self._borders(final=address.final)
        if address.rows is None:
            place = high - address.offset if address.last else low + address.offset
            exists = (place >= low) & (place <= high)
        else:
            places, before = self._occurrences(address.rows)
            first, behind = before[low], before[np.maximum(high + 1, low)]
            index = behind - 1 - address.offset if address.last else first + address.offset
            exists = (index >= first) & (index < behind)
            place = places[np.where(exists, index, 0)] if places.size else low
        exists &= self.match >= 0
        match = np.maximum(self.match, 0)
        if not self.matches.start.size:
            return Place(np.zeros_like(self.row), exists)
        row = self.matches.start[match] + place - low + address.shift
        if address.shift:
            partition = self.matches.partition[match]
            exists &= (row >= self.rows.first[partition]) & (row < self.rows.first[partition + 1])
        return Place(row, exists)

    def variable_at(self, address: Address) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """The variable's number of the rows that an address names, and whether they have one in the match."""
        row, exists = self.at(address)
        if not self.matches.start.size:
            return np.zeros(row.size, np.int32), exists
        match = np.maximum(self.match, 0)
        inside = row - self.matches.start[match]
        exists = exists & (inside >= 0) & (inside < self.matches.length[match])
        place = np.where(exists, self.matches.offset[match] + inside, 0)
        variables = self.matches.variable
        return (variables[place] if variables.size else np.zeros(row.size, np.int32)), exists

    def count(self, rows: Rows, *, final: bool) -> Ints:
        """The number of rows of these variables up to each row, or in its match."""
        low, high = self._borders(final=final)
        if rows is None:
            return high + 1 - low
        _, before = self._occurrences(rows)
        counts: Ints = before[np.maximum(high + 1, low)] - before[low]
        return counts

    def _borders(self, *, final: bool) -> tuple[Ints, Ints]:
        """The places of the first and the last row that count."""
        match = np.maximum(self.match, 0)
        low = self.matches.offset[match]
        high = self.matches.offset[match + 1] - 1 if final and self.matches.start.size else self.place
        return low, high

    def _occurrences(self, rows: Rows) -> tuple[Ints, Ints]:
        """The places of these variables, and how many there are before each place."""
        known = self._of_variables.get(rows)
        if known is None:
            table = np.zeros(max(len(self.matches.variables), 1), np.bool_)
            table[self.matches.numbers_of(rows)] = True
            mine = table[self.matches.variable]
            before = np.zeros(mine.size + 1, np.int64)
            np.cumsum(mine, out=before[1:])
            known = self._of_variables[rows] = (np.flatnonzero(mine).astype(np.int64), before)
        return known


def resumed_rows(clause: RowPatternClause, matches: Matches) -> Ints:
    """The row at which the search continues after each match, if it does after all of them."""
    skip = clause.skip
    behind = matches.start + np.maximum(matches.length, 1)
    if skip.to == "next":
        return matches.start + 1
    if skip.variable is None:
        return behind
    wanted = np.isin(matches.variable, matches.numbers_of(clause.names[skip.variable.key]))
    places = np.flatnonzero(wanted)
    if skip.to == "first":
        place = np.searchsorted(places, matches.offset[:-1])
    else:
        place = np.searchsorted(places, matches.offset[1:]) - 1
    resumed = behind.copy()  # after an empty match it is the next row
    full = matches.length > 0
    resumed[full] = matches.row_of[places[place[full]]]
    return resumed


def shown_rows(clause: RowPatternClause, matches: Matches, rows: OrderedRows) -> ShownRows:
    """The rows that ONE ROW or ALL ROWS PER MATCH shows, in the order of the input."""
    everyone = np.arange(matches.start.size, dtype=np.int64)
    last = np.maximum(matches.start, matches.start + matches.length - 1)
    if clause.rows == "one":
        return ShownRows(matches, rows, everyone, last, matches.offset[1:] - 1)
    kept = ~matches.excluded
    parts = [(matches.match_of[kept], matches.row_of[kept], np.flatnonzero(kept).astype(np.int64))]
    if clause.rows != "all nonempty":
        empty = matches.length == 0
        parts.append((everyone[empty], matches.start[empty], matches.offset[:-1][empty] - 1))
    if clause.rows == "all unmatched":
        free = _unseen(rows, matches)
        free[matches.row_of] = False
        free[matches.start] = False
        unmatched = np.flatnonzero(free).astype(np.int64)
        parts.append(
            (np.full(unmatched.size, -1, np.int64), unmatched, np.full(unmatched.size, -1, np.int64))
        )
    match, row, place = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if len(parts) > 1:
        order = np.lexsort((match, row) if clause.rows == "all unmatched" else (place, match))
        match, row, place = match[order], row[order], place[order]
    return ShownRows(matches, rows, match, row, place)


def _unseen(rows: OrderedRows, matches: Matches) -> NDArray[np.bool_]:
    """The decided rows that are in no earlier match."""
    if rows.progress is None:
        return np.ones(rows.size, np.bool_)
    first, size = rows.first[:-1], np.diff(rows.first)
    from_row = first + np.maximum(rows.progress.begin, rows.progress.covered)
    row = np.arange(rows.size, dtype=np.int64)
    inside: NDArray[np.bool_] = (row >= np.repeat(from_row, size)) & (row < np.repeat(matches.resume, size))
    return inside
