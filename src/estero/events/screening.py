"""A first pass over Arrow batches: the events that can be relevant, by their strings alone.

Most predicates of selective queries test a type and a name, ``type = 'SELL' AND name = 'INTC'``. The part of
a predicate that says "this string column is one of these" is *screened* here by looking up masks, with one
bit per predicate; the remainder, the *rest*, is evaluated by vector code (plain_reading.py) or SQL
(classify.py). Only events that pass reach that stage, with their positions and masks.

Columns are read in turn, by kernels, the most selective one first, by a sample of the first rows: texts are
looked up among the literals (engine/masked_texts.py), indices into dictionaries are used directly
(engine/masks.py), and rows without a bit are not looked at in the next column. Exactly those rows pass that
have some bit in the end.

Measured (stock, a type and one of 100 names, nanoseconds of one core per event): a name and the choice of its
rows take 2.3, and types 0.5 to 1 where 2 % are left, one load from memory for each. With all codes of both
columns first, and their masks then, it was 8. Events that pass in adjacent batches are classified together: a
batch costs a tenth of a millisecond, however few events it has.

Rejected: ``pyarrow.compute.index_in`` over all events (7 to 16 ns a column, by the number of names), encoding
plain strings first (12 to 17 ns a column), and hashes of the first eight bytes by NumPy (5 ns for the first
column, and threads to make up for it).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.automata.cea import EventPredicate
from estero.classify.arrays import array_of, empty_batch, known_in, numbers_in
from estero.classify.column_names import POSITION, WORD, bits_name, screen_name
from estero.classify.splits import Split, columns_needed, split
from estero.classify.vectors.arrow_types import value_type
from estero.classify.vectors.batch_columns import BatchColumns, OddValueError
from estero.classify.vectors.conditions import indices_of
from estero.classify.vectors.taking import taken
from estero.classify.vectors.text_columns import ends_and_letters
from estero.classify.vectors.within_reach import SAMPLE, near_needed, rare_needs
from estero.language.tree.expressions import Literal, Node
from estero.plan.plan import Classification
from estero.plan.reach import Reach

if TYPE_CHECKING:
    from estero.engine.masked_texts import MaskedTexts
    from estero.engine.texts import KnownTexts

ROWS: Final = 1 << 19
"""The rows read in one go: with fewer, Python threads switch more often than they work."""
_TOGETHER: Final = 1 << 19
"""The rows of the batches whose events are classified together: calls cost as much for few rows."""
_SAMPLE: Final = 1 << 12
"""The number of rows, the first ones of the stream, by which columns are ordered."""
_OFTEN: Final = 8
"""If the most selective column passes one of this many rows, dictionaries are looked up together."""


class Screen:
    """The masks of a classification over the string columns of Arrow batches with `events` as their schema.

    `useful` is false if there is nothing to look up. `columns` are the columns that it reads or passes on,
    `schema` is that of its result, `selective` says that it tests more than types, and `rests` are the
    remainders of the predicates, in order. A relevant event has, for one of `pushed`, in each of its columns
    one of the strings; it is empty if that excludes nothing. Events out of `reach`, whatever the rests say,
    may be left out, too.
    """

    def __init__(self, classification: Classification, events: pa.Schema, reach: Reach | None = None) -> None:
        strings = {field.name for field in events if _is_string(field.type)}
        splits = [self._split(predicate, classification, strings) for predicate in classification.predicates]
        asked = list(dict.fromkeys(name for division in splits for name in division.one_of))
        self.rests: list[Node | None] = [division.rest for division in splits]
        self._kept = [
            name for name in dict.fromkeys(columns_needed(classification, self.rests)) if name in events.names
        ]
        self.columns: list[str] = list(dict.fromkeys((*self._kept, *asked)))
        self.useful: bool = bool(asked) and strings.issuperset(asked) and _can_be_taken(events, self.columns)
        self.selective: bool = any(name != classification.type_column for name in asked)
        self._words = [screen_name(word) for word in range(max(1, -(-len(splits) // WORD)))]
        added = [pa.field(name, pa.int64()) for name in (POSITION, *self._words)]
        self.schema: Any = pa.schema([*(events.field(name) for name in self._kept), *added])
        self._keep_all = classification.keep_all
        self._reach, self._time = reach, classification.schema.time
        self._columns = [_ScreenedColumn(name, splits) for name in asked]
        self._in_turn: list[_ScreenedColumn] = []
        is_read_together = classification.keep_all or len(self._words) > 1
        self._sampled = _Sampled(_SAMPLE if is_read_together else 0, dict.fromkeys(self._columns, 0))
        self.passes_often: bool = is_read_together
        """Whether many rows pass, as far as is known: then batches are better read one by one."""
        self.pushed: tuple[()] | tuple[Mapping[str, frozenset[str]], ...] = (
            () if classification.keep_all else _pushed(splits)
        )

    @staticmethod
    def _split(predicate: EventPredicate, classification: Classification, strings: Collection[str]) -> Split:
        divided = split(predicate, classification.type_column, strings)
        if classification.type_column is None and classification.only_type not in predicate.types:
            return Split(dict.fromkeys(divided.one_of, frozenset()), Literal(False))
        return divided

    def passed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The events that may be relevant, with positions and masks; `batches` are the whole stream."""
        for part in slices(batches):
            yield from self.look([part])

    def look(self, parts: Sequence[Part]) -> list[pa.RecordBatch]:
        """The same for some adjacent batches, without those that have no such event.

        Threads may screen several batches at once.
        """
        chosen = [_Chosen(batch, base, *self._rows_and_words(batch)) for batch, base in parts]
        near = self._within_reach(chosen)
        if near is not None:
            bounds = np.searchsorted(near, np.cumsum([0, *(len(part.rows) for part in chosen)]))
            first = 0
            for place, part in enumerate(chosen):
                own = near[bounds[place] : bounds[place + 1]]
                own = own - first if first else own
                first += len(part.rows)
                chosen[place] = part._replace(rows=part.rows[own], words=part.words[:, own])
        return [self._taken(part) for part in chosen if len(part.rows)]

    def _taken(self, part: _Chosen) -> pa.RecordBatch:
        """The columns of some rows of a batch, with positions and masks."""
        kept = part.batch.select(self._kept)
        if len(part.rows) < part.batch.num_rows:
            kept = taken(kept, part.rows)
        added = [part.positions(), *map(array_of, part.words)]
        return pa.RecordBatch.from_arrays([*kept.columns, *added], schema=self.schema)

    def _rows_and_words(self, batch: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of a batch that may be relevant, and their words of bits."""
        if self._sampled.rows < _SAMPLE:
            self._in_turn = self._most_selective_first(batch.slice(0, _SAMPLE - self._sampled.rows))
        if not self._in_turn:
            from estero.engine.masks import rows_with_bits  # here, for schemas need no kernels

            looked = [column.codes_and_masks(batch.column(column.name)) for column in self._columns]
            codes, masks = zip(*looked, strict=True)
            return rows_with_bits(codes, masks, keep_all=self._keep_all)
        first, *others = self._in_turn
        rows, bits = first.rows(batch.column(first.name))
        for column in others:
            rows, bits = column.among(batch.column(column.name), rows, bits)
        return rows, bits[np.newaxis]

    def _most_selective_first(self, sample: pa.RecordBatch) -> list[_ScreenedColumn]:
        """The columns in the order in which they are read: the later ones only where the first ones pass.

        The sample is added to the earlier ones. Empty if columns are better looked up together: dictionaries,
        which cost little, if many rows pass.
        """
        rows, passing = self._sampled
        passing = {
            column: before + column.rows(sample.column(column.name))[0].size
            for column, before in passing.items()
        }
        self._sampled = _Sampled(rows + sample.num_rows, passing)
        plain = any(_has_letters(sample.column(column.name)) for column in passing)
        self.passes_often = _OFTEN * min(passing.values()) > self._sampled.rows
        if self.passes_often and not plain and len(passing) > 1:
            return []
        return sorted(passing, key=lambda column: passing[column])

    def _within_reach(self, chosen: Sequence[_Chosen]) -> NDArray[np.intp] | None:
        """The indexes of the rows of adjacent batches, counted through, that matter; None for all."""
        parts = [part for part in chosen if len(part.rows)]
        if self._reach is None or not parts:
            return None
        ends = [self._stamps(parts[place].at(place)) for place in (0, -1)]
        step = max(1, sum(len(part.rows) for part in parts) // SAMPLE)
        sample = np.concatenate([part.words[:, ::step] for part in parts], axis=1)
        if ends[0] is None or ends[1] is None:
            return None
        needs = rare_needs(self._reach, int(ends[0][0]), int(ends[1][0]), list(sample), step)
        if not needs:
            return None
        stamps = [numbers for part in parts if (numbers := self._stamps(part)) is not None]
        if len(stamps) < len(parts):
            return None
        if len(parts) == 1:  # then nothing is copied
            return near_needed(self._reach, needs, stamps[0], list(parts[0].words))
        words = np.concatenate([part.words for part in parts], axis=1)
        return near_needed(self._reach, needs, np.concatenate(stamps), list(words))

    def _stamps(self, part: _Chosen) -> NDArray[np.int64] | None:
        """The positions of the rows, or their times, as the window has it; None if they are not known."""
        if self._reach is None or self._reach.window.in_positions or self._time is None:
            return numbers_in(part.positions())
        columns = BatchColumns(part.batch.select([self._time]))
        try:
            return None if columns.known(self._time) is not None else columns.ticks(self._time)[part.rows]
        except OddValueError:  # the next reading explains the time
            return None


class _Sampled(NamedTuple):
    """The number of rows in the samples so far, and how many of them pass each column."""

    rows: int
    passing: Mapping[_ScreenedColumn, int]


Part = tuple[pa.RecordBatch, int]
"""A batch, and the position of its first event."""


class _Chosen(NamedTuple):
    """Some rows of a batch, whose first event has the position `base`, and their words of bits."""

    batch: pa.RecordBatch
    base: int
    rows: NDArray[np.int64]
    words: NDArray[np.int64]

    def at(self, place: int) -> _Chosen:
        """The first (0) or last (-1) of the rows alone."""
        return self._replace(rows=self.rows[[place]], words=self.words[:, [place]])

    def positions(self) -> pa.Array:
        """The positions of the rows: from the column of the batch, or counted."""
        if POSITION in self.batch.schema.names:
            return self.batch.column(POSITION).take(array_of(self.rows))
        return array_of(self.rows + self.base)


def _pushed(splits: Sequence[Split]) -> tuple[Mapping[str, frozenset[str]], ...]:
    """The strings that each predicate requires; empty if some predicate requires none."""
    asked = {tuple(sorted((name, texts) for name, texts in division.one_of.items())) for division in splits}
    if not asked or () in asked:
        return ()
    return tuple(
        dict(conjunction)
        for conjunction in sorted(asked, key=lambda conjunction: [(n, sorted(t)) for n, t in conjunction])
    )


def slices(batches: Iterable[pa.RecordBatch]) -> Iterator[Part]:
    """Slices with a bounded number of rows, each with the position of its first event."""
    base = 0
    for whole in batches:
        for start in range(0, whole.num_rows, ROWS):
            yield whole.slice(start, ROWS), base + start
        base += whole.num_rows


def grouped(parts: Iterable[Part], screen: Screen) -> Iterator[list[Part]]:
    """Slices in groups of about `_TOGETHER` rows; the first ones are smaller: first answers come soon.

    If many rows pass the screen, each is a group: what is read is still in the cache when it is classified.
    """
    group: list[Part] = []
    rows, least = 0, 1
    for part in parts:
        group.append(part)
        rows += part[0].num_rows
        if rows >= least or screen.passes_often:
            yield group
            group, rows, least = [], 0, min(2 * rows, _TOGETHER)
    if group:
        yield group


def looked_at(batches: Iterable[pa.RecordBatch], screen: Screen | None) -> Iterator[pa.RecordBatch]:
    """The batches with positions: the rows that pass a screen, or all of them in slices."""
    if screen is not None:
        yield from screen.passed(batches)
        return
    for batch, base in slices(batches):
        yield with_positions(batch, base)


def with_positions(batch: pa.RecordBatch, base: int) -> pa.RecordBatch:
    """The batch with the positions of its events, counted from `base`."""
    return batch.append_column(POSITION, array_of(np.arange(base, base + batch.num_rows)))


def with_bits(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with some bit set."""
    words = itertools.takewhile(batch.schema.names.__contains__, map(bits_name, itertools.count()))
    joined = functools.reduce(np.bitwise_or, (numbers_in(batch.column(word)) for word in words))
    return batch if joined.all() else batch.filter(array_of(joined != 0))


class _Learned(NamedTuple):
    """The words of bits for each index into a dictionary, and last for NULL."""

    dictionary: pa.Array
    words: NDArray[np.int64]


class _ScreenedColumn:
    """One string column, with the predicates that test it for each literal.

    `masks` has for each literal, and last for all other values, the words of bits that it leaves.
    """

    def __init__(self, name: str, splits: Sequence[Split]) -> None:
        self.name = name
        literals = sorted({text for division in splits for text in division.one_of.get(name, ())})
        self._literals = [text.encode() for text in literals]
        self._other = len(literals)
        words = range(0, max(1, len(splits)), WORD)
        leaves = [[_bits(text, name, splits[at : at + WORD]) for at in words] for text in (*literals, None)]
        self._masks = np.array(leaves, np.int64)
        self._known: KnownTexts | None = None
        self._masked: MaskedTexts | None = None
        self._learned: _Learned | None = None

    def codes_and_masks(self, values: pa.Array) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """A code for each value, and the words of bits for each code."""
        if not isinstance(values, pa.DictionaryArray):
            return self._codes(values), self._masks
        dictionary, learned = values.dictionary, self._learned
        if learned is None or not (learned.dictionary is dictionary or learned.dictionary.equals(dictionary)):
            codes = np.append(self._codes(dictionary), np.int32(self._other))
            # Kept as one value, because several threads read it.
            learned = self._learned = _Learned(dictionary, self._masks[codes])
        return indices_of(values), learned.words

    def rows(self, values: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of values that leave some bit, ascending, and their bits, if all are in one word."""
        from estero.engine.masks import rows_of_one  # here, for schemas need no kernels

        if _has_letters(values):
            return self._masked_texts().rows(*ends_and_letters(values))
        codes, masks = self.codes_and_masks(values)
        return rows_of_one(codes, masks[:, 0])

    def among(
        self, values: pa.Array, rows: NDArray[np.int64], bits: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Those of some rows that leave some of their bits, and these; both arrays are overwritten."""
        from estero.engine.masks import rows_among  # here, for schemas need no kernels

        if _has_letters(values):
            return self._masked_texts().among(*ends_and_letters(values), rows, bits)
        codes, masks = self.codes_and_masks(values)
        return rows_among(codes, masks[:, 0], rows, bits)

    def _known_texts(self) -> KnownTexts:
        from estero.engine.texts import KnownTexts  # here, for schemas need no kernels

        if self._known is None:
            self._known = KnownTexts(self._literals)
        return self._known

    def _masked_texts(self) -> MaskedTexts:
        from estero.engine.masked_texts import MaskedTexts  # here, for schemas need no kernels

        if self._masked is None:
            self._masked = MaskedTexts(self._known_texts(), self._literals, self._masks[:, 0])
        return self._masked

    def _codes(self, texts: pa.Array) -> NDArray[np.int32]:
        """The index of each text among the literals, or one past the last; the same for NULL."""
        codes = self._known_texts().codes(*ends_and_letters(texts))
        if texts.null_count:
            codes[~known_in(texts)] = self._other
        return codes


def _has_letters(values: pa.Array) -> bool:
    """Whether a column has plain texts, none of them NULL, which are read in place."""
    return pa.types.is_string(values.type) and not values.null_count


def _bits(value: str | None, name: str, splits: Sequence[Split]) -> int:
    return sum(
        1 << bit
        for bit, division in enumerate(splits)
        if name not in division.one_of or value in division.one_of[name]
    )


def _is_string(kind: pa.DataType) -> bool:
    return value_type(kind) in {pa.string(), pa.large_string(), pa.string_view()}


def _can_be_taken(events: pa.Schema, columns: Sequence[str]) -> bool:
    """Whether rows can be picked of all these columns."""
    nothing = empty_batch(pa.schema([events.field(name) for name in columns]))
    try:
        taken(nothing, np.empty(0, np.int64))
    except pa.ArrowNotImplementedError:
        return False
    return True
