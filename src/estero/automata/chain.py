"""Chain complex event automata: frozen, validated, printable.

They are those of "Towards streaming evaluation of queries with correlation", section 4. A run is the sequence
of the events it marks. A transition compares the event at hand with the one that the run marked before, by
equal keys and by order; all other events are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from estero.automata.cea import EventPredicate, LabelSet
from estero.automata.pcea import PCEA, JoinKey, PceaTransition, Source
from estero.automata.residual import NO_HIDDEN, HiddenSet, Residual
from estero.language.tree.expressions import ComparisonOperator, Node


@dataclass(frozen=True, slots=True)
class Neighbours:
    """``left operator right``: of the event marked before and of that at hand; false where one is NULL."""

    operator: ComparisonOperator
    left: Node
    right: Node


def is_range(low: Neighbours, high: Neighbours) -> bool:
    """Whether the two are both ends of one range, in which a value of the event before has to be."""
    return low.operator in (">", ">=") and high.operator in ("<", "<=") and low.left == high.left


@dataclass(frozen=True, slots=True)
class ChainTransition:
    """From `source` (None: a run begins) on an event with bit `predicate`, marked with `labels`, to `target`.

    The expressions `left` of the event marked before have to equal the expressions `right` of the event at
    hand, in pairs. All of `different`, which are of ``!=``, have to be true of the two, and `order`, which is
    of any other operator. With `upper` the two are a range: `order` is its lower end, by ``>`` or ``>=``, and
    `upper` its upper one, of the same left side by ``<`` or ``<=``. `hidden` are labels that answers do not
    show.
    """

    source: int | None
    predicate: int
    left: tuple[Node, ...]
    right: tuple[Node, ...]
    order: Neighbours | None
    labels: LabelSet
    target: int
    hidden: HiddenSet = NO_HIDDEN
    upper: Neighbours | None = None
    different: tuple[Neighbours, ...] = ()

    @property
    def comparisons(self) -> tuple[Neighbours, ...]:
        """All that is compared, one by one, equalities first."""
        pairs = zip(self.left, self.right, strict=True)
        found = [*(Neighbours("=", left, right) for left, right in pairs), *self.different]
        found += [each for each in (self.order, self.upper) if each is not None]
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain automaton with states ``0 … len(states) - 1``, which are named by `states`.

    Bit k of an event is whether `predicates[k]` is true of it. A run accepts by entering a state of `final`.
    For each set of marks there is one accepting run at most. `residuals` are still to be checked of the
    complex events it finds, and `reasons` says of each of them why.
    """

    states: tuple[str, ...]
    final: frozenset[int]
    transitions: tuple[ChainTransition, ...]
    predicates: tuple[EventPredicate, ...]
    residuals: tuple[Residual, ...] = ()
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for state in self.final:
            self._check_state(state, "final")
        if len(self.residuals) != len(self.reasons):
            raise ValueError("each residual has a reason")
        for number, each in enumerate(self.transitions):
            where = f"in transition {number}"
            self._check_state(each.target, where)
            if each.source is not None:
                self._check_state(each.source, where)
            if len(each.left) != len(each.right):
                raise ValueError(f"the two keys differ in length, {where}")
            if each.source is None and each.comparisons:
                raise ValueError(f"the first event is compared with one before it, {where}")
            if each.upper is not None and (each.order is None or not is_range(each.order, each.upper)):
                raise ValueError(f"what has an upper end has no lower one, {where}")
            if each.order is not None and each.order.operator in ("=", "!="):
                raise ValueError(f"{each.order.operator} is no order, {where}")
            if any(one.operator != "!=" for one in each.different):
                raise ValueError(f"only != may be among what has to be different, {where}")
            if not 0 <= each.predicate < len(self.predicates):
                raise ValueError(f"bit {each.predicate} has no predicate, {where}")
            if not each.labels:
                raise ValueError(f"an event is read and not marked, {where}")

    def _check_state(self, state: int, where: str) -> None:
        if not 0 <= state < len(self.states):
            raise ValueError(f"state {state} is not one of 0 to {len(self.states) - 1}, {where}")

    @property
    def ordered(self) -> bool:
        """Whether some neighbours are compared by ``<``, ``<=``, ``>`` or ``>=``."""
        return any(each.order is not None for each in self.transitions)

    @property
    def compares(self) -> bool:
        """Whether neighbours are compared at all."""
        return any(each.comparisons for each in self.transitions)

    @property
    def most_events(self) -> int | None:
        """How many events a run has at most; None where any number."""
        longest = dict.fromkeys(range(len(self.states)), 0)
        for _ in range(len(self.states) + 1):
            before = dict(longest)
            for each in self.transitions:
                so_far = 0 if each.source is None else longest[each.source]
                if each.source is None or so_far:
                    longest[each.target] = max(longest[each.target], so_far + 1)
            if longest == before:
                return max(longest.values(), default=0)
        return None

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The states and transitions, a line each."""
        final = ", ".join(self.states[state] for state in sorted(self.final))
        count = len(self.states)
        yield f"{count} state{'s' * (count != 1)}: {', '.join(self.states)}; a run accepts in {final}"
        for each in self.transitions:
            source = "begin" if each.source is None else self.states[each.source]
            compared = [f"{one.left!s} {one.operator} {one.right!s}" for one in each.comparisons]
            suffix = f", where before it {' and '.join(compared)}" if compared else ""
            marks = ", ".join(sorted(each.labels))
            target, predicate = self.states[each.target], self.predicates[each.predicate]
            yield f"{source} → {target}  on {predicate}: mark {marks}{suffix}"


class _Keys:
    """Numbers the keys that the transitions of a chain compare; all states are entered by some types."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._entered: list[dict[str, None]] = [{} for _ in chain.states]
        for each in chain.transitions:
            self._entered[each.target] |= dict.fromkeys(chain.predicates[each.predicate].types)
        self.numbers: dict[JoinKey, int] = {}

    def pair(
        self, source: int, predicate: int, left: tuple[Node, ...], right: tuple[Node, ...]
    ) -> tuple[int, int]:
        """The numbers of a key of the event by which `source` was entered, and of one of that at hand."""
        before, here = self._entered[source], self._chain.predicates[predicate].types
        one, other = (JoinKey(dict.fromkeys(types, key)) for types, key in ((before, left), (here, right)))
        return self.numbers.setdefault(one, len(self.numbers)), self.numbers.setdefault(
            other, len(self.numbers)
        )


def as_pcea(chain: Chain) -> PCEA:
    """The parallelised automaton with the same states, bits and transitions, of one source at most each.

    Transition k is that of the chain, but for all that is compared by other operators than ``=``.
    """
    keys = _Keys(chain)
    transitions = []
    for each in chain.transitions:
        sources: tuple[Source, ...] = ()
        if each.source is not None:
            pair = keys.pair(each.source, each.predicate, each.left, each.right)
            sources = (Source(each.source, *pair),)
        transitions.append(PceaTransition(sources, each.predicate, each.labels, each.target))
    return PCEA(chain.states, chain.final, tuple(transitions), chain.predicates, tuple(keys.numbers))


@dataclass(frozen=True, slots=True)
class ColumnTransition:
    """A transition of a chain (see `ChainTransition`), whose comparisons are numbers of `ChainColumns.keys`.

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
    """Equalities of two neighbours as one key, each disequality as one of a single value.

    Raises ValueError where neighbours are compared by order, which no list of keys can tell.
    """
    if chain.ordered:
        raise ValueError("some neighbours are compared by an order")
    keys = _Keys(chain)
    transitions = []
    for each in chain.transitions:
        pair, unequal = (0, 0), []
        if each.source is not None:
            pair = keys.pair(each.source, each.predicate, each.left, each.right)
            unequal = [
                keys.pair(each.source, each.predicate, (one.left,), (one.right,)) for one in each.different
            ]
        transitions.append(
            ColumnTransition(
                each.source, each.predicate, *pair, tuple(unequal), each.labels, each.hidden, each.target
            )
        )
    return ChainColumns(tuple(transitions), tuple(keys.numbers))
