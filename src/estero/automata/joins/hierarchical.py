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

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import prod
from typing import Final, NamedTuple

from estero.automata.cea import EventPredicate
from estero.automata.joins.q_tree import Inner, Node, compact, leaves, nodes, q_tree
from estero.automata.pcea import PCEA, JoinKey, PceaTransition, Source
from estero.errors import LimitExceeded
from estero.language.check.atoms import NamedAtom
from estero.language.tree.conditions import conjoined
from estero.language.tree.expressions import Attribute, Comparison, IsNull, Literal, Not
from estero.language.tree.expressions import Node as Condition
from estero.language.tree.literals import Value
from estero.language.tree.names import some

TRANSITION_CAP: Final = 20_000
"""The most transitions; only queries that join a type with itself many times come near it."""

SOURCE_CAP: Final = 250_000
"""The most partial matches that all transitions together gather; 500 atoms with one variable need them."""

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


class _Serving(NamedTuple):
    """Atoms that one event can serve, its types and constants then, and atoms to try beside them."""

    served: Served
    types: tuple[str, ...]
    constants: dict[str, Value]
    later: Sequence[int]


@dataclass(slots=True)
class _Construction:
    atoms: tuple[NamedAtom, ...]
    root: Node
    cap: int
    states: list[_State] = field(default_factory=list)
    predicates: dict[EventPredicate, int] = field(default_factory=dict)
    keys: list[dict[str, tuple[Condition, ...]]] = field(default_factory=list)
    served: int = 0
    """How many sets of atoms that one event can serve have been found, at all nodes."""
    below: dict[int, frozenset[int]] = field(default_factory=dict)
    """For each node, by id: the atoms below it."""
    shared: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """For each node, by id: the variables below it that other atoms have too."""
    of_node: dict[int, list[int]] = field(default_factory=dict)
    """For each node, by id: the numbers of its states."""
    constants: list[dict[str, Value]] = field(default_factory=list)
    """For each atom: the attributes that have to be constants."""
    places: list[dict[str, Attribute]] = field(default_factory=list)
    """For each atom: where its variables first stand."""
    occurrences: Counter[str] = field(default_factory=Counter)
    """In how many atoms each variable is."""

    def __post_init__(self) -> None:
        self.occurrences.update(name for atom in self.atoms for name in atom.variables)
        for atom in self.atoms:
            fixed = {name: term.value for name, term in atom.terms if isinstance(term, Literal)}
            self.constants.append(fixed)
            self.places.append({name: Attribute(atom.places(name)[0]) for name in atom.variables})

    def pcea(self) -> PCEA:
        for node in nodes(self.root):
            self._add_states(node)
        self._check_sources()
        return PCEA(
            states=tuple(map(self._name, self.states)),
            final=frozenset(self.of_node[id(self.root)]),
            transitions=tuple(self._transitions()),
            predicates=tuple(self.predicates),
            keys=tuple(map(JoinKey, self.keys)),
        )

    def _add_states(self, node: Node) -> None:
        """One state for all that may enter the node, or one for those of each form."""
        below = leaves(node)
        self.below[id(node)] = frozenset(below)
        self.shared[id(node)] = shared = self._shared(below)
        numbers = self.of_node[id(node)] = []
        for served in self._served_sets(below) if isinstance(node, Inner) else [below]:
            form = self._form(served, shared)
            for state in map(self.states.__getitem__, numbers):
                if _agree(state.form, form):
                    state.entered_by.append(served)
                    state.form |= form
                    break
            else:
                numbers.append(len(self.states))
                self.states.append(_State(node, [served], dict(form)))

    def _check_sources(self) -> None:
        """Counts the transitions, and what they gather, before they are made."""
        transitions = sources = 0
        for state in self.states:
            for served in state.entered_by:
                hanging = self._hanging(state.node, served)
                choices = prod(len(self.of_node[id(each)]) for each in hanging)
                transitions += choices
                sources += choices * len(hanging)
                if transitions > self.cap:
                    raise self._too_many_served(self.below[id(state.node)])
                if sources > SOURCE_CAP:
                    raise self._too_many_atoms(SOURCE_CAP)

    def _transitions(self) -> Iterator[PceaTransition]:
        left: dict[int, int] = {}
        for number, state in enumerate(self.states):
            for served in state.entered_by:
                hanging = self._hanging(state.node, served)
                keys: dict[tuple[str, ...], int] = {}
                for each in hanging:
                    for source in self.of_node[id(each)]:
                        if source not in left:
                            left[source] = self._key(self.states[source].form)
                    shared = self.shared[id(each)]
                    if shared not in keys:
                        keys[shared] = self._key(self._form(served, shared))
                right = [keys[self.shared[id(each)]] for each in hanging]
                labels = frozenset(label for atom in served for label in self.atoms[atom].labels)
                bit = self._bit(served)
                for chosen in product(*(self.of_node[id(each)] for each in hanging)):
                    sources = tuple(
                        Source(source, left[source], key) for source, key in zip(chosen, right, strict=True)
                    )
                    yield PceaTransition(sources, bit, labels, number)

    def _hanging(self, node: Node, served: Served) -> list[Node]:
        """What branches off the paths from a node down to the atoms of its last event."""
        found: list[Node] = []
        for child in node.children if isinstance(node, Inner) else ():
            if self.below[id(child)].isdisjoint(served):
                found.append(child)
            else:
                found += self._hanging(child, served)
        return found

    def _shared(self, below: Served) -> tuple[str, ...]:
        """The variables of atoms below a node that other atoms have too; all of those below have them."""
        inside = Counter(name for atom in below for name in self.atoms[atom].variables)
        return tuple(name for name in self.atoms[below[0]].variables if self.occurrences[name] > inside[name])

    def _served_sets(self, atoms: Served) -> list[Served]:
        """The sets of atoms that one event can serve, smaller ones first.

        They are as many as the subsets of atoms of one type, where nothing tells these apart; so they are
        counted while they are found.
        """
        found = [_Serving((atom,), self.atoms[atom].types, self.constants[atom], atoms) for atom in atoms]
        for each in found:
            last = each.served[-1]
            later = [atom for atom in each.later if atom > last and self._fits(each, atom)]
            if len(found) + len(later) + self.served > self.cap:
                raise self._too_many_served(frozenset(atoms))
            found += [self._serving_also(each, atom, later) for atom in later]
        self.served += len(found)
        return [each.served for each in found]

    def _fits(self, serving: _Serving, atom: int) -> bool:
        """Whether one event can serve one atom more: it has one type, and each attribute one constant."""
        if set(serving.types).isdisjoint(self.atoms[atom].types):
            return False
        return all(
            serving.constants.get(name, value) == value for name, value in self.constants[atom].items()
        )

    def _serving_also(self, serving: _Serving, atom: int, later: Sequence[int]) -> _Serving:
        types = tuple(name for name in serving.types if name in self.atoms[atom].types)
        return _Serving((*serving.served, atom), types, serving.constants | self.constants[atom], later)

    def _types(self, served: Served) -> tuple[str, ...]:
        first, *others = (self.atoms[atom].types for atom in served)
        return tuple(name for name in first if all(name in types for types in others))

    def _bit(self, served: Served) -> int:
        predicate = EventPredicate(self._types(served), conjoined(self._conditions(served)))
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
            next(self.places[atom][name] for atom in served if name in self.places[atom])
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
        if len(self.of_node[id(state.node)]) == 1:
            return state.node.variable
        sets = (" + ".join(self.atoms[atom].label for atom in served) for served in state.entered_by)
        return f"{state.node.variable} by {' or '.join(sets)}"

    def _too_many_served(self, below: Iterable[int]) -> LimitExceeded:
        """Names the atoms of the type that most of them ask for."""
        types = Counter(name for atom in sorted(below) for name in self.atoms[atom].types)
        name, count = types.most_common(1)[0]
        if count == 1:
            return self._too_many_atoms(self.cap)
        atoms = [self.atoms[atom].label for atom in sorted(below) if name in self.atoms[atom].types]
        return LimitExceeded(
            f"this query needs an automaton of more than {self.cap:,} transitions, because one event of type "
            f"{name} may serve any of {len(atoms)} atoms at once ({some(atoms)}): use constants that "
            "distinguish these atoms, or fewer atoms"
        )

    def _too_many_atoms(self, cap: int) -> LimitExceeded:
        return LimitExceeded(
            f"this query joins {len(self.atoms)} atoms, and its automaton would combine partial matches in "
            f"more than {cap:,} ways: write fewer atoms, or several queries"
        )


def _agree(one: Form, other: Form) -> bool:
    return all(one[name] == values for name, values in other.items() if name in one)
