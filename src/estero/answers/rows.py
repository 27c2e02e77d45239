"""The marked events of an answer, one row for each event and label (semantics-2.md, "What is shown")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estero.answers.complex_event import AnswerColumns
from estero.answers.in_memory import OBJECTS_TO_ARROW, check_polars, pandas_of, polars_of, within
from estero.answers.report import MATCH_KEY, common_type, untaken
from estero.answers.shown_values import held_by_python
from estero.answers.writers import write_answer
from estero.errors import legible

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

MATCH: Final = "match"
LABEL: Final = "label"
POSITION: Final = "position"


class Tables(Protocol):
    """What rows are made of: an answer, as far as they read it."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The answer as record batches."""


class RowsLayout:
    """From the columns of an answer to those of its rows.

    ``match`` (int64) counts complex events, ``label`` (string) is what marks the event and ``position``
    (int64) its place in the stream, if the answer has positions. Then come the partition columns, and the
    attributes that the labels show, each once; an attribute that is a partition column is not repeated. A
    name that is taken already gets an underscore at its end.
    """

    def __init__(self, answer: pa.Schema) -> None:
        columns = AnswerColumns.of(answer)
        self._labels = [(label, place) for label, place in columns.labels.items()]
        self._keys = list(columns.partition.values())
        self._placed = "start" in answer.names[:1]
        types: dict[str, list[pa.DataType]] = {}
        for _, place in self._labels:
            for each in self._attributes(answer.field(place)):
                types.setdefault(each.name, []).append(each.type)
        keys = [answer.field(place) for place in self._keys]
        first = [MATCH, LABEL, *([POSITION] if self._placed else [])]
        taken = {*first, *(each.name for each in keys)}
        self._names = {
            name: untaken(name, taken) for name in types if name not in {each.name for each in keys}
        }
        fields = [
            pa.field(name, pa.string() if name == LABEL else pa.int64(), nullable=False) for name in first
        ]
        fields[0] = fields[0].with_metadata({MATCH_KEY: b""})
        fields += keys
        fields += [pa.field(shown, common_type(types[name])) for name, shown in self._names.items()]
        self.schema: pa.Schema = pa.schema(fields)

    def _attributes(self, label: pa.Field) -> list[pa.Field]:
        fields = list(label.type.value_type)
        return fields[:-1] if self._placed else fields

    def batches(self, answer: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the batches of an answer: in the order of complex events, then of events and labels."""
        first = 0
        for batch in answer:
            yield self._rows(batch, first)
            first += batch.num_rows

    def _rows(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        parts = [self._of_label(batch, label, place) for label, place in self._labels]
        if not parts:
            return pa.RecordBatch.from_pylist([], self.schema)
        together = pa.concat_tables(parts)
        numbers = [together[MATCH].to_numpy()]
        if self._placed:
            numbers.append(together[POSITION].to_numpy())
        order = np.lexsort(numbers[::-1])  # stable: events of one position stay in the order of the labels
        rows = together.take(order).combine_chunks()
        matches = pc.add(rows[MATCH], first)
        columns = [matches, *rows.columns[1:]]
        return pa.table(columns, schema=self.schema).combine_chunks().to_batches(None)[0]

    def _of_label(self, batch: pa.RecordBatch, label: str, place: int) -> pa.Table:
        """The events under one label, with all columns of the rows."""
        lists = batch.column(place)
        complex_event = pc.list_parent_indices(lists)
        events = pc.list_flatten(lists)
        shown_here = self._attributes(batch.schema.field(place))
        attributes = {each.name: number for number, each in enumerate(shown_here)}
        columns = [complex_event.cast(pa.int64()), pa.repeat(pa.scalar(label, pa.string()), len(events))]
        if self._placed:
            columns.append(pc.struct_field(events, [events.type.num_fields - 1]))
        columns += [batch.column(key).take(complex_event) for key in self._keys]
        for name, shown in self._names.items():
            wanted = self.schema.field(shown).type
            if name in attributes:
                columns.append(pc.struct_field(events, [attributes[name]]).cast(wanted))
            else:
                columns.append(pa.nulls(len(events), wanted))
        return pa.table(columns, schema=self.schema)


class Rows:
    """The marked events of an answer, as `RowsLayout` lays them out; they are made as they are read."""

    def __init__(self, answer: Tables) -> None:
        self._answer = answer
        self._layout = RowsLayout(answer.schema)

    @property
    def schema(self) -> pa.Schema:
        """The columns, known without running the query."""
        return self._layout.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches."""
        return self._layout.batches(self._answer.batches())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.batches():
            with held_by_python("a value of these rows"):
                yield from batch.to_pylist()

    def to_arrow(self) -> pa.Table:
        """All rows in memory, as an Arrow table; `LimitExceeded` if they would fill it."""
        return self._held("to_arrow()")

    def to_pandas(self) -> pd.DataFrame:
        """All rows in memory, as a pandas data frame."""
        return pandas_of(self._held("to_pandas()", OBJECTS_TO_ARROW))

    def to_polars(self) -> pl.DataFrame:
        """All rows in memory, as a Polars data frame."""
        check_polars(self.schema)
        return polars_of(self._held("to_polars()"))

    def write(self, target: str | PathLike[str] | BinaryIO, *, format: str | None = None) -> int:
        """Writes the rows, batch by batch, as `Answer.write` does; how many there are."""
        return write_answer(target, self.schema, self.batches(), format=format)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return legible(f"Rows({', '.join(self.schema.names)})\n{self._answer!r}", lines=True)

    def _held(self, asked: str, factor: int = 1) -> pa.Table:
        return pa.Table.from_batches(within(self.batches(), None, asked=asked, factor=factor), self.schema)
