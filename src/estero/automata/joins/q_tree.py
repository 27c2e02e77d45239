"""The q-tree of a hierarchical conjunctive query.

It is defined in section 4 and appendix B of "Complex event recognition meets hierarchical conjunctive
queries" (docs/papers.md). Inner nodes are variables, leaves are atoms, and the inner nodes on the path from
the root to an atom are its variables. The compact q-tree has only the inner nodes with several children.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from estero.automata.exploration import merged

FRESH: Final = "*"
"""The root of a query in several parts that share no variable."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """The atom with this number."""

    atom: int


@dataclass(frozen=True, slots=True)
class Inner:
    """A variable, or `FRESH` at the root, with the subtrees below it."""

    variable: str
    children: tuple[Node, ...]


Node = Leaf | Inner


class QTreeOfAtoms(NamedTuple):
    """A compact q-tree, and the texts of its atoms."""

    tree: Node
    atoms: list[str]


def q_tree(atoms: Sequence[Iterable[str]]) -> Node:
    """A q-tree of atoms that are given by their variables.

    Raises `ValueError` if the atoms are not hierarchical.

    >>> q_tree([["x"], ["x", "y"], ["x", "y"]]) == Inner(
    ...     "x", (Leaf(0), Inner("y", (Leaf(1), Leaf(2))))
    ... )
    True
    """
    parts = _parts({number: dict.fromkeys(variables) for number, variables in enumerate(atoms)})
    trees = tuple(map(_tree, parts))
    return trees[0] if len(trees) == 1 else Inner(FRESH, trees)


def compact(tree: Node) -> Node:
    """The tree without inner nodes that have only one child."""
    if isinstance(tree, Leaf):
        return tree
    children = tuple(map(compact, tree.children))
    return children[0] if len(children) == 1 else Inner(tree.variable, children)


def renumbered(tree: Node, numbers: Sequence[int]) -> Node:
    """The tree with `numbers[i]` instead of atom i."""
    if isinstance(tree, Leaf):
        return Leaf(numbers[tree.atom])
    return Inner(tree.variable, tuple(renumbered(child, numbers) for child in tree.children))


def leaves(tree: Node) -> tuple[int, ...]:
    """The numbers of the atoms below a node, ascending."""
    if isinstance(tree, Leaf):
        return (tree.atom,)
    return tuple(sorted(atom for child in tree.children for atom in leaves(child)))


def nodes(tree: Node) -> Iterator[Node]:
    """The nodes of a tree, children first."""
    for child in tree.children if isinstance(tree, Inner) else ():
        yield from nodes(child)
    yield tree


def tree_lines(tree: Node, atoms: Sequence[str]) -> Iterator[str]:
    """The tree as text, with one node on each line.

    >>> print("\\n".join(tree_lines(q_tree([["x"], ["x", "y"], ["x", "y"]]), "TSR")))
    x
    ├─ T
    └─ y
       ├─ S
       └─ R
    """
    yield tree.variable if isinstance(tree, Inner) else atoms[tree.atom]
    children = tree.children if isinstance(tree, Inner) else ()
    for child in children:
        last = child is children[-1]
        first, *rest = tree_lines(child, atoms)
        yield f"{'└─' if last else '├─'} {first}"
        yield from (f"{'  ' if last else '│ '} {line}" for line in rest)


_Atoms = dict[int, dict[str, None]]
"""The variables of some atoms, without those on the path above them."""


def _parts(atoms: _Atoms) -> list[_Atoms]:
    """The connected components of atoms by common variables, in order of their first atoms."""
    having: dict[str, list[int]] = {}
    for number, variables in atoms.items():
        for name in variables:
            having.setdefault(name, []).append(number)
    parts = merged([*([number] for number in atoms), *having.values()])
    return [{number: atoms[number] for number in sorted(part)} for part in sorted(parts, key=min)]


def _tree(atoms: _Atoms) -> Node:
    """The tree of one connected component of atoms."""
    shared = [
        name for name in next(iter(atoms.values())) if all(name in variables for variables in atoms.values())
    ]
    if len(atoms) == 1:
        below: tuple[Node, ...] = tuple(map(Leaf, atoms))
    elif shared:
        left = {
            number: dict.fromkeys(name for name in variables if name not in shared)
            for number, variables in atoms.items()
        }
        below = tuple(map(_tree, _parts(left)))
    else:
        raise ValueError(f"atoms {', '.join(map(str, atoms))} are joined, but no variable is in all of them")
    for name in reversed(shared):
        below = (Inner(name, below),)
    return below[0]
