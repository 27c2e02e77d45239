"""Plans that join runs: by an automaton over the q-tree of the atoms of a conjunctive query, or of an ALL.

An ALL may contain sequences and repetitions, and be part of them (automata/joins/gathering.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from estero.automata.cea import CEA
from estero.automata.correlated.push_down import Decision
from estero.automata.joins.gathering import gathering
from estero.automata.joins.hierarchical import parts_of_atoms
from estero.automata.joins.parts import EventPart, NotJoinedError, Parts, parts_of
from estero.automata.joins.q_tree import Leaf, QTreeOfAtoms, tree_lines
from estero.automata.joins.shapes import Single, Together, orders
from estero.automata.pcea import PCEA
from estero.automata.residual import NO_HIDDEN, Residual, predicates_called
from estero.errors import LimitExceeded
from estero.language.check.atoms import named_atoms, unnamed_atoms
from estero.language.check.set_predicates import registered_among
from estero.language.tree.conjunctive import ConjunctiveTree
from estero.language.tree.pattern import All, As, Pattern, has_deadlines
from estero.language.tree.query import Consume, QueryTree, SelectItem, Strategy
from estero.language.tree.whole import speaks_of_whole
from estero.plan.chains import ChainPlan, chained
from estero.plan.draft import BESIDE, NOTHING_COMPARED, NOTHING_JOINED, OF_WHOLE, Draft
from estero.plan.key_values import Values
from estero.plan.keyed import KeyedPlan
from estero.plan.plan import Layout, Opened, Section, residual_text

_ONE_PARTITION: Final = "equalities define partitions, in which nothing else is compared"

MOST_APART: Final = 10
"""The largest number of single events without a join: an automaton has a state for each set of them."""

MOST_ORDERS: Final = 10_000
"""The largest number of states of an automaton for all orders of the parts, for it to be tried instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinPlan(KeyedPlan):
    """How a query is evaluated by a parallelised automaton.

    `drawn` is the q-tree by which its parts are joined first, or the pattern's own automaton if none are.
    `titles` are the parts in the q-tree, with their labels; `of_atoms` says that all of them are single
    events.
    """

    evaluated: ClassVar[tuple[str, ...]] = ("columns", "automaton")
    checked_by = "join keys"

    automaton: PCEA
    drawn: QTreeOfAtoms | CEA
    titles: tuple[str, ...] = ()
    of_atoms: bool = True

    @property
    def kernels(self) -> str:
        return "pcea-heap"

    @property
    def machine(self) -> PCEA:
        return self.automaton

    def opened(self, words: int, *, ordinals: bool, counting: bool, total: bool) -> Opened:
        from estero.plan.opening_by_keys import opened_in_heaps  # loads the kernels

        del ordinals, counting, total
        automaton = self.automaton
        transitions = [(transition, NO_HIDDEN, None) for transition in automaton.transitions]
        final = sorted(automaton.final)
        return opened_in_heaps(self, self.columns, len(automaton.states), transitions, final, words)

    def q_tree_lines(self) -> Iterator[str]:
        """The compact q-tree by which parts are joined first, one node per line; empty if there is none."""
        if isinstance(self.drawn, QTreeOfAtoms):
            yield from tree_lines(self.drawn.tree, self.titles)

    def lines(self) -> Iterator[str]:
        over = "residual filter over " if self.residuals else ""
        if self.of_atoms:
            yield (
                f"{over}PCEA + heap: the query is hierarchical, so one automaton joins all its atoms and "
                "finds each answer once"
            )
        else:
            yield (
                f"{over}PCEA + heap: parts in any order are matched independently, and the event that "
                "completes them joins them by equal values"
            )
        update = self.heap_guarantee("O(log {})")
        if self.residuals:
            yield f"guarantee: {update}; filters are evaluated during enumeration, so the delay is unbounded"
        else:
            yield f"guarantee: {update}, output-linear delay between complex events"

    def automaton_sections(self) -> Iterator[Section]:
        """The q-tree and the automaton built from it."""
        if isinstance(self.drawn, QTreeOfAtoms):
            yield "q-tree (an atom is joined by the variables above it)", self.q_tree_lines()
        yield "Automaton (PCEA)", self.automaton.lines()


def joined(draft: Draft) -> JoinPlan | str:
    """The plan that joins the parts of an ALL, or the reason why there is none or another plan is better.

    An ALL of single events is joined even if all of it is one partition: measured, heaps beat a state for
    each set of parts (benchmarks/correlated.py).
    """
    tree = draft.tree
    if not (draft.in_any_order or draft.by_name):
        return NOTHING_JOINED
    if has_deadlines(tree.pattern):
        return "NOT(…) FOR requires the absence of other events"
    if speaks_of_whole(draft.pattern):
        return OF_WHOLE
    if tree.strategy is not Strategy.ALL:
        return f"the strategy {tree.strategy.value} chooses among complex events"
    try:
        parts = parts_of(tree.pattern, tree.streams, draft.layout.schema)
        if not (draft.in_any_order or parts.classes):
            return NOTHING_JOINED
        left = _left(draft, parts)
        better = "" if draft.by_name else _why_not_joined(draft, parts, left)
        return better or _plan(draft, parts, left)
    except (NotJoinedError, LimitExceeded) as reason:
        return str(reason)


def _left(draft: Draft, parts: Parts) -> tuple[Residual, ...]:
    """The conditions to check on complex events; raises `NotJoinedError` if these cannot decide them."""
    if not parts.left:
        return ()
    if parts.overlap:
        raise NotJoinedError(f"{parts.left[0]!s} is not an equality, and one event may be two of its parts")
    candidates = [
        residual
        for residual in draft.compiled.residuals
        if residual.place is None and all(isinstance(key, str) for _, key in residual.bindings)
    ]
    for condition in parts.left:
        if sum(residual.condition == condition for residual in candidates) != parts.left.count(condition):
            raise NotJoinedError(f"{condition!s} is not an equality of two attributes")
    return tuple(residual for residual in candidates if residual.condition in parts.left)


def _why_not_joined(draft: Draft, parts: Parts, left: Sequence[Residual]) -> str:
    """The reason why another plan is better, as a phrase; empty if none is. `left` is left to a filter."""
    if _is_of_atoms(parts) and not left:
        apart = not any(_joins(number, parts) for number in range(len(parts.classes)))
        return NOTHING_JOINED if apart and len(parts.events) <= MOST_APART else ""
    if orders(parts.shape) > MOST_ORDERS:
        return ""
    try:
        if not draft.compiled.residuals:
            return NOTHING_COMPARED
        best = draft.best.pushed
        if best.program is None and len(best.residuals) <= len(left):
            return "equalities define partitions, in which no more is compared" if left else _ONE_PARTITION
        decide = Decision(draft.compiled.automaton, draft.layout.schema)
        for residual in left:
            if not isinstance(decide.drafts(residual), str):
                text = residual_text(residual, draft.layout.schema.time, draft.keys)
                return f"it would leave {text} to a filter; registers drop runs that violate it"
        chain = chained(draft)
    except LimitExceeded:
        return ""
    if isinstance(chain, ChainPlan) and len(chain.residuals) <= len(left):
        return "each event is compared only with the one before it"
    return ""


def _is_of_atoms(parts: Parts) -> bool:
    return isinstance(parts.shape, Together) and all(isinstance(part, Single) for part in parts.shape.parts)


def _joins(number: int, parts: Parts) -> bool:
    """Whether several events have a value of a class."""
    return sum(number in event.values for event in parts.events) > 1


def plan_conjunctive(tree: ConjunctiveTree, layout: Layout) -> JoinPlan:
    """The plan of a query without errors (`check_conjunctive`).

    Raises `LimitExceeded` where the automaton gets too big.
    """
    atoms = named_atoms(tree, layout.schema, layout.type_column)
    plan = _plan(Draft(as_pattern_query(tree), layout, str(tree)), parts_of_atoms(atoms))
    return replace(plan, by_place=unnamed_atoms(tree, layout.schema, layout.type_column))


def _plan(draft: Draft, parts: Parts, left: Sequence[Residual] = ()) -> JoinPlan:
    """The plan that gathers `parts`, with a filter for the conditions `left` and the clauses of the draft."""
    automaton, q_tree = gathering(parts)
    of_atoms = _is_of_atoms(parts) or len(parts.events) == 1
    drawn: QTreeOfAtoms | CEA | None = q_tree
    if of_atoms:
        drawn = QTreeOfAtoms(q_tree.tree if q_tree else Leaf(0), [event.text for event in parts.events])
    titles = map(_titled, parts.events) if of_atoms else q_tree.atoms if q_tree else ()
    pushed = [residual for residual in draft.compiled.residuals if residual not in left] if left else ()
    return replace(
        _joining(
            draft,
            automaton,
            drawn or draft.compiled.automaton,
            left,
            "it is not an equality of two attributes",
        ),
        titles=tuple(titles),
        of_atoms=of_atoms,
        pushed=tuple(pushed),
        shared=_shared_value(draft, parts),
    )


def with_joins(draft: Draft, automaton: PCEA) -> JoinPlan:
    """The plan of a query whose pattern is a parallelised automaton, which was given directly."""
    return _joining(draft, automaton, draft.compiled.automaton, draft.compiled.residuals, BESIDE)


def _joining(
    draft: Draft, automaton: PCEA, drawn: QTreeOfAtoms | CEA, left: Sequence[Residual], reason: str
) -> JoinPlan:
    """The plan of an automaton that joins, with a filter for the conditions in `left`, for one `reason`."""
    values = Values(draft.layout.schema)
    columns = values.columns(automaton.keys)
    return JoinPlan(
        tree=draft.tree,
        written=draft.text,
        automaton=automaton,
        drawn=drawn,
        of_atoms=False,
        columns=columns,
        classification=draft.classification(
            automaton.predicates, left, values=tuple(values.numbered), keys=draft.keys
        ),
        shown=draft.shown,
        measures=draft.measures,
        window=draft.window,
        interval=draft.interval,
        residuals=tuple(left),
        reasons=(reason,) * len(left),
        predicates=registered_among(predicates_called(left)),
    )


def as_pattern_query(tree: ConjunctiveTree) -> QueryTree:
    """A stand-in for a conjunctive query where the tree of a query is needed: its atoms in any order.

    It has the same types, labels and clauses, but does not represent the arguments.
    """
    parts: tuple[Pattern, ...] = tuple(
        As(atom.relation, label) for atom, label in zip(tree.atoms, tree.labels, strict=True)
    )
    return QueryTree(
        All(parts) if len(parts) > 1 else parts[0],
        tuple(map(SelectItem, tree.labels)),
        streams=tree.streams,
        window=tree.window,
        limit=tree.limit,
        text=tree.text,
        places=tree.places,
    )


def _shared_value(draft: Draft, parts: Parts) -> dict[str, str]:
    """For each type, an attribute for which all events of an answer have one value, which is not NULL.

    It is empty if there is none, as when events of one type have the value in different attributes. It is
    also empty if the query has keys of its own, and if this attribute does not decide which events are
    forgotten.
    """
    if draft.tree.partition_by or draft.tree.consume is not Consume.NONE or len(parts.events) < 2:
        return {}
    for number, part_class in enumerate(parts.classes):
        if not part_class.total or part_class.scope != parts.shape.number:
            continue
        places: dict[str, list[str]] = {}
        for event in parts.events:
            here = event.values.get(number, ())
            for name in event.types:
                places[name] = [other for other in places.get(name, here) if other in here]
        if all(places.values()):
            first = next(iter(places.values()))
            common = [other for other in first if all(other in of for of in places.values())]
            return {name: (common or of)[0] for name, of in places.items()}
    return {}


def _titled(event: EventPart) -> str:
    return event.text if event.text.startswith(f"{event.name}(") else f"{event.name}: {event.text}"
