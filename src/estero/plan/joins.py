"""Plans that join events: an automaton over the q-tree of the atoms of a conjunctive query, or of an ALL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from estero.automata.joins.all_joins import joined_all
from estero.automata.joins.hierarchical import compact_q_tree, hierarchical_pcea
from estero.automata.joins.q_tree import Node as QTree
from estero.automata.joins.q_tree import QTreeOfAtoms, tree_lines
from estero.automata.pcea import PCEA
from estero.automata.residual import NO_HIDDEN
from estero.errors import LimitExceeded
from estero.language.check.atoms import NamedAtom, named_atoms
from estero.language.tree.conjunctive import ConjunctiveTree
from estero.language.tree.pattern import All, As, Pattern
from estero.language.tree.query import QueryTree, SelectItem
from estero.plan.draft import Draft
from estero.plan.keys import KeyColumn, Values
from estero.plan.plan import Layout, Opened, Plan, Section


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedPlan(Plan):
    """How a query is evaluated where events wait in indexes by join keys.

    `columns` are the join keys of the automaton, in its order.
    """

    columns: tuple[KeyColumn, ...]

    def key_lines(self) -> Iterator[str]:
        """The keys by which events are joined."""
        if self.shown_keys:
            keys = ", ".join(f"[{', '.join(bracket)}]" for bracket in self.shown_keys)
            yield f"partitions: by {keys}, which is part of every join key"
        known = self.classification.schema
        if not known.types and not known.shared:
            return
        exact = not self.shown_keys and all(column.exact for column in self.columns)
        keys = "as they are" if exact else "as two independent 64-bit hashes"
        yield f"join keys: values that the classification computes, {keys}"

    def heap_guarantee(self, update: str) -> str:
        """`update` per event, a function of how many events there are, in words."""
        if self.window is None:
            return f"{update.format('n')} per event with n events read"
        return f"{update.format('w')} per event with w events in the window"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinPlan(KeyedPlan):
    """How a query is evaluated by a parallelised automaton over the q-tree of its atoms."""

    evaluated = ("columns", "automaton")

    automaton: PCEA
    q_tree: QTree
    atoms: tuple[NamedAtom, ...]

    @property
    def kernels(self) -> str:
        """Plans with one name run the same kernels."""
        return "pcea-heap"

    @property
    def drawn(self) -> QTreeOfAtoms:
        """The q-tree."""
        return QTreeOfAtoms(self.q_tree, [atom.text for atom in self.atoms])

    def opened(self, words: int, *, ordinals: bool, counting: bool) -> Opened:
        """What runs the automaton (`Plan.opened`)."""
        from estero.plan.opening import opened_in_heaps  # loads the kernels

        del ordinals, counting
        automaton = self.automaton
        transitions = [(each, NO_HIDDEN, None) for each in automaton.transitions]
        final = sorted(automaton.final)
        return opened_in_heaps(self, self.columns, len(automaton.states), transitions, final, words)

    def q_tree_lines(self) -> Iterator[str]:
        """The compact q-tree, a node in each line."""
        return tree_lines(self.q_tree, [_titled(atom) for atom in self.atoms])

    def lines(self) -> Iterator[str]:
        """Which algorithm runs and why, and what it guarantees."""
        yield (
            "PCEA + heap: the query is hierarchical, so one automaton joins all its atoms and finds each "
            "answer once"
        )
        yield f"guarantee: {self.heap_guarantee('O(log {})')}, output-linear delay between complex events"

    def filter_lines(self) -> Iterator[str]:
        """None: what each atom asks of its event is in the predicates."""
        yield from ()

    def automaton_sections(self) -> Iterator[Section]:
        """The q-tree and the automaton that was made of it."""
        yield "q-tree (an atom is joined by the variables above it)", self.q_tree_lines()
        yield "Automaton (PCEA)", self.automaton.lines()


def joined(draft: Draft) -> JoinPlan | str:
    """The plan that joins the parts of an ALL, or why there is none.

    Also where all of it is one partition: measured, heaps beat a state for each set of parts
    (benchmarks/correlated.py).
    """
    atoms = joined_all(draft.tree, draft.layout.schema)
    if isinstance(atoms, str):
        return atoms or "no equality joins parts of an ALL"
    try:
        return _plan(draft, atoms)
    except LimitExceeded as error:
        return str(error)


def plan_conjunctive(tree: ConjunctiveTree, layout: Layout) -> JoinPlan:
    """The plan of a query that `check_conjunctive` has found no error in.

    Raises `LimitExceeded` where the automaton gets too big.
    """
    atoms = named_atoms(tree, layout.schema, layout.type_column)
    return _plan(Draft(as_pattern_query(tree), layout, str(tree)), atoms)


def _plan(draft: Draft, atoms: tuple[NamedAtom, ...]) -> JoinPlan:
    """The plan that finds the valuations of hierarchical `atoms`; the clauses are those of the draft."""
    automaton = hierarchical_pcea(atoms)
    values = Values(draft.layout.schema)
    columns = values.columns(automaton.keys)
    return JoinPlan(
        tree=draft.tree,
        text=str(draft),
        automaton=automaton,
        q_tree=compact_q_tree(atoms),
        atoms=atoms,
        columns=columns,
        classification=draft.classification(automaton.predicates, values=tuple(values.found)),
        shown=draft.shown,
        window=draft.window,
        shared=_shared_value(atoms),
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
