"""The plan that finds how far starts of a sequence come: an automaton for all levels, or a query for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from estero.automata.cea import CEA, FIRST
from estero.automata.levels import LevelsAutomaton
from estero.errors import NOWHERE, QueryError
from estero.language.tree.conditions import residuals
from estero.language.tree.expressions import Aggregate, Attribute, Literal, substituted
from estero.language.tree.levels import levels_of, parts_of, prefix_query, unchosen
from estero.language.tree.pattern import (
    As,
    Disjunction,
    Filter,
    Keep,
    Optional,
    PartitionBy,
    Pattern,
    Sequence,
)
from estero.language.tree.query import Consume, QueryTree, Strategy
from estero.language.tree.selection import DECIDED_TIME, Measure, bound_names, label_types
from estero.language.tree.whole import with_whole
from estero.plan.automaton import AutomatonPlan, in_partitions, with_registers
from estero.plan.draft import Draft
from estero.plan.plan import Classification, Layout, Plan, Window
from estero.plan.rules import plan_of

MOST_LEVELS: Final = 62
"""Levels are bits of a word."""


@dataclass(frozen=True, slots=True)
class LevelsInOne:
    """All levels in one automaton: its labels `levels` say which level, counted from 0, has been reached."""

    automaton: CEA
    levels: Mapping[str, int]
    classification: Classification
    window: Window
    state_cap: int

    def deterministic(self) -> LevelsAutomaton:
        """A fresh deterministic automaton of starts, worked out as far as events ask for it."""
        return LevelsAutomaton(self.automaton, self.state_cap, levels=self.levels)


@dataclass(frozen=True, slots=True)
class LevelsPlan:
    """How the level that each start reaches is determined.

    `parts` are the texts of the patterns that lead to each level. `in_one` finds the levels; if it is None,
    for the reason in `reason`, the plans `by_level` do so one by one, from the complex events that they find.
    If `as_answered`, the last level counts what its own plan finds: what a strategy chooses, for instance. A
    start does not get beyond the first later answer of `consuming`, if that forgets the events it has read.
    """

    tree: QueryTree
    parts: tuple[str, ...]
    in_one: LevelsInOne | None
    reason: str
    by_level: tuple[Plan, ...]
    as_answered: bool
    consuming: Plan | None

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """The alternatives of each key that the query writes."""
        return tuple(bracket.alternatives for bracket in self.tree.partition_by)


def levels_plan(tree: QueryTree, layout: Layout, *, chosen: bool = False) -> LevelsPlan:
    """The plan of the levels that starts reach; raises `QueryError` for a query that has no levels.

    The last level is that of all complex events, or with `chosen` of those that strategy and LIMIT choose.
    """
    tree = with_whole(tree, layout.schema.time)
    levels = _levels(tree)
    consume = tree.consume
    consuming = None if consume is Consume.NONE else _by_keys_of_partition(tree, layout)
    as_answered = chosen and tree != unchosen(tree)
    in_one = _in_one(tree, levels, layout)
    queries = [*(prefix_query(tree, parts) for parts in levels[:-1]), unchosen(tree)]
    needed = queries if isinstance(in_one, str) else queries[-1:]
    by_level = [_first_ends(query, layout, consume) for query in needed]
    if as_answered:
        by_level[-1] = plan_of(tree, layout)
    return LevelsPlan(
        tree=tree,
        parts=parts_of(tree.pattern),
        in_one=None if isinstance(in_one, str) else in_one,
        reason=in_one if isinstance(in_one, str) else "",
        by_level=tuple(plan.showing_nothing() for plan in by_level),
        as_answered=as_answered,
        consuming=None if consuming is None else consuming.showing_nothing(),
    )


def _by_keys_of_partition(tree: QueryTree, layout: Layout) -> Plan:
    """The plan of a query with only the partition keys that the query writes."""
    plan = plan_of(tree, layout)
    if plan.classification.keys == plan.shown_keys:
        return plan
    return plan_of(tree, layout, only="CEA")


def _first_ends(tree: QueryTree, layout: Layout, consume: Consume) -> Plan:
    """The plan that finds the first end of each start; it has the written keys if they cut it."""
    if consume is Consume.NONE:
        return plan_of(tree, layout)
    draft = Draft(replace(tree, strategy=Strategy.SHORTEST), layout)
    return replace(with_registers(draft), cut_by=consume)


@dataclass(frozen=True, slots=True)
class PartialsPlan:
    """How partial matches are recognized: the levels that starts reach, and a plan for each but the last.

    For each start, a plan keeps the complex event of its level that NEXT would choose, or all those that mark
    the same events. `whole` is the plan of the query. If it does not give all complex events, or not as they
    end, `completing` finds on a stream which starts are completed, whatever is chosen; otherwise it is None.
    `shared` names for each type an attribute whose value all events of a complex event share, at every level
    that has more than one event; if it is empty, `why_unshared` gives the reason, provided that it was
    requested.
    """

    levels: LevelsPlan
    by_level: tuple[AutomatonPlan, ...]
    window: Window
    whole: Plan
    completing: AutomatonPlan | None = None
    shared: Mapping[str, str] = field(default_factory=dict)
    why_unshared: str = ""

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan of the query, then those of the levels, then `completing` if there is one."""
        return self.whole, *self.by_level, *([] if self.completing is None else [self.completing])


def partials_plan(
    tree: QueryTree, layout: Layout, *, as_written: bool = False, chosen: bool = False
) -> PartialsPlan:
    """The plan of partial matches; raises `QueryError` for a query that has none.

    With `as_written` all plans have only the partition keys that the query writes. With `chosen` starts count
    as completed only by complex events that strategy and LIMIT choose; this does not hold on a stream.
    """
    tree = with_whole(tree, layout.schema.time)
    levels = levels_plan(tree, layout, chosen=chosen)
    as_written = as_written or tree.consume is Consume.PARTITION
    whole = _by_keys_of_partition(tree, layout) if as_written else plan_of(tree, layout)
    by_level = []
    for parts in _levels(tree)[:-1]:
        plan = _one_for_each_start(
            prefix_query(tree, parts), layout, as_written=as_written, cut_by=tree.consume
        )
        payload = dict.fromkeys((*plan.classification.payload, *whole.classification.payload))
        classification = replace(plan.classification, payload=tuple(payload))
        measures = tuple(_of_what_came(whole, plan))
        by_level.append(replace(plan, shown=whole.shown, measures=measures, classification=classification))
    if whole.window is None:
        raise TypeError("a plan of a query with a window has one")
    completing = None
    if tree != unchosen(tree):
        completing = _one_for_each_start(
            replace(unchosen(tree), select=()), layout, as_written=as_written, cut_by=tree.consume
        ).showing_nothing()
    return PartialsPlan(levels, tuple(by_level), whole.window, whole, completing)


def _one_for_each_start(
    tree: QueryTree, layout: Layout, *, as_written: bool, cut_by: Consume
) -> AutomatonPlan:
    """The plan that keeps one complex event per start, or all of them if each is a single event."""
    for strategy in (Strategy.ALL, Strategy.LONGEST):
        draft = Draft(replace(tree, strategy=strategy), layout)
        partitioned = "the keys are those written" if as_written else in_partitions(draft)
        plan = with_registers(draft) if isinstance(partitioned, str) else partitioned
        if of_single_events(plan):
            break
    return replace(plan, best_per_start=True, cut_by=cut_by)


def _of_what_came(whole: Plan, level: Plan) -> Iterator[Measure]:
    """The values of SELECT that a partial match has: those that only use labels of the completed steps."""
    came = label_types(level.tree.pattern)
    for measure in whole.measures:
        outside = substituted(measure.expression, lambda node: _NONE if isinstance(node, Aggregate) else None)
        decided = Attribute(DECIDED_TIME) in outside.walk()
        if not decided and all(asked.variable in came for asked in measure.aggregates):
            yield measure


_NONE = Literal(None)
"""The replacement of an aggregate."""


def of_single_events(plan: AutomatonPlan) -> bool:
    """Whether every complex event of a plan is a single event, without further conditions on it."""
    automaton = plan.automaton
    alone = all(transition.target in automaton.final for transition in automaton.transitions)
    return alone and not (plan.deadlines or plan.residuals or FIRST in automaton.predicates)


def _levels(tree: QueryTree) -> tuple[int, ...]:
    if tree.window is None:
        raise QueryError(
            "how far a pattern comes depends on its window, and this query has none",
            text=tree.text,
            expected="WITHIN",
            hint="add a window after the pattern: WITHIN 1 HOUR",
        )
    levels = levels_of(tree.pattern)
    if not levels:
        raise QueryError(
            "only a sequence can be matched in part",
            text=tree.text,
            span=tree.places.get("WHERE", NOWHERE),
            expected="a ; b, with two parts or more that are not optional",
            hint="parts that are joined otherwise can be parts of a sequence: a ; (b OR c) ; d",
        )
    return levels


def _in_one(tree: QueryTree, levels: tuple[int, ...], layout: Layout) -> LevelsInOne | str:
    """The automaton of all levels, or a phrase on why there is none."""
    if len(levels) > MOST_LEVELS:
        return f"it has more than {MOST_LEVELS} levels"
    if _compares_absences(tree.pattern):
        return "it compares what must not happen before or after"
    taken = set(bound_names(tree.pattern))
    labels = [_free(f"level {number}", taken) for number in range(1, len(levels) + 1)]
    patterns = (
        _labelled(prefix_query(tree, parts).pattern, label)
        for parts, label in zip((*levels[:-1], levels[-1]), labels, strict=True)
    )
    together = replace(prefix_query(tree, levels[-1]), pattern=Disjunction(tuple(patterns)), select=())
    draft = Draft(together, layout)
    partitioned = in_partitions(draft)
    if tree.consume is Consume.PARTITION:
        partitioned = "what is consumed is of the partitions that are written"
    plan = with_registers(draft) if isinstance(partitioned, str) else partitioned
    why = _why_not(plan, labels)
    if why:
        return why
    if plan.window is None:
        raise TypeError("a plan of a query with a window has one")
    classification = replace(plan.classification, keep_all=plan.classification.keep_all or plan.gaps)
    numbers = {label: number for number, label in enumerate(labels)}
    return LevelsInOne(plan.automaton, numbers, classification, plan.window, plan.state_cap)


def _compares_absences(pattern: Pattern) -> bool:
    """Whether an absence before a start or after an end is compared with other events."""
    sequences = (node for node in pattern.walk() if isinstance(node, Sequence))
    absences = (absence for sequence in sequences for absence in (*sequence.before, *sequence.after))
    return any(True for absence in absences for _ in residuals(absence.event))


def _why_not(plan: AutomatonPlan, labels: list[str]) -> str:
    """The reason why the automaton of a plan does not distinguish levels; empty if it does."""
    if plan.residuals or plan.registers is not None or plan.ages is not None:
        return "its events are compared with each other"
    if plan.deadlines:
        return "it requires an absence before or after"
    if FIRST in plan.automaton.predicates:
        return "it asks for the first event of the stream"
    ending = (
        transition for transition in plan.automaton.transitions if transition.target in plan.automaton.final
    )
    if any(transition.labels.isdisjoint(labels) for transition in ending):
        return "a part of it ends with an event that has no label"
    return ""


def _labelled(pattern: Pattern, label: str) -> Pattern:
    """The same pattern with one more label on all events."""
    match pattern:
        case Filter() | PartitionBy():
            return replace(pattern, pattern=_labelled(pattern.pattern, label))
        case Keep(pattern=inner, labels=labels):
            return replace(pattern, pattern=_labelled(inner, label), labels=(*labels, label))
        case Sequence(parts=parts):
            return replace(pattern, parts=tuple(_labelled(part, label) for part in parts))
        case Optional(pattern=inner):
            return replace(pattern, pattern=As(inner, label))
        case _:
            return As(pattern, label)


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
