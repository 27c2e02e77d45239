"""From a checked query to a plan: what is classified, which automaton runs, what is reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from estero.automata.cea import CEA, FIRST, NO_LABELS, EventPredicate
from estero.automata.compile.compile_pattern import Compiled, compile_pattern
from estero.automata.compile.products import intervals_only
from estero.automata.correlated.equality_classes import partitioned
from estero.automata.correlated.push_down import push_down
from estero.automata.determinize import DEFAULT_STATE_CAP, LazyAutomaton
from estero.automata.registers import RegisterProgram, Value, drop_hidden
from estero.automata.residual import Residual, columns_read, predicates_called
from estero.automata.strategies import MaxAutomaton
from estero.language.check.set_predicates import RegisteredPredicate, registered_among
from estero.language.tree.query import Consume, DurationWindow, EventWindow, QueryTree, Strategy
from estero.language.tree.schema import Schema
from estero.language.tree.selection import Shown, shown_labels


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
    """How a query is evaluated: an automaton, what runs remember, and what is left for the sieve.

    `window` is the largest allowed distance from start to end, in positions if `window_in_positions`
    and in ticks of time otherwise. `gaps` says that dropped events count (contiguity): recognition then
    needs each event's place in the stream. `registers` are the comparisons that runs check as they go,
    `residuals` those that are checked of what is enumerated, with `predicates` by name; `reasons` says of
    each residual why. `not_joined` says why no automaton joins the parts of an ALL, where one might, and
    `not_chained` why none joins neighbours.
    """

    tree: QueryTree
    automaton: CEA
    classification: Classification
    shown: tuple[Shown, ...]
    window: int | None = None
    window_in_positions: bool = False
    gaps: bool = False
    state_cap: int = DEFAULT_STATE_CAP
    registers: RegisterProgram | None = None
    residuals: tuple[Residual, ...] = ()
    reasons: tuple[str, ...] = ()
    predicates: Mapping[str, RegisteredPredicate] = field(default_factory=dict)
    not_joined: str = ""
    not_chained: str = ""

    @property
    def consume(self) -> Consume:
        """What is forgotten after an answer."""
        return self.tree.consume

    @property
    def limit(self) -> int | None:
        """The most complex events for each end position."""
        return self.tree.limit

    @property
    def strategy(self) -> Strategy:
        """The selection strategy."""
        return self.tree.strategy

    @property
    def keyed(self) -> bool:
        """Whether events carry a partition key."""
        return bool(self.classification.keys)

    @property
    def shown_keys(self) -> tuple[tuple[str, ...], ...]:
        """The alternatives of each bracket that the query writes: answers show them.

        Where equalities of the pattern make the partitions, `classification.keys` has keys and this has none.
        """
        return tuple(bracket.alternatives for bracket in self.tree.partition_by)

    @property
    def from_first(self) -> bool:
        """Whether some transition asks for the first event of the stream (START)."""
        return FIRST in self.automaton.predicates

    @property
    def needs_positions(self) -> bool:
        """Whether evaluation itself (not only the report) depends on positions in the whole stream."""
        in_stream = self.from_first and not self.keyed
        in_window = self.window is not None and self.window_in_positions
        return self.gaps or in_stream or in_window or bool(self.predicates)

    @property
    def has_hidden(self) -> bool:
        """Whether runs carry labels that answers do not show: the same answer may then be found twice."""
        return any(transition.hidden for transition in self.automaton.transitions)

    @property
    def sieved(self) -> bool:
        """Whether complex events are checked, or compared with each other, after they are enumerated."""
        return bool(self.residuals) or self.has_hidden or self.strategy is Strategy.MAX

    @property
    def ordered(self) -> bool:
        """Whether recognition itself keeps the best of each state only (NEXT, LAST)."""
        return self.strategy in (Strategy.NEXT, Strategy.LAST) and not self.residuals

    def showing_nothing(self) -> Plan:
        """The same evaluation where only counts are asked for."""
        known = self.classification
        checked = columns_read(self.residuals, known.schema, known.type_column)
        payload = payload_of((), self.shown_keys, checked)
        return replace(self, shown=(), classification=replace(known, payload=payload))

    def deterministic(self) -> LazyAutomaton | MaxAutomaton:
        """A fresh deterministic automaton, worked out as far as events ask for it."""
        automaton = LazyAutomaton(self.automaton, self.state_cap, registers=self.registers)
        if self.strategy is not Strategy.MAX or self.residuals or self.registers or self.has_hidden:
            return automaton
        return MaxAutomaton(automaton, self.state_cap)


def plan_query(
    tree: QueryTree,
    layout: Layout,
    *,
    state_cap: int = DEFAULT_STATE_CAP,
    automaton: CEA | None = None,
    partitions: bool = True,
) -> Plan:
    """The plan of a query that `check_query` has found no error in.

    `automaton` takes the place of that of the pattern, where it was given directly. With `partitions`,
    equalities that make the pattern one partition become PARTITION BY.
    """
    evaluated = tree
    if automaton is None:
        evaluated, compiled = _compiled(tree, layout.schema, partitions=partitions)
    else:
        compiled = Compiled(intervals_only(automaton) if tree.strategy is Strategy.STRICT else automaton)
    automaton = compiled.automaton
    pushed = push_down(compiled.residuals, automaton, layout.schema)
    residuals = pushed.residuals
    automaton, registers = drop_hidden(automaton, pushed.program, residuals)
    keys = tuple(bracket.alternatives for bracket in evaluated.partition_by)
    shown_keys = tuple(bracket.alternatives for bracket in tree.partition_by)
    shown = shown_labels(tree, layout.schema)
    contiguous = has_contiguity(automaton)
    starts = FIRST in automaton.predicates
    in_positions = isinstance(tree.window, EventWindow)
    return Plan(
        tree=tree,
        automaton=automaton,
        classification=Classification(
            predicates=tuple(each for each in automaton.predicates if each != FIRST),
            schema=layout.schema,
            type_column=layout.type_column,
            only_type=layout.only_type,
            keys=keys,
            keep_all=((contiguous or starts) and bool(keys)) or ends_on_anything(automaton),
            order=layout.order,
            payload=payload_of(shown, shown_keys, columns_read(residuals, layout.schema, layout.type_column)),
            values=registers.values if registers is not None else (),
        ),
        shown=shown,
        window=window_in_ticks(tree, layout),
        window_in_positions=in_positions,
        gaps=contiguous and not keys,
        state_cap=state_cap,
        registers=registers,
        residuals=residuals,
        reasons=tuple(pushed.reasons[each] for each in residuals),
        predicates=registered_among(predicates_called(residuals)),
    )


def _compiled(tree: QueryTree, schema: Schema, *, partitions: bool) -> tuple[QueryTree, Compiled]:
    """The query as it is evaluated, and its automaton: with PARTITION BY where equalities say the same."""
    interval = tree.strategy is Strategy.STRICT
    compiled = compile_pattern(tree.pattern, tree.streams, interval=interval)
    if compiled.residuals and partitions:
        found = partitioned(tree, schema, compiled)
        if isinstance(found, QueryTree):
            alone = compile_pattern(found.pattern, found.streams)
            if len(alone.residuals) < len(compiled.residuals):
                return found, alone
    return tree, compiled


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


def ends_on_anything(automaton: CEA) -> bool:
    """Whether a run may begin, end or be marked by an event that no predicate wants."""
    return any(
        not transition.guard.present
        and (
            transition.labels
            or transition.source in automaton.initial
            or transition.target in automaton.final
        )
        for transition in automaton.transitions
    )


def window_in_ticks(tree: QueryTree, layout: Layout) -> int | None:
    """The length of the window in what it is measured in: positions, or ticks of the time column."""
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


def payload_of(
    shown: Sequence[Shown], keys: Sequence[Sequence[str]], checked: Sequence[str] = ()
) -> tuple[str, ...]:
    """The attributes that are kept of events: those of labels, of partition keys, and what is checked."""
    names = [name for label in shown for name in label.attributes]
    names += [name for bracket in keys for name in bracket]
    return tuple(dict.fromkeys([*names, *checked]))
