"""Random conjunctive queries for Hypothesis, hierarchical ones and any, and small streams for them."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from estero.language.tree.conjunctive import Anything, Argument, Atom, ConjunctiveTree, Term, Variable
from estero.language.tree.distances import EventWindow
from estero.language.tree.expressions import Literal
from estero.language.tree.literals import Value
from estero.language.tree.pattern import EventType
from estero.language.tree.schema import Kind, Schema
from estero.reference.queries import Event

TYPES = ("T", "S", "R")
ATTRIBUTES = {"a": Kind.INT, "b": Kind.FLOAT, "c": Kind.INT}
SCHEMA = Schema(types=dict.fromkeys(TYPES, ATTRIBUTES), closed=True)

_VALUES: dict[str, st.SearchStrategy[Value]] = {
    "a": st.sampled_from((0, 1, 1, None)),
    "b": st.sampled_from((0.0, -0.0, 1.0, 1.0, math.nan, None)),
    "c": st.sampled_from((0, 1, 1, 2)),
}


@st.composite
def streams(draw: st.DrawFn, most: int = 7) -> list[Event]:
    """Streams in which many events are equal, and some values are missing."""
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=most))
    return [Event(name, {each: draw(values) for each, values in _VALUES.items()}) for name in types]


@st.composite
def hierarchical_queries(
    draw: st.DrawFn, most: int = 6, *, self_joins: bool = True, parts: int = 2
) -> ConjunctiveTree:
    """Hierarchical queries of up to `most` atoms: the variables of an atom are those above a leaf of a tree.

    Without `self_joins` each atom is of its own type T0, T1, ….
    """
    count = draw(st.integers(1, most))
    paths: list[tuple[str, ...]] = [() for _ in range(draw(st.integers(1, parts)))]
    leaves: list[tuple[str, ...]] = []
    names = iter("xyzuvwpqrst")
    for _ in range(count):
        path = draw(st.sampled_from(paths))
        while len(path) < 3 and draw(st.booleans()):
            path = (*path, next(names, "last"))
            paths.append(path)
        leaves.append(path)
    atoms = tuple(
        _atom(draw, f"T{number}" if not self_joins else draw(st.sampled_from(TYPES)), path)
        for number, path in enumerate(leaves)
    )
    return _query(draw, atoms)


@st.composite
def any_queries(draw: st.DrawFn, most: int = 5) -> ConjunctiveTree:
    """Queries of up to `most` atoms, seldom hierarchical."""
    some = st.lists(st.sampled_from("xyz"), max_size=3, unique=True)
    paths = draw(st.lists(some, min_size=2, max_size=most))
    atoms = tuple(_atom(draw, draw(st.sampled_from(TYPES)), tuple(path)) for path in paths)
    return _query(draw, atoms)


def _query(draw: st.DrawFn, atoms: tuple[Atom, ...]) -> ConjunctiveTree:
    used = dict.fromkeys(name for atom in atoms for name in atom.variables())
    head = tuple(map(Variable, draw(st.permutations(list(used)))))
    window = draw(st.none() | st.integers(1, 8).map(EventWindow))
    return ConjunctiveTree("Q", head, atoms, window=window)


def _atom(draw: st.DrawFn, relation: str, variables: tuple[str, ...]) -> Atom:
    """The variables, in any order, one of them twice perhaps, and something for the places that are left."""
    terms: list[Term] = [Variable(name) for name in variables]
    while len(terms) < len(ATTRIBUTES):
        terms.append(draw(st.sampled_from([Anything(), Anything(), Literal(1), *terms[:1]])))
    terms = draw(st.permutations(terms))
    if draw(st.booleans()):
        return Atom(EventType(relation), tuple(map(Argument, terms)))
    named = zip(ATTRIBUTES, terms, strict=True)
    arguments = tuple(Argument(term, name) for name, term in named if not isinstance(term, Anything))
    return Atom(EventType(relation), arguments)
