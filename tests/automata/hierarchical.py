"""What Theorem 4.1 of the paper on hierarchical queries makes of a conjunctive query."""

from __future__ import annotations

from collections.abc import Sequence

from estero.automata.joins.gathering import TRANSITION_CAP, gathering
from estero.automata.joins.hierarchical import parts_of_atoms
from estero.automata.joins.q_tree import Node, compact, q_tree
from estero.automata.pcea import PCEA
from estero.language.check.atoms import NamedAtom


def hierarchical_pcea(atoms: Sequence[NamedAtom], *, cap: int = TRANSITION_CAP) -> PCEA:
    """The unambiguous automaton of the full conjunctive query with these atoms."""
    compact_q_tree(atoms)
    return gathering(parts_of_atoms(atoms), cap=cap).pcea


def compact_q_tree(atoms: Sequence[NamedAtom]) -> Node:
    """The compact q-tree of a query; raises `ValueError` if it is not hierarchical."""
    return compact(q_tree([atom.variables for atom in atoms]))
