"""The query as users hold it: checked, explained and run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from estero.errors import QueryError, warn
from estero.language.builder.queries import Built, tree_of
from estero.language.check.queries import check_query
from estero.language.syntax.languages import not_ceql
from estero.language.syntax.parser import parse_query
from estero.language.syntax.recover import read
from estero.language.tree.names import some, suggestion
from estero.language.tree.pattern import EventType
from estero.language.tree.query import QueryTree
from estero.language.tree.schema import EventLayout, Schema, type_names
from estero.plan.plan import Layout
from estero.plan.plan_joins import AnyPlan, KeyedPlan
from estero.plan.planner import plan_of

if TYPE_CHECKING:
    from estero.answers.answer import Answer
    from estero.automata.cea import CEA
    from estero.events.sources import Source
    from estero.events.streams.stream_layout import Lateness, StreamLayout
    from estero.queries.explanation import Explanation
    from estero.queries.join_explanation import JoinExplanation
    from estero.recognize.continuous import ContinuousRecognizer
    from estero.recognize.state_bytes import State


def query(text: str | Built) -> Query:
    """The query of a CEQL text, or of what the builder has made: a query, or a pattern for all it finds.

    Raises `QueryError`, with the place in the text, for everything that is wrong whatever the events are.
    """
    return Query(text)


class Query:
    """A query. It knows no events; `run`, `explain` and `check` are given them.

    The arguments that say how events are laid out mean the same everywhere: `type` is the column with
    the event type (without it there is one type, named after FROM, or ``Event``), `time` the time column,
    `order` columns that break ties of time, `time_unit` the length of a tick of an integer time column
    ("ns", "us", "ms", "s", "min", "h", "d"). A type of the query of which there are no events is no error,
    but an `EsteroWarning`; `types`, a list of the types there may be, beside those that occur, makes it a
    `QueryError`. `csv_options` are passed to the reader of CSV files.
    """

    def __init__(self, text: str | Built) -> None:
        self.tree = _tree_of_text(text if isinstance(text, str) else str(tree_of(text)))
        self.automaton: CEA | None = None
        self.is_whole = True
        raise_all(check_query(self.tree, None))

    @classmethod
    def of_tree(cls, tree: QueryTree, automaton: CEA | None = None, *, is_whole: bool = True) -> Self:
        """The query of a parsed text, not checked yet: `check` will. An `automaton` runs in its place.

        It is not whole where the pattern could not be read, and something else is in its place.
        """
        made = cls.__new__(cls)
        made.tree = tree
        made.automaton = automaton
        made.is_whole = is_whole
        return made

    def __str__(self) -> str:
        return str(self.tree)

    def __repr__(self) -> str:
        return f"estero.query({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Query):
            return NotImplemented
        return self.tree == other.tree and self.automaton == other.automaton

    def __hash__(self) -> int:
        return hash((self.tree, self.automaton))

    @property
    def only_type(self) -> str:
        """The type of all events where no column says it."""
        return self.tree.streams[0] if self.tree.streams else "Event"

    def run(
        self,
        events: object,
        *,
        type: str | None = None,
        time: str | None = None,
        order: Sequence[str] = (),
        time_unit: str | None = None,
        types: Sequence[str] = (),
        csv_options: Mapping[str, object] | None = None,
    ) -> Answer:
        """The complex events of this query, lazily, evaluated in this process.

        `events` is a path or glob (Parquet, CSV, JSON lines, Arrow), anything with the Arrow C stream
        interface, a pandas frame, an iterator of record batches, or a mapping of type name to any of these.

        Raises `QueryError` where the query does not fit the events and `DataError` where they cannot be read.
        """
        layout = EventLayout.of(type, time, order, time_unit, types, only_type=self.only_type)
        from estero.answers.answer import Answer
        from estero.recognize.in_process import InProcessRun

        source = self._open(events, layout, csv_options)
        return Answer(InProcessRun(self._checked_plan(source, layout), source))

    def recognizer(
        self,
        schema: object,
        *,
        type: str | None = None,
        time: str | None = None,
        order: Sequence[str] = (),
        time_unit: str | None = None,
        types: Sequence[str] = (),
        lateness: Lateness | None = None,
    ) -> ContinuousRecognizer:
        """What recognizes this query over events that are pushed, batch after batch without an end.

        `schema` has the columns of events: a `pyarrow.Schema`, or anything that `run` takes, whose events do
        not matter, or a mapping of type name to these where each type has its own table. `lateness` is how
        long to wait for events that come out of order ("5 seconds", or a number of ticks); none by default.

        Raises `QueryError` where the query does not fit the columns, and ValueError for what is no lateness.
        """
        layout = EventLayout.of(type, time, order, time_unit, types, only_type=self.only_type)
        from estero.events.streams.stream_layout import layout_of

        return self.recognizer_of(layout_of(schema, layout, lateness))

    def recognizer_of(self, layout: StreamLayout, state: State | None = None) -> ContinuousRecognizer:
        """The recognizer of events that are laid out so; with a `state`, it goes on from there."""
        from estero.recognize.continuous import ContinuousRecognizer
        from estero.recognize.state_bytes import sound_content

        with nullcontext() if state is None else sound_content():
            source = layout.source()
        return ContinuousRecognizer(self._checked_plan(source, layout.columns), layout, source, state=state)

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
        """Everything in which this query does not fit the events, in order of place; empty if it does."""
        layout = EventLayout.of(type, time, order, time_unit, types, only_type=self.only_type)
        source = self._open(events, layout, csv_options)
        return self._unfit(source, self._schema(source, layout))

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
    ) -> Explanation | JoinExplanation:
        """The plan, its guarantee, what is filtered where, the automaton and, with events, the SQL.

        It prints well and renders in a notebook; `svg()` is the picture of the automaton, or of what joins.
        """
        layout = EventLayout.of(type, time, order, time_unit, types, only_type=self.only_type)
        if events is None:
            return self._explained(self._planned(_any_layout()), None)
        source = self._open(events, layout, csv_options)
        plan = self._checked_plan(source, layout)
        return self._explained(plan, source.sql(plan.classification))

    def _explained(self, plan: AnyPlan, sql: str | None) -> Explanation | JoinExplanation:
        from estero.queries.explanation import Explanation
        from estero.queries.join_explanation import JoinExplanation

        if isinstance(plan, KeyedPlan):
            return JoinExplanation(plan, sql)
        return Explanation(self.tree, plan, sql, str(self))

    def plan(self, layout: Layout) -> AnyPlan:
        """The plan for events that are laid out so; raises `QueryError` where the query does not fit them."""
        raise_all(self._errors(layout.schema, layout.type_column))
        return self._fitting_plan(layout)

    def _fitting_plan(self, layout: Layout) -> AnyPlan:
        plan = self._planned(layout)
        _warn_of_other_names(plan, timed=layout.schema.time is not None)
        return plan

    def _errors(self, schema: Schema, type_column: str | None) -> list[QueryError]:  # noqa: ARG002
        """Everything in which the query does not fit a schema; conjunctive ones ask for the type's column."""
        return check_query(self.tree, schema)

    def _planned(self, layout: Layout) -> AnyPlan:
        """The plan of a query that fits."""
        return plan_of(self.tree, layout, automaton=self.automaton)

    def _open(self, events: object, layout: EventLayout, csv_options: Mapping[str, object] | None) -> Source:
        from estero.events.sources import open_source

        return open_source(events, layout, csv_options, declared=False)

    def _checked_plan(self, source: Source, layout: EventLayout) -> AnyPlan:
        schema = self._schema(source, layout)
        raise_all(self._unfit(source, schema))
        return self._fitting_plan(replace(source.layout, schema=schema))

    def _unfit(self, source: Source, schema: Schema) -> list[QueryError]:
        """Everything in which the query does not fit these events; hints name the values behind it."""
        errors = self._errors(schema, source.type_column)
        for error in errors:
            words = set(re.findall(r"\w+", error.text[error.span.start : error.span.end]))
            values = filter(None, (source.odd_value(name) for name in source.columns if name in words))
            error.hint = "; ".join(values) or error.hint
        return errors

    def _schema(self, source: Source, layout: EventLayout) -> Schema:
        """The schema of a source; warns of types of this query that do not occur.

        Where the layout says which `types` there are, it is closed if one does not occur: that is an error.
        """
        schema = source.schema
        if schema.closed or schema.shared is None or not self.is_whole:
            return schema
        declared = set(layout.types)
        looked_at = not (declared and source.one_shot)
        missing = [
            names
            for names in event_type_names(self.tree)
            if declared.isdisjoint(names) and not (looked_at and any(map(source.has_type, names)))
        ]
        known = sorted({*source.type_names(), *declared}) if missing else []
        if declared and missing:
            return replace(schema, types=dict.fromkeys(known, schema.shared), closed=True)
        if known:
            for names in dict.fromkeys(missing):
                warn(_without_events(names[0], known))
        return schema


def _warn_of_other_names(plan: AnyPlan, *, timed: bool) -> None:
    """Warns of keys and labels that are not the names of their columns, as these are taken."""
    from estero.answers.report import column_names

    keys = [alternatives[0] for alternatives in plan.shown_keys]
    labels = [each.label for each in plan.shown]
    columns = column_names(keys, labels, timed=timed)
    for place, (name, column) in enumerate(zip((*keys, *labels), columns, strict=True)):
        if name != column:
            what, advice = ("key", "") if place < len(keys) else ("label", "; AS gives it another name")
            warn(f"the {what} {name} is shown as {column}: another column is called {name}{advice}")


def _without_events(name: str, known: Sequence[str]) -> str:
    there = f"there are no events of type {name}, only of {some(known, word='and')}"
    near = suggestion(name, known)
    return f"{there}: {near}" if near else there


def restore(query: Query | str, state: bytes, *, key: bytes | None = None) -> ContinuousRecognizer:
    """The recognizer of `query` that goes on from a snapshot: it finds what the one before would have found.

    How events are laid out and how late they may be is in the snapshot. A snapshot that was written with a
    `key` is read with it, and no other is. Raises `DataError` for bytes that are no snapshot, are damaged,
    or are of another query, version or key.
    """
    from estero.recognize.continuous import layout_in
    from estero.recognize.state_bytes import read

    asked = Query(query) if isinstance(query, str) else query
    found = read(state, key)
    return asked.recognizer_of(layout_in(found, str(asked), str(asked.tree)), found)


def event_type_names(tree: QueryTree) -> list[tuple[str, ...]]:
    """For each atom of the pattern, the type names of events that it reads."""
    atoms = dict.fromkeys(node for node in tree.pattern.walk() if isinstance(node, EventType))
    return [type_names(atom, tree.streams) for atom in atoms]


def raise_all(errors: Sequence[QueryError]) -> None:
    """Raises the first of `errors`, with the rest as its `others`; nothing where there is none."""
    if errors:
        first, *others = errors
        first.others = tuple(others)
        raise first


def _tree_of_text(text: str) -> QueryTree:
    other = not_ceql(text)
    if other is not None:
        raise other
    reading = read(text)
    if reading.tree is None:
        raise_all(reading.errors)
    elif reading.errors:
        raise_all(reading.with_checks(check_query(reading.tree, None)))
    return reading.tree or parse_query(text)


def _any_layout() -> Layout:
    return Layout(Schema(shared={}), type_column="type", tick_ns=1)
