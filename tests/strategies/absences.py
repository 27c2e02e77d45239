"""Random queries of what did not happen: absences with a deadline before, between and after parts."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from estero.language.check.queries import check_query
from estero.language.tree.distances import Apart, AttributeWindow, DurationWindow
from estero.language.tree.durations import Duration, TimeUnit
from estero.language.tree.expressions import (
    Aggregate,
    Arithmetic,
    Attribute,
    Comparison,
    ComparisonOperator,
    EventFilter,
    Literal,
)
from estero.language.tree.pattern import (
    Absence,
    As,
    EventType,
    Filter,
    Optional,
    Pattern,
    Sequence,
    ending,
    with_children,
)
from estero.language.tree.query import Consume, QueryTree
from estero.language.tree.selection import label_types
from strategies.full import conditions
from strategies.patterns import SCHEMA, TYPES, predicates, queries
from strategies.steps import stepped_queries


@st.composite
def absences(draw: st.DrawFn, labels: tuple[str, ...]) -> Absence:
    """An event type, with a condition on its events, or on others with these labels as well, sometimes."""
    event: Pattern = EventType(draw(st.sampled_from(TYPES)))
    match draw(st.integers(0, 4)):
        case 0:
            event = Filter(As(event, "r"), EventFilter("r", draw(predicates(1))))
        case 1:
            other = draw(st.sampled_from(labels))
            name = draw(st.sampled_from(["n", "k", "s"]))
            operator: ComparisonOperator = draw(st.sampled_from(["=", "=", "!=", "<"]))
            event = Filter(As(event, "r"), Comparison(operator, Attribute(name, "r"), Attribute(name, other)))
        case 2:
            event = Filter(As(event, "r"), draw(conditions(("r", *labels))))
        case _:
            pass
    length = draw(
        st.one_of(
            st.integers(0, 6).map(lambda ticks: AttributeWindow(ticks, "time")),
            st.integers(0, 6000).map(lambda amount: DurationWindow(((amount, TimeUnit.MILLISECONDS),))),
        )
    )
    return Absence(event, Apart(">", length))


def _few(draw: st.DrawFn, labels: tuple[str, ...], *, often: bool) -> tuple[Absence, ...]:
    return tuple(draw(st.lists(absences(labels), min_size=int(often), max_size=2)))


def _inside(draw: st.DrawFn, pattern: Pattern) -> Pattern:
    """The same pattern with absences before and between parts of its sequences."""
    pattern = with_children(pattern, lambda each: _inside(draw, each))
    if not isinstance(pattern, Sequence):
        return pattern
    links, labels = list(pattern.links), tuple(label_types(pattern))
    for number, link in enumerate(links):
        optional = any(isinstance(part, Optional) for part in pattern.parts[number : number + 2])
        if not (link.contiguous or link.distances or optional) and draw(st.integers(0, 3)) == 0:
            links[number] = replace(link, lacking=_few(draw, labels, often=True))
    before = _few(draw, labels, often=True) if draw(st.integers(0, 3)) == 0 else ()
    return replace(pattern, links=tuple(links), before=before)


def _around(draw: st.DrawFn, pattern: Pattern) -> Pattern:
    """The same with absences at the beginning and at the end of all of it."""
    if isinstance(pattern, Filter):
        return replace(pattern, pattern=_around(draw, pattern.pattern))
    labels = tuple(label_types(pattern))
    before = _few(draw, labels, often=draw(st.booleans()))
    after = _few(draw, labels, often=draw(st.integers(0, 3)) > 0)
    if not (before or after):
        return pattern
    if isinstance(pattern, Sequence) and draw(st.booleans()):
        return replace(pattern, before=(*before, *pattern.before), after=after)
    return Sequence((pattern,), (), before, after)


@st.composite
def absent_queries(draw: st.DrawFn, max_operators: int = 3) -> QueryTree:
    """Queries with absences that `check_query` accepts, of every strategy; some ask when they are decided."""
    tree = draw(st.one_of(queries(max_operators), stepped_queries(max_operators)))
    pattern = _around(draw, _inside(draw, tree.pattern))
    changed = replace(tree, pattern=pattern)
    if check_query(changed, SCHEMA):
        changed = replace(changed, consume=Consume.NONE)
    if check_query(changed, SCHEMA):
        pattern = _around(draw, tree.pattern)
        changed = replace(tree, pattern=pattern, consume=Consume.NONE)
    if check_query(changed, SCHEMA):
        return tree
    if not ending(changed.pattern) or draw(st.integers(0, 2)):
        return changed
    labels = tuple(label_types(changed.pattern))
    decided = replace(changed, pattern=Filter(changed.pattern, draw(of_decisions(labels))))
    return changed if check_query(decided, SCHEMA) else decided


@st.composite
def of_decisions(draw: st.DrawFn, labels: tuple[str, ...]) -> Comparison:
    """What a filter may ask of the time with which a complex event is decided."""
    since = st.one_of(
        st.sampled_from(["start_time", "end_time"]).map(Attribute),
        st.sampled_from(labels).map(lambda label: Aggregate("last", label, Attribute("time"))),
    )
    decided, bound = Attribute("decided_time"), Literal(draw(st.integers(0, 12)))
    match draw(st.integers(0, 2)):
        case 0:
            return Comparison("=", Arithmetic("%", decided, Literal(2)), Literal(draw(st.integers(0, 1))))
        case 1:
            operator: ComparisonOperator = draw(st.sampled_from(["<", ">=", "!="]))
            return Comparison(operator, decided, bound)
        case _:
            operator = draw(st.sampled_from(["<=", ">"]))
            length = Literal(Duration(draw(st.integers(0, 9)) * 500_000_000))
            apart = Arithmetic("-", decided, draw(since))
            return Comparison(operator, apart, draw(st.sampled_from([bound, length])))
