"""The reference semantics of conjunctive queries, by trying all valuations (docs/semantics.md).

A valuation maps each atom to an event, such that one assignment of values to variables makes every atom match
its event: the tuple-homomorphisms of the paper's section 4. Two atoms may have the same event, and equal
events at two positions are two events.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from estero.language.tree.conjunctive import Anything, Argument, Atom, ConjunctiveTree, Variable
from estero.language.tree.expressions import Literal
from estero.language.tree.literals import Value
from estero.reference.patterns import names_of_type
from estero.reference.queries import ComplexEvent, is_within, limited
from estero.reference.values import Event, compare, in_utc

Assignment = Mapping[str, Value]
Valuation = tuple[int, ...]
"""The position of the event of each atom."""


def evaluate_conjunctive(
    tree: ConjunctiveTree, events: Sequence[Event], *, tick: int = 1
) -> dict[int, set[ComplexEvent]]:
    """The answers by end position: at i the valuations that use position i and none after it.

    `events` are in stream order, their times in ticks of `tick` nanoseconds. An argument by place is that
    attribute of the event, in the order of its mapping. A valuation is a complex event from its smallest
    position to its largest, in which each label marks one event. Under ``LIMIT n`` these are the first n in
    the order of `str`.

    >>> from estero.language.syntax.parser import parse_conjunctive
    >>> events = [Event("S", {"a": 2, "b": 1}), Event("T", {"k": 3}), Event("T", {"k": 2})]
    >>> list(map(str, evaluate_conjunctive(parse_conjunctive("Q(x) <- T(x), S(x, _)"), events)[2]))
    ['[0, 2] {S: [0], T: [2]}']
    """
    by_end: defaultdict[int, set[ComplexEvent]] = defaultdict(set)
    for valuation in valuations(tree, events):
        labels = frozenset(
            (label, frozenset((position,))) for label, position in zip(tree.labels, valuation, strict=True)
        )
        complex_event = ComplexEvent(min(valuation), max(valuation), labels)
        if tree.window is None or is_within(tree.window, complex_event, events, tick):
            by_end[complex_event.end].add(complex_event)
    return {end: limited(complex_events, tree.limit) for end, complex_events in by_end.items()}


def valuations(tree: ConjunctiveTree, events: Sequence[Event]) -> Iterator[Valuation]:
    """All valuations over a stream, without regard to the window."""
    joined = _joined(tree)

    def choose(chosen: Valuation, assignment: Assignment) -> Iterator[Valuation]:
        if len(chosen) == len(tree.atoms):
            yield chosen
            return
        atom = tree.atoms[len(chosen)]
        for position, event in enumerate(events):
            extended = _assign(atom, event, tree.streams, assignment, joined)
            if extended is not None:
                yield from choose((*chosen, position), extended)

    return choose((), {})


def _joined(tree: ConjunctiveTree) -> frozenset[str]:
    """The variables that occur in at least two places; the others require nothing, not even a value."""
    terms = (argument.term for atom in tree.atoms for argument in atom.arguments)
    places = Counter(term.name for term in terms if isinstance(term, Variable))
    return frozenset(name for name, number in places.items() if number > 1)


def _assign(
    atom: Atom, event: Event, streams: tuple[str, ...], assignment: Assignment, joined: frozenset[str]
) -> Assignment | None:
    """The assignment extended by the atom's variables, or None if the event does not match the atom."""
    if event.type not in names_of_type(atom.relation, streams) or len(atom.arguments) > len(event.attributes):
        return None
    extended = dict(assignment)
    for place, argument in enumerate(atom.arguments):
        value = _value(argument, place, event)
        match argument.term:
            case Anything():
                continue
            case Literal(constant):
                if compare("=", value, in_utc(constant)) is not True:
                    return None
            case variable if variable.name in extended:
                if compare("=", value, extended[variable.name]) is not True:
                    return None
            case variable if value is None and variable.name in joined:
                return None
            case variable:
                extended[variable.name] = value
    return extended


def _value(argument: Argument, place: int, event: Event) -> Value:
    name = argument.attribute if argument.attribute is not None else list(event.attributes)[place]
    return in_utc(event.attributes.get(name))
