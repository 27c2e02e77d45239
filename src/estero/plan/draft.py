"""The input of the rules of planning: a checked query, compiled once, and its comparisons, sorted out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from estero.automata.cea import EventPredicate
from estero.automata.compile.compile_pattern import Compiled, compile_pattern
from estero.automata.compile.products import intervals_only
from estero.automata.correlated.equality_classes import partitioned
from estero.automata.correlated.filter_cases import positive
from estero.automata.correlated.push_down import PushedDown, push_down
from estero.automata.determinize import DEFAULT_STATE_CAP
from estero.automata.registers import Value
from estero.automata.residual import Apartness, Residual, all_attributes, columns_read
from estero.language.tree import pattern as p
from estero.language.tree.distances import AttributeWindow, DurationWindow, Measured
from estero.language.tree.pattern import Pattern
from estero.language.tree.query import QueryTree, Strategy
from estero.language.tree.selection import Measure, Shown, measures_of, shown_labels
from estero.language.tree.whole import speaks_of_whole
from estero.plan.plan import Classification, Layout, Window, payload_of
from estero.system.cached_property import cached_property

OF_WHOLE = "a filter concerns the whole complex event"
BESIDE = "it is given separately from the automaton"
NOTHING_COMPARED = "no events are compared with each other"
NOTHING_JOINED = "no equality joins parts of an ALL"


class Compilation(NamedTuple):
    """A query as it is evaluated, its automaton, and the comparisons that registers make between events."""

    tree: QueryTree
    compiled: Compiled
    pushed: PushedDown

    @property
    def compares(self) -> bool:
        """Whether any comparison is left for registers or a filter."""
        return bool(self.pushed.residuals) or self.pushed.program is not None


@dataclass(frozen=True)
class Draft:
    """A query without errors (`check_query`), and the layout of its events.

    `text` is what it prints as, if that is not its tree. `given` is an automaton that replaces that of the
    pattern, with the conditions still to be checked. `by_name` says that one plan was requested by name: a
    rule then serves the query if it can, even if another serves it better. Properties raise `LimitExceeded`
    if an automaton gets too big.
    """

    tree: QueryTree
    layout: Layout
    text: object = ""
    given: Compiled | None = None
    state_cap: int = DEFAULT_STATE_CAP
    by_name: bool = False

    def __str__(self) -> str:
        return str(self.text or self.tree)

    @property
    def keys(self) -> list[tuple[str, ...]]:
        """The alternatives of each bracket of PARTITION BY."""
        return [bracket.alternatives for bracket in self.tree.partition_by]

    @property
    def in_any_order(self) -> bool:
        """Whether there is an ALL in the pattern."""
        return any(isinstance(node, p.All) for node in self.tree.pattern.walk())

    @cached_property
    def why_no_chain(self) -> str | None:
        """The reason why no chain automaton can serve the query; None if it has to be tried."""
        if p.has_deadlines(self.tree.pattern):
            return "NOT(…) FOR requires the absence of other events"
        if speaks_of_whole(self.pattern):
            return OF_WHOLE
        if self.tree.strategy is not Strategy.ALL:
            return f"the strategy {self.tree.strategy.value} compares whole complex events"
        return None if self.compiled.residuals else NOTHING_COMPARED

    @cached_property
    def compiled(self) -> Compiled:
        """The automaton of the whole pattern, and the comparisons of several events."""
        interval = self.tree.strategy is Strategy.STRICT
        if self.given is not None:
            automaton = intervals_only(self.given.automaton) if interval else self.given.automaton
            return Compiled(automaton, tuple(map(self._in_ticks, self.given.residuals)))
        return compile_pattern(self.pattern, self.tree.streams, interval=interval)

    def _in_ticks(self, residual: Residual) -> Residual:
        """The same query with distances in ticks."""
        condition, tick = residual.condition, self.layout.tick_ns
        if not isinstance(condition, Apartness):
            return residual
        distances = tuple(Measured(distance, distance.bounds(tick)) for distance in condition.distances)
        return replace(residual, condition=Apartness(distances))

    @cached_property
    def pattern(self) -> Pattern:
        """The pattern with negated comparisons turned into comparisons, and with distances in ticks."""
        return positive(self.pattern_in_ticks)

    @cached_property
    def pattern_in_ticks(self) -> Pattern:
        """The pattern with distances in ticks."""
        pattern = self.tree.pattern
        if not any(any(p.distances_of(node)) for node in pattern.walk()):
            return pattern
        tick = self.layout.tick_ns
        return p.with_distances(pattern, lambda distance: Measured(distance, distance.bounds(tick)))

    @cached_property
    def whole(self) -> Compilation:
        """The query as it is written."""
        return self._compilation(self.tree, self.compiled)

    @cached_property
    def in_partitions(self) -> Compilation | str:
        """The query without the equalities that its partitions imply, or a phrase on why there is none.

        The partitions are those of PARTITION BY and of all equalities that give all events one key.
        """
        if not self.compiled.residuals:
            return NOTHING_COMPARED
        if speaks_of_whole(self.pattern):
            return OF_WHOLE
        tree = self._partitioned
        if isinstance(tree, str):
            return tree
        alone = compile_pattern(tree.pattern, tree.streams)
        if len(alone.residuals) >= len(self.compiled.residuals):
            return "partitions would leave as many comparisons"
        return self._compilation(tree, alone)

    @cached_property
    def shared_keys(self) -> tuple[str, ...]:
        """The alternatives of the first key that equalities give to all events; empty if there is none."""
        tree = self._partitioned
        return () if isinstance(tree, str) else tree.partition_by[0].alternatives

    @property
    def best(self) -> Compilation:
        """The query in partitions if its equalities make some, else as it is written."""
        return self.whole if isinstance(self.in_partitions, str) else self.in_partitions

    @cached_property
    def shown(self) -> tuple[Shown, ...]:
        """The labels that answers show."""
        return shown_labels(self.tree, self.layout.schema)

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """The values that answers show."""
        return measures_of(self.tree)

    @cached_property
    def window(self) -> Window | None:
        """How far back a complex event reaches."""
        return Window.of(self.tree, self.layout)

    @cached_property
    def interval(self) -> int | None:
        """The length of the interval of LIMIT … PER, in ticks; it excludes its end."""
        match self.tree.per:
            case AttributeWindow(ticks=ticks):
                return ticks
            case DurationWindow(nanoseconds=nanoseconds) if self.layout.tick_ns is not None:
                return -(-nanoseconds // self.layout.tick_ns)
            case None:
                return None
            case _:
                raise ValueError("an interval needs a time: check the query first")

    @cached_property
    def wait(self) -> int | None:
        """The number of ticks after which ended complex events are decided; None if that is at once."""
        after = p.ending(self.pattern_in_ticks)
        return max((absence.apart.bounds(None).low - 1 for absence in after), default=None)

    def classification(
        self,
        predicates: Sequence[EventPredicate],
        residuals: Sequence[Residual] = (),
        values: Sequence[Value] = (),
        *,
        keys: Sequence[Sequence[str]] = (),
        keep_all: bool = False,
    ) -> Classification:
        """The values computed for each event: these predicates, and what `residuals` and `values` read."""
        layout = self.layout
        every = all_attributes(layout.schema) if self.measures else ()
        measured = [name for measure in self.measures for name in measure.attributes if name in every]
        checked = (*measured, *columns_read(residuals, layout.schema, layout.type_column))
        return Classification(
            predicates=tuple(predicates),
            schema=layout.schema,
            type_column=layout.type_column,
            only_type=layout.only_type,
            keys=tuple(map(tuple, keys)),
            keep_all=keep_all,
            order=layout.order,
            payload=payload_of(self.shown, self.keys, checked),
            values=tuple(values),
        )

    @cached_property
    def _partitioned(self) -> QueryTree | str:
        return partitioned(replace(self.tree, pattern=self.pattern), self.layout.schema, self.compiled)

    def _compilation(self, tree: QueryTree, compiled: Compiled) -> Compilation:
        return Compilation(
            tree, compiled, push_down(compiled.residuals, compiled.automaton, self.layout.schema)
        )
