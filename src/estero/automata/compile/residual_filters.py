"""The filters of a pattern that are checked on whole complex events, and the scopes of their variables.

A variable is bound by the smallest pattern around the filter that gives its label (as in
reference/patterns.py). That pattern is a *place*: inside a repetition or an alternative it has several
instances or none, and elsewhere the same label may be given again. If neither is the case, the labels of the
answer are enough; otherwise the place gets hidden labels.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter

from estero.automata.compile.fragment import FREE, Passed
from estero.automata.residual import (
    ALL_MARKED,
    BEFORE,
    NO_HIDDEN,
    Agreement,
    Apartness,
    Hidden,
    Key,
    Nearby,
    Residual,
)
from estero.language.tree import pattern as p
from estero.language.tree.conditions import (
    as_previous,
    as_unary,
    conjoined,
    conjuncts,
    of_one_event,
    residuals,
    variables_of,
)
from estero.language.tree.distances import Distance
from estero.language.tree.expressions import Node
from estero.language.tree.nodes import SyntaxNode
from estero.language.tree.selection import label_types, marking
from estero.language.tree.whole import ENDS


@dataclass(frozen=True, slots=True)
class Atom:
    """A forbidden event: its type, its condition on one event, and the hidden labels that it gets."""

    event_type: p.EventType
    condition: Node | None
    hidden: frozenset[Hidden]


@dataclass(slots=True)
class Places:
    """The residual filters of a pattern, and the hidden labels that its nodes give.

    Nodes are compared by identity, as equal nodes at different positions are different places.
    """

    residuals: list[Residual] = field(default_factory=list)
    absent: dict[int, Atom] = field(default_factory=dict)
    """The conditions on one event of each forbidden pattern, by its id."""
    conditions: dict[int, Node | None] = field(default_factory=dict)
    """The part of its condition that the automaton checks, for each FILTER by its id."""
    nearby: set[int] = field(default_factory=set)
    """The ids of patterns forbidden before a start or after an end that are compared with other events."""
    _numbers: dict[int, int] = field(default_factory=dict)
    _hidden: defaultdict[int, dict[Hidden, None]] = field(default_factory=lambda: defaultdict(dict))
    _labels: dict[int, frozenset[str]] = field(default_factory=dict)

    def labels(self, node: p.Pattern) -> frozenset[str]:
        """The labels that a node gives, computed once."""
        if id(node) not in self._labels:
            self._labels[id(node)] = frozenset(label_types(node))
        return self._labels[id(node)]

    def number(self, node: SyntaxNode) -> int:
        """The number of the place of a node."""
        return self._numbers.setdefault(id(node), len(self._numbers))

    def hidden(self, node: p.Pattern) -> tuple[Hidden, ...]:
        """The hidden labels that the node gives."""
        return tuple(self._hidden[id(node)])

    def passing(self, step: p.Link | p.Step) -> Passed:
        """The hidden labels of the end before a step and of the beginning after it, if it has distances."""
        asked: list[SyntaxNode] = [*step.lacking, *([step] if step.distances else [])]
        if not asked:
            return FREE
        numbers = list(map(self.number, asked))
        return Passed(
            frozenset(Hidden(number, BEFORE) for number in numbers), frozenset(map(Hidden, numbers))
        )

    def give(self, node: p.Pattern, variable: str = "") -> Hidden:
        """Makes a hidden label for a variable of the node, or for the first event of its instances."""
        label = Hidden(self.number(node), variable)
        self._hidden[id(node)][label] = None
        return label


def find_places(pattern: p.Pattern) -> Places:
    """The places of a checked pattern."""
    places = Places()
    _Search(places).visit(pattern, ())
    return places


def beside_automaton(pattern: p.Pattern) -> tuple[Residual, ...]:
    """The conjuncts of the filter around a pattern as residuals over the labels of complex events."""
    if not isinstance(pattern, p.Filter):
        raise TypeError(f"there is no filter around {pattern}")
    return tuple(
        Residual(part, tuple((variable, variable) for variable in sorted(variables_of(part))))
        for part in conjuncts(as_previous(pattern.condition))
    )


@dataclass(frozen=True, slots=True)
class _Search:
    places: Places

    def visit(self, node: p.Pattern, above: tuple[p.Pattern, ...]) -> None:
        """Collects the places of `node`, which is inside the patterns `above`, outermost first."""
        around = (*above, node)
        match node:
            case p.Filter():
                self._filter(node, around)
            case p.PartitionBy(keys=keys):
                variables = {ALL_MARKED if key.variable is None else key.variable for key in keys}
                self._add(Agreement(keys), sorted(variables), around)
            case p.Sequence(links=links):
                for link in links:
                    self._step(link, around)
                for absence in node.before:
                    self._nearby(absence, around, ahead=False)
                for absence in node.after:
                    self._nearby(absence, around, ahead=True)
            case p.Iteration(contiguous=contiguous, step=step):
                self._step(step, around, contiguous=contiguous)
            case p.Unless(forbidden=forbidden) if any(residuals(forbidden)):
                self._between(forbidden, around)
            case p.Unless(forbidden=forbidden):
                self.visit(forbidden, around)
            case _:
                pass
        for child in marking(node):
            self.visit(child, around)

    def _step(
        self, step: p.Link | p.Step, around: tuple[p.Pattern, ...], *, contiguous: bool = False
    ) -> None:
        for absent in () if contiguous else step.absent:
            self._between(absent, around)
        if step.distances:
            self._apart(step, step.distances)
        for absence in step.lacking:
            self._apart(absence, (absence.apart,))
            refuted, labels = self._absent(absence.event)
            if refuted is not None:
                soon = Apartness((absence.apart,))
                before = ((BEFORE, Hidden(self.places.number(absence), BEFORE)),)
                self._refuted(absence.event, refuted, labels, around, before, soon)

    def _apart(self, step: SyntaxNode, distances: tuple[Distance, ...]) -> None:
        number = self.places.number(step)
        bindings = ((BEFORE, Hidden(number, BEFORE)),)
        self.places.residuals.append(Residual(Apartness(distances), bindings, number))

    def _nearby(self, absence: p.Absence, around: tuple[p.Pattern, ...], *, ahead: bool) -> None:
        """Adds the residual of an event that must be absent before a start, or after an end."""
        refuted, labels = self._absent(absence.event)
        if refuted is None:
            return
        if not _happens_once(around):
            raise ValueError(f"{absence} is compared inside of a part that repeats: check the query first")
        absent, bound = self._sides(refuted, labels, around)
        nearby = Nearby(str(absence), ahead, absent)
        self.places.nearby.add(id(absence.event))
        self.places.residuals.append(Residual(refuted, bound, refuted=True, nearby=nearby))

    def _filter(self, node: p.Filter, around: tuple[p.Pattern, ...]) -> None:
        inside = set(self.places.labels(node.pattern))
        unary: list[Node] = []
        for part in conjuncts(as_previous(node.condition)):
            simple = as_unary(part, inside)
            if simple is not None:
                unary.append(simple)
            else:
                self._add(part, sorted(variables_of(part)), around)
        self.places.conditions[id(node)] = conjoined(unary)

    def _add(self, condition: Node | Agreement, variables: list[str], around: tuple[p.Pattern, ...]) -> None:
        bindings = tuple((variable, self._binding(variable, around)) for variable in variables)
        place = None
        if not _happens_once(around):
            self.places.give(around[-1])
            place = self.places.number(around[-1])
            for _, key in bindings:
                self._begin(key, around)
        self.places.residuals.append(Residual(condition, bindings, place))

    def _between(self, pattern: p.Pattern, around: tuple[p.Pattern, ...]) -> None:
        """Adds the residual of a forbidden event, whose conditions on other events must be false."""
        refuted, labels = self._absent(pattern)
        if refuted is not None:
            self._refuted(pattern, refuted, labels, around)

    def _absent(self, pattern: p.Pattern) -> tuple[Node | None, set[str]]:
        """Keeps the conditions of a forbidden event on itself; returns those on others, and its labels."""
        node, outside = pattern, list[p.Filter | p.As]()
        while isinstance(node, p.Filter | p.As):
            outside.append(node)
            node = node.pattern
        if not isinstance(node, p.EventType):
            raise TypeError(f"not one event with filters: {pattern}")
        labels = {node.name}
        unary: list[Node] = []
        correlated: list[Node] = []
        for wrapper in reversed(outside):
            if isinstance(wrapper, p.As):
                labels.add(wrapper.variable)
                continue
            for part in conjuncts(as_previous(wrapper.condition)):
                simple = as_unary(part, labels)
                if simple is not None:
                    unary.append(of_one_event(simple))
                else:
                    correlated.append(part)
        self.places.absent[id(pattern)] = Atom(node, conjoined(unary), NO_HIDDEN)
        return conjoined(correlated), labels

    def _refuted(
        self,
        pattern: p.Pattern,
        refuted: Node,
        labels: set[str],
        around: tuple[p.Pattern, ...],
        more: tuple[tuple[str, Key], ...] = (),
        soon: Apartness | None = None,
    ) -> None:
        """Adds a condition that must be false of an event that a run passes over with hidden labels."""
        number = self.places.number(pattern)
        absent, bound = self._sides(refuted, labels, around)
        marked = {variable: Hidden(number, variable) for variable in absent}
        atom = self.places.absent[id(pattern)]
        self.places.absent[id(pattern)] = replace(atom, hidden=frozenset({Hidden(number), *marked.values()}))
        bindings = (*sorted({**dict(bound), **marked}.items(), key=itemgetter(0)), *more)
        self.places.residuals.append(Residual(refuted, bindings, number, refuted=True, soon=soon))

    def _sides(
        self, condition: Node, labels: set[str], around: tuple[p.Pattern, ...]
    ) -> tuple[tuple[str, ...], tuple[tuple[str, Key], ...]]:
        """The variables of a condition that stand for the absent event, and the bindings of the others."""
        variables = sorted(variables_of(condition))
        bound = tuple(
            (variable, self._binding(variable, around)) for variable in variables if variable not in labels
        )
        for _, key in bound:
            self._begin(key, around)
        return tuple(variable for variable in variables if variable in labels), bound

    def _binding(self, variable: str, around: tuple[p.Pattern, ...]) -> Key:
        """The label that the events of `variable` have in the smallest pattern around that binds it."""
        if variable in ENDS:
            return variable
        depth = max(
            depth
            for depth, node in enumerate(around)
            if variable == ALL_MARKED or variable in self.places.labels(node)
        )
        path = around[: depth + 1]
        shown = _happens_once(path) and _is_shown(variable, path, self.places)
        return variable if shown else self.places.give(path[-1], variable)

    def _begin(self, key: Key, around: tuple[p.Pattern, ...]) -> None:
        """Lets the place of a hidden key also mark where its instances begin."""
        if isinstance(key, Hidden):
            for node in around:
                if self.places.number(node) == key.place:
                    self.places.give(node)


def _happens_once(path: tuple[p.Pattern, ...]) -> bool:
    """Whether the last pattern of the path has exactly one instance in each complex event."""
    return not any(isinstance(node, p.Iteration | p.Optional | p.Disjunction) for node in path[:-1])


def _is_shown(variable: str, path: tuple[p.Pattern, ...], places: Places) -> bool:
    """Whether no pattern around the last one of the path drops, renames or gives `variable`."""
    return all(_is_kept(variable, node, below, places) for node, below in pairwise(path))


def _is_kept(variable: str, node: p.Pattern, below: p.Pattern, places: Places) -> bool:
    """Whether `variable` marks the same events of `node` as of `below`, which is directly below it."""
    match node:
        case p.Keep(labels=labels):
            return variable != ALL_MARKED and variable in labels
        case p.Rename(old=old, new=new):
            return variable not in (old, new)
        case p.As(variable=given):
            return variable != given
        case p.Conjunction() | p.Unless():
            return True
        case _:
            beside = [child for child in marking(node) if child is not below]
            return not any(variable == ALL_MARKED or variable in places.labels(child) for child in beside)
