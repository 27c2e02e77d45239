"""The pattern φ of a query as a tree (semantics.md, "The pattern (CEL)"; SO-CEL, section 3).

Nodes are frozen and compare without their spans. Chains of one operator are flat (`parts`), so the
depth of a tree is that of its parentheses; a parenthesised chain stays a node of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace

from estero.errors import NOWHERE, Span
from estero.language.tree.expressions import Node as Condition
from estero.language.tree.literals import integer_text
from estero.language.tree.words import quoted


@dataclass(frozen=True, slots=True)
class Pattern:
    """The base of all pattern nodes; it prints as canonical text that parses back to an equal tree."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)

    def __str__(self) -> str:
        return _text(self, _LOOSE)

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

    def __str__(self) -> str:
        sign = " : " if self.contiguous else " ; "
        return sign.join(["", *(f"NOT({each})" for each in self.absent), ""])


@dataclass(frozen=True, slots=True)
class Sequence(Pattern):
    """``φ ; ψ : χ …``: `links[i]` is between `parts[i]` and `parts[i + 1]`; left to right."""

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

    def __str__(self) -> str:
        attribute = quoted(self.attribute)
        return attribute if self.variable is None else f"{quoted(self.variable)}.{attribute}"


@dataclass(frozen=True, slots=True)
class PartitionBy(Pattern):
    """``φ PARTITION BY [X.a, Y.b]``: all events marked in φ agree on these attributes."""

    pattern: Pattern
    keys: tuple[PartitionKey, ...]


def unshared(pattern: Pattern) -> Pattern:
    """An equal pattern in which no node is in two places, so that `id` tells places apart.

    >>> a = EventType("A")
    >>> both = unshared(Sequence((a, a), (Link(),)))
    >>> len({id(node) for node in both.walk()})
    3
    """
    return with_children(pattern, unshared)


def with_children(pattern: Pattern, change: Callable[[Pattern], Pattern]) -> Pattern:
    """The same node with `change` of each pattern directly below it, also of those that must be absent."""

    def changed(item: object) -> object:
        match item:
            case Pattern():
                return change(item)
            case Link(absent=absent):
                return replace(item, absent=tuple(map(change, absent)))
            case tuple():
                return tuple(map(changed, item))
            case _:
                return item

    values = {each.name: changed(getattr(pattern, each.name)) for each in fields(pattern)}
    return replace(pattern, **values)  # type: ignore[arg-type]


# ── Canonical text ───────────────────────────────────────────────────────────────────────────────

_LOOSE, _OR, _UNLESS, _AND, _ALL, _SEQUENCE, _POSTFIX, _ATOM = range(8)
"""How tightly the operators bind, loosest first."""


def shortened(pattern: Pattern, most: int = 120) -> str:
    """The text of a pattern for use in a sentence: its beginning where it is long."""
    text = str(pattern)
    return text if len(text) <= most else f"{text[:most].rstrip()} …"


def as_atom(pattern: Pattern) -> str:
    """The text of a pattern, in parentheses unless it is one name or one call."""
    return _text(pattern, _ATOM)


def _text(pattern: Pattern, least: int) -> str:
    """The text of a pattern, in parentheses if it binds looser than `least`."""
    level, text = _with_level(pattern)
    return text if level >= least else f"({text})"


def _with_level(pattern: Pattern) -> tuple[int, str]:  # noqa: C901, PLR0911, PLR0912  (one case per operator)
    match pattern:
        case Disjunction(parts):
            return _OR, " OR ".join(_text(part, _UNLESS) for part in parts)
        case Unless(inner, forbidden):
            return _UNLESS, f"{_text(inner, _UNLESS)} UNLESS {_text(forbidden, _AND)}"
        case Conjunction(parts):
            return _AND, " AND ".join(_text(part, _ALL) for part in parts)
        case All(parts):
            return _ALL, " ALL ".join(_text(part, _SEQUENCE) for part in parts)
        case Sequence(parts, links):
            first, *others = (_text(part, _POSTFIX) for part in parts)
            return _SEQUENCE, first + "".join(f"{a}{b}" for a, b in zip(links, others, strict=True))
        case As(inner, variable):
            return _POSTFIX, f"{_text(inner, _POSTFIX)} AS {quoted(variable)}"
        case Rename(inner, old, new):
            return _POSTFIX, f"{_text(inner, _POSTFIX)} [{quoted(old)} -> {quoted(new)}]"
        case Iteration(inner, contiguous, minimum, maximum):
            sign = " :" if contiguous else ""
            return _POSTFIX, f"{_text(inner, _POSTFIX)}{sign}{_times(minimum, maximum)}"
        case Optional(inner):
            return _POSTFIX, f"{_text(inner, _POSTFIX)}?"
        case EventType(name, stream):
            return _ATOM, quoted(name) if stream is None else f"{quoted(stream)}>{quoted(name)}"
        case Start(inner):
            return _ATOM, f"START({inner})"
        case Strict(inner):
            return _ATOM, f"STRICT({inner})"
        case Filter(inner, condition):
            return _LOOSE, f"{inner} FILTER {condition}"
        case Keep(inner, labels):
            return _LOOSE, f"{inner} KEEP [{', '.join(map(quoted, labels))}]"
        case PartitionBy(inner, keys):
            return _LOOSE, f"{inner} PARTITION BY [{', '.join(map(str, keys))}]"
        case _:
            raise TypeError(f"{type(pattern).__name__} is not a pattern that has a text")


def _times(minimum: int, maximum: int | None) -> str:
    if minimum == 1 and maximum is None:
        return "+"
    if minimum == maximum:
        return f"{{{integer_text(minimum)}}}"
    return f"{{{integer_text(minimum)},{'' if maximum is None else integer_text(maximum)}}}"
