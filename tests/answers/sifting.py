"""Complex events made by hand for the tests of the sieve, and what should stay of them, by brute force."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from estero.answers.event_store import EventStore
from estero.answers.sieve.sieve import Sieve
from estero.automata.residual import ALL_MARKED, Agreement, Apartness, Hidden, Key, Residual
from estero.classify.column_names import POSITION, TIME
from estero.engine.walk.matches import Matches
from estero.language.tree.conditions import as_previous
from estero.language.tree.expressions import (
    Aggregate,
    AggregateFunction,
    Attribute,
    Comparison,
    EventFilter,
    Node,
    Previous,
    SetPredicate,
    substituted,
)
from estero.language.tree.query import Strategy
from estero.plan.plan import Classification
from estero.reference.filters import SetPredicates, evaluate_filter
from estero.reference.values import Event, compare
from strategies.patterns import SCHEMA, predicates, to_table

CLASSIFICATION = Classification((), SCHEMA, type_column="type")
LABELS = ("u", "v", "w")


@dataclass(frozen=True, slots=True)
class Made:
    """A complex event: start, end, and the mark id of each marked event, by sequence number, ascending."""

    start: int
    end: int
    items: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Marks:
    """What mark ids stand for."""

    labels: tuple[frozenset[str], ...]
    hidden: tuple[frozenset[Hidden], ...]

    def has(self, mark: int, key: Key) -> bool:
        """Whether events with that mark belong to `key`."""
        if isinstance(key, Hidden):
            return key in self.hidden[mark]
        return bool(self.labels[mark]) if key == ALL_MARKED else key in self.labels[mark]


def visible(*labels: str) -> Marks:
    """A mark id for each text of labels, as in ``visible("u", "u v")``, without hidden ones."""
    sets = tuple(frozenset(each.split()) for each in labels)
    return Marks(sets, (frozenset(),) * len(sets))


def matches_of(made: Sequence[Made]) -> Matches:
    """The complex events as the engine gives them."""
    items = [item for each in made for item in each.items]
    return Matches(
        np.array([each.start for each in made], np.int64),
        np.array([each.end for each in made], np.int64),
        np.cumsum([0, *(len(each.items) for each in made)]).astype(np.int64),
        np.array([event for event, _ in items], np.int64),
        np.array([mark for _, mark in items], np.int32),
    )


def made_of(matches: Matches) -> list[Made]:
    """The complex events of a batch."""
    found = []
    for place, (start, end) in enumerate(zip(matches.start.tolist(), matches.end.tolist(), strict=True)):
        low, high = matches.offsets[place : place + 2]
        items = zip(matches.event[low:high].tolist(), matches.marks[low:high].tolist(), strict=True)
        found.append(Made(start, end, tuple(items)))
    return found


def store_of(table: pa.Table, *, first_position: int = 0, batches: int = 1) -> EventStore:
    """A store that holds the events of a table, appended in so many batches."""
    count = table.num_rows
    positions = pa.array(np.arange(first_position, first_position + count))
    table = table.append_column(POSITION, positions).append_column(TIME, positions)
    store = EventStore(table.schema)
    size = max(1, -(-count // batches))
    for low in range(0, count, size):
        store.append(table.slice(low, size).combine_chunks().to_batches()[0])
    return store


def sifted(
    residuals: Sequence[Residual],
    marks: Marks,
    made: Sequence[Made],
    events: Sequence[Event],
    *,
    strategy: Strategy = Strategy.ALL,
    limit: int | None = None,
    cuts: Sequence[int] = (),
) -> list[Made]:
    """What the sieve leaves of complex events that come in chunks, cut at these places."""
    sieve = Sieve(
        residuals, marks.labels, marks.hidden, classification=CLASSIFICATION, strategy=strategy, limit=limit
    )
    chunks = [matches_of(made[low:high]) for low, high in pairwise([0, *sorted(cuts), len(made)])]
    return left_by(sieve, chunks, store_of(to_table(events), batches=3))


def left_by(sieve: Sieve, chunks: Iterable[Matches], store: EventStore) -> list[Made]:
    """What a sieve leaves of complex events that come in chunks."""
    return [each for kept in sieve.sift_all(chunks, store) for each in made_of(kept)]


# ---------------------------------------------------------------------------------------- brute force


def passes(residual: Residual, marks: Marks, made: Made, events: Sequence[Event]) -> bool:
    """Whether the residual lets a complex event pass: instance by instance, as `Residual` says."""
    condition = residual.condition
    assert not isinstance(condition, Apartness)
    return all(
        _is_true(condition, marked, events) != residual.refuted
        for marked in _instances(residual, marks, made)
    )


def _instances(residual: Residual, marks: Marks, made: Made) -> list[dict[str, list[int]]]:
    everything = range(len(made.items))
    if residual.place is None:
        parts = [everything]
    else:
        begins = _begins(residual.place, marks, made)
        parts = [range(a, b) for a, b in pairwise([*begins, len(made.items)])]
    found = []
    for part in parts:
        marked = {}
        for variable, key in residual.bindings:
            scope = part
            if residual.place is not None and not (isinstance(key, Hidden) and key.place == residual.place):
                scope = everything
                if isinstance(key, Hidden):
                    begins = _begins(key.place, marks, made)
                    low = max((each for each in begins if each <= part.start), default=0)
                    high = min((each for each in begins if each > part.start), default=len(made.items))
                    scope = range(low, high)
            marked[variable] = [made.items[i][0] for i in scope if marks.has(made.items[i][1], key)]
        found.append(marked)
    return found


def _begins(place: int, marks: Marks, made: Made) -> list[int]:
    return [i for i, (_, mark) in enumerate(made.items) if marks.has(mark, Hidden(place))]


def _is_true(
    condition: Node | Agreement, marked: Mapping[str, Sequence[int]], events: Sequence[Event]
) -> bool:
    if isinstance(condition, Agreement):
        values = [
            events[position].attributes.get(key.attribute)
            for key in condition.keys
            if key.variable is not None
            for position in marked[key.variable]
        ]
        alternatives = [key.attribute for key in condition.keys if key.variable is None]
        if alternatives:
            values += [events[position].attributes[alternatives[0]] for position in marked[ALL_MARKED]]
        return all(compare("=", left, right) is True for left in values for right in values)
    of_events = {variable: tuple(events[each] for each in places) for variable, places in marked.items()}
    return evaluate_filter(condition, of_events, NO_PREDICATES) is True


NO_PREDICATES: SetPredicates = {}


def expected(
    residuals: Sequence[Residual],
    marks: Marks,
    made: Sequence[Made],
    events: Sequence[Event],
    strategy: Strategy = Strategy.ALL,
) -> list[Made]:
    """What should stay, without LIMIT."""
    kept = dict.fromkeys(
        _shown(each, marks)
        for each in made
        if all(passes(residual, marks, each, events) for residual in residuals)
    )
    by_end: dict[int, list[Made]] = {}
    for each in kept:
        by_end.setdefault(each.end, []).append(each)
    return [each for group in by_end.values() for each in _chosen(strategy, group)]


def _shown(made: Made, marks: Marks) -> Made:
    items = [
        (event, marks.labels.index(marks.labels[mark])) for event, mark in made.items if marks.labels[mark]
    ]
    return Made(made.start, made.end, tuple(items))


def _chosen(strategy: Strategy, group: list[Made]) -> list[Made]:
    supports = [frozenset(event for event, _ in each.items) for each in group]
    keys: dict[Strategy, Callable[[frozenset[int]], tuple[int, ...]]] = {
        Strategy.NEXT: lambda support: tuple(-event for event in sorted(support)),
        Strategy.LAST: lambda support: tuple(sorted(support, reverse=True)),
    }
    if strategy in keys:
        best = max(supports, key=keys[strategy])
        return [each for each, support in zip(group, supports, strict=True) if support == best]
    if strategy is Strategy.MAX:
        return [
            each
            for each, support in zip(group, supports, strict=True)
            if not any(support < other for other in supports)
        ]
    return group


# ------------------------------------------------------------------------------------- random cases


@st.composite
def conditions_on(draw: st.DrawFn, variables: tuple[str, ...]) -> Node:
    """Conditions on variables: comparisons, ``X[p]``, aggregates, increasing values, AND, OR, NOT."""
    kind = draw(st.integers(0, 5))
    one = st.sampled_from(variables)
    if kind == 0:
        return EventFilter(draw(one), draw(predicates(max_depth=0)))
    if kind == 1:
        name = draw(st.sampled_from(["increasing", "decreasing"]))
        values = Attribute(draw(st.sampled_from(["n", "x", "s"])), draw(one))
        return as_previous(SetPredicate(name, (values,)))
    if kind == 2:
        value = Attribute(draw(st.sampled_from(["n", "x", "s"])), draw(one))
        other = Attribute(value.name, draw(one))
        return Comparison(
            draw(st.sampled_from(["<", "=", ">="])), draw(st.sampled_from([value, other])), Previous(value)
        )
    spoken_of = draw(st.sampled_from([variables[:1], variables[:2], variables[1:], variables]))
    return _spoken(draw, draw(predicates(max_depth=1)), spoken_of)


def _spoken(draw: st.DrawFn, predicate: Node, variables: tuple[str, ...]) -> Node:
    """A predicate over one event → one over variables and their aggregates."""

    def spoken(node: Node) -> Node | None:
        if not isinstance(node, Attribute):
            return None
        variable = draw(st.sampled_from(variables))
        if draw(st.integers(0, 3)):
            return Attribute(node.name, variable)
        functions: list[AggregateFunction] = ["min", "max", "first", "last"]
        if node.name != "s":
            functions += ["count", "sum", "avg", "stddev", "median"]
            if draw(st.integers(0, 9)) == 0:
                return Aggregate("count", variable)
        function = draw(st.sampled_from(functions))
        distinct = function == "count" and draw(st.booleans())
        return Aggregate(function, variable, Attribute(node.name), distinct)

    return substituted(predicate, spoken)


@st.composite
def complex_events(draw: st.DrawFn, marks: Marks, events: int, most: int = 12) -> list[Made]:
    """Complex events over so many events, those of an end together, none twice but for what is hidden."""
    found: dict[Made, None] = {}
    for end in sorted(draw(st.sets(st.integers(0, events - 1), min_size=1, max_size=3))):
        for _ in range(draw(st.integers(1, most))):
            chosen = sorted(draw(st.sets(st.integers(0, end), max_size=5)))
            ids = st.integers(0, len(marks.labels) - 1)
            items = tuple((event, draw(ids)) for event in chosen)
            found[Made(draw(st.integers(0, min([end, *chosen]))), end, items)] = None
    return list(found)
