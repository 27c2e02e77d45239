"""The stage that records the positions of answers, for other recognitions of the same stream."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from estero.classify.column_names import POSITION, TIME
from estero.recognize.batch_columns import numbers_of
from estero.recognize.consumed import Consumed
from estero.recognize.ended_sets import EndedSets
from estero.recognize.set_reader import SetReader
from estero.recognize.stages.stage import Stage


class ConsumptionStage(Stage[EndedSets]):
    """Records in `consumed` the events at which there are answers, and lets the answers pass."""

    def __init__(self, reader: SetReader, consumed: Consumed) -> None:
        self._reader = reader
        self._consumed = consumed
        self._stamp = POSITION if reader.plan.by_position else TIME

    def push(self, item: EndedSets) -> Iterator[EndedSets]:
        """The compact sets, as they came."""
        ends = [item.roots.event] if item.sifted is None else [matches.end for matches in item.sifted]
        if ends:
            columns = dict.fromkeys([*self._consumed.columns, self._stamp])
            events = self._reader.store.take(np.unique(np.concatenate(ends)), list(columns))
            self._consumed.add(events, numbers_of(events, self._stamp))
        yield item
