"""Chain automaton without an order → what its transitions compare, as numbered key columns.

What an ED-index needs: of equalities the keys of both events, of each disequality as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from estero.automata.cea import LabelSet
from estero.automata.chain import Chain
from estero.automata.pcea import JoinKey
from estero.automata.residual import HiddenSet
from estero.language.tree.expressions import Node


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
    entered: list[dict[str, None]] = [{} for _ in chain.states]
    for each in chain.transitions:
        entered[each.target] |= dict.fromkeys(chain.predicates[each.predicate].types)
    keys: dict[JoinKey, int] = {}

    def key(expressions: tuple[Node, ...], types: tuple[str, ...]) -> int:
        return keys.setdefault(JoinKey(dict.fromkeys(types, expressions)), len(keys))

    transitions = []
    for each in chain.transitions:
        left, right, unequal = 0, 0, []
        if each.source is not None:
            before, here = tuple(entered[each.source]), chain.predicates[each.predicate].types
            left, right = key(each.left, before), key(each.right, here)
            unequal = [(key((one.left,), before), key((one.right,), here)) for one in each.different]
        transitions.append(
            ColumnTransition(
                each.source,
                each.predicate,
                left,
                right,
                tuple(unequal),
                each.labels,
                each.hidden,
                each.target,
            )
        )
    return ChainColumns(tuple(transitions), tuple(keys))
