"""ALL of single events that equalities join, as the atoms of a conjunctive query (joins/hierarchical.py).

Each class of equal values is a variable, each part an atom. Every part marks exactly one event, so a
comparison of two variables is one of two values, and what speaks of one variable is asked of one event.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from estero.automata.exploration import merged
from estero.automata.joins.hierarchical import compact_q_tree
from estero.language.check.atoms import NamedAtom
from estero.language.check.conjunctive import witness
from estero.language.tree import expressions as e
from estero.language.tree import pattern as p
from estero.language.tree.conditions import as_unary, conjuncts, of_one_event
from estero.language.tree.conjunctive import Variable
from estero.language.tree.query import Consume, QueryTree, Strategy
from estero.language.tree.schema import Schema, fit, type_names
from estero.language.tree.words import quoted

MOST_APART: Final = 10
"""The most parts that nothing joins of which an automaton has a state for each set of them."""


_Term = tuple[int, str]
"""A part, by its number, and an attribute."""
_Marks = dict[str, tuple[int, ...]]
"""The parts that each label marks."""


def joined_all(tree: QueryTree, schema: Schema) -> tuple[NamedAtom, ...] | str:
    """The atoms of a conjunctive query that finds what a checked query finds, or a phrase on why none does.

    Each complex event is one valuation: every part has a label that no other part has. So this is without
    duplicates although patterns find sets. The empty phrase: the pattern is no ALL, or joins nothing and has
    few parts.
    """
    if not _is_all(tree.pattern):
        return ""
    pattern = p.unshared(tree.pattern)
    try:
        found = _Reading(tree.streams, schema)
        found.mark(pattern)
        found.filters(pattern, ())
        joins = any(len({part for part, _ in each}) > 1 for each in found.equal)
        if not joins and len(found.parts) <= MOST_APART:
            return ""
        _check_clauses(tree)
        return found.atoms()
    except _NotJoinedError as reason:
        return str(reason)


def _is_all(pattern: p.Pattern) -> bool:
    match pattern:
        case p.As(inner) | p.Filter(inner) | p.PartitionBy(inner):
            return _is_all(inner)
        case _:
            return isinstance(pattern, p.All)


class _NotJoinedError(Exception):
    """Why a query is no conjunctive query, as a phrase."""


def _check_clauses(tree: QueryTree) -> None:
    if tree.strategy is not Strategy.ALL:
        raise _NotJoinedError(f"the strategy {tree.strategy.value} chooses among complex events")
    if tree.consume is not Consume.NONE:
        raise _NotJoinedError("CONSUME BY forgets partial matches")
    if tree.partition_by:
        raise _NotJoinedError("the query has PARTITION BY")


@dataclass(slots=True)
class _Part:
    """A part of ALL: one event of a type, with what is asked of it alone."""

    event_type: p.EventType
    types: tuple[str, ...]
    labels: dict[str, None]
    conditions: list[e.Node] = field(default_factory=list)


@dataclass(slots=True)
class _Reading:
    """Gathers the parts of a pattern, and the classes of their equal values."""

    streams: tuple[str, ...]
    schema: Schema
    parts: list[_Part] = field(default_factory=list)
    equal: list[tuple[_Term, ...]] = field(default_factory=list)
    """Terms whose values are equal and not NULL."""
    marks: dict[int, _Marks] = field(default_factory=dict)
    """For each node of the pattern, by `id`, the parts that its labels mark."""

    def mark(self, node: p.Pattern) -> _Marks:
        """Finds the parts below a node, and which of them each label marks."""
        match node:
            case p.EventType(name):
                self.parts.append(_Part(node, type_names(node, self.streams), {name: None}))
                marks: _Marks = {name: (len(self.parts) - 1,)}
            case p.As(inner, variable):
                marks = dict(self.mark(inner))
                below = _numbers(marks)
                marks[variable] = below
                for number in below:
                    self.parts[number].labels[variable] = None
            case p.Filter(inner) | p.PartitionBy(inner):
                marks = self.mark(inner)
            case p.All(parts):
                marks = {}
                for part in parts:
                    for label, numbers in self.mark(part).items():
                        marks[label] = (*marks.get(label, ()), *numbers)
            case _:
                raise _NotJoinedError(f"{node!s} is not a single event")
        self.marks[id(node)] = marks
        return marks

    def filters(self, node: p.Pattern, above: tuple[p.Pattern, ...]) -> None:
        """Takes the filters at a node and below it; `above` are the patterns around it, outermost first."""
        around = (*above, node)
        if isinstance(node, p.Filter):
            inside = set(self.marks[id(node.pattern)])
            for part in conjuncts(node.condition):
                unary = as_unary(part, inside)
                if unary is None:
                    self._equality(part, around)
                else:
                    self._ask(unary, self.marks[id(node.pattern)])
        elif isinstance(node, p.PartitionBy):
            self._agreement(node, around)
        for child in node.children():
            self.filters(child, around)

    def _ask(self, condition: e.Node, marks: _Marks) -> None:
        """What is asked of single events."""
        if isinstance(condition, e.EventFilter):
            for number in marks[condition.variable]:
                self.parts[number].conditions.append(condition.predicate)
            return
        filters = [each for each in condition.walk() if isinstance(each, e.EventFilter)]
        speaking = {number for each in filters for number in marks[each.variable]}
        if len(speaking) > 1:
            raise _NotJoinedError(f"{condition!s} is about several events, and not an equality")
        self.parts[speaking.pop()].conditions.append(of_one_event(condition))

    def _equality(self, condition: e.Node, around: tuple[p.Pattern, ...]) -> None:
        match condition:
            case e.Comparison("=", e.Attribute(one, str(left)), e.Attribute(other, str(right))):
                ones = [(number, one) for number in self._bound(left, around)]
                others = [(number, other) for number in self._bound(right, around)]
                self.equal.append((*ones, *others))
            case _:
                raise _NotJoinedError(f"{condition!s} is not an equality of two attributes")

    def _bound(self, variable: str, around: tuple[p.Pattern, ...]) -> tuple[int, ...]:
        """The parts that a variable marks in the smallest pattern around that binds it."""
        for node in reversed(around):
            if variable in self.marks[id(node)]:
                return self.marks[id(node)][variable]
        raise _NotJoinedError(f"nothing binds {quoted(variable)}")

    def _agreement(self, node: p.PartitionBy, around: tuple[p.Pattern, ...]) -> None:
        """All values of the keys are equal, and none is NULL."""
        terms: list[_Term] = []
        for key in node.keys:
            if key.variable is not None:
                terms += [(number, key.attribute) for number in self._bound(key.variable, around)]
        alternatives = [key for key in node.keys if key.variable is None]
        if alternatives:
            terms += [
                (number, self._first(self.parts[number], alternatives))
                for number in _numbers(self.marks[id(node)])
            ]
        self.equal.append(tuple(terms))

    def _first(self, part: _Part, keys: list[p.PartitionKey]) -> str:
        """The first of the keys that all types of a part have."""
        if len(keys) == 1:
            return keys[0].attribute
        found = {
            next((key.attribute for key in keys if key.attribute in attributes), None)
            for attributes in map(self.schema.attributes_of, part.types)
            if attributes is not None
        }
        name = found.pop() if len(found) == 1 else None
        if name is None:
            raise _NotJoinedError(f"which key {part.event_type!s} has depends on its event")
        return name

    # ---------------------------------------------------------------------------------------- atoms

    def atoms(self) -> tuple[NamedAtom, ...]:
        """The parts as atoms; the variables are called after the equalities."""
        own = self._own_labels()
        names: dict[_Term, str] = {}
        for each in merged(self.equal):
            self._check_kinds(each)
            name = " = ".join(
                f"{quoted(own[number])}.{quoted(attribute)}" for number, attribute in sorted(each)
            )
            names |= dict.fromkeys(each, name)
            if len(each) == 1:  # equal to itself, which NULL is not
                ((number, attribute),) = each
                self.parts[number].conditions.append(e.Not(e.IsNull(e.Attribute(attribute))))
        atoms = tuple(
            NamedAtom(
                own[number],
                part.types,
                tuple((term[1], Variable(name)) for term, name in sorted(names.items()) if term[0] == number),
                _text(part),
                frozenset(part.labels),
                tuple(dict.fromkeys(part.conditions)),
            )
            for number, part in enumerate(self.parts)
        )
        _check_hierarchy(atoms)
        return atoms

    def _own_labels(self) -> list[str]:
        """For each part a label that no other part has: the last such that was given."""
        own: list[str] = []
        for number, part in enumerate(self.parts):
            others = {label for other in self.parts if other is not part for label in other.labels}
            labels = [label for label in part.labels if label not in others]
            if not labels:
                atom = str(part.event_type)
                raise _NotJoinedError(
                    f"its part number {number + 1}, {atom}, has no label of its own, so two choices of "
                    "events can be one complex event"
                )
            own.append(labels[-1])
        return own

    def _check_kinds(self, terms: Iterable[_Term]) -> None:
        """Values that are joined can be compared, and columns of one name are of one kind."""
        tables = (*self.schema.types.values(), self.schema.shared or {})
        for _, attribute in terms:
            if not fit(each[attribute] for each in tables if attribute in each):
                raise _NotJoinedError(f"values of {quoted(attribute)} are not all of one comparable kind")


def _numbers(marks: _Marks) -> tuple[int, ...]:
    """All parts that some label marks, ascending."""
    return tuple(sorted({number for numbers in marks.values() for number in numbers}))


def _text(part: _Part) -> str:
    """The part as it may be written, with all that is asked of its event."""
    asked = " AND ".join(str(each) for each in dict.fromkeys(part.conditions))
    names = [label for label in part.labels if label != part.event_type.name]
    text = " AS ".join([str(part.event_type), *map(quoted, names)])
    return f"{text} [{asked}]" if asked else text


def _check_hierarchy(atoms: tuple[NamedAtom, ...]) -> None:
    """Says by two variables and three parts why there is no q-tree, where there is none."""
    found = witness([atom.variables for atom in atoms])
    if found is not None:
        first, second, *numbers = found
        both, one, other = (quoted(atoms[number].label) for number in numbers)
        raise _NotJoinedError(
            f"it is not hierarchical: {both} has both {first} and {second}, "
            f"{one} has {first} alone, and {other} {second} alone"
        )
    compact_q_tree(atoms)
