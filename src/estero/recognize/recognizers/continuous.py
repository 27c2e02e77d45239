"""A query over a stream without an end, in this process: events are pushed, and answers come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pyarrow as pa

from estero.answers.answer import Answer
from estero.arguments import checked
from estero.classify.rows.classified import ClassifiedRow
from estero.events.sources import Source
from estero.events.streams.stream_layout import StreamLayout
from estero.plan.plan import Plan
from estero.recognize.ended_sets import EndedSets
from estero.recognize.metrics import number_of_ends
from estero.recognize.recognition import Recognition
from estero.recognize.recognizers.increment import PushedRun, Turn
from estero.recognize.recognizers.intake import Intake
from estero.recognize.recognizers.stream_recognizer import StreamRecognizer
from estero.recognize.state_bytes import State
from estero.recognize.threads.pushed import PushedRanges, ReadSets

KIND = "a recognizer"
"""The name of this kind of state, written into it."""


@checked
class ContinuousRecognizer(StreamRecognizer):
    """Recognizes a query over events that are pushed batch by batch (`Query.recognizer` makes one).

    Events are numbered over all batches in stream order, without the late ones. With a lateness, an event is
    held back until the greatest time seen is that much later; without one, a batch is sorted and recognized
    at once. Without a time column, batches follow one another and nothing is late.

    An answer can be asked any number of questions until the next `push` or `flush`. A batch that is refused
    changes nothing. After any other failure, such as an error in a predicate of the user's, the recognizer
    raises an error whenever it is used: resume from the last snapshot.
    """

    _kind = KIND
    _recognition: Recognition

    def __init__(
        self,
        plan: Plan,
        layout: StreamLayout,
        source: Source,
        *,
        state: State | None = None,
        threads: int = 1,
    ) -> None:
        self._decides_by_time = plan.decides_later or bool(plan.deadlines)
        super().__init__(plan, Intake(layout, source, plan.classification, strict=self._decides_by_time))
        # No method: by a reference to this recognizer, its arrays would wait for the garbage collector.
        opened = partial(_opened, plan, self._intake.schema, self._intake.time_type)
        self._recognition = opened(self._taken_up(state))
        self._ranges = PushedRanges.of(plan, opened, threads)
        self._sets: ReadSets = []
        # Its turn never passes: an empty answer stays empty when the recognizer continues.
        self._nothing = Answer(PushedRun(self._recognition.reader, (), Turn(), 0))

    @property
    def schema(self) -> pa.Schema:
        """The columns of answers."""
        return self._recognition.schema

    def _recognized_one(self, position: int, event: ClassifiedRow | None) -> Answer:
        if event is None and not self._decides_by_time:
            self._turn.next()
            return self._nothing
        return self._answer(lambda: self._read(self._ended_with_one(position, event)))

    def _ended_with_one(self, position: int, event: ClassifiedRow | None) -> list[EndedSets]:
        """The answer that one event ends, or decides by its time; None if the event is not relevant."""
        ended: list[EndedSets] = []
        if event is not None:
            ended += self._recognition.recognize_one((position, event), self._intake.as_batch)
        if self._decides_by_time:
            ended += self._recognition.decided(position=position, time=self._intake.watermark)
        return ended

    def _recognized(self, relevant: pa.RecordBatch) -> Answer:
        return self._answer(lambda: self._ended_with(relevant))

    def _ended_with(self, relevant: pa.RecordBatch) -> ReadSets:
        """The answer that ends with these events, or is decided by them."""
        if self._ranges is not None:
            return self._ranges.sets(self._recognition, relevant)
        ended = list(self._recognition.recognize(relevant))
        position = self._intake.position - 1
        return self._read(
            [*ended, *self._recognition.decided(position=position, time=self._intake.watermark)]
        )

    def _recognized_last(self, relevant: pa.RecordBatch, known: int | None) -> Answer:
        recognition = self._recognition
        return self._answer(lambda: self._read([*recognition.recognize(relevant), *recognition.ended(known)]))

    def _read(self, sets: Iterable[EndedSets]) -> ReadSets:
        return [(self._recognition.reader, ended) for ended in sets]

    def _answer(self, recognize: Callable[[], ReadSets]) -> Answer:
        """The answer of the complex events that end now."""
        number, self._sets = self._in_turn(recognize)
        return Answer(PushedRun(self._recognition.reader, self._sets, self._turn, number))

    def _ends(self, answer: Answer) -> int:
        if answer is self._nothing or not self._sets:
            return 0
        return number_of_ends(ended for _, ended in self._sets)

    def _is_something(self, answer: Answer) -> bool:
        if answer is self._nothing or not self._sets:
            return False
        return bool(answer) if self._plan.sieved else True


def _opened(plan: Plan, schema: pa.Schema, time: Any | None, state: bytes | None = None) -> Recognition:
    """A recognition whose compact sets stay readable until the next push."""
    recognition = Recognition(plan, schema, time=time, endless=True, state=state)
    recognition.recognizer.holding = True
    return recognition
