"""A stream that runs in this process: source → decoder → recognizer → sink, batch by batch."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa

from estero.arguments import checked
from estero.errors import DataError
from estero.local.checkpoints import Checkpoint, Noted, State
from estero.local.counters import Counters
from estero.local.decoding import Decoded, Decoder, objects
from estero.local.deliveries import Deliveries
from estero.local.raw import DeadLetter, Raw
from estero.local.recognition import Asked, Recognition
from estero.local.rows import Rows
from estero.local.schemas import inferred
from estero.local.silence import Silence, ticks_a_second
from estero.local.sinks.sink import Sink
from estero.local.sources.source import Source
from estero.local.stopping import Stopping
from estero.queries.rules.rule_origin import RuleOrigin
from estero.recognize.recognizers.memory_limit import MemoryPolicy

_log: Final = logging.getLogger("estero.live")
_WAIT: Final = 0.1
"""The seconds for which a source is polled between two checks of the flag to stop."""
_LONGEST: Final = 3_600
"""The largest number of seconds for which a step waits."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a stream: see `estero.live`; `source` is the name of the source in dead letters."""

    source: str
    schema: pa.Schema | None = None
    time: str | None = None
    versioned: bool = False
    checkpoint_every: float = 10.0
    look_every: float = 1.0
    idle_after: float | None = None
    time_unit: str | None = None
    memory_limit: int | str | None = None
    memory_policy: MemoryPolicy = "error"
    most: int = 20_000


@checked
class LiveStream:
    """A stream that runs in this process (`estero.live` makes one).

    `step` takes one batch, and `run` all batches until `stop` is called or the source ends. `metrics` and
    `stop` may be called from any thread, everything else from one thread only. As a context manager it is
    closed at the end, with a last checkpoint unless it has failed.
    """

    def __init__(
        self,
        asked: Asked,
        source: Source,
        sinks: tuple[Sink, Sink | None],
        checkpoint: Checkpoint | None,
        settings: Settings,
    ) -> None:
        self._asked = asked
        self._source = source
        self._checkpoint = checkpoint
        self._settings = settings
        self._counters = Counters()
        self._stopping = Stopping()
        self._deliveries = Deliveries(sinks, checkpoint, self._counters, self._stopping, settings.source)
        self._recognition: Recognition | None = None
        self._schema = settings.schema
        self._decoder: Decoder | None = None
        self._stream = ""
        self._number = self._saved = -1
        self._first: State | None = None
        self._resumed = self._failed = self._closed = False
        self._checkpoint_due = self._look_due = 0.0
        self._clock: Callable[[], float] = monotonic
        self._silence: Silence | None = None
        self._passed: int | None = None
        self._last_rows: Rows | None = None
        self._reached: Callable[[str], None] = _nothing

    # ------------------------------------------------------------------------------------ to run it

    def step(self, seconds: float = 0.0) -> bool:
        """Takes the next batch, for which it waits some seconds at most, and says whether there was one.

        The first step resumes from the checkpoint and repeats what may not have been delivered. Raises
        `DataError` where the source or the sink fails, after which the stream can only be closed, and
        ValueError for seconds below 0 or beyond an hour.
        """
        if not 0 <= seconds <= _LONGEST:
            raise ValueError(f"seconds is from 0 to {_LONGEST:,}, not {seconds}")
        try:
            return self._step(seconds)
        except BaseException:
            self._failed = True
            raise

    def run(self, *, until_caught_up: bool = False) -> None:
        """Takes batches until `stop` is called, the source ends, or everything available has been read."""
        self.step()
        while not self._stopping.is_set():
            came = self.step(_WAIT)
            if not came and (self._source.ended or (until_caught_up and self._source.caught_up)):
                break

    def stop(self) -> None:
        """Makes `run` end after the current batch."""
        self._stopping.set()

    def save(self) -> None:
        """Delivers all rows and then writes a checkpoint, if there is a directory for it."""
        with self._counters.timing("checkpoint"):
            self._deliveries.flush(self._number)
            self._tell("flushed")
            if self._checkpoint is None or self._recognition is None:
                return
            state = self._state(self._recognition)
            self._checkpoint.write(state)
            self._passed = None  # the state includes it
            self._tell("state written")
            self._checkpoint.begin(self._number)
            self._tell("journal begun")
            self._saved = self._number
            self._checkpoint_due = monotonic() + self._settings.checkpoint_every
            checkpoints = self._counters.now()["checkpoints"] + 1
            self._counters.put(state_bytes=len(state.recognizer), checkpoints=checkpoints)

    def close(self) -> None:
        """Ends the stream, with a last checkpoint unless it has failed."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._resumed and not self._failed and self._number > self._saved:
                self.save()
        finally:
            for part in (self._source, *self._deliveries.sinks, self._checkpoint):
                if part is not None:
                    part.close()

    def metrics(self) -> dict[str, Any]:
        """Counters since the stream began, and ``seconds`` by stage since this process began.

        ``events``, ``dead`` (letters), ``skipped`` (of the stream, since the past has them), ``late``,
        ``shed_partitions``, ``held_back``, ``answers`` and ``answers_by_rule``, ``batches``, ``rules``,
        ``checkpoints`` and ``state_bytes``, ``version`` of the rules, ``failed``.
        """
        recognition = self._recognition
        version = None if recognition is None else recognition.version
        return {**self._counters.now(), "version": version, "failed": self._failed}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._failed = self._failed or error is not None
        self.close()

    # --------------------------------------------------------------------------------- one batch

    def _step(self, seconds: float) -> bool:
        if not self._resumed:
            self._resume()
        self._look_at_rules()
        with self._counters.timing("poll"):
            raw = self._source.poll(self._settings.most, seconds)
        self._tell("polled")
        if raw is None:
            self._deliveries.note()
            if self._source.ended and self._checkpoint is None and self._recognition is not None:
                self._end(self._recognition)
            elif self._time_passes():
                return True
            elif self._number > self._saved and monotonic() >= self._checkpoint_due:
                self.save()
            return False
        self._note_passed()
        self._number += 1
        if self._checkpoint is not None:
            texts = raw.texts if self._source.keeps(raw.after) else None
            self._checkpoint.note_batch(self._number, raw.after, texts)
        self._tell("batch noted")
        self._process(raw)
        self._shed()
        if monotonic() >= self._checkpoint_due:
            self.save()
        return True

    def _process(self, raw: Raw) -> None:
        """Recognizes a batch and delivers its answers, unless that is already done."""
        recognition = self._recognition or self._begun(raw)
        with self._counters.timing("decode"):
            decoded = self._decoded(raw)
        self._tell("decoded")
        with self._counters.timing("recognize"):
            answers, dead = self._recognized(recognition, decoded)
        self._tell("recognized")
        with self._counters.timing("write"):
            self._deliveries.write_dead(self._number, dead)
            self._tell("dead letters written")
            if recognition is not None:
                self._write(recognition, answers)
                self._tell("answers written")
        self._counters.add(events=raw.size, dead=len(dead), skipped=decoded.skipped, batches=1)
        if recognition is not None:
            counts = recognition.counts
            self._counters.put(
                late=counts["late"], held_back=counts["held_back"], rules=len(recognition.texts)
            )
            self._hear(recognition)
        self._deliveries.note()
        self._tell("delivery noted")

    # -------------------------------------------------------------------------- without an event

    def _hear(self, recognition: Recognition) -> None:
        """Notes that an event arrived, from which silence is measured."""
        if self._settings.idle_after is None:
            return
        if self._silence is None:
            a_second = ticks_a_second(recognition.time_type, self._settings.time_unit)
            self._silence = Silence(self._settings.idle_after, a_second, self._clock)
        self._silence.broken(recognition.watermark)

    def _time_passes(self) -> bool:
        """Advances the time of a silent stream, and returns whether that decides answers.

        These answers are a batch. Time that decides nothing is only journaled before the next entry.
        """
        silence, recognition = self._silence, self._recognition
        if silence is None or recognition is None or not silence.is_due():
            return False
        if not self._source.is_silent():
            silence.broken(recognition.watermark)
            return False
        self._passed = silence.time()
        with self._counters.timing("recognize"):
            answers = recognition.advance(self._passed)
            first = next(answers, None)
        if first is None:
            return False
        self._number += 1
        self._note_passed()
        self._decided(recognition, chain([first], answers))
        if monotonic() >= self._checkpoint_due:
            self.save()
        return True

    def _note_passed(self) -> None:
        """Writes to the journal that time has passed, before any later entry."""
        if self._passed is not None and self._checkpoint is not None:
            self._checkpoint.note_passed(self._number, self._passed)
            self._tell("time noted")
        self._passed = None

    def _decided(self, recognition: Recognition, answers: Iterator[pa.RecordBatch]) -> None:
        """Delivers the answers that time has decided."""
        with self._counters.timing("write"):
            self._deliveries.write_dead(self._number, [])
            self._write(recognition, answers)
            self._tell("answers written")
        self._counters.add(batches=1)
        self._deliveries.note()
        self._tell("delivery noted")

    # ---------------------------------------------------------------------------- parts of a batch

    def _shed(self) -> None:
        """Sheds partitions, after writing it to the journal, so that it is repeated after a failure."""
        limit, recognition = self._settings.memory_limit, self._recognition
        if limit is None or recognition is None or not recognition.over_limit:
            return
        if self._checkpoint is not None:
            self._checkpoint.note_shed(self._number, limit)
        self._tell("shedding noted")
        partitions = recognition.shed(limit)
        self._counters.add(shed_partitions=partitions)
        _log.warning(
            "the state took more than %s: %s partitions were shed",
            limit,
            f"{partitions:,}",
            extra={"partitions": partitions},
        )

    def _limit_memory(self, recognition: Recognition) -> None:
        if self._settings.memory_limit is not None:
            recognition.limit_memory(self._settings.memory_limit, self._settings.memory_policy)

    def _decoded(self, raw: Raw) -> Decoded:
        if self._schema is not None:
            if self._decoder is None:
                self._decoder = Decoder(self._schema, self._settings.time)
            return self._decoder.decoded(raw)
        _, _, places, reasons = objects(raw.texts)
        empty = dict.fromkeys(places, "no columns are known yet, and it has none")
        dead = [
            DeadLetter(raw.place(place), why, raw.texts[place])
            for place, why in sorted({**reasons, **empty}.items())
        ]
        return Decoded(pa.table({}), [*raw.dead, *dead], 0)

    def _recognized(
        self, recognition: Recognition | None, decoded: Decoded
    ) -> tuple[Iterator[pa.RecordBatch], list[DeadLetter]]:
        if recognition is None or not decoded.size:
            return iter(()), decoded.dead
        try:
            return recognition.push(decoded.events), decoded.dead
        except DataError as error:  # of the whole batch; the recognizer is unchanged
            letters = [
                DeadLetter(f"batch {self._number}", str(error), repr(row).encode())
                for row in decoded.table.to_pylist()
            ]
            return iter(()), [*decoded.dead, *letters]

    def _write(self, recognition: Recognition, answers: Iterator[pa.RecordBatch]) -> None:
        self._deliveries.write(self._number, recognition, self._rows(recognition), answers)

    def _end(self, recognition: Recognition) -> None:
        """Decides everything that is open, once, when no more events can arrive."""
        self._number += 1
        self._write(recognition, recognition.closed())
        self._deliveries.flush(self._number)
        self._recognition = None

    def _look_at_rules(self) -> None:
        files, recognition = self._asked.rules, self._recognition
        if not isinstance(files, RuleOrigin) or recognition is None or monotonic() < self._look_due:
            return
        self._look_due = monotonic() + self._settings.look_every
        texts = files.look()
        if texts is None:
            return
        before = recognition.texts
        self._note_passed()
        counting = recognition.change(texts)
        if counting == before:
            return
        if self._checkpoint is not None:
            self._checkpoint.note_rules(self._number, counting)
        self._tell("rules noted")
        _log.info(
            "the rules have the version %s", recognition.version, extra={"version": recognition.version}
        )

    # ------------------------------------------------------------------------- where it goes on

    def _resume(self) -> None:
        """Restores the last checkpoint, and repeats the batches of the journal after it."""
        state = None if self._checkpoint is None else self._checkpoint.state()
        if state is None:
            state = State(secrets.token_hex(4))
            if self._checkpoint is not None:
                self._checkpoint.write(state)
        self._stream, self._number, self._saved = state.stream, state.number, state.number
        self._first = state
        delivered = state.delivered
        self._counters.resume(state.counters)
        self._source.seek(state.offsets)
        if state.schema:
            self._schema = pa.ipc.read_schema(pa.py_buffer(state.schema))
        if state.recognizer:
            self._recognition = self._asked.resumed(state.recognizer, state.rules)
        for note in self._journal(state.number):
            delivered = note.delivered or delivered
        self._deliveries.resume(delivered)
        if self._recognition is not None:
            self._open_for_answers(self._recognition)
        self._deliveries.open_for_dead_letters(self._stream, self._tell)
        if self._checkpoint is not None:
            self._checkpoint.begin(state.number)
        self._tell("checkpoint read")
        for note in self._journal(state.number):
            self._repeat(note)
        self._deliveries.check(self._number)
        self._resumed = True
        if self._recognition is None and self._schema is not None:
            self._begin(self._schema)
        if self._recognition is not None:
            self._limit_memory(self._recognition)
            self._hear(self._recognition)
        self._checkpoint_due = monotonic() + self._settings.checkpoint_every

    def _journal(self, number: int) -> Iterator[Noted]:
        """The journal after a state."""
        return iter(()) if self._checkpoint is None else self._checkpoint.noted(number)

    def _repeat(self, note: Noted) -> None:
        """Repeats a line of the journal."""
        if note.rules is not None and self._recognition is not None:
            self._recognition.change(note.rules)
        elif note.shed is not None and self._recognition is not None:
            self._counters.add(shed_partitions=self._recognition.shed(note.shed))
        elif note.passed is not None and self._recognition is not None:
            answers = self._recognition.advance(note.passed)
            if note.number > self._number:
                self._number = note.number
                self._decided(self._recognition, answers)
        elif note.after is not None:
            self._number = note.number
            if note.texts is None:
                raw = self._source.replay(note.after)
            else:
                self._source.passed(note.after)
                raw = Raw(note.after, note.texts, place=lambda row: f"batch {note.number}, line {row + 1}")
            self._process(raw)

    def _begun(self, raw: Raw) -> Recognition | None:
        """The recognition, once the columns are known, possibly from the first events."""
        if self._schema is None:
            self._schema = self._source.schema() or inferred(raw, self._settings.time)
        return None if self._schema is None else self._begin(self._schema)

    def _begin(self, schema: pa.Schema) -> Recognition:
        """Begins recognition, and writes a first state with the rules as they are now."""
        recognition = self._recognition = self._asked.begun(schema)
        if self._resumed:
            self._limit_memory(recognition)
        self._open_for_answers(recognition)
        if self._checkpoint is not None:
            self._checkpoint.write(self._state(recognition, self._first))
        self._tell("begun")
        return recognition

    def _state(self, recognition: Recognition, first: State | None = None) -> State:
        """The current state; before any event was recognized, the `first` one with the current recognizer."""
        if self._schema is None:
            raise ValueError("a recognizer has columns")
        rules = recognition.texts if isinstance(self._asked.rules, RuleOrigin) else None
        schema = self._schema.serialize().to_pybytes()
        snapshot, delivered = recognition.snapshot(), self._deliveries.delivered
        if first is not None:
            return replace(first, recognizer=snapshot, schema=schema, rules=rules, delivered=delivered)
        counters = self._counters.kept()
        return State(
            self._stream, self._number, self._source.place(), snapshot, schema, rules, delivered, counters
        )

    def _rows(self, recognition: Recognition) -> Rows:
        schema = recognition.schema
        if self._last_rows is None or not self._last_rows.answers.equals(schema, check_metadata=True):
            versioned, of_rules = self._settings.versioned, recognition.of_rules
            self._last_rows = Rows(schema, self._stream, versioned, of_rules)
        return self._last_rows

    def _open_for_answers(self, recognition: Recognition) -> None:
        self._deliveries.open_for_answers(self._stream, self._rows(recognition).schema, self._tell)

    def _tell(self, step: str) -> None:
        self._reached(step)


def _nothing(_step: str) -> None:
    """Does nothing; the default for `reached`."""
