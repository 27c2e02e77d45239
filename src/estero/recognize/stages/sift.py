"""The stage of CONSUME BY after filters: answers are sieved at once, and what they consume is forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from estero.recognize.ended_sets import EndedSets
from estero.recognize.set_reader import SetReader
from estero.recognize.stages.stage import Stage


class SiftStage(Stage[EndedSets]):
    """Sieves complex events before the next event is read, which must not see what an answer has consumed."""

    def __init__(self, reader: SetReader) -> None:
        self._reader = reader

    def push(self, item: EndedSets) -> Iterator[EndedSets]:
        """The compact sets with their answers; if there are any, the engine then forgets."""
        sifted = list(self._reader.matches(item))
        yield replace(item, sifted=sifted)
        if sifted:
            self._reader.recognizer.consume()
