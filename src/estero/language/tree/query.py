"""A whole query as a tree (semantics.md, "The query (CEQL)")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from estero.errors import NOWHERE, Span
from estero.language.tree.pattern import Pattern


class Strategy(Enum):
    """Which complex events with the same end position and partition stay."""

    ALL = "ALL"
    STRICT = "STRICT"
    MAX = "MAX"
    NEXT = "NEXT"
    LAST = "LAST"


class Consume(Enum):
    """What is forgotten after a position with an answer."""

    NONE = "NONE"
    ANY = "ANY"
    PARTITION = "PARTITION"


class TimeUnit(Enum):
    """A unit of a duration; the value is its length in nanoseconds."""

    NANOSECONDS = 1
    MICROSECONDS = 1_000
    MILLISECONDS = 1_000_000
    SECONDS = 1_000_000_000
    MINUTES = 60_000_000_000
    HOURS = 3_600_000_000_000
    DAYS = 86_400_000_000_000
    WEEKS = 604_800_000_000_000


@dataclass(frozen=True, slots=True)
class EventWindow:
    """``WITHIN n EVENTS``: end − start ≤ n, in positions of the whole stream."""

    events: int
    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class DurationWindow:
    """``WITHIN 2 HOURS 30 MINUTES``: time(end) − time(start) ≤ the sum of `parts`."""

    parts: tuple[tuple[int, TimeUnit], ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)

    @property
    def nanoseconds(self) -> int:
        """The length of the window in nanoseconds."""
        return sum(amount * unit.value for amount, unit in self.parts)


@dataclass(frozen=True, slots=True)
class AttributeWindow:
    """``WITHIN n [attr]``: time(end) − time(start) ≤ n ticks of the time column `attribute`."""

    ticks: int
    attribute: str
    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


Window = EventWindow | DurationWindow | AttributeWindow


@dataclass(frozen=True, slots=True)
class SelectItem:
    """A label to show, with all attributes (`attributes` is None) or some: ``X[a, b]``."""

    label: str
    attributes: tuple[str, ...] | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class KeyBracket:
    """One key of ``PARTITION BY``: the first of `alternatives` that an event's type has."""

    alternatives: tuple[str, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class QueryTree:
    """The syntax tree of a query. `select` None is ``*``, the empty tuple is ``NONE``.

    `text` is what was parsed (empty when built without one); spans are offsets into it. `places` are
    the spans of the clauses by name (LIST, STRATEGY, FROM, WHERE, PARTITION BY, WITHIN, CONSUME BY, LIMIT).
    """

    pattern: Pattern
    select: tuple[SelectItem, ...] | None = None
    strategy: Strategy = Strategy.ALL
    streams: tuple[str, ...] = ()
    partition_by: tuple[KeyBracket, ...] = ()
    window: Window | None = None
    consume: Consume = Consume.NONE
    limit: int | None = None
    text: str = field(default="", compare=False, repr=False, kw_only=True)
    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False, kw_only=True)

    def __str__(self) -> str:
        from estero.language.tree.render import render_query

        return render_query(self)
