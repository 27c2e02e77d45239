"""Chain complex event automata (chain-CEA), validated and printable.

They are defined in section 4 of "Towards streaming evaluation of queries with correlation in complex event
processing" (docs/papers.md). A run is the sequence of the events that it marks; a transition compares the
current event with the last marked one, by equality of keys and by order; all other events are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from estero.automata.cea import EventPredicate, LabelSet
from estero.automata.pcea import (
    LEFT,
    PCEA,
    RIGHT,
    JoinKey,
    PceaTransition,
    Source,
    check_marks,
    check_states,
    entering_types,
    states_line,
)
from estero.automata.residual import NO_HIDDEN, HiddenSet, Residual
from estero.language.tree.expressions import (
    Call,
    Comparison,
    ComparisonOperator,
    IsNull,
    Literal,
    Node,
    Not,
    with_variable,
)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """A comparison ``left operator right`` of the last marked event with the current one; false for NULL.

    With `or_null`, which only ``!=`` can have, it is true then: it is the opposite of ``=``.
    """

    operator: ComparisonOperator
    left: Node
    right: Node
    or_null: bool = False

    def said(self, before: str | None = None) -> Node:
        """The comparison as a condition, in which the event marked before is named `before`.

        A condition on that event alone stands by itself: ``before.k IS NULL``.
        """
        left = with_variable(self.left, before)
        match self.operator, self.right:
            case "=", Literal(True):
                return left
            case "=", Literal(False):
                return Not(left)
            case _:
                compared = Comparison(self.operator, left, self.right)
                return Call("coalesce", (compared, Literal(True))) if self.or_null else compared

    def __str__(self) -> str:
        return str(self.said())


def asked_before(condition: Node) -> Neighbours:
    """A condition on only the event marked before, as a comparison of its truth; unknown counts as false."""
    truth = True
    while isinstance(condition, Not) and _is_decided(condition.part):
        truth, condition = not truth, condition.part
    decided = condition if _is_decided(condition) else Call("coalesce", (condition, Literal(False)))
    return Neighbours("=", decided, Literal(truth))


def _is_decided(condition: Node) -> bool:
    """Whether the form of a condition shows that it is never NULL."""
    match condition:
        case IsNull() | Call("coalesce", (_, Literal(bool()))):
            return True
        case Not(part):
            return _is_decided(part)
        case _:
            return False


ORDERS: Final[tuple[ComparisonOperator, ...]] = ("<", "<=", ">", ">=")


def is_range(low: Neighbours, high: Neighbours) -> bool:
    """Whether the two comparisons are the lower and the upper end of one range of a value."""
    return low.operator in (">", ">=") and high.operator in ("<", "<=") and low.left == high.left


@dataclass(frozen=True, slots=True)
class ChainTransition:
    """A transition to `target` on an event with bit `predicate`, which it marks with `labels`.

    It leaves `source`; without a source (None) a run begins. All `comparisons` are true of the event marked
    before and the current event. An index serves only one of those by ``<``, ``<=``, ``>`` or ``>=``, or two
    that are the lower and then the upper end of a range.
    Answers do not show the labels in `hidden`.
    """

    source: int | None
    predicate: int
    comparisons: tuple[Neighbours, ...]
    labels: LabelSet
    target: int
    hidden: HiddenSet = NO_HIDDEN

    def by(self, *operators: ComparisonOperator) -> tuple[Neighbours, ...]:
        """The comparisons by these operators."""
        return tuple(comparison for comparison in self.comparisons if comparison.operator in operators)

    @property
    def left(self) -> tuple[Node, ...]:
        """The key of the previous event: its expressions that are compared by ``=``."""
        return tuple(comparison.left for comparison in self.by("="))

    @property
    def right(self) -> tuple[Node, ...]:
        """The key of the current event."""
        return tuple(comparison.right for comparison in self.by("="))

    @property
    def different(self) -> tuple[Neighbours, ...]:
        """The comparisons by ``!=``."""
        return self.by("!=")

    @property
    def order(self) -> Neighbours | None:
        """The comparison by order; for a range its lower end, by ``>`` or ``>=``."""
        return next(iter(self.by(*ORDERS)), None)

    @property
    def upper(self) -> Neighbours | None:
        """The upper end of a range, with the same left side as the lower end, by ``<`` or ``<=``."""
        return next(iter(self.by(*ORDERS)[1:]), None)


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain automaton with states ``0 … len(states) - 1``, which are named by `states`.

    Bit k of an event is whether `predicates[k]` is true of it. A run accepts by entering a state of `final`.
    For each set of marks there is one accepting run at most, unless `repeats` says why there are several.
    With `anchored` runs begin at the first event of their stream only. The complex events that it finds must
    still satisfy `residuals`, each for the reason with the same number in `reasons`.
    """

    states: tuple[str, ...]
    final: frozenset[int]
    transitions: tuple[ChainTransition, ...]
    predicates: tuple[EventPredicate, ...]
    residuals: tuple[Residual, ...] = ()
    reasons: tuple[str, ...] = ()
    repeats: str = ""
    anchored: bool = False

    def __post_init__(self) -> None:
        check_states(self.states, {"final": self.final})
        if len(self.residuals) != len(self.reasons):
            raise ValueError(f"there are {len(self.residuals)} residuals and {len(self.reasons)} reasons")
        for number, transition in enumerate(self.transitions):
            where = f"in transition {number}"
            left = [] if transition.source is None else [transition.source]
            check_states(self.states, {where: [transition.target, *left]})
            check_marks(transition.predicate, self.predicates, transition.labels, where)
            if transition.source is None and transition.comparisons:
                raise ValueError(f"the first event is compared with one before it, {where}")

    @property
    def ordered(self) -> bool:
        """Whether some neighbours are compared by ``<``, ``<=``, ``>`` or ``>=``."""
        return any(transition.order is not None for transition in self.transitions)

    @property
    def compares(self) -> bool:
        """Whether neighbours are compared at all."""
        return any(transition.comparisons for transition in self.transitions)

    @property
    def most_events(self) -> int | None:
        """The largest number of events that a run marks; None if it is unbounded."""
        longest = dict.fromkeys(range(len(self.states)), 0)
        for _ in range(len(self.states) + 1):
            before = dict(longest)
            for transition in self.transitions:
                so_far = 0 if transition.source is None else longest[transition.source]
                if transition.source is None or so_far:
                    longest[transition.target] = max(longest[transition.target], so_far + 1)
            if longest == before:
                return max(longest.values(), default=0)
        return None

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The states and the transitions, one on each line."""
        yield states_line(self.states, self.final)
        if self.anchored:
            yield "a run begins at the first event of the stream only"
        for transition in self.transitions:
            source = "begin" if transition.source is None else self.states[transition.source]
            compared = " and ".join(str(comparison.said("before")) for comparison in transition.comparisons)
            suffix = f", where {compared}" if compared else ""
            marks = ", ".join(sorted(transition.labels))
            target, predicate = self.states[transition.target], self.predicates[transition.predicate]
            yield f"{source} → {target}  on {predicate}: mark {marks}{suffix}"

    def entering_types(self) -> list[tuple[str, ...]]:
        """The types of events that enter each state."""
        steps = ((transition.predicate, transition.target) for transition in self.transitions)
        return entering_types(len(self.states), steps, self.predicates)


class _Keys:
    """Numbers the keys that the transitions of a chain compare."""

    def __init__(self, chain: Chain) -> None:
        self._entered = chain.entering_types()
        self._predicates = chain.predicates
        self._numbers: dict[JoinKey, int] = {}

    @property
    def numbered(self) -> tuple[JoinKey, ...]:
        """The keys in the order of their numbers."""
        return tuple(self._numbers)

    def compared(self, source: int, bit: int, pairs: Sequence[Neighbours]) -> tuple[int, int]:
        """The numbers of the keys of the event by which `source` was entered, and of that with `bit`."""
        null = any(pair.or_null for pair in pairs)
        lefts, rights = tuple(pair.left for pair in pairs), tuple(pair.right for pair in pairs)
        before = JoinKey(dict.fromkeys(self._entered[source], lefts), LEFT if null else None)
        here = JoinKey(dict.fromkeys(self._predicates[bit].types, rights), RIGHT if null else None)
        left = self._numbers.setdefault(before, len(self._numbers))
        return left, self._numbers.setdefault(here, len(self._numbers))


def as_pcea(chain: Chain) -> PCEA:
    """The parallelized automaton with the same states, bits and transitions, each with at most one source.

    Transition k is that of the chain without its comparisons by operators other than ``=``.
    """
    keys = _Keys(chain)
    transitions = []
    for transition in chain.transitions:
        sources: tuple[Source, ...] = ()
        if transition.source is not None:
            pair = keys.compared(transition.source, transition.predicate, transition.by("="))
            sources = (Source(transition.source, *pair),)
        transitions.append(
            PceaTransition(sources, transition.predicate, transition.labels, transition.target)
        )
    return PCEA(chain.states, chain.final, tuple(transitions), chain.predicates, keys.numbered)


@dataclass(frozen=True, slots=True)
class ColumnTransition:
    """A transition of a chain (see `ChainTransition`); it compares keys, numbers in `ChainColumns.keys`.

    Key `left` of the event marked before is key `right` of the event at hand; the two of each pair in
    `unequal` differ. An event without one of them passes nothing. Where a run begins nothing is compared.
    """

    source: int | None
    predicate: int
    left: int
    right: int
    unequal: tuple[tuple[int, int], ...]
    labels: LabelSet
    hidden: HiddenSet
    target: int


@dataclass(frozen=True, slots=True)
class ChainColumns:
    """The transitions of a chain, in its order, and the keys that they compare."""

    transitions: tuple[ColumnTransition, ...]
    keys: tuple[JoinKey, ...]


def chain_columns(chain: Chain) -> ChainColumns:
    """Makes one key of the equalities of two neighbours, and one of each of their disequalities.

    Raises ValueError if neighbours are compared by order, which keys cannot express.
    """
    if chain.ordered:
        raise ValueError("some neighbours are compared by an order")
    keys = _Keys(chain)
    transitions = []
    for transition in chain.transitions:
        pair, unequal = (0, 0), []
        if transition.source is not None:
            pair = keys.compared(transition.source, transition.predicate, transition.by("="))
            unequal = [
                keys.compared(transition.source, transition.predicate, [one]) for one in transition.different
            ]
        transitions.append(
            ColumnTransition(
                transition.source,
                transition.predicate,
                *pair,
                tuple(unequal),
                transition.labels,
                transition.hidden,
                transition.target,
            )
        )
    # The engine needs at least one key, also if runs only begin.
    nothing = (JoinKey(dict.fromkeys(predicate.types, ())) for predicate in chain.predicates[:1])
    return ChainColumns(tuple(transitions), keys.numbered or tuple(nothing))
