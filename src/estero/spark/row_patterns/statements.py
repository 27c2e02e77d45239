"""Statements of Spark SQL with MATCH_RECOGNIZE (`estero.spark.sql`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from estero.arguments import checked, shown
from estero.automata.row_patterns.shadowed import warn_of_alternatives
from estero.errors import QueryError
from estero.language.row_patterns.pieces import Pieces
from estero.language.row_patterns.statements import Placed, placed_clauses
from estero.language.row_patterns.words import Word, words_of
from estero.queries.sql import arrow_table
from estero.recognize.row_patterns.statements import unique
from estero.spark.failures import first_sentence, jobs
from estero.spark.frames import quoted
from estero.spark.row_patterns.clauses import MatchedClause
from estero.spark.row_patterns.readable import readable_frame
from estero.spark.row_patterns.work import StatementsInZone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUERIES: Final = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "("})
"""The first words of statements that return rows."""
_NAME_OF_FRAME: Final = re.compile(r"`_pyspark_[0-9a-f]{32}`\.?")
"""Spark's name for a frame in a statement."""


@checked
def sql(spark: SparkSession, text: str, /, **tables: object) -> DataFrame:
    """The DataFrame of a statement in Spark SQL with MATCH_RECOGNIZE after any relation.

    `tables` are relations that the statement names beside the views and tables of the session: DataFrames, or
    anything that `estero.sql` takes. The result is lazy, except for the jobs that look for ranges of time
    where tasks share these (`explain_sql`). Its actions, such as ``collect``, ``show`` and ``toArrow``, raise
    Estero's errors for rows without an answer; actions of other frames made from it raise Spark's errors,
    which quote Estero's.

    Raises `QueryError` with all mistakes in MATCH_RECOGNIZE and with what Spark refuses around it, and
    `DataError` for columns of types that cannot be read.
    """
    statement, placed = _read("sql", spark, text, tables)
    return statement.frame_of(placed)


@checked
def explain_sql(spark: SparkSession, text: str, /, **tables: object) -> str:
    """The plan of each MATCH_RECOGNIZE of a statement, one line for each, made without starting a job.

    A line says how matches are found and how tasks on Spark divide the rows. Where one task has to see all
    rows in order, it says ``one ordered task``, and why. The arguments and errors are those of `sql`.
    """
    statement, placed = _read("explain_sql", spark, text, tables)
    return statement.explained(placed)


def _read(
    function: str, spark: SparkSession, text: str, tables: Mapping[str, object]
) -> tuple[_Statement, Sequence[Placed]]:
    if not hasattr(spark, "createDataFrame"):
        raise TypeError(f"{function}() takes a session of Spark, not {shown(spark)}")
    placed = placed_clauses(text, "spark")
    for clause in placed:
        warn_of_alternatives(clause.clause)
    words = words_of(text, dialect="spark")
    if placed:
        _refuse_views(text, words)
    return _Statement(spark, text, words, tables), placed


class _Statement:
    """A statement while its clauses become frames, to which it refers by generated names."""

    def __init__(
        self, spark: SparkSession, text: str, words: Sequence[Word], tables: Mapping[str, object]
    ) -> None:
        self._spark, self._words, self._pieces = spark, words, Pieces(text)
        self._frames: dict[str, DataFrame] = {}
        names = {word.name.casefold() for word in words if word.is_name}
        self._definitions = {
            name.casefold(): f"{quoted(name)} AS (SELECT * FROM {self._named(_frame(spark, table))})"
            for name, table in tables.items()
            if name.casefold() in names
        }

    def frame_of(self, placed: Sequence[Placed]) -> DataFrame:
        """The frame of the whole statement."""
        for _ in self._clauses(placed, by_time=True):
            pass
        around = "the statement around MATCH_RECOGNIZE" if placed else "the statement"
        return readable_frame(self._frame(self._with_tables(), around))

    def explained(self, placed: Sequence[Placed]) -> str:
        """The explanation of how the clauses are evaluated."""
        clauses = enumerate(self._clauses(placed, by_time=False), 1)
        lines = [f"MATCH_RECOGNIZE {number}: {matched.explained}" for number, matched in clauses]
        return "\n".join(lines) or "no MATCH_RECOGNIZE: the statement is Spark's"

    def _clauses(self, placed: Sequence[Placed], *, by_time: bool) -> Iterator[MatchedClause]:
        """The clauses, which are replaced by the frames of their results."""
        is_streamed = False
        for number, clause in enumerate(placed, 1):
            source = _Source(self, clause)
            with jobs():
                matched = MatchedClause(
                    clause.clause, clause.relation, source, number, is_streamed=is_streamed
                )
                is_streamed |= matched.df.isStreaming
                frame = matched.frame(by_time=by_time)
            self._pieces.replace(clause.whole, self._named(frame))
            yield matched

    def source_of(self, clause: Placed, columns: Sequence[str]) -> DataFrame:
        """The input of a clause, with further columns."""
        source = self._pieces.text(clause.source)
        text = f"{self._pieces.definitions(clause)} {source}"
        named = {word.name.casefold() for word in words_of(text, dialect="spark") if word.is_name}
        # an unnamed table may be a stream, and then the input would be one, too
        given = [definition for name, definition in self._definitions.items() if name in named]
        before = self._pieces.definitions(clause, given)
        return self._frame(
            f"{before} SELECT {', '.join(['*', *columns])} FROM {source}", "the input of MATCH_RECOGNIZE"
        )

    def _named(self, df: DataFrame) -> str:
        name = unique("frame")
        self._frames[name] = df
        return name

    def _frame(self, text: str, purpose: str) -> DataFrame:
        """The frame of a statement that refers to others, which PySpark makes views meanwhile."""
        used: dict[str, Any] = {
            name: df for name, df in self._frames.items() if re.search(rf"\b{name}\b", text)
        }
        if used:
            text = text.replace("{", "{{").replace("}", "}}")
            text = re.sub(rf"\b({'|'.join(used)})\b", r"{\1}", text)
        with _in_words_of(purpose):
            return self._spark.sql(text, **used)

    def _with_tables(self) -> str:
        """The current text, with the given tables in its WITH clause."""
        text = self._pieces.text()
        if not self._definitions:
            return text
        first = words_of(text, dialect="spark")[:2]
        if first[0].text.upper() not in _QUERIES:
            raise QueryError(
                "tables can be given to a query only",
                text=text,
                span=first[0].span,
                found=first[0].text,
                hint="make them views: df.createOrReplaceTempView(name)",
            )
        if first[0].upper != "WITH":
            return f"WITH {', '.join(self._definitions.values())} {text}"
        place = first[first[1].upper == "RECURSIVE"].end
        return f"{text[:place]} {', '.join(self._definitions.values())}, {text[place:]}"


class _Source:
    """The input of a clause in its statement."""

    def __init__(self, statement: _Statement, clause: Placed) -> None:
        self._statement, self._clause = statement, clause

    def __call__(self, columns: Sequence[str]) -> DataFrame:
        return self._statement.source_of(self._clause, columns)


def _refuse_views(text: str, words: Sequence[Word]) -> None:
    """Raises `QueryError` for a view: Spark would keep its text, but not the frames that it refers to."""
    first = [word.upper for word in words[:6]]
    if first[0] in ("CREATE", "ALTER", "REPLACE") and "VIEW" in first:
        raise QueryError(
            "a view of SQL cannot have MATCH_RECOGNIZE",
            text=text,
            span=words[0].span.to(words[first.index("VIEW")].span),
            hint="write the query alone: estero.spark.sql(spark, …).createOrReplaceTempView(name)",
        )


def _frame(spark: SparkSession, table: object) -> DataFrame:
    """A DataFrame with the rows of anything that can be a table."""
    if hasattr(table, "isStreaming") and hasattr(table, "createOrReplaceTempView"):
        return table  # type: ignore[return-value]
    from pyspark.sql.pandas.types import from_arrow_schema

    statements = StatementsInZone("UTC")
    rows = arrow_table(table, statements.connection)
    schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    with jobs():
        return spark.createDataFrame(rows, schema)


@contextmanager
def _in_words_of(purpose: str) -> Iterator[None]:
    """Turns Spark's errors about a text into an error about that text."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        yield
    except (AnalysisException, ParseException) as error:
        message = _NAME_OF_FRAME.sub("", first_sentence(str(error)))
        raise QueryError(f"{purpose}: {message}") from error
