"""Random queries on `strategies.SCHEMA` whose pattern is ALL of single events with equalities among them."""

from __future__ import annotations

from hypothesis import strategies as st

from estero.language.tree.expressions import (
    And,
    Attribute,
    Comparison,
    EventFilter,
    IsNull,
    Literal,
    Node,
    Not,
)
from estero.language.tree.pattern import All, As, EventType, Filter, PartitionBy, PartitionKey, Pattern
from estero.language.tree.query import QueryTree
from strategies.patterns import TYPES, windows

NAMES = "uvwxy"


@st.composite
def joined_queries(draw: st.DrawFn, most: int = 4) -> QueryTree:
    """Hierarchical ones: the equalities give each part the values above a leaf of a tree."""
    paths: list[tuple[int, ...]] = [()]
    parts: list[tuple[str, tuple[int, ...]]] = []
    classes = 0
    for name in NAMES[: draw(st.integers(2, most))]:
        path = draw(st.sampled_from(paths[-2:]))
        while len(path) < 2 and draw(st.integers(0, 3)) > 0:
            path = (*path, classes)
            classes += 1
            paths.append(path)
        parts.append((name, path))
    terms = _terms(draw, parts, classes)
    equalities = [each for number in range(classes) for each in _equalities(draw, terms, number)]
    names = [name for name, _ in parts]
    return _query(draw, names, [draw(st.sampled_from(TYPES)) for _ in names], equalities)


@st.composite
def any_joined_queries(draw: st.DrawFn, most: int = 4) -> QueryTree:
    """Any equalities: hierarchical or not, among attributes of one event, of all events of a type as well."""
    names = list(NAMES[: draw(st.integers(2, most))])
    types = [draw(st.sampled_from(TYPES)) for _ in names]
    variables = st.sampled_from([*names, *names, *types])
    attributes = st.builds(Attribute, st.sampled_from(["n", "k", "x"]), variables)
    pairs = draw(st.lists(st.tuples(attributes, attributes), max_size=4))
    return _query(draw, names, types, [Comparison("=", left, right) for left, right in pairs])


def _terms(
    draw: st.DrawFn, parts: list[tuple[str, tuple[int, ...]]], classes: int
) -> dict[tuple[str, int], Attribute]:
    """For each part and class of its path an attribute of its own."""
    kinds = [draw(st.sampled_from(["numbers", "numbers", "texts"])) for _ in range(classes)]
    terms: dict[tuple[str, int], Attribute] = {}
    for name, path in parts:
        free = draw(st.permutations(["n", "k", "x"]))
        for number in path:
            text = kinds[number] == "texts" and "texts" not in [kinds[each] for each in path if each < number]
            terms[name, number] = Attribute("s" if text else free.pop(), name)
    return terms


def _equalities(draw: st.DrawFn, terms: dict[tuple[str, int], Attribute], number: int) -> list[Node]:
    """A tree of equalities over the terms of a class, in any order; strings only with strings."""
    found: list[Node] = []
    of_class = [term for (_, each), term in terms.items() if each == number]
    for text in (True, False):
        here = draw(st.permutations([term for term in of_class if (term.name == "s") is text]))
        for place, term in enumerate(here[1:], start=1):
            found.append(Comparison("=", term, here[draw(st.integers(0, place - 1))]))
    return found


def _query(draw: st.DrawFn, names: list[str], types: list[str], equalities: list[Node]) -> QueryTree:
    parts = [_part(draw, name, event_type) for name, event_type in zip(names, types, strict=True)]
    pattern = _pattern(draw, names, parts, list(draw(st.permutations(equalities))))
    return QueryTree(
        pattern,
        window=draw(st.none() | windows()),
        limit=draw(st.sampled_from([None] * 5 + [1, 2])),
    )


def _pattern(draw: st.DrawFn, names: list[str], parts: list[Pattern], equalities: list[Node]) -> Pattern:
    """The parts, some of them in parentheses; each equality at a filter around one of its sides, or both."""
    if draw(st.integers(0, 3)) == 0:
        first, equalities = _some(draw, equalities, {names[0]}, whole=False)
        parts = [_filtered(parts[0], first), *parts[1:]]
    if len(parts) > 2 and draw(st.booleans()):
        inner, equalities = _some(draw, equalities, set(names[:2]), whole=True)
        parts = [_filtered(All(tuple(parts[:2])), inner), *parts[2:]]
    whole: Pattern = _filtered(All(tuple(parts)), equalities)
    if draw(st.integers(0, 4)) == 0:
        of_each = tuple(PartitionKey("k", name) for name in names)
        whole = PartitionBy(whole, draw(st.sampled_from([of_each, (PartitionKey("k"),)])))
    if draw(st.integers(0, 4)) == 0:
        whole = Filter(whole, EventFilter(names[0], Comparison(">", Attribute("n"), Literal(0))))
    return whole


def _some(
    draw: st.DrawFn, equalities: list[Node], names: set[str], *, whole: bool
) -> tuple[list[Node], list[Node]]:
    """Some equalities of which all variables, or one at least, have these names; and the others."""
    taken: list[Node] = []
    left: list[Node] = []
    for each in equalities:
        variables = _variables(each)
        fits = variables <= names if whole else not variables.isdisjoint(names)
        (taken if fits and draw(st.booleans()) else left).append(each)
    return taken, left


def _part(draw: st.DrawFn, name: str, event_type: str) -> Pattern:
    part: Pattern = As(EventType(event_type), name)
    if draw(st.integers(0, 2)) == 0:
        constant = Literal(draw(st.integers(0, 2)))
        asked = draw(st.sampled_from([Comparison("=", Attribute("n"), constant), IsNull(Attribute("x"))]))
        part = Filter(part, EventFilter(name, Not(asked)))
    return part


def _filtered(pattern: Pattern, conditions: list[Node]) -> Pattern:
    if not conditions:
        return pattern
    return Filter(pattern, conditions[0] if len(conditions) == 1 else And(tuple(conditions)))


def _variables(condition: Node) -> set[str | None]:
    return {node.variable for node in condition.walk() if isinstance(node, Attribute)}
