"""What is asked of a DataFrame: a query, the columns of its events, and what does not go together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from estero.errors import NOWHERE, QueryError
from estero.events.scan import Scan
from estero.events.tables.exact_columns import exact_layout
from estero.language.tree.exact_names import exact_names
from estero.plan.levels import PartialsPlan, partials_plan
from estero.plan.plan import Layout, Plan
from estero.plan.shared_by_levels import with_shared_key
from estero.queries.query import Distinct, Query
from estero.queries.ranked import Wanted, unranked, wanted
from estero.spark.frames import check_frame, with_nested_fields
from estero.spark.work import layout_of_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from estero.language.tree.pattern import Pattern
    from estero.language.tree.query import QueryTree
    from estero.language.tree.schema import EventLayout
    from estero.recognize.until import Until

MOST_ROWS: Final = 100_000_000
"""Most rows that are brought to the driver."""
MOST_TASKS: Final = 100_000
"""Most tasks of a job: Spark plans and counts them on the driver, and with more it never gets to work."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, the DataFrame that it is asked of, and where the parts of an event stand in it.

    Of the complex events of `plan`, which are all of them, ORDER BY and its LIMIT choose those that are
    `wanted`, if the query has these clauses.
    """

    query: Query
    df: DataFrame
    layout: Layout
    plan: Plan
    wanted: Wanted | None

    @classmethod
    def of(
        cls,
        df: DataFrame,
        columns: EventLayout,
        query: Query,
        *,
        partials: bool = False,
        share: int | None = None,
    ) -> Asked:
        """The question; raises `QueryError` and ValueError where ORDER BY does not go with the rest of it."""
        chosen = _wanted(df, query, partials=partials, share=share)
        df, layout = laid_out(df, columns, query.only_type)
        whole = query if chosen is None else Query(unranked(query.statement))
        return cls(query, df, layout, whole.plan(layout), chosen)

    @property
    def partials(self) -> PartialsPlan:
        """The plan of the partial matches, too, by the keys of the query or those that its events share."""
        self.plan.refuse_distinct()
        self.plan.refuse_levels()
        laid = replace(self.layout, schema=self.plan.classification.schema)
        return with_shared_key(partials_plan(self.plan.tree, laid, as_written=True), laid)


def scanned(
    events: DataFrame | Scan, type: str | None, time: str | None, order: Sequence[str], time_unit: str | None
) -> tuple[DataFrame, EventLayout]:
    """A DataFrame, and what its columns mean: as it was scanned, or as the arguments beside it say."""
    scan = Scan.of(events, type, time, order, time_unit)
    check_frame(scan.events)
    if scan.csv_options or scan.layout.types:
        which = "csv_options" if scan.csv_options else "types"
        raise ValueError(f"{which} is for events that are read in this process: leave it out for Spark")
    frame: DataFrame = scan.events
    exact = exact_names(frame.columns)
    if exact and len(set(frame.columns)) == len(frame.columns):
        frame = frame.toDF(*(exact.get(name, name) for name in frame.columns))
        return frame, exact_layout(scan.layout, exact)
    return frame, scan.layout


def laid_out(df: DataFrame, columns: EventLayout, only_type: str) -> tuple[DataFrame, Layout]:
    """The DataFrame with nested fields as columns, and where the parts of an event stand in it.

    Its schema is all that is asked for.
    """
    df = with_nested_fields(df, columns)
    return df, layout_of_schema(df.schema, replace(columns, only_type=only_type))


def query_of(asked: Query | QueryTree | Pattern | str, distinct: Distinct | None = None) -> Query:
    """The query of a text in either language, or of a tree; a query as it is."""
    query = asked if isinstance(asked, Query) else Query(asked)
    return query if distinct is None else query.with_distinct(distinct)


# ------------------------------------------------------------------------------ what does not go together


def check_number(name: str, number: object, most: int = MOST_TASKS) -> None:
    """Raises TypeError for anything but a whole number, ValueError for one out of range; None passes."""
    if number is None:
        return
    said = f"{name} is a whole number from 1 to {most:,}, not {number!r}"
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(said)
    if not 1 <= number <= most:
        raise ValueError(said)


def refuse_on_stream(*, share: int | None, split_keys: bool, until: Until | None) -> None:
    """Raises ValueError for options of batches that are given with a stream or with a state."""
    if share is not None:
        raise ValueError(
            "share is for batch DataFrames; on a stream, partitions says how many tasks share the keys"
        )
    if not split_keys:
        raise ValueError(
            "split_keys is for batch DataFrames; on a stream, a key is never split: leave it out"
        )
    if until is not None:
        raise ValueError("until is for batch DataFrames; on a stream, the watermark says what is known")


def refuse_ids(df: DataFrame, rows: str | None) -> None:
    """Raises ValueError where answers have no ids."""
    if not df.isStreaming:
        raise ValueError("answer_ids is for streaming DataFrames: a batch gives each answer once")
    if rows is not None:
        raise ValueError('answer_ids is for complex events, and rows="events" are of events: leave one out')


def refuse_with_state(df: DataFrame, chosen: Wanted | None, *, late_events: bool) -> None:
    """Raises ValueError for what does not go with the state of a batch."""
    if df.isStreaming:
        return
    if late_events:
        raise ValueError("late_events is for streaming DataFrames: a batch has all its events at once")
    if chosen is not None:
        raise ValueError("state is for a stream to go on from, and a stream has no ORDER BY: leave one out")


def _wanted(df: DataFrame, query: Query, *, partials: bool, share: int | None) -> Wanted | None:
    """What ORDER BY … LIMIT asks for, if the query has it; `QueryError` on a stream."""
    if query.tree.ranking is None:
        return None
    if df.isStreaming:
        raise QueryError(
            "ORDER BY … LIMIT chooses among all complex events, and a stream has never had all of them",
            text=query.tree.text,
            span=query.tree.places.get("ORDER BY", NOWHERE),
            found="ORDER BY",
            expected="a query without ORDER BY",
            hint="leave ORDER BY and its LIMIT out, and ask the table of answers for the best of them",
        )
    if partials:
        raise ValueError("ORDER BY is of complex events: leave partials=True out")
    if share is not None:
        raise ValueError("ORDER BY … LIMIT lists the best alone: leave share out")
    return wanted(query.tree)
