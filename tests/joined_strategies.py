"""Random queries on `strategies.SCHEMA` whose pattern is ALL of single events with equalities among them."""

from __future__ import annotations

from hypothesis import strategies as st

from estero.language.expressions import And, Attribute, Comparison, EventFilter, IsNull, Literal, Node, Not
from estero.language.pattern import All, As, EventType, Filter, PartitionBy, PartitionKey, Pattern
from estero.language.query import QueryTree
from strategies import TYPES, windows

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
    return _query(draw, [name for name, _ in parts], equalities)


@st.composite
def any_joined_queries(draw: st.DrawFn, most: int = 4) -> QueryTree:
    """Any equalities: hierarchical or not, among attributes of one event as well."""
    names = list(NAMES[: draw(st.integers(2, most))])
    attributes = st.builds(Attribute, st.sampled_from(["n", "k", "x"]), st.sampled_from(names))
    pairs = draw(st.lists(st.tuples(attributes, attributes), max_size=4))
    return _query(draw, names, [Comparison("=", left, right) for left, right in pairs])


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


def _query(draw: st.DrawFn, names: list[str], equalities: list[Node]) -> QueryTree:
    pattern = _pattern(draw, names, list(draw(st.permutations(equalities))))
    return QueryTree(
        pattern,
        window=draw(st.none() | windows()),
        limit=draw(st.sampled_from([None] * 5 + [1, 2])),
    )


def _pattern(draw: st.DrawFn, names: list[str], equalities: list[Node]) -> Pattern:
    """The parts, some of them in parentheses, each equality at a filter around both its sides."""
    parts: list[Pattern] = [_part(draw, name) for name in names]
    if len(parts) > 2 and draw(st.booleans()):
        inside = set(names[:2])
        inner = [each for each in equalities if _variables(each) <= inside and draw(st.booleans())]
        equalities = [each for each in equalities if not any(each is one for one in inner)]
        parts = [_filtered(All(tuple(parts[:2])), inner), *parts[2:]]
    whole: Pattern = _filtered(All(tuple(parts)), equalities)
    if draw(st.integers(0, 4)) == 0:
        of_each = tuple(PartitionKey("k", name) for name in names)
        whole = PartitionBy(whole, draw(st.sampled_from([of_each, (PartitionKey("k"),)])))
    if draw(st.integers(0, 4)) == 0:
        whole = Filter(whole, EventFilter(names[0], Comparison(">", Attribute("n"), Literal(0))))
    return whole


def _part(draw: st.DrawFn, name: str) -> Pattern:
    part: Pattern = As(EventType(draw(st.sampled_from(TYPES))), name)
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
