"""From a checked conjunctive query to a plan: an automaton that joins, and what it is joined by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from estero.automata.joins.hierarchical import compact_q_tree, hierarchical_pcea
from estero.automata.joins.q_tree import Node as QTree
from estero.automata.joins.q_tree import tree_lines
from estero.automata.pcea import PCEA, JoinKey
from estero.automata.registers import Value
from estero.automata.residual import Residual, columns_read
from estero.language.check.atoms import NamedAtom, named_atoms
from estero.language.check.kinds import kind_of
from estero.language.check.set_predicates import RegisteredPredicate
from estero.language.tree.conjunctive import ConjunctiveTree
from estero.language.tree.expressions import Attribute, Node
from estero.language.tree.pattern import All, As, Pattern
from estero.language.tree.query import Consume, EventWindow, QueryTree, SelectItem
from estero.language.tree.schema import Kind, Schema
from estero.language.tree.selection import Shown, shown_labels
from estero.plan.plan import Classification, Layout, Plan, payload_of, window_in_ticks

_EXACT = frozenset({Kind.INT, Kind.BOOL, Kind.TIMESTAMP})
"""Kinds whose values are themselves in 64 bits."""


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One value of a join key: of numbers `values` of the classification those that are not NULL.

    Each has one value column, or two for strings (their two hashes); an event has at most one of them.
    """

    values: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """How a join key is put together; `exact` where its values fit into 128 bits as they are."""

    parts: tuple[KeyPart, ...]
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedPlan:
    """How a query is evaluated where events are joined by keys; `text` is how it prints.

    It is asked for the same things as `plan.Plan`. `columns` are the join keys of the automaton, in its
    order. `partition` says for each type where its events have a value that all events of an answer share; it
    is empty where there is none. `residuals` are checked of what is enumerated, with `predicates` by name;
    `reasons` says of each why.
    """

    tree: QueryTree
    text: str
    columns: tuple[KeyColumn, ...]
    classification: Classification
    shown: tuple[Shown, ...]
    window: int | None = None
    window_in_positions: bool = False
    partition: Mapping[str, str] = field(default_factory=dict)
    residuals: tuple[Residual, ...] = ()
    reasons: tuple[str, ...] = ()
    predicates: Mapping[str, RegisteredPredicate] = field(default_factory=dict)

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
    def shown_keys(self) -> tuple[tuple[str, ...], ...]:
        """The alternatives of each bracket of PARTITION BY: every join is inside one partition by them."""
        return tuple(bracket.alternatives for bracket in self.tree.partition_by)

    @property
    def sieved(self) -> bool:
        """Whether complex events are checked after they are enumerated."""
        return bool(self.residuals)

    @property
    def needs_positions(self) -> bool:
        """Whether evaluation itself (not only the report) depends on positions in the whole stream."""
        in_window = self.window is not None and self.window_in_positions
        return in_window or bool(self.predicates)

    def showing_nothing(self) -> Self:
        """The same evaluation where only counts are asked for."""
        known = self.classification
        checked = columns_read(self.residuals, known.schema, known.type_column)
        payload = payload_of((), self.shown_keys, checked)
        return replace(self, shown=(), classification=replace(known, payload=payload))


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinPlan(KeyedPlan):
    """How a query is evaluated by a parallelised automaton over the q-tree of its atoms."""

    automaton: PCEA
    q_tree: QTree
    atoms: tuple[NamedAtom, ...]

    def q_tree_lines(self) -> Iterator[str]:
        """The compact q-tree, a node in each line."""
        return tree_lines(self.q_tree, [_titled(atom) for atom in self.atoms])


AnyPlan = Plan | KeyedPlan
"""How a query is evaluated, by whichever automaton."""


def plan_conjunctive(tree: ConjunctiveTree, layout: Layout) -> JoinPlan:
    """The plan of a query that `check_conjunctive` has found no error in."""
    atoms = named_atoms(tree, layout.schema, layout.type_column)
    return plan_join(atoms, as_pattern_query(tree), layout, str(tree))


def plan_join(atoms: tuple[NamedAtom, ...], tree: QueryTree, layout: Layout, text: str) -> JoinPlan:
    """The plan of a query that finds the valuations of hierarchical `atoms`.

    `tree` says which labels are shown, and its clauses hold; `text` is how the query prints. Raises
    `LimitExceeded` where the automaton gets too big.
    """
    automaton = hierarchical_pcea(atoms)
    values = Values(layout.schema)
    columns = values.columns(automaton.keys)
    shown = shown_labels(tree, layout.schema)
    return JoinPlan(
        tree=tree,
        text=text,
        automaton=automaton,
        q_tree=compact_q_tree(atoms),
        atoms=atoms,
        columns=columns,
        classification=Classification(
            predicates=automaton.predicates,
            schema=layout.schema,
            type_column=layout.type_column,
            only_type=layout.only_type,
            order=layout.order,
            payload=tuple(dict.fromkeys(name for label in shown for name in label.attributes)),
            values=tuple(values.found),
        ),
        shown=shown,
        window=window_in_ticks(tree, layout),
        window_in_positions=isinstance(tree.window, EventWindow),
        partition=_shared_value(atoms),
    )


def as_pattern_query(tree: ConjunctiveTree) -> QueryTree:
    """What stands for a conjunctive query where the tree of a query is asked for: atoms in any order.

    It has the same types, labels and clauses. It says nothing of the arguments.
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


class Values:
    """Gathers the values that join keys are made of and that are compared by order, each once."""

    def __init__(self, schema: Schema) -> None:
        self._kinds: dict[str, Kind] = {}
        for attributes in (*schema.types.values(), schema.shared or {}):
            for name, kind in attributes.items():
                if self._kinds.get(name, Kind.NULL) is Kind.NULL or kind is Kind.FLOAT:
                    self._kinds[name] = kind  # of both numbers it is floats, as the column is read
        self.found: dict[Value, int] = {}

    def columns(self, keys: Sequence[JoinKey]) -> tuple[KeyColumn, ...]:
        """The columns of the keys. One that is compared with another is exact if the other is."""
        pairs = {each for key in keys if key.width == 2 for form in key.forms.values() for each in form}
        inexact = {key.width for key in keys if key.width > 2}
        inexact |= {2} if any(self._kind(each) not in _EXACT for each in pairs) else set()
        merged = self._types_of_plain_values(keys)
        return tuple(
            KeyColumn(
                tuple(self._part(key, place, merged) for place in range(key.width)), key.width not in inexact
            )
            for key in keys
        )

    def _types_of_plain_values(self, keys: Sequence[JoinKey]) -> dict[Node, tuple[str, ...]]:
        """For each expression that is a part of a key for all its types: all those types."""
        types: dict[Node, dict[str, None]] = {}
        for key in keys:
            for place in range(key.width):
                expressions = {form[place] for form in key.forms.values()}
                if len(expressions) == 1:
                    types.setdefault(expressions.pop(), {}).update(dict.fromkeys(key.forms))
        return {expression: tuple(names) for expression, names in types.items()}

    def _part(self, key: JoinKey, place: int, merged: dict[Node, tuple[str, ...]]) -> KeyPart:
        types: dict[Node, list[str]] = {}
        for name, form in key.forms.items():
            types.setdefault(form[place], []).append(name)
        if len(types) == 1:
            (expression,) = types
            return KeyPart((self._numbers(expression, merged[expression]),))
        return KeyPart(tuple(self._numbers(each, tuple(names)) for each, names in types.items()))

    def _numbers(self, expression: Node, types: tuple[str, ...]) -> tuple[int, ...]:
        hashes: tuple[int | None, ...] = (0, 1) if self._kind(expression) is Kind.STRING else (None,)
        values = [Value(expression, types, hashed) for hashed in hashes]
        return tuple(self.found.setdefault(value, len(self.found)) for value in values)

    def in_order(self, expression: Node, types: tuple[str, ...]) -> int:
        """The number of a value that is compared by order; of a string its first hash, which is to differ."""
        value = Value(expression, types, 0 if self._kind(expression) is Kind.STRING else None)
        return self.found.setdefault(value, len(self.found))

    def _kind(self, expression: Node) -> Kind | None:
        """The kind of the column; integers where nothing is known of it."""
        if isinstance(expression, Attribute) and expression.name not in self._kinds:
            return Kind.INT
        return kind_of(expression, self._kinds)


def _shared_value(atoms: Sequence[NamedAtom]) -> dict[str, str]:
    """For each type an attribute, such that all are the same variable; it is never NULL then.

    Empty where no variable is in all atoms, two at least, or where atoms of one type have it in different
    attributes.
    """
    for variable in atoms[0].variables if len(atoms) > 1 else ():
        places: dict[str, list[str]] = {}
        for atom in atoms:
            here = atom.places(variable)
            for name in atom.types:
                places[name] = [each for each in places.get(name, here) if each in here]
        if all(places.values()):
            common = [each for each in places[atoms[0].types[0]] if all(each in of for of in places.values())]
            return {name: (common or of)[0] for name, of in places.items()}
    return {}


def _titled(atom: NamedAtom) -> str:
    return atom.text if atom.text.startswith(f"{atom.label}(") else f"{atom.label}: {atom.text}"
