"""From a checked query to a plan: what is classified, which automaton runs, what is reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from estero.automata.cea import CEA, NO_LABELS, EventPredicate
from estero.automata.compile_pattern import compile_pattern
from estero.automata.determinize import DEFAULT_STATE_CAP, LazyAutomaton
from estero.automata.registers import Value
from estero.language.query import Consume, DurationWindow, EventWindow, QueryTree, Strategy
from estero.language.schema import Schema
from estero.language.selection import Shown, shown_labels


@dataclass(frozen=True, slots=True)
class Classification:
    """What the classify stage computes for each event (algorithms.md, "Three stages").

    Bit k says whether `predicates[k]` is true of the event. `keys` holds, for each bracket of
    PARTITION BY, the alternatives in order. `keep_all` keeps events with no bit set as well, because
    an operator has to see them. `order` breaks ties of time; `payload` names the attributes that the
    report shows. Without `type_column` every event is of type `only_type`. `values` are what registers
    compare.
    """

    predicates: tuple[EventPredicate, ...]
    schema: Schema
    type_column: str | None = None
    only_type: str = "Event"
    keys: tuple[tuple[str, ...], ...] = ()
    keep_all: bool = False
    order: tuple[str, ...] = ()
    payload: tuple[str, ...] = ()
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of an event stand in its table: the columns that a user names when a query runs.

    `tick_ns` is the length of a tick of the time column in nanoseconds, None where there is no time or
    no unit.
    """

    schema: Schema
    type_column: str | None = None
    only_type: str = "Event"
    order: tuple[str, ...] = ()
    tick_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """How a query is evaluated: CEA + tECS, with constant time per event and output-linear delay.

    `window` is the largest allowed distance from start to end, in positions if `window_in_positions`
    and in ticks of time otherwise. `gaps` says that dropped events count (contiguity): recognition then
    needs each event's place in the stream.
    """

    tree: QueryTree
    automaton: CEA
    classification: Classification
    shown: tuple[Shown, ...]
    window: int | None = None
    window_in_positions: bool = False
    gaps: bool = False
    state_cap: int = DEFAULT_STATE_CAP

    @property
    def consume(self) -> Consume:
        """What is forgotten after an answer."""
        return self.tree.consume

    @property
    def limit(self) -> int | None:
        """The most complex events for each end position."""
        return self.tree.limit

    @property
    def keyed(self) -> bool:
        """Whether events carry a partition key."""
        return bool(self.classification.keys)

    @property
    def needs_positions(self) -> bool:
        """Whether evaluation itself (not only the report) depends on positions in the whole stream."""
        return self.gaps or (self.window is not None and self.window_in_positions)

    def deterministic(self) -> LazyAutomaton:
        """A fresh deterministic automaton, worked out as far as events ask for it."""
        return LazyAutomaton(self.automaton, self.state_cap)


def plan_query(tree: QueryTree, layout: Layout, *, state_cap: int = DEFAULT_STATE_CAP) -> Plan:
    """The plan of a query that `check_query` has found no error in."""
    compiled = compile_pattern(tree.pattern, tree.streams, interval=tree.strategy is Strategy.STRICT)
    automaton = compiled.automaton
    keys = tuple(bracket.alternatives for bracket in tree.partition_by)
    shown = shown_labels(tree, layout.schema)
    contiguous = has_contiguity(automaton)
    in_positions = isinstance(tree.window, EventWindow)
    return Plan(
        tree=tree,
        automaton=automaton,
        classification=Classification(
            predicates=automaton.predicates,
            schema=layout.schema,
            type_column=layout.type_column,
            only_type=layout.only_type,
            keys=keys,
            keep_all=contiguous and bool(keys),
            order=layout.order,
            payload=_payload(shown, keys),
        ),
        shown=shown,
        window=_window(tree, layout),
        window_in_positions=in_positions,
        gaps=contiguous and not keys,
        state_cap=state_cap,
    )


def has_contiguity(automaton: CEA) -> bool:
    """Whether an event that no predicate wants can matter: some state does not simply pass over it."""
    waiting = {
        transition.source
        for transition in automaton.transitions
        if transition.source == transition.target
        and not transition.guard.present
        and transition.labels == NO_LABELS
    }
    return any(
        state not in waiting
        for state in range(automaton.states)
        if state not in automaton.initial and state not in automaton.final
    )


def _window(tree: QueryTree, layout: Layout) -> int | None:
    match tree.window:
        case None:
            return None
        case EventWindow(events=events):
            return events
        case DurationWindow(nanoseconds=nanoseconds):
            if layout.tick_ns is None:
                raise ValueError("a duration was planned without the length of a tick: check the query first")
            return nanoseconds // layout.tick_ns
        case window:
            return window.ticks


def _payload(shown: Sequence[Shown], keys: Sequence[Sequence[str]]) -> tuple[str, ...]:
    names = [name for label in shown for name in label.attributes]
    return tuple(dict.fromkeys([*names, *(name for bracket in keys for name in bracket)]))
