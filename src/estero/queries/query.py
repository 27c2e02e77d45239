"""The query as users hold it: checked, explained and run, whichever language it is written in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload

from estero.arguments import checked
from estero.errors import LimitExceeded, QueryError, warn
from estero.events.scan import Scan
from estero.language.check.notes import notes
from estero.language.syntax.languages import is_conjunctive
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import EventLayout, Schema
from estero.plan.plan import Layout, Plan
from estero.queries.candidates import UNKNOWN, many_candidates, may_list_many
from estero.queries.name_warnings import warn_of_other_names, without_events
from estero.queries.ranked import not_shown, unranked, wanted
from estero.queries.statement import Statement, raise_first
from estero.recognize.recognizers.memory_limit import MemoryPolicy  # for `checked`
from estero.system.cores import threads_to_use

if TYPE_CHECKING:
    from estero.answers.answer import Answer
    from estero.events.sources import Source
    from estero.events.streams.stream_layout import Lateness, StreamLayout
    from estero.language.builder.queries import PatternBuilder, QueryBuilder
    from estero.language.tree.pattern import Pattern
    from estero.queries.automaton_value import Automaton
    from estero.queries.explanation import Explanation
    from estero.recognize.recognizers.continuous import ContinuousRecognizer
    from estero.recognize.recognizers.partials_recognizer import PartialsRecognizer
    from estero.recognize.recognizers.stream_recognizer import StreamRecognizer
    from estero.recognize.state_bytes import State
    from estero.recognize.until import Until
    from estero.studio.notebook import Explorer


Distinct = Literal["marks"]
"""The property that distinguishes complex events, in place of their start, end and marks."""


@checked
class Query:
    """A query. It holds no events: `run`, `explain` and `check` take them.

    ``Query(text)`` reads CEQL, a conjunctive query, or what the builder has made. It raises `QueryError`,
    with the place in the text, for all mistakes that do not depend on the events. `statement` is the content
    of the query.

    The arguments that say how events are laid out mean the same everywhere: `type` is the column with
    the event type (without it there is one type, named after FROM, or ``Event``), `time` the time column,
    `order` columns that break ties of time, `time_unit` the length of a tick of an integer time column
    ("ns", "us", "ms", "s", "min", "h", "d"). `estero.scan` names them once, together with the events, and
    can be given wherever events are; these arguments are then left out. A type of the query without any
    events issues an `EsteroWarning`; with `types`, a list of the types that may occur beside those that do,
    it is a `QueryError`. `csv_options` are passed to the reader of CSV files.
    """

    def __init__(self, query: str | QueryBuilder | PatternBuilder | QueryTree | Pattern | Statement) -> None:
        if isinstance(query, str) and is_conjunctive(query):
            from estero.queries.conjunctive_statement import conjunctive_statement

            query = conjunctive_statement(query)
        if not isinstance(query, Statement):
            from estero.queries.pattern_statement import pattern_statement  # and all that reads CEQL

            query = pattern_statement(query)
        self.statement: Statement = query
        self._planned: tuple[Layout, Plan] | None = None

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_planned": None}

    def __str__(self) -> str:
        return str(self.statement)

    def __repr__(self) -> str:
        return f"estero.{self.statement.made_by}({str(self)!r}{self.statement.further_arguments})"

    def _repr_html_(self) -> str:
        from estero.markup.colours import LabelColours
        from estero.markup.html import element
        from estero.markup.query_text import highlighted, in_lines
        from estero.markup.style import shown

        colours = LabelColours.of_query(self.tree)
        notes = [element("li", note) for note in self.notes()]
        query = element("pre", highlighted(in_lines(str(self)), colours.places))
        return shown(query, *([element("ul", *notes)] if notes else []))

    def __eq__(self, other: object) -> bool:
        return self.statement == other.statement if isinstance(other, Query) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.statement)

    @property
    def tree(self) -> QueryTree:
        """The tree of the clauses and labels, and of a pattern with the same types of events."""
        return self.statement.tree

    @property
    def only_type(self) -> str:
        """The type of all events if no column has it."""
        return self.statement.streams[0] if self.statement.streams else "Event"

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters, ``$name`` in the text, without a value."""
        return self.statement.parameters

    def bind(self, values: Mapping[str, object] | None = None, /, **named: object) -> Query:
        """The query with some of its parameters replaced by values; it runs once all of them are.

        ``query("SELECT * WHERE a FILTER a[v > $least] WITHIN $length").bind(least=5, length="5 minutes")``.
        A value takes the place of a constant, never of a piece of text: a number, a string, a truth value,
        a time or a duration of Python, NumPy or pandas. A parameter after IN takes a list: any sequence or
        set, an array of Arrow or NumPy, a column of pandas or Polars, of any length; its NULLs are left out.
        For a window the value is a duration, such as "5 minutes" or a timedelta. A time without a zone is
        UTC. Names that are not Python identifiers are given in a dict, `values`.

        Raises `QueryError`, with the place of the parameter, for a value that cannot stand there, and for a
        name that the query does not have.

        >>> print(Query("SELECT * WHERE a FILTER a[v > $least] LIMIT $most").bind(least=5, most=2))
        SELECT * WHERE a FILTER a[v > 5] LIMIT 2 PER END
        """
        return Query(self.statement.bound({**(values or {}), **named}))

    def with_distinct(self, distinct: Distinct) -> Query:
        """The query with complex events told apart by their end and marks alone: ``"marks"``.

        Two complex events with the same end and marks become one, wherever their runs began. It starts at the
        first event that it marks, or at its end if it marks none. Only LIMIT comes after this: windows and
        filters still go by where runs began. It matters for patterns that may begin with an event that they
        do not keep, and for automata that begin with one that they do not mark.

        Raises ValueError for anything but "marks". Planning raises `QueryError` for LONGEST and SHORTEST,
        which choose for each start.
        """
        if distinct != "marks":
            raise ValueError(f'distinct is "marks", or None for all complex events, not {distinct!r}')
        return Query(replace(self.statement, distinct=True))

    def notes(self) -> list[str]:
        """Notes on parts of this query that are easily misread; `explain` and ``estero check`` show them.

        They are not errors: for instance, LIMIT counts for each end, and a window counts events of all keys.
        """
        said = list(notes(self.tree))
        if may_list_many(self.tree):
            with suppress(LimitExceeded):  # running it raises the error
                said += many_candidates(self.statement.plan(UNKNOWN))
        return said

    def run(  # noqa: PLR0913 (what users may have to say)
        self,
        events: object,
        *,
        type: str | None = None,
        time: str | None = None,
        order: Sequence[str] = (),
        time_unit: str | None = None,
        types: Sequence[str] = (),
        csv_options: Mapping[str, object] | None = None,
        until: Until | None = None,
        distinct: Distinct | None = None,
        partials: bool = False,
        progress: Callable[[int, int | None], None] | None = None,
        threads: int | None = None,
        size: int | None = None,
    ) -> Answer:
        """The complex events of this query, evaluated lazily in this process.

        - `events`: a path, directory or glob (Parquet, CSV, JSON lines, Arrow), or a list of these in any
          formats; anything with the Arrow C stream interface; a pandas frame; an iterator of record batches;
          a mapping of type name to any of these; or an `estero.scan`, which names the columns. For a Spark
          DataFrame the answer is a DataFrame: that of `estero.spark.recognize` with the same arguments.
        - `until`, for queries that end with ``NOT(…) FOR d`` and for partial matches: the time up to which
          events are known, or "end" if none will follow; by default the time of the last event.
        - `distinct`: complex events are told apart by their end and marks alone (`with_distinct`).
        - `partials`: adds a row for each partial match (`Answer.partials`), all held in memory, and the
          columns ``steps``, ``expired_time`` (where the window is one of time) and ``complete``.
        - `progress`: called now and then, as the answer is read, with the number of events read and the
          number of all events (None where it is not known).
        - `threads`: how many threads recognize, where there are many events and the query can be divided
          (`explain` says so); by default ``ESTERO_THREADS``, else the number of cores. The answer is the
          same, in the same order.
        - `size`: only the first `size` complex events; without partial matches.

        Raises `QueryError` if the query does not fit the events, and `DataError` if they cannot be read.
        """
        scan = Scan.of(events, type, time, order, time_unit, types, csv_options, only_type=self.only_type)
        if distinct is not None:
            asked = self.with_distinct(distinct)
            return asked.run(
                scan, until=until, partials=partials, progress=progress, threads=threads, size=size
            )
        if self.tree.ranking is not None and not scan.is_of_spark:
            if partials:
                raise ValueError("ORDER BY ranks complex events: leave partials=True out")
            best = self._best(scan, until=until, progress=progress, threads=threads)
            return best if size is None else best.limit(size)
        if scan.is_of_spark:
            for name, given in {"progress": progress, "threads": threads, "size": size}.items():
                if given is not None:
                    raise ValueError(f"{name} is for events in this process: leave it out for Spark")
            matches: Answer = on_spark().recognize(scan, self, until=until, partials=partials)
            return matches
        from estero.answers.answer import Answer
        from estero.recognize.in_process import InProcessRun
        from estero.recognize.source_run import Progress

        workers = threads_to_use(threads)
        source = opened(scan)
        plan = self.plan_for(source, scan.layout)
        for note in self.statement.notes_on(source.schema):
            warn(note)
        source.run_relations()
        reported_progress = None if progress is None else Progress(progress)
        known = None
        if until is not None:
            from estero.recognize.source_run import time_type
            from estero.recognize.until import known_until

            known = known_until(until, plan, time_type(source), partials=True)
        run = InProcessRun(plan, source, until=known, progress=reported_progress, threads=workers)
        if not partials:
            answer = self.statement.taken(Answer(run))
            return answer if size is None else answer.limit(size)
        self.statement.refuse_pipes()
        if size is not None:
            raise ValueError("size is for complex events alone: with partials, limit what comes out")
        from estero.recognize.partial_matches.with_partials import WithPartialsRun

        return Answer(WithPartialsRun(run, run.partials()))

    def _best(self, scan: Scan, **how: Any) -> Answer:
        """The complex events that ORDER BY and its LIMIT choose from the answer of the query without them."""
        answer: Answer = Query(unranked(self.statement)).run(scan, **how)
        number, by, ascending = wanted(self.tree)
        try:
            return answer.top(number, by, ascending=ascending)
        except ValueError as error:
            raise not_shown(self.tree, error) from None

    @overload
    def recognizer(
        self,
        schema: object,
        *,
        type: str | None = ...,
        time: str | None = ...,
        order: Sequence[str] = ...,
        time_unit: str | None = ...,
        types: Sequence[str] = ...,
        lateness: Lateness | None = ...,
        distinct: Distinct | None = ...,
        threads: int | None = ...,
        memory_limit: int | str | None = ...,
        memory_policy: MemoryPolicy = ...,
        partials: Literal[False] = ...,
    ) -> ContinuousRecognizer: ...

    @overload
    def recognizer(
        self,
        schema: object,
        *,
        type: str | None = ...,
        time: str | None = ...,
        order: Sequence[str] = ...,
        time_unit: str | None = ...,
        types: Sequence[str] = ...,
        lateness: Lateness | None = ...,
        distinct: Distinct | None = ...,
        threads: int | None = ...,
        memory_limit: int | str | None = ...,
        memory_policy: MemoryPolicy = ...,
        partials: Literal[True],
    ) -> PartialsRecognizer: ...

    @overload
    def recognizer(
        self,
        schema: object,
        *,
        type: str | None = ...,
        time: str | None = ...,
        order: Sequence[str] = ...,
        time_unit: str | None = ...,
        types: Sequence[str] = ...,
        lateness: Lateness | None = ...,
        distinct: Distinct | None = ...,
        threads: int | None = ...,
        memory_limit: int | str | None = ...,
        memory_policy: MemoryPolicy = ...,
        partials: bool,
    ) -> StreamRecognizer: ...

    def recognizer(  # noqa: PLR0913 (what users may have to say)
        self,
        schema: object,
        *,
        type: str | None = None,
        time: str | None = None,
        order: Sequence[str] = (),
        time_unit: str | None = None,
        types: Sequence[str] = (),
        lateness: Lateness | None = None,
        distinct: Distinct | None = None,
        partials: bool = False,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        memory_policy: MemoryPolicy = "error",
    ) -> StreamRecognizer:
        """A recognizer of this query for an endless stream of events that are pushed batch by batch.

        - `schema`: the columns of the events, as a `pyarrow.Schema`, as anything that `run` takes (only its
          columns matter), as a mapping of type name to these where each type has its own table, or as an
          `estero.scan` of any of these, which names the columns.
        - `lateness`: how long to wait for events that come out of order ("5 seconds", or a number of ticks);
          by default there is no wait.
        - `distinct`: complex events are told apart by their end and marks alone (`with_distinct`).
        - `partials`: answers also hold partial matches (`PartialsRecognizer`).
        - `threads`: how many threads recognize a large push, of 100,000 events or so, where the query has a
          window that can be cut (`explain` says so); partial matches are recognized by one thread.
        - `memory_limit`, in bytes or as "500 MB": a push that leaves a larger state raises `LimitExceeded`
          (`ContinuousRecognizer.limit_memory`); with the `memory_policy` "shed" the oldest partitions are
          dropped instead (`ContinuousRecognizer.shed`).

        Raises `QueryError` where the query does not fit the columns, and for partial matches of a query
        without a window or of a pattern that is not a sequence; ValueError for an invalid lateness.
        """
        scan = Scan.of(schema, type, time, order, time_unit, types, only_type=self.only_type)
        from estero.events.streams.stream_layout import layout_of

        laid_out = layout_of(scan, lateness)
        asked = self if distinct is None else self.with_distinct(distinct)
        workers = threads_to_use(threads)
        recognizer: StreamRecognizer
        if partials:
            recognizer = asked.partials_recognizer_of(laid_out)
        else:
            recognizer = asked.recognizer_of(laid_out, threads=workers)
        if memory_limit is not None:
            recognizer.limit_memory(memory_limit, memory_policy)
        return recognizer

    def partials_recognizer_of(self, layout: StreamLayout, state: State | None = None) -> PartialsRecognizer:
        """The recognizer with partial matches for events of a layout, resumed from `state` if given."""
        from estero.recognize.recognizers.partials_recognizer import PartialsRecognizer, plan_of_one_stream
        from estero.recognize.state_bytes import sound_content

        with nullcontext() if state is None else sound_content():
            source = layout.source()
        self.statement.refuse_pipes()
        plan = self.plan_for(source, layout.columns)
        plan.refuse_endless()
        plan.refuse_distinct()
        plan.refuse_levels()
        laid_out = replace(source.layout, schema=plan.classification.schema)
        return PartialsRecognizer(plan_of_one_stream(plan.tree, laid_out), layout, source, state=state)

    def recognizer_of(
        self, layout: StreamLayout, state: State | None = None, threads: int = 1
    ) -> ContinuousRecognizer:
        """The recognizer for events of a layout, resumed from `state` if there is one."""
        from estero.recognize.recognizers.continuous import ContinuousRecognizer
        from estero.recognize.state_bytes import sound_content

        with nullcontext() if state is None else sound_content():
            source = layout.source()
        self.statement.refuse_pipes()
        plan = self.plan_for(source, layout.columns)
        plan.refuse_endless()
        return ContinuousRecognizer(plan, layout, source, state=state, threads=threads)

    def check(
        self,
        events: object,
        *,
        type: str | None = None,
        time: str | None = None,
        order: Sequence[str] = (),
        time_unit: str | None = None,
        types: Sequence[str] = (),
        csv_options: Mapping[str, object] | None = None,
    ) -> list[QueryError]:
        """All errors of this query for these events, by their place in the text; empty if it fits.

        A query that fits but can never match issues an `EsteroWarning`.
        """
        scan = Scan.of(events, type, time, order, time_unit, types, csv_options, only_type=self.only_type)
        if scan.is_of_spark:
            errors: list[QueryError] = on_spark().check(scan, self)
            return errors
        return self.errors_for(opened(scan), scan.layout)

    def explain(
        self,
        events: object = None,
        *,
        type: str | None = None,
        time: str | None = None,
        order: Sequence[str] = (),
        time_unit: str | None = None,
        types: Sequence[str] = (),
        csv_options: Mapping[str, object] | None = None,
    ) -> Explanation:
        """The plan and its guarantee, where filters are checked, the automaton and, with events, the SQL.

        It can be printed and renders in a notebook; `svg()` draws the automaton, or the join.
        """
        from estero.queries.explanation import Explanation

        scan = Scan.of(events, type, time, order, time_unit, types, csv_options, only_type=self.only_type)
        if self.tree.ranking is not None and not scan.is_of_spark:
            return Query(unranked(self.statement)).explain(events if events is None else scan)
        if events is None:
            return Explanation(self.statement.plan(UNKNOWN))
        if scan.is_of_spark:
            explanation: Explanation = on_spark().explain(scan, self)
            return explanation
        source = opened(scan)
        plan = self.plan_for(source, scan.layout)
        read = tuple(source.reading_lines(plan.classification))
        return Explanation(plan, source.sql(plan.classification), read=read)

    def automaton(self, events: object = None, **layout: Any) -> Automaton:
        """The automaton of this query: a CEA, chain-CEA or PCEA, and the filters beside it.

        The arguments are those of `explain`. Without events it is the automaton for columns of unknown types.
        """
        return self.explain(events, **layout).automaton

    def explore(self, events: object, **layout: Any) -> Explorer:
        """A widget for notebooks with this query in its editor, as `estero.explore` gives it.

        `events` and `layout` (the arguments that say how events are laid out) are those of `run`.
        """
        widget: Explorer = import_module("estero.studio.widget").explore(events, self, **layout)
        return widget

    def plan(self, layout: Layout) -> Plan:
        """The plan for events of a layout; raises `QueryError` if the query does not fit them."""
        self.statement.refuse_pipes()
        raise_first(self.statement.errors(layout.schema, layout.type_column))
        return self._fitting_plan(layout)

    def _planned_for(self, layout: Layout) -> Plan:
        plan = self._remembered(layout)
        if plan is None:
            plan = self.statement.plan(layout)
            self._planned = None if plan.predicates else (layout, plan)  # predicates may be replaced
        return plan

    def _fitting_plan(self, layout: Layout) -> Plan:
        plan = self._planned_for(layout)
        warn_of_other_names(plan, timed=layout.schema.time is not None)
        return plan

    def _remembered(self, layout: Layout) -> Plan | None:
        """The last plan, if it was for events of this layout."""
        planned = self._planned
        return planned[1] if planned is not None and _are_alike(planned[0], layout) else None

    def errors_for(self, source: Source, layout: EventLayout) -> list[QueryError]:
        """All errors of this query for the events of a source; see `check`."""
        errors = self._unfit(source, self._schema(source, layout))
        if not errors:
            self.statement.warn_if_never()
        return errors

    def plan_for(self, source: Source, layout: EventLayout) -> Plan:
        """The plan for a source of events; raises `QueryError` if the query does not fit them."""
        if source.waits_for_columns and not self.statement.errors(source.schema, source.type_column):
            source.expect(self._planned_for(source.layout).classification)
        schema = self._schema(source, layout)
        asked = source.layout
        if schema is not asked.schema:
            asked = replace(asked, schema=schema)
        if self._remembered(asked) is None:  # else it fits; checking takes as long as all the rest
            raise_first(self._unfit(source, schema))
        return self._fitting_plan(asked)

    def _unfit(self, source: Source, schema: Schema) -> list[QueryError]:
        """All errors of the query for these events; hints name the values that cause them."""
        errors = self.statement.errors(schema, source.type_column)
        for error in errors:
            words = set(re.findall(r"\w+", error.text[error.span.start : error.span.end]))
            values = filter(None, (source.odd_value(name) for name in source.columns if name in words))
            error.hint = "; ".join(values) or error.hint
        return errors

    def _schema(self, source: Source, layout: EventLayout) -> Schema:
        """The schema of a source; warns of types of this query that do not occur.

        If the layout lists the possible `types`, the schema is closed if one does not occur, which is an
        error.
        """
        schema = source.schema
        if schema.closed or schema.shared is None:
            return schema
        declared = set(layout.types)
        looked_at = not (declared and source.one_shot)
        missing = [
            names
            for names in self.statement.type_names()
            if declared.isdisjoint(names) and not (looked_at and any(map(source.has_type, names)))
        ]
        known = sorted({*source.type_names(), *declared}) if missing else []
        if declared and missing:
            return replace(schema, types=dict.fromkeys(known, schema.shared), closed=True)
        if known:
            none = len(set(missing)) == len(set(self.statement.type_names())) > 1
            for names in dict.fromkeys(missing):
                warn(without_events(names[0], known, layout.type if none else None))
        return schema


def on_spark() -> Any:
    """The module `estero.spark`: it depends on this one, so it is imported by name when needed."""
    return import_module("estero.spark")


def opened(scan: Scan) -> Source:
    """The source of the given events, in this process."""
    from estero.events.sources import open_source

    return open_source(scan.events, scan.layout, scan.csv_options, declared=False)


def _are_alike(one: Layout, other: Layout) -> bool:
    """Whether the plan for events of one layout serves another."""
    return one == other and (one.schema is other.schema or _order_of(one.schema) == _order_of(other.schema))


def _order_of(schema: Schema) -> object:
    """The parts of a schema that == ignores: the order of columns, and nested fields."""
    order = [(name, list(attributes)) for name, attributes in schema.types.items()]
    return order, list(schema.shared or ()), schema.untyped, schema.nested
