"""The reference meaning of MATCH_RECOGNIZE, executable and slow: backtracking over the tree of the pattern.

It defines the first match in preference order from the leftmost start, tests that include the current row,
the stopping rule of empty iterations, and where the search continues. A variable's condition is a function of
the partition's rows, the labels of the match so far with the tested row last, and the start of the match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from estero.errors import DataError
from estero.language.row_patterns.tree import (
    Anchor,
    Choice,
    Excluded,
    Nothing,
    Permutation,
    Repetition,
    RowPattern,
    Skip,
    Variable,
)
from estero.language.row_patterns.tree import Sequence as PatternSequence


@dataclass(frozen=True)
class Labelled:
    """A row of a match has this variable (a key), and may be excluded from what is shown."""

    variable: str
    excluded: bool = False


@dataclass(frozen=True)
class Match:
    """A match: the place of its first row, and the labels of its rows, which follow one another."""

    start: int
    labels: tuple[Labelled, ...]


Condition = Callable[[int, Sequence[str], int], bool]
"""Whether a row at a place can have the last of the labels; the match begins at the last argument."""
Path = tuple[Labelled, ...]


class Matcher:
    """The matches of one partition of `rows` rows.

    `until` says of each row, where there is WITHIN, before which row a match from there must end.
    """

    def __init__(
        self,
        pattern: RowPattern,
        define: Mapping[str, Condition],
        rows: int,
        until: Sequence[int] | None = None,
    ) -> None:
        self._pattern, self._define, self._rows, self._until = pattern, define, rows, until

    def matches(self, skip: Skip, names: Mapping[str, frozenset[str]]) -> Iterator[Match]:
        """All matches, in order; `names` are the variables and subsets, with what they stand for."""
        start = 0
        while start < self._rows:
            matched = self.at(start)
            if matched is None:
                start += 1
                continue
            yield matched
            start = self._next(matched, skip, names)

    def at(self, start: int) -> Match | None:
        """The preferred match that starts at a row."""
        for path in self.all_at(start):
            return Match(start, path)
        return None

    def all_at(self, start: int) -> Iterator[Path]:
        """All matches that start at a row, the preferred one first."""
        return self._paths(self._pattern, start, (), excluded=False)

    def _next(self, matched: Match, skip: Skip, names: Mapping[str, frozenset[str]]) -> int:
        if skip.to == "next" or not matched.labels:
            return matched.start + 1
        if skip.variable is None:
            return matched.start + len(matched.labels)
        wanted = names[skip.variable.key]
        places = [place for place, label in enumerate(matched.labels) if label.variable in wanted]
        if not places:
            raise DataError(f"the match has no row of {skip.variable}", row=matched.start + 1)
        place = places[0] if skip.to == "first" else places[-1]
        if place == 0:
            raise DataError(f"{skip.variable} is the first row of the match", row=matched.start + 1)
        return matched.start + place

    def _paths(self, pattern: RowPattern, start: int, path: Path, *, excluded: bool) -> Iterator[Path]:
        """All continuations of a path through a pattern, the most preferred first."""
        match pattern:
            case Variable():
                yield from self._one_row(pattern, start, path, excluded=excluded)
            case Anchor(at=at):
                if start + len(path) == (0 if at == "start" else self._rows):
                    yield path
            case Nothing():
                yield path
            case PatternSequence(parts):
                yield from self._one_by_one(parts, start, path, excluded=excluded)
            case Choice(alternatives):
                for alternative in alternatives:
                    yield from self._paths(alternative, start, path, excluded=excluded)
            case Permutation(parts):
                for order in permutations(parts):
                    yield from self._one_by_one(order, start, path, excluded=excluded)
            case Excluded(part):
                yield from self._paths(part, start, path, excluded=True)
            case Repetition():
                yield from self._again(pattern, 0, start, path, excluded=excluded)

    def _one_row(self, variable: Variable, start: int, path: Path, *, excluded: bool) -> Iterator[Path]:
        row = start + len(path)
        if row >= (self._rows if self._until is None else self._until[start]):
            return
        longer = (*path, Labelled(variable.key, excluded))
        condition = self._define.get(variable.key)
        if condition is None or condition(row, [label.variable for label in longer], start):
            yield longer

    def _one_by_one(
        self, parts: Sequence[RowPattern], start: int, path: Path, *, excluded: bool
    ) -> Iterator[Path]:
        if not parts:
            yield path
            return
        for longer in self._paths(parts[0], start, path, excluded=excluded):
            yield from self._one_by_one(parts[1:], start, longer, excluded=excluded)

    def _again(
        self, repeated: Repetition, done: int, start: int, path: Path, *, excluded: bool
    ) -> Iterator[Path]:
        """The continuations of a repetition after `done` iterations: one more or the end, as it prefers."""
        if not repeated.greedy and done >= repeated.least:
            yield path
        if repeated.most is None or done < repeated.most:
            for longer in self._paths(repeated.part, start, path, excluded=excluded):
                if len(longer) == len(path) and done + 1 >= repeated.least:
                    yield longer  # nothing was read: the iterations end here
                else:
                    yield from self._again(repeated, done + 1, start, longer, excluded=excluded)
        if repeated.greedy and done >= repeated.least:
            yield path


def row_at(
    matched: Match,
    current: int,
    wanted: frozenset[str] | None,
    *,
    last: bool = True,
    offset: int = 0,
    shift: int = 0,
    rows: int,
) -> int | None:
    """The row that FIRST or LAST names in the match up to its row `current`, and PREV or NEXT from there.

    `current` counts from the start of the match; `wanted` are the variables (None: all), `rows` those of
    the partition.
    """
    places = [
        place
        for place, label in enumerate(matched.labels[: current + 1])
        if wanted is None or label.variable in wanted
    ]
    if offset >= len(places):
        return None
    row = matched.start + (places[-1 - offset] if last else places[offset]) + shift
    return row if 0 <= row < rows else None
