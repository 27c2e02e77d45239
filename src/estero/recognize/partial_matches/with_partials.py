"""Complex events and partial matches of one query on one source of events, together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estero.answers.answer_schema import COMPLETE, STEPS, partial_of, schema_with_partials
from estero.answers.held_run import HeldRows
from estero.answers.run import Run
from estero.events.tables.shown_types import in_type
from estero.recognize.partial_matches.partials_run import PartialsRun
from estero.recognize.source_run import SourceRun
from estero.system.cached_property import cached_property


@dataclass(frozen=True)
class WithPartialsRun(HeldRows):
    """The complex events of a run and its partial matches, as an answer reads them.

    The rows are those of a recognizer with partial matches, by end and start.
    """

    complete: SourceRun
    partial: PartialsRun

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer, then ``steps``, ``expired_time`` (if it is a time), ``complete``."""
        return schema_with_partials(self.complete.schema, timed=not self.partial.plan.window.in_positions)

    @property
    def query(self) -> str:
        """The canonical text of the query."""
        return self.complete.query

    @property
    def whole_answer(self) -> str:
        """The place to ask for what these rows cannot tell."""
        return "the answer without partials"

    def count(self, *, enough: int | None = None) -> int:
        """The number of rows, without listing them."""
        return self.complete.count(enough=enough) + self.partial.count(enough=enough)

    @cached_property
    def table(self) -> pa.Table:
        """All rows, by end and start."""
        complete = pa.Table.from_batches(self.complete.tables(), self.complete.schema)
        rows = pa.concat_tables([self._marked(complete, complete=True), self._marked(self.partial.table)])
        order = pc.sort_indices(rows, sort_keys=[("end", "ascending"), ("start", "ascending")])
        return rows.take(order).combine_chunks()

    def _marked(self, rows: pa.Table, *, complete: bool = False) -> pa.Table:
        """Rows with all columns: missing ones are NULL."""
        size = rows.num_rows
        own = {partial_of(field) or field.name: rows.column(place) for place, field in enumerate(rows.schema)}
        own[COMPLETE] = pa.array(np.full(size, complete))
        if complete:
            own[STEPS] = pa.array(np.full(size, len(self.partial.plan.by_level) + 1))
        columns = [own.get(partial_of(field) or field.name) for field in self.schema]
        return pa.table(
            [
                pa.nulls(size, field.type) if column is None else in_type(column, field.type)
                for field, column in zip(self.schema, columns, strict=True)
            ],
            schema=self.schema,
        )

    def undecided(self) -> Run:
        """The complex events that wait for a deadline."""
        return self.complete.undecided()

    def values(self, attribute: str, first: int, last: int) -> pa.Table:
        """See `Run`."""
        return self.complete.values(attribute, first, last)
