"""A first look at Arrow batches, before DuckDB: which events can be relevant, told by their strings alone.

Most predicates of selective queries ask for a type and for a name, ``type = 'SELL' AND name = 'INTC'``.
The part of a predicate that says "this string column is one of these" is *screened* here by looking masks
up, one bit per predicate; what is left of it, the *rest*, is SQL as ever (classify.py). Only events that
pass go on to DuckDB, with their positions and with their masks.

Measured (events with a type and one of 100 names, two columns kept, nanoseconds of one core an event):

========================  ==  ==
names asked for            3  24
========================  ==  ==
DuckDB alone, plain       25  50
screened, plain           19  26
DuckDB alone, encoded     11  26
screened, encoded          8  12
========================  ==  ==

Where all columns that are asked are dictionary-encoded, a kernel looks masks up in all of them at once
(engine/masks.py) and lets exactly those rows pass that have some bit: the taxi queries of 24 steps, to
which one event in sixteen matters, went from 33 to 65 million events/s.

Rejected: ``pyarrow.compute.index_in`` over all events (7 to 16 ns a column, by the number of names),
encoding plain strings first (12 to 17 ns a column), masks of 64 bits in the first look (4.6 ns a column,
0.9 with 8 bits), and several threads in DuckDB with positions in a column of their own (up to twice as
fast, but rows come out of order).
"""

from __future__ import annotations

import functools
import itertools
import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from estero.automata.cea import EventPredicate
from estero.classify.arrays import array_of, empty_table, numbers_in, texts_of
from estero.classify.column_names import POSITION, WORD, bits_name, screen_name
from estero.classify.splits import Split, columns_needed, split
from estero.language.tree.expressions import Literal
from estero.plan.plan import Classification

ROWS = 1 << 16
"""Rows looked at in one go: their masks stay in the cache."""

ENCODED_ROWS = 1 << 17
"""The same where indices into dictionaries are looked at: little to do for each of them."""

_THREADS = os.cpu_count() or 1
_GROUPS = 8
_ALL_GROUPS = (1 << _GROUPS) - 1
_SLOT_BITS = 12
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_WORD_BYTES = 8


class Screen:
    """The masks of a classification over the string columns of Arrow batches with `events` as their schema.

    `useful` is false where there is nothing to look up. `columns` are the columns that it reads or passes
    on, `schema` is that of what it gives, `selective` says that it asks for more
    than types, and `rests` are what is left of the predicates, in order. A relevant event has, for
    one of `pushed`, in each of its columns one of the strings; it is empty where that says nothing.
    """

    def __init__(self, classification: Classification, events: pa.Schema) -> None:
        strings = {field.name for field in events if _is_string(field.type)}
        splits = [self._split(predicate, classification, strings) for predicate in classification.predicates]
        asked = list(dict.fromkeys(name for division in splits for name in division.one_of))
        self.rests = [division.rest for division in splits]
        self._kept = [
            name for name in dict.fromkeys(columns_needed(classification, self.rests)) if name in events.names
        ]
        self.columns = list(dict.fromkeys((*self._kept, *asked)))
        self.useful = bool(asked) and strings.issuperset(asked) and _can_be_taken(events, self.columns)
        self.selective = any(name != classification.type_column for name in asked)
        self._words = [screen_name(word) for word in range(max(1, -(-len(splits) // WORD)))]
        added = [pa.field(name, pa.int64()) for name in (POSITION, *self._words)]
        self.schema = pa.schema([*(events.field(name) for name in self._kept), *added])
        self._keep_all = classification.keep_all
        self._columns = [_ScreenedColumn(name, splits) for name in asked]
        self._telling = [column for column in self._columns if column.tells_apart]
        self.pushed = () if classification.keep_all else _pushed(splits)
        self._ranked = False
        self._encoded = all(pa.types.is_dictionary(events.field(name).type) for name in asked)
        self._threaded = _THREADS > 1 and not self._encoded

    @staticmethod
    def _split(predicate: EventPredicate, classification: Classification, strings: Collection[str]) -> Split:
        divided = split(predicate, classification.type_column, strings)
        if classification.type_column is None and classification.only_type not in predicate.types:
            return Split(dict.fromkeys(divided.one_of, frozenset()), Literal(False))
        return divided

    def passed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The events that may be relevant, with their positions and masks; `batches` are the whole stream.

        With plain strings a few slices are looked at ahead, in threads, as Arrow and NumPy do not hold the
        interpreter for long: 16 million events/s of the taxi queries in one, 20 in two (24 predicates).
        With dictionaries a kernel does it in one pass, and there is too little left for threads.
        """
        if not self._threaded:
            look = self._look_at_indices if self._encoded else self._look
            for batch, base in slices(batches, ENCODED_ROWS):
                looked = look(batch, base)
                if looked is not None:
                    yield looked
            return
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="estero-screen") as threads:
            ahead: deque[Future[pa.RecordBatch | None]] = deque()
            for batch, base in slices(batches, ROWS):
                if not self._ranked:
                    self._rank(batch)  # once, before threads ask
                ahead.append(threads.submit(self._look, batch, base))
                if len(ahead) > _THREADS:
                    yield from _there(ahead.popleft())
            while ahead:
                yield from _there(ahead.popleft())

    def _look(self, batch: pa.RecordBatch, base: int) -> pa.RecordBatch | None:
        if not self._ranked:
            self._rank(batch)
        rows = self._candidates(batch)
        return self._screened(batch, rows, base) if rows is None or len(rows) else None

    def _look_at_indices(self, batch: pa.RecordBatch, base: int) -> pa.RecordBatch | None:
        """The same where all columns that are asked are dictionaries: exactly the rows with some bit."""
        from estero.engine.masks import rows_with_bits  # here, for schemas need no kernels

        looked = [column.indices_and_masks(batch.column(column.name)) for column in self._columns]
        indices, masks = zip(*looked, strict=True)
        rows, words = rows_with_bits(indices, masks, keep_all=self._keep_all)
        if not len(rows):
            return None
        kept = batch.select(self._kept)
        if len(rows) < batch.num_rows:
            kept = kept.take(array_of(rows))
        added = [_positions(batch, rows, base), *map(array_of, words)]
        return pa.RecordBatch.from_arrays([*kept.columns, *added], schema=self.schema)

    def _rank(self, batch: pa.RecordBatch) -> None:
        """Puts those columns first that let few events of `batch` pass."""
        passing = [
            np.count_nonzero(column.groups(batch.column(column.name), None)) for column in self._telling
        ]
        self._telling = [self._telling[place] for place in np.argsort(passing, kind="stable")]
        self._ranked = True

    def _candidates(self, batch: pa.RecordBatch) -> NDArray[np.int64] | None:
        """The rows that may be relevant; None stands for all of them.

        Columns are asked one after another, those first that let few pass, each only for what is left.
        """
        if self._keep_all or not self._telling:
            return None
        rows: NDArray[np.int64] | None = None
        groups = np.full(batch.num_rows, _ALL_GROUPS, np.uint8)
        for column in self._telling:
            groups &= column.groups(batch.column(column.name), rows)
            left = np.flatnonzero(groups != 0)  # of truth values it is twice as fast
            if 2 * len(left) < len(groups) or column is self._telling[-1]:
                rows, groups = left if rows is None else rows[left], groups[left]
        return None if rows is None or len(rows) == batch.num_rows else rows

    def _screened(self, batch: pa.RecordBatch, rows: NDArray[np.int64] | None, base: int) -> pa.RecordBatch:
        places = _positions(batch, np.arange(batch.num_rows) if rows is None else rows, base)
        batch = batch.select(self.columns)
        if rows is None:
            rows = np.arange(batch.num_rows)
        else:
            batch = batch.take(array_of(rows))
        words = [np.full(len(rows), -1, np.int64) for _ in self._words]
        for column in self._columns:
            codes = column.codes(batch.column(column.name))
            for bits, masks in zip(words, column.masks, strict=True):
                np.bitwise_and(bits, masks[codes], out=bits)
        kept = [batch.column(name) for name in self._kept]
        added = [places, *map(array_of, words)]
        return pa.RecordBatch.from_arrays([*kept, *added], schema=self.schema)


def _positions(batch: pa.RecordBatch, rows: NDArray[np.int64], base: int) -> pa.Array:
    """The positions of these rows of a batch: as it says them, or counted from `base`."""
    if POSITION in batch.schema.names:
        return batch.column(POSITION).take(array_of(rows))
    return array_of(rows + base)


def _pushed(splits: Sequence[Split]) -> tuple[Mapping[str, frozenset[str]], ...]:
    """The strings that each predicate asks for; empty if some predicate asks for none."""
    asked = {tuple(sorted((name, texts) for name, texts in division.one_of.items())) for division in splits}
    if not asked or () in asked:
        return ()
    return tuple(
        dict(conjunction)
        for conjunction in sorted(asked, key=lambda conjunction: [(n, sorted(t)) for n, t in conjunction])
    )


def slices(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Slices with a bounded number of rows, each with the position of its first event."""
    base = 0
    for whole in batches:
        for start in range(0, whole.num_rows, rows):
            yield whole.slice(start, rows), base + start
        base += whole.num_rows


def with_bits(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with some bit set."""
    words = itertools.takewhile(batch.schema.names.__contains__, map(bits_name, itertools.count()))
    some = functools.reduce(np.bitwise_or, (numbers_in(batch.column(word)) for word in words))
    return batch if some.all() else batch.filter(array_of(some != 0))


def _there(looked: Future[pa.RecordBatch | None]) -> Iterator[pa.RecordBatch]:
    batch = looked.result()
    if batch is not None:
        yield batch


class _Learned(NamedTuple):
    """For each index into a dictionary, and last for NULL: its code, its groups, its words of bits."""

    dictionary: pa.Array
    codes: NDArray[np.int32]
    groups: NDArray[np.uint8]
    words: NDArray[np.int64]


class _ScreenedColumn:
    """One string column: for each literal that any predicate asks it for, the predicates that do.

    `masks[w]` holds, for each literal and last for all other values, the bits of word w; `groups` are the
    same for eight groups of predicates, all that a first look needs.
    """

    def __init__(self, name: str, splits: Sequence[Split]) -> None:
        self.name = name
        literals = sorted({text for division in splits for text in division.one_of.get(name, ())})
        self._literals = texts_of(literals, pa.string())
        self._other = len(literals)
        values: list[str | None] = [*literals, None]
        words = range(max(1, -(-len(splits) // WORD)))
        self.masks = [
            np.array(
                [_bits(value, name, splits[word * WORD : (word + 1) * WORD]) for value in values],
                np.int64,
            )
            for word in words
        ]
        self._group_masks = np.array([_groups(value, name, splits) for value in values], np.uint8)
        self._slots = self._hashed(literals)
        self._learned: _Learned | None = None

    @property
    def tells_apart(self) -> bool:
        """Whether some value excludes some group of predicates."""
        return bool((self._group_masks != self._group_masks[0]).any()) or self._group_masks[0] == 0

    def groups(self, values: pa.Array, rows: NDArray[np.int64] | None) -> NDArray[np.uint8]:
        """For each value (of these rows) the groups of predicates that it does not rule out, or more."""
        if isinstance(values, pa.DictionaryArray):
            indices = _indices(values)
            return self._learn(values).groups.take(indices if rows is None else indices[rows])
        return self._slots.take(_slots(values, rows))

    def indices_and_masks(self, values: pa.DictionaryArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each value its index, the one after the last for NULL; for each index its words of bits."""
        return _indices(values), self._learn(values).words

    def codes(self, values: pa.Array) -> NDArray[np.int32]:
        """For each value the index of its literal, or that of "other"."""
        if isinstance(values, pa.DictionaryArray):
            return self._learn(values).codes.take(_indices(values))
        return self._look_up(values)

    def _learn(self, values: pa.DictionaryArray) -> _Learned:
        """The codes and masks of the dictionary of these values, looked up once while it stays the same.

        Kept as one value, because several threads ask.
        """
        dictionary, learned = values.dictionary, self._learned
        if learned is None or not (learned.dictionary is dictionary or learned.dictionary.equals(dictionary)):
            codes = np.append(self._look_up(dictionary), np.int32(self._other))
            words = np.column_stack([masks[codes] for masks in self.masks])
            learned = self._learned = _Learned(dictionary, codes, self._group_masks[codes], words)
        return learned

    def _look_up(self, values: pa.Array) -> NDArray[np.int32]:
        numbers = pc.index_in(values, value_set=self._literals.cast(values.type))
        return numbers_in(pc.fill_null(numbers, *array_of(np.array([self._other], np.int32))))

    def _hashed(self, literals: Sequence[str]) -> NDArray[np.uint8]:
        """Masks of groups by hash; values that share a slot share their masks."""
        slots = np.full(1 << _SLOT_BITS, self._group_masks[self._other], np.uint8)
        if literals:
            np.bitwise_or.at(slots, _slots(texts_of(literals, pa.string()), None), self._group_masks[:-1])
        return slots


def _bits(value: str | None, name: str, splits: Sequence[Split]) -> int:
    return sum(
        1 << bit
        for bit, division in enumerate(splits)
        if name not in division.one_of or value in division.one_of[name]
    )


def _groups(value: str | None, name: str, splits: Sequence[Split]) -> int:
    """Predicates with the same strings for their first column, the type, are in the same group."""
    firsts = [frozenset(next(iter(division.one_of.values()), frozenset())) for division in splits]
    group = {first: number % _GROUPS for number, first in enumerate(dict.fromkeys(firsts))}
    mask = 0
    for first, division in zip(firsts, splits, strict=True):
        if name not in division.one_of or value in division.one_of[name]:
            mask |= 1 << group[first]
    return mask


def _is_string(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _can_be_taken(events: pa.Schema, columns: Sequence[str]) -> bool:
    """Whether Arrow can pick rows of all these columns; it cannot pick views of strings."""
    try:
        empty_table(events).select(columns).take(array_of(np.empty(0, np.int64)))
    except pa.ArrowNotImplementedError:
        return False
    return True


def _indices(values: pa.DictionaryArray) -> NDArray[np.int64]:
    """The index of each value; of NULL, the one after the last."""
    indices = values.indices
    if indices.null_count:
        beyond = array_of(np.array([len(values.dictionary)]))
        indices = pc.fill_null(indices.cast(pa.int64()), *beyond)
    return numbers_in(indices)


def _slots(values: pa.Array, rows: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """For each string (of these rows) a hash of its first eight bytes; for NULL that of some string."""
    _, offsets_buffer, data = values.buffers()
    if data is None or data.size < _WORD_BYTES:
        return _slots_of_few_bytes(values if rows is None else values.take(array_of(rows)))
    wide = pa.types.is_large_string(values.type)
    offsets: NDArray[np.int64] = np.frombuffer(offsets_buffer, np.int64 if wide else np.int32)
    offsets = offsets[values.offset : values.offset + len(values) + 1]
    if rows is None:
        starts, lengths = offsets[:-1], np.diff(offsets)
    else:
        starts = offsets[rows]
        lengths = offsets[rows + 1] - starts
    words = np.lib.stride_tricks.as_strided(
        np.frombuffer(data, np.uint64, count=1), (data.size - _WORD_BYTES + 1,), (1,), writeable=False
    )
    last = data.size - _WORD_BYTES
    if len(starts) and int(starts[-1]) > last:
        # The last strings have fewer than eight bytes after their start: read them from further left.
        first = np.minimum(starts, last)
        keys = words[first] >> (8 * (starts - first)).astype(np.uint64)
    else:
        keys = words[starts]
    np.minimum(lengths, _WORD_BYTES, out=lengths)
    beyond = (_WORD_BYTES - lengths).astype(np.uint64)
    keys <<= beyond << np.uint64(3)  # drops the bytes that belong to the next string
    return _hash(keys)


def _slots_of_few_bytes(values: pa.Array) -> NDArray[np.int64]:
    texts = values.cast(pa.binary()).to_pylist()  # which need not be UTF-8
    starts = [(text or b"")[:_WORD_BYTES].rjust(_WORD_BYTES, b"\0") for text in texts]
    return _hash(np.frombuffer(b"".join(starts), np.uint64).copy())


def _hash(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The slot of each key, in place."""
    keys *= _MULTIPLIER
    keys >>= np.uint64(64 - _SLOT_BITS)
    return keys.view(np.int64)
