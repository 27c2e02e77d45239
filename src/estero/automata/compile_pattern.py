"""From a checked pattern to a complex event automaton, by induction (SO-CEL, Theorem 6.2; CORE).

Each case builds the fragment of a pattern from those of its parts; `fragment` and `products` hold the
glue. The number of states is linear in the pattern once bounded iterations are written out, except that
OR inside a filter copies what it filters, AND and ALL multiply, and UNLESS keeps sets of states.
Filters that are more than one-event predicates come out as residuals (places.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from estero.automata.cea import CEA, EventPredicate
from estero.automata.compile_filter import apply_filter
from estero.automata.fragment import Arc, Fragment, Pass, Workshop, freeze
from estero.automata.need import ANYTHING, Need, need_of
from estero.automata.places import Atom, Places, find_places
from estero.automata.products import all_of, also_seen, conjunction, passed_over, strict, unless
from estero.automata.residual import ALL_MARKED, NO_HIDDEN, Residual
from estero.errors import LimitExceeded
from estero.language.labels import type_names
from estero.language.pattern import (
    All,
    As,
    Conjunction,
    Disjunction,
    EventType,
    Filter,
    Iteration,
    Keep,
    Link,
    Optional,
    PartitionBy,
    Pattern,
    Rename,
    Sequence,
    Start,
    Strict,
    Unless,
    unshared,
)
from estero.language.render import render_pattern


@dataclass(frozen=True, slots=True)
class Compiled:
    """An automaton, and what is still to be checked of the complex events it finds.

    Without residuals and hidden labels its complex events are those of the pattern.
    """

    automaton: CEA
    residuals: tuple[Residual, ...] = ()


def compile_pattern(pattern: Pattern, streams: tuple[str, ...] = (), *, interval: bool = False) -> Compiled:
    """The automaton of `pattern` on every stream.

    `streams` are the names after FROM: they qualify type names (``S>R``). With `interval` only complex
    events whose marked positions form an interval are left (the strategy STRICT).

    Raises `LimitExceeded`, naming the part of the pattern, where a product gets too big.
    """
    pattern = unshared(pattern)
    places = find_places(pattern)
    compiler = _Compiler(Workshop(), streams, places)
    fragment = compiler.fragment(pattern)
    if interval:
        with compiler.workshop.making(pattern):
            fragment = strict(compiler.workshop, fragment)
    return Compiled(freeze(fragment, compiler.workshop.origins), tuple(places.residuals))


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a sequence; `nullable` when it may be left out."""

    fragment: Fragment
    nullable: bool


@dataclass(frozen=True, slots=True)
class _Compiler:
    workshop: Workshop
    streams: tuple[str, ...]
    places: Places

    def fragment(self, pattern: Pattern) -> Fragment:
        """The fragment of a pattern, with the hidden labels of its place."""
        with self.workshop.making(pattern):
            fragment = self._of(pattern)
        hidden = self.places.hidden(pattern)
        if not hidden:
            return fragment

        def give(arc: Arc) -> Arc:
            given = {
                each
                for each in hidden
                if each.variable in arc.labels
                or (each.variable == ALL_MARKED and arc.labels)
                or (not each.variable and arc.source == fragment.initial)
            }
            return replace(arc, hidden=arc.hidden | given) if given else arc

        return self.workshop.relabel(fragment, give)

    def _of(self, pattern: Pattern) -> Fragment:  # noqa: C901, PLR0911, PLR0912  (one case per operator)
        shop = self.workshop
        match pattern:
            case EventType():
                return shop.atom(Need(type_names(pattern, self.streams)), frozenset({pattern.name}))
            case As(inner, variable):
                return self._labelled(inner, lambda labels: labels | {variable} if labels else labels)
            case Rename(inner, old, new):
                return self._labelled(inner, lambda labels: frozenset(new if x == old else x for x in labels))
            case Keep(inner, kept):
                return self._labelled(inner, lambda labels: labels & frozenset(kept))
            case Filter(inner):
                return self._filter(pattern, self.fragment(inner))
            case Disjunction(parts):
                return shop.union(self.fragment(part) for part in parts)
            case Conjunction(parts):
                return self._products(pattern, parts, conjunction)
            case All(parts):
                return self._products(pattern, parts, all_of)
            case Unless(inner, forbidden):
                return self._unless(pattern, self.fragment(inner), forbidden)
            case Sequence():
                return self._sequence(pattern)
            case Iteration():
                return self._iteration(pattern)
            case Start(inner):
                return self._start(self.fragment(inner))
            case Strict(inner):
                return strict(shop, self.fragment(inner))
            case PartitionBy(inner):
                return self.fragment(inner)
            case _:
                raise TypeError(f"the compiler has no case for {type(pattern).__name__}")

    # ---------------------------------------------------------------------------------------- labels

    def _labelled(self, inner: Pattern, change: Callable[[frozenset[str]], frozenset[str]]) -> Fragment:
        return self.workshop.relabel(
            self.fragment(inner), lambda arc: replace(arc, labels=change(arc.labels))
        )

    def _filter(self, pattern: Filter, inner: Fragment) -> Fragment:
        condition = self.places.conditions[id(pattern)]
        return inner if condition is None else apply_filter(self.workshop, inner, condition, pattern.pattern)

    def _start(self, fragment: Fragment) -> Fragment:
        def narrow(arc: Arc) -> Arc:
            if arc.source != fragment.initial:
                return arc
            return replace(arc, need=replace(arc.need, first=True))

        return self.workshop.relabel(fragment, narrow)

    # -------------------------------------------------------------------------------------- products

    def _products(
        self,
        pattern: Pattern,
        parts: tuple[Pattern, ...],
        join: Callable[[Workshop, Fragment, Fragment], Fragment],
    ) -> Fragment:
        fragments = [self.fragment(part) for part in parts]
        try:
            return reduce(lambda one, two: join(self.workshop, one, two), fragments)
        except LimitExceeded as error:
            raise _naming(pattern, error) from error

    def _unless(self, pattern: Unless, wanted: Fragment, forbidden: Pattern) -> Fragment:
        atom = self.places.absent.get(id(forbidden))
        if atom is not None:
            return also_seen(self.workshop, wanted, self._predicate(atom), atom.hidden)
        try:
            return unless(self.workshop, wanted, self.fragment(forbidden))
        except LimitExceeded as error:
            raise _naming(pattern, error) from error

    # ----------------------------------------------------------------------------------- in succession

    def _sequence(self, sequence: Sequence) -> Fragment:
        whole = self._part(sequence.parts[0])
        for link, part in zip(sequence.links, sequence.parts[1:], strict=True):
            whole = self._join(whole, self._part(part), link)
        return whole.fragment

    def _part(self, pattern: Pattern) -> _Part:
        if isinstance(pattern, Optional):
            return _Part(self._part(pattern.pattern).fragment, nullable=True)
        return _Part(self.fragment(pattern), nullable=False)

    def _join(self, left: _Part, right: _Part, link: Link) -> _Part:
        shop = self.workshop
        first = left.fragment
        skips: list[Pass] = []
        if link.contiguous:
            for absent in link.absent:
                first = shop.concatenation(first, self._one_between(self.places.absent[id(absent)]))
        else:
            atoms = [self.places.absent[id(absent)] for absent in link.absent]
            skips = passed_over(
                [self._predicate(atom) for atom in atoms if not atom.hidden],
                [(self._predicate(atom), atom.hidden) for atom in atoms if atom.hidden],
            )
        alternatives = [shop.concatenation(first, right.fragment, skips)]
        if right.nullable:
            alternatives.append(shop.copy(left.fragment))
        if left.nullable:
            alternatives.append(shop.copy(right.fragment))
        joined = alternatives[0] if len(alternatives) == 1 else shop.union(alternatives)
        return _Part(joined, left.nullable and right.nullable)

    def _one_between(self, atom: Atom) -> Fragment:
        """One event that is not the atom, or is marked as hidden."""
        predicate = self._predicate(atom)
        no = self.workshop.atom(replace(ANYTHING, absent=frozenset({predicate})), frozenset())
        if not atom.hidden:
            return no
        yes = self.workshop.atom(need_of(predicate), frozenset())
        seen = replace(yes, arcs=tuple(replace(arc, hidden=atom.hidden) for arc in yes.arcs))
        return self.workshop.union([no, seen])

    def _predicate(self, atom: Atom) -> EventPredicate:
        return EventPredicate(type_names(atom.event_type, self.streams), atom.condition)

    def _iteration(self, iteration: Iteration) -> Fragment:
        body = self.fragment(iteration.pattern)
        shop = self.workshop
        skips: list[Pass] = [] if iteration.contiguous else [(ANYTHING, NO_HIDDEN)]
        if iteration.maximum is None:
            last = shop.iteration(shop.copy(body), contiguous=iteration.contiguous)
            rounds, early_end = [shop.copy(body) for _ in range(iteration.minimum - 1)], iteration.minimum
        else:
            last = shop.copy(body)
            rounds, early_end = [shop.copy(body) for _ in range(iteration.maximum - 1)], iteration.minimum
        return shop.in_turn([*rounds, last], skips, early_end)


def _naming(pattern: Pattern, error: LimitExceeded) -> LimitExceeded:
    return LimitExceeded(f"{error}: {render_pattern(pattern)}")
