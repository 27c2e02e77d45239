"""Estero on Spark: a DataFrame of events in, a DataFrame of complex events out.

>>> from estero.spark import recognize
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Literal

from estero.arguments import checked
from estero.errors import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from estero.answers.why_not import WhyNot
    from estero.errors import QueryError
    from estero.events.scan import Scan
    from estero.events.streams.stream_layout import Keep, Lateness
    from estero.language.tree.pattern import Pattern
    from estero.language.tree.query import QueryTree
    from estero.queries.explanation import Explanation
    from estero.queries.query import Distinct, Query
    from estero.queries.rules.rule_set import RuleSet
    from estero.queries.rules.rule_table import RuleTable
    from estero.recognize.until import Until
    from estero.spark.batch.collected import collect
    from estero.spark.connectors.address import sink_address, source_address, trigger_of
    from estero.spark.connectors.packages import stream_session
    from estero.spark.connectors.progress import follow
    from estero.spark.connectors.sinks import write_stream
    from estero.spark.connectors.sources import read_stream
    from estero.spark.files.files import read_events
    from estero.spark.row_patterns.statements import explain_sql, sql
    from estero.spark.sessions.session import local_session
    from estero.spark.table_function import register

__all__ = [
    "check",
    "collect",
    "count",
    "explain",
    "explain_sql",
    "follow",
    "local_session",
    "read_events",
    "read_stream",
    "recognize",
    "register",
    "sink_address",
    "source_address",
    "sql",
    "stream_session",
    "trigger_of",
    "why_not",
    "write_stream",
]

_HOMES = {
    "collect": "batch.collected",
    "explain_sql": "row_patterns.statements",
    "follow": "connectors.progress",
    "local_session": "sessions.session",
    "read_events": "files.files",
    "read_stream": "connectors.sources",
    "register": "table_function",
    "sink_address": "connectors.address",
    "source_address": "connectors.address",
    "sql": "row_patterns.statements",
    "stream_session": "connectors.packages",
    "trigger_of": "connectors.address",
    "write_stream": "connectors.sinks",
}

require("spark", "Estero on Spark")


def __getattr__(name: str) -> object:
    """Imports a public name at its first use, as `estero` does."""
    if name not in _HOMES:
        raise AttributeError(f"module 'estero.spark' has no attribute {name!r}")
    value: object = getattr(import_module(f"estero.spark.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, imported or not."""
    return sorted({*globals(), *__all__})


@checked
def recognize(  # noqa: PLR0913 (what users may have to say)
    df: DataFrame | Scan,
    query: Query | RuleSet | RuleTable | QueryTree | Pattern | PathLike[str] | str,
    *,
    type: str | None = None,
    time: str | None = None,
    order: Sequence[str] = (),
    time_unit: str | None = None,
    positions: bool | None = None,
    rows: Literal["events"] | None = None,
    partitions: int | None = None,
    split_keys: bool = True,
    share: int | None = None,
    lateness: Lateness | None = None,
    late_events: bool = False,
    until: Until | None = None,
    distinct: Distinct | None = None,
    partials: bool = False,
    metadata: str | Sequence[str] = (),
    state: PathLike[str] | str | None = None,
    keep: Keep | None = None,
    answer_ids: bool = False,
) -> DataFrame:
    """The complex events of `query` in `df`, one in each row; streaming if `df` is a streaming DataFrame.

    `query` is a query or its text, in CEQL or conjunctive; a set of rules; or a path to a directory of rules,
    or a table of rules (`estero.rule_table`). `type` is the column with the event type (without it there is
    one type, named after FROM, or ``Event``), `time` the time column, `order` columns that break ties of
    time, `time_unit` the length of a tick of an integer time column ("ns", "us", "ms", "s", "min", "h", "d").
    An `estero.scan` of a DataFrame, given as `df`, replaces these four.

    **Columns.** ``start_time`` and ``end_time`` where there is a time, the partition columns, then for each
    selected label an array of structs with the attributes of its events. ``positions=True`` adds ``start``
    and ``end`` in front and a ``position`` to each struct; these are positions in the whole stream, for which
    all events have to be moved and sorted. Rows have no order. A query that ends with ``NOT(…) FOR d`` has a
    further column ``decided_time``.

    ``rows="events"`` gives one row for each marked event and label, as `Answer.rows` does: ``match``,
    ``label``, ``position`` if positions are asked for, the partition columns, and the attributes of all
    labels. ``match`` is a signed 64-bit number that is the same in every run on every cluster: Spark's
    ``xxhash64`` of the partition columns, start, end and marks. Without positions it is computed from times
    and shown attributes, so that complex events which look the same share a number.

    **Parallelism.** Spark itself classifies the events, and only relevant ones reach Python.

    - A query with PARTITION BY runs in `partitions` tasks that share its keys (default: the number of
      Spark's shuffle partitions).
    - A query with a window in time and without keys is cut into `partitions` ranges of time, each with the
      window before it; every complex event is given by the task in whose range it ends (default: the number
      of tasks that run at once, fewer for few events).
    - A query with neither is recognized by `partitions` tasks, each over all relevant events, which share the
      enumeration evenly (default: one task or, where a million complex events and 50 for each event are
      expected, as many as run at once, up to 8).
    - Others (with CONSUME BY ANY, or that compare events without keys and a window) run in one task.

    `share` sets how many tasks share the enumeration of any query. In a table of Parquet files footers say
    where ranges begin, and queries with keys and a window in time are cut in the same way; otherwise jobs
    look at the events, and only keys with more than 1.5 even shares of them are cut. ``split_keys=False``
    keeps all keys whole. On a stream keys are always whole, and `split_keys` and `share` do not apply.

    **Streams.** Events wait until the watermark has passed them: that of the time column if it has one, else
    one at `lateness` behind the greatest time ("5 seconds", a timedelta, ticks; none by default). Late events
    are left out and counted, as ``late`` in ``observedMetrics["estero"]`` of progress reports. With
    `late_events` the columns are ``match``, a struct of those above (with ``rows="events"`` of a marked
    event), and ``late``, a struct of those of `df`; one of the two is NULL in each row. `partitions` buckets
    share the keys (default: 16); a checkpoint keeps their number. Positions, and windows of a number of
    events, put all keys into one bucket. `answer_ids` adds a last column ``answer_id``: a text that no other
    row of the stream has, and that stays the same when a micro-batch is repeated, by which readers of sinks
    such as Kafka can drop duplicates.

    **Deadlines.** In a batch events are known up to the last one, which a job looks for, or up to `until`: a
    time, or "end" if no events will follow. Complex events that are undecided then are not in the answer. On
    a stream the watermark decides.

    **Variants.** ``distinct="marks"`` tells complex events apart by their end and marks alone
    (`Query.with_distinct`). ``partials=True`` adds a row for each start that completed some steps and whose
    window has passed, as `Answer.partials` does, and the columns ``steps``, ``expired_time`` (where the
    window is one of time) and ``complete``; tasks or buckets share keys that the query writes, or values that
    its equalities give to all events of every step, and otherwise there is one ordered task (`explain` says
    why). With ORDER BY … LIMIT the best complex events of a batch come in their order; a stream has none.

    **Rules.** For a set of rules (`estero.rules`) the columns are those of `RuleAnswers`: ``rule``,
    ``start``, ``end``, ``start_time`` and ``end_time`` where there is a time, ``keys``, a map of texts, and
    ``positions``, a map of arrays. ``positions=False`` replaces positions by a map ``events`` with the times
    of events and the columns of `order`, so that tasks or buckets share the keys. `metadata` names entries of
    the rules' metadata to show as columns after ``rule``, as in `RuleSet.run`. A batch is one job: rules with
    the same partition keys, or whose windows are cut in the same way, share the moving of events. Beside
    the columns, `partitions` and `until` apply, on a stream also `lateness`; enumeration is not shared.

    On a stream the files of a directory of rules, or the rows of a table, may change. The driver looks at
    them before each micro-batch: unchanged rules keep their state, new ones see events from then on or, with
    `keep` ("2 hours", "1000 events"; see `RuleSet.recognizer`), a replay of the events kept in the state, and
    wrong ones are refused in the log. A further column ``version`` has a digest of the rules in force.

    **From history to live.** With `state`, a new directory, a batch gives the answer that a stream would have
    given for its events and writes there what is open at its end. A stream with the same `state`, query,
    columns, `positions` and `partitions` begins from there, with the events after those of the batch.

    The result is lazy, except that deciding what to cut or to share reads the events once where there are no
    footers, and positions read their times twice. Spark keeps what it has read while this DataFrame exists.
    Errors in single events, such as a relevant event without a time, are raised by whatever reads them first:
    `recognize` or an action.

    The stream order is that of `time`, then `order`, then arrival: of the partitions of `df` and of the
    rows in them. Spark orders the partitions of several files by size, so give `order` where it matters.

    Raises `QueryError` where the query is wrong or does not fit the columns, and `DataError` for a column
    that is missing or of a wrong kind.
    """
    from estero.queries.rules.rule_set import RuleSet
    from estero.queries.rules.rule_table import RuleTable
    from estero.spark.asked import refuse_ids, scanned

    df, columns = scanned(df, type, time, order, time_unit)
    place = None if state is None else str(state)
    if answer_ids:
        refuse_ids(df, rows)
    if isinstance(query, RuleSet | RuleTable | PathLike):
        from estero.spark.rule_sets import recognize_set, refuse_for_rules

        refuse_for_rules(
            rows=rows,
            split_keys=not split_keys,
            share=share,
            late_events=late_events,
            distinct=distinct,
            partials=partials,
        )
        return recognize_set(
            df,
            columns,
            query,
            positions=positions is not False,  # as `RuleAnswers` does, unless something else is asked for
            partitions=partitions,
            until=until,
            lateness=lateness,
            state=place,
            metadata=metadata,
            keep=keep,
            answer_ids=answer_ids,
        )
    from estero.queries.ranked import not_shown
    from estero.spark import asked
    from estero.spark.batch.batch import recognize_frame
    from estero.spark.streams.streaming import MOST_BUCKETS, recognize_stream

    for name, is_given in {"metadata": bool(metadata), "keep": keep is not None}.items():
        if is_given:
            raise ValueError(f"{name} is for a set of rules: leave it out for one query")
    if rows not in (None, "events"):
        raise ValueError(f'rows is "events", or None for complex events, not {rows!r}')
    lives = df.isStreaming or place is not None
    asked.check_number("partitions", partitions, MOST_BUCKETS if lives else asked.MOST_TASKS)
    asked.check_number("share", share)
    question = asked.Asked.of(df, columns, asked.query_of(query, distinct), partials=partials, share=share)
    df, layout, chosen = question.df, question.layout, question.wanted
    plan = question.partials if partials else question.plan
    if lives:
        asked.refuse_on_stream(share=share, split_keys=split_keys, until=until)
        asked.refuse_with_state(df, chosen, late_events=late_events)
        return recognize_stream(
            df,
            plan,
            tick_ns=layout.tick_ns,
            positions=bool(positions),
            partitions=partitions,
            lateness=lateness,
            late_events=late_events,
            event_rows=rows is not None,
            state=place,
            answer_ids=answer_ids,
        )
    if lateness is not None or late_events:
        raise ValueError(
            "lateness and late_events are for streaming DataFrames: a batch has all its events at once"
        )
    if partials and share is not None:
        raise ValueError("share and partials do not go together: starts are not shared, keys are")
    try:
        return recognize_frame(
            df,
            plan,
            positions=bool(positions),
            partitions=partitions,
            split_keys=split_keys,
            share=share,
            event_rows=rows is not None,
            until=until,
            wanted=chosen,
        )
    except ValueError as error:
        raise (error if chosen is None else not_shown(question.query.tree, error)) from None


@checked
def count(  # noqa: PLR0913 (as `recognize`)
    df: DataFrame | Scan,
    query: Query | QueryTree | Pattern | str,
    *,
    type: str | None = None,
    time: str | None = None,
    order: Sequence[str] = (),
    time_unit: str | None = None,
    partitions: int | None = None,
    split_keys: bool = True,
    until: Until | None = None,
    distinct: Distinct | None = None,
) -> int:
    """The exact number of complex events of `query` in the batch DataFrame `df`, of any size.

    The arguments and errors are those of `recognize`, and tasks share the work in the same way. Complex
    events are counted on the compact set, without enumerating them, so that 2^1000 of them take no longer
    than their events; only filters that are checked for one complex event at a time (`Query.explain` names
    them) enumerate, as ``recognize(…).count()`` does.
    """
    from estero.errors import DataError
    from estero.spark.asked import Asked, check_number, query_of, scanned
    from estero.spark.batch.batch import count_frame

    df, columns = scanned(df, type, time, order, time_unit)
    check_number("partitions", partitions)
    if df.isStreaming:
        raise DataError(
            "only batch DataFrames can be counted, but this one is streaming",
            hint="recognize it, and count the rows in its sink",
        )
    asked = Asked.of(df, columns, query_of(query, distinct))
    number = count_frame(asked.df, asked.plan, partitions=partitions, split_keys=split_keys, until=until)
    return number if asked.wanted is None else min(number, asked.wanted.number)


@checked
def explain(
    df: DataFrame | Scan,
    query: Query | QueryTree | Pattern | str,
    *,
    type: str | None = None,
    time: str | None = None,
    order: Sequence[str] = (),
    time_unit: str | None = None,
    positions: bool = False,
    partials: bool = False,
) -> Explanation:
    """The plan of `recognize` for the same arguments, made without starting a job or reading events.

    Its line ``on Spark`` says how tasks divide the work. Where one task has to see all events in order, it
    says ``one ordered task``, and why.

    The errors are those of `recognize`.
    """
    from estero.plan.division import buckets_in_words, division_in_words
    from estero.queries.explanation import Explanation
    from estero.spark.asked import Asked, query_of, scanned

    df, columns = scanned(df, type, time, order, time_unit)
    asked = Asked.of(df, columns, query_of(query), partials=partials)
    if df.isStreaming:
        asked.plan.refuse_endless()
    levels = asked.partials if partials else None
    plan = asked.plan if levels is None else levels.whole
    words = buckets_in_words if df.isStreaming else division_in_words
    return Explanation(plan, tasks=words(plan, positions=positions, partials=levels))


@checked
def check(
    df: DataFrame | Scan,
    query: Query | QueryTree | Pattern | str,
    *,
    type: str | None = None,
    time: str | None = None,
    order: Sequence[str] = (),
    time_unit: str | None = None,
) -> list[QueryError]:
    """All errors of `query` for the columns of `df`, by their place in the text; empty if it fits.

    It is `Query.check` without starting a job, so that types without events are not noticed. Raises
    `QueryError` for a text with mistakes that do not depend on the events, and `DataError` for a column that
    is missing or of a wrong kind.
    """
    from estero.spark.asked import laid_out, query_of, scanned

    df, columns = scanned(df, type, time, order, time_unit)
    asked = query_of(query)
    _, layout = laid_out(df, columns, asked.only_type)
    errors = asked.statement.errors(layout.schema, layout.type_column)
    if not errors:
        asked.statement.warn_if_never()
    return errors


@checked
def why_not(
    df: DataFrame | Scan,
    query: Query | QueryTree | Pattern | str,
    *,
    type: str | None = None,
    time: str | None = None,
    order: Sequence[str] = (),
    time_unit: str | None = None,
    sample: int = 1_000_000,
    seconds: float | None = None,
) -> WhyNot:
    """The reasons why `recognize` finds no more in a batch: how far events come, and what stops them.

    The first `sample` events in the order of time are brought to the driver and looked at there
    (`Answer.why_not`, for `seconds` at most); filter `df` to look at others.

    The errors are those of `recognize`; DataError for a stream.
    """
    from estero.errors import DataError
    from estero.events.scan import Scan
    from estero.spark.asked import MOST_ROWS, check_number, laid_out, query_of, scanned
    from estero.spark.frames import quoted

    df, columns = scanned(df, type, time, order, time_unit)
    check_number("sample", sample, MOST_ROWS)
    if df.isStreaming:
        raise DataError(
            "why_not is for a batch DataFrame, but this one is streaming",
            hint="read what the stream reads with spark.read",
        )
    asked = query_of(query)
    df, layout = laid_out(df, columns, asked.only_type)
    asked.plan(layout)
    by = [quoted(name) for name in (columns.time, *columns.order) if name is not None]
    events = (df.orderBy(*by) if by else df).limit(sample).toArrow()
    return asked.run(Scan(events, columns)).why_not(seconds=seconds)
