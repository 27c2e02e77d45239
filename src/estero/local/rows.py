"""Answers → rows as sinks take them: with an id of each that stays the same, and the version of the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from estero.answers.answer_ids import ID, AnswerIds, refuse_taken
from estero.answers.report import label_of, positions_schema, with_positions
from estero.answers.shown_values import json_values
from estero.answers.writers import json_bytes
from estero.system.cached_property import cached_property

VERSION: Final = "version"
"""The column with the version of the rules, if it is asked for."""


@dataclass(frozen=True)
class Rows:
    """The rows of answers; `stream` is a part of their ids, `versioned` adds the version.

    The id of a complex event is made of its rule and the positions of its events: it is the same whenever it
    is recognized again, and no other one's. `of_rules`: they have the columns of the common table.
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
        """The rows of the answers that one batch of events has."""
        ids, schema = AnswerIds(self.stream), self.schema
        for batch in batches:
            columns = list(batch.columns)
            if self.versioned:
                columns.append(pa.repeat(pa.scalar(version), batch.num_rows))
            columns.append(ids.of(self._identity(batch)))
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _identity(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The columns that tell answers apart, except those that differ in a label that is not selected."""
        if self.of_rules:
            names = ["rule", "start", "end", "positions"]
        else:
            batch = with_positions(batch, positions_schema(batch.schema))
            names = ["start", "end", *(field.name for field in batch.schema if label_of(field) is not None)]
        return [batch.column(name) for name in names]


def json_lines(batch: pa.RecordBatch, *, labels: bool = False) -> Iterator[bytes]:
    """The rows as objects of JSON; with `labels` those of a query stand in one object, as `run` has it."""
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
