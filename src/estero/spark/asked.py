"""A query on a DataFrame: its text, the columns of the events, and options that cannot be combined."""

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
"""The largest number of rows that are brought to the driver."""
MOST_TASKS: Final = 100_000
"""The largest number of tasks of a job: Spark plans and counts them on the driver, and stalls with more."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, its DataFrame, and the columns that hold the parts of an event.

    `plan` gives all complex events; if the query has ORDER BY and LIMIT, they choose those that are `wanted`.
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
        """The question; raises `QueryError` and ValueError if ORDER BY does not go with the rest of it."""
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
    """A DataFrame and the meaning of its columns, from a scan or from the arguments beside it."""
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
    """The DataFrame with nested fields as columns, and the columns that hold the parts of an event.

    Only its schema is read.
    """
    df = with_nested_fields(df, columns)
    return df, layout_of_schema(df.schema, replace(columns, only_type=only_type))


def query_of(asked: Query | QueryTree | Pattern | str, distinct: Distinct | None = None) -> Query:
    """The query of a text in either language, or of a tree; a query unchanged."""
    query = asked if isinstance(asked, Query) else Query(asked)
    return query if distinct is None else query.with_distinct(distinct)


# ------------------------------------------------------------------------------ options that conflict


def check_number(name: str, number: object, most: int = MOST_TASKS) -> None:
    """Raises TypeError for anything but an integer, ValueError for one out of range; accepts None."""
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
    """Raises ValueError if answers have no ids."""
    if not df.isStreaming:
        raise ValueError("answer_ids is for streaming DataFrames: a batch gives each answer once")
    if rows is not None:
        raise ValueError('answer_ids is for complex events, and rows="events" are of events: leave one out')


def refuse_with_state(df: DataFrame, chosen: Wanted | None, *, late_events: bool) -> None:
    """Raises ValueError for options that cannot be combined with the state of a batch."""
    if df.isStreaming:
        return
    if late_events:
        raise ValueError("late_events is for streaming DataFrames: a batch has all its events at once")
    if chosen is not None:
        raise ValueError("state is for a stream to go on from, and a stream has no ORDER BY: leave one out")


def _wanted(df: DataFrame, query: Query, *, partials: bool, share: int | None) -> Wanted | None:
    """The ranking of ORDER BY … LIMIT, if the query has it; `QueryError` on a stream."""
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
        raise ValueError("ORDER BY ranks complex events: leave partials=True out")
    if share is not None:
        raise ValueError("ORDER BY … LIMIT lists the best alone: leave share out")
    return wanted(query.tree)
