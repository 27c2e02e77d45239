"""Hierarchical conjunctive query → PCEA (Theorem 4.1 of the PCEA paper, and its appendix B).

A query is an ALL of its atoms, and its variables are classes of equal values. The states are the nodes of
the compact q-tree. An atom's leaf is entered by its event; a variable is entered by the *last* event below
it, which gathers what hangs off the paths down to that event's atoms. So a valuation has one run, and is
found when its last event comes.

One event may serve several atoms: where it is the last one below a variable, one transition marks it with
all of them; elsewhere it enters the leaf of each. Where the values that a variable shares with the rest
stand in different attributes for different atoms of one type, it has several states.
"""

from __future__ import annotations

from collections.abc import Sequence

from estero.automata.joins.gathering import TRANSITION_CAP, gathering
from estero.automata.joins.parts import EqualValues, EventPart, Parts
from estero.automata.joins.q_tree import Node, compact, q_tree
from estero.automata.joins.shapes import Shape, Single, Together
from estero.automata.pcea import PCEA
from estero.language.check.atoms import NamedAtom
from estero.language.tree.expressions import Attribute, Comparison, Literal

_ALL = -1
"""The number of the shape of all atoms."""


def hierarchical_pcea(atoms: Sequence[NamedAtom], *, cap: int = TRANSITION_CAP) -> PCEA:
    """The automaton that finds the valuations of the full conjunctive query with these atoms; unambiguous.

    Without self-joins its size is at most quadratic in the size of the query. Raises `ValueError` where the
    query is not hierarchical, and `LimitExceeded` for more than `cap` transitions.
    """
    compact_q_tree(atoms)
    return gathering(parts_of_atoms(atoms), cap=cap).pcea


def compact_q_tree(atoms: Sequence[NamedAtom]) -> Node:
    """The compact q-tree of a query; raises `ValueError` where it is not hierarchical."""
    return compact(q_tree([atom.variables for atom in atoms]))


def parts_of_atoms(atoms: Sequence[NamedAtom]) -> Parts:
    """The atoms as the parts of an ALL, in order, and the variables as classes of values."""
    numbers = {name: None for atom in atoms for name in atom.variables}
    class_of = {name: number for number, name in enumerate(numbers)}
    singles: list[Shape] = [Single(number, frozenset({number}), ()) for number in range(len(atoms))]
    together = Together(_ALL, frozenset(range(len(atoms))), tuple(singles), {})
    return Parts(
        together if len(atoms) > 1 else singles[0],
        tuple(_event(atom, class_of) for atom in atoms),
        tuple(EqualValues(name, _ALL) for name in class_of),
    )


def _event(atom: NamedAtom, class_of: dict[str, int]) -> EventPart:
    constants = {name: term.value for name, term in atom.terms if isinstance(term, Literal)}
    asked = (Comparison("=", Attribute(name), term) for name, term in atom.terms if isinstance(term, Literal))
    return EventPart(
        atom.types,
        frozenset({atom.label}),
        atom.label,
        atom.text,
        tuple(asked),
        {class_of[name]: atom.places(name) for name in atom.variables},
        constants,
    )
