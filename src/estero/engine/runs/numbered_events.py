"""The reading of events by deterministic automata: settings, and numbers for events."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from estero.engine.batch import BITS_IN_WORD, EventBatch
from estero.engine.cursor import CONSUME_NONE
from estero.engine.runs.run_cea import MISSING
from estero.engine.runs.runs import Runs
from estero.engine.runs.split.ranks import NO_ORDER
from estero.engine.runs.split.registers import RegisterTables
from estero.engine.runs.tables import Automaton, TableBuilder
from estero.engine.store.hashing import new_table, number_rows, numbered, table_of

FEWEST_PARTITIONS = 64
_FEW_WORDS = 1 << 10
"""The words of bits below this have their classes in an array, as long as the greatest of them needs."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings by which events are read.

    `window` is in the unit of the stamps (None: none), `consume` one of the CONSUME codes of `cursor`, `gaps`
    whether events dropped as irrelevant count (contiguity), `keyed` whether events carry a partition key,
    `words` the number of words of bits. `counting` prepares for `counts` only; with `total` only the number
    of all complex events is needed, or that of their ends unless it is `counting`.

    `registers` are what runs remember and check; `order` is MAX, NEXT or LAST if only such supports are kept
    (MAX not with registers), and `visible` bool[label sets] says which marks count for it (if empty: all).
    With `per_start` the best of each start are reported, under NEXT with registers; `apart` says that of
    those in a partition only some are chosen, which share no events (a code of `run_split`). `first_bit` is a
    bit (k % 63 of word k // 63) to be set on the first event of each stream, which is recognized by its
    ordinal; in a keyed stream only if `ordinals` says that they are places in the partition, otherwise all
    events of a key must be pushed.

    `clocks` is the number of columns of ascending values that give the age of runs, if the automaton uses it.
    """

    window: int | None = None
    consume: int = CONSUME_NONE
    gaps: bool = False
    keyed: bool = False
    words: int = 1
    counting: bool = False
    total: bool = False
    registers: RegisterTables | None = field(default=None, compare=False)
    order: int = NO_ORDER
    per_start: bool = False
    apart: int = 0
    visible: NDArray[np.bool_] | None = field(default=None, compare=False)
    first_bit: int | None = None
    ordinals: bool = False
    clocks: int = 0

    @property
    def split(self) -> bool:
        """Whether runs in one state have to be told apart by registers, or by their starts."""
        return self.per_start or (self.registers is not None and self.registers.registers > 0)

    @property
    def chooses(self) -> bool:
        """Whether runs are compared, for each window that makes a difference."""
        return self.order != NO_ORDER and not self.split

    @property
    def ranked(self) -> bool:
        """Whether the supports of runs are ranked by numbers."""
        return self.split and self.order != NO_ORDER

    @property
    def tallied(self) -> bool:
        """Whether a tally can count, without reading the compact set."""
        return self.counting and self.goes_by_states

    @property
    def goes_by_states(self) -> bool:
        """Whether states and classes of events alone decide how runs continue."""
        alike = not (self.split or self.chooses or self.clocks)
        return self.consume == CONSUME_NONE and not self.gaps and alike

    @property
    def remembers_keys(self) -> bool:
        """Whether a key must be kept, because otherwise its next event would be taken for its first."""
        return self.first_bit is not None and not self.ordinals


class NumberedEvents(Runs):
    """Runs that refer to classes and partitions of events by numbers."""

    def __init__(self, automaton: Automaton, settings: Settings, registers: int = 0) -> None:
        if settings.first_bit is not None and settings.first_bit // BITS_IN_WORD >= settings.words:
            raise ValueError(f"bit {settings.first_bit} needs more than {settings.words} words")
        self.settings = settings
        self._automaton = automaton
        self._builder = TableBuilder(automaton, registers)
        self._classes = table_of(np.zeros((1, settings.words), np.uint64), 64)
        self._keys = new_table(FEWEST_PARTITIONS, 2)
        self._few_classes = np.empty(0, np.int32)
        automaton.class_of(0)

    @property
    def states(self) -> int:
        """See `Runs`."""
        return self._builder.states

    @abstractmethod
    def _keep_partitions(self, kept: NDArray[np.intp] | slice, capacity: int) -> None:
        """Renumbers partition kept[i] to i, with capacity for more; drops the others, which are empty."""

    def _numbers_of(self, batch: EventBatch) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The classes and the partitions of events."""
        known = int(self._keys.size[0])
        partitions = self._partition_numbers(batch)
        words = batch.words
        if self.settings.first_bit is not None:
            words = words.copy()
            word, bit = divmod(self.settings.first_bit, BITS_IN_WORD)
            words[self._firsts(batch, partitions, known), word] |= np.uint64(1 << bit)
        return self._class_numbers(words), partitions

    def _firsts(self, batch: EventBatch, partitions: NDArray[np.int32], known: int) -> NDArray[np.intp]:
        """Whether each event is the first of its stream; partitions from number `known` on are new."""
        if not self.settings.keyed or self.settings.ordinals:
            return np.flatnonzero(batch.ordinal == 0)
        numbers, first = np.unique(partitions, return_index=True)
        return np.array(first[numbers >= known], np.intp)

    def _class_numbers(self, words: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The classes of events by their words; those of small words are remembered in an array.

        Measured: 1.3 ns an event instead of 16 for a look-up in the hash table.
        """
        most = int(words.max(initial=0))
        if words.shape[1] > 1 or most >= _FEW_WORDS:
            return self._looked_up(words)
        if most >= self._few_classes.size:
            more = (1 << most.bit_length()) - self._few_classes.size
            self._few_classes = np.pad(self._few_classes, (0, more), constant_values=MISSING)
        bits = words.reshape(-1).view(np.int64)
        numbers = self._few_classes.take(bits)
        if numbers.min(initial=0) == MISSING:
            numbers = self._looked_up(words)
            self._few_classes[bits] = numbers
        return numbers

    def _looked_up(self, words: NDArray[np.uint64]) -> NDArray[np.int32]:
        numbers = np.empty(words.shape[0], np.int32)
        row = number_rows(self._classes, words, numbers, insert=False)
        while row < words.shape[0]:
            size = int(self._classes.size[0])
            if size == self._classes.words.shape[0]:
                self._classes = table_of(self._classes.words, 2 * size)
            number_rows(self._classes, words[row : row + 1], numbers[row : row + 1], insert=True)
            bits = sum(int(word) << (BITS_IN_WORD * place) for place, word in enumerate(words[row]))
            event_class = self._automaton.class_of(bits)
            if event_class != numbers[row]:
                raise RuntimeError(
                    "an automaton serves one recognizer only: its classes were numbered elsewhere"
                )
            self._builder.ensure_column(event_class)
            row = number_rows(self._classes, words, numbers, row, insert=False)
        return numbers

    def _partition_numbers(self, batch: EventBatch) -> NDArray[np.int32]:
        if not self.settings.keyed:
            return np.zeros(batch.stamps.size, np.int32)
        return self._numbered(batch.partition)

    def _numbered(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        known = self._keys
        self._keys, numbers = numbered(known, keys)
        if self._keys is not known:
            self._keep_partitions(slice(None), self._keys.words.shape[0])
        return numbers
