"""Complex events and partial matches of a stream without an end, in one answer for each push."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estero.answers.answer import Answer
from estero.arguments import checked
from estero.events.sources import Source
from estero.events.streams.stream_layout import StreamLayout
from estero.language.tree.pattern import ending
from estero.plan.levels import PartialsPlan
from estero.recognize.consumed import consumed_of
from estero.recognize.continuous import LAYOUT, ContinuousRecognizer
from estero.recognize.furthest import Furthest, Placed
from estero.recognize.held_rows import GivenRows
from estero.recognize.progress import RecognizerProgress
from estero.recognize.state import plan_about
from estero.recognize.state_bytes import (
    State,
    read,
    sound_content,
    written,
)
from estero.recognize.stream_recognizer import StreamRecognizer
from estero.recognize.until import Until, check_until, known_until

KIND: Final = "a recognizer of partial matches"
"""What such a state says that it is of."""


@checked
class PartialsRecognizer(StreamRecognizer):
    """Recognizes a query, and how far its sequence came, over events that are pushed batch by batch.

    (`Query.recognizer` makes one where it is asked for `partials`.) Beside the columns of answers there are
    ``steps`` (int64, from 1), ``expired_time`` where the window is one of time (NULL of a complex event), and
    ``complete`` (boolean). A partial match is given once it is known that its window has passed and its start
    was not completed. Otherwise it is as a `ContinuousRecognizer`; the state is that of the window.

    Beside the query runs, for each level, a recognizer of what leads to it. All decide a start at the same
    time, so its level is the highest that has a row of it. For the last level it is one of all complex
    events, whatever a strategy and LIMIT choose of them; where nothing is chosen, the query's own rows tell.
    """

    def __init__(
        self, plan: PartialsPlan, layout: StreamLayout, source: Source, *, state: State | None = None
    ) -> None:
        super().__init__()
        self._plan = plan
        self._layout = layout
        states = [None] * len(plan.plans) if state is None else self._states(state)
        consumed = consumed_of(plan.whole.consume)
        self._whole, *self._levels = (
            ContinuousRecognizer(each, layout, source, state=one, consumed=consumed, strict=True)
            for each, one in zip(plan.plans, states, strict=True)
        )
        self._furthest = Furthest(plan, self._whole.schema, consumed)
        if state is not None:
            with sound_content():
                self._furthest.resume(state.arrays)

    @property
    def schema(self) -> pa.Schema:
        """The columns of answers."""
        return self._furthest.schema

    @property
    def late(self) -> int:
        """How many events came too late, of all that were pushed."""
        return self._whole.late

    @property
    def held_back(self) -> int:
        """How many events wait for earlier ones that may still come."""
        return self._whole.held_back

    @property
    def position(self) -> int:
        """The position that the next event gets."""
        return self._whole.position

    @property
    def watermark(self) -> int | None:
        """The time before which no event is expected any more, in ticks; None where none is known."""
        return self._whole.watermark

    @property
    def why_slow(self) -> str | None:
        """Why single events go the way of batches, through DuckDB; None where they do not."""
        return self._whole.why_slow

    def _progress(self) -> RecognizerProgress:
        return self._whole.progress()

    def late_events(self) -> pa.Table:
        """The events of the last push that came too late, as they were pushed."""
        return self._whole.late_events()

    def _pushed(self, events: object) -> Answer:
        return self._answered([each.push(events).to_arrow() for each in self._all], self._known())

    def _flushed(self) -> Answer:
        return self._answered([each.flush().to_arrow() for each in self._all], self._known())

    def _advanced(self, time: Until) -> Answer:
        return self._answered([each.advance(time).to_arrow() for each in self._all], self._known())

    def _closed(self, until: Until | None) -> Answer:
        known = self._whole.watermark_at_end
        if until is not None:
            said = known_until(until, self._plan.whole, self._whole.time_type, partials=True)
            check_until(said, self._whole.greatest)
            known = said if known is None else max(known, said)
        tables = []
        for plan, each in zip(self._plan.plans, self._all, strict=True):
            asked = until if ending(plan.tree.pattern) else None  # else it is about windows alone
            tables.append(each.close(until=asked).to_arrow())
        return self._answered(tables, known, ended=True)

    def _is_something(self, answer: Answer) -> bool:
        return bool(answer)

    def _snapshot(self, key: bytes | None) -> bytes:
        arrays: dict[str, Any] = {
            f"recognizer_{number}": np.frombuffer(each.snapshot(), np.uint8)
            for number, each in enumerate(self._all)
        }
        arrays |= {**self._furthest.arrays(), **self._layout.as_arrays()}
        return written(State({**self._about(), LAYOUT: self._layout.as_text()}, arrays), key)

    def _numbers(self) -> str:
        return f"{self.position:,} events, {self.late:,} late{self._whole.known}"

    @property
    def _text(self) -> str:
        return self._plan.whole.text

    # -------------------------------------------------------------------------------- what is known

    @property
    def _all(self) -> list[ContinuousRecognizer]:
        return [self._whole, *self._levels]

    def _known(self) -> int | None:
        """Up to which time events are known."""
        return self._whole.watermark

    def _answered(self, tables: list[pa.Table], known: int | None, *, ended: bool = False) -> Answer:
        """The rows of the query, and those of the levels that are decided as events are known so far."""
        if self._plan.window.in_positions:
            known = self._whole.position - 1 if ended else self._whole.known_position
        complete, *levels = map(self._placed, tables)
        rows = self._furthest.complete(complete)
        for level, found in enumerate(levels, 1):
            self._furthest.add(level, found)
        rows = pa.concat_tables([rows, self._furthest.given(known, ended=ended)])
        order = pc.sort_indices(rows, sort_keys=[("end", "ascending"), ("start", "ascending")])
        return Answer(GivenRows(rows.take(order).combine_chunks(), self._plan.whole.text))

    def _placed(self, rows: pa.Table) -> Placed:
        name = "start" if self._plan.window.in_positions else "start_time"
        return Placed(rows, rows["start"].to_numpy(), rows[name].cast(pa.int64()).to_numpy())

    # -------------------------------------------------------------------------------- states

    def _about(self) -> dict[str, str]:
        columns = pa.schema([(field.name, field.type) for field in self._whole.schema])
        return plan_about(KIND, self._plan.whole, columns)

    def _states(self, state: State) -> list[State | None]:
        """The states of the recognizers."""
        with sound_content():
            parts = range(len(self._plan.plans))
            return [read(state.arrays[f"recognizer_{number}"].tobytes()) for number in parts]
