"""Answers as rows of sinks: each with a stable id, and with the version of the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from estero.answers.answer_ids import ID, AnswerIds, refuse_taken
from estero.answers.answer_schema import label_of, positions_schema
from estero.answers.report import with_positions
from estero.answers.shown_values import json_values
from estero.answers.writers import json_bytes
from estero.system.cached_property import cached_property

VERSION: Final = "version"
"""The column with the version of the rules, if it was requested."""


@dataclass(frozen=True)
class Rows:
    """The rows of answers; `stream` is a part of their ids, and `versioned` adds the version.

    The id of a complex event is computed from its rule and the positions of its events, so that it is unique
    and the same whenever the event is recognized again. `of_rules`: whether they have the columns of rules.
    """

    answers: pa.Schema
    stream: str
    versioned: bool
    of_rules: bool

    def __post_init__(self) -> None:
        refuse_taken(self.answers, self._added, "the live engine")

    @property
    def _added(self) -> tuple[str, ...]:
        return (VERSION, ID) if self.versioned else (ID,)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return pa.schema([*self.answers, *((name, pa.string()) for name in self._added)])

    def of(self, batches: Iterable[pa.RecordBatch], version: str) -> Iterator[pa.RecordBatch]:
        """The rows of the answers of one batch of events."""
        ids, schema = AnswerIds(self.stream), self.schema
        for batch in batches:
            columns = list(batch.columns)
            if self.versioned:
                columns.append(pa.repeat(pa.scalar(version), batch.num_rows))
            columns.append(ids.of(self._identity(batch)))
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _identity(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The columns that identify answers, except for labels that are not selected."""
        if self.of_rules:
            names = ["rule", "start", "end", "positions"]
        else:
            batch = with_positions(batch, positions_schema(batch.schema))
            names = ["start", "end", *(field.name for field in batch.schema if label_of(field) is not None)]
        return [batch.column(name) for name in names]


def json_lines(batch: pa.RecordBatch, *, labels: bool = False) -> Iterator[bytes]:
    """The rows as JSON objects; with `labels`, those of a query are in one object, as in `run`."""
    columns = batch.columns
    values = [
        list(map(dict, json_values(column))) if pa.types.is_map(column.type) else json_values(column)
        for column in columns
    ]
    marked = enumerate(map(label_of, batch.schema)) if labels else ()
    grouped = {i: label for i, label in marked if label}
    shown = [(i, name) for i, name in enumerate(batch.schema.names) if i not in grouped]
    for row in zip(*values, strict=True):
        line: dict[str, Any] = {name: row[i] for i, name in shown}
        if grouped:
            line["labels"] = {label: row[i] for i, label in grouped.items()}
        yield json_bytes(line)
