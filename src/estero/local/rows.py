"""Answers → rows as sinks take them: with an id of each that stays the same, and the version of the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from estero.answers.answer_ids import ID, AnswerIds, refuse_taken
from estero.answers.report import label_of, positions_schema, with_positions
from estero.answers.shown_values import shown_values
from estero.answers.writers import json_bytes

VERSION: Final = "version"
"""The column with the version of the rules, if it is asked for."""


@dataclass(frozen=True, slots=True)
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

    @property
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
    grouped = {i: label for i, field in enumerate(batch.schema) if labels and (label := label_of(field))}
    maps = {i for i, field in enumerate(batch.schema) if pa.types.is_map(field.type)}
    names = batch.schema.names
    for values in zip(*map(shown_values, batch.columns), strict=True):
        row: dict[str, Any] = {
            names[i]: dict(value) if i in maps else value
            for i, value in enumerate(values)
            if i not in grouped
        }
        if grouped:
            row["labels"] = {label: values[i] for i, label in grouped.items()}
        yield json_bytes(row)
