"""A hierarchical conjunctive query as parts of an ALL, which `gathering.py` makes a PCEA of.

This is Theorem 4.1 and appendix B of "Complex event recognition meets hierarchical conjunctive queries"
(docs/papers.md). A query is an ALL of its atoms, and its variables are classes of equal values. The states
are the nodes of the compact q-tree. The event of an atom enters its leaf; the *last* event below a variable
enters the variable, and gathers the subtrees that branch off the paths down to the atoms of that event. So a
valuation has exactly one run, which accepts at its last event.

One event may serve several atoms: if it is the last one below a variable, one transition marks it with all of
them; otherwise it enters the leaf of each. A variable has several states if atoms of one type have the shared
values in different attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

from estero.automata.joins.parts import EqualValues, EventPart, Parts
from estero.automata.joins.shapes import Shape, Single, Together
from estero.language.check.atoms import NamedAtom
from estero.language.tree.expressions import Attribute, Comparison, Literal

_ALL = -1
"""The number of the shape of all atoms together."""


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
