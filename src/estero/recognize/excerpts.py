"""One classified stream for several plans: each gets the same as from a stream of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from estero.classify.arrays import array_of
from estero.classify.column_names import (
    BITS,
    HELD_ERA,
    KEYS,
    ORDINAL,
    POSITION,
    TIME,
    WORD,
    event_column,
    numbered,
    value_name,
    word_names,
)
from estero.classify.vectors.taking import taken
from estero.events.sources import Source
from estero.events.tables.shown_types import plain, plain_schema
from estero.plan.plan import Classification
from estero.plan.together import together
from estero.recognize.batch_columns import numbers_of

_MOST: Final = 1 << 28
"""The most bytes of classified events that are held to be read again; beyond that, the source is read
again."""


class Excerpt:
    """The part of events classified for several plans (`together`) that one of them reads.

    If `since` is above 0, it reads the events of this era or a later one.
    """

    def __init__(
        self, own: Classification, everything: Classification, events: pa.Schema, *, since: int = 0
    ) -> None:
        self._since = since
        self._places = [everything.predicates.index(predicate) for predicate in own.predicates]
        self._words = word_names(len(own.predicates))
        self._all_words = numbered(BITS, events.names)
        self._keeps_all = own.keep_all and ORDINAL not in events.names
        first = [name for name in (POSITION, TIME, ORDINAL) if name in events.names]
        self._first = [*first, *(KEYS if own.keys else ())]
        self._values = {
            value_name(number): value_name(everything.values.index(value))
            for number, value in enumerate(own.values)
        }
        self._shown = list(map(event_column, own.payload))
        self._taken = list(dict.fromkeys([*self._first, *self._values.values(), *self._shown]))
        fields = [events.field(name) for name in self._first]
        fields += [pa.field(name, pa.int64()) for name in self._words]
        fields += [events.field(there).with_name(name) for name, there in self._values.items()]
        fields += map(events.field, self._shown)
        self.schema: pa.Schema = plain_schema(pa.schema(fields))
        """The columns of its events, without dictionaries."""

    def of(self, classified: pa.RecordBatch) -> pa.RecordBatch:
        """The events that matter to the plan, with its own bits and values."""
        words = self._words_of(classified)
        own = pa.RecordBatch.from_arrays(self._columns(classified, words), schema=self.schema)
        if self._keeps_all:
            return own if self._since == 0 else own.filter(array_of(self._is_since(classified)))
        matters = np.bitwise_or.reduce(words) != 0
        return own if matters.all() else own.filter(array_of(matters))

    def columns_taken(
        self, classified: pa.RecordBatch, rows: NDArray[np.int64], words: Sequence[NDArray[np.int64]]
    ) -> list[pa.Array]:
        """These rows of a classified batch, with these words of bits, as the columns of `schema`."""
        return self._columns(taken(classified.select(self._taken), rows), words)

    def _words_of(self, classified: pa.RecordBatch) -> list[NDArray[np.int64]]:
        words = [numbers_of(classified, name) for name in self._all_words]
        own = words_of_bits(words, self._places, len(self._words))
        if self._since == 0:
            return own
        since = self._is_since(classified)
        return [np.where(since, word, 0) for word in own]

    def _is_since(self, classified: pa.RecordBatch) -> NDArray[np.bool_]:
        """Whether each event came when the plan was there."""
        return numbers_of(classified, HELD_ERA) >= self._since

    def _columns(self, events: pa.RecordBatch, words: Iterable[NDArray[np.int64]]) -> list[pa.Array]:
        return [
            *map(events.column, self._first),
            *map(array_of, words),
            *(plain(events.column(name)) for name in (*self._values.values(), *self._shown)),
        ]


def words_of_bits(
    words: Sequence[NDArray[np.int64]], places: Sequence[int | None], number: int
) -> list[NDArray[np.int64]]:
    """Words with the bits at these places of other words, 0 for None.

    Bits that keep their places are taken together.
    """
    own_words = [np.zeros_like(words[0]) for _ in range(number)]
    kept = [0] * len(words)
    for own, place in enumerate(places):
        if place is None:
            continue
        (word, bit), (to, bit_there) = divmod(place, WORD), divmod(own, WORD)
        if (word, bit) == (to, bit_there):
            kept[word] |= 1 << bit
        else:
            own_words[to] |= (words[word] >> bit & 1) << bit_there
    for word, mask in enumerate(kept):
        if mask:
            own_words[word] |= words[word] & mask
    return own_words


class SharedReading:
    """A source that is classified several times in turn: it is read once, if the events can be held.

    Plans with different partition keys, or that compare values (whose scale is common to all of them), read
    separately.
    """

    def __init__(self, source: Source, asked: Sequence[Classification]) -> None:
        self._source = source
        self._asked = _shared(asked)
        self._held: list[pa.RecordBatch] | None = None

    def read(self, classification: Classification) -> Iterator[pa.RecordBatch]:
        """As `Source.read`; batches without an event that matters may be among them."""
        if self._asked is None:
            yield from self._source.read(classification)
            return
        excerpt = Excerpt(classification, self._asked, self._source.classified_schema(self._asked))
        yield from map(excerpt.of, self._batches(self._asked) if self._held is None else self._held)

    def _batches(self, asked: Classification) -> Iterator[pa.RecordBatch]:
        """The batches read, held for the next time if they are not too large."""
        held: list[pa.RecordBatch] | None = []
        size = 0
        for batch in self._source.read(asked):
            size += batch.nbytes
            if held is not None:
                held.append(batch)
            if size > _MOST:
                held = None
            yield batch
        self._held = held
        if held is None:
            self._asked = None


def _shared(asked: Sequence[Classification]) -> Classification | None:
    if len(asked) == 1 or any(other.keys != asked[0].keys or other.values for other in asked):
        return None
    return together(asked)
