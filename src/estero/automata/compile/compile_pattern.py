"""Compiles a checked pattern into a complex event automaton, by induction over the pattern.

This is Theorem 6.2 of "A Second-Order Approach to Complex Event Recognition" (docs/papers.md). Each case
builds the fragment of a pattern from those of its parts; `fragment` and `products` hold the operations on
fragments. The number of states is linear in the pattern once bounded iterations are written out, except that
OR inside a filter copies what it filters, AND and ALL multiply, and UNLESS keeps sets of states. Optional
parts cost transitions, not states. Filters that are not predicates of one event become residuals
(residual_filters.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import compress, product
from typing import Final

from estero.automata.cea import CEA, EventPredicate
from estero.automata.compile.filters import apply_filter
from estero.automata.compile.fragment import FREE, Arc, Fragment, Part, Pass, Passed, Workshop, freeze
from estero.automata.compile.products import all_of, also_seen, conjunction, passed_over, strict, unless
from estero.automata.compile.residual_filters import Atom, Places, find_places
from estero.automata.compile.symbolic_guard import ANYTHING, SymbolicGuard, guard_of
from estero.automata.lacking import Lacking
from estero.automata.residual import NO_HIDDEN, Hidden, HiddenSet, Residual, carries
from estero.language.tree import pattern as p
from estero.language.tree.schema import type_names

WRITTEN_OUT: Final = 4
"""The most optional parts of a sequence for which each choice of parts becomes an automaton of its own."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """An automaton, and the conditions that the complex events it finds must still satisfy.

    Without residuals and hidden labels its complex events are those of the pattern.
    """

    automaton: CEA
    residuals: tuple[Residual, ...] = ()


def compile_pattern(pattern: p.Pattern, streams: tuple[str, ...] = (), *, interval: bool = False) -> Compiled:
    """Compiles `pattern` into an automaton with the same complex events on every stream.

    `streams` are the names after FROM, which qualify type names (``S>R``). With `interval` only complex
    events whose marked positions form an interval are left (the strategy STRICT).

    Raises `LimitExceeded`, naming the part of the pattern, if a product gets too large.
    """
    pattern = p.unshared(pattern)
    places = find_places(pattern)
    compiler = _Compiler(Workshop(), streams, places)
    fragment = compiler.fragment(pattern)
    if interval:
        with compiler.workshop.making(pattern):
            fragment = strict(compiler.workshop, fragment)
    return Compiled(freeze(fragment, compiler.workshop.origins), tuple(places.residuals))


@dataclass(frozen=True, slots=True)
class _Compiler:
    workshop: Workshop
    streams: tuple[str, ...]
    places: Places

    def fragment(self, pattern: p.Pattern) -> Fragment:
        """The fragment of a pattern, with the hidden labels of its place."""
        with self.workshop.making(pattern):
            fragment = self._of(pattern)
        hidden = self.places.hidden(pattern)
        if not hidden:
            return fragment

        def given(arc: Arc) -> frozenset[Hidden]:
            begins = arc.source == fragment.initial
            return frozenset(
                label
                for label in hidden
                if (carries(arc.labels, arc.hidden, label.variable) if label.variable else begins)
            )

        return self.workshop.relabel(fragment, lambda arc: arc._replace(hidden=arc.hidden | given(arc)))

    def _of(self, pattern: p.Pattern) -> Fragment:  # noqa: C901, PLR0911, PLR0912  (one case per operator)
        shop = self.workshop
        match pattern:
            case p.EventType():
                return shop.atom(SymbolicGuard(type_names(pattern, self.streams)), frozenset({pattern.name}))
            case p.As(inner, variable):
                return self._labelled(inner, lambda labels: labels | {variable} if labels else labels)
            case p.Rename(inner, old, new):
                return self._labelled(inner, lambda labels: frozenset(new if x == old else x for x in labels))
            case p.Keep(inner, kept):
                return self._labelled(inner, lambda labels: labels & frozenset(kept))
            case p.Filter(inner):
                condition = self.places.conditions[id(pattern)]
                filtered = self.fragment(inner)
                return filtered if condition is None else apply_filter(shop, filtered, condition, inner)
            case p.Disjunction(parts):
                return shop.union(self.fragment(part) for part in parts)
            case p.Conjunction(parts):
                return reduce(partial(conjunction, shop), [self.fragment(part) for part in parts])
            case p.All(parts):
                return reduce(partial(all_of, shop), list(self._parts_of_all(parts)))
            case p.Unless(inner, forbidden):
                wanted, atom = self.fragment(inner), self.places.absent.get(id(forbidden))
                if atom is None:
                    return unless(shop, wanted, self.fragment(forbidden))
                return also_seen(shop, wanted, self._predicate(atom), atom.hidden)
            case p.Sequence():
                return self._sequence(pattern)
            case p.Iteration():
                return self._iteration(self._unnested(pattern))
            case p.Start(inner):
                return self._start(self.fragment(inner))
            case p.Strict(inner):
                return strict(shop, self.fragment(inner))
            case p.PartitionBy(inner):
                return self.fragment(inner)
            case _:
                raise TypeError(f"the compiler has no case for {type(pattern).__name__}")

    # ---------------------------------------------------------------------------------------- labels

    def _labelled(self, inner: p.Pattern, change: Callable[[frozenset[str]], frozenset[str]]) -> Fragment:
        return self.workshop.relabel(
            self.fragment(inner), lambda arc: arc._replace(labels=change(arc.labels))
        )

    def _start(self, fragment: Fragment) -> Fragment:
        return self.workshop.relabel(
            fragment,
            lambda arc: (
                arc._replace(guard=replace(arc.guard, first=True)) if arc.source == fragment.initial else arc
            ),
        )

    # -------------------------------------------------------------------------------------- products

    def _parts_of_all(self, parts: tuple[p.Pattern, ...]) -> Iterator[Fragment]:
        """The fragments that ALL joins: its parts, where equal single events are merged into one repetition.

        A choice of one event for each of n equal parts marks 1 to n such events, and so does ``{1,n}``; the
        product of the parts would have a state for each set of them.
        """
        alike: dict[p.Pattern | int, list[p.Pattern]] = {}
        for number, part in enumerate(parts):
            alike.setdefault(part if self._is_one_event(part) else number, []).append(part)
        for first, *others in alike.values():
            fragment = self.fragment(first)
            yield self._times(fragment, 1, 1 + len(others)) if others else fragment

    def _is_one_event(self, part: p.Pattern) -> bool:
        """Whether the part is a single event with labels and filters, without hidden labels."""
        while isinstance(part, p.As | p.Filter) and not self.places.hidden(part):
            part = part.pattern
        return isinstance(part, p.EventType) and not self.places.hidden(part)

    # ----------------------------------------------------------------------------------- in succession

    def _sequence(self, sequence: p.Sequence) -> Fragment:
        fragment = self._in_turn(sequence)
        if not (sequence.before or sequence.after):
            return fragment
        first = [self._lacking(absence, ahead=False) for absence in sequence.before]
        last = [self._lacking(absence, ahead=True) for absence in sequence.after]

        def asked(arc: Arc) -> Arc:
            begins, ends = arc.source == fragment.initial, arc.target == fragment.final
            conditions = [*(first if begins else ()), *(last if ends else ())]
            if conditions and arc.guard.types is None:
                raise TypeError("what is asked of an event of any type")
            return arc._replace(guard=reduce(SymbolicGuard.also, conditions, arc.guard))

        return self.workshop.relabel(fragment, asked)

    def _lacking(self, absence: p.Absence, *, ahead: bool) -> Lacking:
        atom = self.places.absent[id(absence.event)]
        return Lacking(
            self._predicate(atom), absence.apart, ahead, str(absence), id(absence.event) in self.places.nearby
        )

    def _in_turn(self, sequence: p.Sequence) -> Fragment:
        parts = [self._part(sequence.parts[0], ())]
        for link, part in zip(sequence.links, sequence.parts[1:], strict=True):
            if link.contiguous:
                parts += [Part(self._one_between(self.places.absent[id(absent)])) for absent in link.absent]
            skips = () if link.contiguous else self._skips(link)
            parts.append(self._part(part, skips, self.places.passing(link)))
        optional = sum(part.nullable for part in parts)
        if self.places.residuals and 0 < optional <= WRITTEN_OUT:
            return self._written_out(parts)
        return self.workshop.sequence(parts)

    def _written_out(self, parts: list[Part]) -> Fragment:
        """The union of the sequences with and without each optional part.

        A run then knows from its first event which parts follow, and so which events are compared.
        """
        shop = self.workshop
        sequences: list[Fragment] = []
        for present in product(*((True, False) if part.nullable else (True,) for part in parts)):
            kept = [
                Part(shop.copy(part.fragment), part.skips, passed=part.passed)
                for part in compress(parts, present)
            ]
            if kept:
                sequences.append(shop.sequence(kept))
        return shop.union(sequences)

    def _part(self, pattern: p.Pattern, skips: tuple[Pass, ...], passed: Passed = FREE) -> Part:
        if isinstance(pattern, p.Optional):
            return replace(self._part(pattern.pattern, skips, passed), nullable=True)
        return Part(self.fragment(pattern), skips, passed=passed)

    def _skips(self, step: p.Link | p.Step) -> tuple[Pass, ...]:
        """The events that ``;`` may pass over."""
        atoms = [self.places.absent[id(absent)] for absent in step.absent]
        return tuple(
            passed_over(
                self.workshop,
                [self._predicate(atom) for atom in atoms if not atom.hidden],
                [
                    *((self._predicate(atom), atom.hidden) for atom in atoms if atom.hidden),
                    *((self._predicate(atom), hidden) for atom, hidden in map(self._lacked, step.lacking)),
                ],
            )
        )

    def _lacked(self, absence: p.Absence) -> tuple[Atom, HiddenSet]:
        """The forbidden event of an absence with a distance, and the hidden labels by which it is checked."""
        atom = self.places.absent[id(absence.event)]
        return atom, atom.hidden or frozenset({Hidden(self.places.number(absence))})

    def _one_between(self, atom: Atom) -> Fragment:
        """The fragment of one event that does not match the atom, or that gets its hidden labels."""
        predicate = self._predicate(atom)
        no = self.workshop.atom(replace(ANYTHING, absent=frozenset({predicate})), frozenset())
        if not atom.hidden:
            return no
        yes = self.workshop.atom(guard_of(predicate), frozenset())
        return self.workshop.union(
            [no, self.workshop.relabel(yes, lambda arc: arc._replace(hidden=atom.hidden))]
        )

    def _predicate(self, atom: Atom) -> EventPredicate:
        return EventPredicate(type_names(atom.event_type, self.streams), atom.condition)

    def _unnested(self, iteration: p.Iteration) -> p.Iteration:
        """The same iteration without iterations directly inside it.

        ``φ++`` is ``φ+``, ``(φ{3,} AS x){2,}`` is ``(φ AS x){6,}``. This holds where neither has an upper
        bound, nothing has to know where the inner rounds begin, and both links are the same, or that with
        ``:`` need not be there.
        """
        while iteration.maximum is None and iteration.step == p.Step():
            inner, given = iteration.pattern, list[str]()
            while isinstance(inner, p.As) and not self.places.hidden(inner):
                given.append(inner.variable)
                inner = inner.pattern
            if not isinstance(inner, p.Iteration) or inner.maximum is not None or self.places.hidden(inner):
                break
            if inner.step != p.Step():
                break
            strictest = inner if inner.contiguous else iteration
            if inner.contiguous != iteration.contiguous and strictest.minimum > 1:
                break
            contiguous = inner.contiguous and iteration.contiguous
            labelled = reduce(p.As, reversed(given), inner.pattern)
            iteration = p.Iteration(labelled, contiguous, inner.minimum * iteration.minimum)
        return iteration

    def _iteration(self, iteration: p.Iteration) -> Fragment:
        skips = () if iteration.contiguous else self._skips(iteration.step)
        passed = self.places.passing(iteration.step)
        return self._times(
            self.fragment(iteration.pattern), iteration.minimum, iteration.maximum, skips, passed
        )

    def _times(
        self,
        body: Fragment,
        minimum: int,
        maximum: int | None,
        skips: tuple[Pass, ...] = ((ANYTHING, NO_HIDDEN),),
        passed: Passed = FREE,
    ) -> Fragment:
        """The fragment that repeats `body`; its number of states is checked before they are made."""
        shop = self.workshop
        rounds = minimum if maximum is None else maximum
        shop.reserve(rounds * (1 + len({arc.source for arc in body.arcs})))
        copies = [shop.copy(body) for _ in range(rounds - 1)]
        last = shop.copy(body)
        if maximum is None:
            last = shop.iteration(last, skips, passed)
        return shop.in_turn([*copies, last], skips, minimum, passed)
