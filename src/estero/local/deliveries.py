"""The batches that a live stream writes to its sinks, and those known to be delivered."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa

from estero.errors import DataError
from estero.local.checkpoints import Checkpoint
from estero.local.counters import Counters
from estero.local.decoding import LETTERS, letters_table
from estero.local.raw import DeadLetter
from estero.local.recognition import Recognition
from estero.local.rows import Rows
from estero.local.sinks.sink import Sink
from estero.local.stopping import Stopping

_log: Final = logging.getLogger("estero.live")
_ANSWERS, _DEAD = 0, 1
"""The places of the sinks."""
_SHOWN: Final = 3
"""The number of dead letters of a batch that are logged."""


class Deliveries:
    """The sink of the answers, and that of dead letters if there is one.

    A batch is written unless the sink already has it, and the checkpoint notes the batches of the sinks.
    `source` is the name of the source in dead letters.
    """

    def __init__(
        self,
        sinks: tuple[Sink, Sink | None],
        checkpoint: Checkpoint | None,
        counters: Counters,
        stopping: Stopping,
        source: str,
    ) -> None:
        self.sinks = [sink for sink in sinks if sink is not None]
        self._checkpoint = checkpoint
        self._counters = counters
        self._source = source
        self._noted: list[int] = []
        self._to_note: list[deque[int]] = [deque() for _ in self.sinks]
        for sink in self.sinks:
            sink.stopping = stopping

    @property
    def delivered(self) -> list[int]:
        """The last batch that is known to be delivered, by sink."""
        return [sink.delivered for sink in self.sinks]

    def resume(self, noted: list[int]) -> None:
        """Restores the batches that the checkpoint notes as delivered."""
        self._noted = list(noted)

    def open_for_answers(self, stream: str, columns: pa.Schema, reached: Callable[[str], None]) -> None:
        """Opens the sink of the answers, which have these columns."""
        self._open(_ANSWERS, stream, columns, reached)

    def open_for_dead_letters(self, stream: str, reached: Callable[[str], None]) -> None:
        """Opens the sink of dead letters, if there is one."""
        if len(self.sinks) > _DEAD:
            self._open(_DEAD, f"{stream}-dead", LETTERS, reached)

    def _open(self, place: int, stream: str, schema: pa.Schema, reached: Callable[[str], None]) -> None:
        sink = self.sinks[place]
        sink.reached = reached
        sink.open(stream, schema)
        sink.delivered = max(sink.delivered, self._noted[place])

    def check(self, number: int) -> None:
        """Raises `DataError` if a sink has later batches than a checkpoint that ends with this one."""
        for delivered in self.delivered:
            if delivered > number:
                raise DataError(
                    f"the sink has batch {delivered} of this stream, and the checkpoint ends with {number}",
                    hint="the checkpoint is an older one: begin with a new one",
                )

    def write(
        self, number: int, recognition: Recognition, rows: Rows, answers: Iterator[pa.RecordBatch]
    ) -> None:
        """Writes the answers of a batch to their sink, and counts them."""
        rules: Counter[str] = Counter()
        counted = _counted(rows.of(answers, recognition.version), rules, recognition.of_rules)
        sink = self.sinks[_ANSWERS]
        if number > sink.delivered:
            if sink.write(number, counted):
                self._to_note[_ANSWERS].append(number)
        else:
            for _ in counted:  # the sink has them, so they are only counted
                pass
        self._counters.add_answers(rules)

    def write_dead(self, number: int, letters: list[DeadLetter]) -> None:
        """Writes the dead letters of a batch to their sink, and logs the first of them."""
        for letter in letters[:_SHOWN]:
            _log.warning(
                "an event cannot be read: %s: %s",
                letter.place,
                letter.reason,
                extra={"place": letter.place, "reason": letter.reason, "letters": len(letters)},
            )
        if len(self.sinks) > _DEAD and number > self.sinks[_DEAD].delivered:
            table = [letters_table(letters, self._source)] if letters else []
            if self.sinks[_DEAD].write(number, iter(table)):
                self._to_note[_DEAD].append(number)

    def note(self) -> None:
        """Notes the batches that the sinks have by now; some deliver while later batches are recognized.

        Batches without rows are not noted, because it makes no difference whether they are sent again.
        """
        is_more = False
        for sink, numbers in zip(self.sinks, self._to_note, strict=True):
            sink.update()
            while numbers and numbers[0] <= sink.delivered:
                numbers.popleft()
                is_more = True
        if self._checkpoint is not None and is_more:
            self._checkpoint.note_delivered(self.delivered)

    def flush(self, number: int) -> None:
        """Waits until all rows up to a batch are delivered."""
        for sink in self.sinks:
            sink.flush(number)


def _counted(
    batches: Iterator[pa.RecordBatch], rules: Counter[str], of_rules: bool
) -> Iterator[pa.RecordBatch]:
    """The batches, whose rows are counted by rule as they pass."""
    for batch in batches:
        rules.update(batch.column("rule").to_pylist() if of_rules else {"query": batch.num_rows})
        yield batch
