"""Complex events and partial matches of an unbounded stream, in one answer for each push."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from estero.answers.answer import Answer
from estero.answers.held_run import HeldRun
from estero.arguments import checked
from estero.classify.rows.classified import ClassifiedRow
from estero.events.sources import Source
from estero.events.streams.stream_layout import StreamLayout
from estero.language.tree.query import QueryTree
from estero.plan.levels import PartialsPlan, partials_plan
from estero.plan.plan import Layout
from estero.plan.together import together
from estero.recognize.partial_matches.partials_recognition import PartialsRecognition
from estero.recognize.recognizers.intake import Intake
from estero.recognize.recognizers.stream_recognizer import StreamRecognizer
from estero.recognize.state_bytes import State

KIND: Final = "a recognizer of partial matches"
"""The name of this kind of state, written into it."""


def plan_of_one_stream(tree: QueryTree, layout: Layout) -> PartialsPlan:
    """The plan of partial matches whose parts can read one classified stream: they have the same keys.

    If equalities would give them others, they have those written in the query. An event without a key is in
    no partition, and a part without keys has to see it.
    """
    plan = partials_plan(tree, layout)
    keys = {part.classification.keys for part in plan.plans}
    return plan if len(keys) == 1 else partials_plan(tree, layout, as_written=True)


@checked
class PartialsRecognizer(StreamRecognizer):
    """Recognizes a query, and how far its sequence came, over events that are pushed batch by batch.

    (`Query.recognizer` makes one if it is asked for `partials`.) Answers have the further columns ``steps``
    (int64, from 1), ``expired_time`` where the window is one of time (NULL for a complex event), and
    ``complete`` (boolean). A partial match is given once its window has passed without completing its start.
    In everything else it is like a `ContinuousRecognizer`; its state is that of the window.

    Events are classified once, for the query and all its levels (`PartialsRecognition`); rows of an answer
    are in order of end and start.
    """

    _kind = KIND
    _tells_partials = True
    _recognition: PartialsRecognition

    def __init__(
        self, plan: PartialsPlan, layout: StreamLayout, source: Source, *, state: State | None = None
    ) -> None:
        asked = together([part.classification for part in plan.plans])
        super().__init__(plan.whole, Intake(layout, source, asked, strict=True))
        self._recognition = PartialsRecognition(
            plan, asked, self._intake.schema, time=self._intake.time_type, state=self._taken_up(state)
        )

    @property
    def schema(self) -> pa.Schema:
        """The columns of answers."""
        return self._recognition.schema

    def _recognized_one(self, position: int, event: ClassifiedRow | None) -> Answer:
        if event is None:
            return self._recognized(self._intake.as_batch([]))
        return self._recognized(self._intake.as_batch([(position, event)]))

    def _recognized(self, relevant: pa.RecordBatch) -> Answer:
        position, time = self._intake.position - 1, self._intake.watermark
        return self._answer(
            lambda: list(self._recognition.push_until(relevant, position=position, time=time))
        )

    def _recognized_last(self, relevant: pa.RecordBatch, known: int | None) -> Answer:
        recognition, position = self._recognition, self._intake.position - 1
        return self._answer(lambda: [*recognition.push(relevant), *recognition.tables_ended(known, position)])

    def _answer(self, recognize: Callable[[], list[pa.RecordBatch]]) -> Answer:
        """The answer of the rows that are decided now."""
        _, batches = self._in_turn(recognize)
        rows = pa.Table.from_batches(batches, self.schema)
        if rows.num_rows > 1:
            order = pc.sort_indices(rows, sort_keys=[("end", "ascending"), ("start", "ascending")])
            rows = rows.take(order).combine_chunks()
        return Answer(HeldRun(rows, self._plan.text))

    def _ends(self, answer: Answer) -> int:
        return answer.count()

    def _is_something(self, answer: Answer) -> bool:
        return bool(answer)

    def _numbers(self) -> str:
        return f"{self.position:,} events, {self.late:,} late{self._intake.known}"
