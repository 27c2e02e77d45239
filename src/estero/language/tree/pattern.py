"""The pattern φ of a query as a tree (docs/semantics.md, "Patterns"; SO-CEL, section 3).

Nodes are frozen and compare without their spans. Chains of one operator are flat (`parts`), so the
depth of a tree is that of its parentheses; a parenthesised chain stays a node of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from estero.language.tree.distances import Distance, Measured
from estero.language.tree.expressions import Node as Condition
from estero.language.tree.literals import integer_text
from estero.language.tree.nodes import SyntaxNode, walked, with_changed
from estero.language.tree.words import quoted

_LOOSE, _OR, _UNLESS, _AND, _ALL, _SEQUENCE, _POSTFIX, _ATOM = range(8)
"""The binding strength of the operators, loosest first."""
_LONGEST = 120
"""The longest text of a pattern in a sentence."""


@dataclass(frozen=True, slots=True)
class Pattern(SyntaxNode, level=_ATOM):
    """The base of all pattern nodes."""

    def children(self) -> list[Pattern]:
        """The patterns directly below this one, left to right, also those that must be absent."""
        patterns: list[Pattern] = []
        for node in self.below():
            if isinstance(node, Pattern):
                patterns.append(node)
            elif isinstance(node, Link | Step):
                patterns += node.absent
                patterns += [absence.event for absence in node.lacking]
            elif isinstance(node, Absence):
                patterns.append(node.event)
        return patterns

    def walk(self) -> Iterator[Pattern]:
        """This pattern and all patterns below it, parents first."""
        return walked(self, Pattern.children)


@dataclass(frozen=True, slots=True)
class EventType(Pattern, form="{stream:>}{name}"):
    """``R`` or ``S>R``: one event of type R (of stream S), marked with the label R."""

    name: str
    stream: str | None = None


@dataclass(frozen=True, slots=True)
class As(Pattern, level=_POSTFIX, form="{pattern:=} AS {variable}"):
    """``φ AS X``: what φ marks is marked with X too (IN of SO-CEL)."""

    pattern: Pattern
    variable: str


@dataclass(frozen=True, slots=True)
class Rename(Pattern, level=_POSTFIX, form="{pattern:=} [{old} -> {new}]"):
    """``φ [A -> B]``: the label A becomes B."""

    pattern: Pattern
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Filter(Pattern, level=_LOOSE, form="{pattern} FILTER {condition}"):
    """``φ FILTER f``."""

    pattern: Pattern
    condition: Condition


@dataclass(frozen=True, slots=True)
class Disjunction(Pattern, level=_OR, form="{parts:+ OR }"):
    """``φ OR ψ OR …``."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Conjunction(Pattern, level=_AND, form="{parts:+ AND }"):
    """``φ AND ψ AND …``: the same complex event is in all."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class All(Pattern, level=_ALL, form="{parts:+ ALL }"):
    """``φ ALL ψ ALL …``: unions of one of each, in any order, overlap allowed."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Unless(Pattern, level=_UNLESS, form="{pattern:=} UNLESS {forbidden:+}"):
    """``φ UNLESS ψ``: φ's with no complex event of ψ inside [start, end]."""

    pattern: Pattern
    forbidden: Pattern


@dataclass(frozen=True, slots=True)
class Absence(SyntaxNode):
    """``NOT(R AS r FILTER f) FOR d``: no such event for so long, before a start or after an end.

    `event` is an `EventType` with any number of `As` and `Filter` around. `apart` says how far away such an
    event has to be: more than d.
    """

    event: Pattern
    apart: Distance

    def __str__(self) -> str:
        said = self.apart.said if isinstance(self.apart, Measured) else self.apart
        return f"NOT({self.event}) FOR {said.lengths[0]}"


@dataclass(frozen=True, slots=True)
class Link(SyntaxNode):
    """The way in which one part of a sequence follows the previous one.

    `contiguous` is ``:``, else ``;``. `absent` are the ``NOT(…)`` between them: with ``;`` no event
    strictly between matches any of them; with ``:`` there is one event between for each of them, in
    turn, and it does not match it. Each is an `EventType` with any number of `As` and `Filter` around.
    `distances` are how far apart the end of what is before and the start of what follows are. `lacking` are
    the ``NOT(…) FOR d`` between them.
    """

    contiguous: bool = False
    absent: tuple[Pattern, ...] = ()
    distances: tuple[Distance, ...] = ()
    lacking: tuple[Absence, ...] = ()

    def __str__(self) -> str:
        sign = ":" if self.contiguous else ";"
        if self.distances:
            return f" {sign}{conditions_text(self.distances, self.absent)} "
        return f" {sign} ".join(
            ["", *(f"NOT({pattern})" for pattern in self.absent), *map(str, self.lacking), ""]
        )


@dataclass(frozen=True, slots=True)
class Step(SyntaxNode):
    """The conditions between two rounds of an iteration: `absent` and `distances` as in `Link`."""

    absent: tuple[Pattern, ...] = ()
    distances: tuple[Distance, ...] = ()

    @property
    def lacking(self) -> tuple[Absence, ...]:
        """None: a round is no part of a sequence."""
        return ()

    def __str__(self) -> str:
        return conditions_text(self.distances, self.absent) if self.absent or self.distances else ""


def conditions_text(distances: tuple[Distance, ...], absent: tuple[Pattern, ...]) -> str:
    """The conditions of a step in brackets."""
    return f"[{', '.join([*map(str, distances), *map(_absent_text, absent)])}]"


def _absent_text(absent: Pattern) -> str:
    return f"NOT {absent}" if isinstance(absent, EventType) else f"NOT ({absent})"


@dataclass(frozen=True, slots=True)
class Sequence(Pattern, level=_SEQUENCE):
    """``φ ; ψ : χ …``: `links[i]` is between `parts[i]` and `parts[i + 1]`; left to right.

    `before` and `after` are the ``NOT(…) FOR d`` before the first and after the last part. Only where there
    are some it may have one part.
    """

    parts: tuple[Pattern, ...]
    links: tuple[Link, ...]
    before: tuple[Absence, ...] = ()
    after: tuple[Absence, ...] = ()

    def __str__(self) -> str:
        first, *others = (part.at_level(_POSTFIX) for part in self.parts)
        text = first + "".join(f"{link}{part}" for link, part in zip(self.links, others, strict=True))
        return " ; ".join([*map(str, self.before), text, *map(str, self.after)])


@dataclass(frozen=True, slots=True)
class Iteration(Pattern, level=_POSTFIX):
    """``φ+``, ``φ:+``, ``φ{n}``, ``φ{n,m}``, ``φ{n,}``, ``φ:{n,m}``: `maximum` None is unbounded.

    `step` is what each round asks of the one before, as in ``φ+[<= 5 MINUTES, NOT R]``.
    """

    pattern: Pattern
    contiguous: bool = False
    minimum: int = 1
    maximum: int | None = None
    step: Step = Step()

    def __str__(self) -> str:
        sign = " :" if self.contiguous else ""
        return f"{self.pattern.at_level(_POSTFIX)}{sign}{self._times()}{self.step}"

    def _times(self) -> str:
        if self.minimum == 1 and self.maximum is None:
            return "+"
        least = integer_text(self.minimum)
        if self.minimum == self.maximum:
            return f"{{{least}}}"
        return f"{{{least},{'' if self.maximum is None else integer_text(self.maximum)}}}"


@dataclass(frozen=True, slots=True)
class Optional(Pattern, level=_POSTFIX, form="{pattern:=}?"):
    """``φ?``: only as a part of a sequence that has a part which is not optional.

    ``a ; b?`` is ``(a ; b) OR a`` and ``b? ; c`` is ``(b ; c) OR c``, read left to right. ``φ*`` is
    ``(φ+)?``, ``φ{0,m}`` is ``(φ{1,m})?``, and ``φ? AS x`` is ``(φ AS x)?``.
    """

    pattern: Pattern

    def __str__(self) -> str:
        repeated = self.pattern
        if isinstance(repeated, As):
            return f"{replace(self, pattern=repeated.pattern)} AS {quoted(repeated.variable)}"
        if not isinstance(repeated, Iteration) or repeated.minimum != 1:
            return self.filled("")
        if repeated.maximum is None and not repeated.contiguous:
            return f"{repeated.pattern.at_level(_POSTFIX)}*{repeated.step}"
        return str(replace(repeated, minimum=0))


def settled(pattern: Pattern) -> Pattern:
    """The pattern with an optional part moved to its top: ``φ{0,m}`` is ``(φ{1,m})?``, like ``φ? AS x``."""
    match pattern:
        case Iteration(minimum=0, maximum=most) if most != 0:
            return Optional(replace(pattern, minimum=1), span=pattern.span)
        case As(Optional(inner), variable):
            return Optional(As(inner, variable, span=pattern.span), span=pattern.span)
        case _:
            return pattern


@dataclass(frozen=True, slots=True)
class Start(Pattern, form="START({pattern})"):
    """``START(φ)``: only from the first position of the stream."""

    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Strict(Pattern, form="STRICT({pattern})"):
    """``STRICT(φ)``: the marked positions form an interval."""

    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Keep(Pattern, level=_LOOSE, form="{pattern} KEEP [{labels:, }]"):
    """``φ KEEP [X, Y]``: projection; only these labels stay, the others are read and not reported."""

    pattern: Pattern
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionKey(SyntaxNode, form="{variable:.}{attribute}"):
    """One key of a nested ``PARTITION BY``: ``X.a``, or ``a`` for all of φ (`variable` is None)."""

    attribute: str
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionBy(Pattern, level=_LOOSE, form="{pattern} PARTITION BY [{keys:, }]"):
    """``φ PARTITION BY [X.a, Y.b]``: all events marked in φ agree on these attributes."""

    pattern: Pattern
    keys: tuple[PartitionKey, ...]


def distances_of(pattern: Pattern) -> Iterator[Distance]:
    """The distances of the steps and absences of this node, without those of patterns below it."""
    match pattern:
        case Sequence(links=links, before=before, after=after):
            yield from (distance for link in links for distance in link.distances)
            lacking = (absence for link in links for absence in link.lacking)
            yield from (absence.apart for absence in (*before, *lacking, *after))
        case Iteration(step=step):
            yield from step.distances
        case _:
            pass


def unshared(pattern: Pattern) -> Pattern:
    """An equal pattern in which no node is in two places, so that `id` identifies a place.

    >>> a = EventType("A")
    >>> both = unshared(Sequence((a, a), (Link(),)))
    >>> len({id(node) for node in both.walk()})
    3
    """
    return with_children(pattern, unshared)


def with_children(pattern: Pattern, change: Callable[[Pattern], Pattern]) -> Pattern:
    """The node with `change` applied to each pattern directly below it, including absent ones."""

    def changed(item: object) -> object:
        if isinstance(item, Pattern):
            return change(item)
        return with_changed(item, changed) if isinstance(item, Link | Step | Absence) else item

    return with_changed(pattern, changed)


def ending(pattern: Pattern) -> tuple[Absence, ...]:
    """The ``NOT(…) FOR d`` with which a pattern ends, inside its tails (FILTER, KEEP, PARTITION BY)."""
    while isinstance(pattern, Filter | Keep | PartitionBy):
        pattern = pattern.pattern
    return pattern.after if isinstance(pattern, Sequence) else ()


def has_deadlines(pattern: Pattern) -> bool:
    """Whether it contains a ``NOT(…) FOR d`` anywhere."""
    sequences = (node for node in pattern.walk() if isinstance(node, Sequence))
    return any(
        sequence.before or sequence.after or any(link.lacking for link in sequence.links)
        for sequence in sequences
    )


def with_distances(pattern: Pattern, change: Callable[[Distance], Distance]) -> Pattern:
    """The pattern with `change` applied to each distance of its steps."""

    def changed(item: object) -> object:
        match item:
            case Pattern() | Link() | Step() | Absence():
                return with_changed(item, changed)
            case Distance():
                return change(item)
            case _:
                return item

    return with_changed(pattern, changed)


def shortened(pattern: Pattern) -> str:
    """The text of a pattern for use in a sentence: its beginning where it is long."""
    text = str(pattern)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} …"


def as_atom(pattern: Pattern) -> str:
    """The text of a pattern, in parentheses unless it is one name or one call."""
    return pattern.at_level(_ATOM)
