"""Atoms of a conjunctive query, from attributes by place to attributes by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from estero.errors import Span
from estero.language.check.known_types import KnownTypes
from estero.language.tree.conjunctive import Anything, Atom, ConjunctiveTree, Term, Variable
from estero.language.tree.expressions import Literal
from estero.language.tree.schema import Schema, type_names


@dataclass(frozen=True, slots=True)
class NamedAtom:
    """An atom for events of one of `types`; `terms` gives the terms of some attributes.

    `label` names the atom, and marks its events.
    """

    label: str
    types: tuple[str, ...]
    terms: tuple[tuple[str, Variable | Literal], ...]
    text: str

    @property
    def variables(self) -> tuple[str, ...]:
        """The distinct variables, in order."""
        return tuple(dict.fromkeys(term.name for _, term in self.terms if isinstance(term, Variable)))

    def places(self, variable: str) -> tuple[str, ...]:
        """The attributes that a variable stands for, in order."""
        return tuple(
            name for name, term in self.terms if isinstance(term, Variable) and term.name == variable
        )


def named_atoms(
    tree: ConjunctiveTree, schema: Schema, type_column: str | None = None
) -> tuple[NamedAtom, ...]:
    """The atoms of a checked query with their attributes' names.

    Where the attributes of a type are not known, the one at place i (from 0) is called ``#i``.
    """
    return tuple(
        NamedAtom(label, type_names(atom.relation, tree.streams), tuple(_kept(atom, known)), str(atom))
        for label, atom in zip(tree.labels, tree.atoms, strict=True)
        for known in (attributes_in_order(atom, tree.streams, schema, type_column),)
    )


def unnamed_atoms(tree: ConjunctiveTree, schema: Schema, type_column: str | None) -> tuple[str, ...]:
    """The atoms, as written, that have attributes by place of types with unknown attributes."""
    return tuple(
        str(atom)
        for atom in dict.fromkeys(tree.atoms)
        if attributes_in_order(atom, tree.streams, schema, type_column) is None
        and any(
            argument.attribute is None and not isinstance(argument.term, Anything)
            for argument in atom.arguments
        )
    )


def attributes_in_order(
    atom: Atom, streams: tuple[str, ...], schema: Schema | None, type_column: str | None
) -> tuple[str, ...] | None:
    """The attributes that the arguments by place of an atom stand for, in the order of its type's table.

    The columns of type and time do not count. None if the attributes are unknown.
    """
    attributes = KnownTypes(schema, streams).attributes(atom.relation)
    if schema is None or not attributes:
        return None
    return tuple(name for name in attributes if name not in (type_column, schema.time))


def _kept(atom: Atom, known: tuple[str, ...] | None) -> Iterator[tuple[str, Variable | Literal]]:
    for name, term, _ in arguments_by_name(atom, known):
        if not isinstance(term, Anything):
            yield name, term


def arguments_by_name(atom: Atom, known: tuple[str, ...] | None) -> Iterator[tuple[str, Term, Span]]:
    """The arguments of an atom with the names of their attributes and their spans in the text.

    Arguments by place beyond the known attributes, or beside named ones, are left out.
    """
    some_named = any(argument.attribute is not None for argument in atom.arguments)
    for place, argument in enumerate(atom.arguments):
        if argument.attribute is not None:
            yield argument.attribute, argument.term, argument.span
        elif some_named:
            continue
        elif known is None:
            yield f"#{place}", argument.term, argument.span
        elif place < len(known):
            yield known[place], argument.term, argument.span
