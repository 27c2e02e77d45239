"""Hierarchical conjunctive query → PCEA (Theorem 4.1 of the PCEA paper, and its appendix B).

States are the nodes of the compact q-tree. An atom's leaf is entered by its event; a variable is entered by
the *last* event below it, which gathers what hangs off the paths down to that event's atoms. So a valuation
has one run, and is found when its last event comes.

One event may serve several atoms: where it is the last one below a variable, one transition marks it with
all of them; elsewhere it enters the leaf of each. The events that enter a state are later asked for the
values of the variables that the state shares with the rest. Where these stand in different attributes for
different atoms of one type, the variable has several states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Final

from estero.automata.cea import EventPredicate
from estero.automata.pcea import PCEA, JoinKey, PceaTransition, Source
from estero.automata.q_tree import Inner, Node, compact, leaves, nodes, q_tree
from estero.errors import LimitExceeded
from estero.language.atoms import NamedAtom
from estero.language.expressions import And, Attribute, Comparison, IsNull, Literal, Not
from estero.language.expressions import Node as Condition

TRANSITION_CAP: Final = 20_000
"""The most transitions; only queries that join a type with itself many times come near it."""

Served = tuple[int, ...]
"""The atoms that one event serves, ascending."""
Form = Mapping[str, tuple[Condition, ...]]
"""For types of events, where they have the values of some variables."""


def hierarchical_pcea(atoms: Sequence[NamedAtom], *, cap: int = TRANSITION_CAP) -> PCEA:
    """The automaton that finds the valuations of the full conjunctive query with these atoms; unambiguous.

    Without self-joins its size is at most quadratic in the size of the query. Raises `ValueError` where the
    query is not hierarchical, and `LimitExceeded` for more than `cap` transitions.
    """
    return _Construction(tuple(atoms), compact_q_tree(atoms), cap).pcea()


def compact_q_tree(atoms: Sequence[NamedAtom]) -> Node:
    """The compact q-tree of a query; raises `ValueError` where it is not hierarchical."""
    return compact(q_tree([atom.variables for atom in atoms]))


@dataclass(slots=True)
class _State:
    """A node of the tree, entered by events that serve one of `entered_by`.

    `form` says where those events have the values that the node shares with the rest of the query.
    """

    node: Node
    entered_by: list[Served]
    form: dict[str, tuple[Condition, ...]]


@dataclass(slots=True)
class _Construction:
    atoms: tuple[NamedAtom, ...]
    root: Node
    cap: int
    states: list[_State] = field(default_factory=list)
    predicates: dict[EventPredicate, int] = field(default_factory=dict)
    keys: list[dict[str, tuple[Condition, ...]]] = field(default_factory=list)

    def pcea(self) -> PCEA:
        for node in nodes(self.root):
            self._add_states(node)
        transitions: list[PceaTransition] = []
        for transition in self._transitions():
            transitions.append(transition)
            self._check_cap(len(transitions))
        return PCEA(
            states=tuple(map(self._name, self.states)),
            final=frozenset(self._numbers(self.root)),
            transitions=tuple(transitions),
            predicates=tuple(self.predicates),
            keys=tuple(map(JoinKey, self.keys)),
        )

    def _add_states(self, node: Node) -> None:
        """One state for all that may enter the node, or one for those of each form."""
        shared = self._shared(node)
        first = len(self.states)
        for served in self._served_sets(leaves(node)) if isinstance(node, Inner) else [leaves(node)]:
            self._check_cap(len(self.states))
            form = self._form(served, shared)
            for state in self.states[first:]:
                if _agree(state.form, form):
                    state.entered_by.append(served)
                    state.form |= form
                    break
            else:
                self.states.append(_State(node, [served], dict(form)))

    def _transitions(self) -> Iterator[PceaTransition]:
        for number, state in enumerate(self.states):
            for served in state.entered_by:
                hanging = tuple(_hanging(state.node, frozenset(served)))
                labels = frozenset(label for atom in served for label in self.atoms[atom].labels)
                for chosen in product(*map(self._numbers, hanging)):
                    sources = tuple(self._source(each, served) for each in chosen)
                    yield PceaTransition(sources, self._bit(served), labels, number)

    def _source(self, number: int, served: Served) -> Source:
        state = self.states[number]
        right = self._form(served, self._shared(state.node))
        return Source(number, self._key(state.form), self._key(right))

    def _numbers(self, node: Node) -> list[int]:
        """The states of a node."""
        return [number for number, state in enumerate(self.states) if state.node is node]

    def _shared(self, node: Node) -> tuple[str, ...]:
        """The variables below a node that other atoms have too; all atoms below it have them."""
        below = leaves(node)
        others = {
            name for number, atom in enumerate(self.atoms) if number not in below for name in atom.variables
        }
        return tuple(name for name in self.atoms[below[0]].variables if name in others)

    def _served_sets(self, atoms: Served) -> Iterator[Served]:
        """The sets of atoms that one event can serve."""
        sets: list[Served] = [(atom,) for atom in atoms]
        while sets:
            served = sets.pop(0)
            yield served
            larger = ((*served, atom) for atom in atoms if atom > served[-1])
            sets += [each for each in larger if self._types(each) and not self._contradicts(each)]

    def _types(self, served: Served) -> tuple[str, ...]:
        first, *others = (self.atoms[atom].types for atom in served)
        return tuple(name for name in first if all(name in types for types in others))

    def _contradicts(self, served: Served) -> bool:
        """Whether an attribute would have to be two constants."""
        constants: dict[str, Literal] = {}
        for atom in served:
            for name, term in self.atoms[atom].terms:
                if isinstance(term, Literal) and constants.setdefault(name, term).value != term.value:
                    return True
        return False

    def _bit(self, served: Served) -> int:
        condition = _all(tuple(dict.fromkeys(self._conditions(served))))
        predicate = EventPredicate(self._types(served), condition)
        return self.predicates.setdefault(predicate, len(self.predicates))

    def _conditions(self, served: Served) -> Iterator[Condition]:
        """What an event has to be, to serve these atoms by itself (Lemma B.3)."""
        places: dict[str, list[str]] = {}
        for atom in served:
            yield from self.atoms[atom].conditions
            for name, term in self.atoms[atom].terms:
                if isinstance(term, Literal):
                    yield Comparison("=", Attribute(name), term)
                else:
                    places.setdefault(term.name, []).append(name)
        for names in places.values():
            distinct = tuple(dict.fromkeys(names))
            yield from (Comparison("=", Attribute(a), Attribute(b)) for a, b in pairwise(distinct))
            if len(distinct) == 1 < len(names):  # equal to itself, which NULL is not
                yield Not(IsNull(Attribute(distinct[0])))

    def _form(self, served: Served, variables: tuple[str, ...]) -> Form:
        """Where an event that serves these atoms has the values of the variables."""
        values = tuple(
            Attribute(next(place for atom in served for place in self.atoms[atom].places(name)))
            for name in variables
        )
        return dict.fromkeys(self._types(served), values)

    def _key(self, form: Form) -> int:
        """The number of a key with this form; forms that speak of different types share one."""
        width = len(next(iter(form.values())))
        for number, key in enumerate(self.keys):
            if len(next(iter(key.values()))) == width and _agree(key, form):
                key.update(form)
                return number
        self.keys.append(dict(form))
        return len(self.keys) - 1

    def _name(self, state: _State) -> str:
        if not isinstance(state.node, Inner):
            return self.atoms[state.node.atom].label
        if len(self._numbers(state.node)) == 1:
            return state.node.variable
        sets = (" + ".join(self.atoms[atom].label for atom in served) for served in state.entered_by)
        return f"{state.node.variable} by {' or '.join(sets)}"

    def _check_cap(self, number: int) -> None:
        if number > self.cap:
            raise LimitExceeded(
                f"this query needs an automaton of more than {self.cap} transitions, because one event may "
                "serve many of its atoms; constants that tell the atoms of one type apart make it smaller"
            )


def _hanging(node: Node, served: frozenset[int]) -> Iterator[Node]:
    """What branches off the paths from a node down to the atoms of its last event."""
    for child in node.children if isinstance(node, Inner) else ():
        if served.isdisjoint(leaves(child)):
            yield child
        else:
            yield from _hanging(child, served)


def _agree(one: Form, other: Form) -> bool:
    return all(one[name] == values for name, values in other.items() if name in one)


def _all(conditions: tuple[Condition, ...]) -> Condition | None:
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else And(conditions)
