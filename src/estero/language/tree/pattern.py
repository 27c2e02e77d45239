"""The pattern φ of a query as a tree (semantics.md, "The pattern (CEL)"; SO-CEL, section 3).

Nodes are frozen and compare without their spans. Chains of one operator are flat (`parts`), so the
depth of a tree is that of its parentheses; a parenthesised chain stays a node of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace

from estero.errors import NOWHERE, Span
from estero.language.tree.expressions import Node as Condition


@dataclass(frozen=True, slots=True)
class Pattern:
    """The base of all pattern nodes."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)

    def children(self) -> Iterator[Pattern]:
        """The patterns directly below this one, left to right."""
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Pattern):
                yield value
            elif isinstance(value, tuple):
                for item in value:
                    if isinstance(item, Pattern):
                        yield item
                    elif isinstance(item, Link):
                        yield from item.absent

    def walk(self) -> Iterator[Pattern]:
        """This pattern and all patterns below it, parents first."""
        stack: list[Pattern] = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(list(node.children())))


@dataclass(frozen=True, slots=True)
class EventType(Pattern):
    """``R`` or ``S>R``: one event of type R (of stream S), marked with the label R."""

    name: str
    stream: str | None = None


@dataclass(frozen=True, slots=True)
class As(Pattern):
    """``φ AS X``: what φ marks is marked with X too (IN of SO-CEL)."""

    pattern: Pattern
    variable: str


@dataclass(frozen=True, slots=True)
class Rename(Pattern):
    """``φ [A -> B]``: the label A becomes B."""

    pattern: Pattern
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Filter(Pattern):
    """``φ FILTER f``."""

    pattern: Pattern
    condition: Condition


@dataclass(frozen=True, slots=True)
class Disjunction(Pattern):
    """``φ OR ψ OR …``."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Conjunction(Pattern):
    """``φ AND ψ AND …``: the same complex event is in all."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class All(Pattern):
    """``φ ALL ψ ALL …``: unions of one of each, in any order, overlap allowed."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Unless(Pattern):
    """``φ UNLESS ψ``: φ's with no complex event of ψ inside [start, end]."""

    pattern: Pattern
    forbidden: Pattern


@dataclass(frozen=True, slots=True)
class Link:
    """How one part of a sequence follows the one before it.

    `contiguous` is ``:``, else ``;``. `absent` are the ``NOT(…)`` between them: with ``;`` no event
    strictly between matches any of them; with ``:`` there is one event between for each of them, in
    turn, and it does not match it. Each is an `EventType` with any number of `As` and `Filter` around.
    """

    contiguous: bool = False
    absent: tuple[Pattern, ...] = ()


@dataclass(frozen=True, slots=True)
class Sequence(Pattern):
    """``φ ; ψ : χ …``: `links[i]` stands between `parts[i]` and `parts[i + 1]`; left to right."""

    parts: tuple[Pattern, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Iteration(Pattern):
    """``φ+``, ``φ:+``, ``φ{n}``, ``φ{n,m}``, ``φ{n,}``, ``φ:{n,m}``: `maximum` None is unbounded."""

    pattern: Pattern
    contiguous: bool = False
    minimum: int = 1
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Optional(Pattern):
    """``φ?``: only as a part of a sequence that has a part which is not optional.

    ``a ; b?`` is ``(a ; b) OR a`` and ``b? ; c`` is ``(b ; c) OR c``, read left to right.
    """

    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Start(Pattern):
    """``START(φ)``: only from the first position of the stream."""

    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Strict(Pattern):
    """``STRICT(φ)``: the marked positions form an interval."""

    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Keep(Pattern):
    """``φ KEEP [X, Y]``: projection; only these labels stay, the others are read and not reported."""

    pattern: Pattern
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """One key of a nested ``PARTITION BY``: ``X.a``, or ``a`` for all of φ (`variable` is None)."""

    attribute: str
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionBy(Pattern):
    """``φ PARTITION BY [X.a, Y.b]``: all events marked in φ agree on these attributes."""

    pattern: Pattern
    keys: tuple[PartitionKey, ...]


def unshared(pattern: Pattern) -> Pattern:
    """An equal pattern in which no node stands in two places, so that `id` tells places apart.

    >>> a = EventType("A")
    >>> both = unshared(Sequence((a, a), (Link(),)))
    >>> len({id(node) for node in both.walk()})
    3
    """
    changed: dict[str, object] = {}
    for each in fields(pattern):
        value = getattr(pattern, each.name)
        if isinstance(value, Pattern):
            changed[each.name] = unshared(value)
        elif isinstance(value, tuple):
            changed[each.name] = tuple(map(_unshared_item, value))
    return replace(pattern, **changed)  # type: ignore[arg-type]


def _unshared_item(item: object) -> object:
    if isinstance(item, Pattern):
        return unshared(item)
    return replace(item, absent=tuple(map(unshared, item.absent))) if isinstance(item, Link) else item
