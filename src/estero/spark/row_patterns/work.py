"""The work of a task: rows that Spark has put in order → rows of MATCH_RECOGNIZE.

The rows of each partition of the clause are adjacent, and a task has many partitions. Enough of them are
evaluated at once, and always whole partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from estero.classify.arrays import one_array
from estero.classify.sql_texts import literal
from estero.errors import DataError
from estero.events.database import lent_to
from estero.language.row_patterns.tree import RowPatternClause
from estero.recognize.row_patterns.evaluation import Evaluation, RangePart
from estero.recognize.row_patterns.ordered_rows import PROGRESS, Relation, Starts
from estero.recognize.row_patterns.resumption import Surroundings
from estero.recognize.row_patterns.statements import Statements, unique
from estero.spark.row_patterns.types import as_type
from estero.spark.workers import spare_collector

Batches = Iterator[pa.RecordBatch]

GROUP: Final = "g"
"""The column whose value all rows of a partition share; rows of several partitions may, too."""
AT_ONCE: Final = 1 << 18
"""The number of rows evaluated at once, rounded up to the end of their last partition."""
ROWS: Final = 1 << 16
"""The number of rows of a batch of results."""


@dataclass(frozen=True)
class RowPatternWork:
    """A clause over rows that cross from Spark; it travels to workers by pickle.

    `columns` are the names and DuckDB's types of all columns of its input, `relation` the name that may
    qualify them, `crossing` the columns that cross, as `Relation` has them, `result` those that go back,
    `zone` the time zone of the session, and `aggregates` the names of DuckDB's. `in_pieces` says that matches
    are decided before all rows of a partition are known.
    """

    clause: RowPatternClause
    columns: tuple[tuple[str, str], ...]
    relation: str
    zone: str
    crossing: pa.Schema
    result: pa.Schema
    aggregates: frozenset[str]
    in_pieces: bool

    def on_batches(self) -> Callable[[Batches], Batches]:
        """The function for ``mapInArrow`` over rows in order."""

        def match(batches: Batches) -> Batches:
            spare_collector()
            evaluated = None
            for rows in (pieces_of if self.in_pieces else partitions_of)(batches):
                evaluated = evaluated or Evaluated(self)
                yield from evaluated.batches(rows)
            if evaluated is not None:
                yield from evaluated.last()

        return match


class Evaluated:
    """The evaluation of a clause in this process."""

    def __init__(self, work: RowPatternWork) -> None:
        self._work = work
        self.statements: StatementsInZone = StatementsInZone(work.zone, work.aggregates, in_worker=True)
        self._evaluation = Evaluation(self.statements, work.clause, work.columns, work.relation)
        self._rest: pa.Table | None = None

    def batches(self, rows: pa.Table) -> Batches:
        """The rows for Spark after the next rows in order."""
        rows = rows.select(self._work.crossing.names)
        if not self._work.in_pieces:
            yield from self._going_back(self._table(rows))
            return
        rows = with_progress(rows)
        if self._rest is not None:
            rows = pa.concat_tables([self._rest, rows])
        table, self._rest = self.table_and_rest(rows)
        yield from self._going_back(table)

    def last(self) -> Batches:
        """The rows for Spark when there are no more rows."""
        if self._rest is not None:
            yield from self._going_back(self._table(self._rest, pieces=True, last=True))

    def table_and_rest(self, rows: pa.Table, known: str = "") -> tuple[pa.Table, pa.Table]:
        """The result for rows with their progress, and the rows that precede the next ones (`Relation`)."""
        name = unique("crossed")
        relation = Relation(name, self._work.relation, sorted=True, pieces=True, known=known)
        with self.statements.registered({name: rows}):
            return self._evaluation.table_and_rest(relation, rows)

    @property
    def surroundings(self) -> Surroundings:
        """The rows that are read beside a match."""
        return self._evaluation.surroundings

    def part_of_range(self, rows: pa.Table, starts: Starts, *, last: bool) -> RangePart:
        """The result for rows with their progress; only some of them are starts."""
        name = unique("crossed")
        relation = Relation(name, self._work.relation, sorted=True, pieces=True, last=last, starts=starts)
        with self.statements.registered({name: rows}):
            return self._evaluation.part_of_range(relation)

    def _table(self, rows: pa.Table, *, pieces: bool = False, last: bool = False) -> pa.Table:
        name = unique("crossed")
        relation = Relation(name, self._work.relation, sorted=True, pieces=pieces, last=last)
        with self.statements.registered({name: rows}):
            return self._evaluation.table(relation)

    def _going_back(self, table: pa.Table) -> Batches:
        yield from self.as_result(table).to_batches(ROWS)

    def as_result(self, table: pa.Table) -> pa.Table:
        """A table with the types that go back to Spark."""
        columns = [
            as_type(one_array(column), field.type)
            for column, field in zip(table.columns, self._work.result, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self._work.result)


def with_progress(rows: pa.Table, *, dropped: int = 0, begin: int = 0) -> pa.Table:
    """Rows in the form of pieces, without earlier rows of their partitions, unless `Progress` is given."""
    values = {"dropped": dropped, "begin": begin}
    for name in PROGRESS:
        rows = rows.append_column(name, pa.array(np.full(rows.num_rows, values.get(name, 0))))
    return rows


class StatementsInZone(Statements):
    """DuckDB in a time zone; in a worker on one thread, because Spark has a task for each core."""

    def __init__(
        self, zone: str, aggregates: frozenset[str] | None = None, *, in_worker: bool = False
    ) -> None:
        database = lent_to(self)
        if in_worker:
            database.use_threads(alone=True)
        super().__init__(database.cursor(), aggregates)
        self.connection.execute(f"SET TimeZone = {literal(_zone_of_duckdb(zone))}")


def _zone_of_duckdb(zone: str) -> str:
    """DuckDB's name for a time zone that is an offset in Spark."""
    if zone == "Z":
        return "UTC"
    return f"GMT{zone}" if zone.startswith(("+", "-")) else zone


def partitions_of(batches: Batches) -> Iterator[pa.Table]:
    """Rows of whole partitions, at least `AT_ONCE` of them, in their order."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    last = None
    for batch in batches:
        if not batch.num_rows:
            continue
        grouped = GROUP in batch.schema.names
        if grouped and count + batch.num_rows >= AT_ONCE:
            groups = batch.column(GROUP).to_numpy()
            begins = np.flatnonzero(groups[1:] != groups[:-1]) + 1
            cut = int(begins[-1]) if begins.size else 0
            if cut or (waiting and groups[0] != last):
                yield pa.Table.from_batches([*waiting, batch.slice(0, cut)])
                waiting, count = [], 0
                batch = batch.slice(cut)  # noqa: PLW2901 - what is left of it
        waiting.append(batch)
        count += batch.num_rows
        last = batch.column(GROUP)[batch.num_rows - 1].as_py() if grouped else None
    if waiting:
        yield pa.Table.from_batches(waiting)


def pieces_of(batches: Batches) -> Iterator[pa.Table]:
    """Rows in their order, at least `AT_ONCE` of them except for the last."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting, count = [], 0
    if count:
        yield pa.Table.from_batches(waiting)


def check_zone(zone: str) -> None:
    """Raises `DataError` if a time zone of Spark is unknown to DuckDB."""
    import duckdb

    try:
        StatementsInZone(zone)
    except duckdb.Error as error:
        raise DataError(
            f"the time zone {zone!r} of the session is not known to DuckDB, which evaluates MATCH_RECOGNIZE",
            hint="name a region: spark.conf.set('spark.sql.session.timeZone', 'Europe/Berlin')",
        ) from error
