"""The marked events of an answer, one row for each event and label (docs/language.md, "What is shown")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from os import PathLike
from typing import Any, BinaryIO, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estero.answers.answer_schema import (
    DECIDED_KEY,
    LABEL_KEY,
    MATCH_KEY,
    MEASURE_KEY,
    PARTIAL_KEY,
    SUPPRESSED_KEY,
    common_type,
    label_of,
    untaken,
)
from estero.answers.frames import Batches
from estero.answers.in_memory import within
from estero.answers.run import first_rows
from estero.answers.shown_values import held_by_python
from estero.answers.writers import write_answer
from estero.arguments import checked
from estero.classify.arrays import one_batch
from estero.errors import legible
from estero.events.tables.shown_types import in_type

MATCH: Final = "match"
LABEL: Final = "label"
POSITION: Final = "position"
ROWS_OF_A_BATCH: Final = 65_536
"""The approximate number of rows made at once, unless one complex event has more."""
_PREVIEWED: Final = 20
"""The number of rows that a notebook shows."""


class Tables(Protocol):
    """The part of an answer from which rows are made."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The answer as record batches."""

    @property
    def quick_count(self) -> Callable[[], int] | None:
        """A function that counts the complex events without enumerating them, if there is one."""


class RowsLayout:
    """Maps the columns of an answer to those of its rows.

    ``match`` (int64) numbers the complex events, ``label`` (string) is the label that marks the event and
    ``position`` (int64) its position in the stream, if the answer has positions. Then come the partition
    columns, and the attributes that the labels show, each once; an attribute that is a partition column is
    not repeated. A name that is already taken gets an underscore at its end. The values that SELECT computes
    of a complex event are left out.
    """

    def __init__(self, answer: pa.Schema) -> None:
        fixed = _fixed_columns(answer.names)
        self.placed: Any = answer.names[:1] == ["start"]
        """Whether events have positions: the last field of their structs."""
        self.ends: range = range(fixed)
        """The columns of the answer for the start and end of a complex event."""
        self.labels: list[tuple[str, int]] = [
            (label, place) for place, field in enumerate(answer) if (label := label_of(field))
        ]
        self.keys: list[int] = [
            place for place in range(fixed, len(answer)) if not _is_other(answer.field(place))
        ]
        self._answer = answer
        types: dict[str, list[pa.DataType]] = {}
        for _, place in self.labels:
            for attribute in self._attributes(place):
                types.setdefault(attribute.name, []).append(attribute.type)
        first = [MATCH, LABEL, *([POSITION] if self.placed else [])]
        taken = set(first)
        keys = {answer.field(place).name: place for place in self.keys}
        self.key_names: list[str] = [untaken(name, taken) for name in keys]
        """The names of the partition columns, in the rows."""
        self._names = {name: untaken(name, taken) for name in types if name not in keys}
        fields = [
            pa.field(name, pa.string() if name == LABEL else pa.int64(), nullable=False) for name in first
        ]
        fields[0] = fields[0].with_metadata({MATCH_KEY: b""})
        shown_keys = zip(self.key_names, self.keys, strict=True)
        fields += [answer.field(place).with_name(name) for name, place in shown_keys]
        fields += [pa.field(shown, common_type(types[name])) for name, shown in self._names.items()]
        self.schema: pa.Schema = pa.schema(fields)

    def shown_by(self, place: int) -> list[str]:
        """For each field of the events in a column of the answer, the column of the rows that shows it.

        Empty for an attribute that is a partition column already.
        """
        names = [self._names.get(attribute.name, "") for attribute in self._attributes(place)]
        return [*names, POSITION] if self.placed else names

    def _attributes(self, place: int) -> list[pa.Field]:
        fields = list(self._answer.field(place).type.value_type)
        return fields[:-1] if self.placed else fields

    def batches(self, answer: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the batches of an answer, ordered by complex event, then by event and label."""
        first = 0
        for batch in answer:
            for part in self._parts(batch):
                yield self._rows(part, first)
                first += part.num_rows

    def _parts(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The batch in parts that have few rows each, or consist of one complex event."""
        marked = np.zeros(batch.num_rows, np.int64)
        for _, place in self.labels:
            marked += batch.column(place).value_lengths().to_numpy(zero_copy_only=False)
        part = np.cumsum(marked) // ROWS_OF_A_BATCH
        for start, end in pairwise([0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), batch.num_rows]):
            yield batch.slice(start, end - start)

    def _rows(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        parts = [self._of_label(batch, label, place) for label, place in self.labels]
        if not parts:
            return pa.RecordBatch.from_pylist([], self.schema)
        together = pa.concat_tables(parts)
        numbers = [together[MATCH].to_numpy()]
        if self.placed:
            numbers.append(together[POSITION].to_numpy())
        order = np.lexsort(numbers[::-1])  # stable: events of one position stay in the order of the labels
        rows = together.take(order).combine_chunks()
        matches = pc.add(rows[MATCH], first)
        columns = [matches, *rows.columns[1:]]
        return one_batch(pa.table(columns, schema=self.schema))

    def _of_label(self, batch: pa.RecordBatch, label: str, place: int) -> pa.Table:
        """The events under one label, with all columns of the rows."""
        lists = batch.column(place)
        complex_event = pc.list_parent_indices(lists)
        events = pc.list_flatten(lists)
        fields = {name: number for number, name in enumerate(self.shown_by(place)) if name}
        columns = [complex_event.cast(pa.int64()), pa.repeat(pa.scalar(label, pa.string()), len(events))]
        columns += [pc.struct_field(events, [fields[name]]) for name in [POSITION] * self.placed]
        columns += [batch.column(key).take(complex_event) for key in self.keys]
        for shown in self._names.values():
            wanted = self.schema.field(shown).type
            if shown in fields:
                columns.append(in_type(pc.struct_field(events, [fields[shown]]), wanted))
            else:
                columns.append(pa.nulls(len(events), wanted))
        return pa.table(columns, schema=self.schema)


def _is_other(field: pa.Field) -> bool:
    """Whether a column shows a label or a value of the whole complex event rather than a partition key."""
    others = (LABEL_KEY, MEASURE_KEY, SUPPRESSED_KEY, DECIDED_KEY, PARTIAL_KEY)
    return any(key in (field.metadata or {}) for key in others)


def _fixed_columns(names: list[str]) -> int:
    """The number of columns of an answer before those of keys and labels; on Spark some are left out."""
    fixed = 2 * (names[:2] == ["start", "end"])
    return fixed + 2 * (names[fixed : fixed + 2] == ["start_time", "end_time"])


@checked
class Rows(Batches):
    """The marked events of an answer, in the columns of `RowsLayout`, made as they are read."""

    def __init__(self, answer: Tables, *, most: int | None = None) -> None:
        self._answer = answer
        self._most = most
        self._layout = RowsLayout(answer.schema)

    @property
    def schema(self) -> pa.Schema:
        """The columns, known without running the query."""
        return self._layout.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches, made as they are asked for."""
        return first_rows(self._layout.batches(self._answer.batches()), self._most)

    def limit(self, n: int) -> Rows:
        """The first `n` rows; ValueError if n is negative."""
        if n < 0:
            raise ValueError(f"a limit is at least 0, not {n}")
        return Rows(self._answer, most=n if self._most is None else min(n, self._most))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.batches():
            with held_by_python("a value of these rows"):
                yield from batch.to_pylist()

    def write(self, target: str | PathLike[str] | BinaryIO, *, format: str | None = None) -> int:
        """Writes the rows, batch by batch, as `Answer.write` does, and returns their number."""
        return write_answer(target, self.schema, self.batches(), format=format)

    def __repr__(self) -> str:
        return legible(f"Rows({', '.join(self.schema.names)})\n{self._answer!r}", lines=True)

    def _repr_html_(self) -> str:
        from estero.answers.as_html import rows_html  # for notebooks only

        labels = (label for label, _ in self._layout.labels)
        return rows_html(self.schema, labels, self.limit(_PREVIEWED + 1).batches(), most=_PREVIEWED)

    def _held(self, asked: str, factor: int = 1) -> pa.Table:
        count = self._answer.quick_count if self._most is None else None
        batches = within(self.batches(), count, asked=asked, factor=factor, seen=_complex_events)
        return pa.Table.from_batches(batches, self.schema)


def _complex_events(rows: pa.RecordBatch) -> int:
    """The number of complex events up to the last of these rows."""
    return int(rows.column(0)[-1].as_py()) + 1 if rows.num_rows else 0
