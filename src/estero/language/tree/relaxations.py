"""Relaxed queries, which lack one of the conditions of a query.

They answer "why not" by changes of trees: each is a query of its own, planned and counted as any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from estero.language.tree import pattern as p
from estero.language.tree.conditions import conjoined, conjuncts, variables_of
from estero.language.tree.expressions import Attribute, EventFilter, Node
from estero.language.tree.query import QueryTree
from estero.language.tree.selection import DECIDED_TIME, label_types, marking
from estero.language.tree.whole import ENDS

EARLIER: Final = "part before"
"""The label of the part before a relaxed link; labels of a text have a blank only if quoted."""
LATER: Final = "part behind"
"""The label of the part after a relaxed link."""

Kind = Literal["window", "key", "distance", "contiguity", "absence", "repetition", "place"]


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A query without one of its structural conditions, which it prints as `said`.

    If it is `between` two parts of a sequence, these have the labels `EARLIER` and `LATER` as well.
    """

    kind: Kind
    said: str
    tree: QueryTree
    between: bool = False


def in_single_conjuncts(pattern: p.Pattern) -> p.Pattern:
    """The query with ``X[p] AND X[q]`` for ``X[p AND q]``.

    >>> from estero.language.syntax.parser import parse_pattern
    >>> print(in_single_conjuncts(parse_pattern("a FILTER a[k > 1 AND n < 2]")))
    a FILTER a[k > 1] AND a[n < 2]
    """
    pattern = p.with_children(pattern, in_single_conjuncts)
    if not isinstance(pattern, p.Filter):
        return pattern
    return replace(pattern, condition=conjoined(_single(pattern.condition)) or pattern.condition)


def _single(condition: Node) -> Iterator[Node]:
    for part in conjuncts(condition):
        if isinstance(part, EventFilter):
            yield from (replace(part, predicate=conjunct) for conjunct in conjuncts(part.predicate))
        else:
            yield part


def conditions_on(pattern: p.Pattern, labels: set[str]) -> list[Node]:
    """The conjuncts of the filters of a pattern on some of these labels, from the outside in."""
    own: list[Node] = []
    if isinstance(pattern, p.Filter):
        own = [
            conjunct for conjunct in conjuncts(pattern.condition) if labels & _spoken_of(conjunct, pattern)
        ]
    return [*own, *(condition for part in marking(pattern) for condition in conditions_on(part, labels))]


def with_conditions(pattern: p.Pattern, labels: set[str], kept: Node | None = None) -> p.Pattern:
    """The pattern without those conjuncts, but for the one that is `kept` (the same object)."""
    inside = {id(part) for part in marking(pattern)}
    pattern_without = p.with_children(
        pattern, lambda part: with_conditions(part, labels, kept) if id(part) in inside else part
    )
    if not isinstance(pattern, p.Filter) or not isinstance(pattern_without, p.Filter):
        return pattern_without
    left = conjoined(
        conjunct
        for conjunct in conjuncts(pattern.condition)
        if conjunct is kept or not labels & _spoken_of(conjunct, pattern)
    )
    return pattern_without.pattern if left is None else replace(pattern_without, condition=left)


def _spoken_of(condition: Node, around: p.Pattern) -> set[str]:
    """The variables of a condition; all those of the pattern if it is on the whole complex event or none."""
    return variables_of(condition).difference(ENDS) or set(label_types(around))


def relaxations(tree: QueryTree, first_part: int) -> Iterator[Relaxation]:
    """The query without each of its structural conditions in turn.

    Of a sequence, only what leads to part number `first_part`, from 0, and what follows it is relaxed.
    """
    for kind, said, pattern, between in _of_pattern(tree.pattern, first_part):
        yield Relaxation(kind, said, _with_pattern(tree, pattern), between)
    for place, bracket in enumerate(tree.partition_by):
        left = (*tree.partition_by[:place], *tree.partition_by[place + 1 :])
        yield Relaxation("key", f"PARTITION BY {bracket}", replace(tree, partition_by=left))
    if tree.window is not None:
        yield Relaxation("window", f"WITHIN {tree.window}", replace(tree, window=None))


_Relaxed = tuple[Kind, str, p.Pattern, bool]


def _of_pattern(pattern: p.Pattern, first_part: int = 0) -> Iterator[_Relaxed]:
    match pattern:
        case p.Sequence():
            yield from _of_sequence(pattern, first_part)
            return
        case p.PartitionBy(pattern=inner, keys=keys):
            yield "key", f"PARTITION BY [{', '.join(map(str, keys))}]", inner, False
        case p.Unless(pattern=inner, forbidden=forbidden):
            yield "absence", f"UNLESS {forbidden}", inner, False
        case p.Start(pattern=inner):
            yield "place", "START", inner, False
        case p.Strict(pattern=inner):
            yield "contiguity", "STRICT", inner, False
        case p.Iteration():
            yield from _of_iteration(pattern)
        case _:
            pass
    for part in marking(pattern):
        for kind, said, relaxed, between in _of_pattern(part, first_part):
            around = _in_place_of(part, relaxed, pattern)
            if between and isinstance(around, p.Keep):
                around = replace(around, labels=(*around.labels, EARLIER, LATER))
            yield kind, said, around, between


def _in_place_of(part: p.Pattern, other: p.Pattern, pattern: p.Pattern) -> p.Pattern:
    return p.with_children(pattern, lambda below: other if below is part else below)


def _of_sequence(sequence: p.Sequence, first_part: int) -> Iterator[_Relaxed]:
    for number, link in enumerate(sequence.links):
        if number + 1 >= first_part:
            for kind, said, relaxed in _of_link(link, sequence.parts[number + 1]):
                links = (*sequence.links[:number], relaxed, *sequence.links[number + 1 :])
                parts = list(sequence.parts)
                around = parts[number : number + 2]
                between = not any(isinstance(part, p.Optional) for part in around)
                if between:
                    parts[number : number + 2] = [p.As(around[0], EARLIER), p.As(around[1], LATER)]
                yield kind, said, replace(sequence, parts=tuple(parts), links=links), between
    if first_part == 0:
        for place, absence in enumerate(sequence.before):
            before = (*sequence.before[:place], *sequence.before[place + 1 :])
            yield "absence", str(absence), _simple(replace(sequence, before=before)), False
    for place, absence in enumerate(sequence.after):
        after = (*sequence.after[:place], *sequence.after[place + 1 :])
        yield "absence", str(absence), _simple(replace(sequence, after=after)), False
    for part in sequence.parts[first_part:]:
        for kind, said, relaxed_part, between in _of_pattern(part):
            yield kind, said, _in_place_of(part, relaxed_part, sequence), between


def _simple(sequence: p.Sequence) -> p.Pattern:
    """A sequence of one part, and nothing before or after it, is that part."""
    alone = len(sequence.parts) == 1 and not (sequence.before or sequence.after)
    return sequence.parts[0] if alone else sequence


def _of_link(link: p.Link, behind: p.Pattern) -> Iterator[tuple[Kind, str, p.Link]]:
    if link.contiguous:
        yield "contiguity", f": before {p.shortened(behind)}", replace(link, contiguous=False, absent=())
    else:
        for place, absent in enumerate(link.absent):
            left = (*link.absent[:place], *link.absent[place + 1 :])
            yield "absence", f"NOT({absent})", replace(link, absent=left)
    for place, distance in enumerate(link.distances):
        others = (*link.distances[:place], *link.distances[place + 1 :])
        yield "distance", f"[{distance}]", replace(link, distances=others)
    for place, lacking in enumerate(link.lacking):
        rest = (*link.lacking[:place], *link.lacking[place + 1 :])
        yield "absence", str(lacking), replace(link, lacking=rest)


def _of_iteration(iteration: p.Iteration) -> Iterator[_Relaxed]:
    step = iteration.step
    if iteration.contiguous:
        yield "contiguity", f": in {p.shortened(iteration)}", _loose(iteration), False
    for place, absent in enumerate(() if iteration.contiguous else step.absent):
        left = replace(step, absent=(*step.absent[:place], *step.absent[place + 1 :]))
        yield "absence", f"NOT {absent}", replace(iteration, step=left), False
    for place, distance in enumerate(step.distances):
        rest = replace(step, distances=(*step.distances[:place], *step.distances[place + 1 :]))
        yield "distance", f"[{distance}]", replace(iteration, step=rest), False
    if iteration.minimum > 1:
        yield "repetition", f"{{{iteration.minimum},…}}", replace(iteration, minimum=1), False


def _loose(iteration: p.Iteration) -> p.Iteration:
    return replace(iteration, contiguous=False, step=replace(iteration.step, absent=()))


def without_structure(tree: QueryTree) -> QueryTree:
    """The query without window, keys, distances, contiguity and absences: parts in their order."""
    return replace(_with_pattern(tree, _bare(tree.pattern)), partition_by=(), window=None)


def _with_pattern(tree: QueryTree, pattern: p.Pattern) -> QueryTree:
    """The query with another pattern; without its deadlines, no filter refers to ``decided_time``."""
    waits_no_longer = p.ending(tree.pattern) and not p.ending(pattern)
    return replace(tree, pattern=_undecided(pattern) if waits_no_longer else pattern)


def _undecided(pattern: p.Pattern) -> p.Pattern:
    """The pattern without filters on ``decided_time`` after it."""
    if not isinstance(pattern, p.Filter | p.Keep | p.PartitionBy):
        return pattern
    inner = replace(pattern, pattern=_undecided(pattern.pattern))
    if not isinstance(inner, p.Filter):
        return inner
    left = (
        conjunct for conjunct in conjuncts(inner.condition) if Attribute(DECIDED_TIME) not in conjunct.walk()
    )
    condition = conjoined(left)
    return inner.pattern if condition is None else replace(inner, condition=condition)


def _bare(pattern: p.Pattern) -> p.Pattern:
    inside = {id(part) for part in marking(pattern)}
    pattern = p.with_children(pattern, lambda part: _bare(part) if id(part) in inside else part)
    match pattern:
        case p.Sequence(parts=(only,)):
            return only
        case p.Sequence(parts=parts, links=links):
            return p.Sequence(parts, tuple(p.Link() for _ in links))
        case p.Iteration(pattern=inner, maximum=maximum):
            return p.Iteration(inner, maximum=maximum)
        case p.PartitionBy(pattern=inner) | p.Unless(pattern=inner):
            return inner
        case p.Start(pattern=inner) | p.Strict(pattern=inner):
            return inner
        case _:
            return pattern
