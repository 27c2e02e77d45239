"""The recognizer of a query or of a set of rules, behind one interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from estero.answers.answer import Answer
from estero.answers.rule_answers import RuleAnswers
from estero.answers.rule_metadata import NOTHING_SAID, RuleColumns, words_of
from estero.errors import DataError, EsteroError, QueryError
from estero.events.streams.few_events import FewEvents
from estero.queries.query import Query
from estero.queries.rules.rule_origin import RuleOrigin, put_rule
from estero.queries.rules.rule_set import RuleSet
from estero.queries.rules.rule_texts import texts_of, version_of
from estero.queries.texts import restore
from estero.recognize.recognizers.memory_limit import MemoryPolicy
from estero.recognize.recognizers.stream_recognizer import StreamRecognizer
from estero.recognize.rules.set_recognizer import RuleSetRecognizer


@dataclass(frozen=True, slots=True)
class Asked:
    """The query, set of rules, or files of rules to recognize, and the layout of events."""

    rules: Query | RuleSet | RuleOrigin
    layout: Mapping[str, Any]
    metadata: tuple[str, ...] = ()
    """The metadata of rules that answers have as columns."""

    def begun(self, schema: pa.Schema) -> Recognition:
        """The recognition from the first event on.

        Raises `QueryError` if no rule fits the columns, and ValueError for metadata that no rule has.
        """
        if isinstance(self.rules, RuleOrigin):
            begun = _begun_with_files(self.rules, schema, self.layout)
        else:
            begun = Recognition(self.rules.recognizer(schema, **self.layout), texts_of(self.rules))
        if not isinstance(self.rules, Query):
            words_of(self.metadata, self.rules.metadata)
        return self._with_words(begun)

    def resumed(self, state: bytes, texts: dict[str, str] | None) -> Recognition:
        """The recognition after a state; `texts` are the rules in files that it had."""
        if not isinstance(self.rules, RuleOrigin):
            return self._with_words(Recognition(restore(self.rules, state), texts_of(self.rules)))
        if texts is None:
            raise DataError("this checkpoint is of a query, not of a directory of rules")
        rules = RuleSet({name: self.rules.query(name, text) for name, text in texts.items()})
        self.rules.texts = dict(texts)
        return self._with_words(Recognition(restore(rules, state), dict(texts), self.rules))

    def _with_words(self, recognition: Recognition) -> Recognition:
        """The recognition, with the metadata of rules as columns of its answers."""
        if self.metadata and not isinstance(self.rules, Query):
            recognition.say(self.metadata, self.rules)
        return recognition


class Recognition:
    """A recognizer with the texts of its rules, which may change between two batches."""

    def __init__(
        self,
        recognizer: StreamRecognizer | RuleSetRecognizer,
        texts: dict[str, str],
        files: RuleOrigin | None = None,
    ) -> None:
        self._recognizer = recognizer
        self._files = files
        self.texts = texts
        self.version = version_of(texts)
        self._words: tuple[str, ...] = ()
        self._described: RuleSet | RuleOrigin | None = None
        self._said: tuple[object, RuleColumns] = (None, NOTHING_SAID)

    def say(self, words: tuple[str, ...], rules: RuleSet | RuleOrigin) -> None:
        """Adds metadata of rules to the answers, which is looked up for each of them."""
        self._words, self._described = words, rules

    def _columns(self) -> RuleColumns:
        """The columns of metadata, as they are now."""
        if self._described is None:
            return NOTHING_SAID
        files = self._described if isinstance(self._described, RuleOrigin) else None
        key = None if files is None else files.metadata
        known, said = self._said
        if said is NOTHING_SAID or key is not known:
            said = RuleColumns.of(self._words, self._described.metadata, encoded=False)
            self._said = key, said
        return said

    @property
    def schema(self) -> pa.Schema:
        """The columns of answers."""
        return self._columns().schema(self._recognizer.schema)

    @property
    def of_rules(self) -> bool:
        """Whether the answers are those of a set of rules."""
        return isinstance(self._recognizer, RuleSetRecognizer)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of events recognized, late, and waiting."""
        asked = self._recognizer
        return {"numbered": asked.position, "late": asked.late, "held_back": asked.held_back}

    @property
    def watermark(self) -> int | None:
        """The time before which no more events are expected, in ticks."""
        return self._recognizer.watermark

    def push(self, events: pa.Table | FewEvents) -> Iterator[pa.RecordBatch]:
        """The answers that events decide, batch by batch."""
        if isinstance(events, FewEvents) and not self.of_rules:
            events = events.table
        return self._batches(self._recognizer.push(events))

    @property
    def time_type(self) -> pa.DataType | None:
        """The type of times; None if events have none."""
        return self.schema.field("start_time").type if "start_time" in self.schema.names else None

    def advance(self, ticks: int) -> Iterator[pa.RecordBatch]:
        """The answers that are decided because no more events before a time, in ticks, will arrive."""
        kind = self.time_type
        is_timestamp = kind is not None and pa.types.is_timestamp(kind)
        return self._batches(self._recognizer.advance(pa.scalar(ticks, kind) if is_timestamp else ticks))

    def closed(self) -> Iterator[pa.RecordBatch]:
        """The answers that the end of the stream decides."""
        return self._batches(self._recognizer.close())

    def _batches(self, answers: Answer | RuleAnswers) -> Iterator[pa.RecordBatch]:
        said = self._columns()
        return (said.added(batch) for batch in answers.batches() if batch.num_rows)

    @property
    def over_limit(self) -> bool:
        """Whether the state exceeds its limit and partitions must be shed."""
        return self._recognizer.over_limit

    def limit_memory(self, limit: int | str, policy: MemoryPolicy) -> None:
        """Limits the size of the state (see `ContinuousRecognizer.limit_memory`)."""
        self._recognizer.limit_memory(limit, policy)

    def shed(self, limit: int | str) -> int:
        """Drops the oldest partitions until the state is within the limit, and returns their number."""
        return self._recognizer.shed(limit)

    def snapshot(self) -> bytes:
        """The state of the recognizer."""
        return self._recognizer.snapshot()

    def change(self, texts: dict[str, str]) -> dict[str, str]:
        """Changes the rules, and returns the texts in use afterwards.

        A rule that does not fit is refused in the log, and the previous one stays in use.
        """
        recognizer, files = self._recognizer, self._files
        if files is None or not isinstance(recognizer, RuleSetRecognizer):
            raise TypeError("rules change in a directory only")
        counting: dict[str, str] = {}
        for name in [name for name in self.texts if name not in texts]:
            recognizer.remove(name)
        for name, text in texts.items():
            before = self.texts.get(name)
            try:
                if before != text:
                    put_rule(recognizer, name, files.query(name, text))
                counting[name] = text
            except (EsteroError, ValueError) as error:
                files.refuse(name, error)
                if before is not None:
                    counting[name] = before
        self.texts = files.texts = counting
        self.version = version_of(counting)
        return counting


def _begun_with_files(files: RuleOrigin, schema: pa.Schema, layout: Mapping[str, Any]) -> Recognition:
    """The recognition of all rules in files that fit the columns; the others are refused in the log."""
    texts = files.changed() or {}
    queries = {name: files.query(name, text) for name, text in texts.items()}
    while queries:
        with suppress(QueryError):
            recognizer = RuleSet(queries).recognizer(schema, **layout)
            files.texts = {name: texts[name] for name in queries}
            return Recognition(recognizer, dict(files.texts), files)
        queries = _fitting(files, queries, schema, layout)
    raise DataError(
        "there is no rule that can be used", hint="the log says what is wrong with those there are"
    )


def _fitting(
    files: RuleOrigin, queries: dict[str, Query], schema: pa.Schema, layout: Mapping[str, Any]
) -> dict[str, Query]:
    """The queries that fit the columns, checked one by one."""
    fitting = {}
    for name, query in queries.items():
        try:
            RuleSet({name: query}).recognizer(schema, **layout)
        except QueryError as error:
            files.refuse(name, error)
        else:
            fitting[name] = query
    return fitting
