"""From a checked pattern to a complex event automaton, by induction (SO-CEL, Theorem 6.2; CORE).

Each case builds the fragment of a pattern from those of its parts; `estero.automata.fragment` holds
the glue. The number of states is linear in the pattern once bounded iterations are written out,
except that OR inside a filter copies what it filters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from estero.automata.cea import CEA
from estero.automata.compile_filter import apply_filter
from estero.automata.fragment import ANYTHING, Fragment, Need, Workshop, freeze
from estero.language.labels import type_names
from estero.language.pattern import (
    As,
    Disjunction,
    EventType,
    Filter,
    Iteration,
    Link,
    Optional,
    Pattern,
    Sequence,
)


def compile_pattern(pattern: Pattern, streams: tuple[str, ...] = ()) -> CEA:
    """The automaton whose complex events on every stream are those of `pattern`.

    `streams` are the names after FROM: they qualify type names (``S>R``).
    """
    return freeze(_Compiler(Workshop(), streams).fragment(pattern))


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a sequence; `nullable` when it may be left out."""

    fragment: Fragment
    nullable: bool


@dataclass(frozen=True, slots=True)
class _Compiler:
    workshop: Workshop
    streams: tuple[str, ...]

    def fragment(self, pattern: Pattern) -> Fragment:
        match pattern:
            case EventType():
                return self.workshop.atom(Need(type_names(pattern, self.streams)), frozenset({pattern.name}))
            case As():
                return self._marked(self.fragment(pattern.pattern), pattern.variable)
            case Filter():
                inner = self.fragment(pattern.pattern)
                return apply_filter(self.workshop, inner, pattern.condition, pattern.pattern)
            case Disjunction():
                return self.workshop.union(self.fragment(part) for part in pattern.parts)
            case Sequence():
                return self._sequence(pattern)
            case Iteration():
                return self._iteration(pattern)
            case _:
                raise TypeError(f"the compiler has no case for {type(pattern).__name__}")

    def _marked(self, fragment: Fragment, variable: str) -> Fragment:
        return self.workshop.relabel(
            fragment, lambda arc: replace(arc, labels=arc.labels | {variable}) if arc.labels else arc
        )

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
        skip = None if link.contiguous else ANYTHING
        alternatives = [shop.concatenation(left.fragment, right.fragment, None, skip)]
        if right.nullable:
            alternatives.append(shop.copy(left.fragment))
        if left.nullable:
            alternatives.append(shop.copy(right.fragment))
        joined = alternatives[0] if len(alternatives) == 1 else shop.union(alternatives)
        return _Part(joined, left.nullable and right.nullable)

    def _iteration(self, iteration: Iteration) -> Fragment:
        body = self.fragment(iteration.pattern)
        shop, skip = self.workshop, None if iteration.contiguous else ANYTHING
        if iteration.maximum is None:
            last = shop.iteration(shop.copy(body), contiguous=iteration.contiguous)
            rounds, early_end = [shop.copy(body) for _ in range(iteration.minimum - 1)], iteration.minimum
        else:
            last = shop.copy(body)
            rounds, early_end = [shop.copy(body) for _ in range(iteration.maximum - 1)], iteration.minimum
        whole = last
        for number in range(len(rounds), 0, -1):
            round_ = rounds[number - 1]
            rest = shop.concatenation(round_, whole, None, skip)
            if number >= early_end:
                ends = tuple(
                    replace(arc, target=rest.final) for arc in round_.arcs if arc.target == round_.final
                )
                rest = replace(rest, arcs=rest.arcs + ends)
            whole = rest
        return whole
