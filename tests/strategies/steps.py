"""Random queries with steps: distances and absences between parts of sequences and rounds of iterations."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from estero.language.check.queries import check_query
from estero.language.tree.distances import (
    Apart,
    ApartBetween,
    AttributeWindow,
    Distance,
    DurationWindow,
    EventWindow,
    Window,
)
from estero.language.tree.durations import TimeUnit
from estero.language.tree.pattern import (
    As,
    EventType,
    Filter,
    Iteration,
    Link,
    Optional,
    Pattern,
    Sequence,
    Step,
    distances_of,
    with_children,
)
from estero.language.tree.query import QueryTree
from strategies.full import full_queries
from strategies.patterns import SCHEMA, TYPES, filters, queries

_LENGTHS: dict[type[Window], st.SearchStrategy[Window]] = {
    EventWindow: st.integers(1, 5).map(EventWindow),
    AttributeWindow: st.integers(0, 6).map(lambda ticks: AttributeWindow(ticks, "time")),
    DurationWindow: st.one_of(
        st.integers(0, 5).map(lambda seconds: DurationWindow(((seconds, TimeUnit.SECONDS),))),
        st.integers(1, 5000).map(lambda amount: DurationWindow(((amount, TimeUnit.MILLISECONDS),))),
    ),
}


@st.composite
def distances(draw: st.DrawFn) -> Distance:
    """Distances of each kind, a few events or seconds long."""
    lengths = _LENGTHS[draw(st.sampled_from(list(_LENGTHS)))]
    if draw(st.integers(0, 4)) > 0:
        return Apart(draw(st.sampled_from(["<=", "<=", "<", ">=", ">"])), draw(lengths))
    return ApartBetween(draw(lengths), draw(lengths))


@st.composite
def absent(draw: st.DrawFn) -> Pattern:
    """One event type, with a condition on its events sometimes."""
    event = EventType(draw(st.sampled_from(TYPES)))
    if draw(st.integers(0, 2)) > 0:
        return event
    return Filter(As(event, "r"), draw(filters(("r",))))


def _conditions(draw: st.DrawFn, *, may_forbid: bool) -> tuple[tuple[Pattern, ...], tuple[Distance, ...]]:
    kind = draw(st.integers(0, 4))
    forbidden = (draw(absent()),) if may_forbid and kind in (0, 3) else ()
    measured = draw(st.lists(distances(), min_size=1, max_size=2)) if kind in (1, 2, 3) else []
    return forbidden, tuple(measured)


def _stepped(draw: st.DrawFn, pattern: Pattern) -> Pattern:
    """The same pattern with steps in it."""
    pattern = with_children(pattern, lambda each: _stepped(draw, each))
    match pattern:
        case Sequence(parts, links):
            made: list[Link] = []
            for number, link in enumerate(links):
                optional = any(isinstance(part, Optional) for part in parts[number : number + 2])
                plain = not (link.contiguous or link.absent or optional)
                forbidden, measured = _conditions(draw, may_forbid=plain)
                made.append(replace(link, absent=link.absent or forbidden, distances=measured))
            if any(link.contiguous and link.absent for link in links):
                return pattern
            return replace(pattern, links=tuple(made))
        case Iteration(contiguous=contiguous):
            forbidden, measured = _conditions(draw, may_forbid=not contiguous)
            return replace(pattern, step=Step(forbidden, measured))
        case _:
            return pattern


def _valid(tree: QueryTree) -> bool:
    return not check_query(tree, SCHEMA)


@st.composite
def stepped_queries(draw: st.DrawFn, max_operators: int = 3, *, full: bool = False) -> QueryTree:
    """Queries with steps that `check_query` accepts; `full`: with every operator, filter and strategy."""
    tree = draw((full_queries if full else queries)(max_operators))
    changed = replace(tree, pattern=_stepped(draw, tree.pattern))
    return changed if _valid(changed) else tree


def has_distances(tree: QueryTree) -> bool:
    """Whether some step of a query asks for a distance."""
    return any(any(distances_of(node)) for node in tree.pattern.walk())
