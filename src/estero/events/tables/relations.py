"""A DuckDB relation → batches that can be read repeatedly, with its connection free in between.

A relation belongs to the connection on which it was made: only there are its tables, views and registered
frames known. While a result of it is open, that connection refuses every other statement, including the
user's. So it is read to its end at once, when it is first needed, in the columns that a query needs; rows
that do not fit well into memory are kept in a file.

Where the user declares an order, the same run also numbers the rows and leaves out those that cannot be
relevant. It also checks whether each row is after the one before it in that order. If so, a row has one
possible position; if not, all rows are read, as without a declared order.

Measured (2 million rows of five columns, 3900 of them relevant, CPU time of one count, seconds):

==========================  ========  ====
relation                    all rows  some
==========================  ========  ====
a table in order                0.53  0.22
``ORDER BY`` that order         0.66  0.42
a table whose last rows tie     0.27  0.51
``ORDER BY`` another order      0.82  1.40
==========================  ========  ====

The last two are run twice: whether there are ties is not known before the last row. Rejected: numbering by
``OVER (ORDER BY …)``, so that several runs agree, 0.64 s for one of them; and NULL for rows left out, with
all rows in a few columns, 0.18 s to read them, as much as for all columns.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from estero.classify.column_names import POSITION, RELATION_LAST, RELATION_UNSURE
from estero.classify.sql_texts import literal, quoted
from estero.errors import DataError
from estero.events.database import may_be_changed
from estero.events.reading_errors import reading

if TYPE_CHECKING:
    import duckdb

IN_MEMORY = 256 << 20
"""The bytes of a relation kept in memory; a larger one is kept in a temporary file."""
_ROWS = 131_072

OneOf = Sequence[Mapping[str, frozenset[str]]]
"""The condition that a row has, for one of these, in each of its columns one of its strings."""


class _Kept(NamedTuple):
    """The rows of a relation in some of its columns: the first of them, and a file with the rest."""

    columns: Sequence[str]
    batches: Sequence[pa.RecordBatch]
    file: tempfile._TemporaryFileWrapper[bytes] | None

    def rows(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows in these of its columns."""
        for batch in self.batches:
            yield batch.select(columns)
        if self.file is not None:
            with pa.memory_map(self.file.name) as mapped:
                for batch in pa.ipc.open_stream(mapped):
                    yield batch.select(columns)


class Numbered(NamedTuple):
    """Some rows of a relation with their positions, its number of rows, and the last of them."""

    one_of: OneOf
    kept: _Kept
    rows: int
    last: pa.RecordBatch | None

    def has(self, columns: Sequence[str], one_of: OneOf) -> bool:
        """Whether it contains, in these columns, all rows that satisfy these conditions."""
        return set(columns) <= set(self.kept.columns) and all(
            condition in self.one_of for condition in one_of
        )


class _NotInOrderError(Exception):
    """An error for a row that is not after the one before it, or not known to be."""


class Relation:
    """A relation run once, by `run` or when it is first read; each call gives a stream of its rows.

    `expect` says which columns will be read, and which rows: it is run for these alone, and once more if
    others are read later, for all rows and, if necessary, for all columns. Raises `DataError` if it cannot be
    run, for example because its connection is closed or reads something else.
    """

    def __init__(self, relation: duckdb.DuckDBPyRelation, *, in_memory: int = IN_MEMORY) -> None:
        with _running():
            self.schema: pa.Schema = relation.limit(0).to_arrow_table().schema
        self._relation = relation
        self._in_memory = in_memory
        self._lock = threading.Lock()
        self._expected: Sequence[str] = self.schema.names
        self._order: Sequence[str] = ()
        self._one_of: OneOf = ()
        self._kept: _Kept | None = None
        self._numbered: Numbered | None = None

    @property
    def columns(self) -> Sequence[str]:
        """The columns for which it is run, if they are known."""
        return self._expected if self._kept is None else self._kept.columns

    def expect(self, columns: Collection[str], *, order: Sequence[str] = (), one_of: OneOf = ()) -> None:
        """Announces that only these columns will be read.

        With `one_of` only rows that satisfy it will be, if each row is after the one before it in the columns
        of `order`, which are among `columns`.
        """
        names = self.schema.names
        if may_be_changed(names):  # one of two columns cannot be named
            return
        self._expected = [name for name in names if name in columns] or names[:1]
        if order and all(_is_sorted_alike(self.schema.field(name).type) for name in order):
            self._order, self._one_of = order, one_of

    def with_columns(self, selected: str) -> Relation:
        """The relation with more columns, as selected by SQL; `DataError` if that cannot be run."""
        with _running():
            return Relation(self._relation.project(f"*, {selected}"), in_memory=self._in_memory)

    def run(self) -> None:
        """Runs it now, for the expected columns, if it has not been run."""
        if self.in_order() is None:
            with self._lock:
                if self._kept is None:
                    self._kept = self._read(self._expected)

    def in_order(self) -> Numbered | None:
        """The expected rows, if each row is after the one before it; runs it for these, once.

        None if it is not, if no order is declared, or if all rows have been read before.
        """
        with self._lock:
            if self._one_of and self._numbered is None and self._kept is None:
                try:
                    self._numbered = self._read_numbered()
                except _NotInOrderError:
                    self._one_of = ()
            return self._numbered

    def numbered(self, columns: Sequence[str], one_of: OneOf) -> pa.RecordBatchReader:
        """A new stream of rows with their numbers in ``__position`` (int64), in these columns.

        Rows that do not satisfy `one_of` may be left out. If the order is not known, all rows come, without
        numbers.
        """
        in_order = self.in_order()
        if in_order is None or not in_order.has(columns, one_of):
            return self(columns)
        chosen = [*(self.schema.field(name) for name in columns), pa.field(POSITION, pa.int64())]
        return pa.RecordBatchReader.from_batches(pa.schema(chosen), in_order.kept.rows([*columns, POSITION]))

    def has(self, column: str, text: str) -> bool:
        """Whether a text is among the strings of a column; runs it up to the first one."""
        same = f"encode(CAST({quoted(column)} AS VARCHAR)) = encode({literal(text)})"
        with _running():
            return bool(self._relation.filter(same).limit(1).fetchall())

    def __call__(self, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """A new stream of its rows."""
        asked = self.schema.names if columns is None else columns
        with self._lock:
            if self._kept is None and set(asked) <= set(self._expected):
                self._kept = self._read(self._expected)
            elif self._kept is None or not set(asked) <= set(self._kept.columns):
                self._kept = self._read(self.schema.names)
            kept = self._kept
        chosen = pa.schema([self.schema.field(name) for name in asked])
        return pa.RecordBatchReader.from_batches(chosen, kept.rows(asked))

    def _read(self, columns: Sequence[str]) -> _Kept:
        """Runs it for these columns, in the declared order if rows are numbered by it."""
        with _running():
            asked = self._relation
            if self._numbered is not None:
                asked = asked.order(", ".join(f"{quoted(name)} ASC NULLS LAST" for name in self._order))
            if len(columns) < len(self.schema):
                asked = asked.project(", ".join(map(quoted, columns)))
        with _running(), closing(asked.to_arrow_reader(_ROWS)) as reader:
            return self._held(columns, reader, reader.schema)

    def _read_numbered(self) -> Numbered:
        """Runs it for the expected rows; `_NotInOrderError` if it has no total order."""
        here = ", ".join(map(quoted, self._order))
        before = ", ".join(f"lag({quoted(name)}) OVER ()" for name in self._order)
        # Rows are compared with NULL after all values, so NULL needs its own test.
        missing = " OR ".join(f"{quoted(name)} IS NULL" for name in self._order)
        unsure = f"{missing} OR (lag(true) OVER () AND NOT row({here}) > row({before}))"
        computed = {
            POSITION: "row_number() OVER () - 1",
            RELATION_UNSURE: f"coalesce({unsure}, false)",
            RELATION_LAST: "lead(true) OVER () IS NULL",
        }
        named = [*map(quoted, self._expected), *(f"{sql} AS {name}" for name, sql in computed.items())]
        wanted = (
            " AND ".join(_is_one_of(name, sorted(texts)) for name, texts in strings.items())
            for strings in self._one_of
        )
        kept = " OR ".join((RELATION_UNSURE, RELATION_LAST, *(f"({condition})" for condition in wanted)))
        with _running():
            asked = self._relation.project(", ".join(named)).filter(kept)
        columns = [*self._expected, POSITION]
        with _running(), closing(asked.to_arrow_reader(_ROWS)) as reader:
            steps = _Steps()
            chosen = pa.schema([reader.schema.field(name) for name in columns])
            held = self._held(columns, (batch.select(columns) for batch in steps.followed(reader)), chosen)
        return Numbered(self._one_of, held, steps.rows, steps.last)

    def _held(self, columns: Sequence[str], batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> _Kept:
        """The batches, read to their end."""
        file, size = None, 0
        first: list[pa.RecordBatch] = []
        rest = iter(batches)
        for batch in rest:
            first.append(batch)
            size += batch.nbytes
            if size > self._in_memory:
                file = self._written(rest, schema)
        return _Kept(columns, first, file)

    def _written(
        self, rest: Iterable[pa.RecordBatch], schema: pa.Schema
    ) -> tempfile._TemporaryFileWrapper[bytes]:
        file = tempfile.NamedTemporaryFile(prefix="estero-relation-", suffix=".arrows")  # noqa: SIM115  it lives as long as this does
        weakref.finalize(self, file.close)
        with pa.ipc.new_stream(file.name, schema) as writer:
            for batch in rest:
                writer.write_batch(batch)
        return file


class _Steps:
    """Follows numbered rows: counts them, with those left out, and keeps the last, which never is."""

    def __init__(self) -> None:
        self.rows = 0
        self.last: pa.RecordBatch | None = None

    def followed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches; raises `_NotInOrderError` at a row of uncertain order, or numbered before another."""
        for batch in batches:
            if not batch.num_rows:
                continue
            places = batch.column(POSITION).to_numpy()
            in_turn = places[0] >= self.rows and bool((np.diff(places) > 0).all())
            if not in_turn or batch.column(RELATION_UNSURE).true_count:
                raise _NotInOrderError
            self.rows = int(places[-1]) + 1
            self.last = batch.slice(batch.num_rows - 1)
            yield batch


def _is_sorted_alike(kind: pa.DataType) -> bool:
    """Whether values have one order on all connections; strings do not if there is a collation."""
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(numbers or pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _is_one_of(column: str, texts: Sequence[str]) -> str:
    """The condition that a column of strings, or of an ENUM, has one of these, or a collated equal."""
    if not texts:
        return "false"
    listed = ", ".join(map(literal, texts))
    return f"CAST({quoted(column)} AS VARCHAR) IN ({listed})"


@contextmanager
def _running() -> Iterator[None]:
    """Turns an error of running a relation into a `DataError`."""
    try:
        with reading():
            yield
    except DataError as error:
        if type(error.__cause__).__name__ != "ResourceInUseException":
            raise
        raise DataError(
            "the connection of this relation has a result that has not been read to its end",
            hint="fetch the rest of that result first, or make the relation on a cursor of its own: "
            "connection.cursor()",
        ) from error.__cause__
