"""The predicates, keys and times of a plan as SQL text for an engine.

The statement gives each event its position, drops what no operator needs to see, and computes one bit
per predicate, two 64-bit hashes per partition and the values that registers compare. DuckDB runs it
whole (`classify_sql`); Spark takes its `Clauses` one by one, so that its filter can be pushed into the scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sqlglot import exp

from estero.classify.bits import BitWriter
from estero.classify.column_names import ARRIVAL, KEYED, KEYS, POSITION, TIME, event_column
from estero.classify.columns import ColumnType, canonical, reference
from estero.classify.dialect import Dialect
from estero.classify.duckdb_dialect import DUCKDB
from estero.classify.partition_keys import KeyWriter
from estero.classify.remembered import Remembered
from estero.classify.spark_dialect import SPARK
from estero.classify.sql_trees import SQL, compared, number
from estero.classify.values import ValueWriter
from estero.language.tree.expressions import Node
from estero.language.tree.paths import column_of, is_path, steps_of
from estero.language.tree.schema import Kind
from estero.language.tree.words import named
from estero.plan.plan import Classification


class Clauses:
    """The parts of a classifying statement as SQL texts in one dialect.

    `columns` says how to read the attributes (columns.py); by default each is in its kind's own form.
    """

    def __init__(
        self,
        classification: Classification,
        dialect: Dialect,
        columns: Mapping[str, ColumnType] | None = None,
    ) -> None:
        self.columns: Mapping[str, ColumnType] = columns_read(classification, dialect, columns)
        self.classification = classification
        self._dialect = dialect
        self._bits = BitWriter(classification, dialect, self.columns)
        self._keys = KeyWriter(classification, dialect, self.columns)
        self._values = ValueWriter(classification, dialect, self.columns)

    def computed(self, screened: Sequence[Node | None] | None = None) -> dict[str, str]:
        """The columns computed for each event by name: its time, if it has one, its keys, bits and values.

        `screened` is as in `classify_sql`.
        """
        time = self.time()
        texts = ({} if time is None else {TIME: time}) | self.keys()
        if screened is None:
            return texts | self.bits() | self.values()
        words = self._bits.words(screened)
        some = _some(words)
        if any(word.find(exp.Select) for word in words.values()):
            # DuckDB takes no name of a column that has a subquery in the same SELECT.
            some = [compared("!=", word.copy(), number(0)) for word in words.values()]
        return texts | self.bits(screened) | self.values(asked=exp.paren(exp.or_(*some)))

    def time(self) -> str | None:
        """The time in ticks (microseconds, or nanoseconds for such a column), or None without a time."""
        name = self.classification.schema.time
        return None if name is None else self._dialect.text(self._dialect.ticks(name, self.columns[name]))

    def keys(self) -> dict[str, str]:
        """The two halves of the partition key, by name; none without PARTITION BY.

        A single key that is an integer, a truth value or an instant is itself, a signed integer, beside 0.
        Otherwise they are two independent hashes: unsigned in DuckDB, signed in Spark. Read both as the 64
        bits of an unsigned integer. Hashes of different engines differ.
        """
        halves = self._keys.halves() if self.classification.keys else ()
        return {name: self._dialect.text(half) for name, half in zip(KEYS, halves, strict=False)}

    def bits(self, screened: Sequence[Node | None] | None = None) -> dict[str, str]:
        """The words of bits, by name: 64-bit integers, never NULL. There is at least one word."""
        words = self._bits.words(screened)
        return {name: self._dialect.text(word, copy=False) for name, word in words.items()}

    def values(self, asked: SQL | None = None) -> dict[str, str]:
        """The values that registers compare, by name, in their transfer form (values.py)."""
        return {name: self._dialect.text(column.sql) for name, column in self._values.columns(asked).items()}

    def relevance(self) -> str:
        """The condition on relevant events: a bit is set (or `keep_all`), and the key is known.

        Its first part is a plain condition over columns, for pushdown into scans; it lets all relevant events
        pass, and where arithmetic may overflow the exact bits decide after it.
        """
        return self._dialect.text(exp.and_(*self._keys.known(), self._bits.relevance()))

    def relevance_by_bits(self) -> str:
        """The condition on relevant events with bits as columns: half the work without pushdown."""
        bits = [] if self.classification.keep_all else [exp.paren(exp.or_(*_some(self._bits.words())))]
        return self._dialect.text(exp.and_(*self._keys.known(), *bits, exp.true()))

    def keyed(self) -> str:
        """The condition that the key is known."""
        return self._dialect.text(exp.and_(*self._keys.known(), exp.true()))

    def order(self) -> list[str]:
        """The sort keys of the stream before arrival: the time, then the columns of `order`."""
        time, columns = self.classification.schema.time, self.columns
        first = [] if time is None or time not in columns else [self._dialect.as_read(time, columns[time])]
        names = [name for name in self.classification.order if name in columns]
        ties = [self._dialect.as_sorted(name, columns[name]) for name in names]
        return [self._dialect.text(tie) for tie in first + ties]


def classify_sql(
    classification: Classification,
    source: str,
    *,
    columns: Mapping[str, ColumnType] | None = None,
    ordered: bool = True,
    positions: bool = True,
    in_memory: bool = False,
    screened: Sequence[Node | None] | None = None,
) -> str:
    """DuckDB's statement that turns the relation `source` into the table of `plan.Classification`.

    `ordered`: `source` is in stream order already, else it is sorted by time, then `order`, then arrival.
    Without `positions` the column ``__position`` is left out. `columns` is as in `Clauses`. Rows come in
    stream order. With `in_memory` the condition on relevant events is not one to be pushed into a scan.

    With `screened`, `source` is screened (screening.py) and has its positions: predicate k is true where
    bit k of ``__screen…`` is set and `screened[k]` is true, and rows without any bit are left in.

    The last statements are remembered, since writing one takes some milliseconds.
    """
    read = None if columns is None else dict(columns)
    rests = None if screened is None else tuple(screened)
    asked = classification, source, read, ordered, positions, in_memory, rests
    return _statements.of(asked, lambda: _statement(*asked))


_statements: Final = Remembered[str]()


def _statement(
    classification: Classification,
    source: str,
    columns: Mapping[str, ColumnType] | None,
    ordered: bool,
    positions: bool,
    in_memory: bool,
    screened: Sequence[Node | None] | None,
) -> str:
    """DuckDB's statement, without caching; see `classify_sql`."""
    clauses = Clauses(classification, DUCKDB, columns)
    if not ordered and (ordering := ", ".join(clauses.order())):
        arrival = f"SELECT *, row_number() OVER () AS {ARRIVAL} FROM {source}"
        source = f"(SELECT * EXCLUDE ({ARRIVAL}) FROM ({arrival}) ORDER BY {ordering}, {ARRIVAL})"
    if positions and screened is None:
        source = f"(SELECT *, row_number() OVER () - 1 AS {POSITION} FROM {source})"
    place = DUCKDB.quoted(POSITION)
    outputs = {POSITION: place, TIME: place} if positions else {TIME: "0"}
    outputs |= clauses.computed(screened)
    read = clauses.columns
    outputs |= {
        event_column(name): DUCKDB.text(reference(name, read[name])) for name in classification.payload
    }
    if screened is not None:
        condition = clauses.keyed()
    else:
        condition = clauses.relevance_by_bits() if in_memory else clauses.relevance()
    return f"SELECT {_selected(outputs, DUCKDB)} FROM {source} WHERE {condition}"


def keys_sql(classification: Classification, source: str, columns: Mapping[str, ColumnType]) -> str:
    """DuckDB's statement for the keys of the events of the relation `source`, and whether they are known."""
    asked = replace(classification, predicates=(), payload=(), values=())
    clauses = Clauses(asked, DUCKDB, columns)
    return f"SELECT {_selected(clauses.keys() | {KEYED: clauses.keyed()}, DUCKDB)} FROM {source}"


def _some(words: Iterable[str]) -> list[exp.Expr]:
    """The conditions that some bit is set in each of these columns."""
    return [compared("!=", exp.column(word, quoted=True), number(0)) for word in words]


def spark_text(classification: Classification) -> str:
    """Spark's computation as one statement over ``events``, for people; needs no session.

    On Spark these are column expressions of a DataFrame, and `SORT BY` is a sort within each task. It is
    written for columns of Spark's own types (BIGINT, DOUBLE, TIMESTAMP, …).
    """
    columns = {
        name: replace(column, stands=_written(name, SPARK))
        for name, column in columns_of(classification).items()
    }
    clauses = Clauses(classification, SPARK, columns)
    shown = {named(name): SPARK.text(reference(name, columns[name])) for name in classification.payload}
    outputs = clauses.computed() | shown
    statement = f"SELECT {_selected(outputs, SPARK)} FROM events WHERE {clauses.relevance()}"
    if classification.keys:
        statement += f" DISTRIBUTE BY {', '.join(KEYS)}"
    order = ", ".join(clauses.order())
    return SPARK.readable(f"{statement} SORT BY {order}" if order else statement)


def columns_of(classification: Classification) -> dict[str, ColumnType]:
    """The attributes of all types in the schema, each in its kind's own form."""
    schema = classification.schema
    kinds: dict[str, ColumnType] = {}
    for attributes in (*schema.types.values(), schema.shared or {}):
        kinds.update({name: canonical(kind) for name, kind in attributes.items()})
    if classification.type_column is not None:
        kinds.setdefault(classification.type_column, canonical(Kind.STRING))
    return kinds


def columns_read(
    classification: Classification, dialect: Dialect, columns: Mapping[str, ColumnType] | None
) -> Mapping[str, ColumnType]:
    """The form in which each attribute of a classification, or a field inside `columns`, is read.

    Without `columns` each is in its kind's own form.
    """
    known = columns_of(classification)
    if columns is None:
        inner = {
            name: replace(known[name], stands=_written(name, dialect)) for name in filter(is_path, known)
        }
        return known | inner
    return dialect.with_paths(columns, known)


def _written(path: str, dialect: Dialect) -> SQL:
    """The SQL of a column, or of a part of it, by name."""
    value: SQL = exp.column(column_of(path), quoted=True)
    for step in steps_of(path):
        value = dialect.stepped(value, step)
    return value


def _selected(outputs: Mapping[str, str], dialect: Dialect) -> str:
    return ", ".join(f"{sql} AS {dialect.quoted(name)}" for name, sql in outputs.items())
