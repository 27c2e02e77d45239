"""Which filters of a pattern have to be checked on whole marks, and what each of their variables means there.

A variable is bound by the smallest pattern around the filter that gives its label (semantics_patterns.py
settles debts there). That pattern is a *place*: inside a repetition or an alternative it has several
instances or none, and elsewhere the same label may be given again. Where neither is so, labels of the
answer are enough; otherwise the place gets hidden ones.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

from estero.automata.residual import ALL_MARKED, Agreement, Hidden, Key, Residual
from estero.errors import QueryError
from estero.language.tree.conditions import as_unary, conjuncts, has_residuals, variables_of
from estero.language.tree.expressions import And, EventFilter, Node, Not, Or
from estero.language.tree.pattern import (
    As,
    Conjunction,
    Disjunction,
    EventType,
    Filter,
    Iteration,
    Keep,
    Optional,
    PartitionBy,
    Pattern,
    Rename,
    Sequence,
    Unless,
)
from estero.language.tree.selection import label_types


@dataclass(frozen=True, slots=True)
class Atom:
    """An event that must be absent: its type and one-event condition, and hidden labels to give it."""

    event_type: EventType
    condition: Node | None
    hidden: frozenset[Hidden]


@dataclass(slots=True)
class Places:
    """The residual filters of a pattern, and which nodes give which hidden labels.

    Nodes are told apart by identity: equal parts at different places are different places.
    """

    residuals: list[Residual] = field(default_factory=list)
    absent: dict[int, Atom] = field(default_factory=dict)
    """For each pattern that must be absent, by id: what is asked of one event."""
    conditions: dict[int, Node | None] = field(default_factory=dict)
    """For each FILTER, by id: the part of its condition that the automaton checks."""
    _numbers: dict[int, int] = field(default_factory=dict)
    _hidden: defaultdict[int, dict[Hidden, None]] = field(default_factory=lambda: defaultdict(dict))

    def number(self, node: Pattern) -> int:
        """The number of the place of a node."""
        return self._numbers.setdefault(id(node), len(self._numbers))

    def hidden(self, node: Pattern) -> tuple[Hidden, ...]:
        """The hidden labels that the node gives."""
        return tuple(self._hidden[id(node)])

    def give(self, node: Pattern, variable: str = "") -> Hidden:
        """A hidden label for a variable of the node, or for the first event of its instances."""
        label = Hidden(self.number(node), variable)
        self._hidden[id(node)][label] = None
        return label


def find_places(pattern: Pattern) -> Places:
    """The places of a checked pattern."""
    places = Places()
    _Search(places).visit(pattern, ())
    return places


@dataclass(frozen=True, slots=True)
class _Search:
    places: Places

    def visit(self, node: Pattern, above: tuple[Pattern, ...]) -> None:
        """`above` are the patterns around `node`, outermost first."""
        around = (*above, node)
        if isinstance(node, Filter):
            self._filter(node, around)
        if isinstance(node, PartitionBy):
            variables = {ALL_MARKED if key.variable is None else key.variable for key in node.keys}
            self._add(Agreement(node.keys), sorted(variables), around)
        if isinstance(node, Sequence):
            for absent in (each for link in node.links for each in link.absent):
                self._absent(absent, around)
        if isinstance(node, Unless):
            if has_residuals(node.forbidden):
                self._absent(node.forbidden, around)
            else:
                self.visit(node.forbidden, around)
            self.visit(node.pattern, around)
            return
        for child in node.parts if isinstance(node, Sequence) else node.children():
            self.visit(child, around)

    def _filter(self, node: Filter, around: tuple[Pattern, ...]) -> None:
        inside = set(label_types(node.pattern))
        unary: list[Node] = []
        for part in conjuncts(node.condition):
            simple = as_unary(part, inside)
            if simple is not None:
                unary.append(simple)
            else:
                self._add(part, sorted(variables_of(part)), around)
        self.places.conditions[id(node)] = _all(unary)

    def _add(self, condition: Node | Agreement, variables: list[str], around: tuple[Pattern, ...]) -> None:
        bindings = tuple((variable, self._binding(variable, around)) for variable in variables)
        place = None
        if not _happens_once(around):
            self.places.give(around[-1])
            place = self.places.number(around[-1])
            for _, key in bindings:
                self._begin(key, around)
        self.places.residuals.append(Residual(condition, bindings, place))

    def _absent(self, pattern: Pattern, around: tuple[Pattern, ...]) -> None:
        """An event that must be absent; what speaks of other events is refuted for each that is there."""
        conditions: list[Node] = []
        correlated: list[Node] = []
        labels: dict[str, None] = {}
        node = pattern
        chain: list[Filter | As] = []
        while isinstance(node, Filter | As):
            chain.append(node)
            node = node.pattern
        if not isinstance(node, EventType):
            raise QueryError(
                "this pattern must be absent, and one of its filters speaks of several events",
                span=pattern.span,
                expected="one event with filters, (R AS x FILTER …), or filters X[…] only",
                hint="write the filter with constants, or forbid one event",
            )
        labels[node.name] = None
        for each in reversed(chain):
            if isinstance(each, As):
                labels[each.variable] = None
                continue
            for part in conjuncts(each.condition):
                simple = as_unary(part, set(labels))
                if simple is not None:
                    conditions.append(_of_one_event(simple))
                else:
                    correlated.append(part)
        hidden: set[Hidden] = set()
        if correlated:
            number = self.places.number(pattern)
            hidden.add(Hidden(number))
            condition = _all(correlated)
            bindings: list[tuple[str, Key]] = []
            for variable in sorted({name for part in correlated for name in variables_of(part)}):
                if variable in labels:
                    key: Key = Hidden(number, variable)
                    hidden.add(Hidden(number, variable))
                else:
                    key = self._binding(variable, around)
                    self._begin(key, around)
                bindings.append((variable, key))
            if condition is not None:
                self.places.residuals.append(Residual(condition, tuple(bindings), number, refuted=True))
        self.places.absent[id(pattern)] = Atom(node, _all(conditions), frozenset(hidden))

    def _binding(self, variable: str, around: tuple[Pattern, ...]) -> Key:
        """The label that the events of `variable` carry where the smallest pattern around binds it."""
        for depth in range(len(around), 0, -1):
            node = around[depth - 1]
            if variable == ALL_MARKED or variable in label_types(node):
                path = around[:depth]
                if _happens_once(path) and _is_shown(variable, path):
                    return variable
                return self.places.give(node, variable)
        raise QueryError(
            f"nothing around this filter binds the variable {variable}",
            span=around[-1].span,
            expected="a variable that is marked in the filtered pattern or around it",
        )

    def _begin(self, key: Key, around: tuple[Pattern, ...]) -> None:
        """The place behind a hidden key also says where its instances begin."""
        if isinstance(key, Hidden):
            for node in around:
                if self.places.number(node) == key.place:
                    self.places.give(node)


def _all(parts: list[Node]) -> Node | None:
    if len(parts) > 1:
        return And(tuple(parts))
    return parts[0] if parts else None


def _of_one_event(condition: Node) -> Node:
    """``X[p]`` of an event that every variable is: p."""
    match condition:
        case EventFilter(_, predicate):
            return predicate
        case And(parts) | Or(parts):
            return type(condition)(tuple(_of_one_event(part) for part in parts))
        case Not(part):
            return Not(_of_one_event(part))
        case _:
            raise TypeError(f"not a filter of one-event predicates: {condition!r}")


def _happens_once(path: tuple[Pattern, ...]) -> bool:
    """Whether the last pattern of the path has exactly one instance in each complex event."""
    return not any(isinstance(node, Iteration | Optional | Disjunction) for node in path[:-1])


def _is_shown(variable: str, path: tuple[Pattern, ...]) -> bool:
    """Whether outside the last pattern of the path `variable` is neither dropped nor renamed nor given."""
    for node, below in pairwise(path):
        match node:
            case Keep(labels=labels):
                if variable == ALL_MARKED or variable not in labels:
                    return False
            case Rename(old=old, new=new):
                if variable in (old, new):
                    return False
            case As(variable=given):
                if variable == given:
                    return False
            case Conjunction() | Unless():
                pass
            case _:
                beside = [child for child in _marking(node) if child is not below]
                if beside and variable == ALL_MARKED:
                    return False
                if any(variable in label_types(child) for child in beside):
                    return False
    return True


def _marking(node: Pattern) -> tuple[Pattern, ...]:
    return node.parts if isinstance(node, Sequence) else tuple(node.children())
