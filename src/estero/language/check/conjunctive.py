"""The check of a conjunctive query against the schema: all its errors, in order of place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from estero.errors import NOWHERE, QueryError, Span
from estero.language.check.atoms import arguments_by_name, attributes_in_order
from estero.language.check.clauses import check_bounds
from estero.language.check.kinds import KindChecker
from estero.language.check.known_types import KnownTypes
from estero.language.check.problems import Problems
from estero.language.syntax.parser import parse_conjunctive
from estero.language.tree.conjunctive import Atom, ConjunctiveTree, Variable
from estero.language.tree.expressions import Attribute, Literal
from estero.language.tree.names import listed, some, suggestion
from estero.language.tree.schema import Kind, Schema, fit


def check_conjunctive(
    tree: ConjunctiveTree, schema: Schema | None = None, type_column: str | None = None
) -> list[QueryError]:
    """The errors of a conjunctive query, in order of place; an empty list if there are none.

    Without a schema only checks that need none are made. A tree without a text is checked as its text.

    >>> from estero.language.syntax.parser import parse_conjunctive
    >>> query = parse_conjunctive("Q(x, y) <- A(x), B(x, y), C(y)")
    >>> print(check_conjunctive(query)[0].message)
    this query is not hierarchical: B(x, y) has both x and y, A(x) has x without y, and C(y) has y without x
    """
    if not tree.text:
        try:
            tree = parse_conjunctive(str(tree))
        except QueryError as error:
            return [error]
    problems = Problems(tree.text)
    _check_head(tree, problems)
    _check_labels(tree, problems)
    known = KnownTypes(schema, tree.streams)
    joined: dict[str, _Place] = {}
    for atom in tree.atoms:
        _check_arguments(atom, problems)
        if known.exists(atom.relation):
            names = attributes_in_order(atom, tree.streams, schema, type_column)
            _check_attributes(atom, names, known, joined, problems)
        else:
            known.note_missing(atom.relation, problems)
    _check_hierarchy(tree, problems)
    check_bounds(tree.window, tree.limit, tree.places.get("LIMIT", NOWHERE), schema, problems)
    return problems.in_order()


def witness(atoms: Sequence[Iterable[str]]) -> tuple[str, str, int, int, int] | None:
    """Two variables that show that a query is not hierarchical; None if it is.

    `atoms` are their variables. With the two come the numbers of an atom that has both, of one that has the
    first only, and of one that has the second only (the paper's definition in section 4, and its Theorem
    4.2).
    """
    having: dict[str, set[int]] = {}
    for number, variables in enumerate(atoms):
        for name in variables:
            having.setdefault(name, set()).add(number)
    for first, second in combinations(having, 2):
        one, other = having[first], having[second]
        if one & other and one - other and other - one:
            return first, second, min(one & other), min(one - other), min(other - one)
    return None


def _check_head(tree: ConjunctiveTree, problems: Problems) -> None:
    body = tuple(dict.fromkeys(name for atom in tree.atoms for name in atom.variables()))
    head = {variable.name for variable in tree.head}
    for variable in tree.head:
        if variable.name not in body:
            problems.add(
                f"no atom has the variable {variable}",
                variable.span,
                expected=some(body) or "no variable at all",
                hint=suggestion(variable.name, body) or "take it out of the head",
            )
    for variable in _variables(tree):
        if variable.name not in head:
            problems.add(
                f"the head lacks the variable {variable}",
                variable.span,
                expected="all variables in the head: a conjunctive query has no projection",
                hint=f"write {tree.name}({', '.join(map(str, (*tree.head, variable)))}), or _ for a value"
                " that does not matter",
            )
            head.add(variable.name)


def _variables(tree: ConjunctiveTree) -> Iterator[Variable]:
    for atom in tree.atoms:
        yield from (argument.term for argument in atom.arguments if isinstance(argument.term, Variable))


def _check_labels(tree: ConjunctiveTree, problems: Problems) -> None:
    first: dict[str, Atom] = {}
    for label, atom in zip(tree.labels, tree.atoms, strict=True):
        if label in first:
            problems.add(
                f"two atoms are called {label}",
                atom.span if atom.label is not None else first[label].span,
                expected="a name of its own for each atom",
                hint="an atom without AS is named after its type, or by its number if another has that type",
            )
        first.setdefault(label, atom)


def _check_arguments(atom: Atom, problems: Problems) -> None:
    """Notes errors of an atom that need no schema."""
    named = [argument for argument in atom.arguments if argument.attribute is not None]
    if named and len(named) < len(atom.arguments):
        problems.add(
            "some arguments of this atom are by name and some by position",
            atom.span,
            expected="all by name, or all by position",
            hint="T(k: x, l: 5) names attributes, T(x, 5) takes them in the order of the columns",
        )
    seen: set[str | None] = set()
    for argument in named:
        if argument.attribute in seen:
            problems.add(
                f"this atom has the attribute {argument.attribute} twice",
                argument.span,
                expected="each attribute once",
                hint="equal attributes have the same variable, and each attribute is named once",
            )
        seen.add(argument.attribute)
    for argument in atom.arguments:
        if argument.term == Literal(None):
            problems.add(
                "NULL equals nothing, so no event matches this atom",
                argument.span,
                expected="a variable, _ or another constant",
                hint="_ is any value, and NULL too",
            )


def _check_number(atom: Atom, names: tuple[str, ...], known: KnownTypes, problems: Problems) -> None:
    """Notes too few arguments by place for a type's own table, and too many for any table.

    ``T()`` asks nothing of the attributes, as an atom with arguments by name asks nothing of the others.
    """
    by_place = [argument for argument in atom.arguments if argument.attribute is None]
    own_table = known.schema is not None and known.schema.shared is None
    number = len(by_place)
    if len(by_place) < len(atom.arguments) or number in (0, len(names)):
        return
    if number > len(names) or (own_table and number < len(names)):
        problems.add(
            f"{atom.relation.name} has {len(names)} attribute{'s' * (len(names) != 1)}, not {number}",
            atom.span,
            expected=f"one argument for each of {listed(names, 'and')}" if names else "no argument",
            hint="write _ for one that does not matter, or name the attributes: "
            f"{atom.relation.name}({names[0] if names else 'k'}: x)",
        )


_Place = tuple[Kind, str, Atom]
"""A place of a variable: the kind and the name of the attribute, and the atom."""


def _check_attributes(
    atom: Atom,
    names: tuple[str, ...] | None,
    known: KnownTypes,
    joined: dict[str, _Place],
    problems: Problems,
) -> None:
    """Notes attributes that an atom's type lacks, and values that cannot be compared as required.

    `names` are those of the attributes by place; `joined` are the first places of variables, and grows.
    """
    kinds = known.attributes(atom.relation)
    if names is None or kinds is None:
        return
    _check_number(atom, names, known, problems)
    checker = KindChecker(lambda variable: kinds.get(variable.name), problems)
    for name, term, span in arguments_by_name(atom, names):
        kind = kinds.get(name)
        if kind is None:
            problems.no_attribute(name, kinds, span, f"{atom.relation.name} has no attribute {name}")
        elif isinstance(term, Literal):
            checker.comparable(Attribute(name, span=term.span), term, term)
        elif isinstance(term, Variable):
            here = (kind, name, atom)
            first = joined.setdefault(term.name, here)
            _check_pair(term, first, here, span, problems)
            if first[0] is Kind.NULL:
                joined[term.name] = here


def _check_pair(variable: Variable, one: _Place, other: _Place, span: Span, problems: Problems) -> None:
    if one is other or fit((one[0], other[0])):
        return
    sides = [f"{name} of {atom.relation.name} is {kind.value}" for kind, name, atom in (one, other)]
    problems.add(
        f"{variable} joins values that cannot be compared: {sides[0]}, and {sides[1]}",
        span,
        expected="two attributes of one kind, or numbers, that hold no lists or structures",
        hint="give one of them another variable, or cast its column",
    )


def _check_hierarchy(tree: ConjunctiveTree, problems: Problems) -> None:
    hierarchy = witness([atom.variables() for atom in tree.atoms])
    if hierarchy is None:
        return
    first, second, *numbers = hierarchy
    both, one, other = (tree.atoms[number] for number in numbers)
    problems.add(
        f"this query is not hierarchical: {both} has both {first} and {second}, "
        f"{one} has {first} without {second}, and {other} has {second} without {first}",
        both.span if both.span != NOWHERE else Span(0, len(tree.text)),
        expected="of two variables that share an atom, one is in every atom of the other",
        hint=f"join {first} or {second} elsewhere; as a pattern, any join is filtered without a guarantee: "
        f"({' ALL '.join(str(atom.relation.name) for atom in (one, both, other))}) FILTER …",
    )
